"""One fault at a time: what was acknowledged must be there, and what is not there must be told."""

import os
import random
import resource
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.faults.child import Child, Tell, call
from benchmarks.faults.power import WAYS, Disk, played, record
from benchmarks.faults.stores import Content, Stores
from benchmarks.faults.work import Operation, Performer, applied, choose, empty
from facets.errors import DiskFullError, FacetsError

_OPERATIONS = 25  # of a process that is killed, at most
_KILLS_A_DIRECTORY = 40
_RECORDED_OPERATIONS = 40
_MOMENTS = 100  # of a record at which the power goes
_SEEDED_OPERATIONS = 30  # before a file is damaged


class Faults:
    """Runs faults in a folder and counts what came of them.

    Attributes:
        counts: Outcomes, and kills by what was being written.
        failures: What went wrong, with all that is needed to do it again.
        num_documents: Documents compared with the shadow.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._rng = random.Random(seed)
        self._number = 0
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.num_documents = 0

    def kills(self, count: int) -> None:
        """SIGKILL at a random moment of a random write, again and again in one directory."""
        directory, content = self._folder / "killed", empty()
        for number in range(count):
            if number % _KILLS_A_DIRECTORY == 0:
                shutil.rmtree(directory, ignore_errors=True)
                content = empty()
            content, pending = self._killed(directory, content)
            candidates = [content] + ([applied(content, pending)] if pending else [])
            self.counts[f"killed in {pending[0] if pending else 'opening or between'}"] += 1
            found = self._read(directory, content)
            if not isinstance(found, dict) or found not in candidates:
                self._fail(f"kill {number} in {pending}", found, candidates)
                shutil.rmtree(directory, ignore_errors=True)
                content = empty()
                continue
            content = found

    def damages(self, count: int, damages: dict[str, Callable[[Path], object]]) -> None:
        """Damages one file of a directory that a kill has left, again and again, each time another way.

        Args:
            count: How many.
            damages: By name.
        """
        if not count:
            return
        original = self._folder / "original"
        shutil.rmtree(original, ignore_errors=True)
        content = empty()
        while not content["relations"] or not content["papers"] or not content.get("documents/a"):
            content, pending = self._killed(original, content, operations=_SEEDED_OPERATIONS)
            if pending:
                found = self._read(original, content)
                assert isinstance(found, dict), found
                content = found
        files = sorted(path.relative_to(original) for path in original.rglob("*") if path.is_file())
        for number in range(count):
            file, (name, damage) = self._rng.choice(files), self._rng.choice(list(damages.items()))
            directory = self._folder / "damaged"
            shutil.rmtree(directory, ignore_errors=True)
            shutil.copytree(original, directory)
            damage(directory / file)
            self._judge(f"damage {number}, {name}: {file}", directory, content)

    def full_disks(self, count: int) -> None:
        """Files that must not grow beyond a random size: writes fail as such and nothing acknowledged is lost."""
        for number in range(count):
            directory = self._folder / "full"
            shutil.rmtree(directory, ignore_errors=True)
            content, _ = self._killed(directory, empty(), limit=self._rng.choice([20_000, 70_000, 150_000, 400_000]))
            found = self._read(directory, content)
            if found == content:
                self.counts["full disk survived"] += 1
            else:
                self._fail(f"full disk {number}", found, [content])

    def power_losses(self, count: int) -> None:
        """What a disk may hold when the power goes: any moment of a process that writes, see the module ``power``."""
        while count > 0:
            root, seed = self._folder / "power", self._rng.randrange(1 << 30)
            shutil.rmtree(root, ignore_errors=True)
            trace = record(root, seed, _RECORDED_OPERATIONS)
            num_moments = sum(told is None for _, told in played(trace, root))
            moments = set(self._rng.sample(range(num_moments), min(num_moments, _MOMENTS, count)))
            content, pending, moment = empty(), list[Operation](), -1
            for disk, told in played(trace, root):
                if told is not None:
                    pending = [told[1]] if told[0] == "begin" else []
                    content = applied(content, told[1], told[2]) if told[0] == "done" else content
                    continue
                moment += 1
                if moment in moments:
                    candidates = [content, *(applied(content, operation) for operation in pending)]
                    for way in WAYS:
                        self._lose_power(disk, way, content, candidates, f"seed {seed}, {moment} in {pending}")
            count -= len(moments)

    def _lose_power(self, disk: Disk, way: str, content: Content, candidates: list[Content], when: str) -> None:
        target = self._folder / "lost"
        shutil.rmtree(target, ignore_errors=True)
        disk.lose_power(target, way, self._rng)
        found = self._read(target / "data", content)
        if isinstance(found, dict) and found in candidates:
            self.counts[f"power lost, {way} of what was not synced is there"] += 1
        else:
            self._fail(f"power lost, {way} of what was not synced is there, {when}", found, candidates)

    def _killed(
        self, directory: Path, content: Content, *, operations: int = _OPERATIONS, limit: int | None = None
    ) -> tuple[Content, Operation | None]:
        """Lets a process write and kills it; what was acknowledged, and the write that it was in."""
        seed, first, start = self._rng.random(), self._number, content
        self._number += operations
        child = Child(lambda tell: write_and_tell(tell, directory, start, (seed, first, operations), limit))
        last = self._rng.randint(1, operations) if limit is None else operations + 1
        pause_s = self._rng.choice([0.0, 0.001, 0.004, 0.02])
        pending: Operation | None = None
        began = 0
        while (told := child.receive()) is not None:
            what, operation, result = told if len(told) == 3 else (*told, None)
            if what == "crashed":
                self._fail("a write", operation, [])
            elif what == "begin":
                pending, began = operation, began + 1
                if began == last:
                    time.sleep(self._rng.uniform(0, pause_s))
                    child.kill()
            else:
                pending = None
                if what == "done":
                    content = applied(content, operation, result)
                else:
                    self.counts[f"refused: {result}"] += 1
        child.wait()
        return content, pending

    def _read(self, directory: Path, content: Content) -> object:
        """All that the stores say; a text when they could not be read."""
        tokens = list(content["streams"])
        found = call(lambda: _read_all(directory, tokens))
        if isinstance(found, tuple) and found[0] == "read" and not found[2]:
            content = found[1]
            self.num_documents += sum(len(held) for kind, held in content.items() if kind.startswith("documents/"))
            return content
        return found

    def _judge(self, what: str, directory: Path, content: Content) -> None:
        """Whether a damaged directory is as it was, refused, or says what it has lost."""
        found = call(lambda: _read_all(directory, list(content["streams"])))
        if found[0] == "refused":
            self.counts["refused with one sentence"] += 1
            return
        if found[0] == "read":
            _, held, damaged, warnings = found
            if any("ingest-streams" in warning for warning in warnings):
                held["streams"] = content["streams"]  # set aside and told: their batches are stored again
            elif all(held["streams"].get(token, 0) <= number for token, number in content["streams"].items()):
                held["streams"] = content["streams"]  # behind: the same
            expected = {
                kind: {id: value for id, value in of_kind.items() if f"{kind}/{id}" not in damaged}
                for kind, of_kind in content.items()
            }
            if held == expected:
                self.counts["served, damaged documents named" if damaged else "all there"] += 1
                return
            found = ("differs", held, expected)
        self._fail(what, found, [])

    def _fail(self, what: str, found: object, candidates: list[Content]) -> None:
        self.counts["FAILED"] += 1
        self.failures.append(f"{what}: {_difference(found, candidates)}"[:4000])


def write_and_tell(
    tell: Tell, directory: Path, content: Content, seeds: tuple[float, int, int], limit: int | None = None
) -> None:
    """Makes random writes, each told before and after; ends the process.

    Args:
        tell: Gets ``("begin", operation)``, and ``("done", operation, result)`` or ``("refused", operation, error)``.
        directory: The data directory.
        content: What it holds.
        seeds: Of the choices; the number of the first write; how many.
        limit: Most bytes of a file; None: as many as there are.
    """
    seed, first, operations = seeds
    rng = random.Random(seed)
    performer = Performer(directory)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for number in range(first, first + operations):
        operation = choose(rng, content, number)
        tell(("begin", operation))
        try:
            result = performer.perform(operation)
        except FacetsError as error:
            if limit is None or not isinstance(error, DiskFullError):
                raise
            tell(("refused", operation, type(error).__name__))
            continue
        content = applied(content, operation, result)
        tell(("done", operation, result))
    os._exit(0)


def _read_all(directory: Path, tokens: list[str]) -> tuple[object, ...]:
    try:
        stores = Stores(directory)
    except FacetsError as error:
        return "refused", str(error)
    try:
        content, damaged = stores.content(tokens)
        return "read", content, damaged, stores.warnings
    except FacetsError as error:
        return "refused", str(error)
    finally:
        stores.close()


def _difference(found: object, candidates: list[Content]) -> str:
    if not isinstance(found, dict):
        return str(found)
    lines = []
    for kind in sorted({kind for one in (found, *candidates) for kind in one}):
        held, wanted = found.get(kind, {}), [one.get(kind, {}) for one in candidates]
        for id in sorted({id for one in (held, *wanted) for id in one}):
            expected = [one.get(id) for one in wanted]
            if held.get(id) not in expected:
                lines.append(f"{kind} {id}: {held.get(id)!r}, expected {expected}")
    return "; ".join(lines) or f"kinds {sorted(found)}, expected {[sorted(one) for one in candidates]}"

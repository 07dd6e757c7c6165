"""The model of a disk loses what was not synced, and nothing else."""

import random
from pathlib import Path

import pytest

from benchmarks.faults.power import WAYS, Disk

FILE, OTHER = "/data/a/file", "/data/a/other"


@pytest.fixture
def disk() -> Disk:
    """A folder with an empty file, both on the disk."""
    disk = Disk(Path("/data"))
    disk.make("/data")
    disk.make("/data/a")
    disk.sync("/data")
    disk.open(FILE, "O_CREAT|O_RDWR")
    disk.sync("/data/a")
    return disk


def after(disk: Disk, path: Path, way: str, seed: int = 0) -> dict[str, bytes]:
    disk.lose_power(path, way, random.Random(seed))
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_what_was_synced_is_there_whatever_happens(disk: Disk, tmp_path: Path) -> None:
    disk.write(FILE, 0, b"synced")
    disk.sync(FILE)
    for way in WAYS:
        assert after(disk, tmp_path / way, way) == {"a/file": b"synced"}


def test_writes_that_were_not_synced_may_be_there_whole_or_in_part_or_not(disk: Disk, tmp_path: Path) -> None:
    disk.write(FILE, 0, b"x" * 2048)
    disk.sync(FILE)
    disk.write(FILE, 0, b"y" * 2048)
    disk.write(FILE, 512, None)
    seen = {after(disk, tmp_path / str(seed), "something", seed)["a/file"] for seed in range(300)}
    assert {b"x" * 2048, b"y" * 512, b"y" * 512 + b"x" * 1536} < seen
    assert after(disk, tmp_path / "none", "nothing") == {"a/file": b"x" * 2048}
    assert after(disk, tmp_path / "all", "everything") == {"a/file": b"y" * 512}


def test_a_synced_file_without_a_synced_name_may_be_gone(disk: Disk, tmp_path: Path) -> None:
    disk.open(OTHER, "O_CREAT")
    disk.write(OTHER, 0, b"new")
    disk.sync(OTHER)
    assert after(disk, tmp_path / "none", "nothing") == {"a/file": b""}
    disk.sync("/data/a")
    assert after(disk, tmp_path / "synced", "nothing") == {"a/file": b"", "a/other": b"new"}


def test_a_name_is_the_old_file_or_the_new_one(disk: Disk, tmp_path: Path) -> None:
    disk.write(FILE, 0, b"old")
    disk.sync(FILE)
    disk.open(OTHER, "O_CREAT")
    disk.write(OTHER, 0, b"new")
    disk.rename(OTHER, FILE)  # not synced before: the new name may hold nothing
    seen = {after(disk, tmp_path / str(seed), "something", seed)["a/file"] for seed in range(30)}
    assert seen == {b"old", b"new", b""}
    disk.sync(FILE)
    seen = {after(disk, tmp_path / f"{seed} synced", "something", seed)["a/file"] for seed in range(30)}
    assert seen == {b"old", b"new"}


def test_what_was_removed_may_be_there_again(disk: Disk, tmp_path: Path) -> None:
    disk.remove(FILE)
    assert after(disk, tmp_path / "none", "nothing") == {"a/file": b""}
    assert after(disk, tmp_path / "all", "everything") == {}

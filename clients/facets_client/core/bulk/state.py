"""How far a run over an input has come, kept in a small file so that it can go on after any interruption."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

__all__ = ["Place", "Saved", "StateError", "StateFile", "default_state_path"]

VERSION = 2


class StateError(ValueError):
    """The state file cannot be written."""


@dataclass(frozen=True, slots=True)
class Place:
    """Everything up to this line of this file is done: durable, or written to the rejected file.

    Attributes:
        line: Lines done, of the file.
        byte: Bytes done, in the uncompressed stream; 0 where rows are found by their number.
        num_records: Records done.
        num_rejected: Records rejected, among these.
        rejected_bytes: Length of the rejected file at this point.
        totals: What else was counted, by name.
        resume_token: The server's name for the stream, where there is one.
        file: Files done before it.
    """

    line: int = 0
    byte: int = 0
    num_records: int = 0
    num_rejected: int = 0
    rejected_bytes: int = 0
    totals: Mapping[str, int] = field(default_factory=dict)
    resume_token: str = ""
    file: int = 0

    @property
    def num_done(self) -> int:
        """Records that were taken."""
        return self.num_records - self.num_rejected


@dataclass(frozen=True, slots=True)
class Saved:
    """A place, and the identity of the input and settings it belongs to."""

    identity: Mapping[str, object]
    place: Place


class StateFile:
    """The file that holds a place; replaced as a whole, never half written.

    Args:
        path: Where it is, or will be.
        identity: Of this input with these settings; values of JSON.
    """

    def __init__(self, path: Path, identity: Mapping[str, object]) -> None:
        self.path = path
        self.identity = dict(identity)

    def load(self) -> Saved | None:
        """What was saved last; None when there is nothing, or nothing that can be trusted."""
        try:
            fields = json.loads(self.path.read_bytes())
            if fields["version"] != VERSION:
                return None
            return Saved(dict(fields["identity"]), Place(**fields["place"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None  # starting over is always safe: doing a record twice changes nothing

    def save(self, place: Place) -> None:
        """Replaces what was saved.

        Raises:
            StateError: When the file cannot be written.
        """
        text = json.dumps({"version": VERSION, "identity": self.identity, "place": asdict(place)}, indent=1)
        temporary = self.path.with_name(self.path.name + ".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(text)
            temporary.replace(self.path)
        except OSError as error:
            raise StateError(f"{self.path}: cannot be written: {error.strerror}") from error

    def remove(self) -> None:
        """Forgets: the run is complete."""
        self.path.unlink(missing_ok=True)


def default_state_path(environment: Mapping[str, str], command: str, *names: str) -> Path:
    """Where the state of a run is kept: one file for each server, input and whatever else has a name.

    Args:
        environment: The process's environment, for ``XDG_STATE_HOME``.
        command: What runs, e.g. ``index``.
        *names: The server, the absolute path of the input or ``-``, a collection.
    """
    home = environment.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    key = hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape"))
    return Path(home) / "facets" / command / f"{key.hexdigest()[:32]}.json"

"""How far a bulk load has come, kept in a small file so that it can go on after any interruption."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["IndexState", "InputIdentity", "StateError", "StateFile", "default_state_path"]

VERSION = 1


class StateError(ValueError):
    """The state file cannot be written."""


@dataclass(frozen=True, slots=True)
class InputIdentity:
    """What tells one input, bound for one collection, from another.

    Attributes:
        name: Absolute path, or ``-`` for standard input.
        size: Bytes of the file; None for a stream.
        head_sha256: Digest of its first bytes.
        fields: Names of the id and text fields.
        collection: Name of the collection.
        create_time: When the collection was made: a new one of the same name is empty.
    """

    name: str
    size: int | None
    head_sha256: str
    fields: tuple[str, str]
    collection: str
    create_time: str


@dataclass(frozen=True, slots=True)
class IndexState:
    """Everything up to ``byte`` is done: stored durably, or written to the rejected file.

    Attributes:
        identity: The input this belongs to.
        line: Lines done.
        byte: Bytes done, in the uncompressed stream.
        num_records: Records done.
        num_indexed: Documents stored.
        num_rejected: Records rejected.
        rejected_bytes: Length of the rejected file at this point.
        resume_token: The server's name for the stream.
    """

    identity: InputIdentity
    line: int = 0
    byte: int = 0
    num_records: int = 0
    num_indexed: int = 0
    num_rejected: int = 0
    rejected_bytes: int = 0
    resume_token: str = ""


def default_state_path(environment: Mapping[str, str], *, target: str, collection: str, name: str) -> Path:
    """Where the state of a load is kept: one file for each input, collection and server.

    Args:
        environment: The process's environment, for ``XDG_STATE_HOME``.
        target: The server.
        collection: Name of the collection.
        name: Absolute path of the input, or ``-``.
    """
    home = environment.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    key = hashlib.sha256("\0".join((target, collection, name)).encode("utf-8", "surrogateescape"))
    return Path(home) / "facets" / "index" / f"{key.hexdigest()[:32]}.json"


class StateFile:
    """The file that holds an ``IndexState``; replaced as a whole, never half written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> IndexState | None:
        """What was saved last; None when there is nothing, or nothing that can be trusted."""
        try:
            fields = json.loads(self.path.read_bytes())
            if fields.pop("version") != VERSION:
                return None
            identity = fields.pop("identity")
            identity["fields"] = tuple(identity["fields"])
            return IndexState(identity=InputIdentity(**identity), **fields)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None  # starting over is always safe: storing a document twice changes nothing

    def save(self, state: IndexState) -> None:
        """Replaces what was saved.

        Raises:
            StateError: When the file cannot be written.
        """
        text = json.dumps({"version": VERSION, **asdict(state)}, indent=1)
        temporary = self.path.with_name(self.path.name + ".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(text)
            temporary.replace(self.path)
        except OSError as error:
            raise StateError(f"{self.path}: cannot be written: {error.strerror}") from error

    def remove(self) -> None:
        """Forgets: the load is complete."""
        self.path.unlink(missing_ok=True)

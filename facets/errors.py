"""Exceptions of Facets. Every message says what was wrong, what was expected, and what was received."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

_MAX_REPORTED = 8  # problems of one request

ErrorPath = tuple[str | int, ...]
"""Place in the arguments of a call: names of arguments and fields, and indexes in sequences."""


def path_text(path: Sequence[str | int]) -> str:
    """A path as text."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


class FacetsError(Exception):
    """Base of every error that Facets raises on purpose."""


class InvalidInputError(FacetsError, ValueError):
    """The caller's input breaks a documented rule. Permanent: change the input.

    ``rule``: the predicate of a sentence whose subject is the path (``must be >= 1, got 0``); a whole sentence without
    a path. ``path``: place in the arguments of the call; empty if the error concerns several.

    Example:
        >>> print(InvalidInputError("has no words, expected at least one", path=("papers", 3, "title")))
        papers[3].title has no words, expected at least one
    """

    def __init__(self, rule: str, *, path: str | Sequence[str | int] = ()) -> None:
        self.rule = rule
        self.path: ErrorPath = (path,) if isinstance(path, str) else tuple(path)
        super().__init__(f"{self.field} {rule}" if self.path else rule)

    @property
    def field(self) -> str:
        """The path as text, such as ``papers[3].title``; empty without a path."""
        return path_text(self.path)

    def at(self, path: str | Sequence[str | int]) -> "InvalidInputError":
        """The same error at another path."""
        return InvalidInputError(self.rule, path=path)


class InvalidFieldsError(InvalidInputError):
    """Several fields of one request break their rules; ``errors`` has one error per field, in field order."""

    def __init__(self, errors: Sequence[InvalidInputError]) -> None:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(errors[0].rule + more, path=errors[0].path)
        self.errors = tuple(errors)


def raise_first(problems: Iterable[InvalidInputError]) -> None:
    """Raises the first few problems, if any, as one InvalidFieldsError."""
    errors = list(islice(problems, _MAX_REPORTED))
    if errors:
        raise InvalidFieldsError(errors)


class ConfigError(FacetsError, ValueError):
    """A setting is invalid. Permanent: change the configuration and start again."""


class DeviceError(InvalidInputError, ConfigError):
    """There is no device of that name. Choose another one."""


class NotFoundError(FacetsError, LookupError):
    """A model, collection or document of that name does not exist."""

    def __init__(self, message: str, *, resource_type: str = "", resource_name: str = "") -> None:
        super().__init__(message)
        self.resource_type = resource_type  # `model`, `collection` or `document`
        self.resource_name = resource_name  # the name that was asked for


class ConflictError(FacetsError):
    """The object exists already, or its state does not allow the call. Nothing was changed."""


class ModelMismatchError(FacetsError):
    """A collection was made with another revision of its model; its embeddings are not comparable to new ones."""


class CheckpointError(FacetsError):
    """A model folder is incomplete or damaged. Install or copy it again."""


class IndexFormatError(FacetsError):
    """A vector index snapshot is damaged or of an unknown version. It is rebuilt from the store."""


class StorageError(FacetsError):
    """A file or store could not be read or written; subclasses name the reason.

    Acknowledged writes are kept. The failed call stored nothing.
    """


class IndexAwayError(StorageError):
    """The remote index of a collection does not answer. Transient; lexical search still works."""


class DiskFullError(StorageError):
    """The disk, its quota or the limit of the store is full. Free space, then try again."""


class DamagedError(StorageError):
    """Stored data is damaged. Restore it from a backup, or store the named document again."""


class DamagedDocumentsError(DamagedError):
    """Some documents, row -> id, are damaged on disk. Store them again, or delete them."""

    def __init__(self, what: str, damaged: Mapping[int, str]) -> None:
        self.damaged = dict(damaged)
        first, *more = self.damaged.values()
        others = f" (and {len(more)} more)" if more else ""
        super().__init__(f"{what} of document {first!r}{others} damaged on disk: store it again, or delete it")


class StoreClosedError(StorageError):
    """The store was closed, for example because the server is stopping. Transient for clients."""


class StoreAwayError(StorageError):
    """The database of the store does not answer. Transient: try again; no write is half done."""


class StoreGoneError(StorageError):
    """Open files were deleted, moved or replaced. Stop, restore them, and start again."""


class WritesLostError(StorageError):
    """Acknowledged writes are lost: a standby without them was promoted, or a backup restored. Write them again."""


class StoreInUseError(StorageError):
    """Another process uses the store. Stop that process or choose another directory."""


class StoreFormatError(StorageError):
    """The store is of another release, or is none of Facets. Use the release that wrote it."""


class NotAFolderError(InvalidInputError, StorageError):
    """The path of a data directory leads to or through a file. Choose another path."""


class NotReadyError(FacetsError):
    """The service is starting, stopping or not up to date. Transient: retry later."""


class OverloadedError(FacetsError):
    """The queue is full. Transient: retry after ``retry_after_s``; the request had no effect."""

    def __init__(self, message: str, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s

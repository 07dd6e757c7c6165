"""Exceptions of Facets.

Standard library only, so that any layer can import this module. Every message says
what was wrong, what was expected and what was got.
"""

from collections.abc import Mapping, Sequence

ErrorPath = tuple[str | int, ...]
"""Where something stands in what a caller gave: names of arguments and fields, and places in sequences."""


def path_text(path: Sequence[str | int]) -> str:
    """A path as people read it.

    Example:
        >>> path_text(("papers", 3, "title"))
        'papers[3].title'
    """
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


class FacetsError(Exception):
    """Base of every error that Facets raises on purpose."""


class InvalidInputError(FacetsError, ValueError):
    """The caller's input breaks a documented rule. Permanent: change the input.

    Whoever passes the input on under other names says so with ``at``; nobody edits the text.

    Attributes:
        rule: The rule and what was got instead, as the predicate of a sentence whose subject is the path
            (``must be >= 1, got 0``); a whole sentence when there is no path.
        path: Where in the arguments of the function that was called, e.g. ``("papers", 3, "title")``; empty when
            the error is about no single one.

    Example:
        >>> print(InvalidInputError("has no words, expected at least one", path=("papers", 3, "title")))
        papers[3].title has no words, expected at least one
    """

    def __init__(self, rule: str, *, path: str | Sequence[str | int] = ()) -> None:
        """Words the error.

        Args:
            rule: See the attribute.
            path: See the attribute; one name stands for itself.
        """
        self.rule = rule
        self.path: ErrorPath = (path,) if isinstance(path, str) else tuple(path)
        super().__init__(f"{self.field} {rule}" if self.path else rule)

    @property
    def field(self) -> str:
        """The path as text, ``papers[3].title``; empty when there is none."""
        return path_text(self.path)

    def at(self, path: str | Sequence[str | int]) -> "InvalidInputError":
        """The same rule, broken at another path."""
        return InvalidInputError(self.rule, path=path)


class ConfigError(FacetsError, ValueError):
    """A setting breaks its rule. Permanent: change the configuration and start again."""


class NotFoundError(FacetsError, LookupError):
    """A model, collection or document of that name does not exist.

    Attributes:
        resource_type: ``model``, ``collection`` or ``document``.
        resource_name: The name that was asked for.
    """

    def __init__(self, message: str, *, resource_type: str = "", resource_name: str = "") -> None:
        super().__init__(message)
        self.resource_type = resource_type
        self.resource_name = resource_name


class ConflictError(FacetsError):
    """The thing exists already or is in a state that forbids the call; nothing was changed."""


class CheckpointError(FacetsError):
    """A model folder is missing, incomplete or damaged. Get the folder again."""


class IndexFormatError(FacetsError):
    """A vector index snapshot is damaged or of an unknown version. It is rebuilt from the store."""


class StorageError(FacetsError):
    """A file or store could not be read or written; the subclasses say why where the reason is known.

    What was acknowledged before is kept; the failed call stored nothing.
    """


class IndexAwayError(StorageError):
    """The index of a collection is elsewhere and does not answer. Transient; searches by words go on."""


class DiskFullError(StorageError):
    """The disk, its quota or the store's own limit is full. Make room, then try again."""


class DamagedError(StorageError):
    """What was read is not what was written. Restore it from a backup, or store the named document again."""


class DamagedDocumentsError(DamagedError):
    """Documents are damaged on disk, all others are not. Store these again, or delete them.

    Attributes:
        damaged: Row in the store -> id of the document.
    """

    def __init__(self, what: str, damaged: Mapping[int, str]) -> None:
        self.damaged = dict(damaged)
        first, *more = self.damaged.values()
        others = f" (and {len(more)} more)" if more else ""
        super().__init__(f"{what} of document {first!r}{others} damaged on disk: store it again, or delete it")


class StoreClosedError(StorageError):
    """The store was closed before the call, as when the server stops. Transient for callers of a server."""


class StoreAwayError(StorageError):
    """The database that holds the store does not answer. Transient: try again; nothing of it is half done."""


class StoreGoneError(StorageError):
    """The files were deleted, moved or replaced while they were open. Stop, put them back, and start again."""


class WritesLostError(StorageError):
    """Acknowledged writes are gone: a standby without them was promoted, or a backup restored. Write them again."""


class StoreInUseError(StorageError):
    """Another process has the store open. Stop that process or choose another directory."""


class NotReadyError(FacetsError):
    """The service is starting, draining or has not caught up. Transient: retry later."""


class OverloadedError(FacetsError):
    """The queue is full. Transient: retry after ``retry_after_s``; nothing of the request was done."""

    def __init__(self, message: str, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s

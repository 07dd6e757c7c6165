"""The library's names of arguments as the names of our requests' fields.

The library words an error with the path of its own arguments. A request has other names for the same things, and a
long request is worked on in parts. What is called what is said once for each rpc, as data:

    FIELDS = {"premises": ("pairs", ITEM, "premise")}

    with in_request(FIELDS, start=256):   # premises[3] of the library -> pairs[259].premise
        ...
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum, auto

from facets.errors import ErrorPath, InvalidInputError
from facets_server.runtime.errors import InvalidFieldsError


class _Item(Enum):
    ITEM = auto()


ITEM = _Item.ITEM
"""In the path of a field: the place of the item that the library was given."""

FieldNames = Mapping[str, tuple[str | int | _Item, ...]]
"""Argument of the library -> path of the field; an argument that is not named keeps its name."""


@contextmanager
def in_request(fields: FieldNames, *, start: int = 0) -> Iterator[None]:
    """Words errors about arguments of the library as errors about fields of the request.

    Args:
        fields: What is called what.
        start: Place in the request of the first item that the library was given.
    """
    try:
        yield
    except InvalidFieldsError as error:
        raise InvalidFieldsError([one.at(_moved(one.path, fields, start)) for one in error.errors]) from error
    except InvalidInputError as error:
        raise error.at(_moved(error.path, fields, start)) from error


def _moved(path: ErrorPath, fields: FieldNames, start: int) -> ErrorPath:
    if not path or path[0] not in fields:
        return path
    moved: list[str | int] = []
    rest = list(path[1:])
    for part in fields[str(path[0])]:
        if part is not ITEM:
            moved.append(part)
        elif rest and isinstance(rest[0], int):
            moved.append(rest[0] + start)
            del rest[0]
        else:  # about all the items
            break
    return (*moved, *rest)

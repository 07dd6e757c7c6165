"""What a reader of one kind of file is given besides the file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from facets_client.core.records import MAX_ROW_BYTES, Rejection, Row

__all__ = ["ReadOptions", "Rows"]

Rows: TypeAlias = Iterator[Row | Rejection]


def _nobody(sentence: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadOptions:
    """How files are read.

    Attributes:
        encoding: Of texts, as Python names it; empty: found out for each file.
        delimiter: Between the values of a row; empty: found out for each file.
        max_row_bytes: Longer rows are rejected without being held in memory.
        tell: Called with what a person should know about a file.
    """

    encoding: str = ""
    delimiter: str = ""
    max_row_bytes: int = MAX_ROW_BYTES
    tell: Callable[[str], None] = _nobody

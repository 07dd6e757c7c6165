"""Results as rows: dictionaries, a DataFrame, a table."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, get_args, overload

import numpy as np
from numpy.typing import NDArray
from rich.console import RenderableType
from rich.rule import Rule

from facets_client.core.drawing import Drawn, line, more, parts_of, table_of
from facets_client.core.extras import require_extra

if TYPE_CHECKING:
    import pandas

EntryT = TypeVar("EntryT")
ScoreT = TypeVar("ScoreT")
FacetsArray: TypeAlias = NDArray[np.floating]  # float32, or float16 when asked for

# Columns of a table for people, besides those of payloads and limits; a DataFrame has every column.
_SHOWN = frozenset(
    "input index id name title model task space pattern premise hypothesis head tail relation label words text answer "
    "score probability confidence likelihood novelty reason num_documents num_damaged "
    "language num_facets dim max_tokens is_default index_kind example examples num_pairs threshold "
    "evidence.nearest_words evidence.nearest_papers accepted similar_patterns known_pairs assertion "
    "pattern_score.assertion_cue no_relation_probability recall missed_ids".split()
)
_SHOWN_PARTS = ("payload.", "limits.", "encoder_settings.", "vectors.", "revision")


class OfPair(Generic[ScoreT]):
    """Base of a pair of entities with the scores of relations for the pattern between them."""

    __slots__ = ()
    pattern_score: Any

    @property
    def relations(self) -> tuple[ScoreT, ...]:
        """The accepted relations, most probable first; empty: no relation."""
        return tuple(score for score in self.pattern_score.relations if score.accepted)


class OfSentences(Drawn):
    """Base of a summary; ``str()`` is its text."""

    __slots__ = ()
    sentences: tuple[Any, ...]

    @property
    def text(self) -> str:
        """The sentences joined by one space."""
        return " ".join(sentence.text for sentence in self.sentences)

    def __str__(self) -> str:
        return self.text


class ArrayOfFacets:
    """Base of facet embeddings, which ``np.asarray()`` takes as their array."""

    __slots__ = ()
    facet_embeddings: FacetsArray

    def __array__(self, dtype: np.dtype[np.generic] | None = None, copy: bool | None = None) -> FacetsArray:
        return np.array(self.facet_embeddings, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.facet_embeddings)

    def __getitem__(self, index: int) -> FacetsArray:
        return self.facet_embeddings[index]


class Record(Drawn):
    """Base of a record that is shown as a table of its fields."""

    __slots__ = ()


@parts_of.register
def _parts_of_record(record: Record, max_rows: int) -> Iterator[RenderableType]:
    row = columns_of(record)
    yield table_of(("field", "value"), [(name, row[name]) for name in _shown_columns([row], _SHOWN_PARTS)])


class Rows(Drawn):
    """Base of a result with entries that are rows.

    An entry that is itself a list, such as the hits of one query, gives a row for each of its items. Rows hold numbers,
    texts and times: a part of a text is its text, or if it is a row of a table, its cells with the names of their
    columns; nearest words, differences and papers are joined, arrays are left out.
    """

    __slots__ = ()

    @property
    def _entries(self) -> Sequence[Any]:
        return self  # type: ignore[return-value]  # a list; `Listed` overrides it

    def to_dicts(self) -> list[dict[str, object]]:
        """The rows. Of several lists, ``input`` is the position of the query, text or paper, from 0."""
        return [row for number, entry in enumerate(self._entries) for row in _rows_of(entry, {"input": number})]

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows as a DataFrame; ImportError if pandas is not installed."""
        require_extra("pandas", "pandas")
        import pandas

        return pandas.DataFrame(self.to_dicts())


@parts_of.register
def _parts_of_rows(rows: Rows, max_rows: int) -> Iterator[RenderableType]:
    is_drawn = any(isinstance(entry, Drawn) and not isinstance(entry, Record | Rows) for entry in rows._entries)
    items = rows._entries if is_drawn else rows.to_dicts()
    shown = items[:max_rows]
    if not shown:
        yield line("nothing")
    elif is_drawn:
        for place, entry in enumerate(shown):
            yield from (Rule(style="dim"), entry) if place else (entry,)
    else:
        columns = _shown_columns(shown, _SHOWN_PARTS[:1])
        if len(rows._entries) == 1 and "input" in columns:
            columns.remove("input")
        heads = [re.sub(r"^(evidence\.|pattern_score\.|num_)", "", name).replace("_", " ") for name in columns]
        yield table_of(heads, [[row.get(name) for name in columns] for row in shown])
    yield from more(len(items) - max_rows)


class Results(Rows, list[EntryT]):
    """A list whose entries are rows."""

    __slots__ = ()


class Listed(Rows, Sequence[EntryT]):
    """Base of a reply that is also the sequence in its first field."""

    __slots__ = ()

    @property
    def _entries(self) -> Sequence[EntryT]:
        entries: tuple[EntryT, ...] = getattr(self, fields(self)[0].name)  # type: ignore[arg-type]
        return entries

    @overload
    def __getitem__(self, index: int) -> EntryT: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[EntryT]: ...
    def __getitem__(self, index: int | slice) -> EntryT | Sequence[EntryT]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)


def columns_of(record: object) -> dict[str, object]:
    """The fields of a record as plain values."""
    row: dict[str, object] = {}
    for field in fields(record):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        if getattr(value, "cells", ()):
            cells = zip(value.columns, value.cells, strict=True)
            value = "; ".join(f"{column}: {cell}" if column else cell for column, cell in cells if cell)
        elif hasattr(value, "text"):
            value = value.text
        elif is_dataclass(value):
            value = columns_of(value)
        elif isinstance(value, tuple | list):
            kind = get_args(field.type)[0]
            slots = getattr(kind, "__slots__", ())
            name = next((name for name in ("word", "title", "pattern") if name in slots), "")
            if kind == tuple[str, str]:
                value = map(" - ".join, value)
            elif "second" in slots:
                value = [f"{item.first} / {item.second}" for item in value]
            elif kind not in (str, int, float) and not name:
                continue  # a list of records
            value = ", ".join(str(getattr(item, name) if name else item) for item in value)
        if isinstance(value, Mapping):
            row |= {f"{field.name}.{name}": inner for name, inner in value.items()}
        elif not isinstance(value, np.ndarray):
            row[field.name] = value
    return row


def _shown_columns(rows: Iterable[Mapping[str, object]], parts: tuple[str, ...]) -> list[str]:
    filled = dict.fromkeys(name for row in rows for name, value in row.items() if value not in (None, ""))
    return [name for name in filled if name in _SHOWN or name.startswith(parts)]


def _rows_of(entry: Any, place: dict[str, object]) -> Iterator[dict[str, object]]:
    """The rows of an entry; ``place`` is added to those of a list."""
    if hasattr(entry, "relations"):  # of a pattern or a pair
        items, place = entry.relations, columns_of(entry)
        if not items:
            yield place
    elif isinstance(entry, tuple | Rows):
        items = entry if isinstance(entry, tuple) else tuple(entry._entries)
    else:
        yield columns_of(entry)
        return
    for item in items:
        for row in _rows_of(item, {}):
            yield {**place, **row}

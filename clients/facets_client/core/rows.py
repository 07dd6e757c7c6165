"""Results as rows: dictionaries, a DataFrame, a table in a notebook."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args, overload

import numpy as np

from facets_client.core.extras import require_extra
from facets_client.core.html import MAX_ROWS, STYLE, more_html, table_html, text_of
from facets_client.core.values import OfPair, OfPattern

if TYPE_CHECKING:
    import pandas

EntryT = TypeVar("EntryT")
# Columns of a table in a notebook, and all fields of payloads; a DataFrame has every column.
_SHOWN = frozenset(
    "input index id name title model task pattern premise hypothesis head tail relation label words text answer score "
    "probability confidence likelihood novelty num_documents language reason dim evidence.nearest_words".split()
)


class Shown:
    """Base of what a notebook shows as HTML."""

    __slots__ = ()

    def _html(self) -> str:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return f'<div class="facets-out"><style>{STYLE}</style>{self._html()}</div>'


class Record(Shown):
    """Base of a record that is shown as a table of its fields."""

    __slots__ = ()

    def _html(self) -> str:
        row = columns_of(self)
        return table_html((), [(name, row[name]) for name in _shown_columns([row])], kind="fields")


class Rows(Shown):
    """Base of a result with entries that are rows.

    An entry that is itself a list, such as the hits of one query, gives a row for each of its items. Rows hold numbers,
    texts and times: a part of a text is its text, nearest words are joined, arrays are left out.
    """

    __slots__ = ()

    @property
    def _entries(self) -> Sequence[Any]:
        raise NotImplementedError

    def to_dicts(self) -> list[dict[str, object]]:
        """The rows. Of several lists, ``input`` is the position of the query, text or paper, from 0."""
        return [row for number, entry in enumerate(self._entries) for row in _rows_of(entry, {"input": number})]

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows as a DataFrame; ImportError if pandas is not installed."""
        require_extra("pandas", "pandas")
        import pandas

        return pandas.DataFrame(self.to_dicts())

    def __repr__(self) -> str:
        """A line for each row, unless the entries have a text of their own."""
        shown, num_more = self._first()
        if self._is_drawn:
            lines = list(map(str, shown))
        else:
            lines = [", ".join(f"{name}: {text_of(row[name])}" for name in _shown_columns([row])) for row in shown]
        return "\n".join([*lines, f"and {num_more:,} more"] if num_more else lines) or "nothing"

    def _html(self) -> str:
        shown, num_more = self._first()
        if self._is_drawn:
            return "<hr/>".join(entry._html() for entry in shown) + more_html(num_more)
        columns = _shown_columns(shown)
        table = table_html(columns, [[row.get(name) for name in columns] for row in shown])
        return table + more_html(num_more) if shown else "<p>nothing</p>"

    @property
    def _is_drawn(self) -> bool:
        return any(isinstance(entry, Shown) and not isinstance(entry, Record | Rows) for entry in self._entries)

    def _first(self) -> tuple[Sequence[Any], int]:
        """The entries or rows that are shown, and the number of those that are not."""
        items = self._entries if self._is_drawn else self.to_dicts()
        return items[:MAX_ROWS], max(0, len(items) - MAX_ROWS)


class Results(Rows, list[EntryT]):
    """A list whose entries are rows."""

    __slots__ = ()

    @property
    def _entries(self) -> Sequence[EntryT]:
        return self


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
        if hasattr(value, "text"):
            value = value.text
        elif is_dataclass(value):
            value = columns_of(value)
        elif isinstance(value, tuple | list):
            kind = get_args(field.type)[0]
            if kind not in (str, int, float) and "word" not in getattr(kind, "__slots__", ()):
                continue  # a list of records
            value = ", ".join(str(getattr(item, "word", item)) for item in value)
        if isinstance(value, Mapping):
            row |= {f"{field.name}.{name}": inner for name, inner in value.items()}
        elif not isinstance(value, np.ndarray):
            row[field.name] = value
    return row


def _shown_columns(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """The columns for readers that have a value."""
    return [
        name
        for name in dict.fromkeys(name for row in rows for name in row)
        if (name in _SHOWN or name.startswith("payload.")) and any(row.get(name) not in (None, "") for row in rows)
    ]


def _rows_of(entry: Any, place: dict[str, object]) -> Iterator[dict[str, object]]:
    """The rows of an entry; ``place`` is added to those of a list."""
    if isinstance(entry, OfPair | OfPattern):
        items, place = entry.relations, columns_of(entry)
    elif isinstance(entry, tuple | Rows):
        items = entry if isinstance(entry, tuple) else tuple(entry._entries)
    else:
        yield columns_of(entry)
        return
    for item in items:
        for row in _rows_of(item, {}):
            yield {**place, **row}

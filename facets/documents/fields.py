"""Fields of the payload that are searched with the text: its title, its subject, whatever a collection names.

Words of a field count as often as its weight says (simple BM25F: one saturation for all fields of a document), so the
lexical index needs to know no fields. A model reads the fields before the text, as a person does: their facets come
along, and those of the text know the title. Spans are kept as if the fields stood behind the text, so that those within
the text are what they would be without fields.

Shape letters: K facets of a document, P parts: the text and its fields.

References:
    Robertson, Zaragoza and Taylor 2004, "Simple BM25 extension to multiple weighted fields".
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.documents.filters import is_path
from facets.documents.types import DocumentPart, JsonValue, Span
from facets.errors import ErrorPath, InvalidInputError

DEFAULT_SEARCH_FIELDS: Mapping[str, float] = dict.fromkeys(("title", "subject", "headline", "heading", "name"), 2.0)
"""What is searched unless a collection says otherwise; the weight was chosen by words alone, see docs/use/search.md."""
MAX_SEARCH_FIELDS = 32
MAX_FIELD_WEIGHT = 100.0
_GAP = "\n\n"
_HEADINGS = "headings"
_LONGEST_CONTEXT = 300  # characters of a field that every part of a document has


@dataclass(frozen=True, slots=True)
class FieldText:
    """What one field of a document says."""

    name: str  # of the field: the path of its value in the payload
    text: str  # its value, the items of a list one a line; never blank
    weight: float  # how often its words count


@dataclass(frozen=True, slots=True)
class SearchedText:
    r"""A text and the fields that are searched with it; of a document of parts the text of one.

    Example:
        >>> said = searched_text("They make honey.", {"title": "Bees"}, {"title": 2.0})
        >>> said.read, said.span(17, 21).field
        ('Bees\n\nThey make honey.', 'title')
    """

    text: str  # of the document or of the part; may be empty
    # Those that say something, and the headings that the part stands under as field `headings`.
    fields: tuple[FieldText, ...] = ()
    start: int = 0  # of the part in the text of the document
    num_beside: int = 0  # characters of the text of the document that are not the part's

    @property
    def read(self) -> str:
        """What a model reads: the fields, then the text, with blank lines between them."""
        if not self.fields:
            return self.text
        return _GAP.join(part for part in (*(one.text for one in self.fields), self.text) if part.strip())

    @property
    def texts(self) -> tuple[str, ...]:
        """The text, and what each field says."""
        return (self.text, *(one.text for one in self.fields))

    @property
    def num_chars(self) -> int:
        """Characters of text and fields with what is between them: no span ends behind."""
        return int(self._bounds()[-1, 1])

    def kept_spans(self, spans_K2: NDArray[np.integer]) -> NDArray[np.int64]:
        """Spans as they are kept, ``[K, 2]``, of spans in what the model has read.

        One over the border of two parts lies in the one of which it has more, in the text where these are equal.
        """
        spans = spans_K2.astype(np.int64)
        if not self.fields:
            return spans
        as_read = [*range(1, len(self.fields) + 1), *([0] if self.text.strip() else [])]
        kept_P2 = self._bounds()[as_read]
        lengths_P = kept_P2[:, 1] - kept_P2[:, 0]
        starts_P = np.concatenate([[0], np.cumsum(lengths_P + len(_GAP))[:-1]])
        low_KP = np.maximum(spans[:, :1], starts_P)
        high_KP = np.minimum(spans[:, 1:], starts_P + lengths_P)
        part_K = len(as_read) - 1 - (high_KP - low_KP)[:, ::-1].argmax(axis=1)  # the last of equal ones: the text
        low_K, high_K = (edge_KP[np.arange(len(spans)), part_K] for edge_KP in (low_KP, high_KP))
        moved_K = kept_P2[part_K, 0] - starts_P[part_K]
        return np.where((high_K > low_K)[:, None], np.stack([low_K + moved_K, high_K + moved_K], axis=1), 0)

    def in_document(self, spans_K2: NDArray[np.integer]) -> NDArray[np.int64]:
        """Kept spans as spans of the document, where fields stand behind its whole text; empty ones stay empty."""
        moved_K1 = np.where(spans_K2[:, 1:] > len(self.text), self.num_beside, self.start)
        return np.where(spans_K2[:, 1:] > spans_K2[:, :1], spans_K2.astype(np.int64) + moved_K1, 0)

    def in_part(self, spans_K2: NDArray[np.integer]) -> NDArray[np.int64]:
        """The reverse of :meth:`in_document`."""
        moved_K1 = np.where(spans_K2[:, 1:] > len(self.text) + self.num_beside, self.num_beside, self.start)
        return np.where(spans_K2[:, 1:] > spans_K2[:, :1], spans_K2.astype(np.int64) - moved_K1, 0)

    def in_text(self, spans_K2: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which of some kept spans lie in the text, ``[K]``; empty ones do not."""
        inside: NDArray[np.bool_] = (spans_K2[:, 1] > spans_K2[:, 0]) & (spans_K2[:, 1] <= len(self.text))
        return inside

    def span(self, start: int, end: int) -> Span | None:
        """What stands at a kept span; None where nothing does."""
        if end <= start:
            return None
        part = int(np.searchsorted(self._bounds()[:, 0], start, side="right")) - 1
        first = int(self._bounds()[part, 0])
        if not part:
            return Span(start=start, end=end, text=self.text[start:end])
        field = self.fields[part - 1]
        start, end = start - first, end - first
        return Span(start=start, end=end, text=field.text[start:end], field=field.name)

    def _bounds(self) -> NDArray[np.int64]:
        """Where the text and each field begin and end as spans are kept, ``[P, 2]``."""
        lengths = np.array([len(self.text), *(len(one.text) for one in self.fields)], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths + 1)[:-1]])
        return np.stack([starts, starts + lengths], axis=1)


def check_search_fields(fields: Mapping[str, float], *, path: ErrorPath = ("search_fields",)) -> dict[str, float]:
    """Fields and weights as a collection keeps them.

    Raises:
        InvalidInputError: More than ``MAX_SEARCH_FIELDS``, a name that is no path of keys joined by dots, a weight that
            is not above 0 and at most ``MAX_FIELD_WEIGHT``.
    """
    if len(fields) > MAX_SEARCH_FIELDS:
        raise InvalidInputError(f"has {len(fields)} items, the limit is {MAX_SEARCH_FIELDS}", path=path)
    for place, (name, weight) in enumerate(fields.items()):
        if not is_path(name):
            rule = f"must be keys joined by dots, without quotes or backslashes, got {name!r}"
            raise InvalidInputError(rule, path=(*path, place, "name"))
        if not (math.isfinite(weight) and 0 < weight <= MAX_FIELD_WEIGHT):
            rule = f"must be above 0 and at most {MAX_FIELD_WEIGHT:g}, got {weight:g}"
            raise InvalidInputError(rule, path=(*path, place, "weight"))
    return {name: float(weight) for name, weight in fields.items()}


def searched_text(
    text: str,
    payload: Mapping[str, JsonValue],
    fields: Mapping[str, float],
    *,
    part: DocumentPart | None = None,
    num_beside: int = 0,
) -> SearchedText:
    r"""A text with what its document says in the fields that are searched, in the order of the fields.

    Strings count as they are, numbers as they are written, the items of a list one a line; null, truth values, objects
    and lists in lists say nothing. Dots reach into objects, upper and lower case are the same where no key is equal.
    Every part of a document has its fields, as their context, but for long ones, which only the first part has; and the
    headings that it stands under.

    ``part``: which part; None: the document is one.

    Example:
        >>> said = searched_text("", {"Title": "On bees", "tags": ["honey", 7, None]}, {"title": 2.0, "tags": 1.0})
        >>> [(one.name, one.text) for one in said.fields]
        [('Title', 'On bees'), ('tags', 'honey\n7')]
    """
    if part is None and not (payload and fields):
        return SearchedText(text)
    found = ((*_lookup(payload, name), weight) for name, weight in fields.items())
    texts = ((path, "\n".join(_texts(value)), weight) for path, value, weight in found)
    said = [FieldText(path, value, weight) for path, value, weight in texts if value]
    if part is None:
        return SearchedText(text, tuple(said))
    if part.start:
        said = [one for one in said if len(one.text) <= _LONGEST_CONTEXT]
    above = "\n".join(one for one in part.headings if one.strip() and one not in text)
    if above:
        said.append(FieldText(_HEADINGS, above, 1.0))
    return SearchedText(text, tuple(said), part.start, num_beside)


def searched_parts(
    text: str, payload: Mapping[str, JsonValue], fields: Mapping[str, float], *, parts: Sequence[DocumentPart] = ()
) -> tuple[SearchedText, ...]:
    """What each part of a document says in its text and in the fields that are searched; without any it is one."""
    if len(parts) < 2:
        return (searched_text(text, payload, fields),)
    return tuple(
        searched_text(
            text[part.start : part.end], payload, fields, part=part, num_beside=len(text) - (part.end - part.start)
        )
        for part in parts
    )


def _lookup(payload: Mapping[str, JsonValue], name: str) -> tuple[str, object]:
    """The path of a field as the payload has it, and the value there."""
    value: object = payload
    keys = []
    for key in name.split("."):
        if not isinstance(value, Mapping):
            return name, None
        if key not in value:
            wanted = key.casefold()
            key = next((other for other in value if other.casefold() == wanted), key)
        value = value.get(key)
        keys.append(key)
    return ".".join(keys), value


def _texts(value: object) -> Iterator[str]:
    items: Sequence[object] = value if isinstance(value, (list, tuple)) else [value]
    for item in items:
        if isinstance(item, str) and item.strip():
            yield item
        elif isinstance(item, (int, float)) and not isinstance(item, bool):
            yield f"{item:.15g}" if isinstance(item, float) else str(item)

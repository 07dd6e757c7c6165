"""The names of a document: its id and file name, short searched fields such as the title, and headings of its text.

The store keeps them among the terms of a document, with count 0, so that a query finds what it names.
"""

import re
import unicodedata

from facets.documents.fields import SearchedText
from facets.language.reading import read

_MAX_CHARS = 200  # a longer text is no name
_MAX_NAMES = 8  # of a query
_FILE = re.compile(r"\.(?:txt|md|rst|html?|pdf|docx|csv|tsv|jsonl?)$", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,3})*[.):]?\s+")  # before the words of a heading
_IDENTIFIER = re.compile(r"(?=.*[^\W\d_])(?:.*\d|.+[._/:#].)")  # letters with digits, or parts: os.path
_AROUND = " \"'`\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb()[]<>?!.,:;"


def names_of(id: str, searched: SearchedText) -> set[str]:
    """The names of a part of a document; id and fields name the first part only."""
    texts = [searched.text[start:end] for start, end in read(searched.text).headings.tolist()]
    if not searched.start:
        file = id.replace("\\", "/").rpartition("/")[2]
        texts += [id, file, _FILE.sub("", file)]
        texts += [line for field in searched.fields for line in field.text.splitlines()]
    names = set(map(_name_of, texts))
    return (names | {_NUMBER.sub("", name, count=1) for name in names}) - {""}


def names_in(query: str) -> list[str]:
    """What a query may name: all of it, and the identifiers in it; nothing if it is too long.

    Example:
        >>> names_in('Where is "INV-2031" in  2026?')
        ['where is "inv-2031" in 2026', 'inv-2031']
    """
    if len(query) > _MAX_CHARS:
        return []
    identifiers = filter(_IDENTIFIER.match, map(_name_of, query.split()))
    return [name for name in dict.fromkeys([_name_of(query), *identifiers]) if name][:_MAX_NAMES]


def name_term(name: str) -> str:
    """The term that stands for a name; no other term has its first character."""
    return f"\0{name}"


def _name_of(text: str) -> str:
    """A text as names are compared: without case, and without quotes and marks around it; empty if it is too long."""
    folded = unicodedata.normalize("NFKC", text).casefold() if len(text) <= _MAX_CHARS else ""
    return " ".join(folded.split()).strip(_AROUND)

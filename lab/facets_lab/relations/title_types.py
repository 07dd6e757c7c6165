"""Entity types of the titles of an encyclopedia, from how its articles begin: ``Ottawa is the capital of``.

The noun after the copula of the first sentence decides (``title_nouns.txt``), then the title's parentheses (``Mercury
(planet)``), then the end of the title (``University of Oslo``).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from facets.relations.entities import EntityType
from facets_lab.evaluation.files import read_table
from facets_lab.relations.entity_pairs import MONTH, bare_name

_COPULA = re.compile(r"\b(?:is|was|are|were|refers to|is considered|became)\s+(?:(?:an?|the|one of the|any)\s+)?")
_EMPTY = re.compile(
    r"^(?:(?:[\w-]+ )?(?:type|kind|form|name|member|genus|species|series|family|class|group|variety|style|set|pair|"
    r"part|subset|branch|collection|title|piece|work|one)s? of )(?:the |an? )?(?=\w)"
)
_KEPT_EMPTY = re.compile(r"\b(?:genus|species|family|breed) of\b")
_SEGMENT = re.compile(r"(?:, )?\b(?:and|or) |, |/")
_PHRASE_END = re.compile(
    r"[;:.()]|(?<![\w-])(?:of|in|by|from|to|for|at|on|with|who|whose|that|which|where|when|located|situated|based|founded|"
    r"known|used|created|written|directed|published|produced|developed|made|held|fought|spoken|native|made|found|about|"
    r"near|between|during|under|as|is|was|built|formed|released|set|whom|designed|established|published)\b"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z-]+")
_PARENTHESIS = re.compile(r"\(([^()]*)\)$")
_BRACKETS = re.compile(r"\([^()]*\)")
_LIFE = re.compile(
    rf"\([^()]*(?:\bborn [^()]*\d{{4}}|(?:{MONTH}) [^()]*\d{{4}} ?[\u2013-] ?[^()]*(?:{MONTH})[^()]*\d{{4}})"
)
TYPES_FILE = "types.tsv"
_OPENING_CHARS = 600
_SHORT_CHARS = 40  # a shorter paragraph is no opening
_PHRASE_CHARS = 120
_MAX_SEGMENTS = 4


@cache
def _type_of_noun() -> dict[str, EntityType]:
    """Entity type of each noun; a noun listed under several types, such as ``law``, gets the first."""
    kinds: dict[str, EntityType] = {}
    kind = EntityType.UNKNOWN
    for line in Path(__file__).with_name("title_nouns.txt").read_text(encoding="ascii").splitlines():
        if line.startswith("["):
            kind = EntityType(line.strip("[]"))
        elif not line.startswith("#"):
            kinds = dict.fromkeys(line.split(), kind) | kinds
    return kinds


def type_of_document(title: str, paragraphs: Sequence[str]) -> EntityType:
    """Type of the entity that a document is about, or ``UNKNOWN``."""
    text = next((paragraph for paragraph in paragraphs if len(paragraph) > _SHORT_CHARS), "")[:_OPENING_CHARS]
    is_person = _LIFE.search(text) is not None
    for _ in range(2):  # nested brackets
        text = _BRACKETS.sub(" ", text)
    copula = _COPULA.search(text)
    if copula is not None:
        kind = _type_of_phrase(text[copula.end() :])
        if kind is not EntityType.UNKNOWN:
            return kind
    if is_person:
        return EntityType.PERSON
    marked = _PARENTHESIS.search(title)
    for words in (marked.group(1) if marked else "", bare_name(title).partition(" of ")[0]):
        nouns = _WORD.findall(words.lower())
        if nouns and nouns[-1] in _type_of_noun() and (marked or " " in title):
            return _type_of_noun()[nouns[-1]]
    return EntityType.UNKNOWN


def _type_of_phrase(text: str) -> EntityType:
    """Type of the head of the noun phrase at the start of a text, or of a coordinated one."""
    if not _KEPT_EMPTY.match(text):
        text = _EMPTY.sub("", text)
    for segment in _SEGMENT.split(text[:_PHRASE_CHARS])[:_MAX_SEGMENTS]:
        end = _PHRASE_END.search(segment, 1)
        words = _WORD.findall(segment[: end.start() if end else None].lower())
        while len(words) > 1 and words[-1].endswith(("ing", "ed", "ly")):  # ``a sovereign state comprising``
            words.pop()
        for form in (words[-1], words[-1].removesuffix("s"), words[-1].rpartition("-")[2]) if words else ():
            if form in _type_of_noun():
                return _type_of_noun()[form]
        if end is not None:
            break
    return EntityType.UNKNOWN


def write_types(path: Path, types: Mapping[str, EntityType]) -> None:
    """Writes ``name<TAB>type`` lines."""
    path.write_text("".join(f"{name}\t{kind}\n" for name, kind in sorted(types.items())), encoding="utf-8")


def read_types(paths: Iterable[Path]) -> dict[str, EntityType]:
    """Reads what ``write_types`` wrote."""
    return {name: kind for path in paths for name, kind in read_table(path, {"name": str, "entity type": EntityType})}

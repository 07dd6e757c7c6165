"""Entity types of names, and facts: entity pairs that occur with a hand-written phrase of a relation and fitting types.

The title of an article has a type by how the article begins (``Ottawa is the capital of``): the noun after the copula
of the first sentence decides (``title_nouns.txt``), then the title's parentheses (``Mercury (planet)``), then the end
of the title (``University of Oslo``).
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from facets.relations.entities import EntityType
from facets.relations.patterns import ARG1, ARG2, ENTITY
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.files import read_table
from facets_lab.relations.catalogue import CatalogueEntry, RelationCatalogue, read_phrases, relations_by_pattern
from facets_lab.relations.data import KB_PREFIX, Cell, read_cells
from facets_lab.relations.entity_pairs import MONTH, bare_name

_COPULA = re.compile(r"\b(?:is|was|are|were|refers to|is considered|became)\s+(?:(?:an?|the|one of the|any)\s+)?")
_EMPTY_NOUN = re.compile(
    r"^(?:(?:[\w-]+ )?(?:type|kind|form|name|member|genus|species|series|family|class|group|variety|style|set|pair|"
    r"part|subset|branch|collection|title|piece|work|one)s? of )(?:the |an? )?(?=\w)"
)
_KEPT_NOUN = re.compile(r"\b(?:genus|species|family|breed) of\b")
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
_DATE = re.compile(
    rf"(?:(?:c\.|about|around|early|late|mid|in|{MONTH}|[12]?\d|3[01],?) )*\d{{3,4}}(?:s| BC| AD| BCE| CE)?"
    r"|\d{4}-\d\d-\d\d"
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"[$\u20ac\u00a3]?\d[\d.,]*(?: ?%| [a-z]+(?: [a-z]+)*)?")
# A phrase with only these words (``$ARG1 , $ARG2``) may express anything.
_EMPTY = frozenset(
    f"{ARG1} {ARG2} {ENTITY} , ( ) ; : . / - ' '' \" 's is was are were a an the of in on at by to from for with as "
    "and or which who".split()
)
_PHRASES, _CATALOGUE = Path("lab/configs/relation-phrases.tsv"), Path("lab/configs/relations-en.toml")
_PARTICLES = frozenset("of the de la von van der den del di du bin ibn al".split())


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
    if not _KEPT_NOUN.match(text):
        text = _EMPTY_NOUN.sub("", text)
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


def type_of_name(name: str, types: Mapping[str, EntityType]) -> EntityType:
    """Type of a name: from its form for dates and numbers, otherwise from ``types``."""
    if _DATE.fullmatch(name):
        return EntityType.DATE
    if _NUMBER.fullmatch(name):
        return EntityType.NUMBER
    return types.get(name, EntityType.UNKNOWN)


def relation_facts(
    out: Annotated[Path, typer.Option(help="Matrix file of the facts, as kb: rows.")],
    cells: Annotated[list[Path], typer.Option(help="Mined matrix, in a folder with types.tsv; repeatable.")],
) -> Report:
    """Find facts in mined matrices: pairs that occur with a phrase of a relation and have fitting types.

    Mine with --phrases, so that patterns with a single pair are kept.

    Example: facets-train relation-facts --cells runs/relations-mined/cells.tsv --out runs/relation-facts.tsv
    """
    types = read_types(path.parent / TYPES_FILE for path in cells)
    rows = (cell for path in cells for cell in read_cells(path))
    phrases_of = relations_by_pattern(read_phrases(_PHRASES))
    facts = facts_of_cells(rows, phrases_of, RelationCatalogue.from_toml(_CATALOGUE), types)
    out.write_text("".join("\t".join(map(str, fact)) + "\n" for fact in facts), encoding="utf-8")
    return {
        "num_facts": len(facts),
        "relations": dict(Counter(name.removeprefix(KB_PREFIX) for _, _, name, _ in facts).most_common()),
    }


def facts_of_cells(
    cells: Iterable[Cell],
    relations_of: Mapping[str, Sequence[str]],
    catalogue: RelationCatalogue,
    types: Mapping[str, EntityType],
) -> list[Cell]:
    """Cells (head, tail, kb:relation, support) of the facts that cells state, by relation, support and name.

    A cell states a relation when its pattern is one of the relation's phrases (``relations_of``) and the types of both
    entities fit. A fact needs a cell that fits one relation only and has a meaningful word; cells that fit several
    relations add to its support. Lone first names and months without a year are ambiguous and left out. Symmetric facts
    are listed in one direction.
    """
    entries = {entry.name: entry for entry in catalogue.relation}
    support: Counter[tuple[str, str, str]] = Counter()
    sure: set[tuple[str, str, str]] = set()
    for head, tail, pattern, count in cells:
        kinds = type_of_name(head, types), type_of_name(tail, types)
        if head.casefold() == tail.casefold() or not (_is_whole(head, kinds[0]) and _is_whole(tail, kinds[1])):
            continue
        candidates = [entries[name] for name in relations_of.get(pattern, ()) if name in entries]
        fitting = [entry for entry in candidates if _fits(entry, (head, tail), kinds)]
        # A full date after a person's name is a date of birth or death; a year may be that of a book.
        is_day = EntityType.UNKNOWN not in kinds and _DAY.fullmatch(tail) is not None
        is_meaningful = is_day or not _EMPTY.issuperset(pattern.split())
        for entry in fitting:
            pair = sorted([head, tail]) if entry.symmetric else [head, tail]
            fact = (pair[0], pair[1], entry.name)
            support[fact] += count
            if is_meaningful and len(fitting) == 1:
                sure.add(fact)
    # If a fact is stated in both directions, one is wrong, and we cannot know which.
    clear = [f for f in sure if entries[f[2]].symmetric or (f[1], f[0], f[2]) not in support]
    facts = [(head, tail, KB_PREFIX + name, support[head, tail, name]) for head, tail, name in clear]
    return sorted(facts, key=lambda fact: (fact[2], -fact[3], *fact[:2]))


def _fits(entry: CatalogueEntry, names: tuple[str, str], kinds: tuple[EntityType, EntityType]) -> bool:
    """Whether a relation accepts these arguments; the type of one of them may be unknown."""
    if kinds[0] is kinds[1] is EntityType.UNKNOWN:
        return False
    accepted = (set(entry.head), set(entry.tail))
    # A relation between things of one kind (successor, another name) joins equal types.
    if accepted[0] == accepted[1] and len(accepted[0]) > 1 and kinds[0] is not kinds[1]:
        return False
    return all(
        _may_be(name, types) if kind is EntityType.UNKNOWN else kind in types
        for name, kind, types in zip(names, kinds, accepted, strict=True)
    )


def _may_be(name: str, types: set[EntityType]) -> bool:
    """Whether a name of unknown type may have one of these types; dates and numbers are recognized by their form."""
    words = name.split()
    is_person = len(words) > 1 and all(word[:1].isupper() or word in _PARTICLES for word in words)
    return is_person if types == {EntityType.PERSON} else bool(types - {EntityType.DATE, EntityType.NUMBER})


def _is_whole(name: str, kind: EntityType) -> bool:
    """Whether a name is neither a lone first name nor a month without a year."""
    if kind is EntityType.PERSON:
        return " " in name
    return kind not in (EntityType.DATE, EntityType.NUMBER) or any(map(str.isdigit, name))

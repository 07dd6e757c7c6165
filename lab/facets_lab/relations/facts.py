"""Facts from a corpus: entity pairs that occur with a hand-written phrase of a relation, and are of fitting kinds."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from facets.relations.entities import EntityType
from facets.relations.patterns import ARG1, ARG2, ENTITY
from facets_lab.evaluation.files import Columns, count_of, read_table
from facets_lab.relations.catalogue import CatalogueEntry, RelationCatalogue

_DATE = re.compile(
    r"(?:(?:c\.|about|around|early|late|mid|in|January|February|March|April|May|June|July|August|September|"
    r"October|November|December|[12]?\d|3[01],?) )*\d{3,4}(?:s| BC| AD| BCE| CE)?|\d{4}-\d\d-\d\d"
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"[$\u20ac\u00a3]?\d[\d.,]*(?: ?%| [a-z]+(?: [a-z]+)*)?")
# A phrase of no other words (``$ARG1 , $ARG2``) may say anything.
_EMPTY = frozenset(
    f"{ARG1} {ARG2} {ENTITY} , ( ) ; : . / - ' '' \" 's is was are were a an the of in on at by to from for with as "
    "and or which who".split()
)


_PARTICLES = frozenset("of the de la von van der den del di du bin ibn al".split())


@dataclass(frozen=True, slots=True)
class Fact:
    """``relation(head, tail)`` under its canonical name, and how often the corpus says it."""

    head: str
    tail: str
    relation: str
    support: int


def kind_of_name(name: str, types: Mapping[str, EntityType]) -> EntityType:
    """The kind of a name: of a date or a number by its form, of others by ``types``.

    Example:
        >>> kind_of_name("1867-11-07", {}), kind_of_name("Oslo", {"Oslo": EntityType.PLACE})
        (<EntityType.DATE: 'date'>, <EntityType.PLACE: 'place'>)
    """
    if _DATE.fullmatch(name):
        return EntityType.DATE
    if _NUMBER.fullmatch(name):
        return EntityType.NUMBER
    return types.get(name, EntityType.UNKNOWN)


def bootstrap_facts(
    cells: Iterable[tuple[str, str, str, int]],
    phrases: Mapping[str, Sequence[str]],
    catalogue: RelationCatalogue,
    types: Mapping[str, EntityType],
) -> list[Fact]:
    """Facts that cells say.

    A cell says a relation when its pattern is one of the relation's phrases and the entities are of kinds that the
    relation takes. A fact needs one cell that says no other relation and has a telling word; what fits several
    relations only adds to its support. First names alone and months without a year are left out: they mean too many.

    Args:
        cells: Entity, entity, pattern as it is mined, count.
        phrases: Relations by pattern (``phrase_patterns``).
        catalogue: Kinds of the arguments; relations that it does not hold are left out.
        types: Kinds of names.

    Returns:
        By relation, then most support first, then by name. Symmetric facts stand one way round.
    """
    entries = {entry.name: entry for entry in catalogue.relation}
    support: Counter[tuple[str, str, str]] = Counter()
    sure: set[tuple[str, str, str]] = set()
    for head, tail, pattern, count in cells:
        kinds = kind_of_name(head, types), kind_of_name(tail, types)
        if head.casefold() == tail.casefold() or not (_is_whole(head, kinds[0]) and _is_whole(tail, kinds[1])):
            continue
        said = [entries[name] for name in phrases.get(pattern, ()) if name in entries]
        fitting = [entry for entry in said if _fits(entry, (head, tail), kinds)]
        # A full day behind a person's name is hardly anything else; a year may be that of a book.
        is_day = EntityType.UNKNOWN not in kinds and _DAY.fullmatch(tail) is not None
        is_telling = is_day or not _EMPTY.issuperset(pattern.split())
        for entry in fitting:
            pair = sorted([head, tail]) if entry.symmetric else [head, tail]
            fact = (pair[0], pair[1], entry.name)
            support[fact] += count
            if is_telling and len(fitting) == 1:
                sure.add(fact)
    # Said both ways round, one of them is wrong: nobody knows which.
    clear = [f for f in sure if entries[f[2]].symmetric or (f[1], f[0], f[2]) not in support]
    facts = [Fact(*fact, support[fact]) for fact in clear]
    return sorted(facts, key=lambda fact: (fact.relation, -fact.support, fact.head, fact.tail))


def _fits(entry: CatalogueEntry, names: tuple[str, str], kinds: tuple[EntityType, EntityType]) -> bool:
    """Whether a relation takes these; of one argument at most the kind may be unknown."""
    if kinds[0] is kinds[1] is EntityType.UNKNOWN:
        return False
    own = (set(entry.head), set(entry.tail))
    # What joins like with like (another name, a successor) joins the same kinds.
    if own[0] == own[1] and len(own[0]) > 1 and kinds[0] is not kinds[1]:
        return False
    return all(
        _may_be(name, taken) if kind is EntityType.UNKNOWN else kind in taken
        for name, kind, taken in zip(names, kinds, own, strict=True)
    )


def _may_be(name: str, kinds: set[EntityType]) -> bool:
    """Whether a name of unknown kind may be of one of these; dates and numbers are known by their form."""
    words = name.split()
    is_person = len(words) > 1 and all(word[:1].isupper() or word in _PARTICLES for word in words)
    return is_person if kinds == {EntityType.PERSON} else bool(kinds - {EntityType.DATE, EntityType.NUMBER})


def _is_whole(name: str, kind: EntityType) -> bool:
    """Not a first name alone, and no month without a year."""
    match kind:
        case EntityType.PERSON:
            return " " in name
        case EntityType.DATE | EntityType.NUMBER:
            return any(map(str.isdigit, name))
        case _:
            return True


def write_facts(path: Path, facts: Iterable[Fact]) -> None:
    """Writes ``head<TAB>tail<TAB>relation<TAB>support`` lines."""
    lines = (f"{fact.head}\t{fact.tail}\t{fact.relation}\t{fact.support}\n" for fact in facts)
    path.write_text("".join(lines), encoding="utf-8")


def read_facts(path: Path) -> list[Fact]:
    """Reads what ``write_facts`` wrote.

    Raises:
        InvalidInputError: A bad line; the message names file and line.
        ConfigError: The file cannot be read.
    """
    columns: Columns = {"head": str, "tail": str, "relation": str, "support": count_of}
    return [Fact(*fields) for fields in read_table(path, columns)]

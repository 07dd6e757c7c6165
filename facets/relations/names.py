"""Names in a parsed sentence: what the recogniser labels, put right, and the names it leaves out.

A small recogniser knows kinds but is unsure where a name ends, and seldom knows titles: ``Fyodor`` [Dostoevsky],
[Ridley Scott's], nothing in ``Hamlet was written``. What it leaves out is seen by case and part of speech, and gets the
unknown type.
"""

from collections.abc import Iterator
from itertools import pairwise

from spacy.tokens import Doc, Span, Token

from facets.relations.entity_types import EntityType, entity_type_of_label

__all__ = ["Name", "names_of"]

Name = tuple[int, int, EntityType]  # first token, one past the last, kind

_ENDS = frozenset(["'s", "\u2019s", "'", "\u2019", ".", ",", ";", ":", '"', "\u201d"])
_STARTS = frozenset(["the", "a", "an", '"', "\u201c", "'", "its", "his", "her", "their"])
_FINITE = frozenset(["VBZ", "VBD", "VBP", "MD"])
_VALUES = (EntityType.DATE, EntityType.NUMBER)
# Between two parts of one title; "and" would join two names as often.
_LINKS = frozenset("of in the on for to at a an from with de da di del la le du van von der den".split())
_OPENING, _CLOSING = frozenset(['"', "\u201c", "``", "\u00ab"]), frozenset(['"', "\u201d", "''", "\u00bb"])
_MAX_TITLE_TOKENS = 10
# Capitalised before a name, but no name.
_TITLES = frozenset(
    "mr mr. mrs mrs. ms ms. dr dr. prof prof. sir dame lord lady king queen prince princess emperor pope saint st st. "
    "president minister prime senator governor mayor general captain colonel chancellor chairman ceo cfo cto director "
    "professor doctor father mother mom dad uncle aunt god i".split()
)


def names_of(doc: Doc) -> list[Name]:
    """Names of a text in order, not overlapping.

    Args:
        doc: Of a pipeline that finds entities; without parts of speech only those are returned, trimmed.
    """
    found = [
        name
        for entity in doc.ents
        for start, end, label in _without_verbs(entity)
        if (name := _trimmed(doc, start, end, label))
    ]
    if not doc.has_annotation("TAG"):
        return found
    titles = list(_quoted_titles(doc))
    kept = titles + [name for name in found if not any(_overlap(name, title) for title in titles)]
    kept = [name for name in kept if not _is_spelled_out_title(doc, name)]
    taken = {token for start, end, _ in kept for token in range(start, end)}
    kept += [run for run in _capitalised_runs(doc, taken) if not _is_rank(doc, run)]
    return _joined(doc, sorted(kept))


def _without_verbs(entity: Span) -> Iterator[tuple[int, int, str]]:
    """The entity, or the names around a verb that was taken into it: ``Pulp Fiction`` [is] ``Quentin Tarantino``."""
    verbs = [token.i for token in entity if token.is_lower and token.tag_ in _FINITE]
    label = "" if verbs else entity.label_
    for start, end in pairwise([entity.start - 1, *verbs, entity.end]):
        yield start + 1, end, label


def _trimmed(doc: Doc, start: int, end: int, label: str) -> Name | None:
    while end > start and doc[end - 1].text in _ENDS:
        end -= 1
    while start < end and doc[start].lower_ in _STARTS:
        start += 1
    return (start, end, entity_type_of_label(label)) if start < end else None


def _overlap(first: Name, second: Name) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def _quoted_titles(doc: Doc) -> Iterator[Name]:
    """What stands in quotation marks and is written like a title."""
    opened = -1
    for token in doc:
        if opened >= 0 and token.text in _CLOSING:
            inside = doc[opened + 1 : token.i]
            while len(inside) and inside[-1].is_punct and inside[-1].text in ",.":
                inside = inside[:-1]
            if 0 < len(inside) <= _MAX_TITLE_TOKENS and all(map(_fits_title, inside)) and inside[0].is_title:
                yield inside.start, inside.end, EntityType.WORK
            opened = -1
        elif token.text in _OPENING:
            opened = token.i


def _fits_title(token: Token) -> bool:
    return token.text[0].isupper() or token.lower_ in _LINKS or token.lower_ == "and" or not token.is_alpha


def _is_spelled_out_title(doc: Doc, name: Name) -> bool:
    """``Nineteen Eighty-Four``: a number or time in capitals that a title goes on behind, or that is long."""
    start, end, kind = name
    if kind not in _VALUES or not all(token.is_title for token in doc[start:end] if token.is_alpha):
        return False
    if any(token.like_num and token.text[0].isdigit() for token in doc[start:end]):
        return False
    following = doc[end : end + 2]
    return len(following) == 2 and following[0].lower_ in _LINKS and following[1].text[0].isupper() and end - start > 1


def _capitalised_runs(doc: Doc, taken: set[int]) -> Iterator[Name]:
    """Runs of words in capitals that no entity holds, over links between them."""
    place = 0
    while place < len(doc):
        start = place
        place += 1
        if start in taken or not (_is_name_word(doc[start]) or _joins_nouns(doc, start + 1)):
            continue
        while place < len(doc) and place not in taken:
            ahead = 0 if _is_name_word(doc[place]) else _length_of_link(doc, place)
            if ahead is None or place + ahead in taken:
                break
            place += ahead + 1
        run = doc[start:place]
        if len(run) > 1 or run[0].pos_ == "PROPN":
            yield run.start, run.end, EntityType.UNKNOWN


def _length_of_link(doc: Doc, place: int) -> int | None:
    """How many tokens join the words before and behind them to one name; None: none do."""
    if _joins_nouns(doc, place):
        return 1
    if doc[place].text == "-":
        length = 1
    else:
        length = next((n for n, token in enumerate(doc[place : place + 3]) if token.lower_ not in _LINKS), 0)
    follows = doc[place + length : place + length + 1]
    return length if length and follows and (_is_name_word(follows[0]) or follows[0].pos_ == "PROPN") else None


def _joins_nouns(doc: Doc, place: int) -> bool:
    """``Crime and Punishment``: common nouns in capitals, or one thing (``was``); not ``Tesla and Waze``."""
    if not 0 < place < len(doc) - 1 or doc[place].lower_ != "and":
        return False
    before, after = doc[place - 1], doc[place + 1]
    is_one = place + 2 < len(doc) and doc[place + 2].lower_ in ("is", "was", "has")
    are_capitals = before.text[0].isupper() and after.text[0].isupper()
    return are_capitals and (is_one or after.pos_ in ("NOUN", "ADJ", "VERB"))


def _is_name_word(token: Token) -> bool:
    if not token.text[0].isupper() or token.is_punct:
        return token.pos_ == "PROPN" and token.is_alpha and not token.is_lower  # "iPhone"
    # At the start of a sentence everything is in capitals.
    return token.pos_ == "PROPN" or (not token.is_sent_start and token.pos_ in ("NOUN", "ADJ", "VERB", "NUM"))


def _is_rank(doc: Doc, name: Name) -> bool:
    return all(token.lower_ in _TITLES for token in doc[name[0] : name[1]])


def _joined(doc: Doc, names: list[Name]) -> list[Name]:
    """Parts of one name together: ``Fyodor`` and ``Dostoevsky``, ``25`` and ``October 1881``; not ``Apple`` ``CEO``."""
    joined: list[Name] = []
    for start, end, kind in names:
        before = joined[-1] if joined and joined[-1][1] == start else None
        if before is not None and kind is EntityType.UNKNOWN and before[2] not in _VALUES and not doc[start].is_upper:
            joined[-1] = (before[0], end, before[2])
        elif before is not None and kind is EntityType.DATE and before[2] in _VALUES:
            joined[-1] = (before[0], end, kind)
        else:
            joined.append((start - _has_article(doc, start), end, kind))
    return joined


def _has_article(doc: Doc, start: int) -> bool:
    """``directed The Godfather``: an article in capitals inside a sentence is part of the name."""
    return start > 0 and doc[start - 1].text in ("The", "A", "An") and not doc[start - 1].is_sent_start

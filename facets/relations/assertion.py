"""Whether a sentence asserts what its pattern says: not in questions, negations, hypotheses and what others say.

By explicit cues with a scope, as NegEx and ConText do (Chapman et al. 2001, 2007): a cue counts up to the next border
of a clause. A cue stands in the pattern (``$ARG1 might marry $ARG2``), before it (``if $ARG1 died in $ARG2``) or behind
it (``..., said Ann``). Verbs that vouch for what follows (``confirmed that``) are no cue.

A pattern is negated when the scope of a cue (``not``, ``never``, ``without`` ...) reaches its last argument: ``$ARG1 is
not married to $ARG2`` is, ``$ARG1 , not a singer , was born in $ARG2`` is not. Phrases that look like a negation and
are none (``not only``) do not count, and two cues cancel each other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from facets.relations.patterns import ARG1, ARG2, ENTITY, PHRASE_BORDERS


class AssertionStatus(StrEnum):
    """What a sentence does with a statement."""

    ASSERTED = "asserted"  # states it as a fact
    NEGATED = "negated"  # states that it does not hold
    QUESTIONED = "questioned"  # asks whether it holds
    HYPOTHETICAL = "hypothetical"  # leaves open whether it holds: conditions, possibilities, wishes, the future
    ATTRIBUTED = "attributed"  # says that somebody says so: quotations, reported speech, rumours


@dataclass(frozen=True, slots=True)
class Assertion:
    """Status of a statement, and the word that says so (empty when asserted)."""

    status: AssertionStatus
    cue: str


ASSERTED = Assertion(AssertionStatus.ASSERTED, "")

_QUOTATION = re.compile('"[^"]*"|\u201c[^\u201d]*\u201d|\u00ab[^\u00bb]*\u00bb')
_ARGUMENTS = frozenset([ARG1, ARG2])
_ENTITIES = frozenset([ARG1, ARG2, ENTITY])
_CLAUSE_BORDERS = PHRASE_BORDERS | frozenset("although though while whereas".split())
_CLOSING = frozenset(['"', "\u201d", "\u00bb", "''", ")", "'", "\u2019"])
_INVERTED = frozenset("is are was were am do does did has have can could will would should may might must".split())
_INVERTED_CONDITIONS = frozenset("had were should".split())
_QUESTION_WORDS = frozenset("who whom whose what which where when why how".split())

_CONDITIONS = frozenset(
    "if unless whether suppose supposing imagine assuming provided lest wish wishes wished hope hopes hoped hoping "
    "dreamed dreamt pretend pretended pretends".split()
)
MODALS = frozenset("may might can could would should must will shall cannot ought 'll \u2019ll wo ca".split())
_POSSIBLE = frozenset("perhaps maybe possibly probably presumably likely unlikely potentially conceivably".split())
# "would later marry" tells what came to pass.
_CAME_TO_PASS = frozenset("later eventually subsequently soon go become again ultimately finally".split())
_BEFORE_MONTHS = frozenset("in of since on from until by late early mid".split())
_BEFORE_NOUNS = frozenset("the a his her their its my our your last good free 's".split())
_TO_COME = frozenset(
    "plans planned planning wants wanted intends intended expects expected hopes hoped likely about set scheduled due "
    "going tried tries trying attempted attempts wishes wished decided agreed".split()
)
_SAID = frozenset(
    "say says said saying claim claims claimed claiming believe believes believed think thinks thought allege alleges "
    "alleged suggest suggests suggested argue argues argued speculate speculates speculated assume assumes assumed "
    "suspect suspects suspected insist insists insisted report reports reported assert asserts asserted".split()
)
_HEARSAY = frozenset("allegedly reportedly supposedly purportedly rumored rumoured apparently".split())
_HEARSAY_NOUNS = frozenset(
    "rumor rumors rumour rumours claim claims belief beliefs allegation allegations theory theories idea myth legend "
    "hypothesis speculation speculations suggestion suggestions assumption notion story stories".split()
)
_MAX_SCOPE = 12

_CUES = frozenset(
    "not n't n\u2019t never no nor neither without cannot nobody nothing nowhere hardly denied denies deny".split()
)
# With the token that follows these are no negations.
_PSEUDO = frozenset(
    tuple(pair.split())
    for pair in (
        *("not only", "not just", "not merely", "not simply", "not until", "not least", "not far"),
        *("not to", "no doubt", "no .", "no less", "no other", "without doubt", "nothing but", "never ending"),
    )
)
# "not to be confused with" is one.
_NEGATIVE_PHRASES = (("not", "to", "be"), ("rather", "than"), ("instead", "of"), ("failed", "to"), ("refused", "to"))
# A negation stays in its clause ("not the man who"); doubts and reports reach further ("may be the man who").
_NEGATION_BORDERS = _CLAUSE_BORDERS | frozenset("however until who which that because".split())
_MAX_NEGATION_SCOPE = 10
# Before the first argument only a clause that is about the whole sentence negates: "it is not true that".
_CLAUSES = frozenset("true case correct false untrue".split())


def assertion_of(
    tokens: Sequence[str], *, before: Sequence[str] = (), after: Sequence[str] = (), quoted: bool = False
) -> Assertion:
    """Status of what a pattern says where it stands.

    ``tokens``: the pattern in lower case, placeholders kept. ``before``: tokens of its sentence before it, in lower
    case; other entities are ``$ENT``. ``quoted``: it stands in a quotation, with both arguments.

    Example:
        >>> assertion_of("$ARG1 might marry $ARG2".split())
        Assertion(status=<AssertionStatus.HYPOTHETICAL: 'hypothetical'>, cue='might')
        >>> assertion_of("$ARG1 born in $ARG2".split(), before=["was"], after=["?"]).status
        <AssertionStatus.QUESTIONED: 'questioned'>
    """
    if cue := negation_cue(tokens, before=before):
        return Assertion(AssertionStatus.NEGATED, cue)
    if cue := _question(tokens, before, after):
        return Assertion(AssertionStatus.QUESTIONED, cue)
    inside, scope = _inside(tokens), _scope(before)
    # Of "Ann , born in Oslo , said nothing" the second comma ends what the first has begun, not a quotation.
    for status, found in (
        (AssertionStatus.HYPOTHETICAL, _hypothetical(inside, scope, [*before, *tokens])),
        (AssertionStatus.ATTRIBUTED, '"' if quoted else _attributed(inside, before, () if "," in tokens else after)),
    ):
        if found:
            return Assertion(status, found)
    return ASSERTED


def quotations(text: str) -> list[tuple[int, int]]:
    """Start and end of what stands in double quotation marks.

    Example:
        >>> quotations('He said "yes" twice.')
        [(8, 13)]
    """
    return [match.span() for match in _QUOTATION.finditer(text)]


def _question(tokens: Sequence[str], before: Sequence[str], after: Sequence[str]) -> str:
    end = [token for token in [*tokens[-1:], *after] if token not in _CLOSING]
    if end and end[-1] == "?":
        return "?"
    start = [*before, *tokens]
    while start and not (start[0][0].isalnum() or start[0] in _ENTITIES):
        start = start[1:]
    inverted = len(start) > 1 and start[1] in _ENTITIES and start[0] in _INVERTED - _INVERTED_CONDITIONS
    asked = len(start) > 1 and start[0] in _QUESTION_WORDS and start[1] in _INVERTED
    return start[0] if inverted or asked else ""


def _inside(tokens: Sequence[str]) -> list[str]:
    """What stands before the last argument, and behind it where the pattern goes on, since its last border."""
    if tokens and tokens[-1] in _ARGUMENTS:
        tokens = tokens[:-1]
    return _scope(tokens)


def _scope(tokens: Sequence[str]) -> list[str]:
    """The end of the tokens, since the last border of a clause."""
    borders = [place for place, token in enumerate(tokens) if token in _CLAUSE_BORDERS]
    start = borders[-1] + 1 if borders else 0
    return list(tokens[max(start, len(tokens) - _MAX_SCOPE) :])


def _hypothetical(inside: Sequence[str], scope: Sequence[str], sentence: Sequence[str]) -> str:
    first = next((token for token in sentence if token[0].isalnum()), "")
    second = sentence[list(sentence).index(first) + 1 :][:1] if first else []
    if first in _INVERTED_CONDITIONS and second and second[0] in _ENTITIES:
        return first
    for tokens in (scope, inside):
        for place, token in enumerate(tokens):
            if token in _CONDITIONS or token in _POSSIBLE:
                return token
            if token in _TO_COME and tokens[place + 1 : place + 2] == ["to"]:
                return token
    return next((token for place, token in enumerate(inside) if _is_modal(inside, place)), "") or _ends_modal(scope)


def _is_modal(tokens: Sequence[str], place: int) -> bool:
    token = tokens[place]
    before, following = (tokens[place - 1] if place else ""), "".join(tokens[place + 1 : place + 2])
    if token not in MODALS or before in _BEFORE_NOUNS:
        return False
    if token == "ca" and following not in ("n't", "n\u2019t"):  # California
        return False
    if token == "may" and (before in _BEFORE_MONTHS or following[:1].isdigit()):
        return False
    return token != "would" or following not in _CAME_TO_PASS


def _ends_modal(scope: Sequence[str]) -> str:
    """``it may be that``, ``it is possible that`` right before the pattern."""
    if not scope or scope[-1] != "that":
        return ""
    return next((token for token in scope if token in ("possible", "conceivable", "doubtful", "may", "could")), "")


def _attributed(inside: Sequence[str], before: Sequence[str], after: Sequence[str]) -> str:
    scope = _scope(before)
    for tokens in (scope, inside):
        for place, token in enumerate(tokens):
            follows = tokens[place + 1 : place + 2]
            is_noun = token in _HEARSAY_NOUNS and follows in (["that"], ["of"])
            if token in _HEARSAY or is_noun or (token in _SAID and not _is_object(tokens, place)):
                return token
    if "according" in before and "to" in before:
        return "according"
    return _said_behind(after)


def _is_object(tokens: Sequence[str], place: int) -> bool:
    """``reports`` and ``claims`` as nouns: ``the reports of``."""
    return place > 0 and tokens[place - 1] in _BEFORE_NOUNS


def _said_behind(after: Sequence[str]) -> str:
    """``... , said Ann .``: behind a comma, without another border up to the end of the sentence."""
    rest = [token for token in after if token not in _CLOSING]
    if not rest or rest[0] not in (",", "?", "!"):
        return ""
    rest = rest[1:]
    if rest[:2] == ["according", "to"]:
        return "according"
    if not _CLAUSE_BORDERS.isdisjoint(rest) or len(rest) > _MAX_SCOPE:
        return ""
    return next((token for token in rest[:4] if token in _SAID), "")


def negation_cue(tokens: Sequence[str], *, before: Sequence[str] = ()) -> str:
    """The word that negates a pattern, or an empty string.

    Args:
        tokens: The pattern in lower case, placeholders kept.
        before: Tokens of the sentence before the first argument, in lower case.

    Example:
        >>> negation_cue("$ARG1 is not married to $ARG2".split())
        'not'
        >>> negation_cue("$ARG1 , not a singer , was born in $ARG2".split())
        ''
    """
    places = [place for place, token in enumerate(tokens) if token in (ARG1, ARG2)]
    # A pattern may go on behind its last argument: "$ARG1 and $ARG2 are not married".
    last = places[-1] if places and places[-1] == len(tokens) - 1 else len(tokens)
    cues = [tokens[place] for place in range(last) if _negates(tokens, place, last)]
    cues += _clause_cues(before)
    return cues[0] if len(cues) % 2 == 1 else ""


def _negates(tokens: Sequence[str], place: int, last: int) -> bool:
    following = tuple(tokens[place + 1 : place + 2])
    if any(tuple(tokens[place : place + len(phrase)]) == phrase for phrase in _NEGATIVE_PHRASES):
        pass
    elif tokens[place] not in _CUES or (tokens[place], *following) in _PSEUDO:
        return False
    elif tokens[place] == "nor" and "neither" in tokens[:place]:
        return False  # one negation in two parts
    scope = tokens[place + 1 : last]
    return len(scope) <= _MAX_NEGATION_SCOPE and _NEGATION_BORDERS.isdisjoint(scope)


def _clause_cues(before: Sequence[str]) -> list[str]:
    if before and before[-1] == "neither":
        return ["neither"]
    if len(before) < 2 or before[-1] != "that":
        return []
    clause = before[-6:-1]
    if clause[-1] in ("denied", "denies", "deny", "false", "untrue"):
        return [clause[-1]]
    if clause[-1] in _CLAUSES:
        return [token for token in clause if token in ("not", "n't", "never", "no")][:1]
    return []

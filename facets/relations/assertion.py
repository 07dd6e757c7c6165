"""Whether a sentence asserts its pattern, or denies, questions, supposes or attributes it.

Explicit cues with a scope decide, as in NegEx and ConText (Chapman et al. 2001, 2007): a cue applies up to the next
clause border. A cue may occur in the pattern (``$ARG1 might marry $ARG2``), before it (``if $ARG1 died in $ARG2``) or
after it (``..., said Ann``). Verbs that vouch for a statement (``confirmed that``) are no cues.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from facets.relations.patterns import ARG1, ARG2, ENTITY, PHRASE_BORDERS


class AssertionStatus(StrEnum):
    """What a sentence does with a statement."""

    ASSERTED = "asserted"  # states it as fact
    NEGATED = "negated"  # states that it does not hold
    QUESTIONED = "questioned"  # asks whether it holds
    HYPOTHETICAL = "hypothetical"  # leaves open whether it holds: conditions, possibilities, wishes, the future
    ATTRIBUTED = "attributed"  # reports that someone says so: quotations, reported speech, rumours


@dataclass(frozen=True, slots=True)
class Assertion:
    """Status of a statement, and the word that decides it (empty when asserted)."""

    status: AssertionStatus
    cue: str


ASSERTED = Assertion(AssertionStatus.ASSERTED, "")

_QUOTATION = re.compile('"[^"]*"|\u201c[^\u201d]*\u201d|\u00ab[^\u00bb]*\u00bb')
_ARGUMENTS = frozenset([ARG1, ARG2])
_ENTITIES = frozenset([ARG1, ARG2, ENTITY])
_CLAUSE_BORDERS = PHRASE_BORDERS | frozenset("although though while whereas".split())
_CLOSING = frozenset(['"', "\u201d", "\u00bb", "''", ")", "'", "\u2019"])
_MAX_SCOPE = 12  # tokens

_INVERTED = frozenset("is are was were am do does did has have can could will would may might must".split())
_QUESTION_WORDS = frozenset("who which whom whose where when what why how".split())
_INVERTED_CONDITIONS = frozenset("had were should".split())
_SUPPOSITIONS = frozenset(
    "if unless whether suppose supposing imagine assuming provided lest wish wishes wished hope hopes hoped hoping "
    "dreamed dreamt pretend pretended pretends perhaps maybe possibly probably presumably likely unlikely potentially "
    "conceivably".split()
)
MODALS = frozenset("may might can could would should must will shall ought 'll \u2019ll wo ca cannot".split())
_CAME_TO_PASS = frozenset("later eventually subsequently soon go become again ultimately finally".split())
_BEFORE_MONTHS = frozenset("in of since on from until by late early mid".split())
_BEFORE_NOUNS = frozenset("the a his her their its my our your last good free 's".split())
# Followed by "to", these leave open whether something happened.
_INTENTIONS = frozenset(
    "plans planned planning wants wanted intends intended expects expected hopes hoped likely about set scheduled due "
    "going tried tries trying attempted attempts wishes wished decided agreed".split()
)
_POSSIBLE_THAT = frozenset("possible conceivable doubtful may could".split())
_SAID = frozenset(
    "say says said saying claim claims claimed claiming believe believes believed think thinks thought allege alleges "
    "alleged suggest suggests suggested argue argues argued speculate speculates speculated assume assumes assumed "
    "suspect suspects suspected insist insists insisted report reports reported assert asserts asserted".split()
)
HEARSAY = frozenset("allegedly reportedly supposedly purportedly alleged rumored rumoured apparently".split())
_HEARSAY_NOUNS = frozenset(
    "rumor rumors rumour rumours claim claims belief beliefs allegation allegations theory theories idea myth legend "
    "hypothesis speculation speculations suggestion suggestions assumption notion story stories".split()
)

# Other verbs that deny their complement form separate relations in a pattern: "$ARG1 prevented $ARG2".
_FAILED, _COMPLEMENT = frozenset(["failed", "refused"]), frozenset("to from in that of using".split())
_NEGATION_CUES = _FAILED | frozenset(
    "not n't n\u2019t never no neither nor none nobody nothing nowhere without cannot hardly scarcely barely".split()
)
# These stand for "all ... not" and "somewhere ... not": they negate the whole clause.
_WHOLE_CLAUSE = frozenset("no nobody none nothing neither nor nowhere".split())
PREPOSITIONS = frozenset(
    "in on at of by to from with for into onto against over under about between among as near through during within "
    "around across after before upon off out up down via toward towards inside outside behind beyond above below "
    "until since without along beside next than despite like except per".split()
)
_SCOPE_ENDS = frozenset(", ; : . ! ? ( ) -- \u2013 \u2014 but although though while whereas because since so".split())
_PHRASE_ENDS = _SCOPE_ENDS | PREPOSITIONS | {"-", "and"}
_DENIALS = frozenset(["denied", "denies", "deny"])
# Pairs of tokens that look like a negation but are not.
_NOT_NEGATIVE = frozenset(
    tuple(pair.split())
    for pair in (
        *("not far", "not until", "not only", "not just", "not merely", "not simply", "not least", "no doubt"),
        *("no later", "no more", "no less", "no sooner", "without doubt", "nothing but"),
    )
)
_NEGATIVE_PHRASES = frozenset([("rather", "than"), ("instead", "of")])
# A negation ends with its clause ("not the man who"); suppositions and reports reach further ("may be the man who").
_NEGATION_BORDERS = _CLAUSE_BORDERS | frozenset("however until who which that".split())


def assertion_of(
    tokens: Sequence[str], *, before: Sequence[str] = (), after: Sequence[str] = (), quoted: bool = False
) -> Assertion:
    """Assertion status of a pattern in its sentence.

    ``tokens``: the pattern in lower case, with placeholders. ``before`` and ``after``: the rest of its sentence, where
    other entities are ``$ENT``. ``quoted``: whether both arguments are in the same quotation.
    """
    if cue := negation_cue(tokens, before=before):
        return Assertion(AssertionStatus.NEGATED, cue)
    if cue := _question_cue(tokens, before, after):
        return Assertion(AssertionStatus.QUESTIONED, cue)
    inside = _clause_end(tokens[:-1] if tokens and tokens[-1] in _ARGUMENTS else tokens)
    outside = _clause_end(before)
    if cue := _supposition_cue(inside, outside, [*before, *tokens]):
        return Assertion(AssertionStatus.HYPOTHETICAL, cue)
    if quoted:
        return Assertion(AssertionStatus.ATTRIBUTED, '"')
    # In "Ann , born in Oslo , said nothing" the second comma ends an apposition, not a quotation.
    if cue := _attribution_cue(inside, outside, before, () if "," in tokens else after):
        return Assertion(AssertionStatus.ATTRIBUTED, cue)
    return ASSERTED


def quotations(text: str) -> list[tuple[int, int]]:
    """Start and end of each part in double quotation marks."""
    return [match.span() for match in _QUOTATION.finditer(text)]


def negation_cue(tokens: Sequence[str], *, before: Sequence[str] = ()) -> str:
    """The word that negates a pattern, or an empty string; two cues cancel out.

    A cue counts if its scope reaches the last argument, or the end of a pattern that continues after it.
    """
    end = len(tokens) - 1 if tokens and tokens[-1] in _ARGUMENTS else len(tokens)
    cues = [cue for cue, scope_end in _negations(tokens[:end]).items() if scope_end == end]
    cues += [index for index, pair in enumerate(pairwise(tokens[:end])) if pair in _NEGATIVE_PHRASES]
    cues += [index for index, token in enumerate(tokens[:end]) if token in _DENIALS]
    reaching = [tokens[cue] for cue in sorted(cues) if _NEGATION_BORDERS.isdisjoint(tokens[cue + 1 : end])]
    reaching += _outer_negation(before)
    return reaching[0] if len(reaching) % 2 == 1 else ""


def _negations(tokens: Sequence[str]) -> dict[int, int]:
    """Index of each cue, and the end of what it negates.

    "neither ... nor" is one cue, and in "no room without a balcony" the two cancel out.
    """
    found: dict[int, int] = {}
    for index, token in enumerate(tokens):
        following = "".join(tokens[index + 1 : index + 2])
        if token not in _NEGATION_CUES or (token, following) in _NOT_NEGATIVE:
            continue
        if token in _FAILED and following not in _COMPLEMENT and not following.endswith("ing"):
            continue
        if token == "nor" and "neither" in tokens[:index]:
            continue
        if token == "without":
            outer = [cue for cue, end in found.items() if index < end and tokens[cue] in _WHOLE_CLAUSE]
            if outer:
                found = {cue: end for cue, end in found.items() if cue not in outer}
                continue
        borders = _PHRASE_ENDS if token == "without" else _SCOPE_ENDS
        found[index] = next((end for end in range(index + 1, len(tokens)) if tokens[end] in borders), len(tokens))
    return found


def _outer_negation(before: Sequence[str]) -> list[str]:
    """Cues before the first argument: ``neither``, ``denied that``, ``it is not true that``."""
    if before and before[-1] == "neither":
        return ["neither"]
    if len(before) < 2 or before[-1] != "that":
        return []
    clause = before[-6:-1]
    if clause[-1] in _DENIALS | {"false", "untrue"}:
        return [clause[-1]]
    if clause[-1] in ("true", "case", "correct"):
        return [token for token in clause if token in ("not", "n't", "never", "no")][:1]
    return []


def _question_cue(tokens: Sequence[str], before: Sequence[str], after: Sequence[str]) -> str:
    end = [token for token in [*tokens[-1:], *after] if token not in _CLOSING]
    if end and end[-1] == "?":
        return "?"
    start = [*before, *tokens]
    while start and not (start[0][0].isalnum() or start[0] in _ENTITIES):
        start = start[1:]
    is_inverted = len(start) > 1 and start[1] in _ENTITIES and start[0] in _INVERTED - _INVERTED_CONDITIONS
    is_asked = len(start) > 1 and start[0] in _QUESTION_WORDS and start[1] in _INVERTED
    return start[0] if is_inverted or is_asked else ""


def _clause_end(tokens: Sequence[str]) -> list[str]:
    """The last tokens, since the last clause border."""
    borders = [index for index, token in enumerate(tokens) if token in _CLAUSE_BORDERS]
    start = borders[-1] + 1 if borders else 0
    return list(tokens[max(start, len(tokens) - _MAX_SCOPE) :])


def _supposition_cue(inside: Sequence[str], outside: Sequence[str], sentence: Sequence[str]) -> str:
    start = next((index for index, token in enumerate(sentence) if token[0].isalnum()), len(sentence))
    first, second = "".join(sentence[start : start + 1]), "".join(sentence[start + 1 : start + 2])
    if first in _INVERTED_CONDITIONS and second in _ENTITIES:
        return first
    for tokens in (outside, inside):
        for index, token in enumerate(tokens):
            if token in _SUPPOSITIONS or (token in _INTENTIONS and tokens[index + 1 : index + 2] == ["to"]):
                return token
    for index, token in enumerate(inside):
        if _is_modal(inside, index):
            return token
    if outside and outside[-1] == "that":  # "it is possible that"
        return next((token for token in outside if token in _POSSIBLE_THAT), "")
    return ""


def _is_modal(tokens: Sequence[str], index: int) -> bool:
    token = tokens[index]
    before, following = (tokens[index - 1] if index else ""), "".join(tokens[index + 1 : index + 2])
    if token not in MODALS or before in _BEFORE_NOUNS:
        return False
    if token == "ca" and following not in ("n't", "n\u2019t"):  # California
        return False
    if token == "may" and (before in _BEFORE_MONTHS or following[:1].isdigit()):
        return False
    return token != "would" or following not in _CAME_TO_PASS  # "would later marry"


def _attribution_cue(inside: Sequence[str], outside: Sequence[str], before: Sequence[str], after: Sequence[str]) -> str:
    for tokens in (outside, inside):
        for index, token in enumerate(tokens):
            is_noun = token in _HEARSAY_NOUNS and tokens[index + 1 : index + 2] in (["that"], ["of"])
            is_verb = token in _SAID and not (index and tokens[index - 1] in _BEFORE_NOUNS)  # not "the reports of"
            if token in HEARSAY or is_noun or is_verb:
                return token
    if "according" in before and "to" in before:
        return "according"
    # "... , said Ann .": after a comma, without another border before the end of the sentence.
    behind = [token for token in after if token not in _CLOSING]
    if not behind or behind[0] not in (",", "?", "!"):
        return ""
    if behind[1:3] == ["according", "to"]:
        return "according"
    if not _CLAUSE_BORDERS.isdisjoint(behind[1:]) or len(behind) > _MAX_SCOPE + 1:
        return ""
    return next((token for token in behind[1:5] if token in _SAID), "")

"""Negation of sentence patterns by explicit cues, each with a scope (after NegEx, Chapman et al. 2001).

A cue (``not``, ``never``, ``without`` ...) negates what follows up to the end of its clause. A pattern is negated when
that reaches its last argument: ``$ARG1 is not married to $ARG2`` is, ``$ARG1 , not a singer , was born in $ARG2`` is
not. Phrases that look like a negation and are none (``not only``) do not count, and two cues cancel each other.
"""

from collections.abc import Sequence

from facets.relations.patterns import ARG1, ARG2

__all__ = ["negation_cue"]

_CUES = frozenset(
    "not n't n\u2019t never no nor neither without cannot nobody nothing nowhere hardly denied denies deny".split()
)
# The two tokens that follow decide: these are no negations.
_PSEUDO = frozenset(
    [
        ("not", "only"),
        ("not", "just"),
        ("not", "merely"),
        ("not", "simply"),
        ("not", "until"),
        ("not", "least"),
        ("not", "far"),
        ("not", "to"),  # "not to be confused with" stands below
        ("no", "doubt"),
        ("no", "."),
        ("no", "less"),
        ("no", "other"),
        ("without", "doubt"),
        ("nothing", "but"),
        ("never", "ending"),
    ]
)
_NEGATIVE_PHRASES = (("not", "to", "be"), ("rather", "than"), ("instead", "of"), ("failed", "to"), ("refused", "to"))
_BORDERS = frozenset(", ; : ( ) but however although though while whereas until who which that because".split())
_MAX_SCOPE = 10
# Before the first argument only a clause that is about the whole sentence negates: "it is not true that".
_CLAUSES = frozenset("true case correct false untrue".split())


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
    return len(scope) <= _MAX_SCOPE and _BORDERS.isdisjoint(scope)


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

"""Negation cues and what they negate: explicit cues with a scope, as in NegEx (Chapman et al. 2001).

A cue ("not", "never", "without") negates the words up to the end of its clause. Verbs that imply that their complement
did not happen are cues too ("forgot to", "failed to"; implicatives, Karttunen 1971). Phrases that only look like a
negation ("not only") are not cues, "neither ... nor" is one cue, and in "no room without a balcony" the two cancel out.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from facets.language import lexicon

_CUES = lexicon.FORBIDDEN | lexicon.NOT | lexicon.NEGATIVE_IMPLICATIVES
_CLAUSE_BORDERS = lexicon.BORDERS - {"-"}
_PHRASE_ENDS = lexicon.BORDERS | lexicon.PREPOSITIONS | {"and"}


@dataclass(frozen=True, slots=True)
class Negation:
    """A cue and the tokens that it negates, as indexes of tokens."""

    cue: int
    scope: range


def negations(forms: Sequence[str]) -> list[Negation]:
    """Finds the negations of a sentence, in order.

    ``forms``: the sentence's tokens in lower case.
    """
    found: list[Negation] = []
    for token, form in enumerate(forms):
        if form not in _CUES:
            continue
        following = forms[token + 1] if token + 1 < len(forms) else ""
        end = _next(forms, token, _CLAUSE_BORDERS)
        if form in lexicon.FORBIDDEN:
            border = max((before for before in range(token) if forms[before] in _CLAUSE_BORDERS), default=-1)
            found.append(Negation(token, range(border + 1, end)))
        elif form in lexicon.NOT and (form, following) not in lexicon.NOT_NEGATIVE:
            if form == "nor" and "neither" in forms[:token]:
                continue
            if form == "without":
                outer = [other for other in found if token in other.scope and forms[other.cue] in lexicon.WHOLE_CLAUSE]
                if outer:
                    found = [other for other in found if other not in outer]
                    continue
                end = _next(forms, token, _PHRASE_ENDS)
            found.append(Negation(token, range(token + 1, end)))
        elif form in lexicon.NEGATIVE_IMPLICATIVES and _has_complement(form, following):
            found.append(Negation(token, range(token + 1, end)))
    return found


def _next(forms: Sequence[str], token: int, borders: Set[str]) -> int:
    """Index of the next border after a token; the number of tokens if there is none."""
    return next((end for end in range(token + 1, len(forms)) if forms[end] in borders), len(forms))


def _has_complement(form: str, following: str) -> bool:
    """Whether the verb implies that what follows did not happen: "failed to", "avoided paying", "lacks"."""
    return following in lexicon.COMPLEMENT or following.endswith("ing") or form.startswith(("lack", "miss", "prevent"))

"""Clauses of a parsed sentence, so that entities of different statements are no pair.

A dependency tree is cut above each verb that has a subject of its own: of ``Ann left Oslo , and Bo was born in Rome``
``Ann`` and ``Rome`` stand in different clauses. It is cut too below a name that something describes, and that name
belongs to both: of ``Ann , born in Oslo , lives in Rome`` nothing is said about ``Oslo`` and ``Rome``.
"""

from collections import defaultdict
from collections.abc import Set

from spacy.tokens import Doc, Token

__all__ = ["clauses_of", "is_adjunct"]

_CLAUSES = frozenset(["conj", "ccomp", "advcl", "parataxis"])
_DESCRIPTIONS = frozenset(["relcl", "acl", "appos"])
_SUBJECTS = frozenset(["nsubj", "nsubjpass", "csubj", "csubjpass"])


def clauses_of(doc: Doc, names: Set[int]) -> list[frozenset[int]]:
    """Numbers of the clauses that each token belongs to; all empty without a parse.

    A text's main clauses share the number 0: where sentences end is not decided here.

    Args:
        doc: The text.
        names: Tokens that are part of a name.
    """
    if not doc.has_annotation("DEP"):
        return [frozenset()] * len(doc)
    own = [0] * len(doc)
    more: dict[int, set[int]] = defaultdict(set)
    waiting = [sentence.root for sentence in doc.sents]
    while waiting:
        token = waiting.pop()
        for child in token.children:
            waiting.append(child)
            number = own[token.i]
            if _has_own_subject(child) or (child.dep_ in _DESCRIPTIONS and token.i in names):
                number = child.i + 1
                _share(child, own[token.i], number, more)
            own[child.i] = number
    return [frozenset({number, *more[place]}) for place, number in enumerate(own)]


def _share(child: Token, outside: int, inside: int, more: dict[int, set[int]]) -> None:
    """Who belongs to both clauses: the name that is described, or (``whose wife Ann``) the subject that it owns."""
    if child.dep_ not in _DESCRIPTIONS:
        return
    owned = next((s for s in child.children if s.dep_ in _SUBJECTS and _is_owned(s)), None)
    if owned is None:
        more[child.head.i].add(inside)
    else:
        more[owned.i].add(outside)


def _is_owned(subject: Token) -> bool:
    return any(word.lower_ == "whose" for word in subject.subtree)


def _has_own_subject(verb: Token) -> bool:
    if verb.dep_ not in _CLAUSES or verb.pos_ not in ("VERB", "AUX"):
        return False
    subject = next((child for child in verb.children if child.dep_ in _SUBJECTS), None)
    return subject is not None and subject.pos_ != "PRON"


def is_adjunct(token: Token) -> bool:
    """Whether a noun is the object of a preposition that belongs to a verb; False without a parse."""
    preposition = token.head
    return token.dep_ == "pobj" and preposition.dep_ == "prep" and preposition.head.pos_ in ("VERB", "AUX")

"""The wording of a pattern: its content words, which argument acts, what hedges it, and the clause it forms.

Patterns are short, so lists of function words replace a parser. Tokens are in lower case, with placeholders.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from facets.language.wordnet import WordNet
from facets.relations.assertion import HEARSAY, MODALS, PREPOSITIONS, negation_cue
from facets.relations.patterns import ARG1, ARG2, ENTITY, POSSESSIVE

_MAX_CONTENT = 64  # each word is compared with each word of another pattern; real patterns have fewer than ten
_BE = frozenset("is are was were be been being am 's 're 'm \u2019s \u2019re \u2019m".split())
_HAVE = frozenset("have has had having 've 'd \u2019ve \u2019d".split())
_DO = frozenset("do does did done doing".split())
_AUXILIARIES = _BE | _HAVE | _DO | frozenset("got get gets getting".split())
_DOUBTS = frozenset("perhaps possibly probably likely".split()) | HEARSAY
_DOUBTFUL_MODALS = frozenset("may might could".split())
# Followed by "to": what was tried or planned need not have happened.
_ATTEMPTS = frozenset(
    "try tries tried trying attempt attempts attempted attempting plan plans planned want wants wanted hope hopes "
    "hoped intend intends intended seek seeks sought offer offers offered threaten threatened agree agreed expect "
    "expected refuse refused fail failed propose proposed prepare prepared decide decided claim claims claimed "
    "believed said alleged suspected accused thought".split()
)
# Followed by "to": what was managed has happened.
_ACHIEVED = frozenset(
    "manage manages managed begin begins began begun start starts started continue continues continued come came comes "
    "happen happened used go going went gone helped help".split()
)
_PREPOSITIONS = PREPOSITIONS - {"like", "than"}
# Words that introduce something other than the subject of a clause.
LINKS = _PREPOSITIONS | {"than", "because", "beneath", "underneath"}
_DETERMINERS = frozenset(
    "a an the this that these those my your his her its our their some any each every another either one of's".split()
)
# Left out of a clause: they change neither the relation nor its arguments.
_LIGHT = frozenset(
    "who which whom whose also now later then however just often usually commonly eventually soon finally once again "
    "still already even so it he she they there not n't never no both together , ; : \" '' `` -".split()
)
_FILLERS = frozenset(
    "there here also then very just even still already too quite rather really so as and or if such same own please "
    "kindly 's \u2019s s now it its itself themselves himself herself who which that what whom whose when how why get "
    "gets got getting both much more most less least any some another first only widely generally".split()
)
_FILLERS |= _DETERMINERS | _LIGHT
_FORMER = frozenset("former ex formerly previously once late previous erstwhile".split())
OTHER = "."  # the second argument in a clause


@dataclass(frozen=True, slots=True)
class Wording:
    """The wording of a pattern."""

    content: tuple[str, ...]  # words that carry meaning, in order; the first 64
    head_acts: bool  # `$ARG1` is the subject in the active voice
    # The preposition after a participle, unless it is `by`: `of` in `is made of`. Roles can be compared only between
    # patterns with the same frame.
    frame: str
    is_hedged: bool  # doubted, or with any modal verb
    is_doubted: bool  # possible, attempted or reported
    is_negated: bool
    clause: "Clause"


@dataclass(frozen=True, slots=True)
class Clause:
    """A pattern as one clause in the active voice: ``$ARG2 was once bought by $ARG1`` is ``bought .``.

    The full stop stands for the second argument.
    """

    # For each word after the first argument, its base forms and the word itself; `OTHER` is the second argument. Empty
    # when the pattern says nothing.
    words: tuple[tuple[str, ...], ...]
    is_exchanged: bool  # the first argument of the clause is `$ARG2`
    is_nominal: bool  # the head is a noun or an adjective: `is the owner of`
    modifiers: frozenset[str]  # extra words in a passive: `rome` in `was written in Rome by`
    tense: str  # `past`, `present`, or empty: unknown


def read_wording(tokens: Sequence[str], words: WordNet) -> Wording:
    """Reads a tokenized pattern."""
    starts_with_head = tokens.index(ARG1) < tokens.index(ARG2)
    spoken = [token for token in tokens if token not in (ARG1, ARG2, ENTITY)]
    preposition = _preposition_of_participle(tokens, words)
    is_doubted = not _DOUBTS.isdisjoint(spoken) or ("to" in spoken and not _ATTEMPTS.isdisjoint(spoken))
    return Wording(
        content=tuple(token for token in spoken if _carries_meaning(token))[:_MAX_CONTENT],
        head_acts=starts_with_head != (preposition == "by"),
        frame="" if preposition == "by" else preposition,
        is_hedged=is_doubted or not MODALS.isdisjoint(spoken),
        is_doubted=is_doubted or not _DOUBTFUL_MODALS.isdisjoint(spoken),
        is_negated=bool(negation_cue(tokens)),
        clause=read_clause(tokens, words),
    )


def _carries_meaning(token: str) -> bool:
    is_function_word = token in _AUXILIARIES or token in MODALS or token in _PREPOSITIONS or token in _FILLERS
    return token.isalpha() and not is_function_word and not token.endswith("ly")


def _preposition_of_participle(tokens: Sequence[str], words: WordNet) -> str:
    """The preposition between a participle and the last argument: ``by`` in ``was written in Rome by``, or none."""
    first, last = sorted((tokens.index(ARG1), tokens.index(ARG2)))
    between = tokens[first + 1 : last]
    if "by" in between:
        return "by"
    preposition = next((index for index, token in enumerate(between) if token in _PREPOSITIONS), 0)
    before = between[:preposition]
    # Stricter without "by": "husband" is a verb too, but not a participle.
    is_participle = any(_is_inflected(word, words) for word in before)
    return between[preposition] if before and before[0] in _BE and is_participle else ""


def _may_be_participle(word: str, words: WordNet) -> bool:
    return words.is_verb(word) and not word.endswith("ing") and _carries_meaning(word)


def _is_inflected(word: str, words: WordNet) -> bool:
    return _may_be_participle(word, words) and f"v:{word}" != words.lemmas(word)[0]


def read_clause(tokens: Sequence[str], words: WordNet) -> Clause:
    """What a tokenized pattern says about its two arguments, in the active voice."""
    first, last = sorted((tokens.index(ARG1), tokens.index(ARG2)))
    is_exchanged = tokens[first] == ARG2
    inner, behind = list(tokens[first + 1 : last]), list(tokens[last + 1 :])
    tense = _tense(inner or behind, words)
    if inner and inner[0] in POSSESSIVE and len(inner) > 1 and inner[1] not in _BE:
        # "$ARG1 's wife is $ARG2"
        inner, behind, is_exchanged = [*(token for token in inner[1:] if token not in _BE), "of"], [], not is_exchanged
    elif behind and behind[0] in POSSESSIVE and len(behind) > 1:
        inner, behind = [*inner, *behind[1:], "of"], []
    elif inner == ["and"] and behind:
        # "$ARG1 and $ARG2 are friends"
        inner, behind = [*(token for token in behind if token not in ("each", "other")), "with"], []
    is_apposition = bool(inner) and inner[0] == ","
    is_copular, inner = _without_copula(_without_light_words(inner, words))
    modifiers: frozenset[str] = frozenset()
    is_nominal = is_copular or is_apposition
    if next((index for index, token in enumerate(inner) if words.is_verb(token)), None) == 0:
        verb = inner[0]
        if inner[-1] == "by" and not verb.endswith("s") and _may_be_participle(verb, words):
            modifiers = frozenset(token for token in inner[1:-1] if token not in LINKS)
            inner, is_exchanged, is_nominal = [_basic_form(verb, words)], not is_exchanged, is_apposition
        elif is_nominal and _is_inflected(verb, words):
            inner, is_nominal = ["be", *inner], is_apposition
    clause_words = [_forms(token, words) for token in [*inner, OTHER, *_without_light_words(behind, words)]]
    says_something = any(forms[0] != OTHER for forms in clause_words)
    return Clause(tuple(clause_words) if says_something else (), is_exchanged, is_nominal, modifiers, tense)


def _without_light_words(tokens: Sequence[str], words: WordNet) -> list[str]:
    """Removes articles, adverbs, modals, and verbs that say that something was tried or managed."""
    kept = [token for token in tokens if token not in _DETERMINERS and token not in _LIGHT and token not in MODALS]
    kept = [token for token in kept if not token.endswith("ly") or words.lemmas(token)]
    for index, token in enumerate(kept[:-2]):
        if kept[index + 1] == "to" and (token in _ATTEMPTS or token in _ACHIEVED):
            return [*(other for other in kept[:index] if other not in _AUXILIARIES), *kept[index + 2 :]]
    return kept


def _without_copula(tokens: list[str]) -> tuple[bool, list[str]]:
    """Whether there is a copula, and the words after the auxiliaries."""
    is_copular = False
    while tokens:
        token, rest = tokens[0], tokens[1:]
        if token in _BE:
            is_copular = True
        elif not rest or not (token in _HAVE or token in _DO or token == "to"):
            break
        tokens = rest
    return is_copular, [token for token in tokens if token not in _FORMER]


def _basic_form(verb: str, words: WordNet) -> str:
    return next((lemma[2:] for lemma in words.lemmas(verb) if lemma.startswith("v:")), verb)


def _forms(token: str, words: WordNet) -> tuple[str, ...]:
    """Base forms of a word, then the word itself."""
    if token in LINKS or token == OTHER:
        return (token,)
    basic = dict.fromkeys(lemma[2:] for lemma in words.lemmas(token))
    basic.pop(token, None)
    return (*basic, token)


def _tense(tokens: Sequence[str], words: WordNet) -> str:
    for index, token in enumerate(tokens):
        if token in _FORMER or token in ("was", "were", "had", "did", "used", "became"):
            return "past"
        if token in _HAVE:
            following = next((other for other in tokens[index + 1 :] if other not in _LIGHT), "")
            is_perfect = following == "been" or (_is_inflected(following, words) and not following.endswith("s"))
            return "past" if is_perfect else "present"
        if token in ("is", "are", "am", "'re", "does", "do", "remains", "becomes"):
            return "past" if not _FORMER.isdisjoint(tokens) else "present"
        if token not in _LIGHT and words.is_verb(token) and token not in LINKS:
            basic = _basic_form(token, words)
            if token == basic or token.endswith("ing"):
                return ""
            return "present" if token.endswith("s") and token.startswith(basic[:-1]) else "past"
    return ""

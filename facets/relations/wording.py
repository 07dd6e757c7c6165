"""The surface of a pattern: its words, who acts, what hedges it, and the clause it makes of its two arguments.

Wording is not parsed: patterns are short, and lists of function words do. Tokens are in lower case, placeholders kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from facets.language.wordnet import WordNet
from facets.relations.assertion import MODALS, negation_cue
from facets.relations.patterns import ARG1, ARG2, ENTITY

_MAX_CONTENT = 64  # each is compared with each of another pattern; patterns of people have fewer than ten
_BE = frozenset("is are was were be been being am 's 're".split())
_HAVE = frozenset("have has had having 've".split())
_DO = frozenset("do does did done".split())
_GET = frozenset("got get gets getting".split())
_AUXILIARIES = _BE | _HAVE | _DO | _GET | frozenset(["'d"])
_DOUBTS = frozenset("allegedly reportedly perhaps possibly probably alleged rumored rumoured supposedly likely".split())
_DOUBTFUL_MODALS = frozenset("may might could".split())
# With "to": what was tried or planned need not have happened.
_ATTEMPTS = frozenset(
    "try tries tried trying attempt attempts attempted attempting plan plans planned want wants wanted hope hopes "
    "hoped intend intends intended seek seeks sought offer offers offered threaten threatened agree agreed expect "
    "expected refuse refused fail failed propose proposed prepare prepared decide decided claim claims claimed "
    "believed said alleged suspected accused thought".split()
)
# With "to": what was managed has happened.
_ACHIEVED = frozenset(
    "manage manages managed begin begins began begun start starts started continue continues continued come came comes "
    "happen happened used go going went gone helped help".split()
)
_PREPOSITIONS = frozenset(
    "in on at of to by from with for into onto against over under about between among as near through during within "
    "around across after before upon off out up down via without toward towards inside outside behind beyond".split()
)
# What leads to something else than the subject of a clause.
LINKS = _PREPOSITIONS | frozenset("than because above below beneath underneath".split())
_FILLERS = frozenset(
    "a an the this that these those his her its their some any one another first also now later then however only just "
    "very more most much widely often usually commonly generally eventually soon finally once again still already even "
    "so and or who which whom whose it he she they there not n't".split()
)
_DETERMINERS = frozenset("a an the his her its their my our your this that these those some any one of's".split())
# Left out of a clause: they change neither who nor what.
_LIGHT = frozenset(
    "also now later then however just often usually commonly eventually soon finally once again still already even so "
    "who which whom whose it he she they there not n't never no both together , ; : \" '' `` -".split()
)
# Both arguments stand alike, so that exchanging them changes nothing.
_MUTUAL = frozenset(
    "married marry marries border borders bordered bordering met meet meets neighbor neighbour neighboring sibling "
    "siblings cousin cousins spouse partner partners twin twins adjacent similar equal differs differ different ally "
    "allies allied related relative relatives friend friends colleague colleagues between".split()
)
_POSSESSIVE = frozenset(["'s", "\u2019s", "'", "\u2019"])
_COPULAS = frozenset("become becomes became remain remains remained".split())  # as "is" before a noun
_AS_COPULAS = frozenset(  # with "as"
    "serve serves served serving act acts acted acting".split()
)
_FORMER = frozenset("former ex formerly previously once late previous erstwhile".split())
_STANDING = frozenset("stand pass live go come sit stop drop swing get lie wait abide".split())  # "by" is a place
OTHER = "."  # the second argument in a clause


@dataclass(frozen=True, slots=True)
class Wording:
    """The surface of a pattern."""

    content: tuple[str, ...]  # words that carry meaning, in order; the first 64
    head_acts: bool  # `$ARG1` is what a verb in the active voice would start with
    # The preposition after a participle, unless it is `by`: `of` in `is made of`. Who acts can be compared between
    # patterns of one frame only.
    frame: str
    is_mutual: bool  # a word says the same of both arguments
    is_hedged: bool  # it may, might, was tried or is said
    is_doubted: bool  # it may or might be, was tried or is said; what can or should be, mostly is
    is_negated: bool  # a cue negates it
    clause: "Clause"  # what it says of its two arguments


@dataclass(frozen=True, slots=True)
class Clause:
    """A pattern as one clause in the active voice: ``$ARG2 was once bought by $ARG1`` is ``bought .``."""

    # Basic forms of each word, and the word itself last, behind the first argument, which is left out; `OTHER` stands
    # for the second one. Empty where nothing is said.
    words: tuple[tuple[str, ...], ...]
    is_exchanged: bool  # the first argument of the clause is `$ARG2`
    is_nominal: bool  # a noun or an adjective says it: `is the owner of`
    modifiers: frozenset[str]  # what a passive has beside: `rome` in `was written in Rome by`
    tense: str  # `past`, `present`, or nothing where it cannot be seen


def read_wording(tokens: Sequence[str], words: WordNet) -> Wording:
    """The surface of a tokenized pattern.

    Example:
        >>> from facets.language.wordnet import wordnet
        >>> wording = read_wording("$ARG1 may have been killed by $ARG2".split(), wordnet())
        >>> wording.content, wording.head_acts, wording.is_hedged
        (('killed',), False, True)
    """
    starts_with_head = tokens.index(ARG1) < tokens.index(ARG2)
    spoken = [token for token in tokens if token not in (ARG1, ARG2, ENTITY)]
    content = tuple(token for token in spoken if _carries_meaning(token))[:_MAX_CONTENT]
    preposition = _after_participle(tokens, words)
    doubted = not _DOUBTS.isdisjoint(spoken) or ("to" in spoken and not _ATTEMPTS.isdisjoint(spoken))
    return Wording(
        content=content,
        head_acts=starts_with_head != (preposition == "by"),
        frame="" if preposition == "by" else preposition,
        is_mutual=not _MUTUAL.isdisjoint(spoken),
        is_hedged=doubted or not MODALS.isdisjoint(spoken),
        is_doubted=doubted or not _DOUBTFUL_MODALS.isdisjoint(spoken),
        is_negated=bool(negation_cue(tokens)),
        clause=read_clause(tokens, words),
    )


def _carries_meaning(token: str) -> bool:
    is_function_word = token in _AUXILIARIES or token in MODALS or token in _PREPOSITIONS or token in _FILLERS
    return token.isalpha() and not is_function_word and not token.endswith("ly")


def _after_participle(tokens: Sequence[str], words: WordNet) -> str:
    """The preposition that a participle has before the last argument: ``by`` in ``was written in Rome by``, or none."""
    arguments = [place for place, token in enumerate(tokens) if token in (ARG1, ARG2)]
    between = tokens[arguments[0] + 1 : arguments[1]]
    prepositions = [place for place, token in enumerate(between) if token in _PREPOSITIONS]
    if not prepositions:
        return ""
    if "by" in between:
        before = between[: between.index("by")]
        return "by" if any(_may_be_participle(word, words) for word in before) else ""
    before = between[: prepositions[0]]
    # Stricter without "by": husband is a verb too, but no participle.
    inflected = (word for word in before if _is_inflected(word, words))
    return between[prepositions[0]] if before and before[0] in _BE and any(inflected) else ""


def _may_be_participle(word: str, words: WordNet) -> bool:
    return words.is_verb(word) and not word.endswith("ing") and _carries_meaning(word)


def _is_inflected(word: str, words: WordNet) -> bool:
    return _may_be_participle(word, words) and f"v:{word}" != words.lemmas(word)[0]


def read_clause(tokens: Sequence[str], words: WordNet) -> Clause:
    """What a tokenized pattern says of its two arguments, in the active voice.

    Example:
        >>> from facets.language.wordnet import wordnet
        >>> clause = read_clause("$ARG1 was later bought by $ARG2".split(), wordnet())
        >>> clause.words, clause.is_exchanged, clause.tense
        ((('buy',), ('.',)), True, 'past')
    """
    first, last = sorted((tokens.index(ARG1), tokens.index(ARG2)))
    exchanged = tokens[first] == ARG2
    inner, behind = list(tokens[first + 1 : last]), list(tokens[last + 1 :])
    tense = _tense(inner or behind, words)
    if inner and inner[0] in _POSSESSIVE and len(inner) > 1 and inner[1] not in _BE:
        # "$ARG1 's wife is $ARG2"
        inner, behind, exchanged = [*inner[1:], "of"], [], not exchanged
        inner = [token for token in inner if token not in _BE]
    elif behind and behind[0] in _POSSESSIVE and len(behind) > 1:
        inner, behind = [*inner, *behind[1:], "of"], []
    elif inner == ["and"] and behind:
        # "$ARG1 and $ARG2 are friends"
        inner, behind = [*(token for token in behind if token not in ("each", "other")), "with"], []
    inner, is_participle = _plain(inner, words), bool(inner) and inner[0] == ","
    is_copular, inner = _without_copula(inner)
    if is_copular and inner == ["like"]:
        inner = ["similar", "to"]  # no verb here
    modifiers: frozenset[str] = frozenset()
    verb = next((place for place, token in enumerate(inner) if words.is_verb(token)), None)
    if verb == 0 and inner[-1:] == ["by"] and _is_passive(inner, is_copular or is_participle, words):
        modifiers = frozenset(token for token in inner[1:-1] if token not in LINKS)
        inner, exchanged, is_copular = [_basic(inner[0], words)], not exchanged, False
    elif verb == 0 and (is_copular or is_participle) and inner[0].endswith("ing") and inner[0] not in LINKS:
        is_copular = False
    elif verb == 0 and (is_copular or is_participle) and _is_inflected(inner[0], words):
        inner, is_copular = ["be", *inner], False
    found = [_forms(token, words) for token in [*inner, OTHER, *_plain(behind, words)]]
    says = len(found) > 1 and any(forms[0] != OTHER for forms in found)
    return Clause(tuple(found) if says else (), exchanged, is_copular or is_participle, modifiers, tense)


def _plain(tokens: Sequence[str], words: WordNet) -> list[str]:
    """Without articles, adverbs, modals, and what only says that something was tried or done."""
    kept = [token for token in tokens if token not in _DETERMINERS and token not in _LIGHT and token not in MODALS]
    kept = [token for token in kept if not token.endswith("ly") or words.lemmas(token)]
    for place, token in enumerate(kept[:-1]):
        if kept[place + 1] == "to" and (token in _ATTEMPTS or token in _ACHIEVED) and kept[place + 2 :]:
            if kept[place + 2] in ("be", "have", "get", "become") or kept[place + 2] not in LINKS:
                return [*(own for own in kept[:place] if own not in _AUXILIARIES), *kept[place + 2 :]]
    return kept


def _without_copula(tokens: list[str]) -> tuple[bool, list[str]]:
    """Whether something is said to be something, and what stands behind the auxiliaries."""
    is_copular = False
    while tokens:
        token, rest = tokens[0], tokens[1:]
        if token in _BE or token in _COPULAS:
            is_copular = True
        elif token in _AS_COPULAS and rest[:1] == ["as"]:
            is_copular, rest = True, rest[1:]
        elif token in _GET and len(rest) > 1 and rest[-1] == "by":
            is_copular = True
        elif token in _HAVE and rest and (rest[0] in _BE or rest[0] in _COPULAS or rest[0].endswith(("ed", "en"))):
            pass
        elif token in _HAVE and rest and rest[0] in _PARTICIPLES:
            pass
        elif (token in _DO and rest) or (token == "to" and rest):
            pass
        else:
            break
        tokens = rest
    return is_copular, [token for token in tokens if token not in _FORMER]


# Irregular ones that do not end as others do; after "has".
_PARTICIPLES = frozenset(
    "met won lost bought sold made built led held paid said told sent lent left kept felt fought found had heard "
    "taught caught brought sought thought sung drunk begun run swum become come gone done known grown thrown shown "
    "drawn flown worn torn born sworn put set cut hit shot beat spent stood understood become read overcome".split()
)


def _is_passive(inner: Sequence[str], has_sign: bool, words: WordNet) -> bool:
    if inner[0].endswith("s"):
        return False
    return _may_be_participle(inner[0], words) and (has_sign or _basic(inner[0], words) not in _STANDING)


def _basic(word: str, words: WordNet) -> str:
    """The basic form of a verb."""
    return next((lemma[2:] for lemma in words.lemmas(word) if lemma.startswith("v:")), word)


def _forms(token: str, words: WordNet) -> tuple[str, ...]:
    if token in LINKS or token == OTHER:
        return (token,)
    basic = dict.fromkeys(lemma[2:] for lemma in words.lemmas(token))
    basic.pop(token, None)
    return (*basic, token)


def _tense(tokens: Sequence[str], words: WordNet) -> str:
    for place, token in enumerate(tokens):
        if token in _FORMER or token in ("was", "were", "had", "did", "used", "became"):
            return "past"
        if token in _HAVE:
            following = [t for t in tokens[place + 1 :] if t not in _LIGHT]
            return "past" if (following and following[0] in _PARTICIPLES | {"been"}) or _ends(following) else "present"
        if token in ("is", "are", "am", "'re", "does", "do", "remains", "becomes"):
            return "past" if not _FORMER.isdisjoint(tokens) else "present"
        if token not in _LIGHT and words.is_verb(token) and token not in LINKS:
            basic = _basic(token, words)
            if token == basic or token.endswith("ing"):
                return ""
            return "present" if token.endswith("s") and token.startswith(basic[:-1]) else "past"
    return ""


def _ends(tokens: Sequence[str]) -> bool:
    return bool(tokens) and tokens[0].endswith(("ed", "en"))

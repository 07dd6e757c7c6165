"""What a pattern says on its surface: its words, who acts, whether it is only possible.

Nothing is parsed: patterns are short, and lists of function words do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from facets.relations.negation import negation_cue
from facets.relations.patterns import ARG1, ARG2, ENTITY
from facets.relations.wordnet import WordNet

__all__ = ["Wording", "read_wording"]

_MAX_CONTENT = 64  # each is compared with each of another pattern; patterns of people have fewer than ten
_BE = frozenset("is are was were be been being am 's 're".split())
_AUXILIARIES = _BE | frozenset("have has had having do does did done get got gets 've 'd".split())
_MODALS = frozenset("may might could can would should must will shall cannot ought 'll wo ca".split())
_DOUBTS = frozenset("allegedly reportedly perhaps possibly probably alleged rumored rumoured supposedly likely".split())
# With "to": what was tried or planned need not have happened.
_ATTEMPTS = frozenset(
    "try tries tried trying attempt attempts attempted attempting plan plans planned want wants wanted hope hopes "
    "hoped intend intends intended seek seeks sought offer offers offered threaten threatened agree agreed expect "
    "expected refuse refused fail failed propose proposed prepare prepared decide decided claim claims claimed "
    "believed said alleged suspected accused thought".split()
)
_PREPOSITIONS = frozenset(
    "in on at of by to from with for into onto against over under about between among as near through during within "
    "around across after before upon off out up down via without toward towards inside outside behind beyond".split()
)
_FILLERS = frozenset(
    "a an the this that these those his her its their some any one another first also now later then however only just "
    "very more most much widely often usually commonly generally eventually soon finally once again still already even "
    "so and or who which whom whose it he she they there not n't".split()
)
# Both arguments stand alike, so that exchanging them changes nothing.
_MUTUAL = frozenset(
    "married marry marries border borders bordered bordering met meet meets neighbor neighbour neighboring sibling "
    "siblings cousin cousins spouse partner partners twin twins adjacent similar equal differs differ different ally "
    "allies allied related relative relatives friend friends colleague colleagues between".split()
)


@dataclass(frozen=True, slots=True)
class Wording:
    """The surface of a pattern.

    Attributes:
        content: Words that carry meaning, in order; the first 64.
        head_acts: ``$ARG1`` is what a verb in the active voice would start with.
        frame: The preposition after a participle, unless it is ``by``: ``of`` in ``is made of``. Who acts can be
            compared between patterns of one frame only.
        is_mutual: A word says the same of both arguments.
        is_hedged: It may, might, was tried or is said.
        is_negated: A cue negates it.
    """

    content: tuple[str, ...]
    head_acts: bool
    frame: str
    is_mutual: bool
    is_hedged: bool
    is_negated: bool


def read_wording(tokens: Sequence[str], words: WordNet) -> Wording:
    """The surface of a tokenized pattern.

    Args:
        tokens: In lower case, placeholders kept.
        words: Tells verbs.

    Example:
        >>> from facets.relations.wordnet import wordnet
        >>> wording = read_wording("$ARG1 may have been killed by $ARG2".split(), wordnet())
        >>> wording.content, wording.head_acts, wording.is_hedged
        (('killed',), False, True)
    """
    starts_with_head = tokens.index(ARG1) < tokens.index(ARG2)
    spoken = [token for token in tokens if token not in (ARG1, ARG2, ENTITY)]
    content = tuple(token for token in spoken if _carries_meaning(token))[:_MAX_CONTENT]
    preposition = _after_participle(tokens, words)
    hedged = not _MODALS.isdisjoint(spoken) or not _DOUBTS.isdisjoint(spoken)
    return Wording(
        content=content,
        head_acts=starts_with_head != (preposition == "by"),
        frame="" if preposition == "by" else preposition,
        is_mutual=not _MUTUAL.isdisjoint(spoken),
        is_hedged=hedged or ("to" in spoken and not _ATTEMPTS.isdisjoint(spoken)),
        is_negated=bool(negation_cue(tokens)),
    )


def _carries_meaning(token: str) -> bool:
    is_function_word = token in _AUXILIARIES or token in _MODALS or token in _PREPOSITIONS or token in _FILLERS
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
    inflected = (word for word in before if _may_be_participle(word, words) and f"v:{word}" != words.lemmas(word)[0])
    return between[prepositions[0]] if before and before[0] in _BE and any(inflected) else ""


def _may_be_participle(word: str, words: WordNet) -> bool:
    return words.is_verb(word) and not word.endswith("ing") and _carries_meaning(word)

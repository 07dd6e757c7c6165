"""Suggests topics of a text: its most telling nouns, then what its facets predict that it may continue with.

Shape suffixes: T texts, K topics of a text, M words of a topic, W words of a text, D dimensions.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, zip_longest

import numpy as np

from facets.arrays import Bools, Floats
from facets.errors import InvalidInputError
from facets.language.interruption import check_interrupted
from facets.language.reading import read
from facets.language.sentences import sentences_of
from facets.language.terms import terms
from facets.language.tokenizer import check_text, check_texts
from facets.language.vectors import WordVectors, unit_rows
from facets.language.vocabulary import Vocabulary
from facets.language.wordnet import wordnet
from facets.model.contract import TextEncoder, TextModel, check_readable
from facets.model.score_curves import apply_curve
from facets.texts.explanation import NearestWord

CURVE = "topic"  # name of the curve that maps a topic's cohesion to its likelihood
_SAME = 0.8  # cosine above which two topics are the same
_ABOUT = 0.55  # a topic is about a word if their cosine is above this
_CONTEXT = 0.5  # weight of the words of the text beside each facet, chosen on twenty prompts
_MOST_NOUNS = 10  # of a text, and most topics by default
# Chosen on 216 files whose writers gave them tags (docs/measure/experiments.md).
_COUNT_POWER, _CLOSENESS_POWER, _RARITY = 1.2, 1.5, 1e-4
_SAME_NOUN = 0.7  # cosine above which two nouns are one topic
_CENTRE = 1.5  # weight of the nouns of the text beside the noun of a topic
_WORD = re.compile(r"[^\W\d_]+")
_NUMBERS = frozenset(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety".split()
)
_SURELY = 0.5  # certainty that a word is a kind of period: "month", but not "school"
_RARE = 2e-6  # least probability of a word that describes a topic


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a text, or one that it may continue with."""

    # A noun of the text, if any, then the nearest words of the vocabulary, closest first.
    words: tuple[NearestWord, ...]
    # Probability that one of the next 25 content words is about it, in `[0, 1]`; None if the model has no curve for it.
    likelihood: float | None
    novelty: float  # 1 minus the cosine of the closest word of the text, in `[0, 1]`


@dataclass(frozen=True, slots=True)
class TextTopics:
    """The topics of one text."""

    topics: tuple[Topic, ...]  # of the text's nouns, best first, then of facets, most likely first
    # Weighted mean of the words of each topic (eq. 4.1), `[K, D]`, unit norm: query facets for collections in the same
    # word space.
    vectors: Floats


def suggest_topics(
    model: TextModel,
    texts: Sequence[str],
    *,
    num_topics: int | None = None,
    num_words: int = 3,
    keep: Sequence[str] = (),
    avoid: Sequence[str] = (),
    encoder: TextEncoder | None = None,
) -> list[TextTopics]:
    """Suggests topics for each text: those of its most telling nouns, then those of its facets, most likely first.

    ``texts``: the texts so far; facets are those of the end of a long one. ``num_topics``: most topics per text; None:
    ten; there are fewer when they are similar or avoided. ``num_words``: words that describe a topic, >= 1. ``keep``:
    words and phrases to pursue; each text is read as if it ended with them. ``avoid``: words and phrases to avoid;
    topics about them are left out. ``encoder``: encodes the texts in place of the model, such as a server's queue.

    Raises InvalidInputError, also if the model knows no word of a phrase, or ``keep`` and ``avoid`` share one.
    """
    check_texts(texts, "suggest_topics")
    for position, text in enumerate(texts):
        check_readable(model, text, ("texts", position))
    for name, number in (("num_topics", 1 if num_topics is None else num_topics), ("num_words", num_words)):
        if number < 1:
            raise InvalidInputError(f"must be >= 1, got {number}", path=name)
    kept_ND, avoided_ND = _vectors_of(model, keep, "keep"), _vectors_of(model, avoid, "avoid")
    _check_apart(kept_ND, avoided_ND, keep, avoid)
    if not texts:
        return []
    ends = [_end_of(model, text, keep) for text in texts]
    words = [words_of_text(model, end) for end in ends]
    num_topics = num_topics or _MOST_NOUNS
    num_nouns = min(num_topics, _MOST_NOUNS)
    nouns = [_nouns_of(model, " ".join([text, *keep]), num_nouns) for text in texts]
    sought = [own_ND for _, own_ND in nouns]
    short = [place for place, (own, _) in enumerate(nouns) if len(own) < num_topics or avoid]
    if short:
        units_TKD = unit_rows((encoder or model).encode([ends[place] for place in short]))
        context_TD = unit_rows(np.stack([words[place].sum(axis=0) for place in short]))
        facets_TKD = units_TKD + units_TKD.any(axis=2, keepdims=True) * _CONTEXT * context_TD[:, None]
        for place, facets_KD in zip(short, facets_TKD, strict=True):
            sought[place] = np.concatenate([sought[place], facets_KD])
    # All texts at once, because reading the whole vocabulary's vectors costs more than comparing them.
    excluded = _not_topics(model.words.vocabulary)
    nearest = iter(model.words.nearest(np.concatenate(sought), 3 * num_words + num_nouns, excluded=excluded))
    return [
        _topics(
            model,
            sought_KD,
            _named(own, list(islice(nearest, len(sought_KD))), num_words),
            num_own=len(own),
            text_WD=words[text],
            avoided_ND=avoided_ND,
            num_topics=num_topics,
        )
        for text, ((own, _), sought_KD) in enumerate(zip(nouns, sought, strict=True))
    ]


def _named(
    nouns: Sequence[str], nearest: Sequence[list[tuple[str, float]]], num_words: int
) -> list[list[tuple[str, float]]]:
    """The words of each topic: its noun first, if it has one; no topic has words of one before."""
    named, used = list[list[tuple[str, float]]](), set(nouns)
    for noun, found in zip_longest(nouns, nearest):
        first = [(word, cosine) for word, cosine in found if word == noun] or [(noun, 1.0)] if noun else []
        named.append([*first, *(pair for pair in found if pair[0] not in used)][:num_words])
        used |= {word for word, _ in named[-1]} if noun else set()
    return named


def _nouns_of(model: TextModel, text: str, num_nouns: int) -> tuple[list[str], Floats]:
    """The most telling nouns of a text, best first, and their vectors ``[K, D]`` within the text.

    Frequent in the text, rare elsewhere, and close to its other nouns; in lower case, because names are no topics.
    """
    vocabulary, said = model.words.vocabulary, set(_WORD.findall(text))
    times = Counter(word for words in model.tokenizer.words([text]) for word in words if word.isalpha())
    counts = Counter[str]()
    for word, number in times.items():
        check_interrupted()
        counts[terms(word)[0]] += number
    nouns = [word for word in times if word in said]
    rows = vocabulary.rows(nouns)
    is_topic = ~np.append(_not_topics(vocabulary), True)[rows]
    nouns, rows = [noun for noun, kept in zip(nouns, is_topic, strict=True) if kept], rows[is_topic]
    if not nouns:
        return [], np.empty((0, model.words.dim), dtype=np.float32)
    units_ND, frequencies_N = model.words.units(rows), vocabulary.probabilities[rows]
    worth_N = np.array([counts[terms(noun)[0]] for noun in nouns]) ** _COUNT_POWER * _RARITY / (_RARITY + frequencies_N)
    centre_D = unit_rows((worth_N[:, None] * units_ND).sum(axis=0, keepdims=True))[0].astype(np.float32)
    worth_N = worth_N * np.maximum(units_ND @ centre_D, 0.01) ** _CLOSENESS_POWER
    chosen: list[int] = []
    for noun in np.argsort(-worth_N, kind="stable").tolist():
        if all(float(units_ND[noun] @ units_ND[other]) <= _SAME_NOUN for other in chosen):
            chosen.append(noun)
        if len(chosen) == num_nouns:
            break
    return [nouns[noun] for noun in chosen], unit_rows(units_ND[chosen] + _CENTRE * centre_D)


@lru_cache(4)
def _not_topics(vocabulary: Vocabulary) -> Bools:
    """Words that people would not use for a topic: all but frequent nouns in their base form, and times."""
    excluded = np.ones(len(vocabulary.is_stop), dtype=np.bool_)
    for row in np.flatnonzero((vocabulary.probabilities >= _RARE) & ~vocabulary.is_stop[:-1]).tolist():
        word = vocabulary.words[row]
        is_topic = len(word) > 2 and word not in _NUMBERS and wordnet().is_noun(word)
        excluded[row] = not is_topic or wordnet().hypernymy(word, "period") > _SURELY
    return excluded


def _end_of(model: TextModel, text: str, keep: Sequence[str]) -> str:
    """The last sentences of a text that fit the model together with the kept phrases."""
    room = model.max_tokens - sum(len(words) for words in model.tokenizer.words(keep))
    sentences = [sentence.text for sentence in sentences_of(read(text).text)] or [text]
    taken: list[str] = []
    for sentence in reversed(sentences):
        room -= len(model.tokenizer.words([sentence])[0])
        if room < 0 and taken:
            break
        taken.append(sentence)
    return " ".join([*reversed(taken), *keep])


def words_of_text(model: TextModel, text: str) -> Floats:
    """Unit vectors of the content words of a text, ``[W, D]``."""
    vocabulary = model.words.vocabulary
    rows = vocabulary.rows(model.tokenizer.words([text])[0])
    return model.words.units(rows[~vocabulary.is_stop[rows]])


def _vectors_of(model: TextModel, phrases: Sequence[str], name: str) -> Floats:
    """Unit-length mean word vector of each phrase, ``[N, D]``."""
    means = np.zeros((len(phrases), model.words.dim), np.float32)
    for i, phrase in enumerate(phrases):
        check_text(phrase, (name, i))
        vectors_WD = words_of_text(model, phrase)
        if not len(vectors_WD):
            raise InvalidInputError(f"expected words that the model knows, got {phrase[:40]!r}", path=(name, i))
        means[i] = vectors_WD.mean(axis=0)
    return unit_rows(means)


def _check_apart(kept_ND: Floats, avoided_ND: Floats, keep: Sequence[str], avoid: Sequence[str]) -> None:
    if kept_ND.size and avoided_ND.size:
        kept, avoided = divmod(int((kept_ND @ avoided_ND.T).argmax()), len(avoid))
        if kept_ND[kept] @ avoided_ND[avoided] > _SAME:
            message = f"expected other words than in keep, got {avoid[avoided]!r}, which is {keep[kept]!r} there"
            raise InvalidInputError(message, path=("avoid", avoided))


def topic_vectors(words: WordVectors, nearest_words: Sequence[Sequence[tuple[str, float]]]) -> Floats:
    """Mean of the nearest words of each facet, weighted by their cosines, at unit length, ``[K, D]`` (eq. 4.1)."""
    vectors = [
        np.array([cosine for _, cosine in nearest], np.float32)
        @ words.units(words.vocabulary.rows([word for word, _ in nearest]))
        for nearest in nearest_words
    ]
    return unit_rows(np.stack(vectors)) if vectors else np.empty((0, words.dim), np.float32)


def _topics(
    model: TextModel,
    facets_KD: Floats,
    nearest: Sequence[list[tuple[str, float]]],
    *,
    num_own: int,
    text_WD: Floats,
    avoided_ND: Floats,
    num_topics: int,
) -> TextTopics:
    kept = [facet for facet in np.flatnonzero(facets_KD.any(axis=1)).tolist() if nearest[facet]]
    facets_KD, nearest = facets_KD[kept], [nearest[facet] for facet in kept]
    topics_KD = topic_vectors(model.words, nearest)
    cohesion_K = (unit_rows(facets_KD) * topics_KD).sum(axis=1)  # the likelihood of a topic depends on it
    closest_K = (topics_KD @ text_WD.T).max(axis=1, initial=0.0)
    curve_2N = model.score_curves.get(CURVE)
    likelihood_K = None if curve_2N is None else apply_curve(curve_2N, cohesion_K)
    chosen: list[int] = []
    by_facets = num_own + np.argsort(-cohesion_K[num_own:], kind="stable")
    for topic in (*range(num_own), *by_facets.tolist()):
        is_avoided = avoided_ND.size and float((avoided_ND @ topics_KD[topic]).max()) > _ABOUT
        if not is_avoided and all(float(topics_KD[topic] @ topics_KD[other]) <= _SAME for other in chosen):
            chosen.append(topic)
    chosen = chosen[:num_topics]
    topics = tuple(
        Topic(
            tuple(NearestWord(word, cosine) for word, cosine in nearest[topic]),
            None if likelihood_K is None else float(likelihood_K[topic]),
            float(np.clip(1.0 - closest_K[topic], 0.0, 1.0)),
        )
        for topic in chosen
    )
    return TextTopics(topics, topics_KD[chosen])

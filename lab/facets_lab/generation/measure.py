"""Effect of topics on continuations of held-out text: perplexity, used words, variety (Chang 2022, section 4.3.3).

Shape suffixes: J topics, D dimensions of a word vector.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConfigError, InvalidInputError
from facets.texts.topics import suggest_topics, topic_vectors
from facets_lab.generation.generator import WORD, Generator, Pieces, cut_pieces, read_pieces, told

PROMPT, CONTINUATION = 64, 50  # pieces
NUM_WORDS = 3  # words per topic


@dataclass(frozen=True, slots=True)
class Prompt:
    """The beginning of a document, its continuation, and chosen topics."""

    tokens: NDArray[np.int64]  # pieces of the beginning
    following: NDArray[np.int64]  # the next pieces
    next_words: NDArray[np.int64]  # rows of their words, without stop words
    topics: tuple[tuple[str, ...], ...]  # words of each chosen topic
    vectors: NDArray[np.float32]  # the topics, [J, D]


def read_prompts(generator: Generator, pieces: Pieces, *, count: int, seed: int) -> list[Prompt]:
    """Beginnings of random documents, with 1 to K of the topics suggested for each."""
    random = np.random.default_rng(seed)
    lengths = np.diff(pieces.starts, append=len(pieces.tokens))
    starts = random.permutation(pieces.starts[lengths > PROMPT + CONTINUATION])[:count]
    texts = [generator.decode(pieces.tokens[start : start + PROMPT]) for start in starts]
    prompts = []
    for start, found in zip(starts, suggest_topics(generator.model, texts, num_words=NUM_WORDS), strict=True):
        following = slice(start + PROMPT, start + PROMPT + CONTINUATION)
        next_words = pieces.words[following]
        next_words = next_words[next_words >= 0]
        if not found.topics or not len(next_words):
            continue
        chosen = random.permutation(len(found.topics))[: random.integers(1, generator.config.max_topics + 1)]
        prompts.append(
            Prompt(
                pieces.tokens[start : start + PROMPT],
                pieces.tokens[following],
                next_words,
                tuple(tuple(word.word for word in found.topics[place].words) for place in chosen),
                found.vectors[chosen],
            )
        )
    if len(prompts) < 2:
        raise ConfigError(f"expected two documents of more than {PROMPT + CONTINUATION} pieces, got {len(prompts)}")
    return prompts


def perplexities(generator: Generator, prompts: Sequence[Prompt], *, seed: int) -> dict[str, float]:
    """Perplexity of the true continuation, given nothing, the topics, some of its words, or as many of another text."""
    random, units = np.random.default_rng(seed), generator.model.words.unit_vectors
    losses: dict[str, list[NDArray[np.float32]]] = {}
    for place, prompt in enumerate(prompts):
        count = random.integers(1, generator.config.max_topics + 1)
        own, other = (
            units[random.permutation(prompts[(place + step) % len(prompts)].next_words)[:count]] for step in (0, 1)
        )
        for name, vectors in (
            ("none", units[:0]),
            ("topics", prompt.vectors),
            ("next_words", own),
            ("words_of_another_text", other),
        ):
            codes = told(prompt.tokens, len(vectors))
            losses.setdefault(name, []).append(generator.losses(codes, prompt.following, vectors))
    return {name: float(np.exp(np.concatenate(parts).mean())) for name, parts in losses.items()}


def continuations(generator: Generator, prompts: Sequence[Prompt], *, seed: int) -> dict[str, NDArray[np.int64]]:
    """Generated pieces, given nothing, the topics' words as text, or the topics as vectors."""
    tokens, none = [prompt.tokens for prompt in prompts], [prompt.vectors[:0] for prompt in prompts]
    spelt = (" ".join(word for topic in prompt.topics for word in topic) for prompt in prompts)
    pasted = (cut_pieces(generator.tokenizer, text, generator.model.words)[0] for text in spelt)
    room = generator.longest - CONTINUATION
    read = {
        "none": (tokens, none),
        "words_pasted": ([np.insert(t, -1, p)[-room:] for t, p in zip(tokens, pasted, strict=True)], none),
        "topics": ([told(p.tokens, len(p.topics)) for p in prompts], [prompt.vectors for prompt in prompts]),
    }
    return {name: generator.continued(*both, num_tokens=CONTINUATION, seed=seed) for name, both in read.items()}


def met(text: str, topics: Iterable[Sequence[str]]) -> tuple[int, int, int]:
    """Numbers of topic words in a text, of distinct topic words, and of topics with at least one.

    Example:
        >>> met("The concert, the music and the concert.", [("music", "concert"), ("war", "army")])
        (3, 2, 1)
    """
    topics = list(topics)
    wanted = {word for topic in topics for word in topic}
    found = [word for word in WORD.findall(text.lower()) if word in wanted]
    return len(found), len(set(found)), sum(bool(set(topic) & set(found)) for topic in topics)


def distinct(sequences: Iterable[NDArray[np.int64]], n: int) -> float:
    """Number of distinct n-grams divided by the number of all n-grams of the sequences.

    Example:
        >>> distinct([np.array([1, 2, 1, 2])], 2)
        0.6666666666666666
    """
    grams = [tuple(tokens[place : place + n].tolist()) for tokens in sequences for place in range(len(tokens) - n + 1)]
    return len(set(grams)) / len(grams)


def report(folder: Path, files: Sequence[Path], *, num_prompts: int, shown: int, seed: int) -> dict[str, object]:
    """All measures of the run in ``folder`` on documents of other corpus files, and ``shown`` examples."""
    generator = Generator.from_folder(folder)
    # Far more pieces than are used, because short documents are left out.
    pieces = read_pieces(files, generator.tokenizer, generator.model.words, num_tokens=4_000 * num_prompts)
    prompts = read_prompts(generator, pieces, count=num_prompts, seed=seed)
    written = continuations(generator, prompts, seed=seed)
    num_topics = sum(len(prompt.topics) for prompt in prompts)
    generated: dict[str, dict[str, float]] = {}
    for name, tokens in written.items():
        hits = np.array([met(generator.decode(t), p.topics) for t, p in zip(tokens, prompts, strict=True)])
        none = prompts[0].vectors[:0]
        losses = [generator.losses(p.tokens, t, none) for t, p in zip(tokens, prompts, strict=True)]
        generated[name] = {
            **dict(zip(("token_hits", "word_hits", "topic_hits"), hits.mean(axis=0).tolist(), strict=True)),
            "share_of_topics_met": float(hits[:, 2].sum() / num_topics),
            "distinct_1": distinct(tokens, 1),
            "distinct_2": distinct(tokens, 2),
            "perplexity_told_nothing": float(np.exp(np.concatenate(losses).mean())),
        }
    return {
        "prompts": len(prompts),
        "topics": num_topics / len(prompts),
        "held_out_perplexity": perplexities(generator, prompts, seed=seed),
        "continuations": generated,
        "examples": [
            {
                "prompt": generator.decode(prompt.tokens),
                "chosen": [" ".join(topic) for topic in prompt.topics],
                **{name: generator.decode(tokens[place]) for name, tokens in written.items()},
            }
            for place, prompt in enumerate(prompts[:shown])
        ],
    }


def continued(folder: Path, text: str, topics: Sequence[str], *, num_tokens: int, seed: int) -> dict[str, object]:
    """Continues one text under topics of a few words each."""
    generator = Generator.from_folder(folder)
    words, spelt = generator.model.words, [WORD.findall(topic.lower()) for topic in topics]
    for place, found in enumerate(spelt):
        if not found or (words.vocabulary.rows(found) == len(words)).any():
            raise InvalidInputError(f"expected known words, got {topics[place]!r}", path=("topics", place))
    room = generator.longest - num_tokens - len(topics)
    if room < 2:
        raise InvalidInputError(f"tokens and topics must be at most {generator.longest - 2}, got {num_tokens}")
    tokens, _ = cut_pieces(generator.tokenizer, text, words)
    if not len(tokens):
        raise InvalidInputError("text has no word, expected at least one")
    vectors = topic_vectors(words, [[(word, 1.0) for word in found] for found in spelt])
    drawn = generator.continued([told(tokens[-room:], len(topics))], [vectors], num_tokens=num_tokens, seed=seed)[0]
    suggested = suggest_topics(generator.model, [text], num_words=NUM_WORDS)[0].topics
    return {
        "text": text,
        "topics": list(topics),
        "continuation": generator.decode(drawn),
        "topics_met": met(generator.decode(drawn), spelt)[2],
        "suggested": [" ".join(word.word for word in topic.words) for topic in suggested],
    }

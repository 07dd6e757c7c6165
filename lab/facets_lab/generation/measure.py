"""Effect of topics on continuations of held-out text: perplexity, used words, variety (Chang 2022, section 4.3.3).

Shape suffixes: J topics, D dimensions of a word vector.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from facets.errors import ConfigError
from facets.texts.topics import suggest_topics
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.options import Corpus, Seed, WorkDir
from facets_lab.generation.generator import WORD, Generator, Pieces, read_pieces, told

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
    """Generated pieces, given nothing or the topics."""
    read = {
        "none": ([prompt.tokens for prompt in prompts], [prompt.vectors[:0] for prompt in prompts]),
        "topics": ([told(p.tokens, len(p.topics)) for p in prompts], [prompt.vectors for prompt in prompts]),
    }
    return {name: generator.continued(*both, num_tokens=CONTINUATION, seed=seed) for name, both in read.items()}


def distinct(sequences: Iterable[NDArray[np.int64]], n: int) -> float:
    """Number of distinct n-grams divided by the number of all n-grams of the sequences.

    Example:
        >>> distinct([np.array([1, 2, 1, 2])], 2)
        0.6666666666666666
    """
    grams = [tuple(tokens[place : place + n].tolist()) for tokens in sequences for place in range(len(tokens) - n + 1)]
    return len(set(grams)) / len(grams)


def evaluate(
    files: Corpus,
    work_dir: WorkDir,
    num_prompts: Annotated[int, typer.Option("--prompts", min=2, help="Number of document beginnings.")] = 200,
    seed: Seed = 1,
) -> Report:
    """Measure perplexity, topic use and variety of continuations, with and without topics.

    Example: python -m facets_lab.generation evaluate shard-05.txt.xz --work-dir runs/generation
    """
    generator = Generator.from_folder(work_dir)
    # Far more pieces than are used, because short documents are left out.
    pieces = read_pieces(files, generator.tokenizer, generator.model.words, num_tokens=4_000 * num_prompts)
    prompts = read_prompts(generator, pieces, count=num_prompts, seed=seed)
    written = continuations(generator, prompts, seed=seed)
    texts = {name: list(map(generator.decode, tokens)) for name, tokens in written.items()}
    generated = {}
    for name, tokens in written.items():
        words = [set(WORD.findall(text.lower())) for text in texts[name]]
        met = [bool(set(topic) & own) for prompt, own in zip(prompts, words, strict=True) for topic in prompt.topics]
        losses = [generator.losses(p.tokens, t, p.vectors[:0]) for t, p in zip(tokens, prompts, strict=True)]
        generated[name] = {
            "share_of_topics_met": float(np.mean(met)),
            "distinct_1": distinct(tokens, 1),
            "distinct_2": distinct(tokens, 2),
            "perplexity_told_nothing": float(np.exp(np.concatenate(losses).mean())),
        }
    return {
        "prompts": len(prompts),
        "topics": sum(len(prompt.topics) for prompt in prompts) / len(prompts),
        "held_out_perplexity": perplexities(generator, prompts, seed=seed),
        "continuations": generated,
    }

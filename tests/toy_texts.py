"""A tiny world of four topics: neighbouring sentences share a topic, so there is something to learn."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from facets_lab.texts.data import SentenceTrainingConfig
from facets_lab.training.corpus import PackedCorpus, pack
from facets_lab.training.loop import OptimizerConfig

from facets.config import FacetModelConfig
from facets.language.vectors import WordVectors


def packed_corpus(files: Sequence[Path], folder: Path, **options: int) -> PackedCorpus:
    """Packs files, in one process, and opens the result."""
    pack(list(map(str, files)), folder, **{"min_count": 1, "workers": 1} | options)
    return PackedCorpus.open(folder)


def make_toy_corpus(folder: Path) -> Path:
    """Writes ``packed`` and ``words`` into a folder."""
    rng = np.random.default_rng(0)
    topics = [[f"topic{t}word{w}" for w in range(12)] for t in range(4)]
    lines = []
    for document in range(60):
        lines.append(f"# Document {document}")
        words = topics[document % 4]
        for _ in range(2):
            sentences = [" ".join(rng.choice(words, size=rng.integers(4, 9))).capitalize() + "." for _ in range(5)]
            lines.append(" ".join(sentences))
        lines.append("")
    (folder / "corpus.txt").write_text("\n".join(lines), encoding="utf-8")
    corpus = packed_corpus([folder / "corpus.txt"], folder / "packed")
    vectors = rng.standard_normal((len(corpus.vocabulary), 32)).astype(np.float32)
    for row, word in enumerate(corpus.vocabulary.words):
        if word.startswith("topic"):
            vectors[row, int(word[5])] += 6.0
    WordVectors(corpus.vocabulary, vectors).save(folder / "words")
    return folder


def toy_sentence_config(folder: Path, **changes: object) -> SentenceTrainingConfig:
    """Settings of a second's training on the corpus of that folder."""
    values: dict[str, object] = {
        "corpus": str(folder / "packed"),
        "words": str(folder / "words"),
        "name": "tiny",
        "num_steps": 12,
        "batch_size": 16,
        "validation_share": 0.2,
        "validation_sentences": 64,
        "validate_every": 4,
        "checkpoint_every": 4,
        "precision": "float32",
        "device": "cpu",
        "model": FacetModelConfig(num_facets=3, dim=32, hidden_dim=32, num_heads=2, feedforward_dim=32),
        "optimizer": OptimizerConfig(learning_rate=5e-3, warmup_steps=2),
    }
    return SentenceTrainingConfig(**(values | changes))  # type: ignore[arg-type]

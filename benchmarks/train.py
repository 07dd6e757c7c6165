"""Sentences per second of a training step, with the share of each part, beside the same step done plainly.

``python -m benchmarks.train --config lab/configs/facets-en.toml [--steps 40]``

The baseline is the same model and optimizer without the work that made training fast: float32, batches of
random lengths padded to the longest, and the fused attention kernel.
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
from facets_lab.texts.data import SentenceStream, SentenceTrainingConfig
from facets_lab.texts.training import SentenceTrainer
from facets_lab.training.loop import TrainingLoop

from benchmarks.measuring import print_report
from facets.model import network as transformer


def main() -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=Path("lab/configs/facets-en.toml"))
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    config = SentenceTrainingConfig.from_toml(options.config).replaced(num_threads=options.threads)
    ours = _rate(config, options.steps)
    with (
        mock.patch.object(SentenceStream, "length_sorted", _unsorted),
        mock.patch.object(transformer, "attend", _fused),
    ):
        plain = _rate(config.replaced(precision="float32"), max(4, options.steps // 4))
    result = {
        "benchmark": "train",
        "config": str(options.config),
        "threads": options.threads,
        "sentences_per_s": round(ours, 1),
        "plain_sentences_per_s": round(plain, 1),
        "ratio": round(ours / plain, 2),
    }
    print_report(result)


def _rate(config: SentenceTrainingConfig, num_steps: int) -> float:
    with TemporaryDirectory() as folder:
        trainer = SentenceTrainer(config)
        loop = TrainingLoop(trainer, Path(folder))
        batches = trainer.batches(0)
        for _ in range(3):
            loop.train_step(next(batches))
        started = time.perf_counter()
        for _ in range(num_steps):
            loop.train_step(next(batches))
        return num_steps * config.batch_size / (time.perf_counter() - started)


def _unsorted(self: SentenceStream, sentences: np.ndarray, rng: np.random.Generator) -> list[tuple[np.ndarray, ...]]:
    """Batches in the order they come: every one is padded to its longest text."""
    offsets = self.corpus.sentence_offsets
    lengths = np.minimum(offsets[sentences + 1] - offsets[sentences], self.config.input_tokens)
    batches = np.arange(len(sentences)).reshape(-1, self.config.batch_size)
    return [(sentences[b], sentences[b] + 1, lengths[b]) for b in rng.permutation(batches)]


def _fused(queries, keys, values, mask):  # type: ignore[no-untyped-def]
    """Attention through PyTorch's fused kernel."""
    return transformer.functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)


if __name__ == "__main__":
    main()

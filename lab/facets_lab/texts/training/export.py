"""From a training run to a checkpoint folder that can be shipped."""

import json
import os
from pathlib import Path

import numpy as np
import torch

from facets.errors import CheckpointError
from facets.language.vectors import WordVectors
from facets.model.checkpoint import CheckpointConfig
from facets.model.facet_model import FacetModel
from facets.model.network import FacetNetwork
from facets.texts.words import fit_common_components
from facets_lab.texts.training.config import SentenceTrainingConfig
from facets_lab.training.corpus import PackedCorpus
from facets_lab.training.loop import CHECKPOINT, CURVE

__all__ = ["export_sentence_model"]

# More sentences move the first principal component by less than its rounding.
_COMPONENT_SENTENCES = 20_000


def export_sentence_model(
    config: SentenceTrainingConfig, run_dir: Path, out_dir: Path, *, words_of: Path | None = None
) -> FacetModel:
    """Writes a checkpoint folder from the last checkpoint of a run.

    Args:
        config: Settings of the run.
        run_dir: Folder of the run.
        out_dir: The checkpoint folder to write.
        words_of: A checkpoint folder with the same word vectors, to refer to instead of storing them again.

    Returns:
        The model as it was written.

    Raises:
        CheckpointError: The run has no checkpoint, or no validation yet.
    """
    try:
        state = torch.load(run_dir / CHECKPOINT, map_location="cpu", weights_only=True)
        lines = (run_dir / CURVE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise CheckpointError(f"nothing to export from {run_dir}: {error.filename} does not exist") from error
    vectors = WordVectors.load(Path(config.words))
    network = FacetNetwork(config.model, torch.from_numpy(vectors.unit_vectors))
    network.load_state_dict(state["trainer"]["network"])
    corpus = PackedCorpus.open(Path(config.corpus))
    checkpoint = CheckpointConfig(
        name=config.name,
        task=config.inputs,
        model=config.model,
        l1_weight=config.l1_weight,
        words="." if words_of is None else os.path.relpath(words_of, out_dir),
        training={
            "loss": config.loss,
            "seed": config.seed,
            "presentations": state["step"] * config.batch_size,
            "seconds": round(state["seconds"], 1),
            "validation_loss": json.loads(lines[-1])["validation_loss"],
            "corpus_sentences": corpus.meta.num_sentences,
            "corpus_tokens": corpus.meta.num_tokens,
        },
    )
    model = FacetModel(network, vectors, config=checkpoint)
    model.common_components = fit_common_components(model, _training_texts(corpus, config))
    model.save(out_dir)
    return model


def _training_texts(corpus: PackedCorpus, config: SentenceTrainingConfig) -> list[str]:
    """Sentences the common components of SIF are fitted on, as text again: known words between spaces."""
    rng = np.random.default_rng([config.seed, 5])
    chosen = rng.choice(corpus.num_sentences, min(_COMPONENT_SENTENCES, corpus.num_sentences), replace=False)
    words = np.array([*corpus.vocabulary.words, ""], dtype=object)
    return [text for text in (" ".join(words[corpus.sentence(row)]).strip() for row in chosen) if text]

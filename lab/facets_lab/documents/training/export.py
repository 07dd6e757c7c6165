"""From a training run to a checkpoint folder: the trained network, word pieces, and words in the teacher's space."""

import logging
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from facets.errors import InvalidInputError
from facets.language.files import read_lines
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary
from facets.model.passage_checkpoint import PassageModelConfig
from facets.model.passage_model import PassageModel
from facets.model.passage_network import PassageNetwork
from facets.model.word_pieces import WordPieces
from facets_lab.documents.training.config import PassageTrainingConfig
from facets_lab.documents.training.teacher import Teacher, vectors_of
from facets_lab.training.loop import CHECKPOINT
from facets_lab.training.runs import load_checkpoint

__all__ = ["export_passage_model", "word_vectors"]

logger = logging.getLogger(__name__)

_MAX_WORD_TOKENS = 32
_EXPORT_ONLY = (
    "device",
    "num_threads",
    "words",
    "num_words",
    "window_tokens",
    "window_overlap",
    "exported_vector_weight",
)  # settings that do not change the network
_TRAINING_FACTS = ("seed", "num_steps", "batch_size", "layers", "teacher", "tune_encoder")


def export_passage_model(config: PassageTrainingConfig, run: Path, out: Path) -> PassageModel:
    """Writes a checkpoint folder from the last checkpoint of a run, complete but for the card.

    Raises:
        CheckpointError: The run has no checkpoint of these settings, or the teacher cannot be read.
        ConfigError: The words cannot be read.
        InvalidInputError: A line of the words is not a word and a count; file and line are named.
    """
    state = load_checkpoint(run / CHECKPOINT, config.to_dict(), device=torch.device("cpu"), may_change=_EXPORT_ONLY)
    own_weight = config.exported_vector_weight
    shape = config.model if own_weight is None else config.model.replaced(own_vector_weight=own_weight)
    network = PassageNetwork(shape)
    network.load_state_dict(state["trainer"]["network"])
    teacher = Teacher(config.teacher)
    facts = {name: value for name, value in config.to_dict().items() if name in _TRAINING_FACTS}
    model = PassageModel(
        network,
        word_vectors(Path(config.words), teacher, max_words=config.num_words),
        pieces=WordPieces.from_json((teacher.folder / "tokenizer.json").read_bytes()),
        config=PassageModelConfig(
            name=config.name,
            space=Path(config.teacher).name,
            network=shape,
            window_tokens=config.window_tokens,
            window_overlap=config.window_overlap,
            training={**facts, "seconds": round(state["seconds"]), "step": state["step"]},
        ),
    )
    model.save(out)
    logger.info("%s written", out)
    return model


def word_vectors(path: Path, teacher: Teacher, *, max_words: int) -> WordVectors:
    """The teacher's vectors of frequent words, each read as a text of its own.

    Args:
        path: Lines of a word and its count, separated by a tab, the frequent ones first.
        teacher: What reads them.
        max_words: How many, from the beginning; the counts of the others still make up the total.
    """
    words, counts = [], []
    for number, line in enumerate(read_lines(path), start=1):
        word, _, count = line.partition("\t")
        if not word or not count.isdecimal():
            raise InvalidInputError(f"{path}, line {number}: expected a word, a tab and a count, got {line[:80]!r}")
        words.append(word)
        counts.append(int(count))
    rows = teacher.ids(list(islice(words, max_words)), _MAX_WORD_TOKENS)
    vectors = vectors_of(teacher.encoder(), rows).astype(np.float32)
    return WordVectors(Vocabulary(words[:max_words], np.array(counts[:max_words]), total_count=sum(counts)), vectors)

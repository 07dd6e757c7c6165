"""Prepares training data: raw texts to word pieces and the teacher's vectors, in parts, so that it can be resumed."""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from facets.errors import CheckpointError, ConfigError
from facets.language.tokenizer import Tokenizer
from facets.model.passage_network import SentenceEncoder
from facets.storage import write_atomically
from facets_lab.documents.training.config import PassageDataConfig
from facets_lab.documents.training.sources import Passage, read_groups
from facets_lab.documents.training.teacher import Teacher, vectors_of

__all__ = ["KINDS", "PreparedPassages", "prepare_passages"]

logger = logging.getLogger(__name__)

KINDS = ("passage", "sentence", "question")
_CONFIG = "config.json"
_GROUPS = 128  # in a part


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of one kind.

    Attributes:
        ids: Piece ids of all of them, one after another, uint16.
        starts: Where each begins, and where the last one ends, ``[N + 1]`` int64.
        vectors: The teacher's, unit norm, ``[N, W]`` float16.
        owners: Of passages, the group; of sentences and questions, the passage; ascending, ``[N]`` int64.
    """

    ids: NDArray[np.uint16]
    starts: NDArray[np.int64]
    vectors: NDArray[np.float16]
    owners: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.owners)

    def row(self, number: int) -> NDArray[np.uint16]:
        """Piece ids of one text."""
        return self.ids[self.starts[number] : self.starts[number + 1]]

    def of(self, owner: int) -> range:
        """Texts of one owner."""
        first, last = np.searchsorted(self.owners, (owner, owner + 1)).tolist()
        return range(first, last)


class PreparedPassages:
    """Prepared data, opened.

    Attributes:
        texts: By kind, see ``KINDS``.
        num_groups: How many groups of passages there are.

    Raises:
        CheckpointError: The folder holds no prepared data, or not all of it.
    """

    def __init__(self, folder: Path) -> None:
        try:
            meta = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
            parts = [np.load(folder / _part(number)) for number in range(meta["num_parts"])]
            self.texts = {kind: _joined(parts, kind) for kind in KINDS}
        except (OSError, ValueError, KeyError) as error:
            raise CheckpointError(f"{folder}: expected data of facets-train prepare-passages, got: {error}") from error
        self.num_groups = int(self.texts["passage"].owners[-1]) + 1


def prepare_passages(config: PassageDataConfig, folder: Path, *, progress: bool = True) -> PreparedPassages:
    """Prepares what the settings name; parts that are there already are kept.

    Raises:
        ConfigError: The folder holds data of other settings; a pattern matches no file.
        InvalidInputError: A file cannot be read; file and line are named.
        CheckpointError: The teacher cannot be read.
    """
    groups = read_groups(config)
    settings = json.dumps(config.to_dict(), sort_keys=True)
    meta = {
        "settings": hashlib.sha256(settings.encode()).hexdigest(),
        "num_parts": -(-len(groups) // _GROUPS),
        **config.to_dict(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _CONFIG
    if path.exists() and json.loads(path.read_text(encoding="utf-8"))["settings"] != meta["settings"]:
        raise ConfigError(f"{folder} holds data of other settings: give another --out")
    with write_atomically(path, durable=False) as part:
        part.write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
    torch.set_num_threads(config.num_threads)
    teacher = Teacher(config.teacher)
    encoder = teacher.encoder().bfloat16()
    for number in tqdm(range(meta["num_parts"]), disable=not progress, unit="part"):
        path = folder / _part(number)
        if not path.exists():
            arrays = _arrays(groups[number * _GROUPS : (number + 1) * _GROUPS], teacher, encoder, config)
            with write_atomically(path, durable=False) as part, part.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
    return PreparedPassages(folder)


def _arrays(
    groups: Sequence[Sequence[Passage]], teacher: Teacher, encoder: SentenceEncoder, config: PassageDataConfig
) -> dict[str, NDArray[np.generic]]:
    """The arrays of a part; owners count from 0 in it."""
    tokenizer = Tokenizer()
    passages = [passage for group in groups for passage in group]
    spans = [tokenizer.sentences(passage.text)[: config.max_sentences] for passage in passages]
    of_kind = {
        "passage": [[passage.text for passage in group] for group in groups],
        "sentence": [
            [passage.text[span.start : span.end] for span in line]
            for passage, line in zip(passages, spans, strict=True)
        ],
        "question": [list(passage.questions[: config.max_questions]) for passage in passages],
    }
    arrays: dict[str, NDArray[np.generic]] = {}
    for kind, texts in of_kind.items():
        most = config.max_tokens if kind == "passage" else config.max_sentence_tokens
        rows = teacher.ids([text for owned in texts for text in owned], most)
        arrays[f"{kind}_ids"] = np.concatenate([np.empty(0, dtype=np.uint16), *rows])
        arrays[f"{kind}_lengths"] = np.array([len(row) for row in rows], dtype=np.int64)
        arrays[f"{kind}_vectors"] = vectors_of(encoder, rows)
        arrays[f"{kind}_owners"] = np.repeat(np.arange(len(texts)), [len(owned) for owned in texts])
    return arrays


def _joined(parts: Sequence[dict[str, NDArray[np.generic]]], kind: str) -> Texts:
    owner_kind = "passage" if kind != "passage" else None
    sizes = [_GROUPS if owner_kind is None else len(part["passage_owners"]) for part in parts]
    before = np.cumsum([0, *sizes])
    owners = [part[f"{kind}_owners"] + first for part, first in zip(parts, before, strict=False)]
    lengths = np.concatenate([part[f"{kind}_lengths"] for part in parts])
    return Texts(
        ids=np.concatenate([part[f"{kind}_ids"] for part in parts]),
        starts=np.concatenate([[0], np.cumsum(lengths)]),
        vectors=np.concatenate([part[f"{kind}_vectors"] for part in parts]),
        owners=np.concatenate(owners),
    )


def _part(number: int) -> str:
    return f"part-{number:05d}.npz"

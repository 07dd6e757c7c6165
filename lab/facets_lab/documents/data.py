"""Training data of passage models: settings, raw texts in groups, word pieces and the teacher's vectors."""

import hashlib
import json
import logging
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from tqdm import tqdm

from facets.config import (
    AtLeastOne,
    NonNegative,
    NonNegativeInt,
    PassageNetworkConfig,
    Positive,
    Settings,
    Share,
)
from facets.errors import CheckpointError, ConfigError
from facets.language.tokenizer import Tokenizer
from facets.model.network import Backbone
from facets.model.passage_network import RaggedBatch, SentenceEncoder, average_states
from facets.storage import write_atomically
from facets_lab.evaluation.files import Record, read_as
from facets_lab.training.corpus import expand_files, read_titled_documents
from facets_lab.training.loop import BatchSize, OptimizerConfig, TrainingConfig


class SourceConfig(Settings):
    """One kind of raw text.

    ``wikipedia``: documents of paragraphs, as ``facets-train pack`` reads them. ``questions``: JSON lines of ``query``
    and ``positive``, the passage that answers. ``papers``: JSON lines of ``title`` and ``abstract``.
    """

    kind: Literal["wikipedia", "questions", "papers"]
    files: list[str]  # patterns
    max_passages: AtLeastOne = 1_000_000
    min_words: AtLeastOne = 8  # shorter passages are left out
    max_words: AtLeastOne = 350  # longer ones too
    with_title: Share = 0.5  # of the passages that have a title begin with it, as documents often do


class PassageDataConfig(Settings):
    """What is prepared for training: passages, their sentences and questions, and the teacher's vectors of all."""

    sources: list[SourceConfig]
    teacher: str = "all-MiniLM-L6-v2"  # or the folder of a sentence-transformers model of BERT's form
    max_groups: AtLeastOne = 1_000_000  # of all sources together, a random choice
    max_tokens: AtLeastOne = 256  # of a passage, special pieces included; the rest is cut
    max_sentence_tokens: AtLeastOne = 96
    max_neighbours: AtLeastOne = 6  # passages of one article in a group
    max_sentences: AtLeastOne = 16  # of a passage, as targets
    max_questions: AtLeastOne = 6  # of a passage
    seed: int = 1
    num_threads: AtLeastOne = 1


class PassageTrainingConfig(TrainingConfig):
    """Training of a passage model on prepared data."""

    data: str  # folder of ``facets-train prepare-passages``
    words: str  # file of words and their counts, the frequent ones first: those that explain facets
    num_words: AtLeastOne = 20_000
    name: str = "facets-passages-en"
    teacher: str = "all-MiniLM-L6-v2"  # weights the encoder begins with
    exported_vector_weight: NonNegative | None = None  # own_vector_weight of the model that is written, if another one
    window_tokens: AtLeastOne = 256  # of a long text that the model reads at once
    window_overlap: NonNegativeInt = 32
    layers: list[int] = Field(default=[0, 1, 2, 3, 4, 5])  # those of the teacher that the encoder begins with
    tune_encoder: bool = False
    start: str = ""  # folder of a run whose network this one begins with
    start_facets: str = ""  # folder of a run whose facets this one begins with, of whatever encoder
    facets: bool = True  # False: only the vectors are learned (distillation)
    distillation_weight: NonNegative = 0.0  # of the loss of vectors: as close to the teacher's, and as similar
    question_weight: NonNegative = 2.0  # of a question; a sentence has 1
    question_repeats: AtLeastOne = 1  # how often a pass over the data meets the groups that have questions
    fit_weight: NonNegative = 2.0  # of the distance between a target and its facets, beside the ranking loss
    ranking_temperature: Positive = 0.05  # of the softmax over the passages of a batch
    facet_temperature: Positive = 0.03  # of the soft maximum over facets: a hard one lets facets die
    distilled_texts: AtLeastOne = 192  # sentences and questions of a step of distillation
    similar_groups: AtLeastOne = 1  # groups of a step that resemble one another: hard to tell apart
    num_steps: AtLeastOne = 2_500
    batch_size: BatchSize = 48  # passages a step, groups of neighbours
    validation_groups: AtLeastOne = 64  # never trained on
    optimizer: OptimizerConfig = OptimizerConfig(learning_rate=2e-4, warmup_steps=50)
    model: PassageNetworkConfig = PassageNetworkConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        layers = self.model.encoder.num_layers
        self.require("layers", len(self.layers) == layers, f"as many as model.encoder.num_layers ({layers})")
        self.require("facets", self.facets or self.distillation_weight > 0, "true, or distillation_weight above 0")
        self.require("tune_encoder", self.tune_encoder or self.distillation_weight == 0, "true to distil into it")
        return self


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage and what is asked about it.

    Attributes:
        text: The passage.
        questions: What it answers; may be empty.
    """

    text: str
    questions: tuple[str, ...] = ()


def read_groups(config: PassageDataConfig) -> list[list[Passage]]:
    """Groups of all sources in random order, the same one for the same seed.

    Raises:
        ConfigError: A pattern matches no file, or a file cannot be opened.
        InvalidInputError: A line cannot be read; file and line are named.
    """
    random_choice = random.Random(config.seed)
    groups: list[list[Passage]] = []
    for source in config.sources:
        ours = list(_READERS[source.kind](source, config.max_neighbours, random_choice))
        random_choice.shuffle(ours)
        count = 0
        for group in ours:
            if count >= source.max_passages:
                break
            groups.append(group)
            count += len(group)
    random_choice.shuffle(groups)
    return groups[: config.max_groups]


def _wikipedia(source: SourceConfig, size: int, random_choice: random.Random) -> Iterator[list[Passage]]:
    for title, paragraphs in chain.from_iterable(map(read_titled_documents, expand_files(source.files))):
        fitting = [text for text in paragraphs if _fits(text, source)]
        if len(fitting) >= 2:
            first = random_choice.randrange(max(1, len(fitting) - size + 1))
            has_title = random_choice.random() < source.with_title
            yield [Passage(f"{title}. {text}" if has_title else text) for text in fitting[first : first + size]]


def _questions(source: SourceConfig, size: int, _random_choice: random.Random) -> Iterator[list[Passage]]:
    asked: dict[str, list[str]] = {}
    for _, line in chain.from_iterable(read_as(_Asked, path) for path in expand_files(source.files)):
        if _fits(line.positive, source):
            asked.setdefault(line.positive.strip(), []).append(line.query.strip())
    passages = [Passage(text, tuple(dict.fromkeys(questions))) for text, questions in asked.items()]
    yield from _in_groups(passages, size)


def _papers(source: SourceConfig, size: int, random_choice: random.Random) -> Iterator[list[Passage]]:
    def read() -> Iterator[Passage]:
        for _, line in chain.from_iterable(read_as(_Abstract, path) for path in expand_files(source.files)):
            title, abstract = line.title.strip(), line.abstract.strip()
            if not _fits(abstract, source):
                continue
            if random_choice.random() < source.with_title:  # else the title is what is asked: it must not be read
                yield Passage(f"{title}. {abstract}")
            else:
                yield Passage(abstract, (title,))

    yield from _in_groups(list(read()), size)


def _in_groups(passages: list[Passage], size: int) -> Iterator[list[Passage]]:
    for start in range(0, len(passages), size):
        yield passages[start : start + size]


class _Asked(Record):
    query: str
    positive: str


class _Abstract(Record):
    title: str
    abstract: str


def _fits(text: str, source: SourceConfig) -> bool:
    return source.min_words <= len(text.split()) <= source.max_words


_READERS: dict[str, Callable[[SourceConfig, int, random.Random], Iterator[list[Passage]]]] = {
    "wikipedia": _wikipedia,
    "questions": _questions,
    "papers": _papers,
}


_BATCH_TOKENS = 3000


@torch.inference_mode()
def vectors_of(encoder: SentenceEncoder, rows: Sequence[NDArray[np.uint16]]) -> NDArray[np.float16]:
    """Unit vectors of texts, ``[N, W]``."""
    vectors = np.zeros((len(rows), encoder.config.width), dtype=np.float16)
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    start = 0
    while start < len(order):
        stop, tokens = start, 0
        while stop < len(order) and (stop == start or tokens + len(rows[order[stop]]) <= _BATCH_TOKENS):
            tokens += len(rows[order[stop]])
            stop += 1
        batch = RaggedBatch.of([rows[number] for number in order[start:stop]])
        vectors[order[start:stop]] = average_states(encoder(batch), batch).numpy().astype(np.float16)
        start = stop
    return vectors


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
    teacher = Backbone(config.teacher)
    encoder = teacher.encoder().bfloat16()
    for number in tqdm(range(meta["num_parts"]), disable=not progress, unit="part"):
        path = folder / _part(number)
        if not path.exists():
            arrays = _arrays(groups[number * _GROUPS : (number + 1) * _GROUPS], teacher, encoder, config)
            with write_atomically(path, durable=False) as part, part.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
    return PreparedPassages(folder)


def _arrays(
    groups: Sequence[Sequence[Passage]], teacher: Backbone, encoder: SentenceEncoder, config: PassageDataConfig
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

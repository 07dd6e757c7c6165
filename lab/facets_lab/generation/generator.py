"""A small language model that reads topic vectors between word pieces: training and sampling.

Shape suffixes: B sequences, L positions, T pieces of a corpus, J topics, V words, D dimensions of a word vector.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from tokenizers import ByteLevelBPETokenizer, Tokenizer
from torch import Tensor, nn
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel

from facets.config import AtLeastOne
from facets.errors import ConfigError
from facets.language.vectors import WordVectors
from facets.model import FacetModel, load
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.options import Corpus, Seed, Steps, Threads, WorkDir
from facets_lab.training.corpus import clean_paragraph, read_documents
from facets_lab.training.loop import (
    CHECKPOINT,
    LOSS,
    OptimizerConfig,
    Trainer,
    TrainingConfig,
    load_checkpoint,
    train_or_load,
)

END = 0  # the piece between documents
PIECES = "tokenizer.json"
WORD = re.compile(r"\w+")
_IGNORED = -100  # label of inserted topics: nothing to predict
_VALIDATED = 64  # sequences to validate on
_PARAGRAPHS = 20_000  # paragraphs from which the pieces are learned


class GenerationConfig(TrainingConfig):
    """Settings of the network and its training."""

    name: str = "generation"
    validate_every: AtLeastOne = 100
    checkpoint_every: AtLeastOne = 100
    optimizer: OptimizerConfig = OptimizerConfig(learning_rate=2e-3, warmup_steps=100)
    model: str = "facets-en"  # topics are vectors of its words
    num_layers: AtLeastOne = 4
    dim: AtLeastOne = 256
    num_heads: AtLeastOne = 4
    max_length: AtLeastOne = 128  # pieces per sequence
    num_insertions: AtLeastOne = 3  # places per sequence where words are inserted
    max_topics: AtLeastOne = 10  # K, the most words inserted at one place
    next_words: AtLeastOne = 25  # O, the next words to draw from, without stop words


@dataclass(frozen=True, slots=True)
class Pieces:
    """Text as word pieces."""

    tokens: NDArray[np.int64]  # [T]; END before each document
    words: NDArray[np.int64]  # [T], row of the word that starts with the piece; -1: none, a stop word or an unknown one
    starts: NDArray[np.int64]  # starts of documents


def learn_pieces(files: Sequence[Path], num_pieces: int) -> Tokenizer:
    """Pieces of lower-case words (byte-level BPE), learned from the beginning of the files."""
    sample = islice(chain.from_iterable(_paragraphs(files)), _PARAGRAPHS)
    learned = ByteLevelBPETokenizer(add_prefix_space=True)
    learned.train_from_iterator(sample, vocab_size=num_pieces, special_tokens=["<end>"], show_progress=False)
    return Tokenizer.from_str(learned.to_str())


def _paragraphs(files: Iterable[Path]) -> Iterator[list[str]]:
    for file in files:
        for paragraphs in read_documents(file):
            yield [clean_paragraph(paragraph).lower() for paragraph in paragraphs]


def cut_pieces(tokenizer: Tokenizer, text: str, words: WordVectors) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``tokens`` and ``words`` of a text, as in :class:`Pieces`."""
    encoded, vocabulary = tokenizer.encode(text.lower()), words.vocabulary
    rows = np.full(len(encoded.ids), -1, np.int64)
    found = list(WORD.finditer(text.lower()))
    if found and encoded.ids:
        of_words = vocabulary.rows([match.group() for match in found])
        ends = [end for _, end in encoded.offsets]
        places = np.searchsorted(ends, [match.start() for match in found], side="right")
        rows[places] = np.where(vocabulary.is_stop[of_words] | (of_words == len(words)), -1, of_words)
    return np.array(encoded.ids, np.int64), rows


def read_pieces(files: Sequence[Path], tokenizer: Tokenizer, words: WordVectors, *, num_tokens: int) -> Pieces:
    """The first documents of corpus files, about ``num_tokens`` pieces."""
    tokens, rows, starts, total = [], [], [], 0
    for paragraphs in _paragraphs(files):
        cut, own = cut_pieces(tokenizer, " ".join(paragraphs), words)
        starts.append(total)
        tokens += [np.array([END]), cut]
        rows += [np.array([-1]), own]
        total += len(cut) + 1
        if total >= num_tokens:
            break
    if not tokens:
        raise ConfigError("expected corpus files with text, got none")
    return Pieces(np.concatenate(tokens), np.concatenate(rows), np.array(starts))


def with_conditions(
    tokens: NDArray[np.int64], words: NDArray[np.int64], config: GenerationConfig, *, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Inputs and labels of a sequence: before some pieces, 0 to K of the next O words are inserted.

    ``tokens`` and ``words`` have ``[L + 1]`` values, as in :class:`Pieces`; an inserted word is ``~row`` (Chang 2022,
    section 4.2.2.2).
    """
    length = len(tokens) - 1
    places, told = np.empty(0, np.int64), np.empty(0, np.int64)
    for place in np.sort(random.choice(np.arange(1, length), config.num_insertions, replace=False)):
        following = words[place + 1 :]
        following = following[following >= 0][: config.next_words]
        num = int(random.integers(min(config.max_topics, len(following)) + 1))
        told = np.append(told, random.choice(following, num, replace=False) if num else [])
        places = np.append(places, np.full(num, place))
    width = length + config.num_insertions * config.max_topics
    read, asked = np.full(width, END), np.full(width, _IGNORED)
    read[: length + len(told)] = np.insert(tokens[:-1], places, ~told.astype(np.int64))
    asked[: length + len(told)] = np.insert(tokens[1:], places, _IGNORED)
    return read, asked


class ConditionalGenerator(nn.Module):
    """A small GPT-2 that reads pieces, and topics through a linear layer.

    The bias of that layer distinguishes topics from pieces; the thesis uses separate positions for them.
    """

    def __init__(self, config: GenerationConfig, num_pieces: int, topic_dim: int) -> None:
        super().__init__()
        if config.dim % config.num_heads:
            raise ConfigError(f"dim must be a multiple of num_heads, got {config.dim}")
        settings: dict[str, Any] = {"n_embd": config.dim, "n_layer": config.num_layers, "n_head": config.num_heads}
        settings |= {"n_positions": config.max_length + config.num_insertions * config.max_topics}
        settings |= dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)  # each piece is read once
        settings |= dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), END)
        self.language = GPT2LMHeadModel(GPT2Config(vocab_size=num_pieces, activation_function="gelu", **settings))
        self.of_topics = nn.Linear(topic_dim, config.dim)

    @torch.no_grad()
    def start_from(self, tokenizer: Tokenizer, words: WordVectors) -> None:
        """Initializes each piece that is a word with the vector of that word as a topic, without the bias."""
        texts = [tokenizer.decode([piece]) for piece in range(tokenizer.get_vocab_size())]
        rows = torch.from_numpy(words.vocabulary.rows([text.strip() for text in texts]))
        is_word = torch.tensor([text.startswith(" ") for text in texts]) & (rows < len(words))
        vectors = torch.from_numpy(words.unit_vectors)[rows[is_word]]
        self.language.transformer.wte.weight[is_word] = vectors @ self.of_topics.weight.T

    def embed(self, codes_BL: Tensor, topics_JD: Tensor) -> Tensor:
        """Vectors of pieces, and of topics for ``~row``."""
        pieces: Tensor = self.language.transformer.wte(codes_BL.clamp_min(0))
        topics: Tensor = self.of_topics(topics_JD[(~codes_BL).clamp_min(0)])
        return torch.where((codes_BL < 0).unsqueeze(2), topics.to(pieces.dtype), pieces)

    def loss(self, codes_BL: Tensor, labels_BL: Tensor, topics_JD: Tensor) -> Tensor:
        """Mean negative log-probability of the labels."""
        states_BLH = self.language.transformer(inputs_embeds=self.embed(codes_BL, topics_JD)).last_hidden_state
        is_asked_BL = labels_BL != _IGNORED
        return functional.cross_entropy(self.language.lm_head(states_BLH[is_asked_BL]).float(), labels_BL[is_asked_BL])


class GenerationTrainer(Trainer[GenerationConfig, tuple[NDArray[np.int64], NDArray[np.int64]]]):
    """Learns to predict the next pieces, given some of the next words."""

    network: ConditionalGenerator

    def __init__(self, config: GenerationConfig, pieces: Pieces, words: WordVectors, *, tokenizer: Tokenizer) -> None:
        super().__init__(config)
        if len(pieces.tokens) < 2 * (_VALIDATED + 1) * config.max_length:
            raise ConfigError(f"expected more text to train on, got {len(pieces.tokens)} pieces")
        torch.manual_seed(config.seed)
        self.network = ConditionalGenerator(config, tokenizer.get_vocab_size(), words.dim)
        self.network.start_from(tokenizer, words)
        self.network.to(self.device)
        self._pieces, self._topics_VD = pieces, self.tensor(words.unit_vectors)

    def batches(self, start_step: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Random sequences; the end of the corpus is held out."""
        last = len(self._pieces.tokens) - (_VALIDATED + 1) * self.config.max_length
        for step in count(start_step):
            random = np.random.default_rng((self.config.seed, step))
            yield self._batch(random.integers(last, size=self.config.batch_size), random)

    def _batch(
        self, starts: NDArray[np.int64], random: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        made = []
        for start in starts:
            span = slice(start, start + self.config.max_length + 1)
            made.append(
                with_conditions(self._pieces.tokens[span], self._pieces.words[span], self.config, random=random)
            )
        read, asked = (np.stack(arrays) for arrays in zip(*made, strict=True))
        used = int((asked != _IGNORED).any(axis=0).nonzero()[0].max()) + 1
        return read[:, :used], asked[:, :used]

    def step(self, batch: tuple[NDArray[np.int64], NDArray[np.int64]], number: int) -> dict[str, Tensor]:
        """The mean negative log-probability of a batch."""
        with self.autocast():
            return {LOSS: self.network.loss(self.tensor(batch[0]), self.tensor(batch[1]), self._topics_VD)}

    def validate(self) -> dict[str, float]:
        """The same for the held-out end of the corpus."""
        length = self.config.max_length
        starts = len(self._pieces.tokens) - 1 - length * np.arange(_VALIDATED, 0, -1)
        batches = np.array_split(starts, max(1, _VALIDATED // self.config.batch_size))
        random = np.random.default_rng(0)
        return {LOSS: float(np.mean([float(self.step(self._batch(batch, random), 0)[LOSS]) for batch in batches]))}


@dataclass(frozen=True, slots=True)
class Generator:
    """A trained network with its word pieces and model."""

    config: GenerationConfig
    network: ConditionalGenerator
    tokenizer: Tokenizer
    model: FacetModel

    @classmethod
    def from_folder(cls, folder: Path) -> "Generator":
        """Reads the folder of a run, finished or not."""
        state = load_checkpoint(folder / CHECKPOINT, {}, device=torch.device("cpu"))
        config, tokenizer = GenerationConfig.from_dict(state["config"]), Tokenizer.from_file(str(folder / PIECES))
        model = load(config.model, FacetModel)
        network = ConditionalGenerator(config, tokenizer.get_vocab_size(), model.dim)
        network.load_state_dict(state["trainer"]["network"])
        return cls(config, network.eval(), tokenizer, model)

    def decode(self, tokens: NDArray[np.int64]) -> str:
        """The text of pieces."""
        return str(self.tokenizer.decode(tokens.tolist()))

    @torch.inference_mode()
    def losses(
        self, codes: NDArray[np.int64], following: NDArray[np.int64], topics_JD: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Negative log-probabilities of pieces that follow ``codes``, ``[L]``."""
        tensor_1L = torch.from_numpy(np.concatenate((codes, following[:-1])))[None]
        logits = self.network.language(inputs_embeds=self.network.embed(tensor_1L, _tensor(topics_JD))).logits[0]
        found: NDArray[np.float32] = functional.cross_entropy(
            logits[len(codes) - 1 :], torch.from_numpy(following), reduction="none"
        ).numpy()
        return found

    @torch.inference_mode()
    def continued(
        self, codes: Sequence[NDArray[np.int64]], topics: Sequence[NDArray[np.float32]], *, num_tokens: int, seed: int
    ) -> NDArray[np.int64]:
        """The next pieces of each text, ``[B, num_tokens]``, sampled from the 40 most likely."""
        width = max(map(len, codes))
        embedded_BLH = torch.zeros(len(codes), width, self.config.dim)
        mask_BL = torch.zeros(len(codes), width, dtype=torch.long)
        for row, (own, vectors_JD) in enumerate(zip(codes, topics, strict=True)):
            of_row = (row, slice(width - len(own), None))
            embedded_BLH[of_row] = self.network.embed(torch.from_numpy(own)[None], _tensor(vectors_JD))[0]
            mask_BL[of_row] = 1
        torch.manual_seed(seed)
        drawn = self.network.language.generate(  # type: ignore[misc]  # GPT2LMHeadModel is not among its types
            inputs_embeds=embedded_BLH,
            attention_mask=mask_BL,
            do_sample=True,
            top_k=40,
            max_new_tokens=num_tokens,
            min_new_tokens=num_tokens,
        )
        return torch.as_tensor(drawn).numpy()


def _tensor(topics_JD: NDArray[np.float32]) -> Tensor:
    # Without topics, a placeholder row that is never read.
    return torch.from_numpy(topics_JD if len(topics_JD) else np.zeros((1, topics_JD.shape[1]), np.float32))


def told(tokens: NDArray[np.int64], num_topics: int) -> NDArray[np.int64]:
    """A prompt with topics 0 to ``num_topics - 1`` before its last piece (Chang 2022, section 4.2.2.1)."""
    return np.insert(tokens, np.full(num_topics, len(tokens) - 1), ~np.arange(num_topics))


def train(
    files: Corpus,
    work_dir: WorkDir,
    steps: Steps = 2_400,
    batch_size: Annotated[int, typer.Option(min=2, help="Sequences per batch.")] = 8,
    layers: Annotated[int, typer.Option(min=1)] = 4,
    dim: Annotated[int, typer.Option(min=1)] = 256,
    num_pieces: Annotated[int, typer.Option(min=300, help="Size of the vocabulary.")] = 8_000,
    num_tokens: Annotated[int, typer.Option(min=1, help="Pieces of text to train on.")] = 4_000_000,
    seed: Seed = 1,
    threads: Threads = 0,
) -> Report:
    """Train a decoder that is given some of the next words; an existing run is resumed, or loaded if finished.

    Example: python -m facets_lab.generation train shard-00.txt.xz --work-dir runs/generation
    """
    config = GenerationConfig(
        num_steps=steps,
        batch_size=batch_size,
        num_layers=layers,
        dim=dim,
        seed=seed,
        num_threads=threads,
    )
    work_dir.mkdir(parents=True, exist_ok=True)
    if not (work_dir / PIECES).exists():
        learn_pieces(files, num_pieces).save(str(work_dir / PIECES))
    tokenizer, words = Tokenizer.from_file(str(work_dir / PIECES)), load(config.model, FacetModel).words

    def make() -> GenerationTrainer:
        pieces = read_pieces(files, tokenizer, words, num_tokens=num_tokens)
        return GenerationTrainer(config, pieces, words, tokenizer=tokenizer)

    trainer, result = train_or_load(make, work_dir)
    return {
        "steps": result.step,
        "pieces_read": result.step * config.batch_size * config.max_length,
        "seconds": result.seconds,
        "num_parameters": sum(weights.numel() for weights in trainer.network.parameters()),
        "validation_loss": result.validation_loss,
    }

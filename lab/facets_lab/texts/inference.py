"""Trains the pair reader on statements about each other: written ones, and edited sentences of a corpus.

The written file holds groups of statements, a line each: B the base; E the same in other words; G says less; D says
more; C cannot be true beside the base; N and S may be true or not (S: with the roles swapped).
"""

import lzma
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from facets.config import NonNegativeInt, Positive, SentenceEncoderConfig, Share
from facets.language.sentences import sentences_of
from facets.language.wordnet import wordnet
from facets.model.checkpoint import read_weights
from facets.model.pair_reader import RELATIONS, PairNetwork, PairReaderConfig, both_orders
from facets.model.passage_checkpoint import write_encoder
from facets.model.shipped import find_model
from facets.model.word_pieces import WordPieces
from facets_lab.training.corpus import clean_paragraph, read_titled_documents
from facets_lab.training.loop import (
    LOSS,
    BatchSize,
    ConfigFile,
    OptimizerConfig,
    Resume,
    RunOut,
    Trainer,
    TrainingConfig,
    train,
)

WRITTEN_PAIRS = Path(__file__).with_name("written_pairs.txt.xz")
_HELD_OUT, _MAX_HELD_OUT = 10, 4_000  # every tenth group is held out; pairs of them that are read
_EQUIVALENT, _ENTAILS, _ENTAILED, _NEUTRAL, _CONTRADICTS = range(len(RELATIONS))
# Kinds of two statements of a group, what the first is to the second, and how often they are drawn.
_DRAWN = (
    ("BE", "BE", _EQUIVALENT, 3.0),
    ("BE", "G", _ENTAILS, 1.0),
    ("D", "BE", _ENTAILS, 1.0),
    ("BE", "C", _CONTRADICTS, 2.5),
    ("D", "C", _CONTRADICTS, 0.5),
    ("BE", "N", _NEUTRAL, 2.0),
    ("BE", "S", _NEUTRAL, 2.0),
)
_FIT_STEPS = 100
_AT_A_TIME = 256  # pairs that are read together
_JOINED = 0.2  # share of the pairs of which each side has two statements
_LONGEST_EDITED = 30  # words
_EDITED_WRITTEN = 0.15  # share of the pairs that mean the same of which one side is then contradicted
_NO_STOP, _MISTYPED = 0.3, 0.1  # shares of texts
_SAME = 0.06  # share of the pairs that are one statement, mistyped on one side
_VALUES = [
    values.split()
    for values in (
        "monday tuesday wednesday thursday friday saturday sunday",
        "january february march april may june july august september october november december",
        "one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty ninety",
        "black white red blue green yellow orange purple brown grey",
        "spring summer autumn winter",
        "morning afternoon evening",
        "first second third fourth fifth",
    )
]
_DENIED = re.compile(r" (is|are|was|were|can|could|will|should|must|may) (?!not\b|n't)")

Group = Mapping[str, Sequence[str]]  # statements by kind


class Pair(NamedTuple):
    """Two texts, and the number of what the first is to the second in ``RELATIONS``."""

    first: str
    second: str
    relation: int

    def reversed(self) -> "Pair":
        """The pair in the other order."""
        swapped = {_ENTAILS: _ENTAILED, _ENTAILED: _ENTAILS}
        return Pair(self.second, self.first, swapped.get(self.relation, self.relation))


class PairTrainingConfig(TrainingConfig):
    """Settings of the pair reader."""

    corpus: str  # file of documents, as ``facets-train pack`` reads them, whose sentences are edited
    edited: Share = 0.15  # of the pairs of a batch
    num_sentences: NonNegativeInt = 40_000  # of the corpus
    start: str = "facets-passages-en"  # passage model or reader with whose encoder the training begins, or pair reader
    latest: Share = 0.0  # of the pairs, those of the last groups of the file
    num_latest: NonNegativeInt = 0  # of these groups, without those held out
    smoothing: Share = 0.05  # of the labels
    name: str = "facets-pairs-en"
    num_steps: NonNegativeInt = 3_000
    batch_size: BatchSize = 128
    optimizer: OptimizerConfig = OptimizerConfig(learning_rate=1e-4, warmup_steps=100)
    model: SentenceEncoderConfig = SentenceEncoderConfig()
    head_rate: Positive = 5.0  # learning rate of the last layer, relative to the others


def written_groups(text: str) -> list[Group]:
    """Groups of a written file; raises ValueError for a line without a kind."""
    groups = list[Group]()
    for block in text.strip().split("\n\n"):
        group: dict[str, list[str]] = {}
        for line in block.splitlines():
            kind, statement = line.split(": ", 1)
            group.setdefault(kind.strip(), []).append(statement.strip())
        groups.append(group)
    return groups


def all_pairs(group: Group) -> list[Pair]:
    """Every pair of statements of a group whose relation is known."""
    pairs = []
    for kinds, others, relation, _ in _DRAWN:
        firsts, seconds = ([one for kind in side for one in group.get(kind, ())] for side in (kinds, others))
        pairs += [Pair(first, second, relation) for first in firsts for second in seconds if first != second]
    return pairs


def drawn_pair(group: Group, random: np.random.Generator) -> Pair:
    """A random pair of a group."""
    usable = [row for row in _DRAWN if any(map(group.get, row[0])) and any(map(group.get, row[1]))]
    chances = np.array([row[3] for row in usable])
    kinds, others, relation, _ = usable[random.choice(len(usable), p=chances / chances.sum())]
    firsts, seconds = ([one for kind in side for one in group.get(kind, ())] for side in (kinds, others))
    first = firsts[random.integers(len(firsts))]
    seconds = [one for one in seconds if one != first] or seconds
    return Pair(first, seconds[random.integers(len(seconds))], relation)


def joined(pair: Pair, group: Group, random: np.random.Generator) -> Pair:
    """The pair with a statement of another group added to the first text or, in other words, to both."""
    said = [*group["B"], *group.get("E", ())]
    added, again = (said[number] for number in random.permutation(len(said))[:2])
    is_before, is_on_both = random.random(2) < 0.5
    first, second = _both(pair.first, added, is_before), pair.second
    if is_on_both:
        return Pair(first, _both(second, again, is_before), pair.relation)
    return Pair(first, second, _ENTAILS if pair.relation == _EQUIVALENT else pair.relation)


def _both(text: str, added: str, is_before: bool) -> str:
    return f"{added} {text}" if is_before else f"{text} {added}"


def edited_pair(sentence: str, following: str, random: np.random.Generator) -> Pair | None:
    """A sentence of a corpus and the same one edited, or the one that follows it."""
    if random.random() < 0.2:
        return Pair(sentence, following, _NEUTRAL)
    if random.random() < 0.15:
        kept = sentence[: sentence.rfind(", ")] if sentence.count(", ") == 1 else ""
        return Pair(sentence, f"{kept}.", _ENTAILS) if kept.count(" ") > 3 else None
    other = contradicted(sentence, random)
    return Pair(sentence, other, _CONTRADICTS) if other else None


def contradicted(text: str, random: np.random.Generator) -> str:
    """The text with a word changed to an opposite or another value, or denied; empty if that is not possible."""
    edit = random.random()
    if edit < 0.2:
        changed, is_found = _DENIED.subn(r" \1 not ", text, count=1)
        return changed if is_found else ""
    words = text.split(" ")
    for place in random.permutation(len(words)).tolist():
        word = words[place].rstrip(".,;:!?")
        others = _opposites(word) if edit < 0.6 else _other_values(word.lower(), random)
        if others:
            other = str(random.choice(others)) + words[place][len(word) :]
            return " ".join([*words[:place], other.capitalize() if word[0].isupper() else other, *words[place + 1 :]])
    return ""


def _opposites(word: str) -> list[str]:
    return [lemma[2:] for part in "av" for lemma in wordnet().opposites.get(f"{part}:{word.lower()}", ())]


def _other_values(word: str, random: np.random.Generator) -> list[str]:
    if word.isdigit() and len(word) < 9:
        value, most = int(word), max(3, int(word) // 3)
        return [str(abs(value + int(random.integers(1, most)) * int(random.choice([-1, 1]))))]
    return [other for values in _VALUES if word in values for other in values if other != word]


def noised(text: str, random: np.random.Generator) -> str:
    """The text as somebody may type it: without its last stop, or mistyped."""
    if random.random() < _NO_STOP:
        text = text.rstrip(".")
    return mistyped(text, random) if random.random() < _MISTYPED else text


def mistyped(text: str, random: np.random.Generator) -> str:
    """The text with a letter missing, doubled, or before the one in front of it."""
    place = int(random.integers(1, len(text)))
    before, letters, behind = text[: place - 1], text[place - 1 : place + 1], text[place + 1 :]
    others = (letters[0], letters + letters[1], letters[::-1])
    return before + others[random.integers(len(others))] + behind if letters.isalpha() else text


def corpus_sentences(file: Path, size: int, random: np.random.Generator) -> list[tuple[str, str]]:
    """Sentences of random documents of a corpus, each with the one that follows."""
    documents = [paragraphs for _, paragraphs in read_titled_documents(file)]
    found = list[tuple[str, str]]()
    for number in random.permutation(len(documents)).tolist():
        for paragraph in documents[number][:8]:
            texts = [sentence.text for sentence in sentences_of(clean_paragraph(paragraph))]
            texts = [text for text in texts if 5 <= text.count(" ") < _LONGEST_EDITED and text.endswith(".")]
            found += pairwise(texts)
        if len(found) >= size:
            break
    return found[:size]


class PairTrainer(Trainer[PairTrainingConfig, list[Pair]]):
    """The pair reader with its examples."""

    network: PairNetwork

    def __init__(self, config: PairTrainingConfig) -> None:
        super().__init__(config)
        groups = written_groups(lzma.decompress(WRITTEN_PAIRS.read_bytes()).decode())
        self._groups = [group for i, group in enumerate(groups) if i % _HELD_OUT]
        random = np.random.default_rng(config.seed)
        held_out = [pair for group in groups[::_HELD_OUT] for pair in all_pairs(group)]
        self._held_out = [held_out[number] for number in random.permutation(len(held_out))[:_MAX_HELD_OUT]]
        self._sentences = corpus_sentences(Path(config.corpus), config.num_sentences, random)
        torch.manual_seed(config.seed)
        folder = find_model(config.start)
        self.pieces = WordPieces.from_json((folder / "tokenizer.json").read_bytes())
        self.network = PairNetwork(config.model)
        weights, own = read_weights(folder), self.network.state_dict()
        if "segments.weight" not in weights:  # of a passage model
            weights = {f"encoder.{name}": values for name, values in weights.items()}
        last = {name: weights.get(name, values) for name, values in own.items() if not name.startswith("encoder.")}
        encoder = {name: values for name, values in weights.items() if name.startswith("encoder.")}
        self.network.load_state_dict(encoder | last)
        self.network.encoder.pieces.requires_grad_(False)
        self.network.to(self.device)

    def parameter_groups(self) -> list[dict[str, object]]:
        """See ``Trainer``."""
        body = [weights for weights in self.network.encoder.parameters() if weights.requires_grad]
        body += self.network.segments.parameters()
        rate = self.config.optimizer.learning_rate * self.config.head_rate
        return [{"params": body}, {"params": self.network.relation.parameters(), "lr": rate}]

    def batches(self, start_step: int) -> Iterator[list[Pair]]:
        """See ``Trainer``."""
        for step in count(start_step):
            random = np.random.default_rng((self.config.seed, step))
            yield list(islice(self._drawn(random), self.config.batch_size))

    def _drawn(self, random: np.random.Generator) -> Iterator[Pair]:
        while True:
            if self._sentences and random.random() < self.config.edited:
                pair = edited_pair(*self._sentences[random.integers(len(self._sentences))], random)
            else:
                first = -self.config.num_latest if random.random() < self.config.latest else 0
                group, other = (groups[random.integers(len(groups))] for groups in (self._groups[first:], self._groups))
                pair = drawn_pair(group, random)
                if pair.relation == _EQUIVALENT and random.random() < _EDITED_WRITTEN:
                    edited = contradicted(pair.second, random)
                    pair = Pair(pair.first, edited, _CONTRADICTS) if edited else pair
                if random.random() < _JOINED:
                    pair = joined(pair, other, random)
                if random.random() < _SAME:
                    pair = Pair(pair.first, mistyped(pair.first, random), _EQUIVALENT)
            if pair is not None:
                pair = Pair(noised(pair.first, random), noised(pair.second, random), pair.relation)
                yield pair if random.random() < 0.5 else pair.reversed()

    def step(self, batch: list[Pair], number: int) -> dict[str, Tensor]:
        """See ``Trainer``."""
        log_odds_BC = self._log_odds(batch)
        relations_B = torch.tensor([pair.relation for pair in batch], device=self.device)
        return {LOSS: functional.cross_entropy(log_odds_BC, relations_B, label_smoothing=self.config.smoothing)}

    def _log_odds(self, pairs: Sequence[Pair]) -> Tensor:
        ids = self.pieces.ids([text for pair in pairs for text in pair[:2]])
        with self.autocast():
            log_odds: Tensor = self.network(ids[::2], ids[1::2], self.pieces)
        return log_odds

    @torch.no_grad()
    def _held_out_log_odds(self) -> tuple[Tensor, Tensor]:
        """Log-odds of the held-out pairs as the reader has them, and the numbers of their relations."""
        read = []
        for start in range(0, len(self._held_out), _AT_A_TIME):
            part = self._held_out[start : start + _AT_A_TIME]
            read.append(both_orders(self._log_odds(part), self._log_odds([pair.reversed() for pair in part])))
        return torch.cat(read), torch.tensor([pair.relation for pair in self._held_out], device=self.device)

    def validate(self) -> dict[str, float]:
        """Share of the held-out pairs whose relation is read right: of all, and of each relation."""
        log_odds, relations = self._held_out_log_odds()
        right = log_odds.argmax(1) == relations
        of_each = {RELATIONS[i]: float(right[relations == i].float().mean()) for i in set(relations.tolist())}
        return {"right": float(right.float().mean()), **of_each}

    def calibrate(self) -> None:
        """Fits slope and bias of the last layer to the held-out pairs."""
        self.network.eval()
        log_odds, relations = self._held_out_log_odds()
        slope, bias = (torch.zeros(size, device=self.device, requires_grad=True) for size in (1, len(RELATIONS) - 1))
        fitted = torch.optim.LBFGS([slope, bias], max_iter=_FIT_STEPS, line_search_fn="strong_wolfe")
        both = [0, 1, 1, 2, 3]  # the order of the texts must not matter

        def loss() -> Tensor:
            fitted.zero_grad()
            value = functional.cross_entropy(log_odds * slope.exp() + bias[both], relations)
            value.backward()  # type: ignore[no-untyped-call]
            return value

        fitted.step(loss)  # type: ignore[no-untyped-call]
        with torch.no_grad():
            last = self.network.relation
            last.weight.mul_(slope.exp())
            last.bias.mul_(slope.exp()).add_(bias[both])


def pairs(config: ConfigFile, out: RunOut, resume: Resume = False) -> None:
    """Train the pair reader; Ctrl-C saves a checkpoint.

    Example: facets-train pairs --config lab/configs/facets-pairs-en.toml --out runs/facets-pairs-en
    """
    settings = PairTrainingConfig.from_toml(config)
    trainer, result = train(lambda: PairTrainer(settings), out, resume=resume)
    trainer.calibrate()
    facts = {"seed": settings.seed, "steps": result.step, "start": settings.start, "seconds": round(result.seconds)}
    exported = PairReaderConfig(name=settings.name, encoder=settings.model, training=facts)
    write_encoder(out / "model", exported, trainer.network.state_dict(), trainer.pieces)

"""Predicts next items of users: each user's last item is ranked among all items and among those not seen before.

Shape suffixes: N users, L positions, V items (item 0 is padding).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp
from torch.nn.utils.rnn import pad_sequence

from facets.errors import InvalidInputError
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.files import read_lines, split_fields
from facets_lab.evaluation.options import Seeds, Steps, Threads, WorkDir
from facets_lab.evaluation.statistics import repeat_seeds
from facets_lab.heads.layers import PADDING
from facets_lab.heads.networks import Heads, NetworkTrainingConfig, SequenceNetwork, SequenceTrainer, experiment_config
from facets_lab.training.loop import train_or_load

_TOP = 10
_USERS_AT_ONCE = 256


def items(
    file: Annotated[Path, typer.Argument(help="Lines of user, tab, items separated by spaces, oldest first.")],
    work_dir: WorkDir,
    head: Heads = None,
    seeds: Seeds = 5,
    steps: Steps = 800,
    dim: Annotated[int, typer.Option(min=1)] = 64,
    threads: Threads = 0,
) -> Report:
    """Predict the next items of users, with and without items seen before; also measures two baselines.

    Example: python -m facets_lab.heads items ml-100k.tsv.xz --head softmax --head c --work-dir runs/items
    """
    data = read_sequences(file)
    config = experiment_config("items", dim=dim, dropout=0.2, steps=steps, threads=threads)

    def measure(name: str, seed: int) -> dict[str, float]:
        return measure_network(data, config.replaced(head=name, seed=seed), work_dir / f"{file.stem}-{name}-{seed}")

    measured = repeat_seeds(head or ["softmax", "c"], seeds, measure)
    shape = {"users": len(data.users), "items": data.num_items - 1, "asked_for_again": data.share_repeated}
    return {"data": {"file": file.name, **shape}, "baselines": measure_baselines(data), "layers": measured}


@dataclass(frozen=True, slots=True)
class Sequences:
    """Items of each user in order of time, numbered from 1."""

    users: list[NDArray[np.int64]]  # at least three items each
    num_items: int  # with padding

    @property
    def share_repeated(self) -> float:
        """Share of users whose last item is one of their earlier ones."""
        return float(np.mean([items[-1] in items[:-1] for items in self.users]))


def read_sequences(path: Path) -> Sequences:
    """Reads users and their items from lines of user, tab, and items separated by blanks."""
    numbers: dict[str, int] = {}
    users = []
    for place, line in read_lines(path):
        _, items = split_fields(line, ("user", "items"), place)
        users.append(np.array([numbers.setdefault(item, len(numbers) + 1) for item in items.split()], np.int64))
    long_enough = sorted((items for items in users if len(items) >= 3), key=len)  # similar lengths cost least
    if not long_enough:
        raise InvalidInputError(f"{path}: expected a user with three items or more, got none in {len(users)} lines")
    return Sequences(long_enough, len(numbers) + 1)


def windows(users: Sequence[NDArray[np.int64]], length: int) -> NDArray[np.int64]:
    """Pieces of ``length + 1`` items, cut from the end of each sequence; consecutive ones share an item."""
    pieces = [items[max(end - length - 1, 0) : end] for items in users for end in range(len(items), 1, -length)]
    result = np.zeros((len(pieces), length + 1), np.int64)
    for row, piece in zip(result, pieces, strict=True):
        row[: len(piece)] = piece
    return result


def learned_and_held_out(data: Sequences, length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Windows of all but the last two items, and the second-to-last item after the earlier ones as negative numbers."""
    before = [np.append(-items[:-2], items[-2])[-length - 1 :] for items in data.users]
    return windows([items[:-2] for items in data.users], length), windows(before, length)


def measure_network(data: Sequences, config: NetworkTrainingConfig, folder: Path) -> dict[str, float]:
    """Trains on all but the last two items of each user in ``folder`` (or loads it), and ranks the last one.

    ``validation_loss`` is the loss of the second-to-last item.
    """
    sequences, held_out = learned_and_held_out(data, config.max_length)
    trainer, result = train_or_load(
        lambda: SequenceTrainer(config, sequences, held_out, num_words=data.num_items), folder
    )
    network = trainer.network.eval()
    figures = ranking_figures(data, lambda users: _scores(network, users, config.max_length))
    return figures | {"seconds": result.seconds, "validation_loss": result.validation_loss or 0.0}


@torch.no_grad()
def _scores(network: SequenceNetwork, users: Sequence[NDArray[np.int64]], length: int) -> NDArray[np.float32]:
    """Log-probabilities of the item after the last one of each user, ``[N, V]``."""
    parts = []
    for start in range(0, len(users), 32):  # similar lengths: few positions to return
        rows = [torch.from_numpy(items[-length:]) for items in users[start : start + 32]]
        lengths_B = torch.tensor([len(row) for row in rows])
        first = int(lengths_B.min()) - 1
        inputs_BL = pad_sequence(rows, batch_first=True, padding_value=PADDING).to(network.words.weight.device)
        log_probabilities_BLV = network(inputs_BL, inputs_BL.shape[1] - first)
        parts.append(log_probabilities_BLV[torch.arange(len(rows)), lengths_B - 1 - first].float().cpu())
    return torch.cat(parts).numpy()


ScoresOf = Callable[[Sequence[NDArray[np.int64]]], NDArray[np.float32]]


def ranking_figures(data: Sequences, scores_of: ScoresOf) -> dict[str, float]:
    """Ranks of each user's last item, by log-probabilities ``[N, V]``, up to a constant, after the earlier ones.

    ``ndcg@10`` and ``hit@10`` are times 100 among all items, ``..._unseen`` among unseen items (a repeated last item
    stays in). An item ranks behind half of those with an equal score. ``loss``: mean negative log-probability.
    """
    found: dict[str, list[NDArray[np.float64]]] = {"": [], "_unseen": []}
    for start in range(0, len(data.users), _USERS_AT_ONCE):
        users = data.users[start : start + _USERS_AT_ONCE]
        scores_NV = np.array(scores_of([items[:-1] for items in users]), np.float32)
        scores_NV[:, 0] = -np.inf
        targets_N = np.array([items[-1] for items in users])
        own_N1 = np.take_along_axis(scores_NV, targets_N[:, None], axis=1)
        for name, result in found.items():
            if name:
                for row, items, target in zip(scores_NV, users, targets_N, strict=True):
                    row[items[:-1][items[:-1] != target]] = -np.inf
            above_N, level_N = (scores_NV > own_N1).sum(axis=1), (scores_NV == own_N1).sum(axis=1) - 1
            result.append(np.stack((above_N + level_N / 2, logsumexp(scores_NV, axis=1) - own_N1[:, 0])))
    figures: dict[str, float] = {}
    for name, parts in found.items():
        rank_N, loss_N = np.concatenate(parts, axis=1)
        figures[f"loss{name}"] = float(loss_N.mean())
        gain_N = np.where(rank_N < _TOP, 1.0 / np.log2(rank_N + 2.0), 0.0)
        figures |= {f"ndcg@10{name}": 100 * float(gain_N.mean()), f"hit@10{name}": 100 * float((rank_N < _TOP).mean())}
    return figures


def measure_baselines(data: Sequences) -> Mapping[str, dict[str, float]]:
    """The most frequent items, and those that most often followed the last item."""
    taken = [items[:-2] for items in data.users]
    counts_V = 1.0 + np.bincount(np.concatenate(taken), minlength=data.num_items).astype(np.float32)
    before = np.concatenate([items[:-1] for items in taken])
    after = np.concatenate([items[1:] for items in taken])
    shape = (data.num_items, data.num_items)
    follows_VV = sparse.csr_array((np.ones(len(before), np.float32), (before, after)), shape=shape)
    popularity_V = counts_V / (counts_V.max() + 1.0)  # below 1, so that it only breaks ties
    return {
        "popularity": ranking_figures(data, lambda users: np.tile(np.log(counts_V), (len(users), 1))),
        "after-the-last": ranking_figures(
            data, lambda users: np.log(follows_VV[np.array([items[-1] for items in users])].toarray() + popularity_V)
        ),
    }

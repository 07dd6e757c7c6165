"""Output layers for the next word: one class, one entry of ``HEADS`` for each layer.

A softmax of one hidden state's products with all words cannot give every distribution. These layers use several states
(mixtures), a curve over the products, or separate states for parts of the vocabulary or for words just read.

Shape suffixes: B sequences, L positions, V words (word 0 is padding, never predicted), H hidden dimensions,
Q dimensions of the input of the projections, S softmaxes, R words of a reranker.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from facets.errors import ConfigError

PADDING = 0
_BLOCK = 3  # last positions and last layers that multi-input reads (Chang 2022, section 2.3.1.2)
_TINY_WEIGHT = 1e-10  # initial weight of local embeddings: the layer starts as a softmax (section 2.4.1.5)
_NEVER = -1e9  # product of padding; -inf would make the gradient of a mixture NaN


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadConfig:
    """Parts of a layer."""

    num_softmaxes: int = 1  # facets
    mixture: Literal["probabilities", "contexts"] = "probabilities"  # mean of the probabilities (MoS) or facets (MoC)
    has_block: bool = False  # reads a block of last positions and layers (multi-input), not the last state alone
    num_partitions: int = 1  # parts of the vocabulary in the first softmax, with one facet each
    has_curve: bool = False  # sigsoftmax, over the products
    context: bool = False  # words already read have a separate facet (C)
    local: bool = False  # and are also compared with the states that read them (L)
    rerankers: tuple[int, ...] = ()  # numbers of most likely words with a separate facet, ascending (R)

    def __post_init__(self) -> None:
        if list(self.rerankers) != sorted(set(self.rerankers)) or any(size < 1 for size in self.rerankers):
            raise ConfigError(f"rerankers must be positive and ascending, got {self.rerankers}")
        if min(self.num_softmaxes, self.num_partitions) < 1:
            counts = f"{self.num_softmaxes} and {self.num_partitions}"
            raise ConfigError(f"expected num_softmaxes and num_partitions >= 1, got {counts}")


HEADS: Mapping[str, HeadConfig] = MappingProxyType(
    {
        "softmax": HeadConfig(),
        "multi-input": HeadConfig(has_block=True),
        "sigsoftmax": HeadConfig(has_curve=True),
        "moc": HeadConfig(num_softmaxes=3, mixture="contexts"),
        "mos": HeadConfig(num_softmaxes=3),
        "mfs": HeadConfig(num_softmaxes=3, has_block=True, num_partitions=4),
        "mfs-one-input": HeadConfig(num_softmaxes=3, num_partitions=4),
        "mfs-one-partition": HeadConfig(num_softmaxes=3, has_block=True),
        "c": HeadConfig(context=True),
        "cl": HeadConfig(context=True, local=True),
        "r": HeadConfig(rerankers=(20, 100)),
        "clr": HeadConfig(context=True, local=True, rerankers=(20, 100)),
        "clr-multi-input": HeadConfig(has_block=True, context=True, local=True, rerankers=(20, 100)),
    }
)


def head_config(name: str) -> HeadConfig:
    """The entry of ``HEADS`` with this name; an unknown name raises ConfigError."""
    if name not in HEADS:
        raise ConfigError(f"unknown layer {name!r}, there are {', '.join(HEADS)}")
    return HEADS[name]


class Head(nn.Module):
    """Probabilities of the next word at every position.

    ``words_VH`` are the embeddings of the words, shared with the network below; row 0 is padding.

    References:
        Chang 2022, eq. 2.1 to 2.11; Yang 2018, eq. 2 and section 2.5; Parthiban 2020, eq. 4.17.
    """

    def __init__(self, words_VH: Tensor, config: HeadConfig, *, num_layers: int) -> None:
        super().__init__()
        num_words, dim = words_VH.shape
        if max(config.rerankers, default=0) >= num_words:
            raise ConfigError(f"rerankers {config.rerankers} need a larger vocabulary than {num_words - 1}")
        self.words_VH = words_VH
        self.config = config
        width = min(_BLOCK, num_layers)
        self.block = nn.Linear(_BLOCK * width * dim, dim) if config.has_block else None
        query = 2 * dim if config.has_block else dim
        self.facets = nn.ModuleList(nn.Linear(query, dim) for _ in range(config.num_softmaxes))
        self.partitions = nn.ModuleList(nn.Linear(query, dim) for _ in range(config.num_partitions - 1))
        self.prior = nn.Linear(query, config.num_softmaxes) if config.num_softmaxes > 1 else nn.Identity()
        self.context = nn.Linear(query, dim) if config.context else None
        self.local_query = nn.Linear(query, dim) if config.local else None
        self.local_words = nn.Linear(query, dim) if config.local else None
        self.rerankers = nn.ModuleList(nn.Linear(query, dim) for _ in config.rerankers)
        never_V = torch.zeros(num_words).index_fill(0, torch.tensor([PADDING]), _NEVER)
        self.never_V: Tensor
        self.register_buffer("never_V", never_V, persistent=False)
        self._start_as_softmax()

    def _start_as_softmax(self) -> None:
        """The first facet starts as the state; other softmaxes start at random, because equal ones would stay equal."""
        with torch.no_grad():
            for linear in (self.facets[0], *self.partitions, self.context, *self.rerankers):
                if linear is not None:
                    nn.init.eye_(linear.weight)
                    nn.init.zeros_(linear.bias)
            for linear in (self.local_query, self.local_words):
                if linear is not None:
                    nn.init.eye_(linear.weight).mul_(_TINY_WEIGHT)
                    nn.init.zeros_(linear.bias)

    def forward(self, states: Sequence[Tensor], inputs_BL: Tensor, *, last: int = 0) -> Tensor:
        """Log-probabilities of the word after each of the ``last`` positions (0: all), ``[B, L, V]``.

        ``states`` are the causal ``[B, L, H]`` of each layer of the network below, the last one last; ``inputs_BL`` are
        the words read, int64, 0 where there is none. Padding has a probability of 0.
        """
        all_BLQ = self._query(states)
        query_BLQ = all_BLQ[:, -last:]
        facets = [linear(query_BLQ) for linear in self.facets]
        if self.config.mixture == "contexts":
            weights_BLS = self.prior(query_BLQ).softmax(dim=-1)
            mean_BLH = torch.stack(facets, dim=-1) @ weights_BLS.unsqueeze(-1)  # [B, L, H, S] @ [B, L, S, 1]
            facets = [mean_BLH.squeeze(-1)]
        first_BLV = self._first_products(facets[0], query_BLQ, all_BLQ=all_BLQ, inputs_BL=inputs_BL)
        products = [first_BLV, *map(self._products, facets[1:])]
        if self.config.has_curve:  # GSS(0, 2): Parthiban 2020, eq. 4.17
            products = [2.0 * products_BLV - functional.softplus(products_BLV) for products_BLV in products]
        return self._mixed(products, query_BLQ)

    def _products(self, facet_BLH: Tensor) -> Tensor:
        return functional.linear(facet_BLH, self.words_VH, self.never_V)  # a bias costs no copy of [B, L, V]

    def _query(self, states: Sequence[Tensor]) -> Tensor:
        """Input of the projections, ``[B, L, Q]``: eq. 2.3 for multi-input."""
        last_BLH = states[-1]
        if self.block is None:
            return last_BLH
        seen = []
        for state_BLH in states[-_BLOCK:]:
            seen += [functional.pad(state_BLH, (0, 0, back, 0))[:, : state_BLH.shape[1]] for back in range(_BLOCK)]
        return torch.cat((last_BLH, functional.gelu(self.block(torch.cat(seen, dim=-1)))), dim=-1)

    def _first_products(self, facet_BLH: Tensor, query_BLQ: Tensor, *, all_BLQ: Tensor, inputs_BL: Tensor) -> Tensor:
        """Products of the first softmax, ``[B, L, V]``, with the facets of special words."""
        products_BLV = self._products(facet_BLH)
        num_partitions = self.config.num_partitions
        for part, linear in enumerate(self.partitions, start=1):  # eq. 2.4: word x belongs to the facet x mod J
            products_BLV[..., part::num_partitions] = linear(query_BLQ) @ self.words_VH[part::num_partitions].T
        products_BLV = self._reranked(products_BLV, query_BLQ)
        if self.context is not None or self.local_query is not None:
            read_BLH = facet_BLH if self.context is None else self.context(query_BLQ)
            products_BLV = self._of_words_read(products_BLV, read_BLH, all_BLQ=all_BLQ, inputs_BL=inputs_BL)
        return products_BLV

    def _reranked(self, products_BLV: Tensor, query_BLQ: Tensor) -> Tensor:
        """Eq. 2.8: the widest reranker first; a narrower one uses its products."""
        for size, linear in reversed(list(zip(self.config.rerankers, self.rerankers, strict=True))):
            best_BLR = products_BLV.detach().topk(size, dim=-1).indices
            again_BLV = linear(query_BLQ) @ self.words_VH.T
            products_BLV = products_BLV.scatter(-1, best_BLR, again_BLV.gather(-1, best_BLR))
        return products_BLV

    def _of_words_read(self, products_BLV: Tensor, facet_BLH: Tensor, *, all_BLQ: Tensor, inputs_BL: Tensor) -> Tensor:
        """Replaces the products of words read up to each position (eq. 2.5, 2.10, 2.11); other words keep theirs."""
        length, last = inputs_BL.shape[1], facet_BLH.shape[1]
        same_BLL = inputs_BL.unsqueeze(2) == inputs_BL.unsqueeze(1)  # same word at both positions
        causal_LL = inputs_BL.new_ones(length, length, dtype=torch.bool).tril()  # position l has read position i
        is_first_BL = ~(same_BLL & causal_LL.tril(-1)).any(dim=-1)
        causal_LL = causal_LL[-last:]
        read_BLL = causal_LL & (is_first_BL & (inputs_BL != PADDING)).unsqueeze(1)
        new_BLL = facet_BLH @ self.words_VH[inputs_BL].mT  # [B, L, H] @ [B, H, L]: position by word read
        if self.local_query is not None and self.local_words is not None:
            met_BLL = (self.local_query(all_BLQ[:, -last:]) @ self.local_words(all_BLQ).mT).masked_fill(~causal_LL, 0.0)
            shares_BLL = same_BLL.to(met_BLL.dtype)  # eq. 2.9: the mean over the places where the word was read
            new_BLL = new_BLL + met_BLL @ shares_BLL / (causal_LL.to(met_BLL.dtype) @ shares_BLL).clamp_min(1.0)
        # Each word is written once, at its first place, for one value and one gradient; other places write to padding.
        # The write is in place, because the gradient needs no product.
        places_BLL = inputs_BL.unsqueeze(1).expand_as(new_BLL).masked_fill(~read_BLL, PADDING)
        return products_BLV.scatter_(-1, places_BLL, new_BLL.masked_fill(~read_BLL, _NEVER))

    def _mixed(self, products: list[Tensor], query_BLQ: Tensor) -> Tensor:
        if len(products) == 1:
            return products[0].log_softmax(dim=-1)
        weights_BLS = self.prior(query_BLQ).log_softmax(dim=-1)  # eq. 2.2 and 2.4
        each = [p.log_softmax(dim=-1) + weights_BLS[..., facet, None] for facet, p in enumerate(products)]
        return torch.logsumexp(torch.stack(each), dim=0)

"""The paper network: facets, and their magnitudes for authors and citations (Chang 2022, section 3.4.2).

Shape suffixes: B papers, L words, K facets, D dimensions of the target space, W width of word vectors, H hidden width,
V words in the vocabulary.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from facets.config import FacetModelConfig
from facets.model.network import Block, FacetDecoder, TokenEmbedding, TransformerEncoder, WordTable, padding_mask
from facets.papers.records import CandidateKind
from facets.scoring import probability_weights

_KEY_DIM = 64


class EncodedPapers(NamedTuple):
    """Network output for a batch of papers."""

    facets: Tensor  # `[B, K, D]`, p_k, without magnitudes
    author_magnitudes: Tensor  # `[B, K]`, rho, > 0
    citation_magnitudes: Tensor  # `[B, K]`, tau, > 0

    def scaled(self, kind: CandidateKind) -> Tensor:
        """``[B, K, D]``: the facets with the magnitudes for authors or for citations (eq. 3.15)."""
        magnitudes = self.author_magnitudes if kind is CandidateKind.AUTHORS else self.citation_magnitudes
        return self.facets * magnitudes.unsqueeze(-1)


class TypedTokenEmbedding(TokenEmbedding):
    """Unit word vectors of typed rows plus a learned vector for the word's type, title or abstract (B.5)."""

    def __init__(self, words: WordTable, *, train_words: bool) -> None:
        super().__init__(words)
        width = words.vectors.shape[1]
        if train_words:
            vectors_VW = words.vectors.clone()
            del words.vectors
            words.vectors = nn.Parameter(vectors_VW)
        self.types = nn.Parameter(torch.randn(2, width) * 0.5 * width**-0.5)  # title, abstract

    def forward(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """Vectors ``[B, L + 1, W]`` of typed rows ``[B, L]``, with <eos> after the last word."""
        num_rows = len(self.words.vectors) + 1
        types_BLW = functional.pad(functional.embedding(rows_BL // num_rows, self.types), (0, 0, 0, 1))
        is_eos_BL = torch.arange(types_BLW.shape[1], device=rows_BL.device) == lengths_B[:, None]
        return super().forward(rows_BL % num_rows, lengths_B) + types_BLW.masked_fill(is_eos_BL.unsqueeze(-1), 0.0)


class MagnitudeHead(nn.Module):
    """Two transformer layers over [facet; decoder input], then a three-layer network per magnitude (eq. 3.15)."""

    def __init__(self, config: FacetModelConfig) -> None:
        super().__init__()
        width = config.hidden_dim
        self.input = nn.Linear(config.dim + config.hidden_dim, width)
        self.blocks = nn.ModuleList(Block(width, config.num_heads, width) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.author = _magnitude_layers(width)
        self.citation = _magnitude_layers(width)

    def forward(self, facets_BKD: Tensor, inputs_BKH: Tensor) -> tuple[Tensor, Tensor]:
        """Rho and tau, ``[B, K]`` each, > 0, about 1 before training."""
        states_BKH = self.input(torch.cat([facets_BKD, inputs_BKH], dim=-1))
        for block in self.blocks:
            states_BKH = block(states_BKH, None)
        states_BKH = self.norm(states_BKH)
        # softplus(0.54) = 1: magnitudes start neutral
        author_BK = functional.softplus(self.author(states_BKH).squeeze(-1).float() + 0.5413)
        citation_BK = functional.softplus(self.citation(states_BKH).squeeze(-1).float() + 0.5413)
        return author_BK, citation_BK


def _magnitude_layers(width: int) -> nn.Sequential:
    last = nn.Linear(width // 2, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(width, width // 2), nn.ReLU(), nn.Linear(width // 2, width // 2), nn.ReLU(), last)


class PaperNetwork(nn.Module):
    """Turns typed word rows into K facets in the space of authors and citing papers, with two magnitudes each.

    Each facet is the sum of two linear maps: G_k of the decoder's state, and one of the facet's own word average, which
    weights words by eq. B.4 (p(w): ``probabilities_V``) times the facet's attention. The latter maps all start as the
    same projection, so that training begins in a space where papers on one subject are close. ``train_words``: whether
    training changes word vectors and weights (B.5).
    """

    def __init__(
        self, config: FacetModelConfig, words: WordTable, probabilities_V: Tensor, *, train_words: bool = False
    ) -> None:
        super().__init__()
        self.config = config
        num_facets, hidden, word_dim = config.num_facets, config.hidden_dim, words.vectors.shape[1]
        shape = config.replaced(dim=word_dim)
        self.encoder = TransformerEncoder(shape, words)
        self.encoder.embedding = TypedTokenEmbedding(words, train_words=train_words)
        self.decoder = FacetDecoder(config.replaced(dim=hidden))
        self.output_maps = nn.Parameter(
            torch.randn(num_facets, hidden, config.dim) * 0.3 * (hidden * config.dim) ** -0.5
        )
        self.average_maps = nn.Parameter(torch.randn(num_facets, word_dim, config.dim) * config.dim**-0.5)
        self.word_keys = nn.Linear(hidden, _KEY_DIM)
        self.facet_queries = nn.Linear(hidden, _KEY_DIM)
        with torch.no_grad():  # with the default scale, all facets would start from the same average
            self.word_keys.weight.mul_(3.0)
            self.facet_queries.weight.mul_(3.0)
        self.magnitudes = MagnitudeHead(config)
        self.word_map = nn.Linear(word_dim, config.dim, bias=False)  # H of eq. B.4
        weights_V = probability_weights(probabilities_V).float()
        self.log_word_weights = nn.Parameter(weights_V.log(), requires_grad=train_words)

    @property
    def word_weights(self) -> Tensor:
        """Weight of each word in an average, ``[V + 1]``; 0 for row V, the unknown word."""
        return functional.pad(self.log_word_weights.exp(), (0, 1))

    @property
    def word_vectors(self) -> Tensor:
        """``[V, W]``: in training, floats of unit length; else as :class:`WordTable` keeps them."""
        return self.encoder.embedding.words.vectors

    def forward(self, rows_BL: Tensor, lengths_B: Tensor) -> EncodedPapers:
        """Encodes papers (Chang 2022, section 3.4.2, eq. 3.15).

        ``rows_BL``: typed rows, int64, padded at the end with any valid row. ``lengths_B``: number of words, in [0, L].
        """
        states_BLH = self.encoder(rows_BL, lengths_B)
        eos_BH = states_BLH[torch.arange(len(rows_BL), device=rows_BL.device), lengths_B]
        mask_B11L = padding_mask(lengths_B, rows_BL.shape[1])
        inputs_BKH = self.decoder.input_maps(eos_BH).unflatten(-1, (self.config.num_facets, -1))
        decoded_BKH = self.decoder(eos_BH, states_BLH, mask_B11L)
        # [B, K, H] x [K, H, D] -> [B, K, D]
        facets_BKD = torch.einsum("bkh,khd->bkd", decoded_BKH, self.output_maps)
        own_BKW = self._attended_averages(rows_BL, lengths_B, states_BLH, decoded_BKH)
        facets_BKD = facets_BKD.float() + torch.einsum("bkw,kwd->bkd", own_BKW, self.average_maps).float()
        author_BK, citation_BK = self.magnitudes(facets_BKD, inputs_BKH)
        return EncodedPapers(facets_BKD, author_BK, citation_BK)

    def _attended_averages(self, rows_BL: Tensor, lengths_B: Tensor, states_BLH: Tensor, decoded_BKH: Tensor) -> Tensor:
        """The word average of each facet at unit length, ``[B, K, W]``."""
        length = rows_BL.shape[1]
        num_words = len(self.word_vectors)
        words_BL = rows_BL % (num_words + 1)
        mask_BL = torch.arange(length, device=rows_BL.device) < lengths_B[:, None]
        weights_BL = self.word_weights[words_BL]
        mask_BL = mask_BL & (weights_BL > 0)
        keys_BLE = self.word_keys(states_BLH[:, :length])
        logits_BKL = (self.facet_queries(decoded_BKH) @ keys_BLE.mT).float() * _KEY_DIM**-0.5
        # Bounded logits keep some weight on every word; the large negative mask keeps a text without words finite.
        logits_BKL = 4.0 * torch.tanh(logits_BKL / 4.0) + torch.log(weights_BL.clamp_min(1e-9)).unsqueeze(1)
        attention_BKL = logits_BKL.masked_fill(~mask_BL.unsqueeze(1), -1e4).softmax(dim=-1) * mask_BL.unsqueeze(1)
        values_BLW = self.encoder.embedding.words(words_BL.clamp_max(num_words - 1))
        return functional.normalize((attention_BKL.to(values_BLW.dtype) @ values_BLW).float(), dim=-1)

"""Facets of passages: soft spans of a text, each the weighted mean of the states of its tokens.

What co-occurs with a passage are the sentences it holds and the questions it answers, as vectors of a sentence encoder;
facets are the predicted centres of these (Chang 2022, section 3.2.1, with another target space). A sentence vector is
itself a mean of token states, so a facet starts as the mean of a segment and learns which tokens belong together.
Shape suffixes: T tokens of all texts, B texts, L tokens of the longest text, K facets, W width.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from facets.config import PassageNetworkConfig
from facets.model.sentence_encoder import RaggedBatch, SentenceEncoder, average_states

__all__ = ["FacetPooling", "PassageNetwork"]

_NUM_WAVES = 16  # sine and cosine each, of the place of a facet
_LARGEST_SHIFT = 0.3  # what one unit of the output of the shift layer moves a facet, in lengths of the text
_LENGTH_STEP = 32  # few different shapes: half precision keeps a kernel for each it has met


class FacetPooling(nn.Module):
    """Token states to facets: where each facet looks, and what it sees there.

    A text of n tokens has ``ceil(n / tokens_per_facet)`` facets, K at most, that begin as equal segments of it. A facet
    asks with its place and the vector of the text, reads the text once (a decoder layer), and then weights tokens by
    a softmax of a content score and a Gaussian over positions.
    """

    def __init__(self, config: PassageNetworkConfig) -> None:
        super().__init__()
        width = config.encoder.width
        self.config = config
        self.from_vector = nn.Linear(width, width)
        self.from_place = nn.Linear(2 * _NUM_WAVES, width)
        # Texts second: with texts first the attention of PyTorch multiplies every token by a copy of its weights.
        self.decoder = nn.TransformerDecoderLayer(
            width, config.num_heads, config.feedforward_dim, dropout=0.0, batch_first=False, norm_first=True
        )
        self.asks = nn.Linear(width, width)
        self.answers = nn.Linear(width, width)
        self.shift = _zero_linear(width, 1)
        self.log_width = _zero_linear(width, 1)
        self.correction = _zero_linear(width, width)

    def forward(self, states_TW: Tensor, vectors_BW: Tensor, batch: RaggedBatch) -> tuple[Tensor, Tensor]:
        """Facets and where they look.

        Args:
            states_TW: Contextual states of all tokens.
            vectors_BW: Unit vectors of the texts.
            batch: What the states belong to.

        Returns:
            Facets of unit norm ``[B, K, W]``, zero rows where a text has fewer, and their weights over tokens
            ``[B, K, L]``, which add up to 1 over the tokens of the text.
        """
        num_facets_B = self.num_facets(batch.lengths)
        size, length = _round_up(len(vectors_BW)), -(-batch.max_length // _LENGTH_STEP) * _LENGTH_STEP
        more = size - len(vectors_BW)
        facets_BKW, weights_BKL = self._facets(
            batch.pad(states_TW, shape=(size, length)),
            functional.pad(vectors_BW, (0, 0, 0, more)),
            functional.pad(batch.lengths, (0, more), value=1),
            functional.pad(num_facets_B, (0, more), value=1),
        )
        short = self.config.num_facets - facets_BKW.shape[1]
        facets_BKW = functional.pad(facets_BKW[: len(vectors_BW)], (0, 0, 0, short))
        return facets_BKW, functional.pad(weights_BKL[: len(vectors_BW), :, : batch.max_length], (0, 0, 0, short))

    def _facets(
        self, states_BLW: Tensor, vectors_BW: Tensor, lengths_B: Tensor, num_facets_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """As :meth:`forward`, of padded states; every text has a token."""
        places_L = torch.arange(states_BLW.shape[1], device=states_BLW.device)
        unseen_BL = places_L >= lengths_B[:, None]
        most = min(_round_up(int(num_facets_B.max())), self.config.num_facets)
        facets_K = torch.arange(most, device=states_BLW.device)
        used_BK = facets_K < num_facets_B[:, None]
        centres_BK = (facets_K + 0.5) / num_facets_B[:, None]
        queries_BKW = self.from_place(_waves(centres_BK).to(states_BLW.dtype))
        queries_BKW = queries_BKW + self.from_vector(vectors_BW.to(states_BLW.dtype))[:, None]
        queries_KBW, states_LBW = (values.transpose(0, 1).contiguous() for values in (queries_BKW, states_BLW))
        queries_KBW = self.decoder(
            queries_KBW, states_LBW, tgt_key_padding_mask=~used_BK, memory_key_padding_mask=unseen_BL
        )
        # Of a tensor that is not contiguous, every text would be multiplied by a copy of the weights.
        queries_BKW = queries_KBW.transpose(0, 1).contiguous()
        # Few facets are taken to the space of many tokens; what the bias adds is the same for all tokens.
        asked_BKW = self.asks(queries_BKW) @ self.answers.weight
        content_BKL = asked_BKW @ states_BLW.mT / math.sqrt(states_BLW.shape[2])
        positions_BL = (places_L + 0.5) / lengths_B[:, None]
        near_BKL = self._nearness(queries_BKW, centres_BK, num_facets_B, positions_BL)
        weights_BKL = (content_BKL.float() + near_BKL).masked_fill(unseen_BL[:, None], -torch.inf).softmax(dim=2)
        seen_BKW = weights_BKL.to(states_BLW.dtype) @ states_BLW
        pooled_BKW = functional.normalize((seen_BKW + self.correction(seen_BKW)).float(), dim=2)
        facets_BKW = functional.normalize(pooled_BKW + self._shared(vectors_BW), dim=2)
        return facets_BKW * used_BK[:, :, None], weights_BKL * used_BK[:, :, None]

    def num_facets(self, lengths_B: Tensor) -> Tensor:
        """Facets of texts of so many tokens."""
        wanted_B = torch.ceil(lengths_B / self.config.tokens_per_facet).long()
        return wanted_B.clamp(1, self.config.num_facets)

    def _shared(self, vectors_BW: Tensor) -> Tensor:
        """What all facets of a text have in common: as if its own vector counted in every score."""
        return self.config.own_vector_weight * vectors_BW.float()[:, None]

    def _nearness(self, queries_BKW: Tensor, centres_BK: Tensor, num_facets_B: Tensor, positions_BL: Tensor) -> Tensor:
        """Logarithm of the Gaussian of each facet at each token, up to a constant, ``[B, K, L]``."""
        moved_BK = centres_BK + _LARGEST_SHIFT * self.shift(queries_BKW).squeeze(2).float()
        widths_BK = torch.exp(self.log_width(queries_BKW).squeeze(2).float()) * 0.5 / num_facets_B[:, None]
        return -0.5 * ((positions_BL[:, None] - moved_BK[:, :, None]) / widths_BK[:, :, None]).square()


class PassageNetwork(nn.Module):
    """Encoder and facets of passages."""

    def __init__(self, config: PassageNetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = SentenceEncoder(config.encoder)
        self.pooling = FacetPooling(config)

    def forward(self, batch: RaggedBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Facets ``[B, K, W]``, their weights over tokens ``[B, K, L]``, and vectors of the texts ``[B, W]``."""
        states_TW = self.encoder(batch)
        vectors_BW = average_states(states_TW, batch)
        facets_BKW, weights_BKL = self.pooling(states_TW, vectors_BW, batch)
        return facets_BKW, weights_BKL, vectors_BW


def _round_up(size: int) -> int:
    """The next power of two."""
    return 1 << max(0, size - 1).bit_length()


def _zero_linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def _waves(places: Tensor) -> Tensor:
    """Sines and cosines of half, one, one and a half ... turns, ``[..., 2 * _NUM_WAVES]``."""
    turns = torch.arange(1, _NUM_WAVES + 1, device=places.device) / 2
    angles = 2 * math.pi * places[..., None] * turns
    return torch.cat([angles.sin(), angles.cos()], dim=-1)

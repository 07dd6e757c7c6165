"""Networks that make facets of passages in other ways than the shipped one, to compare with.

Every text has as many facets as the shipped models give it, and every facet holds as much of the text's own vector.
Shape suffixes: T tokens of all texts, B texts, L tokens of the longest text, K facets, C facets of all texts, W width.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from facets.config import PassageNetworkConfig
from facets.model.network import sinusoidal_positions
from facets.model.passage_network import PaddedPlaces, PassageNetwork, RaggedBatch, average_states

_PLACES = 64  # that a facet of a text can have
_STEP = 64  # few different shapes: half precision keeps a kernel for each it has met
_NOISE = 0.01  # that tells equal [CLS] inputs and layers apart at first


class FreeDecoder(nn.Module):
    """Facets as the outputs of a decoder whose queries attend to the states (Chang 2022, section 3.2.1).

    A query is made of its place and the vector of the text, as that of the shipped facets. With ``from_vector`` the
    output is added to the vector of the text, and is zero at first; otherwise it is the facet.
    """

    def __init__(self, config: PassageNetworkConfig, *, from_vector: bool) -> None:
        super().__init__()
        width = config.encoder.width
        self.config = config
        self.register_buffer("places", sinusoidal_positions(_PLACES, width))
        self.place = nn.Linear(width, width)
        self.vector = nn.Linear(width, width)
        self.layers = nn.ModuleList(
            nn.TransformerDecoderLayer(
                width, config.num_heads, config.feedforward_dim, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(2)
        )
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, width)
        self.from_vector = from_vector
        if from_vector:
            nn.init.zeros_(self.output.weight)
            nn.init.zeros_(self.output.bias)

    def forward(self, states_TW: Tensor, vectors_BW: Tensor, batch: RaggedBatch) -> tuple[Tensor, Tensor]:
        """As ``FacetPooling``; there are no weights over tokens."""
        used_BK, centres_BK = facet_places(batch.lengths, self.config)
        size, length = _up(len(vectors_BW)), _up(batch.max_length)
        more = size - len(vectors_BW)
        seen_BL = functional.pad(batch.mask, (0, length - batch.max_length, 0, more))
        seen_BL[len(vectors_BW) :, 0] = True
        queries_BKW = self.place(self.places[(centres_BK * _PLACES).long()])
        queries_BKW = queries_BKW + self.vector(vectors_BW)[:, None]
        queries_BKW = functional.pad(queries_BKW, (0, 0, 0, 0, 0, more))
        unused_BK = ~functional.pad(used_BK, (0, 0, 0, more), value=True)
        memory_BLW = batch.pad(states_TW, shape=(size, length))
        for layer in self.layers:
            queries_BKW = layer(
                queries_BKW, memory_BLW, tgt_key_padding_mask=unused_BK, memory_key_padding_mask=~seen_BL
            )
        found_BKW = self.output(self.norm(queries_BKW))[: len(vectors_BW)].float()
        if self.from_vector:
            found_BKW = found_BKW + vectors_BW[:, None]
        return with_own_vector(found_BKW, vectors_BW, used_BK, self.config), used_BK[:, :, None].float()


class MultiClsNetwork(PassageNetwork):
    """Facets as the states of K learned [CLS] inputs that the encoder reads beside the text.

    Each has linear maps of its own after every layer and at the end, without which they soon are the same (Chang 2022,
    section 5.2.1.5). It stands in the middle of its part of the text, as a shipped facet does at first.
    """

    def __init__(self, config: PassageNetworkConfig, cls_piece: int) -> None:
        super().__init__(config)
        num_maps, width = config.encoder.num_layers, config.encoder.width
        self.pooling = nn.Identity()  # type: ignore[assignment]
        self.inputs = nn.Parameter(_NOISE * torch.randn(config.num_facets, width))
        self.maps = nn.Parameter(torch.eye(width) + _NOISE * torch.randn(num_maps, config.num_facets, width, width))
        self._cls_piece = cls_piece

    def forward(self, batch: RaggedBatch) -> tuple[Tensor, Tensor, Tensor]:
        """See ``PassageNetwork``; there are no weights over tokens."""
        used_BK, centres_BK = facet_places(batch.lengths, self.config)
        text_C, facet_C = used_BK.nonzero(as_tuple=True)
        joined = RaggedBatch(
            ids=torch.cat([batch.ids, torch.full_like(text_C, self._cls_piece)]),
            lengths=batch.lengths + used_BK.sum(dim=1),
            text_numbers=torch.cat([batch.text_numbers, text_C]),
            positions=torch.cat([batch.positions, batch.lengths[text_C] + facet_C]),
            max_length=int((batch.lengths + used_BK.sum(dim=1)).max()),
        )
        middles_C = (centres_BK[text_C, facet_C] * batch.lengths[text_C]).long()
        states_TW = self.encoder.pieces(joined.ids)
        states_TW = states_TW + self.encoder.positions(torch.cat([batch.positions, middles_C]))
        texts_TW, states_CW = states_TW.split([len(batch.ids), len(text_C)])
        states_TW = self.encoder.norm(torch.cat([texts_TW, states_CW + self.inputs[facet_C]]))
        places = PaddedPlaces.of(joined, num_rows=_up(len(joined.ids)), dtype=torch.bfloat16)
        rows_C = text_C * self.config.num_facets + facet_C
        for layer, maps_KWW in zip(self.encoder.layers, self.maps, strict=True):
            states_TW = functional.pad(states_TW, (0, 0, 0, -len(states_TW) % _STEP))
            states_TW = layer(states_TW, places)[: len(joined.ids)]
            texts_TW, states_CW = states_TW.split([len(batch.ids), len(text_C)])
            found_BKW = self._spread(states_CW, rows_C, len(batch.lengths))
            found_BKW = torch.einsum("bkw,kvw->bkv", found_BKW, maps_KWW)
            states_TW = torch.cat([texts_TW, found_BKW.flatten(0, 1)[rows_C].to(texts_TW.dtype)])
        vectors_BW = average_states(texts_TW, batch)
        found_BKW = found_BKW[: len(batch.lengths)].float()
        return with_own_vector(found_BKW, vectors_BW, used_BK, self.config), used_BK[:, :, None].float(), vectors_BW

    def _spread(self, states_CW: Tensor, rows_C: Tensor, num_texts: int) -> Tensor:
        """``[B, K, W]``, more texts than there are, zeros where there is no facet."""
        spread_RW = states_CW.new_zeros(_up(num_texts) * self.config.num_facets, states_CW.shape[1])
        return spread_RW.index_copy(0, rows_C, states_CW).unflatten(0, (-1, self.config.num_facets))


def facet_places(lengths_B: Tensor, config: PassageNetworkConfig) -> tuple[Tensor, Tensor]:
    """Which facets texts of so many tokens have, and where in the text, from 0 to 1; each ``[B, K]``."""
    numbers_B1 = torch.ceil(lengths_B / config.tokens_per_facet).long().clamp(1, config.num_facets)[:, None]
    facets_K = torch.arange(config.num_facets, device=lengths_B.device)
    return facets_K < numbers_B1, ((facets_K + 0.5) / numbers_B1).clamp(max=0.99)


def with_own_vector(found_BKW: Tensor, vectors_BW: Tensor, used_BK: Tensor, config: PassageNetworkConfig) -> Tensor:
    """Unit facets that hold as much of the text's own vector as shipped ones; zero where there is none."""
    found_BKW = functional.normalize(found_BKW, dim=2) + config.own_vector_weight * vectors_BW.float()[:, None]
    return functional.normalize(found_BKW, dim=2) * used_BK[:, :, None]


def _up(size: int) -> int:
    return -(-size // _STEP) * _STEP

"""The network: text -> encoder -> K input maps -> facet decoder -> K facets (Chang 2022, eq. 3.3, 3.4).

Shape suffixes: B texts, L tokens, K facets, D dimensions of the target space, H hidden width.
"""

import torch
from torch import Tensor, nn

from facets.config import FacetModelConfig
from facets.model.backbone import BackboneEncoder
from facets.model.encoders import RecurrentEncoder, TransformerEncoder, padding_mask
from facets.model.transformer import Block

__all__ = ["FacetDecoder", "FacetNetwork"]


class FacetDecoder(nn.Module):
    """K linear maps of the <eos> state, then a transformer over the facets that may look at the tokens."""

    def __init__(self, config: FacetModelConfig) -> None:
        super().__init__()
        self.num_facets = config.num_facets
        self.input_maps = nn.Linear(config.hidden_dim, config.num_facets * config.hidden_dim)
        # Large biases let the facets start apart; with small ones they stay copies of each other for long.
        nn.init.uniform_(self.input_maps.bias, -0.5, 0.5)
        self.blocks = nn.ModuleList(
            Block(
                config.hidden_dim,
                config.num_heads,
                config.feedforward_dim,
                dropout=config.dropout,
                cross_attention=config.cross_attention,
            )
            for _ in range(config.num_decoder_layers)
        )
        self.norm = nn.LayerNorm(config.hidden_dim)
        self.output = nn.Linear(config.hidden_dim, config.dim)

    def forward(self, eos_BH: Tensor, states_BLH: Tensor, mask_B11L: Tensor | None) -> Tensor:
        """``[B, H]`` and ``[B, L, H]`` -> facets ``[B, K, D]``, magnitudes free."""
        facets_BKH = self.input_maps(eos_BH).unflatten(-1, (self.num_facets, -1))
        for block in self.blocks:
            facets_BKH = block(facets_BKH, None, states_BLH, mask_B11L)
        facets_BKD: Tensor = self.output(self.norm(facets_BKH))
        return facets_BKD


class FacetNetwork(nn.Module):
    """Token rows in, K facet embeddings out; one forward pass, no autoregression."""

    def __init__(self, config: FacetModelConfig, word_vectors_VD: Tensor) -> None:
        super().__init__()
        self.config = config
        self.encoder: TransformerEncoder | RecurrentEncoder | BackboneEncoder
        if config.encoder == "transformer":
            self.encoder = TransformerEncoder(config, word_vectors_VD)
        elif config.encoder == "backbone":
            self.encoder = BackboneEncoder(config)
        else:
            self.encoder = RecurrentEncoder(config, word_vectors_VD)
        self.decoder = FacetDecoder(config)

    def forward(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """Facets of texts.

        Args:
            rows_BL: Token rows, ``[B, L]`` int64, padded at the end with any valid row.
            lengths_B: Number of real tokens, ``[B]`` int64, in ``[0, L]``.

        Returns:
            ``[B, K, D]`` facets in the target space, magnitudes kept.

        References:
            Chang 2022, eq. 3.3, 3.4.
        """
        facets_BKD, _ = self.forward_with_states(rows_BL, lengths_B)
        return facets_BKD

    def forward_with_states(self, rows_BL: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        """Facets ``[B, K, D]`` and the contextual states ``[B, L + 1, H]`` they were decoded from."""
        states_BLH = self.encoder(rows_BL, lengths_B)
        eos_BH = states_BLH[torch.arange(len(rows_BL), device=rows_BL.device), lengths_B]
        mask_B11L = padding_mask(lengths_B, rows_BL.shape[1])
        return self.decoder(eos_BH, states_BLH, mask_B11L), states_BLH

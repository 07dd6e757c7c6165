"""The network of multi-facet universal schema: one encoder and decoder for patterns (K facets) and relations (K_rel).

Shape suffixes: B patterns, R relations, L tokens, K facets, D dimensions, H hidden width, V words.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from facets.config import FacetModelConfig
from facets.model.encoders import TokenEmbedding
from facets.model.network import FacetNetwork
from facets.relations.patterns import ARG1, ARG2, ENTITY
from facets.text.vocabulary import Vocabulary

__all__ = ["NUM_PLACEHOLDERS", "PLACEHOLDERS", "RelationNetwork", "pattern_network", "pattern_rows"]

# Their learned vectors follow those of <unk> and <eos>: rows V + 2, V + 3, V + 4 of the token embedding.
PLACEHOLDERS = (ARG1, ARG2, ENTITY)
NUM_PLACEHOLDERS = len(PLACEHOLDERS)


def pattern_network(config: FacetModelConfig, word_vectors_VD: Tensor, *, num_relations: int = 0) -> FacetNetwork:
    """A facet network whose token embedding also has learned rows for the placeholders and for relations."""
    network = FacetNetwork(config, word_vectors_VD)
    embedding = _token_embedding(network)
    dim = word_vectors_VD.shape[1]
    embedding.special = nn.Parameter(torch.randn(2 + NUM_PLACEHOLDERS + num_relations, dim) * dim**-0.5)
    return network


def _token_embedding(network: FacetNetwork) -> TokenEmbedding:
    embedding = network.encoder.embedding
    assert isinstance(embedding, TokenEmbedding)
    return embedding


class RelationNetwork(nn.Module):
    """Facets of patterns and of relations; a relation is one token and has its own K_rel input maps.

    Args:
        config: Shape of the pattern network.
        word_vectors_VD: Frozen word vectors, ``[V, D]``.
        relation_vectors_RD: What the relations' tokens start from, ``[R, D]``.
        num_relation_facets: K_rel.
    """

    def __init__(
        self,
        config: FacetModelConfig,
        word_vectors_VD: Tensor,
        relation_vectors_RD: Tensor,
        *,
        num_relation_facets: int,
    ) -> None:
        super().__init__()
        self.num_relation_facets = num_relation_facets
        self.num_relations = len(relation_vectors_RD)
        self._first_relation_row = len(word_vectors_VD) + 2 + NUM_PLACEHOLDERS
        self.patterns = pattern_network(config, word_vectors_VD, num_relations=self.num_relations)
        with torch.no_grad():
            _token_embedding(self.patterns).special[2 + NUM_PLACEHOLDERS :] = relation_vectors_RD
        self.relation_maps = nn.Linear(config.hidden_dim, num_relation_facets * config.hidden_dim)
        # As in the decoder of patterns: facets start apart.
        nn.init.uniform_(self.relation_maps.bias, -0.5, 0.5)
        # H of eq. B.2.
        self.word_map = nn.Linear(config.dim, config.dim, bias=False)

    def forward(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """Facets of patterns, ``[B, K, D]``."""
        facets_BKD: Tensor = self.patterns(rows_BL, lengths_B)
        return facets_BKD

    def relation_facets(self, relations_R: Tensor) -> Tensor:
        """Facets of relations, ``[R, K_rel, D]``, from their numbers."""
        rows_R1 = (self._first_relation_row + relations_R).unsqueeze(1)
        lengths_R = torch.ones_like(relations_R)
        states_R2H = self.patterns.encoder(rows_R1, lengths_R)
        decoder = self.patterns.decoder
        facets_RKH = self.relation_maps(states_R2H[:, 1]).unflatten(-1, (self.num_relation_facets, -1))
        for block in decoder.blocks:
            facets_RKH = block(facets_RKH, None, states_R2H, None)
        facets_RKD: Tensor = decoder.output(decoder.norm(facets_RKH))
        return facets_RKD

    def pattern_tensors(self) -> dict[str, Tensor]:
        """Weights of the pattern network alone, without the rows of relations, for a checkpoint."""
        tensors = dict(self.patterns.state_dict())
        name = "encoder.embedding.special"
        tensors[name] = tensors[name][: 2 + NUM_PLACEHOLDERS].clone()
        return tensors


def pattern_rows(patterns: Sequence[Sequence[str]], vocabulary: Vocabulary, max_tokens: int) -> list[NDArray[np.int64]]:
    """Token rows of patterns; the placeholders' rows follow those of <unk> and <eos>; long ones lose their middle."""
    first = vocabulary.unknown_row + 2
    special = {name: first + place for place, name in enumerate(PLACEHOLDERS)}
    get, row = special.get, vocabulary.row
    result = []
    for tokens in patterns:
        if len(tokens) > max_tokens:
            head = max_tokens // 2
            tokens = [*tokens[:head], *tokens[len(tokens) - (max_tokens - head) :]]
        result.append(np.array([get(t) or row(t) for t in tokens], dtype=np.int64))
    return result

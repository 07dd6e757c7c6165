"""Passage models of late-interaction encoders: ``MultiVectorEncoder``, PyLate and ColBERT folders (extra ``backbone``).

A facet of a document is the mean of the vectors of two tokens; facets of long texts are reduced to one for four tokens.
Averaging two neighbouring vectors costs nothing, three or four little, above all if similar vectors are grouped (Clavié
et al. 2024, "Reducing the Footprint of Multi-Vector Retrieval with Minimal Performance Impact via Token Pooling").
A query keeps the vectors of its tokens, of equal weight: the score by facets is MaxSim divided by their number.
Shape suffixes: Q queries, J facets of a query, B windows, L tokens, T spans, P tokens of the longest span, D width.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from sentence_transformers.multi_vector_encoder.modules import BaseTokenPooling
from torch.nn import functional

from facets.arrays import Floats, Ints
from facets.language.reading import read
from facets.language.vectors import WordVectors, unit_rows
from facets.model.facet_reduction import reduce_facets
from facets.model.passage_encoding import Cut, PassageFacets, ReadWindows, cut_long
from facets.model.passage_model import PassageModel, QueryFacets
from facets.model.window_encoders import TokenEncoder
from facets.model.word_pieces import Pieces, encodable


class LateInteractionEncoder(TokenEncoder):
    """Encodes windows by their token vectors; a ``WindowEncoder``."""

    def __init__(self, model: Any) -> None:
        """``model``: a ``MultiVectorEncoder`` with a fast tokenizer; pooling that it has of its own is left out."""
        for place in reversed(range(len(model))):
            if isinstance(model[place], BaseTokenPooling):
                del model[place]
        super().__init__(model)
        self._num_after = len(self._tokenizer.after)
        self.has_states = True
        # Special tokens of a document, such as [CLS], the marker, and [SEP]; the model scores them too.
        self.num_document_special = len(self._tokenizer.before) + len(self._prompt_ids[False]) + self._num_after

    @torch.inference_mode()
    def encode(self, windows: Sequence[Pieces], bounds: Sequence[Ints] | None, *, query: bool) -> ReadWindows:
        """See ``WindowEncoder``: means of the vectors that the model scores, zero if there are none.

        Empty spans, the first ones of a window, stand for its special tokens in their order.
        """
        features, num_before = self._features(windows, query=query)
        features = self.network(features, task="query" if query else "document")
        units_BLD = functional.normalize(features["token_embeddings"].float(), dim=-1)
        units_BLD = units_BLD * features["attention_mask"].bool()[:, :, None]
        sums_BD = units_BLD.sum(dim=1).cpu().numpy()
        if bounds is None:
            return sums_BD, None
        spans_T = [(row, *span) for row, own in enumerate(bounds) for span in self._tokens(own + num_before)]
        rows_T, places_TP, is_own_TP = self._places(spans_T, units_BLD.shape[1])
        sums_TD = (units_BLD[rows_T[:, None], places_TP] * is_own_TP[:, :, None]).sum(dim=1)
        return sums_BD, sums_TD.cpu().numpy()

    def _tokens(self, bounds: Ints) -> list[tuple[int, int]]:
        """First and last token of each span of a window, whose tokens begin with the special ones."""
        first, end = bounds[[0, -1]].tolist()
        special = [*range(first), *range(end, end + self._num_after)]
        num_empty = int((bounds == first).sum()) - 1
        return [(place, place + 1) for place in special[:num_empty]] + list(pairwise(bounds[num_empty:].tolist()))

    def query_vectors(self, texts: Sequence[str]) -> list[Floats]:
        """Unit vectors of the tokens of each query as the model itself prepares it, ``[J, D]`` each."""
        found = self.network.encode_query(
            [encodable(text) for text in texts],
            prompt=self._prompts[True],
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return [unit_rows(vectors.astype(np.float32)) for vectors in found]


class LateInteractionModel(PassageModel):
    """A passage model whose query facets are the vectors of tokens, of equal weight."""

    max_query_facets = 64

    def __init__(
        self,
        encoder: LateInteractionEncoder,
        words: WordVectors,
        *,
        span: int = 2,
        num_facets: int = 32,
        **identity: Any,
    ) -> None:
        """``span``: most tokens of a facet. ``identity``: further arguments of ``PassageModel``, such as its name."""
        super().__init__(encoder, words, num_facets=num_facets, **identity)
        self._late_encoder, self._span = encoder, span
        self._facets = replace(
            self._facets, max_facets=256, tokens_per_long_facet=4, reads_sentences=False, whole_share=0.0
        )

    def _cut(self, text: str, pieces: Pieces) -> Cut:
        sentences = super()._cut(text, pieces).sentences
        gaps_L = pieces.starts > np.concatenate([[-1], pieces.ends[:-1]])
        spans = cut_long(sentences, gaps_L, longest=self._span)
        return Cut(sentences, np.concatenate([[0] * self._late_encoder.num_document_special, spans]))

    def _mix_in_headings(self, texts: Sequence[str], encoded: PassageFacets) -> None:
        """Leaves facets as they are: the heading's own tokens have facets, and their context is in all others."""

    def encode_queries(self, texts: Sequence[str]) -> QueryFacets:
        """Vectors of the tokens of queries, at most ``max_query_facets``; raises as ``encode``."""
        self._pieces(texts, query=True)  # checks the texts
        found = self._late_encoder.query_vectors([read(text).text for text in texts]) if texts else []
        few = [reduce_facets(own, np.full(len(own), 1 / len(own)), self.max_query_facets) for own in found]
        shape = len(few), max((len(own.facets) for own in few), default=1)
        facets_QJD, weights_QJ = np.zeros((*shape, self.dim), np.float32), np.zeros(shape, np.float32)
        for query, own in enumerate(few):
            facets_QJD[query, : len(own.facets)], weights_QJ[query, : len(own.weights)] = own.facets, own.weights
        return QueryFacets(facets_QJD, weights_QJ, np.zeros(len(few), dtype=np.bool_))

"""What scores pairs of texts, behind one interface: facet models and sentence embedders.

Shape suffixes: P pairs, T distinct texts, D dimensions, H hidden width.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from facets.language.vectors import unit_rows
from facets.model.contract import TextModel
from facets.texts.similarity import PairScorer
from facets.texts.similarity_methods import WORD_METHODS, SimilarityMethod, method_named

__all__ = [
    "ATTENTION_SUFFIX",
    "PAIR_METHODS",
    "EmbeddingPairs",
    "FacetPairs",
    "PairSystem",
    "method_of",
]

ATTENTION_SUFFIX = "+attention"
PAIR_METHODS = (
    *SimilarityMethod,
    *(f"{method}{ATTENTION_SUFFIX}" for method in SimilarityMethod if method in WORD_METHODS),
)

Pairs = Sequence[tuple[str, str]]


def method_of(name: str) -> SimilarityMethod:
    """The method behind a name of ``PAIR_METHODS``."""
    return method_named(name.removesuffix(ATTENTION_SUFFIX))


class PairSystem(Protocol):
    """Scores pairs of texts by one or more methods."""

    @property
    def name(self) -> str:
        """Its key in the report."""
        ...

    def scores(self, pairs: Pairs) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Each method with its scores ``[P]``, finite; higher is more alike."""
        ...


@dataclass(frozen=True, slots=True)
class FacetPairs:
    """A facet model: methods of ``PAIR_METHODS``."""

    name: str
    model: TextModel
    methods: tuple[str, ...]

    def scores(self, pairs: Pairs) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """See ``PairSystem``.

        Raises:
            ConfigError: The model lacks what ``sif`` removes, or the package for ``wmd`` is missing.
        """
        scorer = PairScorer(self.model, pairs)
        for name in self.methods:
            yield str(name), scorer.scores(method_of(name), attention=name.endswith(ATTENTION_SUFFIX))


@dataclass(frozen=True, slots=True)
class EmbeddingPairs:
    """A sentence embedder: the cosine of two embeddings, in ``[-1, 1]``."""

    name: str
    embed: Callable[[Sequence[str]], NDArray[np.float32]]  # texts -> [T, D]

    def scores(self, pairs: Pairs) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """See ``PairSystem``."""
        yield "cosine", _cosines(self.embed, pairs)


def _cosines(embed: Callable[[Sequence[str]], NDArray[np.float32]], pairs: Pairs) -> NDArray[np.float32]:
    """``[P]`` cosines in ``[-1, 1]``, 0 where an embedding is zero; every distinct text is embedded once."""
    rows = {text: row for row, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
    units_TD = unit_rows(embed(list(rows)))
    first_P, second_P = (np.array([rows[pair[side]] for pair in pairs]) for side in (0, 1))
    return np.einsum("pd,pd->p", units_TD[first_P], units_TD[second_P])

"""What recommendation needs of a model; ``facets.load`` of a model of papers returns one."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from facets.model.contract import Model

__all__ = ["EncodedArrays", "FittedTables", "PaperEncoder", "TrainedPapers", "TrainedSettings"]


class EncodedArrays(Protocol):
    """Encoded papers: facets without magnitudes, both magnitudes, word averages."""

    @property
    def facets(self) -> NDArray[np.float32]:
        """``[N, K, D]``."""
        ...

    @property
    def author_magnitudes(self) -> NDArray[np.float32]:
        """``[N, K]``."""
        ...

    @property
    def citation_magnitudes(self) -> NDArray[np.float32]:
        """``[N, K]``."""
        ...

    @property
    def averages(self) -> NDArray[np.float32]:
        """``[N, W]``."""
        ...


class FittedTables(Protocol):
    """Trained vectors, by kind."""

    @property
    def vectors(self) -> Mapping[str, NDArray[np.float32]]:
        """``[J, D]``."""
        ...

    @property
    def spreads(self) -> Mapping[str, NDArray[np.float32]]:
        """``[D, D]``, what sums of facets are multiplied by."""
        ...


class TrainedSettings(Protocol):
    """How scores are mixed."""

    @property
    def facet_weights(self) -> Mapping[str, float]:
        """By kind, in [0, 1]."""
        ...

    @property
    def document_modes(self) -> Mapping[str, str]:
        """By kind, ``max`` or ``average``."""
        ...

    @property
    def other_weights(self) -> Mapping[str, Mapping[str, float]]:
        """Like ``facet_weights`` beside other document similarities, by their name."""
        ...


class TrainedPapers(Protocol):
    """The papers, authors and citing papers of the training."""

    @property
    def ids(self) -> Sequence[str]:
        """``I`` ids."""
        ...

    @property
    def titles(self) -> Sequence[str]:
        """``I`` titles."""
        ...

    @property
    def years(self) -> NDArray[np.int32]:
        """``[I]``, 0 when unknown."""
        ...

    @property
    def rows(self) -> NDArray[np.uint16]:
        """Typed word rows of all papers."""
        ...

    @property
    def offsets(self) -> NDArray[np.int64]:
        """``[I + 1]`` into the rows."""
        ...

    @property
    def column_ids(self) -> Mapping[str, Sequence[str]]:
        """By kind, ids of authors or citing papers."""
        ...

    @property
    def column_names(self) -> Mapping[str, Sequence[str]]:
        """By kind, their names or titles."""
        ...

    @property
    def pairs(self) -> Mapping[str, NDArray[np.int64]]:
        """By kind, ``[P, 2]``: paper, author or citing paper."""
        ...


@runtime_checkable
class PaperEncoder(Model, Protocol):
    """A model of papers."""

    @property
    def tables(self) -> FittedTables:
        """Trained vectors."""
        ...

    @property
    def settings(self) -> TrainedSettings:
        """How scores are mixed."""
        ...

    @property
    def papers(self) -> TrainedPapers:
        """What it was trained on."""
        ...

    def paper_rows(self, titles: Sequence[str], abstracts: Sequence[str]) -> list[NDArray[np.uint16]]:
        """Typed word rows of papers."""
        ...

    def encode_papers(self, rows: Sequence[NDArray[np.uint16]]) -> EncodedArrays:
        """Facets, magnitudes and averages of typed rows."""
        ...

    def word_averages(self, rows: Sequence[NDArray[np.uint16]]) -> NDArray[np.float32]:
        """``[N, D]`` unit word averages."""
        ...

    def word_averages_of(self, rows: NDArray[np.uint16], starts: NDArray[np.int64]) -> NDArray[np.float32]:
        """The same of papers that lie one after the other."""
        ...

    def words_as_facets(self) -> NDArray[np.float32]:
        """``[V, D]`` word vectors in the space of the facets."""
        ...

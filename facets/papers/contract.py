"""What the engine for papers needs of a model beyond the contract of every model."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from facets.model.contract import Model
from facets.papers.results import PaperFacets
from facets.papers.tables import PaperTables, ScoringSettings, TrainedPapers

__all__ = ["PaperEncoder"]


class PaperEncoder(Model, Protocol):
    """A model of papers."""

    @property
    def tables(self) -> PaperTables:
        """Trained vectors."""
        ...

    @property
    def settings(self) -> ScoringSettings:
        """How scores are mixed."""
        ...

    @property
    def papers(self) -> TrainedPapers:
        """What it was trained on."""
        ...

    def paper_rows(self, titles: Sequence[str], abstracts: Sequence[str]) -> list[NDArray[np.uint16]]:
        """Typed word rows of papers."""
        ...

    def encode_papers(self, rows: Sequence[NDArray[np.uint16]]) -> PaperFacets:
        """Facets, magnitudes and averages of typed rows."""
        ...

    def word_averages(self, rows: Sequence[NDArray[np.uint16]]) -> NDArray[np.float32]:
        """``[N, W]`` unit word averages."""
        ...

    def word_averages_of(self, rows: NDArray[np.uint16], starts: NDArray[np.int64]) -> NDArray[np.float32]:
        """The same of papers that lie one after the other."""
        ...

    def words_as_facets(self) -> NDArray[np.float32]:
        """``[V, D]`` word vectors in the space of the facets."""
        ...

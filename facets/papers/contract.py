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

    def sentence_vectors(self, titles: Sequence[str], abstracts: Sequence[str]) -> NDArray[np.float32]:
        """``[N, P]`` unit sentence vectors of papers; P is 0 where documents are word averages alone."""
        ...

    def encode_papers(
        self, rows: Sequence[NDArray[np.uint16]], sentences: NDArray[np.float32] | None = None
    ) -> PaperFacets:
        """Facets, magnitudes and documents of typed rows; without sentence vectors the documents are incomplete."""
        ...

    def document_vectors(
        self, rows: Sequence[NDArray[np.uint16]], sentences: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """``[N, W]``: what documents are compared by, of typed rows and sentence vectors."""
        ...

    def trained_documents(self) -> NDArray[np.float32]:
        """The same of the papers of the training."""
        ...

    def words_as_facets(self) -> NDArray[np.float32]:
        """``[V, D]`` word vectors in the space of the facets."""
        ...

"""Exact search for collections of any size, on a GPU: nothing is trained, nothing is skipped."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from facets.errors import IndexFormatError
from facets.index.config import EngineConfig
from facets.index.exact import ExactIndex
from facets.index.protocols import Chunks, FacetSource

__all__ = ["ExactBackend"]


class ExactBackend:
    """See :class:`facets.index.protocols.IndexBackend`; makes no snapshots, since filling it is all there is to do."""

    def __init__(self, config: EngineConfig) -> None:
        self._device = config.device

    def build(self, chunks: Chunks, *, num_documents: int, num_facets: int) -> ExactIndex | None:
        """Copies the facets to the device."""
        index = None
        for rows, facets_SKD in chunks():
            index = index or ExactIndex(num_facets=num_facets, dim=facets_SKD.shape[2], device=self._device)
            index.add(rows, facets_SKD)
        return index

    def read(
        self,
        source: Callable[[int], bytes],
        slots: NDArray[np.int64],
        description: Mapping[str, int | float | str],
        facets: FacetSource,
    ) -> ExactIndex:
        """Refuses what another backend wrote.

        Raises:
            IndexFormatError: Always.
        """
        raise IndexFormatError("exact search keeps no snapshot; this one is of another backend")

    def enter_background(self) -> None:
        """Copying leaves requests room."""

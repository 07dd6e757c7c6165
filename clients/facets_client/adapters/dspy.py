"""DSPy: a retriever over a collection of a Facets server (extra ``dspy``).

Example:
    >>> from facets_client import FacetsClient
    >>> from facets_client.adapters.dspy import FacetsRetriever
    >>> FacetsRetriever(FacetsClient(), "wiki", k=3)("how vaccines protect").passages  # doctest: +SKIP
"""

from typing import Unpack

from facets_client.adapters import require

require("dspy")
import dspy  # noqa: E402

from facets_client.adapters.retrieval import Retrieval, SearchSettings, describe  # noqa: E402
from facets_client.client import FacetsClient  # noqa: E402


class FacetsRetriever(dspy.Retrieve):  # type: ignore[misc]  # its types are skipped, see pyproject.toml
    """Searches a collection, as a part of a program.

    Args:
        client: Connected to the server.
        collection: Name of the collection.
        k: Passages for each query.
        settings: See ``SearchSettings``.
    """

    def __init__(
        self, client: FacetsClient, collection: str, *, k: int = 3, **settings: Unpack[SearchSettings]
    ) -> None:
        super().__init__(k=k)
        self._client = client
        self._retrieval = Retrieval(collection=collection, **settings)

    def forward(self, query: str, k: int | None = None) -> dspy.Prediction:
        """``passages``, best first, and of each its ``ids``, ``payloads`` and ``about``, what the search says of it."""
        hits = self._retrieval.hits(self._client, query, top_k=self.k if k is None else k)
        return dspy.Prediction(
            passages=[hit.text for hit in hits],
            ids=[hit.id for hit in hits],
            payloads=[dict(hit.payload) for hit in hits],
            about=[describe(hit) for hit in hits],
        )

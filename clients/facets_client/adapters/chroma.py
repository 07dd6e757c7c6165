"""Chroma: collections of its own, embedded by a Facets server with one vector a text (extra ``chroma``).

Example:
    >>> from facets_client.adapters.chroma import FacetsEmbeddingFunction
    >>> function = FacetsEmbeddingFunction(model="facets-passages-small-en")
    >>> function(["A dog barks."])[0].shape  # doctest: +SKIP
    (384,)
"""

import os
from typing import Any, cast

from facets_client.adapters import require

require("chroma")
from chromadb import Documents, EmbeddingFunction, Embeddings  # noqa: E402
from chromadb.api.types import Space  # noqa: E402
from chromadb.utils.embedding_functions import register_embedding_function  # noqa: E402

from facets_client.client import FacetsClient  # noqa: E402
from facets_client.core.channel import DEFAULT_TARGET  # noqa: E402


@register_embedding_function
class FacetsEmbeddingFunction(EmbeddingFunction[Documents]):  # type: ignore[misc]  # its types are skipped
    """Embeds texts with a model of a Facets server; Chroma keeps these settings with its collection.

    Args:
        target: ``HOST:PORT`` of the server.
        model: Name; empty: the server's default.
        api_key_variable: Variable of the environment with the key, for servers that ask for one.
    """

    def __init__(
        self, target: str = DEFAULT_TARGET, *, model: str = "", api_key_variable: str = "FACETS_API_KEY"
    ) -> None:
        self._config = {"target": target, "model": model, "api_key_variable": api_key_variable}
        self._client = FacetsClient(target, api_key=os.environ.get(api_key_variable))

    def __call__(self, input: Documents) -> Embeddings:  # Chroma's name
        """The vectors, in the order of the texts."""
        return cast(Embeddings, list(self._client.embed_vectors(input, model=self._config["model"])))

    @staticmethod
    def name() -> str:
        """What Chroma knows it by."""
        return "facets"

    def default_space(self) -> Space:
        """Vectors are compared by cosine."""
        return cast(Space, "cosine")

    def get_config(self) -> dict[str, Any]:
        """The settings, without the key itself."""
        return dict(self._config)

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> "FacetsEmbeddingFunction":
        """The function that has these settings."""
        return FacetsEmbeddingFunction(**config)

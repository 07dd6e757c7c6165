"""Which services there are: one row each, its servicer and the task whose models it answers with.

What a service is called and how it is added to a server is read from the generated code of its base class.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import grpc

from facets.documents import CollectionEngine
from facets_server.documents.service import CollectionService, DocumentService
from facets_server.documents.stream_store import StreamStore
from facets_server.papers.collection_papers import CollectionPapers
from facets_server.papers.served import ServedPapers
from facets_server.papers.service import RecommendationService
from facets_server.relations.entities import EntityFinders
from facets_server.relations.served import ServedRelations
from facets_server.relations.service import RelationService
from facets_server.runtime.admission import Admission
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.model_registry import ModelRegistry
from facets_server.runtime.model_service import ModelService
from facets_server.texts.served import ServedTexts
from facets_server.texts.service import EmbeddingService, SimilarityService, SummarizationService

__all__ = ["Service", "services"]


@dataclass(frozen=True, slots=True)
class Service:
    """One service.

    Attributes:
        servicer: Answers its calls; its class extends the generated ``<Name>Servicer``.
        health: SERVING while this holds; None: no model of its task is served, so health does not know the service.
    """

    servicer: object
    health: Callable[[], bool] | None

    @property
    def name(self) -> str:
        """Full name, ``facets.v1.EmbeddingService``."""
        base = self._base()
        messages = sys.modules[base.__module__.removesuffix("_grpc")]
        return str(messages.DESCRIPTOR.services_by_name[base.__name__.removesuffix("Servicer")].full_name)

    def add_to(self, server: grpc.Server) -> None:
        """Adds the servicer to a server."""
        base = self._base()
        getattr(sys.modules[base.__module__], f"add_{base.__name__}_to_server")(self.servicer, server)

    def _base(self) -> type:
        return next(base for base in type(self.servicer).__mro__ if base.__module__.endswith("_pb2_grpc"))


def services(
    registry: ModelRegistry,
    *,
    engine: CollectionEngine,
    streams: StreamStore,
    admission: Admission,
    config: ServerConfig,
) -> list[Service]:
    """Every service of the server. A new task is a line that finds its models and a row for each of its services."""
    limits, window = config.limits, config.admission.max_stream_window
    texts = registry.of("sentences", ServedTexts)
    relations = registry.of("relations", ServedRelations)
    papers = registry.of("papers", ServedPapers)
    of_texts = texts.is_healthy if texts else None
    of_relations = relations.is_healthy if relations else None
    of_papers = papers.is_healthy if papers else None
    documents = DocumentService(texts, engine, streams=streams, admission=admission, limits=limits, window=window)
    ranked = CollectionPapers(engine, max_papers=limits.max_ranked_papers)
    return [
        Service(EmbeddingService(texts, admission, limits, window), of_texts),
        Service(SimilarityService(texts, limits), of_texts),
        Service(SummarizationService(texts, limits), of_texts),
        Service(CollectionService(texts, engine, limits), of_texts),
        Service(documents, of_texts),
        Service(RelationService(relations, EntityFinders(config.relations), limits), of_relations),
        Service(RecommendationService(papers, ranked, limits), of_papers),
        Service(ModelService(registry, config), registry.is_healthy),
    ]

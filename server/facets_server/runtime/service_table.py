"""Which services there are: each with its servicer, the generated function that adds it, and what its health asks."""

from collections.abc import Callable
from typing import NamedTuple

import grpc
from facets_proto.v1 import (
    documents_pb2,
    documents_pb2_grpc,
    models_pb2,
    models_pb2_grpc,
    papers_pb2,
    papers_pb2_grpc,
    relations_pb2,
    relations_pb2_grpc,
    texts_pb2,
    texts_pb2_grpc,
)
from google.protobuf.descriptor import FileDescriptor

from facets.documents import CollectionEngine
from facets_server.documents.collection_service import CollectionService
from facets_server.documents.service import DocumentService
from facets_server.documents.stream_store import StreamStore
from facets_server.papers.collection_papers import CollectionPapers
from facets_server.papers.served import PaperModels
from facets_server.papers.service import RecommendationService
from facets_server.relations.entities import EntityFinders
from facets_server.relations.served import RelationModels
from facets_server.relations.service import RelationService
from facets_server.runtime.admission import Admission
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.model_registry import ModelRegistry
from facets_server.runtime.model_service import ModelService
from facets_server.texts.embedding_service import EmbeddingService
from facets_server.texts.served import ServedModels
from facets_server.texts.similarity_service import SimilarityService
from facets_server.texts.summarization_service import SummarizationService

__all__ = ["ServiceEntry", "Services", "model_services", "paper_services", "relation_services", "text_services"]


class ServiceEntry(NamedTuple):
    """One service.

    Attributes:
        servicer: Answers its calls.
        add: The generated function that adds it to a server.
        health: SERVING while this holds; None: no model of its task is served, so health does not know the service.
    """

    servicer: object
    add: Callable[[object, grpc.Server], None]
    health: Callable[[], bool] | None


Services = dict[str, ServiceEntry]


def text_services(
    models: ServedModels,
    engine: CollectionEngine,
    streams: StreamStore,
    admission: Admission,
    config: ServerConfig,
) -> Services:
    """Services that read texts with the models for sentences, by full name."""
    limits, window = config.limits, config.admission.max_stream_window
    documents = DocumentService(models, engine, streams=streams, admission=admission, limits=limits, window=window)
    health = models.is_healthy if models else None
    return {
        _name(texts_pb2.DESCRIPTOR, "EmbeddingService"): ServiceEntry(
            EmbeddingService(models, admission, limits, window),
            texts_pb2_grpc.add_EmbeddingServiceServicer_to_server,
            health,
        ),
        _name(texts_pb2.DESCRIPTOR, "SimilarityService"): ServiceEntry(
            SimilarityService(models, limits), texts_pb2_grpc.add_SimilarityServiceServicer_to_server, health
        ),
        _name(texts_pb2.DESCRIPTOR, "SummarizationService"): ServiceEntry(
            SummarizationService(models, limits),
            texts_pb2_grpc.add_SummarizationServiceServicer_to_server,
            health,
        ),
        _name(documents_pb2.DESCRIPTOR, "CollectionService"): ServiceEntry(
            CollectionService(models, engine, limits),
            documents_pb2_grpc.add_CollectionServiceServicer_to_server,
            health,
        ),
        _name(documents_pb2.DESCRIPTOR, "DocumentService"): ServiceEntry(
            documents, documents_pb2_grpc.add_DocumentServiceServicer_to_server, health
        ),
    }


def relation_services(models: RelationModels, config: ServerConfig) -> Services:
    """The service of the models for relations, by full name."""
    return {
        _name(relations_pb2.DESCRIPTOR, "RelationService"): ServiceEntry(
            RelationService(models, EntityFinders(config.relations), config.limits),
            relations_pb2_grpc.add_RelationServiceServicer_to_server,
            models.is_healthy if models else None,
        )
    }


def paper_services(models: PaperModels, engine: CollectionEngine, config: ServerConfig) -> Services:
    """The service of the models for papers, by full name."""
    papers = CollectionPapers(engine, max_papers=config.limits.max_ranked_papers)
    return {
        _name(papers_pb2.DESCRIPTOR, "RecommendationService"): ServiceEntry(
            RecommendationService(models, papers, config.limits),
            papers_pb2_grpc.add_RecommendationServiceServicer_to_server,
            models.is_healthy if models else None,
        )
    }


def model_services(registry: ModelRegistry, config: ServerConfig) -> Services:
    """The service that tells the models of all tasks, by full name."""
    return {
        _name(models_pb2.DESCRIPTOR, "ModelService"): ServiceEntry(
            ModelService(registry, config),
            models_pb2_grpc.add_ModelServiceServicer_to_server,
            registry.is_healthy,
        )
    }


def _name(file: FileDescriptor, service: str) -> str:
    return str(file.services_by_name[service].full_name)

"""Which services there are: each with its servicer, the generated function that adds it, and what its health asks."""

from collections.abc import Callable
from typing import NamedTuple

import grpc
from facets_proto.v1 import (
    collections_pb2,
    collections_pb2_grpc,
    documents_pb2,
    documents_pb2_grpc,
    embedding_pb2,
    embedding_pb2_grpc,
    models_pb2,
    models_pb2_grpc,
    recommendation_pb2,
    recommendation_pb2_grpc,
    relations_pb2,
    relations_pb2_grpc,
    similarity_pb2,
    similarity_pb2_grpc,
    summarization_pb2,
    summarization_pb2_grpc,
)
from google.protobuf.descriptor import FileDescriptor

from facets.index import CollectionEngine
from facets_server.admission import Admission
from facets_server.collection_papers import CollectionPapers
from facets_server.config import ServerConfig
from facets_server.directory import ModelDirectory
from facets_server.entities import EntityFinders
from facets_server.models import ServedModels
from facets_server.recommenders import RecommenderModels
from facets_server.relations import RelationModels
from facets_server.services.collections import CollectionService
from facets_server.services.documents import DocumentService
from facets_server.services.embedding import EmbeddingService
from facets_server.services.models import ModelService
from facets_server.services.recommendation import RecommendationService
from facets_server.services.relations import RelationService
from facets_server.services.similarity import SimilarityService
from facets_server.services.summarization import SummarizationService
from facets_server.stream_store import StreamStore

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
        _name(embedding_pb2.DESCRIPTOR): ServiceEntry(
            EmbeddingService(models, admission, limits, window),
            embedding_pb2_grpc.add_EmbeddingServiceServicer_to_server,
            health,
        ),
        _name(similarity_pb2.DESCRIPTOR): ServiceEntry(
            SimilarityService(models, limits), similarity_pb2_grpc.add_SimilarityServiceServicer_to_server, health
        ),
        _name(summarization_pb2.DESCRIPTOR): ServiceEntry(
            SummarizationService(models, limits),
            summarization_pb2_grpc.add_SummarizationServiceServicer_to_server,
            health,
        ),
        _name(collections_pb2.DESCRIPTOR): ServiceEntry(
            CollectionService(models, engine, limits),
            collections_pb2_grpc.add_CollectionServiceServicer_to_server,
            health,
        ),
        _name(documents_pb2.DESCRIPTOR): ServiceEntry(
            documents, documents_pb2_grpc.add_DocumentServiceServicer_to_server, health
        ),
    }


def relation_services(models: RelationModels, config: ServerConfig) -> Services:
    """The service of the models for relations, by full name."""
    return {
        _name(relations_pb2.DESCRIPTOR): ServiceEntry(
            RelationService(models, EntityFinders(config.relations), config.limits),
            relations_pb2_grpc.add_RelationServiceServicer_to_server,
            models.is_healthy if models else None,
        )
    }


def paper_services(models: RecommenderModels, engine: CollectionEngine, config: ServerConfig) -> Services:
    """The service of the models for papers, by full name."""
    papers = CollectionPapers(engine, max_papers=config.limits.max_ranked_papers)
    return {
        _name(recommendation_pb2.DESCRIPTOR): ServiceEntry(
            RecommendationService(models, papers, config.limits),
            recommendation_pb2_grpc.add_RecommendationServiceServicer_to_server,
            models.is_healthy if models else None,
        )
    }


def model_services(directory: ModelDirectory, config: ServerConfig) -> Services:
    """The service that tells the models of all tasks, by full name."""
    return {
        _name(models_pb2.DESCRIPTOR): ServiceEntry(
            ModelService(directory, config),
            models_pb2_grpc.add_ModelServiceServicer_to_server,
            directory.is_healthy,
        )
    }


def _name(file: FileDescriptor) -> str:
    """Full name of the one service of a file."""
    (service,) = file.services_by_name.values()
    return str(service.full_name)

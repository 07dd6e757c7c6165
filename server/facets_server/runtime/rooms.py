"""The rooms of the server: the models each room serves and how, and its services.

A room is imported when its models are opened or its services first called: a program that searches a folder needs one.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
from facets_proto.v1 import documents_pb2, models_pb2, papers_pb2, relations_pb2, texts_pb2
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from facets.devices import compute_device
from facets.documents import CollectionEngine, Collections
from facets.documents.encoders import relevance_of
from facets.documents.recall import RecallSampler
from facets.errors import ConfigError, NotFoundError
from facets.model.answer_reader import AnswerReader
from facets.model.checkpoint import check_weights, read_settings
from facets.model.facet_model import FacetModel
from facets.model.loading import DEFAULT_MODEL, TASKS, describe, load, task_of
from facets.model.passage_model import PassageModel
from facets.model.shipped import DEFAULT_READER, ENCODER_PREFIX, find_model
from facets.storage.sql import SqlDatabase
from facets_server.documents.stream_store import FILE as STREAMS_FILE
from facets_server.documents.stream_store import StreamStore
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics import BatchMetrics, CallMetrics
from facets_server.runtime.model_service import ModelService
from facets_server.runtime.models import AnyModel, Lazy, LazyModel, ModelRegistry, ServedModel, TaskModels
from facets_server.texts.served import ServedPassages, ServedReader, ServedSentences, TextModels, encoders_for

QUICK_CALLS = ("/facets.v1.EmbeddingService/Embed",)  # whose service says which small requests the event loop may begin
_TASKS = ("sentences", "passages", "relations", "papers")  # order of the served models


def load_models(config: ServerConfig, metrics: BatchMetrics, shared: SqlDatabase | None = None) -> list[AnyModel]:
    """The models of the settings, else the shipped ones; each is opened when it is first used.

    ``shared`` holds additions, else the data directory. Raises NotFoundError, ConfigError for a device that is
    missing or a reader that is none, or CheckpointError for a folder whose configuration is unreadable or whose weights
    are cut off. Encoders are opened now, because only that says whether they can be.
    """
    compute_device(config.device)  # raises now, not when a model is opened
    reader = _reader(config, metrics)
    models = [_model(name, config, metrics, reader, shared) for name in config.models or _shipped_models()]
    return sorted(models, key=lambda model: _TASKS.index(model.task))


def _model(
    name: str, config: ServerConfig, metrics: BatchMetrics, reader: ServedReader | None, shared: SqlDatabase | None
) -> AnyModel:
    if name.startswith(ENCODER_PREFIX):
        encoder = load(
            name,
            PassageModel,
            device=config.device,
            allow_downloads=config.allow_downloads,
            trust_remote_code=config.trust_remote_code,
            backend=config.backend,
        )
        curve = relevance_of(encoder, _folder_of(config.data_dir, "passages", encoder.name))
        return ServedPassages(encoder, config.batcher, metrics, relevance=curve, reader=reader)
    folder = find_model(name)
    task = task_of(folder)
    check_weights(folder)

    def sentences() -> ServedSentences:
        model = load(folder, FacetModel, device=config.device)
        curve = relevance_of(model, folder)
        return ServedSentences(model, config.batcher, metrics, relevance=curve, reader=reader)

    def passages() -> ServedPassages:
        model = PassageModel.shared(folder, device=compute_device(config.device))  # with models of papers
        curve = relevance_of(model, folder, _folder_of(config.data_dir, task, model.name))
        return ServedPassages(model, config.batcher, metrics, relevance=curve, reader=reader)

    def relations() -> ServedModel[Any]:
        from facets.relations.engine import RelationEngine
        from facets.relations.model import RelationModel
        from facets_server.relations.service import ServedRelations

        model = load(folder, RelationModel)
        return ServedRelations(model, RelationEngine(model, data_dir=additions(model.name)))

    def papers() -> ServedModel[Any]:
        from facets.papers.engine import PaperEngine
        from facets.papers.model import PaperModel
        from facets_server.papers.service import ServedPapers

        model = load(folder, PaperModel)
        return ServedPapers(model, PaperEngine(model, data_dir=additions(model.name)))

    def additions(model_name: str) -> Path | SqlDatabase:
        return shared or _folder_of(config.data_dir, task, model_name)

    opens = {"sentences": sentences, "passages": passages, "relations": relations, "papers": papers}
    name = str(read_settings(folder).get("name", folder.name))
    return LazyModel(name, task, opens[task], cache(partial(describe, folder)))


def _folder_of(data_dir: Path, task: str, name: str) -> Path:
    return data_dir / task / quote(name, safe="")


def _reader(config: ServerConfig, metrics: BatchMetrics) -> ServedReader | None:
    """The reader of the settings; None if it is off, or if the shipped one is not installed."""
    if config.reader == "off":
        return None
    try:
        folder = find_model(config.reader)
    except NotFoundError:
        if config.reader != DEFAULT_READER:
            raise
        return None
    if (task := read_settings(folder).get("task")) != "answers":
        raise ConfigError(f"reader must be a model for answers, got {config.reader}, one for {task}")
    check_weights(folder)
    return ServedReader(partial(AnswerReader.shared, config.reader, device=config.device), config.batcher, metrics)


def _shipped_models() -> list[str]:
    names = [DEFAULT_MODEL]
    for task in _TASKS:
        with suppress(NotFoundError):  # not installed: its services report that
            find_model(TASKS[task].default)
            names.append(TASKS[task].default)
    return list(dict.fromkeys(names))


class Service:
    """One service, with its full name and its handlers by full name of the method; ``servicer`` returns what answers.

    ``checks``: the service is SERVING while none of them raises; empty: no model serves it, so health lacks it.
    """

    def __init__(self, name: str, servicer: Callable[[], Any], checks: Sequence[Callable[[], None]]) -> None:
        self.name, self.servicer, self.checks = name, servicer, checks
        methods = descriptor_pool.Default().FindServiceByName(name).methods
        self.handlers = {f"/{name}/{method.name}": self._handler(method) for method in methods}

    def _handler(self, method: MethodDescriptor) -> Any:
        def behave(request: Any, call: CallContext) -> Any:
            return getattr(self.servicer(), method.name)(request, call)

        request, reply = map(GetMessageClass, (method.input_type, method.output_type))
        make = grpc.stream_stream_rpc_method_handler if method.client_streaming else grpc.unary_unary_rpc_method_handler
        return make(behave, request.FromString, reply.SerializeToString)


def _once(make: Callable[[], Sequence[object]]) -> Callable[[str], object]:
    """Returns a servicer of a room by the name of its class; the first call makes all of them."""
    made = Lazy(lambda: {type(each).__name__: each for each in make()})
    return lambda name: made.opened()[name]


def services(
    models: ModelRegistry,
    engine: CollectionEngine,
    config: ServerConfig,
    *,
    admission: Admission,
    metrics: CallMetrics,
    closing: ExitStack,
) -> dict[str, Service]:
    """The services by name; once the server has stopped, ``closing`` closes what they opened."""
    limits = config.limits
    for_sentences: TextModels = models.of("sentences", "passages")
    for_passages: TextModels = models.of("passages", "sentences")

    @_once
    def texts() -> Sequence[object]:
        from facets_server.texts.service import EmbeddingService, SimilarityService, SummarizationService, TopicService

        return (
            EmbeddingService(for_sentences, for_passages, admission, limits),
            SimilarityService({"sentences": for_sentences, "passages": for_passages}, limits),
            SummarizationService(for_sentences, limits),
            TopicService(for_sentences, limits),
        )

    @_once
    def documents() -> Sequence[object]:
        from facets_server.documents.service import CollectionService, DocumentService

        streams = StreamStore(engine.shared_database or config.data_dir / STREAMS_FILE)
        closing.callback(streams.close)
        sampler = RecallSampler(config.observability.recall_share, metrics.checked)
        closing.callback(sampler.close)
        in_background = encoders_for(for_passages, CallContext(method="words"))
        collections = Collections(engine, in_background, max_text_bytes=limits.max_document_bytes, recall=sampler)
        closing.callback(collections.close)

        def collections_for(call: CallContext) -> Collections:
            return collections.using(encoders_for(for_passages, call))

        return (
            CollectionService(engine, collections_for),
            DocumentService(engine, collections_for, admission, limits, streams),
        )

    @_once
    def relations() -> Sequence[object]:
        from facets_server.relations.service import EntityFinders, RelationService

        return (RelationService(models.of("relations"), EntityFinders(config.relations), limits),)

    @_once
    def papers() -> Sequence[object]:
        from facets_server.papers.service import CollectionPapers, RecommendationService

        ranked = CollectionPapers(engine, max_papers=limits.max_ranked_papers)
        return (RecommendationService(models.of("papers"), ranked, limits),)

    server = _once(lambda: (ModelService(models, config, admission, metrics),))
    rooms: tuple[tuple[Any, Callable[[str], object], TaskModels[Any]], ...] = (
        (documents_pb2, documents, for_passages),
        (models_pb2, server, models),
        (papers_pb2, papers, models.of("papers")),
        (relations_pb2, relations, models.of("relations")),
        (texts_pb2, texts, for_sentences),
    )
    return {
        service.full_name: Service(service.full_name, partial(servicer, service.name), served.checks())
        for file, servicer, served in rooms
        for service in file.DESCRIPTOR.services_by_name.values()
    }

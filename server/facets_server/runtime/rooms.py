"""The rooms of the server: the models each room serves and how, and its services.

A room is imported when its models are opened or its services made: a program that searches a folder needs one.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from facets.devices import compute_device
from facets.documents import CollectionEngine, Collections
from facets.documents.encoders import relevance_of
from facets.documents.recall import RecallSampler
from facets.errors import NotFoundError
from facets.model.answer_reader import load_reader
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
from facets_server.runtime.models import AnyModel, LazyModel, ModelRegistry, ServedModel, TaskModels
from facets_server.texts.served import ServedPassages, ServedReader, ServedSentences, TextModels, encoders_for

_TASKS = ("sentences", "passages", "relations", "papers")  # order of the served models


def load_models(config: ServerConfig, metrics: BatchMetrics, shared: SqlDatabase | None = None) -> list[AnyModel]:
    """The models of the settings, else the shipped ones; each is opened when it is first used.

    ``shared`` holds additions, else the data directory. Raises NotFoundError, or CheckpointError for a folder whose
    configuration is unreadable or whose weights are cut off. Encoders are opened now, because only that says whether
    they can be.
    """
    if config.reader not in ("off", DEFAULT_READER):
        find_model(config.reader)
    reader = cache(partial(_reader, config, metrics))
    models = [_model(name, config, metrics, reader, shared) for name in config.models or _shipped_models()]
    return sorted(models, key=lambda model: _TASKS.index(model.task))


def _model(
    name: str,
    config: ServerConfig,
    metrics: BatchMetrics,
    reader: Callable[[], ServedReader | None],
    shared: SqlDatabase | None,
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
        from facets_server.papers.served import ServedPapers

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
        return ServedReader(load_reader(config.reader, device=config.device), config.batcher, metrics)
    except NotFoundError:
        if config.reader != DEFAULT_READER:
            raise
        return None


def _shipped_models() -> list[str]:
    names = [DEFAULT_MODEL]
    for task in _TASKS:
        with suppress(NotFoundError):  # not installed: its services report that
            find_model(TASKS[task].default)
            names.append(TASKS[task].default)
    return list(dict.fromkeys(names))


class Service:
    """One service, with its full name and its handlers by full name of the method.

    ``checks``: the service is SERVING while none of them raises; empty: no model serves it, so health lacks it.
    The attribute ``quick_calls`` of a servicer, if any, maps the full name of each method that returns a ``Pending`` to
    a test for the small requests that the event loop may begin.
    """

    def __init__(self, servicer: object, checks: Sequence[Callable[[], None]]) -> None:
        self.checks = checks
        self.handlers: dict[str, Any] = {}
        base = next(base for base in type(servicer).__mro__ if base.__module__.endswith("_pb2_grpc"))
        # The generated code registers the handlers with this object, as with a server.
        getattr(sys.modules[base.__module__], f"add_{base.__name__}_to_server")(servicer, self)
        self.quick_calls: dict[str, Callable[[Any], bool]] = getattr(servicer, "quick_calls", {})

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Ignores the same handlers without their names."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Keeps the name of the service and its handlers."""
        self.name = service
        self.handlers = {f"/{service}/{method}": handler for method, handler in handlers.items()}


def services(
    models: ModelRegistry,
    engine: CollectionEngine,
    config: ServerConfig,
    *,
    admission: Admission,
    metrics: CallMetrics,
    closing: ExitStack,
) -> dict[str, Callable[[], list[Service]]]:
    """By room, a function that makes its services; once the server has stopped, ``closing`` closes what they opened."""
    limits = config.limits
    for_sentences: TextModels = models.of("sentences", "passages")
    for_passages: TextModels = models.of("passages", "sentences")

    def texts() -> list[Service]:
        from facets_server.texts.service import EmbeddingService, SimilarityService, SummarizationService, TopicService

        return made(
            EmbeddingService(for_sentences, for_passages, admission, limits),
            SimilarityService({"sentences": for_sentences, "passages": for_passages}, limits),
            SummarizationService(for_sentences, limits),
            TopicService(for_sentences, limits),
            models=for_sentences,
        )

    def documents() -> list[Service]:
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

        return made(
            CollectionService(engine, collections_for),
            DocumentService(engine, collections_for, admission, limits, streams),
            models=for_passages,
        )

    def relations() -> list[Service]:
        from facets_server.relations.entities import EntityFinders
        from facets_server.relations.service import RelationService

        finders = EntityFinders(config.relations)
        served = models.of("relations")
        return made(RelationService(served, finders, limits), models=served)

    def papers() -> list[Service]:
        from facets_server.papers.collection_papers import CollectionPapers
        from facets_server.papers.service import RecommendationService

        ranked = CollectionPapers(engine, max_papers=limits.max_ranked_papers)
        served = models.of("papers")
        return made(RecommendationService(served, ranked, limits), models=served)

    def server() -> list[Service]:
        return made(ModelService(models, config, admission, metrics), models=models)

    def made(*servicers: object, models: TaskModels[Any]) -> list[Service]:
        return [Service(servicer, models.checks()) for servicer in servicers]

    return {"texts": texts, "documents": documents, "relations": relations, "papers": papers, "models": server}

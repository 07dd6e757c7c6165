"""Texts as a searchable collection, by the same code that a server runs."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory

from facets.documents.collections import Collections
from facets.documents.confidence import RelevanceCurve
from facets.documents.encoders import ModelEncoder
from facets.documents.queries import DocumentQuery
from facets.documents.types import Document, SearchHit, SearchMode
from facets.index.config import EngineConfig
from facets.model.answer_reader import AnswerReader
from facets.model.contract import is_foreign
from facets.model.loading import TASKS
from facets.model.passage_checkpoint import TASK
from facets.model.passage_model import PassageModel
from facets_lab.evaluation.comparison import ModelOfTexts, load_text_model

SearchedModel = ModelOfTexts  # whose facets a collection can store
load_searched = partial(load_text_model, default=TASKS[TASK].default)

NAME = "evaluation"
_DOCUMENT_BATCH = 1_000
_QUERY_BATCH = 64


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection and the model of its facets."""

    collections: Collections
    model: SearchedModel

    def search(
        self, queries: Sequence[str], modes: Sequence[SearchMode], *, top_k: int, reasons: bool = False
    ) -> dict[SearchMode, list[tuple[SearchHit, ...]]]:
        """Hits of every query, by mode, none in a script unknown to the model; with ``reasons`` they have an answer."""
        curve = None
        if isinstance(self.model, PassageModel) and self.model.score_scale is not None:
            curve = RelevanceCurve(revision=self.model.revision, weights={}, scale=self.model.score_scale)
        encoder = ModelEncoder(self.model, relevance=curve)
        collections = self.collections.using(lambda _: encoder)
        found: dict[SearchMode, list[tuple[SearchHit, ...]]] = {}
        for mode in modes:
            hits = found[mode] = [()] * len(queries)
            searched = [i for i, text in enumerate(queries) if mode != "facets" or not is_foreign(self.model, text)]
            for start in range(0, len(searched), _QUERY_BATCH):
                batch = searched[start : start + _QUERY_BATCH]
                texts = [queries[i] for i in batch]
                query = DocumentQuery(queries=texts, mode=mode, top_k=top_k, reasons=reasons)
                for i, own in zip(batch, collections.search(NAME, query).hits, strict=True):
                    hits[i] = own
        return found


@contextmanager
def indexed(
    model: SearchedModel, documents: Mapping[str, str] | Sequence[Document], *, reader: AnswerReader | None = None
) -> Iterator[Collection]:
    """A temporary collection ``NAME`` of texts by id, or of documents, without those that have no words.

    ``reader`` chooses the answers.
    """
    config = EngineConfig(background=False, snapshot_on_close=False)
    with (
        TemporaryDirectory(prefix="facets-eval-") as folder,
        Collections.open(folder, [model], reader=reader, config=config) as collections,
    ):
        collections.create_collection(NAME)
        ingest = collections.ingest(NAME)
        if isinstance(documents, Mapping):
            documents = [Document(id=key, text=text) for key, text in documents.items()]
        for start in range(0, len(documents), _DOCUMENT_BATCH):
            ingest.store_good(ingest.prepare(documents[start : start + _DOCUMENT_BATCH]))
        collections.engine.maintain()  # folds a large collection into its index, as a server does in the background
        yield Collection(collections, model)

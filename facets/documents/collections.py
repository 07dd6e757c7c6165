"""Collections of texts: models encode documents and queries, the engine stores and searches them."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Self

import numpy as np

from facets.documents.diagnosis import (
    MAX_DIAGNOSE_QUERIES,
    CollectionDiagnosis,
    CollectionMap,
    diagnose_collection,
    map_collection,
)
from facets.documents.encoders import Encoder, Encoders, check_readable_by, described, encoders_of, problem_of
from facets.documents.engine import CollectionEngine
from facets.documents.ingest import Ingest, StoredBatch
from facets.documents.parts import EncodedText
from facets.documents.queries import (
    DocumentQuery,
    RerankQuery,
    RerankResult,
    encode_queries,
    encode_texts,
    explained,
    left_out,
    requests_of,
)
from facets.documents.recall import RecallSampler
from facets.documents.records import CollectionInfo, CollectionRecord
from facets.documents.reindexing import ReindexStep, TargetModel
from facets.documents.search import rerank
from facets.documents.types import Document, SearchHit, SearchResult
from facets.documents.words import CollectionWords
from facets.errors import InvalidInputError, ModelMismatchError
from facets.index.config import MAX_DOCUMENT_BYTES, EngineConfig
from facets.language.interruption import apart, check_interrupted
from facets.language.tokenizer import check_text
from facets.model.answer_reader import AnswerReader
from facets.model.contract import TextModel, check_readable

_MAX_KEPT_MAPS = 4
# For words that name facets, from when their encoding began: later searches have them; a map itself takes as long.
_SEARCH_WAIT_S, _MAP_WAIT_S = 2.0, 600.0
_WORDS_PER_THEME = 3
_NUM_CANDIDATE_WORDS = 12  # of a theme, before those of larger themes are dropped


class Collections:
    """Stores texts and finds those that answer a query; every method is thread-safe.

    ``engine`` reads, lists, counts and deletes documents and collections, and says what its errors are. Methods that
    encode also raise NotFoundError (``resource_type="model"``) if the model of a collection was not given, and
    ModelMismatchError if the documents were encoded by another revision of it.

    Example:
        >>> import tempfile
        >>> import facets
        >>> from facets.documents import Collections, Document, DocumentQuery
        >>> texts = ["The pool is in the park. It opens at nine.", "Dogs must stay outside."]
        >>> models = [facets.load("facets-passages-small-en")]
        >>> with Collections.open(tempfile.mkdtemp(), models) as collections:
        ...     _ = collections.create_collection("rules")
        ...     documents = [Document(id=str(number), text=text) for number, text in enumerate(texts)]
        ...     _ = collections.upsert("rules", documents)
        ...     found = collections.search("rules", DocumentQuery(queries=["When does the pool open?"]))
        >>> hit = found.hits[0][0]
        >>> hit.id, hit.answer.text, hit.confidence > 0.5
        ('0', 'The pool is in the park. It opens at nine.', True)
    """

    @classmethod
    def open(
        cls,
        data_dir: str | Path,
        models: Sequence[TextModel],
        *,
        reader: AnswerReader | None = None,
        config: EngineConfig | None = None,
    ) -> Self:
        """Opens a data directory, creating it if missing; raises as ``CollectionEngine.open``.

        ``models``: models of texts, see ``facets.load``; the first encodes collections that name none. ``reader``:
        chooses the answers, see ``facets.model.answer_reader.AnswerReader.shared``; None: facets and words do.
        """
        encoders = encoders_of(models, reader=reader)
        collections = cls(CollectionEngine.open(data_dir, config), encoders)
        collections._owns_engine = True
        return collections

    def __init__(
        self,
        engine: CollectionEngine,
        encoders: Encoders,
        *,
        max_text_bytes: int = MAX_DOCUMENT_BYTES,
        recall: RecallSampler | None = None,
    ) -> None:
        """``max_text_bytes``: of a document. ``recall``: checks a share of the searches."""
        self.engine = engine
        self._encoders = encoders
        self._max_text_bytes = max_text_bytes
        self._recall = recall
        self._words = CollectionWords(engine, encoders)
        self._maps = lru_cache(maxsize=_MAX_KEPT_MAPS)(self._map)
        self._owns_engine = False

    def close(self) -> None:
        """Ends background work, and closes the engine if ``open`` has opened it."""
        self._words.close()
        if self._owns_engine:
            self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def using(self, encoders: Encoders) -> "Collections":
        """The same collections with other encoders, such as those of one call to a server."""
        other = copy(self)
        other._encoders = encoders
        return other

    def create_collection(
        self, name: str, *, model: str = "", search_fields: Mapping[str, float] | None = None, language: str = ""
    ) -> CollectionInfo:
        """Creates an empty collection for a model, empty: the default; see ``CollectionEngine.create_collection``."""
        shape = described(self._encoders(model).model)
        return self.engine.create_collection(name, **shape, search_fields=search_fields, language=language)

    def upsert(self, name: str, documents: Sequence[Document]) -> StoredBatch:
        """Encodes and stores documents, replacing those with the same ids; all or none.

        Raises InvalidFieldsError, which has an error for each of the first bad documents.
        """
        ingest = self.ingest(name)
        return ingest.store_all(ingest.prepare(documents))

    def ingest(self, name: str, *, encoded_by: tuple[str, str] = ("", "")) -> Ingest:
        """Stores batches of documents, if wanted only the good ones of each.

        ``encoded_by``: name and revision of the model whose facets the documents have already, if any.
        """
        record = self.engine.record(name)
        if any(encoded_by) and encoded_by != (record.model, record.model_revision):
            raise ModelMismatchError(
                f"collection {record.name!r} holds facets of revision {record.model_revision} of model {record.model}, "
                f"got facets of revision {encoded_by[1]} of {encoded_by[0]}: encode with the model of the collection"
            )
        encoder = self._encoders(record.model)
        if encoder.model.revision != record.model_revision:
            raise ModelMismatchError(
                f"collection {record.name!r} was made with revision {record.model_revision} of model {record.model}, "
                f"got {encoder.model.revision}: move it with ReindexCollection (facets collections reindex) or start "
                "with the old model"
            )
        return Ingest(engine=self.engine, collection=record, encoder=encoder, max_text_bytes=self._max_text_bytes)

    def reindex(
        self,
        name: str,
        *,
        model: str = "",
        search_fields: Mapping[str, float] | None = None,
        budget_s: float | None = None,
    ) -> ReindexStep:
        """Moves a collection to another model, or other fields; see ``CollectionEngine.reindex``.

        ``model`` empty, ``search_fields`` None: those of the collection.
        """
        encoder = self._encoders(model or self.engine.record(name).model)
        shape = described(encoder.model)
        nothing = EncodedText.of_nothing(shape["num_facets"], shape["dim"])

        def encode(texts: Sequence[str]) -> list[EncodedText]:
            readable = [text for text in texts if not problem_of(encoder.model, text)]
            encoded = dict(zip(readable, encoder.submit(readable)().texts(), strict=True)) if readable else {}
            return [encoded.get(text, nothing) for text in texts]

        target = TargetModel(**shape, encode=encode, search_fields=search_fields)
        return self.engine.reindex(name, target, budget_s=budget_s)

    def search(self, name: str, query: DocumentQuery) -> SearchResult:
        """Finds the documents that answer each query best."""
        record = self.engine.record(name)
        encoder = self._encoder_of(record, query.model)
        encoded = encode_queries(query, encoder, record.dim)
        check_interrupted()
        hits: list[tuple[SearchHit, ...]] = [()] * len(encoded)
        results: list[SearchResult] = []
        find = partial(self.engine.search, name, curve=encoder.relevance, reader=encoder.reader, seen=record)
        with encoder.measured("search", num_items=len(encoded)):
            for indices, request in requests_of(query, encoded):
                result = find(request)
                # A reader leaves out other hits by confidence than the exact search, which uses none.
                if self._recall is not None and not request.min_confidence:
                    exactly = replace(request, exact=True, use_reader=False)
                    self._recall.offer(result, partial(find, exactly), of=record.number)
                results.append(result)
                for index, query_hits in zip(indices, result.hits, strict=True):
                    hits[index] = query_hits
        num_words = query.num_words if query.evidence else 0
        words = self._words.of(record, encoder, wait_s=_SEARCH_WAIT_S) if num_words else None
        found = explained(hits, encoded, words, num_words)
        if not query.include_document:
            found = tuple(tuple(replace(hit, text="", payload=None) for hit in query_hits) for query_hits in found)
        exhaustive = all(result.exhaustive for result in results)
        return replace(
            results[0],
            hits=found,
            index_revision=min(result.index_revision for result in results),
            exhaustive=exhaustive,
            model=encoder.model,
            recall=None if exhaustive or self._recall is None else self._recall.recall.get(record.number),
            left_out=next((result.left_out for result in results if result.left_out), left_out(query, encoded)),
        )

    def rerank(self, query: RerankQuery) -> RerankResult:
        """Ranks texts by how well they answer a query, as a search in a collection of these texts would."""
        encoder, num_tokens = self._encoders(query.model), 0
        outputs = [EncodedText(np.zeros((1, 1), np.float32))] * len(query.documents)
        check_text(query.query, ("query",))
        if query.mode != "lexical":
            check_readable_by(encoder.model, query.query, "query")
            check_readable(encoder.model, query.query, ("query",))
            for i, text in enumerate(query.documents):
                check_readable_by(encoder.model, text, "texts", i)
            pending = encoder.submit(list(query.documents))
            [asked] = encode_texts([query.query], encoder)
            encoded = pending()
            outputs, num_tokens = encoded.texts(), sum(stats.num_tokens for stats in encoded.stats)
            combine = "any" if asked.combine == "any" else query.combine
            query = replace(query, facets=asked.facets[None], weights=asked.weights[None], combine=combine)
        documents = [
            Document(id=str(i), text=text, facet_embeddings=output.facets, facet_spans=output.spans)
            for i, (text, output) in enumerate(zip(query.documents, outputs, strict=True))
        ]
        query = replace(query, texts=[query.query])
        check_interrupted()
        space = encoder.model.space
        with encoder.measured("search", num_items=len(documents)):
            results = rerank(documents, query, space=space, curve=encoder.relevance, reader=encoder.reader)
        return RerankResult(results=results, num_tokens=num_tokens, model=encoder.model)

    def diagnose(self, name: str, queries: Sequence[str] = ()) -> CollectionDiagnosis:
        """Describes the vectors of a collection, and with queries the recall of its index."""
        record = self.engine.record(name)
        encoder = self._encoder_of(record)
        if len(queries) > MAX_DIAGNOSE_QUERIES:
            raise InvalidInputError(f"has {len(queries)} items, the limit is {MAX_DIAGNOSE_QUERIES}", path="queries")
        for i, text in enumerate(queries):
            check_readable_by(encoder.model, text, "queries", i)
            check_readable(encoder.model, text, ("queries", i))
        encoded = encode_texts(queries, encoder) if queries else []
        requests = [request for _, request in requests_of(DocumentQuery(queries=queries, mode="facets"), encoded)]
        search = partial(self.engine.search, name, seen=record)
        with encoder.measured("search", num_items=len(queries)), apart() as run:
            with self.engine.view(name, record) as (view, current):
                diagnosis = diagnose_collection(view, current, requests, search=search, run=run)
        return replace(diagnosis, model=encoder.model)

    def map(self, name: str, *, max_documents: int = 0) -> CollectionMap:
        """Lays out a collection in two dimensions, with its themes, largest first; see ``map_collection``."""
        record, layout = self._maps(name, max_documents, self.engine.revision)
        words = self._words.of(record, self._encoder_of(record), wait_s=_MAP_WAIT_S)
        nearest: list[list[tuple[str, float]]] = [[]] * len(layout.centers)
        if words:
            nearest = words.nearest(layout.centers, _NUM_CANDIDATE_WORDS, excluded=words.vocabulary.is_stop)
        counts = np.bincount(layout.document_themes, minlength=len(nearest)).tolist()
        used: set[str] = set()
        themes = []
        for candidates, num_documents in zip(nearest, counts, strict=True):
            own = tuple((word, cosine) for word, cosine in candidates if word not in used)[:_WORDS_PER_THEME]
            used.update(word for word, _ in own)
            themes.append((own, num_documents))
        return replace(layout, themes=tuple(themes))

    def _map(self, name: str, max_documents: int, _revision: int) -> tuple[CollectionRecord, CollectionMap]:
        with apart() as run, self.engine.view(name) as (view, record):
            return record, map_collection(view, record, max_documents=max_documents, run=run)

    def _encoder_of(self, record: CollectionRecord, model: str = "") -> Encoder:
        """The encoder of the queries to a collection: with its own model, or the named one of the same space."""
        encoder = self._encoders(model or record.model)
        own = encoder.model
        if own.space != record.space and own.name == record.model:
            raise ModelMismatchError(
                f"the files of {record.model} have changed since the documents of {record.name!r} were encoded: encode "
                f"them again with facets collections reindex {record.name} --model {record.model}"
            )
        if own.space != record.space:
            raise ModelMismatchError(
                f"collection {record.name!r} was made by model {record.model} in space {record.space}, expected a "
                f"model of that space, got {own.name} of space {own.space}: name another model, or move the "
                "collection with ReindexCollection (facets collections reindex)"
            )
        return encoder

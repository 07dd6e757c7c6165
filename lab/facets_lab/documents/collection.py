"""Texts as a searchable collection, in the same engine that the server uses."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from facets.documents.confidence import RelevanceCurve
from facets.documents.engine import CollectionEngine
from facets.documents.parts import EncodedText, from_encoded, split_text
from facets.documents.request import SearchRequest
from facets.documents.types import SearchHit, SearchMode
from facets.index.config import EngineConfig
from facets.model.checkpoint import read_settings
from facets.model.facet_model import FacetModel
from facets.model.loading import TASKS, load
from facets.model.passage_checkpoint import TASK
from facets.model.passage_model import PassageModel
from facets.model.shipped import ENCODER_PREFIX, find_model

SearchedModel = FacetModel | PassageModel

_NAME = "evaluation"
_DOCUMENT_BATCH = 1_000
_QUERY_BATCH = 64


def load_searched(name_or_path: str | None) -> SearchedModel:
    """Loads a model whose facets a collection can store; None: the default model of collections."""
    if name_or_path and name_or_path.startswith(ENCODER_PREFIX):
        return load(name_or_path, PassageModel)
    folder = find_model(name_or_path or TASKS[TASK].default)
    is_passage_model = read_settings(folder).get("task") == TASK
    return load(folder, PassageModel) if is_passage_model else load(folder, FacetModel)


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection and the model of its facets."""

    engine: CollectionEngine
    model: SearchedModel

    def search(
        self, queries: Sequence[str], modes: Sequence[SearchMode], *, top_k: int, reasons: bool = False
    ) -> dict[SearchMode, list[tuple[SearchHit, ...]]]:
        """Hits of every query, by mode; with ``reasons`` the hits have evidence and an answer."""
        hits: dict[SearchMode, list[tuple[SearchHit, ...]]] = {mode: [] for mode in modes}
        curve = None
        if isinstance(self.model, PassageModel) and self.model.score_scale is not None:
            curve = RelevanceCurve(revision=self.model.revision, weights={}, scale=self.model.score_scale)
        for start in range(0, len(queries), _QUERY_BATCH):
            texts = queries[start : start + _QUERY_BATCH]
            if isinstance(self.model, PassageModel):
                encoded = self.model.encode_queries(texts)
                facets, weights = encoded.facets, encoded.weights
            else:
                facets, weights = self.model.encode(texts), None
            for mode in modes:
                request = SearchRequest(
                    facets=facets, weights=weights, texts=texts, mode=mode, top_k=top_k, reasons=reasons
                )
                hits[mode] += self.engine.search(_NAME, request, curve=curve).hits
        return hits


@contextmanager
def indexed(model: SearchedModel, documents: Mapping[str, str]) -> Iterator[Collection]:
    """A temporary collection of texts by id, cut into parts and indexed as a server does."""
    config = EngineConfig(background=False, snapshot_on_close=False)
    with TemporaryDirectory(prefix="facets-eval-") as folder, CollectionEngine.open(Path(folder), config) as engine:
        engine.create_collection(
            _NAME,
            model=model.name,
            model_revision=model.revision,
            num_facets=model.num_facets,
            dim=model.dim,
            space=model.space,
        )
        record = engine.record(_NAME)
        items = list(documents.items())
        for start in range(0, len(items), _DOCUMENT_BATCH):
            batch = items[start : start + _DOCUMENT_BATCH]
            parts = [split_text(text) for _, text in batch]
            read = [record.searched(text, {}, own) for (_, text), own in zip(batch, parts, strict=True)]
            encoded = _encode(model, [part.read for texts in read for part in texts])
            stored = [
                from_encoded(key, text, {}, parts=own, searched=texts, encoded=[encoded[part.read] for part in texts])
                for (key, text), own, texts in zip(batch, parts, read, strict=True)
            ]
            engine.upsert(_NAME, stored)
        engine.maintain()  # folds a large collection into its index, as a server does in the background
        yield Collection(engine, model)


def _encode(model: SearchedModel, texts: Sequence[str]) -> dict[str, EncodedText]:
    """Encodes each distinct text; a blank text has no facets."""
    encoded = dict.fromkeys(texts, EncodedText.of_nothing(model.num_facets, model.dim))
    visible = [text for text in encoded if text.strip()]
    if visible and isinstance(model, PassageModel):
        passages = model.encode_passages(visible)
        encoded |= {text: EncodedText(*passages.document(row)) for row, text in enumerate(visible)}
    elif visible:
        encoded |= zip(visible, map(EncodedText, model.encode(visible)), strict=True)
    return encoded

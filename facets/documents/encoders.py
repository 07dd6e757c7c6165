"""Models of texts as collections use them: a library calls its model, a server puts the texts of a call into a queue.

Shape letters: N texts, K facets, D dimensions.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from facets.arrays import Floats, Ints, Ints32
from facets.documents.confidence import RelevanceCurve
from facets.documents.parts import EncodedText
from facets.documents.types import TokenStats
from facets.errors import InvalidInputError, NotFoundError
from facets.language.interruption import FifoLock
from facets.model.answer_reader import AnswerReader
from facets.model.contract import SentenceModel, TextModel
from facets.model.loading import TASKS
from facets.model.passage_model import PassageModel, QueryFacets
from facets.model.shipped import find_model, served_name

_COUNTED = 2  # the tokens of a truncated text are counted up to this multiple of those read


@dataclass(frozen=True, slots=True)
class Encoded:
    """A model's results for texts."""

    facets: Floats  # [N, K, D], with magnitudes; rows of zeros where a text has fewer facets
    stats: tuple[TokenStats, ...]  # token counts of each text
    spans: Ints32 | None = None  # character span of each facet in its text, [N, K, 2]
    vectors: Floats | None = None  # unit vector of each whole text, [N, D]; None: not requested
    # Facets and spans, by text index, of long texts whose documents keep more than K facets.
    kept: Mapping[int, tuple[Floats, Ints32]] = field(default_factory=dict)

    def texts(self) -> list[EncodedText]:
        """The result for each text, as a document keeps it."""
        texts = []
        for i, stats in enumerate(self.stats):
            facets, spans = self.kept.get(i, (self.facets[i], None if self.spans is None else self.spans[i]))
            texts.append(EncodedText(facets, spans, stats))
        return texts


PendingTexts: TypeAlias = Callable[[], Encoded]
"""Waits for the results of texts that a model encodes."""


OpenReader: TypeAlias = Callable[[], AnswerReader | None]
"""See ``Encoder.reader``."""


class Encoder(Protocol):
    """A model of texts that encodes on behalf of one caller."""

    model: TextModel
    relevance: RelevanceCurve | None  # gives hits their confidence; None: they have none

    def reader(self) -> AnswerReader | None:
        """Opens what chooses the answers of hits; None: facets and words do."""

    def submit(self, texts: Sequence[str]) -> PendingTexts:
        """Begins to encode at least one text of documents, each without ``problem_of``."""

    def encode_queries(self, texts: Sequence[str]) -> QueryFacets:
        """Facets of at least one query without ``problem_of``."""

    def embed(self, texts: Sequence[str]) -> Floats:
        """One vector per text, ``[N, H]``; see ``TextEncoder.embed``."""

    def measured(self, stage: str, *, num_items: int = 0) -> AbstractContextManager[None]:
        """Measures the time of a ``with`` block, whose stage is ``search`` or ``store``."""


def described(model: TextModel) -> dict[str, Any]:
    """A model as the fields of a ``CollectionModel``."""
    fields = {name: getattr(model, name) for name in ("space", "num_facets", "dim")}
    return {"model": model.name, "model_revision": model.revision, **fields}


Encoders: TypeAlias = Callable[[str], Encoder]
"""The encoder with the model of a name, for the empty name the default one; raises NotFoundError."""


def problem_of(model: TextModel, text: str) -> str:
    """Why a model cannot read a text that is not blank, as the rule of an error; empty: it can read it."""
    return model.problem(text) if isinstance(model, PassageModel) else ""


def check_readable_by(model: TextModel, text: str, *path: str | int) -> None:
    """Raises InvalidInputError unless the model can read a text at ``path``."""
    if problem := problem_of(model, text):
        raise InvalidInputError(problem, path=path)


class ModelEncoder:
    """A model of this process, which threads use in turn."""

    def __init__(
        self, model: TextModel, *, relevance: RelevanceCurve | None = None, reader: AnswerReader | None = None
    ) -> None:
        self.model, self.relevance, self.reader = model, relevance, lambda: reader
        self._lock = FifoLock()

    def submit(self, texts: Sequence[str]) -> PendingTexts:
        """See ``Encoder``; encodes at once."""
        with self._lock:
            encoded = self._encoded(texts)
        return lambda: encoded

    def encode_queries(self, texts: Sequence[str]) -> QueryFacets:
        """See ``Encoder``; for a model of sentences facets of equal weight."""
        with self._lock:
            if isinstance(self.model, PassageModel):
                return self.model.encode_queries(texts)
            return equal_facets(self._encoded(texts).facets)

    def embed(self, texts: Sequence[str]) -> Floats:
        """See ``Encoder``."""
        with self._lock:
            return self.model.embed(texts)

    def measured(self, stage: str, *, num_items: int = 0) -> AbstractContextManager[None]:
        """Measures nothing."""
        return nullcontext()

    def _encoded(self, texts: Sequence[str]) -> Encoded:
        if isinstance(self.model, PassageModel):
            passages = self.model.encode_passages(texts)
            stats = tuple(TokenStats(count, count) for count in passages.num_tokens.tolist())
            return Encoded(passages.facets, stats, passages.spans, kept=passages.kept)
        model = cast(SentenceModel, self.model)
        rows = model.tokenize(texts)
        return Encoded(model.encode_rows(rows), token_stats(model, texts, rows))


def encoders_of(models: Sequence[TextModel], *, reader: AnswerReader | None = None) -> Encoders:
    """Encoders with models of this process, each with the curve of ``relevance_of``; the first is the default."""
    by_name = {model.name: ModelEncoder(model, relevance=relevance_of(model), reader=reader) for model in models}

    def encoder(name: str) -> Encoder:
        name = served_name(name) or next(iter(by_name), "")
        if name not in by_name:
            rule = f"no model {name!r} was given, expected one of {', '.join(by_name) or 'none: give models'}"
            raise NotFoundError(rule, resource_type="model", resource_name=name)
        return by_name[name]

    return encoder


def relevance_of(model: TextModel, *folders: Path) -> RelevanceCurve | None:
    """The curve fitted to a model, else for an encoder that of the default model, on the scale of the encoder.

    ``folders``: may hold the curve; without any, that of the shipped model of this name. None: there is no curve.
    """
    curve = None
    with suppress(NotFoundError):  # the model has no name that is known here
        for folder in folders or (find_model(model.name),):
            curve = curve or RelevanceCurve.read(folder, model.revision)
    scale = model.score_scale if isinstance(model, PassageModel) else None
    if scale is None:
        return curve
    with suppress(NotFoundError):  # the default model is not installed
        curve = curve or RelevanceCurve.read(find_model(TASKS[model.task].default), None)
    return replace(curve or RelevanceCurve(revision=model.revision, weights={}), scale=scale)


def equal_facets(facets_NKD: Floats) -> QueryFacets:
    """Facets of queries by a model of sentences: all have the same weight."""
    return QueryFacets(facets_NKD, np.ones(facets_NKD.shape[:2], np.float32), np.zeros(len(facets_NKD), np.bool_))


def token_stats(model: SentenceModel, texts: Sequence[str], rows: Sequence[Ints]) -> tuple[TokenStats, ...]:
    """Token counts of texts of which the model reads these rows of tokens."""
    unknown = model.words.vocabulary.unknown_row
    return tuple(
        TokenStats(len(row), _num_tokens(model, text, row), int(np.count_nonzero(row == unknown)))
        for text, row in zip(texts, rows, strict=True)
    )


def _num_tokens(model: SentenceModel, text: str, row: Ints) -> int:
    """Tokens of the whole text, of which the model reads ``row``; a lower bound for a very long text."""
    if len(row) < model.max_tokens:
        return len(row)
    most = _COUNTED * model.max_tokens
    words = model.tokenizer.words([text], most=most)[0]
    counted = len(model.words.vocabulary.split_rows(words)[0])
    return counted if len(words) < most else max(counted, len(text.split()))

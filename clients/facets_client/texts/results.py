"""Results of text calls."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from facets_proto.codec import from_message
from facets_proto.v1 import texts_pb2 as pb
from rich.console import RenderableType
from rich.text import Text

from facets_client.core.drawing import Drawn, count_of, line, more, table_of
from facets_client.core.evidence import attention_line, match_line
from facets_client.core.rows import Listed
from facets_client.core.values import FacetsArray
from facets_client.generated.types import (
    Difference,
    EmbeddingsFields,
    ExplanationFields,
    FacetMatch,
    ModelVersion,
    SummaryFields,
    Timings,
    TokenAttention,
)

_MATCHES_SHOWN = 5


class Embeddings(EmbeddingsFields):
    """Facet embeddings of some texts; ``np.asarray(embeddings)`` is the array."""

    __slots__ = ()

    def __array__(self, dtype: np.dtype[np.generic] | None = None, copy: bool | None = None) -> FacetsArray:
        return np.array(self.facet_embeddings, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.facet_embeddings)

    def __getitem__(self, index: int) -> FacetsArray:
        return self.facet_embeddings[index]


class Explanation(Drawn, ExplanationFields):
    """Tokens of a text with their attention, and facets with their nearest words."""

    __slots__ = ()

    def _parts(self, max_rows: int) -> Iterator[RenderableType]:
        closest: dict[int, tuple[float, int]] = {}  # token -> cosine and number of its closest facet
        rows = []
        for facet in self.facets[:max_rows]:
            for item in facet.tokens:
                closest[item.token] = max(closest.get(item.token, (0.0, 0)), (item.cosine, facet.facet))
            words = ", ".join(f"{word.word} ({word.cosine:.2f})" for word in facet.words)
            rows.append((facet.facet, words, ", ".join(self.tokens[item.token].text for item in facet.tokens)))
        yield attention_line(self.tokens, {token: facet for token, (_, facet) in closest.items()})
        stats = self.token_stats
        truncated = ", the end of the text was not read" if stats.truncated else ""
        yield line(f"{count_of(stats.num_tokens, 'token')}, {stats.num_unknown_tokens} unknown{truncated}")
        yield table_of(("facet", "nearest words (cosine)", "attends to"), rows)
        yield from more(len(self.facets) - max_rows)


@dataclass(frozen=True, slots=True, repr=False)
class PairScore(Drawn):
    """Score of one pair of texts; matches and tokens are empty unless requested."""

    score: float  # higher is more similar; the range depends on the method
    calibrated_score: float | None  # on the requested human scale; None unless requested
    matches: tuple[FacetMatch, ...]  # facets that matched, largest contribution first
    first_tokens: tuple[TokenAttention, ...]
    second_tokens: tuple[TokenAttention, ...]
    label: str = ""  # equivalent, entails, neutral or contradicts; empty where the method does not decide
    differences: tuple[Difference, ...] = ()  # where the texts differ about the same things, largest weight first

    @classmethod
    def of(cls, message: pb.PairScore) -> Self:
        """The score of a pair, with its explanation in one record."""
        name = pb.InferenceLabel.Name(message.label) if message.label else ""
        return from_message(
            message.explanation,
            cls,
            score=message.score,
            calibrated_score=message.calibrated_score if message.HasField("calibrated_score") else None,
            label=name.removeprefix("INFERENCE_LABEL_").lower(),
            differences=tuple(from_message(item, Difference) for item in message.differences),
        )

    @property
    def differing(self) -> str:
        """The differences on one line, such as ``open / closed (antonym)``; empty when there are none."""
        return ", ".join(dict.fromkeys(f"{item.first} / {item.second} ({item.kind})" for item in self.differences))

    def _parts(self, max_rows: int) -> Iterator[RenderableType]:
        score = f"{self.score:.4f}"
        if self.calibrated_score is not None:
            score = f"{self.calibrated_score:.2f} ({score})"
        yield line(f"{score}  {self.label}  {self.differing}".rstrip(), "bold")
        for tokens in filter(None, (self.first_tokens, self.second_tokens)):
            yield attention_line(tokens)
        for match in self.matches[:_MATCHES_SHOWN]:
            yield Text(f"{match.contribution:>4.0%}  ").append_text(match_line(match, "1st", "2nd"))


@dataclass(frozen=True, slots=True, repr=False)
class Scores(Listed[PairScore]):
    """Scores of some pairs; entry i belongs to pairs[i]."""

    pairs: tuple[PairScore, ...]
    method: str
    attention: bool
    model: ModelVersion
    timings: Timings


class Summary(Drawn, SummaryFields):
    """The picked sentences of one document, in document order."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The sentences joined by one space."""
        return " ".join(sentence.text for sentence in self.sentences)

    def __str__(self) -> str:
        return self.text

    def _parts(self, max_rows: int) -> Iterator[RenderableType]:
        rows = [(item.sentence + 1, item.gain, " ".join(item.text.split())) for item in self.sentences]
        yield table_of(("sentence", "gain", "text"), rows)
        if not self.has_prose:
            yield line("no prose to summarize: these are items, headings and the like", "yellow")
        of_all = count_of(self.num_sentences_in_document, "sentence")
        yield line(f"{len(self.sentences)} of {of_all}, {count_of(self.num_words, 'word')}")

"""Results of text calls."""

from collections.abc import Iterator

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from facets_client.core.drawing import Drawn, count_of, line, more, table_of
from facets_client.core.evidence import attention_line, match_line
from facets_client.core.rows import FacetsArray
from facets_client.generated import types

_MATCHES_SHOWN = 5


class Embeddings(types.EmbeddingsFields):
    """Facet embeddings of some texts; ``np.asarray(embeddings)`` is the array."""

    __slots__ = ()

    def __array__(self, dtype: np.dtype[np.generic] | None = None, copy: bool | None = None) -> FacetsArray:
        return np.array(self.facet_embeddings, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.facet_embeddings)

    def __getitem__(self, index: int) -> FacetsArray:
        return self.facet_embeddings[index]


class Explanation(Drawn, types.ExplanationFields):
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


def differing(score: types.PairScoreFields) -> str:
    """The differences on one line, such as ``open / closed``; empty when there are none."""
    return ", ".join(dict.fromkeys(f"{item.first} / {item.second}" for item in score.differences))


class PairScore(Drawn, types.PairScoreFields):
    """Score of one pair of texts."""

    __slots__ = ()

    def _parts(self, max_rows: int) -> Iterator[RenderableType]:
        score = f"{self.score:z.4f}"
        if self.calibrated_score is not None:
            score = f"{self.calibrated_score:.2f} ({score})"
        yield line(f"{score}  {self.label}  {differing(self)}".rstrip(), "bold")
        if self.explanation is None:
            return
        for tokens in filter(None, (self.explanation.first_tokens, self.explanation.second_tokens)):
            yield attention_line(tokens)
        for match in self.explanation.matches[:_MATCHES_SHOWN]:
            yield Text(f"{match.contribution:>4.0%}  ").append_text(match_line(match, "1st", "2nd"))


class Scores(types.ScoresFields):
    """Scores of some pairs; entry i belongs to pairs[i]."""

    __slots__ = ()


class Summary(Drawn, types.SummaryFields):
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

"""How results of text calls are shown."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from facets_client.core.drawing import count_of, line, more, parts_of, table_of
from facets_client.core.evidence import attention_line, match_line
from facets_client.generated.types import Explanation, PairScore, Summary

_MATCHES_SHOWN = 5


@parts_of.register
def _parts_of_explanation(explanation: Explanation, max_rows: int) -> Iterator[RenderableType]:
    closest: dict[int, tuple[float, int]] = {}  # token -> cosine and number of its closest facet
    rows = []
    for facet in explanation.facets[:max_rows]:
        for item in facet.tokens:
            closest[item.token] = max(closest.get(item.token, (0.0, 0)), (item.cosine, facet.facet))
        words = ", ".join(f"{word.word} ({word.cosine:.2f})" for word in facet.words)
        rows.append((facet.facet, words, ", ".join(explanation.tokens[item.token].text for item in facet.tokens)))
    yield attention_line(explanation.tokens, {token: facet for token, (_, facet) in closest.items()})
    stats = explanation.token_stats
    truncated = ", the end of the text was not read" if stats.truncated else ""
    yield line(f"{count_of(stats.num_tokens, 'token')}, {stats.num_unknown_tokens} unknown{truncated}")
    yield table_of(("facet", "nearest words (cosine)", "attends to"), rows)
    yield from more(len(explanation.facets) - max_rows)


def differing(score: PairScore) -> str:
    """The differences on one line, such as ``open / closed``; empty when there are none."""
    return ", ".join(dict.fromkeys(f"{item.first} / {item.second}" for item in score.differences))


@parts_of.register
def _parts_of_score(score: PairScore, max_rows: int) -> Iterator[RenderableType]:
    number = f"{score.score:z.4f}"
    if score.calibrated_score is not None:
        number = f"{score.calibrated_score:.2f} ({number})"
    yield line(f"{number}  {score.label}  {differing(score)}".rstrip(), "bold")
    if score.explanation is None:
        return
    for tokens in filter(None, (score.explanation.first_tokens, score.explanation.second_tokens)):
        yield attention_line(tokens)
    for match in score.explanation.matches[:_MATCHES_SHOWN]:
        yield Text(f"{match.contribution:>4.0%}  ").append_text(match_line(match, "1st", "2nd"))


@parts_of.register
def _parts_of_summary(summary: Summary, max_rows: int) -> Iterator[RenderableType]:
    rows = [(item.sentence + 1, item.gain, " ".join(item.text.split())) for item in summary.sentences]
    yield table_of(("sentence", "gain", "text"), rows)
    if not summary.has_prose:
        yield line("no prose to summarize: these are items, headings and the like", "yellow")
    of_all = count_of(summary.num_sentences_in_document, "sentence")
    yield line(f"{len(summary.sentences)} of {of_all}, {count_of(summary.num_words, 'word')}")

"""``facets embed``, ``explain``, ``similarity``, ``summarize``, ``topics``."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from facets_client.cli.options import FileOption, ModelOption, Texts, WordsOption, document_from, pairs_from, texts_from
from facets_client.cli.output import (
    add_row,
    count_of,
    match_line,
    print_explanation,
    print_json,
    progress_bar,
    shaded,
    shortened,
    stdout,
    table,
)
from facets_client.cli.settings import ask, settings_of
from facets_client.core.values import FacetsArray
from facets_client.generated.types import Method, Order, TextTopics
from facets_client.texts.results import PairScore, ScoreRange, Summary

_MEETINGS_SHOWN = 5
_ABOUT_SCORES = ("method", "attention", "model", "timings")


def embed(
    context: typer.Context,
    texts: Texts = None,
    file: FileOption = None,
    model: ModelOption = "",
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale facets to unit length.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write one array [texts, facets, dim] to this .npy file.")] = None,
    progress: Annotated[bool | None, typer.Option(help="Progress bar; by default only on a terminal.")] = None,
) -> None:
    """Turn texts into facet embeddings.

    With --json: one object a line, {"text", "facet_embeddings": [facets][dim]}. With --out: an .npy file,
    held in memory until it is written.

    \b
    Examples:
      facets embed "The striker scored in extra time."
      facets --json embed "first text" "second text" > facets.jsonl
      facets embed --file sentences.txt --out sentences.npy
    """
    settings = settings_of(context)
    if out and out.suffix != ".npy":
        raise typer.BadParameter(f"--out must end in .npy, got {str(out)!r}")
    source = texts_from(texts, file)
    shown = table("#", "text", "facets", "length of facets", right=("#",))
    kept: list[FacetsArray] = []
    with settings.connect(watched=False) as client, progress_bar(shown=progress, counted="texts") as bar:
        task = bar.add_task("", total=None)
        sent: list[str] = []
        stream = client.embed_stream(_remember(source, sent), model=model, normalize=normalize)
        for number, facets in enumerate(stream):
            text = sent.pop(0)
            bar.advance(task)
            if out:
                kept.append(facets)
            elif settings.json:
                print_json({"text": text, "facet_embeddings": facets})
            else:
                lengths = np.linalg.norm(facets, axis=1)
                spread = f"{lengths.min():.2f} to {lengths.max():.2f}"
                add_row(shown, number + 1, shortened(text, 60), " x ".join(map(str, facets.shape)), spread)
    if out:
        np.save(out, np.stack(kept))
        written = {"file": str(out), "shape": [len(kept), *kept[0].shape]}
        print_json(written) if settings.json else settings.note(f"wrote {count_of(len(kept), 'text')} to {out}")
    elif not settings.json:
        stdout().print(shown)


def _remember(source: Iterator[str], sent: list[str]) -> Iterator[str]:
    """Hands texts on and keeps those whose answer is still to come."""
    for text in source:
        sent.append(text)
        yield text


def similarity(
    context: typer.Context,
    first: Annotated[str | None, typer.Argument(help="First text.", show_default=False)] = None,
    second: Annotated[str | None, typer.Argument(help="Second text.", show_default=False)] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="Pairs, tab between them; - reads standard input.")
    ] = None,
    method: Annotated[
        Method | None, typer.Option(help="How to score; by default what agrees best with people for the model.")
    ] = None,
    attention: Annotated[
        bool, typer.Option("--attention", help="Weigh words by their closest facet (word-based methods).")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show which facet met which.")] = False,
    calibrated: Annotated[bool, typer.Option("--calibrated", help="Also the score as people would give it.")] = False,
    score_range: Annotated[
        ScoreRange, typer.Option("--range", help="Its scale, from unrelated to equivalent.")
    ] = "0..1",
    model: ModelOption = "",
    num_words: WordsOption = 5,
) -> None:
    """Score how alike two texts are; higher is more alike.

    \b
    Examples:
      facets similarity "A dog barks." "A puppy makes noise."
      facets similarity --method sif --attention "A dog barks." "A puppy makes noise."
      facets similarity --explain "A dog barks." "A puppy makes noise."
      facets similarity --calibrated --range 0..5 "A dog barks." "A puppy makes noise."
      facets --json similarity --file pairs.tsv
    """
    settings = settings_of(context)
    pairs = pairs_from(first, second, file)
    with settings.connect() as client:
        scores = client.similarity(
            pairs,
            method=method,
            attention=attention,
            model=model,
            explain=explain,
            calibrated=calibrated,
            score_range=score_range,
            num_words=num_words,
        )
    if settings.json:
        listed = [
            {"first": one, "second": other, **row} for (one, other), row in zip(pairs, scores.to_dicts(), strict=True)
        ]
        print_json({"pairs": listed, **{name: getattr(scores, name) for name in _ABOUT_SCORES}})
        return
    console = stdout()
    console.print(_score_table(pairs, scores.pairs))
    if explain:
        for pair in scores.pairs:
            _print_meetings(console, pair)


def _score_table(pairs: Sequence[tuple[str, str]], scores: Sequence[PairScore]) -> Table:
    """A row a pair; what differs stands beside it where something does."""
    differs = any(score.differences for score in scores)
    calibrated = any(score.calibrated_score is not None for score in scores)
    columns = ["score", *(["calibrated"] if calibrated else []), *(["what differs"] if differs else [])]
    shown = table(*columns, "first", "second", right=("score", "calibrated"))
    for (first, second), score in zip(pairs, scores, strict=True):
        cells = [f"{score.score:.4f}"]
        cells += [] if score.calibrated_score is None else [f"{score.calibrated_score:.3f}"]
        cells += [score.differing] if differs else []
        add_row(shown, *cells, shortened(first, 60), shortened(second, 60))
    return shown


def _print_meetings(console: Console, pair: PairScore) -> None:
    """The tokens of both texts by weight or attention, then the facets that met, by what they contribute."""
    console.print(shaded(pair.first_tokens, console))
    console.print(shaded(pair.second_tokens, console))
    for match in pair.matches[:_MEETINGS_SHOWN]:
        line = Text(f"{match.contribution:>4.0%}  ")
        console.print(line.append_text(match_line(match, "1st", "2nd")))
    console.print()


def summarize(
    context: typer.Context,
    text: Annotated[str | None, typer.Argument(help="The text.", show_default=False)] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="The text's file (UTF-8); - reads standard input.")
    ] = None,
    sentences: Annotated[int | None, typer.Option(help="Exactly this many sentences.", min=1)] = None,
    words: Annotated[int | None, typer.Option(help="At most this many words, instead.", min=1)] = None,
    order: Annotated[Order, typer.Option(help="Order of the sentences.")] = "original",
    query: Annotated[str, typer.Option(help="What the reader looks for.")] = "",
    model: ModelOption = "",
) -> None:
    """Pick the sentences that cover a text best.

    \b
    Examples:
      facets summarize --file article.txt --sentences 3
      facets summarize --file article.txt --words 100 --query "effect on prices"
      curl -s https://example.org/a.txt | facets --json summarize --file -
    """
    if sentences and words:
        raise typer.BadParameter("--sentences and --words exclude each other, got both")
    asked = [document_from(text, file)]
    ask(
        context,
        lambda client: client.summarize(
            asked, num_sentences=sentences, max_words=words, order=order, query=query, model=model
        )[0],
        _print_summary,
    )


def _print_summary(summary: Summary) -> None:
    shown = table("sentence", "gain", "text", right=("sentence", "gain"))
    for sentence in summary.sentences:
        add_row(shown, sentence.sentence + 1, f"{sentence.gain:.3f}", " ".join(sentence.text.split()))
    stdout().print(shown)
    if not summary.has_prose:
        stdout().print(Text("no prose to summarize: these are items, headings and the like", style="yellow"))
    of_all = count_of(summary.num_sentences_in_document, "sentence")
    note = f"{len(summary.sentences)} of {of_all}, {count_of(summary.num_words, 'word')}"
    stdout().print(Text(note, style="dim"))


def topics(
    context: typer.Context,
    text: Annotated[str | None, typer.Argument(help="What is written so far.", show_default=False)] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="The text's file (UTF-8); - reads standard input.")
    ] = None,
    number: Annotated[int | None, typer.Option("--topics", help="At most this many.", min=1)] = None,
    words: Annotated[int | None, typer.Option(help="Words of a topic.", min=1)] = None,
    keep: Annotated[list[str] | None, typer.Option(help="What is to come; repeatable.")] = None,
    avoid: Annotated[list[str] | None, typer.Option(help="What is not to come; repeatable.")] = None,
    model: ModelOption = "",
) -> None:
    """Suggest what a text may go on about, the likeliest first.

    \b
    Examples:
      facets topics "Barack Obama writes a new book."
      facets topics --file draft.txt --keep election --avoid religion
    """
    asked = [document_from(text, file)]
    ask(
        context,
        lambda client: client.suggest_topics(
            asked, num_topics=number, num_words=words, keep=keep or (), avoid=avoid or (), model=model
        )[0],
        _print_topics,
    )


def _print_topics(found: TextTopics) -> None:
    if not found.topics:
        stdout().print(Text("no topic left: avoid less", style="yellow"))
        return
    shown = table("topic", "likely", "new", right=("likely", "new"))
    for topic in found.topics:
        likely = "" if topic.likelihood is None else f"{topic.likelihood:.2f}"
        add_row(shown, ", ".join(word.word for word in topic.words), likely, f"{topic.novelty:.2f}")
    stdout().print(shown)


def explain(
    context: typer.Context,
    texts: Texts = None,
    file: FileOption = None,
    model: ModelOption = "",
    num_words: WordsOption = 5,
) -> None:
    """Show what the model sees: tokens shaded by attention, facets with their nearest words.

    Without colour, each token carries its attention relative to the strongest one, 0 to 9.

    \b
    Examples:
      facets explain "A dog chased the mailman down the street."
      facets --json explain --num-words 10 "A dog chased the mailman."
    """
    settings = settings_of(context)
    listed = list(texts_from(texts, file))
    with settings.connect() as client:
        explanations = client.explain(listed, model=model, num_words=num_words)
    console = stdout()
    for text, explanation in zip(listed, explanations, strict=True):
        if settings.json:
            print_json({"text": text, "explanation": explanation})
        else:
            print_explanation(console, explanation)


COMMANDS = {
    "embed": embed,
    "explain": explain,
    "similarity": similarity,
    "summarize": summarize,
    "topics": topics,
}

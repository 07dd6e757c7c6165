"""``facets embed``, ``similarity``, ``summarize``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from facets_client.cli.inputs import FileOption, ModelOption, Texts, WordsOption, pairs_from, text_of_file, texts_from
from facets_client.cli.output import (
    add_row,
    facets_shape,
    match_line,
    print_json,
    progress_bar,
    shaded,
    shortened,
    stdout,
    table,
)
from facets_client.cli.settings import settings_of
from facets_client.core.results import FacetsArray
from facets_client.texts.convert import Order, ScoreRange
from facets_client.texts.results import PairScore
from facets_client.texts.similarity_method import Method

_MEETINGS_SHOWN = 5


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
                add_row(shown, number + 1, shortened(text, 60), facets_shape(facets), spread)
    if out:
        np.save(out, np.stack(kept))
        written = {"file": str(out), "shape": [len(kept), *kept[0].shape]}
        print_json(written) if settings.json else settings.note(f"wrote {len(kept)} texts to {out}")
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
        scores = client.score(
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
        print_json(scores)
        return
    columns = ["score", *(["calibrated"] if calibrated else []), "first", "second"]
    shown = table(*columns, right=("score", "calibrated"))
    for (one, other), pair in zip(pairs, scores.pairs, strict=True):
        mapped = [] if pair.calibrated_score is None else [f"{pair.calibrated_score:.3f}"]
        add_row(shown, f"{pair.score:.4f}", *mapped, shortened(one, 60), shortened(other, 60))
    console = stdout()
    console.print(shown)
    if explain:
        for pair in scores.pairs:
            _print_meetings(console, pair)


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
    settings = settings_of(context)
    if sentences and words:
        raise typer.BadParameter("--sentences and --words exclude each other, got both")
    if (text is None) == (file is None):
        raise typer.BadParameter("expected one text, or --file FILE")
    document = text if text is not None else text_of_file(file or "-")
    with settings.connect() as client:
        summary = client.summarize(
            [document],
            num_sentences=sentences,
            max_words=words,
            order=order,
            query=query,
            model=model,
        )[0]
    if settings.json:
        print_json(summary)
        return
    shown = table("sentence", "gain", "text", right=("sentence", "gain"))
    for sentence in summary.sentences:
        add_row(shown, sentence.sentence + 1, f"{sentence.gain:.3f}", " ".join(sentence.text.split()))
    stdout().print(shown)
    note = f"{len(summary.sentences)} of {summary.num_sentences_in_document} sentences, {summary.num_words} words"
    stdout().print(Text(note, style="dim"))

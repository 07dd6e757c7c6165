"""``facets embed``, ``explain``, ``similarity``, ``summarize`` and ``topics``."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import tee
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from typer import Argument, Option

from facets_client.cli.options import (
    FileOption,
    ModelOption,
    PairsFileOption,
    TextFileOption,
    Texts,
    document_from,
    pairs_from,
    texts_from,
)
from facets_client.cli.output import print_json, print_table, stdout
from facets_client.cli.settings import ask, call_with, settings_of
from facets_client.core.drawing import count_of, line, progress_bar, shortened
from facets_client.core.rows import FacetsArray
from facets_client.generated.types import Method, Scores, Summary, TextTopics
from facets_client.texts.results import differing


def embed(
    context: typer.Context,
    texts: Texts = None,
    file: FileOption = None,
    model: ModelOption = "",
    out: Annotated[Path | None, Option(help="Write one array [texts, facets, dim] to this .npy file.")] = None,
) -> None:
    """Turn texts into facet embeddings.

    With --json: one object per line, {"text", "facet_embeddings": [facets][dim]}. With --out: an .npy file, whose
    contents are held in memory until it is written.

    \b
    Examples:
      facets embed "The striker scored in extra time."
      facets --json embed "first text" "second text" > facets.jsonl
    """
    settings = settings_of(context)
    if out and out.suffix != ".npy":
        raise typer.BadParameter(f"--out must end in .npy, got {str(out)!r}")
    sent, asked = tee(texts_from(texts, file))
    rows: list[tuple[object, ...]] = []
    arrays: list[FacetsArray] = []
    with settings.connect() as client, progress_bar("texts", quiet=settings.quiet) as bar:
        task = bar.add_task("", total=None)
        answers = client.embed_stream(sent, model=model)
        for number, (facets, text) in enumerate(zip(answers, asked, strict=False), start=1):
            bar.advance(task)
            if out:
                arrays.append(facets)
            elif settings.json:
                print_json({"text": text, "facet_embeddings": facets})
            else:
                rows.append((number, shortened(text, 60), " x ".join(map(str, facets.shape))))
    if out:
        np.save(out, np.stack(arrays))
        value = {"file": str(out), "shape": [len(arrays), *arrays[0].shape]}
        settings.done(value, f"wrote {count_of(len(arrays), 'text')} to {out}")
    elif not settings.json:
        print_table(("#", "text", "facets"), rows)


def explain(context: typer.Context, texts: Texts = None, file: FileOption = None, model: ModelOption = "") -> None:
    """Show tokens by attention, and facets with their words.

    Each token carries its attention relative to the strongest one, 0 to 9.

    \b
    Examples:
      facets explain "A dog chased the mailman down the street."
      facets --json explain "A dog chased the mailman."
    """
    asked = list(texts_from(texts, file))
    ask(
        context,
        lambda client: client.explain(asked, model=model),
        as_json=lambda found: [
            {"text": text, "explanation": explanation} for text, explanation in zip(asked, found, strict=True)
        ],
    )


def similarity(
    context: typer.Context,
    first: Annotated[str | None, Argument(help="First text.")] = None,
    second: Annotated[str | None, Argument(help="Second text.")] = None,
    file: PairsFileOption = None,
    method: Annotated[Method | None, Option(help="Scoring method.  [default: the best one for the model]")] = None,
    attention: Annotated[bool, Option("--attention", help="Weight words by their closest facet.")] = False,
    explain: Annotated[bool, Option("--explain", help="Show which facets match.")] = False,
    calibrated: Annotated[bool, Option("--calibrated", help="Also show the score on a human scale.")] = False,
    model: ModelOption = "",
) -> None:
    """Score how similar two texts are; higher is more similar.

    \b
    Examples:
      facets similarity "A dog barks." "A puppy makes noise."
      facets similarity --method sif --attention "A dog barks." "A puppy makes noise."
    """
    pairs = pairs_from(first, second, file)
    options = locals()

    def show(found: Scores) -> None:
        _print_scores(pairs, found)
        if explain:
            stdout().print(found)

    def as_json(found: Scores) -> dict[str, object]:
        listed = [
            {"first": pair[0], "second": pair[1], **asdict(score)} for pair, score in zip(pairs, found, strict=True)
        ]
        return {"pairs": listed, **{name: getattr(found, name) for name in ("method", "attention", "model", "timings")}}

    ask(context, lambda client: call_with(client.similarity, options), show, as_json)


def _print_scores(pairs: Sequence[tuple[str, str]], scores: Scores) -> None:
    """Prints a row per pair; columns for calibrated scores, labels and differences only if there are any."""
    rows = [
        (
            f"{score.score:z.4f}",
            score.calibrated_score,
            score.label,
            differing(score),
            *(shortened(text, 60) for text in pair),
        )
        for pair, score in zip(pairs, scores, strict=True)
    ]
    columns = ("score", "calibrated", "label", "what differs", "first", "second")
    used = [place for place in range(len(columns)) if any(row[place] not in ("", None) for row in rows)]
    print_table([columns[place] for place in used], [[row[place] for place in used] for row in rows])


def summarize(
    context: typer.Context,
    text: Annotated[str | None, Argument(help="The text.")] = None,
    file: TextFileOption = None,
    sentences: Annotated[int | None, Option(help="Number of sentences.")] = None,
    words: Annotated[int | None, Option(help="Maximum number of words, instead of --sentences.")] = None,
    query: Annotated[str, Option(help="What the reader is looking for.")] = "",
    model: ModelOption = "",
) -> None:
    """Pick the sentences that cover a text best.

    \b
    Examples:
      facets summarize --file article.txt --sentences 3
      facets summarize --file article.txt --words 100 --query "effect on prices"
    """
    if sentences is not None and words is not None:
        raise typer.BadParameter("--sentences and --words exclude each other, got both")
    documents = [document_from(text, file)]
    options: dict[str, Any] = {"num_sentences": sentences, "max_words": words}

    def show(summary: Summary) -> None:
        stdout().print(summary)
        if sentences is not None and len(summary.sentences) < sentences:
            stdout().print(line(f"{sentences} were asked for: the text has no more sentences", "yellow"))

    ask(context, lambda client: client.summarize(documents, query=query, model=model, **options)[0], show)


def topics(
    context: typer.Context,
    text: Annotated[str | None, Argument(help="The text so far.")] = None,
    file: TextFileOption = None,
    number: Annotated[int | None, Option("--topics", help="Maximum number of topics.")] = None,
    words: Annotated[int | None, Option(help="Number of words per topic.")] = None,
    keep: Annotated[list[str] | None, Option(help="Word or phrase that will follow; repeat for more.")] = None,
    avoid: Annotated[list[str] | None, Option(help="Word or phrase to avoid; repeat for more.")] = None,
    model: ModelOption = "",
) -> None:
    """Suggest topics of a text, and those that it may continue with.

    \b
    Examples:
      facets topics "Barack Obama writes a new book."
      facets topics --file draft.txt --keep election --avoid religion
    """
    asked = [document_from(text, file)]
    options: dict[str, Any] = {"num_topics": number, "num_words": words, "keep": keep or (), "avoid": avoid or ()}
    ask(context, lambda client: client.suggest_topics(asked, model=model, **options)[0], _print_topics)


def _print_topics(found: TextTopics) -> None:
    stdout().print(found if found.topics else line("no topic left: avoid less", "yellow"))

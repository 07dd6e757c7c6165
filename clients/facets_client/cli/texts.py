"""``facets embed``, ``explain``, ``similarity``, ``summarize``."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from facets_client.cli.output import (
    add_row,
    facets_shape,
    match_line,
    print_explanation,
    print_json,
    progress_bar,
    say,
    shaded,
    shortened,
    stdout,
    table,
)
from facets_client.cli.settings import settings_of
from facets_client.convert.texts import Method, Order
from facets_client.records import InputError
from facets_client.results import FacetsArray, PairScore

_MEETINGS_SHOWN = 5

Texts = Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts.", show_default=False)]
FileOption = Annotated[
    str | None, typer.Option("--file", "-f", help="One text a line (UTF-8); - reads standard input.")
]
ModelOption = Annotated[str, typer.Option(help="Model; the server's default when not given.")]
WordsOption = Annotated[int, typer.Option(help="Nearest words for each facet.", min=1)]


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
    source = _texts(texts, file)
    shown = table("#", "text", "facets", "length of facets", right=("#",))
    kept: list[FacetsArray] = []
    with settings.connect() as client, progress_bar(shown=progress, counted="texts") as bar:
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
        print_json(written) if settings.json else say(f"wrote {len(kept)} texts to {out}")
    elif not settings.json:
        stdout().print(shown)


def _remember(source: Iterator[str], sent: list[str]) -> Iterator[str]:
    """Hands texts on and keeps those whose answer is still to come."""
    for text in source:
        sent.append(text)
        yield text


def explain(
    context: typer.Context,
    texts: Texts = None,
    file: FileOption = None,
    model: ModelOption = "",
    num_words: WordsOption = 5,
) -> None:
    """Show what the model sees: tokens shaded by attention, facets with their nearest words.

    Where there is no colour, each token carries its attention relative to the strongest one, 0 to 9.

    \b
    Examples:
      facets explain "A dog chased the mailman down the street."
      facets --json explain --num-words 10 "A dog chased the mailman."
    """
    settings = settings_of(context)
    listed = list(_texts(texts, file))
    with settings.connect() as client:
        explanations = client.explain(listed, model=model, num_words=num_words)
    console = stdout()
    for text, explanation in zip(listed, explanations, strict=True):
        if settings.json:
            print_json({"text": text, "explanation": explanation})
        else:
            print_explanation(console, explanation)


def similarity(
    context: typer.Context,
    first: Annotated[str | None, typer.Argument(help="First text.", show_default=False)] = None,
    second: Annotated[str | None, typer.Argument(help="Second text.", show_default=False)] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="Pairs, tab between them; - reads standard input.")
    ] = None,
    method: Annotated[Method, typer.Option(help="How to score.")] = "codebook",
    attention: Annotated[
        bool, typer.Option("--attention", help="Weigh words by attention (word-based methods).")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show which facet met which.")] = False,
    calibrated: Annotated[bool, typer.Option("--calibrated", help="Also map the score to 0..1.")] = False,
    model: ModelOption = "",
    num_words: WordsOption = 5,
) -> None:
    """Score how alike two texts are; higher is more alike.

    \b
    Examples:
      facets similarity "A dog barks." "A puppy makes noise."
      facets similarity --method sif --attention "A dog barks." "A puppy makes noise."
      facets similarity --explain "A dog barks." "A puppy makes noise."
      facets --json similarity --file pairs.tsv
    """
    settings = settings_of(context)
    pairs = _pairs(first, second, file)
    with settings.connect() as client:
        scores = client.score(
            pairs,
            method=method,
            attention=attention,
            model=model,
            explain=explain,
            calibrated=calibrated,
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
    """The tokens of both texts by attention, then the facets that met, by what they contribute."""
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
    document = text if text is not None else _read_all(file or "-")
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


def _texts(texts: list[str] | None, file: str | None) -> Iterator[str]:
    """The texts of the command line or of a file."""
    if bool(texts) == (file is not None):
        raise typer.BadParameter("expected texts, or --file FILE")
    return iter(texts) if texts else _lines(file or "-")


def _lines(name: str) -> Iterator[str]:
    """Lines with text, one at a time."""
    stream = sys.stdin.buffer if name == "-" else _open(name)
    with stream:
        for number, line in enumerate(stream, start=1):
            text = _decode(line, f"{name}, line {number}").strip()
            if text:
                yield text


def _read_all(name: str) -> str:
    if name == "-":
        return _decode(sys.stdin.buffer.read(), name)
    with _open(name) as stream:
        return _decode(stream.read(), name)


def _open(name: str) -> BinaryIO:
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise InputError(f"{name}: cannot be opened: {error.strerror}") from error


def _decode(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: invalid UTF-8: byte 0x{raw[error.start]:02x}") from error


def _pairs(first: str | None, second: str | None, file: str | None) -> list[tuple[str, str]]:
    if file is None:
        if first is None or second is None:
            raise typer.BadParameter("expected two texts, or --file FILE")
        return [(first, second)]
    if first is not None:
        raise typer.BadParameter("expected two texts or --file FILE, got both")
    pairs = []
    for number, line in enumerate(_lines(file), start=1):
        fields = line.split("\t")
        if len(fields) != 2:
            raise InputError(f"{file}, pair {number}: expected two texts with a tab between, got {len(fields)}")
        pairs.append((fields[0], fields[1]))
    return pairs

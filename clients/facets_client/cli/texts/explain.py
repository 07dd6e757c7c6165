"""``facets explain``: one text, or two side by side, in the terminal or as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from facets_client.cli.inputs import FileOption, ModelOption, Texts, WordsOption, texts_from
from facets_client.cli.output import clean, print_explanation, print_json, shaded, stdout
from facets_client.cli.settings import settings_of
from facets_client.core.results import FacetMatch
from facets_client.texts.pairing import paired_rows
from facets_client.texts.picture import Picture, explanation_picture, pair_picture
from facets_client.texts.plot import FORMATS, Format, plot, require_matplotlib
from facets_client.texts.results import Explanation, FacetWords, PairScore

_FURTHER_MEETINGS = 10


def explain(
    context: typer.Context,
    texts: Texts = None,
    file: FileOption = None,
    model: ModelOption = "",
    num_words: WordsOption = 5,
    pair: Annotated[
        bool, typer.Option("--pair", help="Show two texts side by side, and which facet met which.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write a picture to this .svg or .png file: of one text, or of a pair.")
    ] = None,
) -> None:
    """Show what the model sees: tokens shaded by attention, facets with their nearest words.

    Where there is no colour, each token carries its attention relative to the strongest one, 0 to 9.
    With --pair and --json: one object {"texts", "explanations", "score", "matches"}.

    \b
    Examples:
      facets explain "A dog chased the mailman down the street."
      facets explain --pair "A man is lifting weights in a garage." "A man is lifting weights."
      facets explain --pair "A dog barks." "A puppy makes noise." --out pair.svg
      facets --json explain --num-words 10 "A dog chased the mailman."
    """
    settings = settings_of(context)
    listed = list(texts_from(texts, file))
    if pair and len(listed) != 2:
        raise typer.BadParameter(f"--pair expects two texts, got {len(listed)}")
    if out and not pair and len(listed) != 1:
        raise typer.BadParameter(f"--out expects one text, or --pair and two, got {len(listed)} texts")
    form = _format_of(out) if out else None
    with settings.connect() as client:
        explanations = client.explain(listed, model=model, num_words=num_words)
        first_pair = [(listed[0], listed[1])] if pair else []
        scores = client.score(first_pair, model=model, explain=True, num_words=num_words).pairs if pair else ()
    if out and form:
        out.write_bytes(plot(_picture(listed, explanations, scores), form))
        print_json({"file": str(out)}) if settings.json else settings.note(f"wrote {out}")
    elif not pair:
        _show_each(listed, explanations, as_json=settings.json)
    elif settings.json:
        (met,) = scores
        print_json(
            {"texts": listed, "explanations": explanations, "score": met.score, "matches": met.matches},
        )
    else:
        _show_pair(stdout(), explanations, scores[0])


def _show_each(texts: Sequence[str], explanations: Sequence[Explanation], *, as_json: bool) -> None:
    console = stdout()
    for text, explanation in zip(texts, explanations, strict=True):
        if as_json:
            print_json({"text": text, "explanation": explanation})
        else:
            print_explanation(console, explanation)


def _show_pair(console: Console, explanations: Sequence[Explanation], met: PairScore) -> None:
    """Both texts shaded on one scale, the facets side by side, then the meetings that are no row."""
    first, second = explanations
    strongest = max((token.attention for item in explanations for token in item.tokens), default=0.0)
    for item in explanations:
        console.print(shaded(item.tokens, console, strongest=strongest))
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("facets of the first", ratio=1)
    shown.add_column("met", justify="center")
    shown.add_column("facets of the second", ratio=1)
    rows = paired_rows(met.matches, len(first.facets), len(second.facets))
    for row in rows:
        cosine = f"-- {row.match.cosine:.2f} --" if row.match else ""
        shown.add_row(
            _facet_line(first.facets, row.first_facet), Text(cosine), _facet_line(second.facets, row.second_facet)
        )
    console.print(shown)
    in_rows = {(row.first_facet, row.second_facet) for row in rows if row.match}
    further = [match for match in met.matches if (match.first_facet, match.second_facet) not in in_rows]
    if further:
        listed = ", ".join(_meeting(match) for match in further[:_FURTHER_MEETINGS])
        console.print(Text(f"also met: {listed}", style="dim"))
    console.print(Text(f"codebook score {met.score:.4f}", style="dim"))


def _facet_line(facets: Sequence[FacetWords], facet: int | None) -> Text:
    if facet is None:
        return Text("")
    nearest = ", ".join(f"{word.word} {word.cosine:.2f}" for word in facets[facet].words)
    return Text(clean(f"{facet:>2}  {nearest}"))


def _meeting(match: FacetMatch) -> str:
    return f"{match.first_facet}-{match.second_facet} ({match.cosine:.2f})"


def _picture(texts: Sequence[str], explanations: Sequence[Explanation], scores: Sequence[PairScore]) -> Picture:
    if not scores:
        return explanation_picture(texts[0], explanations[0])
    return pair_picture((texts[0], texts[1]), (explanations[0], explanations[1]), scores[0].matches)


def _format_of(file: Path) -> Format:
    """The format of a picture that can be painted here."""
    form = next((form for form in FORMATS if file.suffix == f".{form}"), None)
    if form is None:
        raise typer.BadParameter(f"--out must end in .svg or .png, got {str(file)!r}")
    try:
        require_matplotlib()
    except ImportError as error:
        raise typer.BadParameter(str(error)) from error
    return form

"""``facets relations`` and ``facets entail``."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

import typer
from typer import Argument, Option

from facets_client.cli.options import (
    FileOption,
    ModelOption,
    PairsFileOption,
    Texts,
    names_of_file,
    pairs_from,
    texts_from,
)
from facets_client.cli.settings import ask


def relations(
    context: typer.Context,
    texts: Texts = None,
    file: FileOption = None,
    entity: Annotated[list[str] | None, Option("--entity", "-e", help="Entity name; repeat for more.")] = None,
    gazetteer: Annotated[str | None, Option(help="File of entity names, one per line.")] = None,
    span: Annotated[list[str] | None, Option(metavar="START:END", help="Entity in the text; repeat for more.")] = None,
    ner: Annotated[bool, Option("--ner", help="Find entities with the server's recognizer.")] = False,
    relation: Annotated[
        list[str] | None, Option("--relation", "-r", help="Consider only this relation; repeat for more.")
    ] = None,
    head: Annotated[
        str | None,
        Option(metavar="ENTITY", help="Find what this entity has the relation to; needs exactly one --relation."),
    ] = None,
    pattern: Annotated[list[str] | None, Option("--pattern", "-p", help="Pattern to score; repeat for more.")] = None,
    top_k: Annotated[int | None, Option(help="Maximum relations per pair, or entities found by --head.")] = None,
    unrelated: Annotated[bool, Option("--unrelated", help="Also show pairs without a relation.")] = False,
    evidence: Annotated[bool, Option("--evidence", help="Show similar training patterns and known pairs.")] = False,
    list_all: Annotated[bool, Option("--list", help="List the relations, each with an example.")] = False,
    add: Annotated[str | None, Option(metavar="NAME", help="Add a relation defined by each --pattern.")] = None,
    threshold: Annotated[float | None, Option(help="With --add: minimum score, -1 to 1.")] = None,
    delete: Annotated[str | None, Option(metavar="NAME", help="Delete an added relation.")] = None,
    model: ModelOption = "",
) -> None:
    """Find, score and manage relations between entities.

    The server finds entities unless they are given. Questions, negations and quotations yield no relation. A pattern is
    the text between two entities, with $ARG1 and $ARG2 in their places: put it in single quotes. Spans count
    characters from 0; the end is one past the last. With --json: one object per line.

    \b
    Examples:
      facets relations "Marie Curie was born in Warsaw."
      facets relations "Marie Curie was born in Warsaw." -e "Marie Curie" -e Warsaw
    """
    patterns = pattern or []
    if threshold is not None and add is None:
        raise typer.BadParameter("--threshold belongs to --add NAME")
    modes = {"--list": list_all, "--add": add is not None, "--delete": delete is not None}
    modes["--pattern"] = bool(patterns) and add is None
    chosen = [name for name, is_set in modes.items() if is_set]
    others = {"a text": bool(texts) or file is not None, "--head": head is not None}
    chosen += [name for name, is_set in others.items() if is_set and chosen]
    if len(chosen) > 1:
        raise typer.BadParameter(f"{chosen[0]} and {chosen[1]} exclude each other, got both")
    options: dict[str, Any] = {"top_k": top_k, "evidence": evidence, "model": model}
    run: Callable[..., object] = partial(ask, context)
    if list_all:
        run(lambda client: client.list_relations(model=model), as_json=lambda known: {"relations": known})
    elif add is not None:
        run(lambda client: client.add_relation(add, patterns, threshold=threshold, model=model))
    elif delete is not None:
        run(lambda client: client.delete_relation(delete, model=model))
    elif patterns:
        run(lambda client: client.score_relations(patterns, relations=relation or (), **options))
    else:
        asked = list(texts_from(texts, file))
        options |= _entity_options(asked, entity, gazetteer, span, ner)
        if head is None:
            options |= {"relations": relation or (), "include_unrelated": unrelated}
            run(
                lambda client: client.extract_relations(asked, **options),
                as_json=lambda found: [
                    {"text": text, **asdict(answer)} for text, answer in zip(asked, found, strict=True)
                ],
            )
        elif len(relation or ()) != 1:
            raise typer.BadParameter(f"--head expects exactly one --relation, got {len(relation or ())}")
        else:
            slot = (head, (relation or [""])[0])
            run(
                lambda client: client.fill_slots([slot], asked, **options),
                as_json=lambda found: {"head": head, "relation": slot[1], "tails": found[0]},
            )


def _entity_options(
    texts: Sequence[str], entity: list[str] | None, gazetteer: str | None, span: list[str] | None, ner: bool
) -> dict[str, Any]:
    is_named = bool(entity) or gazetteer is not None
    if is_named + bool(span) + ner > 1:
        raise typer.BadParameter("give entities in one way only: --entity and --gazetteer, or --span, or --ner")
    if span:
        if len(texts) != 1:
            raise typer.BadParameter(f"--span expects one text, got {len(texts)}")
        return {"entity_source": "spans", "spans": [list(map(_span, span))]}
    if is_named:
        names = [*(entity or []), *(names_of_file(gazetteer) if gazetteer else [])]
        return {"entity_source": "gazetteer", "gazetteer_names": names}
    return {"entity_source": "ner" if ner else "any"}


def _span(text: str) -> tuple[int, int]:
    start, _, end = text.partition(":")
    if not (start.isdecimal() and end.isdecimal()):
        raise typer.BadParameter(f"--span expects START:END in characters, got {text!r}")
    return int(start), int(end)


def entail(
    context: typer.Context,
    premise: Annotated[str | None, Argument(help="Sentence pattern.")] = None,
    hypothesis: Annotated[str | None, Argument(help="Sentence pattern.")] = None,
    file: PairsFileOption = None,
    model: ModelOption = "",
) -> None:
    """Tell whether one sentence pattern entails another.

    Both directions are tested. A pattern contains $ARG1 and $ARG2 exactly once each: put it in single quotes.

    \b
    Examples:
      facets entail '$ARG1 was assassinated by $ARG2' '$ARG1 was killed by $ARG2'
      facets --json entail --file pairs.tsv
    """
    pairs = pairs_from(premise, hypothesis, file)
    ask(context, lambda client: client.detect_entailment(pairs, model=model))

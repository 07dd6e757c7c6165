"""``facets relations`` and ``facets entail``."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from facets_client.cli.inputs import ModelOption, pairs_from, texts_from
from facets_client.cli.output import print_json, stdout
from facets_client.cli.relations.output import (
    print_entailments,
    print_pairs,
    print_pattern_scores,
    print_relations,
    print_tails,
)
from facets_client.cli.settings import Settings, settings_of
from facets_client.core.source import InputError
from facets_client.relations.convert import EntitySource, Spans

_SPAN_FORM = "START:END"

RelationOption = Annotated[
    list[str] | None, typer.Option("--relation", "-r", help="Only this relation; repeat for more.")
]

TopKOption = Annotated[int | None, typer.Option(help="Relations of a pair, accepted or not; tails of a slot.", min=1)]
MostOption = Annotated[
    int | None, typer.Option("--most", help="Relations of two entities, both directions; default 1.", min=1)
]
EvidenceOption = Annotated[
    bool, typer.Option("--evidence", help="Show what speaks for each: nearest training patterns, facets that met.")
]


def relations(
    context: typer.Context,
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", show_default=False)] = None,
    file: Annotated[str | None, typer.Option("--file", "-f", help="One text a line; - reads standard input.")] = None,
    entity: Annotated[list[str] | None, typer.Option("--entity", "-e", help="Name of an entity; repeat.")] = None,
    gazetteer: Annotated[Path | None, typer.Option(help="Names of entities, one a line (UTF-8).")] = None,
    span: Annotated[
        list[str] | None,
        typer.Option(metavar=_SPAN_FORM, help="An entity's characters in the one text; repeat."),
    ] = None,
    ner: Annotated[bool, typer.Option("--ner", help="Entities by the server's named entity recognizer.")] = False,
    relation: RelationOption = None,
    head: Annotated[str | None, typer.Option(help="Fill a slot: who is tail of HEAD in the one --relation?")] = None,
    pattern: Annotated[
        list[str] | None, typer.Option("--pattern", "-p", help="Score this sentence pattern instead; repeat.")
    ] = None,
    top_k: TopKOption = None,
    most: MostOption = None,
    unrelated: Annotated[bool, typer.Option("--unrelated", help="Also show pairs without a relation.")] = False,
    evidence: EvidenceOption = False,
    list_all: Annotated[bool, typer.Option("--list", help="List the relations, each with an example.")] = False,
    add: Annotated[str | None, typer.Option(metavar="NAME", help="Add a relation by each --pattern.")] = None,
    threshold: Annotated[float | None, typer.Option(help="With --add: least score, -1 to 1.")] = None,
    delete: Annotated[str | None, typer.Option(metavar="NAME", help="Take an added relation away.")] = None,
    model: ModelOption = "",
) -> None:
    """Find relations between entities in texts, fill slots, score sentence patterns, keep relations.

    Entities are found by the server unless they are given. A question, a negation or a quotation asserts nothing.
    A pattern is what stands between two entities, with $ARG1 and $ARG2 in their places: put it in single quotes.
    Spans count characters from 0; the end is one past the last. With --json: one object a line.

    \b
    Examples:
      facets relations "Marie Curie was born in Warsaw."
      facets relations "Marie Curie was born in Warsaw." -e "Marie Curie" -e Warsaw
      facets relations "Marie Curie was born in Warsaw." --span 0:11 --span 24:30 --evidence
      facets relations --file news.txt --gazetteer names.txt -r birthPlace -r spouse
      facets relations --file news.txt --gazetteer names.txt --head "Marie Curie" -r birthPlace
      facets relations --pattern '$ARG1 was born in $ARG2' --top-k 5
      facets relations --list
      facets relations --add mentor --pattern '$ARG1 was taught by $ARG2' --pattern '$ARG1 , a pupil of $ARG2'
      facets relations --delete mentor
    """
    settings = settings_of(context)
    patterns = pattern or []
    if threshold is not None and add is None:
        raise typer.BadParameter("--threshold belongs to --add NAME")
    chosen = {"--list": list_all, "--add": add is not None, "--delete": delete is not None}
    chosen["--pattern"] = bool(patterns) and add is None
    _check_one_mode(chosen, {"a text": bool(texts) or file is not None, "--head": head is not None})
    answering = _Answering(settings, tuple(relation or ()), top_k, most, unrelated, evidence, model)
    if list_all:
        answering.show_known()
    elif add is not None:
        answering.add(add, patterns, threshold)
    elif delete is not None:
        answering.delete(delete)
    elif patterns:
        answering.score(patterns)
    else:
        found = _reading(list(texts_from(texts, file)), entity, gazetteer, span, ner)
        answering.fill(head, found) if head is not None else answering.extract(found)


def entail(
    context: typer.Context,
    premise: Annotated[str | None, typer.Argument(help="Sentence pattern.", show_default=False)] = None,
    hypothesis: Annotated[str | None, typer.Argument(help="Sentence pattern.", show_default=False)] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="Pairs, tab between them; - reads standard input.")
    ] = None,
    model: ModelOption = "",
) -> None:
    """Say whether one sentence pattern entails another, in both directions.

    A pattern holds $ARG1 and $ARG2 exactly once each: put it in single quotes.

    \b
    Examples:
      facets entail '$ARG1 was assassinated by $ARG2' '$ARG1 was killed by $ARG2'
      facets --json entail --file pairs.tsv
    """
    settings = settings_of(context)
    pairs = pairs_from(premise, hypothesis, file)
    with settings.connect() as client:
        found = client.detect_entailment(pairs, model=model)
    if settings.json:
        for result in found:
            print_json(result)
    else:
        print_entailments(stdout(), found)


def _check_one_mode(chosen: Mapping[str, bool], reading: Mapping[str, bool]) -> None:
    """At most one of the modes, and none of them together with what is to be read."""
    modes = [name for name, given in chosen.items() if given]
    if modes:
        modes += [name for name, given in reading.items() if given]
    if len(modes) > 1:
        raise typer.BadParameter(f"{modes[0]} and {modes[1]} exclude each other, got both")


@dataclass(frozen=True, slots=True)
class _Reading:
    """Texts and where their entities come from."""

    texts: list[str]
    spans: Spans | None
    gazetteer: list[str]
    source: EntitySource


@dataclass(frozen=True, slots=True)
class _Answering:
    """What ``facets relations`` may be asked for, each a method."""

    settings: Settings
    relations: tuple[str, ...]
    top_k: int | None
    most: int | None
    unrelated: bool
    evidence: bool
    model: str

    def extract(self, reading: _Reading) -> None:
        with self.settings.connect() as client:
            found = client.extract_relations(
                reading.texts,
                spans=reading.spans,
                entity_source=reading.source,
                gazetteer=reading.gazetteer,
                relations=self.relations,
                include_unrelated=self.unrelated,
                max_relations_per_pair=self.most,
                top_k=self.top_k,
                evidence=self.evidence,
                model=self.model,
            )
        if not self.settings.json:
            print_pairs(stdout(), reading.texts, found, evidence=self.evidence)
            return
        for text, answer in zip(reading.texts, found, strict=True):
            print_json({"text": text, **asdict(answer)})

    def fill(self, head: str, reading: _Reading) -> None:
        if len(self.relations) != 1:
            raise typer.BadParameter(f"--head expects exactly one --relation, got {len(self.relations)}")
        with self.settings.connect() as client:
            (tails,) = client.fill_slots(
                [(head, self.relations[0])],
                reading.texts,
                spans=reading.spans,
                entity_source=reading.source,
                gazetteer=reading.gazetteer,
                top_k=self.top_k,
                evidence=self.evidence,
                model=self.model,
            )
        if self.settings.json:
            print_json({"head": head, "relation": self.relations[0], "tails": tails})
        else:
            print_tails(stdout(), tails, reading.texts, evidence=self.evidence)

    def score(self, patterns: Sequence[str]) -> None:
        with self.settings.connect() as client:
            scores = client.score_relations(
                patterns, relations=self.relations, top_k=self.top_k, evidence=self.evidence, model=self.model
            )
        if not self.settings.json:
            print_pattern_scores(stdout(), scores, evidence=self.evidence)
            return
        for score in scores:
            print_json(score)

    def show_known(self) -> None:
        with self.settings.connect() as client:
            known = client.list_relations(model=self.model)
        print_json({"relations": known}) if self.settings.json else print_relations(stdout(), known)

    def add(self, name: str, examples: Sequence[str], threshold: float | None) -> None:
        with self.settings.connect() as client:
            added = client.add_relation(name, examples, threshold=threshold, model=self.model)
        print_json(added) if self.settings.json else print_relations(stdout(), [added])

    def delete(self, name: str) -> None:
        with self.settings.connect() as client:
            deleted = client.delete_relation(name, model=self.model)
        print_json(deleted) if self.settings.json else print_relations(stdout(), [deleted])


def _reading(
    texts: list[str],
    entity: list[str] | None,
    gazetteer: Path | None,
    span: list[str] | None,
    ner: bool,
) -> _Reading:
    """Texts with spans, names or another source of entities, as the options say."""
    named = bool(entity) or gazetteer is not None
    if named + bool(span) + ner > 1:
        raise typer.BadParameter("expected entities from --entity and --gazetteer, or --span, or --ner, got several")
    if span:
        if len(texts) != 1:
            raise typer.BadParameter(f"--span expects one text, got {len(texts)}")
        return _Reading(texts, [[_span(text) for text in span]], [], "spans")
    if named:
        return _Reading(texts, None, [*(entity or []), *(_names(gazetteer) if gazetteer else [])], "gazetteer")
    return _Reading(texts, None, [], "ner" if ner else "any")


def _span(text: str) -> tuple[int, int]:
    start, _, end = text.partition(":")
    if not (start.isdecimal() and end.isdecimal()):
        raise typer.BadParameter(f"--span expects {_SPAN_FORM} in characters, got {text!r}")
    return int(start), int(end)


def _names(file: Path) -> list[str]:
    try:
        names = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: expected UTF-8 with one name a line") from error
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    if not names:
        raise InputError(f"{file}: expected at least one name, got none")
    return names

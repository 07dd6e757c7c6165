"""``facets relations`` and ``facets entail``."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from facets_client.cli.failures import ExitCode
from facets_client.cli.options import ModelOption, names_of_file, pairs_from, pairs_with_places, texts_from
from facets_client.cli.output import add_row, clean, count_of, print_json, say, shortened, stdout, table
from facets_client.cli.settings import Settings, ask, settings_of
from facets_client.client import FacetsClient
from facets_client.errors import InvalidArgumentError
from facets_client.generated.types import (
    Entailment,
    EntityMention,
    EntityPair,
    EntitySource,
    PatternScore,
    RankedTail,
    Relation,
    RelationScore,
    TextRelations,
)
from facets_client.relations.messages import Spans

_NO_RELATION = "(no relation)"
_EXAMPLES_SHOWN = 3


def print_pairs(console: Console, texts: Sequence[str], found: Sequence[TextRelations], *, evidence: bool) -> None:
    """Each sentence with its entities marked, and below it a row for each relation."""
    for text, answer in zip(texts, found, strict=True):
        for (start, end), pairs in groupby(answer.pairs, key=lambda pair: (pair.sentence_start, pair.sentence_end)):
            console.print(_marked(text, start, end, answer.entities))
            _print_rows(console, list(pairs), evidence=evidence)
    console.print(Text(_summary(found), style="dim"))


def _marked(text: str, start: int, end: int, entities: Sequence[EntityMention]) -> Text:
    line = Text(clean(text[start:end]))
    for entity in entities:
        if start <= entity.start and entity.end <= end:
            line.stylize("bold underline", entity.start - start, entity.end - start)
    return line


def _print_rows(console: Console, pairs: Sequence[EntityPair], *, evidence: bool) -> None:
    rows = Table.grid(padding=(0, 2), pad_edge=True)
    for pair in pairs:
        pattern = pair.pattern_score
        answers = [(_name(score), score.probability) for score in pattern.relations]
        if not pair.relations:
            answers.append((f"{_NO_RELATION}{_cue(pattern)}", pattern.no_relation_probability))
        for name, probability in answers:
            add_row(rows, "", pair.head.text, name, pair.tail.text, f"{probability:.2f}")
    console.print(rows)
    if evidence:
        for pair in pairs:
            console.print(
                Text(clean(f"  {pair.head.text} / {pair.tail.text}: {pair.pattern_score.pattern}"), style="bold")
            )
            _print_evidence(console, pair.pattern_score)


def _summary(found: Sequence[TextRelations]) -> str:
    """What was counted, and why there may be nothing."""
    num_entities = sum(len(answer.entities) for answer in found)
    num_pairs = sum(answer.num_pairs for answer in found)
    num_unasserted = sum(answer.num_not_asserted for answer in found)
    num_relations = sum(len(pair.relations) for answer in found for pair in answer.pairs)
    relations, pairs = count_of(num_relations, "relation"), count_of(num_pairs, "ordered pair")
    note = f"{relations} in {pairs} of {count_of(num_entities, 'entity', 'entities')}"
    if num_unasserted:
        note += f"; {num_unasserted} not asserted (--unrelated shows them)"
    elif not num_pairs:
        note += ": no sentence has two entities near each other"
    return note


def print_tails(console: Console, tails: Sequence[RankedTail], texts: Sequence[str], *, evidence: bool) -> None:
    """A row for each tail, with its best mention."""
    shown = table(
        "tail", "confidence", "score", "mentions", "text", "best mention", right=("confidence", "score", "text")
    )
    for tail in tails:
        best = tail.mentions[0]
        pair = best.pair
        sentence = texts[best.text][pair.sentence_start : pair.sentence_end]
        name = tail.tail if tail.accepted else f"{tail.tail} (below threshold)"
        place = f"{pair.tail.text} [{pair.tail.start}:{pair.tail.end}]: {shortened(sentence, 70)}"
        add_row(shown, name, f"{tail.probability:.2f}", f"{tail.score:.3f}", len(tail.mentions), best.text + 1, place)
    if tails:
        console.print(shown)
    else:
        console.print(Text("no entity stands in a sentence with the head", style="dim"))
    if evidence:
        for tail in tails:
            console.print(Text(clean(f"{tail.tail}: {tail.mentions[0].pair.pattern_score.pattern}"), style="bold"))
            _print_evidence(console, tail.mentions[0].pair.pattern_score)


def print_pattern_scores(console: Console, scores: Sequence[PatternScore], *, evidence: bool) -> None:
    """A table for each pattern."""
    for pattern in scores:
        title = f"{pattern.pattern}{'' if pattern.known else ', not seen in training'}{_cue(pattern)}"
        console.print(Text(clean(title), style="bold"))
        shown = table("relation", "confidence", "score", "look-up", right=("confidence", "score", "look-up"))
        for score in pattern.relations:
            looked_up = "" if score.universal_schema_score is None else f"{score.universal_schema_score:.3f}"
            add_row(shown, _name(score), f"{score.probability:.2f}", f"{score.score:.3f}", looked_up)
        add_row(shown, _NO_RELATION, f"{pattern.no_relation_probability:.2f}", "", "")
        console.print(shown)
        if evidence:
            _print_evidence(console, pattern)


def print_entailments(console: Console, found: Sequence[Entailment]) -> None:
    """A row for each pair."""
    numbers = ("confidence", "forward", "backward")
    shown = table("label", *numbers, "premise", "hypothesis", "why", right=numbers)
    shown.columns[0].no_wrap = True
    for result in found:
        label = result.label.replace("_", " ") + (" (one is negated)" if result.negation_differs else "")
        shares = (f"{share:.2f}" for share in (result.confidence, result.forward_score, result.backward_score))
        add_row(shown, label, *shares, result.premise, result.hypothesis, result.reason or "by likeness")
    console.print(shown)


def print_relations(console: Console, relations: Sequence[Relation]) -> None:
    """A row for each relation."""
    shown = table("relation", "of", "example", "pairs", "threshold", right=("pairs", "threshold"))
    shown.columns[0].no_wrap = True
    for relation in relations:
        example = relation.example or " | ".join(relation.examples[:_EXAMPLES_SHOWN])
        more = len(relation.examples) - _EXAMPLES_SHOWN
        example += f" and {more} more" if more > 0 else ""
        name = f"{relation.name} (both ways)" if relation.symmetric else relation.name
        kinds = [" or ".join(kinds) for kinds in (relation.head_types, relation.tail_types)]
        arguments = " -> ".join(kinds) if any(kinds) else ""
        add_row(shown, name, arguments, example, relation.num_pairs, f"{relation.threshold:.3f}")
    console.print(shown)
    if any("[" in relation.example for relation in relations):
        console.print(Text("In an example the head stands in [..], the tail in {..}; pairs: trained on.", style="dim"))


def _print_evidence(console: Console, pattern: PatternScore) -> None:
    for score in pattern.relations:
        if score.similar_patterns:
            near = " | ".join(f"{similar.pattern} ({similar.score:.2f})" for similar in score.similar_patterns)
            console.print(Text(clean(f"  {score.relation} in training: {near}"), style="dim"))
        if score.known_pairs:
            pairs = ", ".join(f"{head} - {tail}" for head, tail in score.known_pairs)
            console.print(Text(clean(f"  {score.relation} of: {pairs}"), style="dim"))
        if score.meeting is not None:
            met = score.meeting
            line = f"  {score.relation}: facet {met.pattern_facet} met its facet {met.relation_facet}"
            console.print(Text(clean(f"{line}, cosine {met.cosine:.3f}"), style="dim"))
    for facet in pattern.facets:
        near = ", ".join(f"{near.relation} ({near.cosine:.2f})" for near in facet.relations)
        console.print(Text(clean(f"  facet {facet.facet} is near {near}"), style="dim"))


def _name(score: RelationScore) -> str:
    return score.relation if score.accepted else f"{score.relation} (below threshold)"


def _cue(pattern: PatternScore) -> str:
    return f", {pattern.assertion} by {pattern.assertion_cue!r}" if pattern.assertion_cue else ""


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
    gazetteer: Annotated[str | None, typer.Option(help="Names of entities, one a line (UTF-8).")] = None,
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
    show = partial(print_relations, stdout())
    answering = _Answering(settings, tuple(relation or ()), top_k, most, unrelated, evidence, model)
    if list_all:
        ask(context, lambda client: {"relations": client.list_relations(model=model)}, lambda known: show(**known))
    elif add is not None:
        asked = partial(FacetsClient.add_relation, name=add, examples=patterns, threshold=threshold, model=model)
        ask(context, asked, lambda added: show([added]))
    elif delete is not None:
        ask(context, lambda client: client.delete_relation(delete, model=model), lambda deleted: show([deleted]))
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

    A pattern holds $ARG1 and $ARG2 exactly once each: put it in single quotes. A bad line of a file is
    named, with what is wrong, and the others are answered; the exit code is then 1.

    \b
    Examples:
      facets entail '$ARG1 was assassinated by $ARG2' '$ARG1 was killed by $ARG2'
      facets --json entail --file pairs.tsv
    """
    settings = settings_of(context)
    problems: list[str] = []
    with settings.connect() as client:
        if file is None:
            found = client.detect_entailment(pairs_from(premise, hypothesis, file), model=model)
        elif premise is not None:
            raise typer.BadParameter("expected two texts or --file FILE, got both")
        else:
            found = _entailed_lines(client, file, problems, model=model)
    for problem in problems:
        say(problem)
    if settings.json:
        for result in found:
            print_json(result)
    elif found:
        print_entailments(stdout(), found)
    if problems:
        settings.note(f"{count_of(len(problems), 'line was', 'lines were')} left out, {len(found)} answered")
        raise typer.Exit(ExitCode.REJECTED)


_ARGUMENT = re.compile(r"(\$ARG[12])(?![A-Za-z0-9])")
_PLACE_OF_PAIR = re.compile(r"pairs\[(\d+)\]")


def _entailed_lines(client: FacetsClient, file: str, problems: list[str], *, model: str) -> list[Entailment]:
    """Answers of the good lines, in their order; what is wrong with the others is added to the problems."""
    lines = []
    for where, pair in pairs_with_places(file, problems):
        if problem := _problem_of(pair):
            problems.append(f"{where}: {problem}")
        else:
            lines.append((where, pair))
    while lines:
        try:
            return client.detect_entailment([pair for _, pair in lines], model=model)
        except InvalidArgumentError as error:
            # What only the server knows, as its longest text: without these pairs, once more.
            places = [_PLACE_OF_PAIR.match(violation.field) for violation in error.field_violations]
            wrong = {
                int(place[1]): v.description for place, v in zip(places, error.field_violations, strict=True) if place
            }
            if not wrong:
                raise
            problems += [f"{lines[place][0]}: {why}" for place, why in wrong.items()]
            lines = [line for place, line in enumerate(lines) if place not in wrong]
    return []


def _problem_of(pair: tuple[str, str]) -> str:
    for side, pattern in zip(("premise", "hypothesis"), pair, strict=True):
        arguments = _ARGUMENT.findall(pattern)
        if sorted(arguments) != ["$ARG1", "$ARG2"]:
            return f"expected $ARG1 and $ARG2 once each in the {side}, got {shortened(pattern, 80)!r}"
    return ""


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


def _reading(
    texts: list[str],
    entity: list[str] | None,
    gazetteer: str | None,
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
        return _Reading(texts, None, [*(entity or []), *(names_of_file(gazetteer) if gazetteer else [])], "gazetteer")
    return _Reading(texts, None, [], "ner" if ner else "any")


def _span(text: str) -> tuple[int, int]:
    start, _, end = text.partition(":")
    if not (start.isdecimal() and end.isdecimal()):
        raise typer.BadParameter(f"--span expects {_SPAN_FORM} in characters, got {text!r}")
    return int(start), int(end)


COMMANDS = {"relations": relations, "entail": entail}

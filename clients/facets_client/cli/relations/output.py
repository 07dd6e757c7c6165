"""Relations as tables for people."""

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from facets_client.cli.output import add_row, clean, shortened, table
from facets_client.relations.results import (
    Entailment,
    EntityMention,
    EntityPair,
    PatternScore,
    RankedTail,
    Relation,
    RelationScore,
    TextRelations,
)

_NO_RELATION = "(no relation)"
_EXAMPLES_SHOWN = 3


def print_pairs(console: Console, texts: Sequence[str], found: Sequence[TextRelations], *, evidence: bool) -> None:
    """Each sentence with its entities marked, and below it a row for each relation.

    Args:
        console: Where to print.
        texts: What was read.
        found: What was found in each.
        evidence: Also say what speaks for each relation.
    """
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
        answers = [(_name(score), score.probability) for score in pair.pattern_score.relations]
        if not pair.relations:
            answers.append((_no_relation(pair.pattern_score), pair.pattern_score.no_relation_probability))
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
    relations, pairs = _count(num_relations, "relation"), _count(num_pairs, "ordered pair")
    note = f"{relations} in {pairs} of {_count(num_entities, 'entity')}"
    if num_unasserted:
        note += f"; {num_unasserted} not asserted (--unrelated shows them)"
    elif not num_pairs:
        note += ": no sentence has two entities near each other"
    return note


def _count(number: int, thing: str) -> str:
    many = thing[:-1] + "ies" if thing.endswith("y") else thing + "s"
    return f"{number} {thing if number == 1 else many}"


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
        place = f"{_mention(pair.tail)}: {shortened(sentence, 70)}"
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
    shown = table(
        "label",
        "confidence",
        "forward",
        "backward",
        "premise",
        "hypothesis",
        right=("confidence", "forward", "backward"),
    )
    for result in found:
        label = result.label.replace("_", " ") + (" (one is negated)" if result.negation_differs else "")
        add_row(
            shown,
            label,
            f"{result.confidence:.2f}",
            f"{result.forward_score:.3f}",
            f"{result.backward_score:.3f}",
            result.premise,
            result.hypothesis,
        )
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


def _mention(mention: EntityMention) -> str:
    return f"{mention.text} [{mention.start}:{mention.end}]"


def _name(score: RelationScore) -> str:
    return score.relation if score.accepted else f"{score.relation} (below threshold)"


def _no_relation(pattern: PatternScore) -> str:
    return f"{_NO_RELATION}{_cue(pattern)}"


def _cue(pattern: PatternScore) -> str:
    return f", {pattern.assertion} by {pattern.assertion_cue!r}" if pattern.assertion_cue else ""

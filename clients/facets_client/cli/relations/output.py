"""Relations as tables for people."""

from collections.abc import Sequence

from rich.console import Console
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


def print_pairs(console: Console, texts: Sequence[TextRelations], *, evidence: bool) -> None:
    """A row for each relation of each pair."""
    shown = table("text", "head", "relation", "tail", "confidence", "score", right=("text", "confidence", "score"))
    explained: list[EntityPair] = []
    num_pairs = num_accepted = 0
    for number, text in enumerate(texts, start=1):
        num_pairs += text.num_pairs
        for pair in text.pairs:
            explained.append(pair)
            num_accepted += len(pair.relations)
            head, tail = _mention(pair.head), _mention(pair.tail)
            for score in pair.pattern_score.relations:
                add_row(shown, number, head, _name(score), tail, f"{score.probability:.2f}", f"{score.score:.3f}")
            if not pair.relations:
                sure = f"{pair.pattern_score.no_relation_probability:.2f}"
                add_row(shown, number, head, _no_relation(pair.pattern_score), tail, sure, "")
    if shown.row_count:
        console.print(shown)
    note = f"{num_accepted} relations in {num_pairs} ordered pairs of entities"
    if not num_pairs:
        note += ": no sentence has two entities near each other"
    console.print(Text(note, style="dim"))
    if evidence:
        for pair in explained:
            console.print(
                Text(clean(f"{pair.head.text} / {pair.tail.text}: {pair.pattern_score.pattern}"), style="bold")
            )
            _print_evidence(console, pair.pattern_score)


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
        cue = f", negated by {pattern.negation_cue!r}" if pattern.negation_cue else ""
        title = f"{pattern.pattern}{'' if pattern.known else ', not seen in training'}{cue}"
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
    shown = table("relation", "threshold", "trained pairs", "added by", right=("threshold", "trained pairs"))
    for relation in relations:
        examples = " | ".join(relation.examples[:_EXAMPLES_SHOWN])
        more = len(relation.examples) - _EXAMPLES_SHOWN
        examples += f" and {more} more" if more > 0 else ""
        add_row(shown, relation.name, f"{relation.threshold:.3f}", relation.num_pairs, examples)
    console.print(shown)


def _print_evidence(console: Console, pattern: PatternScore) -> None:
    for score in pattern.relations:
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
    return f"{_NO_RELATION}, negated by {pattern.negation_cue!r}" if pattern.negation_cue else _NO_RELATION

"""Judged pairs of plain patterns.

``entailment_pairs.tsv``, ``_dev`` and ``_drawn`` were read while the table of relations was written; ``_held`` were
answered once, at the end, and nothing was changed after that. ``_fresh`` and ``_fresh_second`` were written by another
hand; each was answered before the table learned from it. Contradictions were ``N`` before there was a label for them.
"""

from pathlib import Path

import pytest

from facets.relations.engine import RelationEngine
from facets.relations.entailment import Entailment, EntailmentLabel

ANSWERS = Path(__file__).parents[3] / "answers"
LABELS = {
    ">": EntailmentLabel.ENTAILS,
    "<": EntailmentLabel.ENTAILED_BY,
    ":": EntailmentLabel.PARAPHRASE,
    "N": EntailmentLabel.NEUTRAL,
    "!": EntailmentLabel.CONTRADICTS,
}
MIRRORED = {EntailmentLabel.ENTAILS: EntailmentLabel.ENTAILED_BY, EntailmentLabel.ENTAILED_BY: EntailmentLabel.ENTAILS}
pytestmark = pytest.mark.slow


def rows_of(name: str) -> list[tuple[EntailmentLabel, str, str]]:
    lines = (ANSWERS / name).read_text(encoding="utf-8").splitlines()
    return [(LABELS[row[0]], row[1], row[2]) for row in (line.split("\t") for line in lines)]


def answers_of(engine: RelationEngine, name: str) -> list[Entailment]:
    _, premises, hypotheses = zip(*rows_of(name), strict=True)
    return engine.entailment(premises, hypotheses)


@pytest.mark.parametrize(
    ("name", "least_right"),
    [
        ("entailment_pairs.tsv", 29),
        ("entailment_pairs_dev.tsv", 29),
        ("entailment_pairs_drawn.tsv", 25),
        ("entailment_pairs_held.tsv", 27),
        ("entailment_pairs_fresh.tsv", 29),
        ("entailment_pairs_fresh_second.tsv", 26),
    ],
)
def test_plain_pairs_are_answered_rightly_in_both_orders(shipped: RelationEngine, name: str, least_right: int) -> None:
    rows, results = rows_of(name), answers_of(shipped, name)
    wrong = [(row, own.label) for row, own in zip(rows, results, strict=True) if own.label != row[0]]
    assert len(rows) - len(wrong) >= least_right, wrong
    _, premises, hypotheses = zip(*rows, strict=True)
    exchanged = shipped.entailment(hypotheses, premises)
    assert [own.label for own in exchanged] == [MIRRORED.get(own.label, own.label) for own in results]

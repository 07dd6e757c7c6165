"""Thirty plain pairs that were written before any model answered them; nothing is tuned to them."""

from pathlib import Path

import pytest

from facets.relations.engine import RelationEngine
from facets.relations.entailment import EntailmentLabel

PAIRS = Path(__file__).parents[3] / "answers" / "entailment_pairs.tsv"
LABELS = {
    ">": EntailmentLabel.ENTAILS,
    "<": EntailmentLabel.ENTAILED_BY,
    ":": EntailmentLabel.PARAPHRASE,
    "N": EntailmentLabel.NEUTRAL,
}
LEAST_RIGHT = 20


@pytest.mark.slow
def test_the_shipped_model_answers_plain_pairs() -> None:
    rows = [line.split("\t") for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    results = RelationEngine.load().entailment([row[1] for row in rows], [row[2] for row in rows])
    wrong = [row for row, result in zip(rows, results, strict=True) if result.label != LABELS[row[0]]]
    assert len(rows) - len(wrong) >= LEAST_RIGHT, wrong
    assert results[0].label == EntailmentLabel.ENTAILS  # was assassinated by, was killed by

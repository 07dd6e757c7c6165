"""Summaries of texts as people have them, judged by rules: what each rule sees, and how many summaries are good."""

from pathlib import Path

import pytest
from facets_lab.texts.judged import RULES, FacetPicker, JudgedText, Picked, evaluate_judged, judge, read_judged
from facets_lab.texts.systems import load_text_model

from facets.errors import InvalidInputError

ANSWERS = Path(__file__).resolve().parents[3] / "answers"
CASE = JudgedText(
    kind="mail",
    name="pump",
    text="Hi Tom,\n\nThe pump leaks at the seal. It came late. A new pump costs 80 euros.\n\n- seal\n\nCheers\nAna\n",
    subject="pump",
    key_facts=("leaks", "80 euros"),
    num_key_facts=1,
    never=("Cheers",),
    has_prose=True,
)


@pytest.mark.parametrize(
    ("sentences", "broken"),
    [
        (("The pump leaks at the seal.", "It came late."), set()),
        (("The pump leaks at the seal.",), set()),
        (("It came late.",), {"names_subject", "resolved", "key_facts"}),
        (("The pump leaks at the seal.", "- seal"), {"whole", "no_markup"}),
        (("The pump leaks at the seal.", "Cheers"), {"whole", "nothing_else"}),
        (("pump leaks at the seal.",), {"whole"}),
    ],
)
def test_rule_sees_what_is_wrong(sentences: tuple[str, ...], broken: set[str]) -> None:
    assert {rule for rule, holds in judge(Picked(sentences), CASE).items() if not holds} == broken


def test_dishonest_summary_is_bad() -> None:
    assert not judge(Picked(("The pump leaks at the seal.",), has_prose=False), CASE)["honest"]


def test_every_rule_is_judged() -> None:
    assert tuple(judge(Picked(("The pump leaks at the seal.",)), CASE)) == RULES


def test_other_fields_are_named_by_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"kind": "mail"}\n')
    with pytest.raises(InvalidInputError, match=r"bad\.jsonl, line 1: expected a field name"):
        read_judged(file)


# Good ones of 20, seen while summaries were made better, and of three times 10, written before: as measured, less one.
@pytest.mark.parametrize(
    ("file", "at_least"),
    [
        ("summary_texts.jsonl", 16),
        ("summary_texts_unseen.jsonl", 5),
        ("summary_texts_fresh.jsonl", 7),
        ("summary_texts_fresh_second.jsonl", 7),
    ],
)
def test_summaries_are_good(file: str, at_least: int) -> None:
    model = load_text_model(None)
    metrics = evaluate_judged(FacetPicker(model.name, model), read_judged(ANSWERS / file))["rules"]
    assert metrics["good"] is not None
    assert metrics["good"] >= at_least, metrics

"""What a sentence does with a statement: asserts, denies, asks, supposes, or says that others say so."""

from pathlib import Path

import pytest

from facets.relations.assertion import AssertionStatus, assertion_of

ANSWERS = Path(__file__).parents[3] / "answers"


def status(sentence: str, *, quoted: bool = False) -> AssertionStatus:
    """Of the pattern between the two arguments of a tokenized sentence."""
    tokens = sentence.split()
    places = [place for place, token in enumerate(tokens) if token in ("$ARG1", "$ARG2")]
    first, last = places
    before, after = tokens[:first], tokens[last + 1 :]
    return assertion_of(tokens[first : last + 1], before=before, after=after, quoted=quoted).status


@pytest.mark.parametrize("row", (ANSWERS / "assertions.tsv").read_text(encoding="utf-8").splitlines())
def test_status_follows_the_cues_and_their_scope(row: str) -> None:
    expected, sentence = row.split("\t")
    assert status(sentence) == AssertionStatus(expected)


def test_a_quotation_is_attributed() -> None:
    assert status("$ARG1 married $ARG2 .", quoted=True) is AssertionStatus.ATTRIBUTED
    assert status("$ARG1 married $ARG2 .") is AssertionStatus.ASSERTED


def test_a_pattern_that_goes_on_behind_its_last_argument_is_read_to_its_end() -> None:
    assert assertion_of("$ARG1 and $ARG2 are not married".split()).status is AssertionStatus.NEGATED
    assert assertion_of("$ARG1 and $ARG2 might marry".split()).status is AssertionStatus.HYPOTHETICAL

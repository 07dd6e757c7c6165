"""What a sentence does with a statement: asserts, denies, asks, supposes, or says that others say so."""

import pytest

from facets.relations.assertion import AssertionStatus, assertion_of

ASSERTED, NEGATED = AssertionStatus.ASSERTED, AssertionStatus.NEGATED
QUESTIONED, HYPOTHETICAL = AssertionStatus.QUESTIONED, AssertionStatus.HYPOTHETICAL
ATTRIBUTED = AssertionStatus.ATTRIBUTED


def status(sentence: str, *, quoted: bool = False) -> AssertionStatus:
    """Of the pattern between the two arguments of a tokenized sentence."""
    tokens = sentence.split()
    places = [place for place, token in enumerate(tokens) if token in ("$ARG1", "$ARG2")]
    first, last = places
    before, after = tokens[:first], tokens[last + 1 :]
    return assertion_of(tokens[first : last + 1], before=before, after=after, quoted=quoted).status


@pytest.mark.parametrize(
    ("expected", "sentence"),
    [
        (ASSERTED, "$ARG1 was born in $ARG2 ."),
        (ASSERTED, "the capital of $ARG1 is $ARG2 ."),
        (ASSERTED, "$ARG1 died in may 1990 in $ARG2 ."),
        (ASSERTED, "$ARG1 would later marry $ARG2 ."),
        (ASSERTED, "$ARG1 left los angeles ca for $ARG2 ."),
        (ASSERTED, "it was confirmed that $ARG1 married $ARG2 ."),
        (ASSERTED, "if he came , she left , and $ARG1 married $ARG2 ."),
        (ASSERTED, "$ARG1 , born in $ARG2 , said nothing ."),
        (ASSERTED, "$ARG1 , who might come , was born in $ARG2 ."),
        (NEGATED, "$ARG1 was not born in $ARG2 ."),
        (NEGATED, "$ARG1 never married $ARG2 ."),
        (QUESTIONED, "was $ARG1 born in $ARG2 ?"),
        (QUESTIONED, "was $ARG1 born in $ARG2"),
        (QUESTIONED, 'he asked : " did $ARG1 marry $ARG2 ? "'),
        (QUESTIONED, "when did $ARG1 marry $ARG2"),
        (HYPOTHETICAL, "if $ARG1 had died in $ARG2 , it would be known ."),
        (HYPOTHETICAL, "had $ARG1 directed $ARG2 , all would be lost ."),
        (HYPOTHETICAL, "$ARG1 might marry $ARG2 ."),
        (HYPOTHETICAL, "$ARG1 will marry $ARG2 in june ."),
        (HYPOTHETICAL, "$ARG1 'll marry $ARG2 ."),
        (HYPOTHETICAL, "$ARG1 \u2019ll marry $ARG2 ."),
        (HYPOTHETICAL, "$ARG1 ought to marry $ARG2 ."),
        (HYPOTHETICAL, "$ARG1 plans to marry $ARG2 ."),
        (HYPOTHETICAL, "perhaps $ARG1 married $ARG2 ."),
        (HYPOTHETICAL, "nobody knows whether $ARG1 married $ARG2 ."),
        (HYPOTHETICAL, "it is possible that $ARG1 married $ARG2 ."),
        (ATTRIBUTED, "$ENT said that $ARG1 married $ARG2 ."),
        (ATTRIBUTED, "$ENT believes $ARG1 was born in $ARG2 ."),
        (ATTRIBUTED, "$ARG1 reportedly married $ARG2 ."),
        (ATTRIBUTED, "$ARG1 is said to be born in $ARG2 ."),
        (ATTRIBUTED, "rumors that $ARG1 works for $ARG2 are false ."),
        (ATTRIBUTED, "according to $ENT , $ARG1 married $ARG2 ."),
        (ATTRIBUTED, "$ARG1 married $ARG2 , according to $ENT ."),
        (ATTRIBUTED, '" $ARG1 married $ARG2 , " claimed $ENT .'),
        (ATTRIBUTED, "$ARG1 was born in $ARG2 , historians say ."),
    ],
)
def test_status_follows_the_cues_and_their_scope(expected: AssertionStatus, sentence: str) -> None:
    assert status(sentence) is expected


def test_a_quotation_is_attributed() -> None:
    assert status("$ARG1 married $ARG2 .", quoted=True) is ATTRIBUTED
    assert status("$ARG1 married $ARG2 .") is ASSERTED


def test_a_pattern_that_goes_on_behind_its_last_argument_is_read_to_its_end() -> None:
    assert assertion_of("$ARG1 and $ARG2 are not married".split()).status is NEGATED
    assert assertion_of("$ARG1 and $ARG2 might marry".split()).status is HYPOTHETICAL

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facets.errors import InvalidInputError, NotFoundError
from facets.language.sentences import sentences_of
from facets.language.tokenizer import Tokenizer
from facets.relations.assertion import AssertionStatus, assertion_of, negation_cue
from facets.relations.entities import EntitySpan
from facets.relations.patterns import mirrored, sentence_groups, sentence_patterns, tokenize_patterns
from facets.relations.recognizer import SpacyEntities

TOKENIZER = Tokenizer()


def spans_of(text: str, *names: str) -> list[EntitySpan]:
    return sorted(EntitySpan(text.index(name), text.index(name) + len(name)) for name in names)


@pytest.mark.parametrize("pattern", ["$ARG1 met him", "he met $ARG2", "$ARG1 met $ARG1 and $ARG2", "", "$ARG12 $ARG2"])
def test_a_pattern_needs_each_argument_once(pattern: str) -> None:
    with pytest.raises(InvalidInputError, match="exactly once") as caught:
        tokenize_patterns(["$ARG1 met $ARG2", pattern], TOKENIZER)
    assert caught.value.field == "patterns[1]"


def test_every_pair_has_both_directions_and_entities_between_become_placeholders() -> None:
    found = {(p.head, p.tail): " ".join(p.tokens) for p in sentence_patterns([["met"], ["and"]])}
    assert found == {
        (0, 1): "$ARG1 met $ARG2",
        (1, 0): "$ARG2 met $ARG1",
        (1, 2): "$ARG1 and $ARG2",
        (2, 1): "$ARG2 and $ARG1",
        (0, 2): "$ARG1 met $ENT and $ARG2",
        (2, 0): "$ARG2 met $ENT and $ARG1",
    }


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=9), min_size=1, max_size=12))
def test_limits_hold(gaps: list[list[str]]) -> None:
    found = sentence_patterns(gaps)
    assert len(sentence_patterns([["met"]] * 300)) == 400
    assert all(abs(p.tokens.index("$ARG2") - p.tokens.index("$ARG1")) <= 13 for p in found)
    assert all(p.tokens.count("$ENT") <= 2 for p in found)


@pytest.mark.parametrize(
    ("before", "between", "after", "expected"),
    [
        ("the capital of", "is", ".", "the capital of $ARG1 is $ARG2"),
        ("in 1990 , the director of", "was", "", "the director of $ARG1 was $ARG2"),
        ("he lives in", ",", ".", "$ARG1 , $ARG2"),
        ("", "and", "are married .", "$ARG1 and $ARG2 are married"),
        ("", "was born in", "in 1990", "$ARG1 was born in $ARG2"),
        ("it", "is", "", "$ARG1 is $ARG2"),
        ("", ",", "'s capital , is large", "$ARG1 , $ARG2 's capital"),
        ("", "is", "'s capital .", "$ARG1 is $ARG2 's capital"),
    ],
)
def test_patterns_that_say_nothing_are_widened(before: str, between: str, after: str, expected: str) -> None:
    words = [part.split() for part in (before, between, after)]
    found = sentence_patterns([words[1]], before=words[0], after=words[2])
    assert [" ".join(p.tokens) for p in found] == [expected, " ".join(mirrored(expected.split()))]


def test_words_about_the_next_entity_do_not_widen_a_pattern() -> None:
    def first(after: str) -> str:
        return " ".join(sentence_patterns([["and"], after.split()])[0].tokens)

    assert first("border") == "$ARG1 and $ARG2"
    assert first("were married in") == "$ARG1 and $ARG2 were married in"


def test_a_sentence_border_inside_an_entity_is_ignored() -> None:
    text = "He wrote Who is it? No one. with Bob."
    groups = list(sentence_groups(sentences_of(text), spans_of(text, "He", "Who is it? No one.", "Bob")))
    assert [members for _, members in groups] == [[0, 1, 2]]


def test_an_unknown_pipeline_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="no spaCy pipeline 'en_core_nothing'") as caught:
        SpacyEntities("en_core_nothing")
    assert caught.value.resource_type == "pipeline"


@pytest.mark.parametrize(
    ("pattern", "cue"),
    [
        ("$ARG1 is not married to $ARG2", "not"),
        ("$ARG1 never lived in $ARG2", "never"),
        ("$ARG1 did n't found $ARG2", "n't"),
        ("$ARG1 without $ARG2", "without"),
        ("$ARG1 is no longer part of $ARG2", "no"),
        ("$ARG1 failed to win $ARG2", "failed"),
        ("$ARG1 is neither in $ENT nor in $ARG2", "neither"),
        ("$ARG1 is married to $ARG2", ""),
        ("$ARG1 , not a singer , was born in $ARG2", ""),
        ("$ARG1 not only visited $ARG2", ""),
        ("$ARG1 is not without $ARG2", ""),
        ("$ARG1 , who did not sing , but played in $ARG2", ""),
        ("it is not true that $ARG1 married $ARG2", "not"),
        ("he denied that $ARG1 married $ARG2", "denied"),
        ("neither $ARG1 married $ARG2", "neither"),
        ("he said that $ARG1 married $ARG2", ""),
    ],
)
def test_negation_by_cue_and_scope(pattern: str, cue: str) -> None:
    before, _, rest = pattern.partition("$ARG1")
    assert negation_cue(f"$ARG1{rest}".split(), before=before.split()) == cue


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

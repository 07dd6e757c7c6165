"""Which mentions are pairs, and what is asserted of them."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from leaving import looks_until_gone

from facets.relations import EntitySpan, EntityType, Gazetteer, RelationEngine
from facets.relations.assertion import AssertionStatus
from facets.relations.extraction import best_of_pairs, head_spans

NAMES = Gazetteer(["Ann", "Ann Lee", "Bob", "Paris", "London", "Acme"])


def spans_of(text: str, *names: tuple[str, EntityType]) -> list[EntitySpan]:
    return [EntitySpan(text.index(name), text.index(name) + len(name), kind) for name, kind in names]


def pairs_of(engine: RelationEngine, text: str, spans: list[EntitySpan] | None = None):
    [pairs] = engine.extract([text], spans=NAMES.find([text]) if spans is None else [spans])
    return pairs


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Was Ann born in Paris?", AssertionStatus.QUESTIONED),
        ("If Ann was born in Paris, she knows.", AssertionStatus.HYPOTHETICAL),
        ('"Ann was born in Paris," said Bob.', AssertionStatus.ATTRIBUTED),
        ("Ann was not born in Paris.", AssertionStatus.NEGATED),
        ("Ann might be born in Paris.", AssertionStatus.HYPOTHETICAL),
    ],
)
def test_what_is_not_asserted_is_not_accepted(engine: RelationEngine, text: str, status: AssertionStatus) -> None:
    pairs = [pair for pair in pairs_of(engine, text) if {pair.head.text, pair.tail.text} == {"Ann", "Paris"}]
    assert pairs and all(pair.relations == () and pair.pattern_score.assertion is status for pair in pairs)
    assert all(score.probability == 0.0 for pair in pairs for score in pair.pattern_score.relations)


def test_mentions_of_one_entity_are_not_paired(engine: RelationEngine) -> None:
    text = "Ann met Ann Lee, Lee and Paris in paris."
    kinds = [("Ann Lee", EntityType.PERSON), ("Lee and", EntityType.UNKNOWN)]
    lee = EntitySpan(text.index("Lee and"), text.index("Lee and") + 3)
    spans = [*spans_of(text, kinds[0]), lee]
    assert pairs_of(engine, text, spans) == []
    named_after = spans_of("Ann Lee owns Lee.", ("Ann Lee", EntityType.PERSON))
    assert pairs_of(engine, "Ann Lee owns Lee.", [*named_after, EntitySpan(13, 16, EntityType.ORGANIZATION)])
    twice = [EntitySpan(text.index("Paris"), text.index("Paris") + 5), EntitySpan(len(text) - 6, len(text) - 1)]
    assert pairs_of(engine, text, twice) == []


def test_dates_and_numbers_are_tails_only(engine: RelationEngine) -> None:
    text = "Ann was born in 1990 among 12."
    kinds = [("Ann", EntityType.PERSON), ("1990", EntityType.DATE), ("12", EntityType.NUMBER)]
    pairs = pairs_of(engine, text, spans_of(text, *kinds))
    assert [(p.head.text, p.tail.text, p.tail.type) for p in pairs] == [
        ("Ann", "1990", EntityType.DATE),
        ("Ann", "12", EntityType.NUMBER),
    ]


def test_entities_of_different_clauses_are_not_paired(engine: RelationEngine) -> None:
    text = "Ann left and Bob was born in Paris."
    second = frozenset([5])
    spans = [EntitySpan(0, 3, clauses=frozenset([0])), EntitySpan(13, 16, clauses=second), EntitySpan(29, 34)]
    found = {frozenset((p.head.text, p.tail.text)) for p in pairs_of(engine, text, spans)}
    assert found == {frozenset(("Bob", "Paris")), frozenset(("Ann", "Paris"))}
    spans[2] = EntitySpan(29, 34, clauses=second)
    assert {p.head.text for p in pairs_of(engine, text, spans)} == {"Bob", "Paris"}


def test_pairs_of_two_hundred_entities_are_limited(engine: RelationEngine) -> None:
    names = [f"Name{number}" for number in range(200)]
    pairs = pairs_of(engine, " met ".join(names) + ".", [])
    assert pairs == []
    text = " met ".join(names) + "."
    found = Gazetteer(names).find([text])
    [pairs] = engine.extract([text], spans=found, top_k=1, evidence=False)
    assert len(pairs) == 400  # 200 pairs, the closest ones, both ways round


def test_extraction_can_be_interrupted_anywhere(engine: RelationEngine) -> None:
    """Reading texts, pairing entities, encoding patterns and making results all check for interruption."""
    text = "Ann met Bob. Bob met Paris. Acme met London."
    extract = partial(engine.extract, [text], spans=NAMES.find([text]))
    extract()  # what is read once, and kept, looks too
    num_looks = looks_until_gone(10**9, extract)
    assert num_looks > 6
    for number in range(num_looks):
        assert looks_until_gone(number, extract) == number + 1


def test_mentions_of_the_head_replace_overlapping_spans() -> None:
    text = "Ann Lee met ann; Bob Ann met Joanne."
    spans = [EntitySpan(0, 7), EntitySpan(12, 15), EntitySpan(17, 24), EntitySpan(29, 35)]
    found = head_spans(text, spans, "Ann")
    assert [text[span.start : span.end] for span in found] == ["Ann", "ann", "Ann", "Joanne"]


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([0.25, 0.5, 1.0])), min_size=12, max_size=12), st.integers(1, 4)
)
def test_best_of_pairs_equals_sorting_each_pair(cells: list[tuple[bool, float]], most: int) -> None:
    accepted = np.array([cell[0] for cell in cells]).reshape(4, 3)
    probabilities = np.array([cell[1] for cell in cells], dtype=np.float32).reshape(4, 3)
    partners = np.array([1, 0, 3, 2])
    expected = np.zeros_like(accepted)
    for rows in ([0, 1], [2, 3]):
        candidates = [(-probabilities[m, r], m, r) for m in rows for r in range(3) if accepted[m, r]]
        for _, m, r in sorted(candidates)[:most]:
            expected[m, r] = True
    assert best_of_pairs(accepted, probabilities, partners, max_per_pair=most).tolist() == expected.tolist()


def test_items_of_a_list_are_paired_only_with_a_joint_statement(engine: RelationEngine) -> None:
    assert pairs_of(engine, "Ann and Bob.") == []
    assert {p.head.text for p in pairs_of(engine, "Ann and Bob married.")} == {"Ann", "Bob"}

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cosine_similarity

from facets.errors import InvalidInputError, NotFoundError
from facets.relations.engine import RelationEngine
from facets.relations.entailment import EntailmentLabel
from facets.relations.entities import EntitySpan, Gazetteer
from facets.relations.scoring import asymmetric_score, asymmetric_scores, symmetric_score

NAMES = Gazetteer(["Ann", "Bob", "Paris", "London", "Acme"])


def test_probabilities_fall_and_evidence_names_facets(engine: RelationEngine) -> None:
    [scores] = engine.score(["$ARG1 , born to $ARG2"])
    probabilities = [score.probability for score in scores.relations]
    assert probabilities == sorted(probabilities, reverse=True)
    assert len(scores.facets) == engine.model.num_facets
    meeting = scores.relations[0].meeting
    assert 0 <= meeting.pattern_facet < engine.model.num_facets
    assert 0 <= meeting.relation_facet < engine.model.relations.facets.shape[1]
    nearest = scores.facets[meeting.pattern_facet].relations
    assert any(near.cosine == pytest.approx(meeting.cosine, abs=1e-5) for near in nearest)


@pytest.mark.parametrize(
    ("relations", "error", "message"),
    [
        (["spuose"], NotFoundError, "near names: spouse"),
        (["spouse", "spouse"], InvalidInputError, "twice"),
        ([], InvalidInputError, "at least one"),
        ("spouse", TypeError, "one str"),
    ],
)
def test_bad_candidates_are_reported(
    engine: RelationEngine, relations: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        engine.score(["$ARG1 was born in $ARG2"], relations)


def test_extraction_returns_mentions_and_sentences(engine: RelationEngine) -> None:
    text = "Hello. Ann was born in Paris. Bob works for Acme."
    [pairs] = engine.extract([text], spans=NAMES.find([text]))
    found = {(p.head.text, p.tail.text): [r.score.relation for r in p.relations][:1] for p in pairs}
    assert found[("Ann", "Paris")] == ["birthPlace"]
    assert found[("Bob", "Acme")] == ["employer"]
    assert ("Paris", "Bob") not in found
    first = next(p for p in pairs if p.head.text == "Ann")
    assert text[first.sentence_start : first.sentence_end] == "Ann was born in Paris."
    assert text[first.tail.start : first.tail.end] == "Paris"
    assert [(p.head.start, p.tail.start) for p in pairs] == sorted((p.head.start, p.tail.start) for p in pairs)


@pytest.mark.parametrize(
    ("texts", "spans", "field", "message"),
    [
        (["Ann met Bob."], [[EntitySpan(0, 3), EntitySpan(2, 5)]], "spans[0][1]", "overlap"),
        (["Ann met Bob."], [[EntitySpan(0, 30)]], "spans[0][0]", "part of its text of 12 characters"),
        (["Ann met Bob."], [[EntitySpan(-1, 2)]], "spans[0][0]", "part of its text"),
        (["Ann met Bob."], [[EntitySpan(3, 3)]], "spans[0][0]", "part of its text"),
        (["Ann met Bob."], [[EntitySpan(3, 4)]], "spans[0][0]", "white space"),
        (["Ann met Bob.", " "], [[], []], "texts[1]", "no words"),
        (["Ann met Bob."], [], "spans", "one list for each"),
    ],
)
def test_bad_spans_and_texts_are_reported(
    engine: RelationEngine, texts: list[str], spans: list[list[EntitySpan]], field: str, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        engine.extract(texts, spans=spans)
    assert caught.value.field == field


def test_a_pattern_does_not_entail_its_negation(engine: RelationEngine) -> None:
    [result] = engine.entailment(["$ARG1 is married to $ARG2"], ["$ARG1 is not married to $ARG2"])
    assert result.negation_differs
    assert result.label is EntailmentLabel.CONTRADICTS
    assert result.forward_score < 0.1


def test_relations_and_top_k_restrict_the_result(engine: RelationEngine) -> None:
    [scores] = engine.score(["$ARG1 was born in $ARG2"], ["spouse", "employer"])
    assert sorted(score.relation for score in scores.relations) == ["employer", "spouse"]
    [scores] = engine.score(["$ARG1 was born in $ARG2"], top_k=1)
    assert [score.relation for score in scores.relations] == ["birthPlace"]


def facets(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 6))
def test_asymmetric_score_equals_the_reference(seed: int, num_first: int, num_second: int) -> None:
    first, second = facets(seed, 3, num_first, 8), facets(seed + 1, 3, num_second, 8)
    slow = [
        sum(max(float(cosine_similarity(one, other, dim=0)) for one in a) for other in b) / len(b)
        for a, b in zip(first, second, strict=True)
    ]
    assert asymmetric_score(first, second).tolist() == pytest.approx(slow, abs=1e-5)


@pytest.mark.parametrize("at_a_time", [1, 50, 16_000_000])
def test_all_pairs_equal_single_pairs_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch, at_a_time: int) -> None:
    monkeypatch.setattr("facets.relations.scoring.COSINES_AT_A_TIME", at_a_time)
    patterns, relations = facets(1, 7, 3, 8), facets(2, 4, 5, 8)
    forward, backward = asymmetric_scores(patterns, relations)
    for column, relation in enumerate(relations):
        expanded = relation.expand(7, 5, 8)
        assert torch.allclose(forward[:, column], asymmetric_score(patterns, expanded), atol=1e-6)
        assert torch.allclose(backward[:, column], asymmetric_score(expanded, patterns), atol=1e-6)
        mean = (forward[:, column] + backward[:, column]) / 2
        assert torch.allclose(mean, symmetric_score(patterns, expanded), atol=1e-6)
    assert asymmetric_scores(torch.empty(0, 3, 8), relations)[0].shape == (0, 4)

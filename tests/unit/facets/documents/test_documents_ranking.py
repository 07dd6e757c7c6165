"""From candidates to hits: ties, and results that differ."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from facets.documents import CollectionEngine, Document, SearchRequest
from facets.documents.ranking import similarities
from facets.index.candidates import select_diverse

Array = NDArray[np.float64]


def test_queries_of_one_call_may_have_candidates_far_apart(open_engine: Callable[..., CollectionEngine]) -> None:
    """Thousands of equal documents are candidates of one query; those of the other one lie behind all of them."""
    first, second = np.eye(2, dtype=np.float32)[:, None]
    engine = open_engine()
    engine.create_collection("c", model="m", model_revision="1", num_facets=1, dim=2)
    engine.upsert("c", [Document(id=f"a{number:04}", text="", facet_embeddings=first) for number in range(3000)])
    engine.upsert("c", [Document(id="b", text="", facet_embeddings=second)])
    found = engine.search("c", SearchRequest(facets=np.stack([first, second]), top_k=1))
    assert [[hit.id for hit in hits] for hits in found.hits] == [["a0000"], ["b"]]


def scaled(values: list[float]) -> list[float]:
    least, most = min(values), max(values)
    return [1.0 if most == least else (value - least) / (most - least) for value in values]


def reference(scores: Array, shares: Array, alike: Array, strength: float, top_k: int) -> list[int]:
    """The definition, one candidate at a time."""
    relevance = scaled(scores.tolist())
    facets = [shares[:, j].tolist() for j in range(shares.shape[1]) if shares[:, j].max() > 0]
    answers = [[value**4 for value in scaled(values)] for values in facets]
    total = sum(max(values) for values in facets)
    chosen: list[int] = []
    while len(chosen) < min(top_k, len(scores)):
        gains = {}
        for one in range(len(scores)):
            if one in chosen:
                continue
            novelty = 1 - max((alike[one, other] for other in chosen), default=0.0)
            if len(facets) > 1:
                novelty /= 2
                for values, answer in zip(facets, answers, strict=True):
                    left = np.prod([1 - answer[other] for other in chosen])
                    novelty += max(values) / total * answer[one] * left / 2
            gains[one] = relevance[one] if not chosen else (1 - strength) * relevance[one] + strength * novelty
        chosen.append(max(gains, key=lambda one: (round(gains[one], 9), -one)))
    return chosen


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(0, 4), st.floats(0, 1), st.integers(1, 12))
def test_choice_follows_the_definition(seed: int, num: int, num_facets: int, strength: float, top_k: int) -> None:
    rng = np.random.default_rng(seed)
    scores, shares = rng.random(num), rng.uniform(-0.2, 1, (num, num_facets))
    alike = similarities(rng.standard_normal((num * 3, 8)), np.arange(num + 1) * 3)
    found = select_diverse(scores, shares, alike.__getitem__, diversify=strength, top_k=top_k)
    assert found.tolist() == reference(scores, shares, alike, strength, top_k)


def test_similarity_is_the_mean_best_cosine_of_the_facets_of_both() -> None:
    rng = np.random.default_rng(1)
    facets = rng.standard_normal((6, 4, 16))
    facets[rng.random((6, 4)) < 0.3] = 0
    facets[5] = 0
    facets[4] = facets[0][::-1]
    found = similarities(facets.reshape(-1, 16), np.arange(7) * 4)
    for one in range(6):
        for other in range(6):
            sides = [[f / np.linalg.norm(f) for f in facets[n] if f.any()] for n in (one, other)]
            best = [max([float(f @ g) for g in sides[1]] + [0.0]) for f in sides[0]]
            best += [max([float(f @ g) for g in sides[0]] + [0.0]) for f in sides[1]]
            assert found[one, other] == pytest.approx(sum(best) / max(len(best), 1), abs=1e-5)
    assert found[0, 4] == pytest.approx(1.0, abs=1e-5)


def test_every_facet_of_a_query_is_covered_by_the_first_results(engine: CollectionEngine) -> None:
    """Three documents answer the first facet a bit better than the fourth answers the second."""
    facets = {name: np.eye(2, 32, k=0) for name in "abc"} | {"other": np.eye(2, 32, k=8)}
    engine.upsert("docs", [Document(id=id, text=id, facet_embeddings=of) for id, of in facets.items()])
    query = np.stack([np.eye(1, 32, k=0)[0], np.eye(1, 32, k=8)[0]])[None].astype(np.float32)
    weights = np.array([[0.6, 0.4]])
    plain = engine.search("docs", SearchRequest(facets=query, top_k=2, weights=weights)).hits[0]
    assert [hit.id for hit in plain] == ["a", "b"]
    diverse = engine.search("docs", SearchRequest(facets=query, top_k=2, weights=weights, diversify=0.8)).hits[0]
    assert [hit.id for hit in diverse] == ["a", "other"]
    assert diverse[0].score > diverse[1].score

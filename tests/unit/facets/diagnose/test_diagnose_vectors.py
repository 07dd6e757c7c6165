"""Statistics of vectors: duplicates, hubs, rank."""

import numpy as np
import pytest

from facets import diagnose
from facets.diagnose import describe, lay_out
from facets.errors import InvalidInputError


def neighbours_one_by_one(rows, num=10):
    """Share that finds itself, share in no list of the nearest others, and the longest list: slow and obvious."""
    scores = rows @ rows.T
    lists, found = np.zeros(len(rows), dtype=int), 0
    for place, line in enumerate(scores):
        found += line[place] >= np.delete(line, place).max()
        others = [other for other in np.argsort(-line, kind="stable") if other != place][:num]
        lists[others] += 1
    return found / len(rows), (lists == 0).mean(), lists.max()


def test_neighbours_agree_with_counting_one_by_one():
    rows = np.random.default_rng(1).normal(size=(120, 8)).astype(np.float32)
    report = describe(rows, owners_N=np.arange(120))
    found, unreached, hub = neighbours_one_by_one(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    assert (report.cosine.self_first, report.cosine.unreached) == pytest.approx((found, unreached))
    assert report.cosine.largest_hub == hub
    assert report.findings == ("no problems found",)


def test_duplicates_are_counted_between_owners_and_zeros_left_out():
    rows = np.array([[1.0, 0.0], [1.0, -0.0], [0.0, 0.0], [0.6, 0.8], [1.0, 0.0]], dtype=np.float32)
    report = describe(rows, owners_N=np.arange(5))
    assert report.num_duplicates == 2
    assert "duplicates" in report.findings[0]
    together = describe(rows, owners_N=np.array([0, 0, 1, 2, 3]))
    assert together.num_duplicates == 1


def test_rank_is_that_of_the_directions_in_use():
    generator = np.random.default_rng(2)
    report = describe(generator.normal(size=(400, 3)) @ generator.normal(size=(3, 12)), owners_N=np.arange(400))
    assert 2.0 < report.effective_rank <= 3.0


def test_one_row_is_described_and_none_is_rejected():
    report = describe(np.ones((1, 4)), owners_N=np.arange(1))
    assert (report.cosine.self_first, report.cosine.largest_hub) == (1.0, 0)
    with pytest.raises(InvalidInputError, match="rows"):
        describe(np.zeros((3, 2)), owners_N=np.arange(3))


def groups(number, *, of=6, dim=32, seed=0):
    random = np.random.default_rng(seed)
    centers, labels = random.normal(size=(of, dim)), random.integers(0, of, number)
    vectors = centers[labels] + 0.3 * random.normal(size=(number, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), labels


def same_label(points, labels, nearest=5):
    """Share of the nearest points that are of the same group."""
    distances = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    order = np.argsort(distances, axis=1)[:, 1 : nearest + 1]
    return (labels[order] == labels[:, None]).mean()


def quiet():
    """Nobody has gone away."""


def test_what_is_alike_lies_together_and_is_one_theme():
    vectors, labels = groups(240)
    found = lay_out(vectors, num_themes=6, seed=1, on_step=quiet)
    assert found.method == "t-SNE"
    assert same_label(found.points, labels) > 0.95
    counts = np.bincount(found.themes)
    assert len(counts) == 6 and (np.diff(counts) <= 0).all()
    assert sum(np.bincount(labels[found.themes == theme]).max() for theme in range(6)) > 0.8 * len(labels)
    np.testing.assert_allclose(np.linalg.norm(found.centers, axis=1), 1.0, atol=1e-4)


def test_those_that_are_no_landmarks_stand_beside_their_like(monkeypatch):
    monkeypatch.setattr(diagnose, "LANDMARKS", 100)
    vectors, labels = groups(400)
    found = lay_out(vectors, num_themes=8, seed=1, on_step=quiet)
    assert same_label(found.points, labels) > 0.95


@pytest.mark.parametrize("number", [1, 2, 9])
def test_few_vectors_are_laid_out_by_their_principal_components(number):
    vectors, _ = groups(number)
    found = lay_out(vectors, num_themes=8, seed=1, on_step=quiet)
    assert found.method == "principal components"
    assert found.points.shape == (number, 2) and np.isfinite(found.points).all()


def test_without_the_library_there_is_a_plane_all_the_same(monkeypatch):
    monkeypatch.setattr(diagnose, "missing_modules", lambda *names: list(names))
    vectors, labels = groups(200, of=3)
    found = lay_out(vectors, num_themes=3, seed=1, on_step=quiet)
    assert found.method == "principal components" and same_label(found.points, labels) > 0.9


def test_work_ends_when_nobody_waits_for_it():
    steps = []

    def gone():
        steps.append(len(steps))
        if len(steps) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        lay_out(groups(100)[0], num_themes=4, seed=1, on_step=gone)
    assert len(steps) == 3

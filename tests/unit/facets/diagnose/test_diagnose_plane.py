"""Vectors in a plane, and their themes."""

import numpy as np
import pytest

from facets.diagnose import lay_out, plane


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
    monkeypatch.setattr(plane, "LANDMARKS", 100)
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
    monkeypatch.setattr(plane, "missing_modules", lambda *names: list(names))
    vectors, labels = groups(200, of=3)
    found = lay_out(vectors, num_themes=3, seed=1, on_step=quiet)
    assert found.method == "principal components"
    assert same_label(found.points, labels) > 0.9


def test_work_ends_when_nobody_waits_for_it():
    steps = []

    def gone():
        steps.append(len(steps))
        if len(steps) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        lay_out(groups(100)[0], num_themes=4, seed=1, on_step=gone)
    assert len(steps) == 3

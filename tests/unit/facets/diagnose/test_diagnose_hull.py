"""Which rows a query can rank first: the certificates against a full program, and against the hull itself."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from facets.diagnose import Reach, certify
from facets.errors import InvalidInputError


def reach_by_full_program(rows, owners, bias):
    """One program a row with all others in it: slow and obvious."""
    extended = rows if bias is None else np.concatenate([rows, bias[:, None]], axis=1)
    found = []
    for row, owner in zip(extended, owners, strict=True):
        differences = row - extended[owners != owner]
        dim = extended.shape[1]
        bounds = [(-1, 1)] * dim + [(0, None)]
        if bias is not None:
            bounds[dim - 1] = (0, 1)
        constraints = np.concatenate([-differences, np.ones((len(differences), 1))], axis=1)
        ahead = np.append(np.zeros(dim), -1.0)
        solved = linprog(ahead, A_ub=constraints, b_ub=np.zeros(len(differences)), bounds=bounds)
        found.append(Reach.VERTEX if solved.x[-1] > 1e-7 else Reach.INTERIOR)
    return found


@pytest.mark.parametrize("kind", ["plain", "owners", "bias"])
@pytest.mark.parametrize("seed", range(4))
def test_certificates_agree_with_a_full_program(kind, seed):
    generator = np.random.default_rng(seed)
    num_rows, dim = int(generator.integers(5, 50)), int(generator.integers(2, 8))
    rows = generator.normal(size=(num_rows, dim)) * generator.uniform(0.2, 1.0, size=(num_rows, 1))
    owners = np.arange(num_rows) // (3 if kind == "owners" else 1)
    bias = generator.normal(size=num_rows) / 2 if kind == "bias" else None
    report = certify(rows, owners_N=owners, bias_N=bias)
    assert report.reach.tolist() == reach_by_full_program(rows, owners, bias)


@pytest.mark.parametrize("seed", range(4))
def test_vertices_are_those_of_the_hull(seed):
    rows = np.random.default_rng(seed).normal(size=(60, 3))
    assert np.flatnonzero(certify(rows).reach == Reach.VERTEX).tolist() == sorted(ConvexHull(rows).vertices)


@pytest.mark.parametrize("has_bias", [False, True])
def test_the_query_of_a_vertex_ranks_it_first(has_bias):
    generator = np.random.default_rng(5)
    rows = generator.normal(size=(80, 6))
    bias = generator.normal(size=80) if has_bias else np.zeros(80)
    report = certify(rows, bias_N=bias if has_bias else None)
    vertices = np.flatnonzero(report.reach == Reach.VERTEX)
    scores = report.queries[vertices] @ rows.T + bias
    assert scores.argmax(axis=1).tolist() == vertices.tolist()
    assert report.num_by_probe + report.num_by_perceptron + report.num_by_program == 80


def test_equal_rows_stand_in_each_other_s_way_unless_they_have_one_owner():
    rows = np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 1.0], [-2.0, -1.0]])
    assert certify(rows).reach.tolist() == [-1, -1, 1, 1]
    assert certify(rows, owners_N=np.array([0, 0, 1, 2])).reach.tolist() == [1, 1, 1, 1]


def test_a_single_row_is_first_and_what_is_open_in_the_end_is_undecided():
    assert certify(np.array([[0.0, 0.0]])).reach.tolist() == [Reach.VERTEX]
    rows = np.random.default_rng(0).normal(size=(300, 3))
    report = certify(rows, budget_s=0.0)
    assert report.num(Reach.INTERIOR) == 0
    assert report.num(Reach.UNDECIDED) > 0


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"rows_ND": np.zeros((0, 3))}, "rows"),
        ({"rows_ND": np.array([[1.0, np.nan]])}, "rows[0]"),
        ({"rows_ND": np.eye(3), "owners_N": np.zeros(2, dtype=int)}, "owners"),
        ({"rows_ND": np.eye(3), "bias_N": np.array([0.0, np.inf, 0.0])}, "bias"),
    ],
)
def test_wrong_arrays_are_refused(arguments, path):
    with pytest.raises(InvalidInputError) as raised:
        certify(**arguments)
    assert raised.value.field == path

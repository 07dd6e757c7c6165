"""What the store keeps of facets: precision, and no bytes for facets that are zero."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from facets.documents.facet_codes import (
    FacetCode,
    StoredFacets,
    decode_units,
    encode_units,
    read_codes,
    write_codes,
)


def unit_facets(num: int, num_facets: int, dim: int, seed: int) -> NDArray[np.float64]:
    facets = np.random.default_rng(seed).standard_normal((num, num_facets, dim))
    return np.asarray(facets / np.linalg.norm(facets, axis=2, keepdims=True))


@pytest.mark.parametrize(("code", "bound"), [("fp16", 2e-4), ("int8", 2e-3)])
def test_cosines_change_little(code: FacetCode, bound: float) -> None:
    units = unit_facets(500, 4, 384, seed=0)
    query = unit_facets(1, 1, 384, seed=1)[0, 0]
    query = 0.6 * units[0, 0] + 0.8 * query
    kept = decode_units(encode_units(units, code)).astype(np.float64)
    assert np.abs(kept @ query - units @ query).max() < bound
    np.testing.assert_allclose(np.linalg.norm(kept, axis=2), 1.0, atol=2e-3)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["fp16", "int8"]), st.integers(1, 5), st.integers(1, 9))
def test_codes_come_back_and_zero_facets_take_no_room(seed: int, code: FacetCode, num_facets: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    units = unit_facets(6, num_facets, dim, seed)
    norms = rng.uniform(0.5, 2, (6, num_facets)).astype(np.float32)
    zero = rng.random(norms.shape) < 0.4
    units[zero], norms[zero] = 0, 0
    codes = encode_units(units, code)
    blobs = write_codes(codes, norms)
    width = dim * (1 if code == "int8" else 2)
    assert [len(blob) for blob in blobs] == ((~zero).sum(axis=1) * width).tolist()
    again = read_codes(blobs, norms, dim=dim, code=code)
    assert again is not None
    np.testing.assert_array_equal(again, codes)


def test_zero_facets_of_earlier_versions_are_read() -> None:
    units = unit_facets(3, 2, 8, seed=0)
    units[1, 0] = 0
    norms = np.ones((3, 2), dtype=np.float32)
    norms[1, 0] = 0
    whole = [document.astype("<f2").tobytes() for document in units]
    again = read_codes(whole, norms, dim=8, code="fp16")
    assert again is not None
    np.testing.assert_array_equal(again, units.astype(np.float16))


def test_blob_of_another_length_is_refused() -> None:
    norms = np.ones((1, 2), dtype=np.float32)
    assert read_codes([b"123"], norms, dim=8, code="int8") is None


def test_magnitudes_are_kept() -> None:
    units = unit_facets(2, 3, 64, seed=2)
    norms = np.array([[1, 2, 0.25], [3, 0, 5]], dtype=np.float32)
    units[norms == 0] = 0
    stored = StoredFacets(encode_units(units, "int8"), norms, (None, None))
    np.testing.assert_allclose(np.linalg.norm(stored.embeddings, axis=2), norms, rtol=2e-3)

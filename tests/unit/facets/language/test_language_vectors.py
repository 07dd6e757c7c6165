import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from facets.errors import CheckpointError, InvalidInputError
from facets.language.vectors import WordVectors, dequantize, quantize, unit_rows
from facets.language.vocabulary import Vocabulary

WORDS = ["the", ",", "cat", "dog", "car", "bus"]


@pytest.fixture
def words() -> WordVectors:
    random = np.random.default_rng(3)
    vectors = random.normal(size=(len(WORDS), 8)).astype(np.float32)
    return WordVectors(Vocabulary(WORDS, np.arange(len(WORDS), 0, -1)), vectors)


def test_of_many_words_in_one_byte_each_the_nearest_by_floats_come_back() -> None:
    random = np.random.default_rng(6)
    names = [f"w{row}" for row in range(9_000)]
    # Around a few centres, where codes cannot tell neighbours apart; some are the same, and some are zero.
    vectors = random.normal(size=(9, 32))[random.integers(9, size=9_000)] + random.normal(0, 0.01, (9_000, 32))
    vectors[5_000:5_050], vectors[7_000:7_010] = vectors[100:150], 0
    values, scales = quantize(vectors)
    words = WordVectors(Vocabulary(names, np.ones(9_000, dtype=int)), values, scales=scales)
    queries = np.concatenate((random.normal(size=(20, 32)), vectors[100:103], np.zeros((1, 32)))).astype(np.float32)
    expected = unit_rows(queries) @ unit_rows(words.vectors).T
    for found, cosines in zip(words.nearest(queries, 5), expected, strict=True):
        best = np.argsort(-cosines.round(6), kind="stable")[:5]
        assert [word for word, _ in found] == [names[row] for row in best]
        np.testing.assert_allclose([cosine for _, cosine in found], cosines[best], atol=1e-6)
    assert all((a == b).all() for a, b in zip(quantize(words.vectors), (values, scales), strict=True))


def test_nearest_leaves_out_stop_words(words: WordVectors) -> None:
    [found] = words.nearest(words.vectors[:1], 10, excluded=words.vocabulary.is_stop)
    assert {word for word, _ in found} == {"cat", "dog", "car", "bus"}
    assert words.nearest(words.vectors[:1], 1)[0][0][0] == "the"


@pytest.mark.parametrize(
    ("queries", "top_k", "message"),
    [
        (np.ones(8), 1, "shape"),
        (np.ones((1, 7)), 1, r"\(N, 8\), got \(1, 7\)"),
        (np.full((1, 8), np.nan), 1, "finite"),
        (np.ones((1, 8)), 0, "top_k must be >= 1, got 0"),
    ],
)
def test_nearest_refuses_bad_queries(words: WordVectors, queries: np.ndarray, top_k: int, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        words.nearest(queries, top_k)


def test_damaged_folder_is_refused(words: WordVectors, tmp_path: Path) -> None:
    words.save(tmp_path)
    path = tmp_path / "vectors.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    with pytest.raises(CheckpointError, match=r"vectors\.safetensors.*damaged"):
        WordVectors.load(tmp_path)
    values, scales = np.zeros((6, 8), dtype=np.int8), np.ones((6, 1), dtype=np.float16)
    for tensors, message in (
        ({"vectors": values}, r"vectors\.scales, got \['vectors'\]"),
        ({"vectors": values[:5], "vectors.scales": scales[:5]}, r"shape \(6, D\), got \(5, 8\)"),
        ({"vectors": values, "vectors.scales": scales[:5]}, r"scale for 64 numbers"),
        ({"vectors": values, "vectors.scales": scales * np.nan}, "finite"),
    ):
        save_file(tensors, path)
        with pytest.raises(CheckpointError, match=message):
            WordVectors.load(tmp_path)
    path.unlink()
    with pytest.raises(CheckpointError, match="cannot read"):
        WordVectors.load(tmp_path)


@pytest.mark.parametrize("width", [1, 64, 65, 384])
def test_numbers_come_back_within_half_a_step_of_their_group(width: int) -> None:
    matrix = np.random.default_rng(0).standard_normal((7, width)).astype(np.float32) * np.float32(10.0)
    matrix[3] = 0.0
    values, scales = quantize(matrix)
    assert values.dtype == np.int8 and scales.shape == (7, -(-width // 64))
    # Half precision scales add up to a thousandth of the largest number.
    limit = np.repeat(scales.astype(np.float32), 64, axis=1)[:, :width] * (0.5 + 127e-3)
    assert (np.abs(dequantize(values, scales) - matrix) <= limit).all()
    assert not dequantize(values, scales)[3].any()


def test_models_that_read_the_same_words_share_them(tmp_path: Path) -> None:
    words = WordVectors(Vocabulary(["cat", "dog"], np.array([3, 2])), np.array([[1.0, 0.1], [1.0, 0.2]]))
    for name in ("one", "two", "other"):
        words.save(tmp_path / name)
    (tmp_path / "other" / "vocabulary.tsv").write_text("#total\t9\ncat\t5\ndog\t4\n", encoding="utf-8")
    first, second, third = (WordVectors.load(tmp_path / name) for name in ("one", "two", "other"))
    assert first is second
    assert third is not first and third.vocabulary.counts.tolist() == [5, 4]
    np.testing.assert_array_equal(third.vectors, first.vectors)


def test_vectors_of_one_byte_a_number_are_kept_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = WordVectors(
        Vocabulary([f"w{i}" for i in range(500)], np.ones(500, dtype=np.int64)), rng.normal(size=(500, 640))
    )
    words.save(tmp_path)
    tracemalloc.start()
    loaded = WordVectors.load(tmp_path)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 500 * 640 * 4 / 2
    np.testing.assert_allclose(loaded.vectors, words.vectors, atol=0.04)
    np.testing.assert_allclose(np.linalg.norm(loaded.unit_vectors, axis=1), 1, rtol=1e-5)

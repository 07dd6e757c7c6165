import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from facets_lab.language.word_vector_files import read_word_vectors

from facets.errors import ConfigError, InvalidInputError

ROWS = {"the": [0.5, -1.0, 2e-3], "caf\u00e9": [1.0, 2.0, 3.0], "42": [0.0, 0.0, 1.0]}


def text_lines() -> str:
    return "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in ROWS.items())


def binary(newline: bytes) -> bytes:
    rows = (word.encode() + b" " + np.array(row, dtype="<f4").tobytes() + newline for word, row in ROWS.items())
    return b"3 3\n" + b"".join(rows)


FILES = {
    "glove.txt": text_lines().encode(),
    "glove.txt.gz": gzip.compress(text_lines().encode()),
    "word2vec.txt": b"3 3\n" + text_lines().encode(),
    "fasttext.vec": b"3 3\n" + text_lines().replace("\n", " \n").encode(),
    "fasttext.vec.xz": lzma.compress(b"3 3\n" + text_lines().encode()),
    "no-last-newline.txt": text_lines().rstrip().encode(),
    "word2vec.bin": binary(b""),
    "word2vec-newlines.bin": binary(b"\n"),
    "word2vec.bin.gz": gzip.compress(binary(b"\n")),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_vectors(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name])
    words = read_word_vectors(path)
    assert words.vocabulary.words == tuple(ROWS)
    np.testing.assert_allclose(words.vectors, list(ROWS.values()), rtol=1e-6)


def test_gensim_files_load(tmp_path: Path) -> None:
    models = pytest.importorskip("gensim.models")
    vectors = models.KeyedVectors(40)
    expected = np.random.default_rng(0).normal(size=(300, 40)).astype(np.float32)
    vectors.add_vectors([f"word{i}" for i in range(300)], expected)
    for is_binary in (False, True):
        path = tmp_path / f"vectors-{is_binary}"
        vectors.save_word2vec_format(str(path), binary=is_binary)
        np.testing.assert_allclose(read_word_vectors(path).vectors, expected, rtol=1e-5, atol=1e-6)


def test_words_with_spaces_keep_them(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("the 1 2 3\n. . . 4 5 6\n")
    words = read_word_vectors(path)
    assert words.vocabulary.words == ("the", ". . .") and words.vectors[1].tolist() == [4, 5, 6]


def test_first_of_equal_words_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("The 1 2\ncat 3 4\nthe 5 6\ncat 7 8\n")
    words = read_word_vectors(path)
    assert words.vocabulary.words == ("the", "cat") and words.vectors.tolist() == [[1, 2], [3, 4]]
    assert "2 words occur twice" in caplog.text


def test_only_the_first_words_are_read(tmp_path: Path) -> None:
    path = tmp_path / "word2vec.txt"
    path.write_text("3 2\na 1 2\nb 3 4\nc not numbers\n")
    assert read_word_vectors(path, max_words=2).vocabulary.words == ("a", "b")
    with pytest.raises(ConfigError, match="max_words must be >= 1, got 0"):
        read_word_vectors(path, max_words=0)


def test_frequencies_come_from_counts_or_fall_along_the_file(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("a 1\nb 2\nc 3\n")
    zipf = read_word_vectors(path).vocabulary.probabilities
    assert zipf[0] > zipf[1] > zipf[2] > 0
    counted = read_word_vectors(path, counts={"b": 30, "other": 70}).vocabulary
    assert counted.probabilities.tolist() == [0.0, 0.3, 0.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "got an empty file"),
        (b"the\n", "line 1: expected a word and 1 numbers, got 1 fields"),
        (b"the 1 2 3\ncat 1 2\n", "line 2: expected a word and 3 numbers, got 3 fields"),
        (b"the 1 2 3\ncat 1 2 3 4\n", "line 2: expected 3 numbers, got 4"),
        (b"the 1 2\ncat 1 x\n", "line 2: expected 2 numbers"),
        (b"the 1 2\ncat nan 1\n", "line 2: expected finite numbers for 'cat'"),
        (b"the 1 2\ncat 1 -inf\n", "line 2: expected finite"),
        (b"the 1 2\nc\xfft 1 2\n", "line 2: expected UTF-8, got byte 0xff"),
        (b"3 2\nthe 1 2\ncat 3 4\n", "expected 3 words as its first line says, got 2"),
        (binary(b"")[:-3], "word 3: expected a word, a space and 12 bytes"),
        (b"2 3\n" + binary(b"")[4:], "expected 2 words as its first line says, got 3"),
        (b"1 1\n" + b"\xff\xfe " + np.float32(1).tobytes(), "word 1: expected UTF-8"),
        (b"1 1\n" + b"the " + np.float32("nan").tobytes(), "expected finite numbers for 'the'"),
    ],
)
def test_damaged_file_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=message):
        read_word_vectors(path)


def test_missing_and_cut_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        read_word_vectors(tmp_path / "missing.txt")
    path = tmp_path / "cut.txt.xz"
    path.write_bytes(lzma.compress(text_lines().encode())[:-10])
    with pytest.raises(InvalidInputError, match="compressed data"):
        read_word_vectors(path)

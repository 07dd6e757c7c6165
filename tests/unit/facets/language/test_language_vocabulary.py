import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from facets.errors import CheckpointError, InvalidInputError
from facets.language.near_names import NearNames
from facets.language.vocabulary import Vocabulary
from facets.language.wordnet import wordnet


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary(["the", ",", "cat", "42", "n't"], np.array([50, 30, 12, 5, 3]), total_count=200)


def test_rows_and_unknown_words(vocabulary: Vocabulary) -> None:
    rows = vocabulary.rows(["cat", "dog", "the", "Cat"])
    assert rows.tolist() == [2, 5, 0, 5] and rows.dtype == np.int64
    assert vocabulary.rows([]).shape == (0,)
    assert vocabulary.rows(["42"]).tolist() == [3] and vocabulary.unknown_row == 5
    assert len(vocabulary) == 5


def test_stop_words_are_function_words_and_tokens_without_letter_or_digit(vocabulary: Vocabulary) -> None:
    assert vocabulary.is_stop.tolist() == [True, True, False, False, True, True]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1), unique=True))
def test_any_words_survive_a_file(words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocabulary.tsv"
        Vocabulary(words, np.arange(len(words))).save(path)
        assert Vocabulary.load(path).words == tuple(words)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1"),
        (b"the\t5\n", "line 1: expected #total"),
        (b"#total\t9\nthe\t5\ncat\n", "line 3: expected word<TAB>count"),
        (b"#total\t9\nthe\tfive\n", "line 2: expected word<TAB>count"),
        (b"#total\t9\nthe\t-5\n", "line 2"),
        (b"#total\t9\n\t5\n", "line 2"),
        (b"#total\t9\nthe\t5\nca", "line 3: expected a newline"),
        (b"#total\t9\nthe\t5\nthe\t2\n", "'the' twice"),
        (b"#total\t3\nthe\t5\n", "total_count must be >= 5"),
        (b"#total\t9\nth\xff\t5\n", "utf-8"),
    ],
)
def test_damaged_file_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.tsv"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        Vocabulary.load(path)


@pytest.mark.parametrize(("words", "counts", "message"), [(["a", "b"], [1], "shape"), (["a"], [-1], ">= 0")])
def test_wrong_counts_are_refused(words: list[str], counts: list[int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Vocabulary(words, np.array(counts))


@pytest.fixture
def with_pieces() -> Vocabulary:
    words = ["the", "goat", "ox", "##herd", "##s", "k##", "##y", "##yan"]
    return Vocabulary(words, np.array([9, 5, 3, 1, 1, 1, 1, 1]))


@pytest.mark.parametrize(
    ("token", "rows"),
    [
        ("goat", [1]),
        ("goatherds", [1, 3, 4]),
        ("kyans", [5, 7, 4]),  # the longest continuation first
        ("ky", [5, 6]),
        ("oxs", [8]),  # two letters are no beginning without a mark of their own
        ("goatx", [8]),  # no piece fits the end
        ("##herd", [8]),  # a piece is no word
    ],
)
def test_unknown_words_are_read_as_pieces(with_pieces: Vocabulary, token: str, rows: list[int]) -> None:
    assert list(with_pieces.split(token)) == rows
    found, counts = with_pieces.split_rows(["the", token])  # from the cache
    assert found.tolist() == [0, *rows] and counts.tolist() == [1, len(rows)]


@pytest.mark.parametrize(
    ("word", "other"), [("assassinated", "killed"), ("mother", "parent"), ("flew", "travelled"), ("dogs", "animal")]
)
def test_a_kind_is_no_kind_the_other_way_round(word: str, other: str) -> None:
    assert wordnet().hypernymy(word, other) > 0.3 > wordnet().hypernymy(other, word)


@pytest.mark.parametrize(
    ("word", "lemma"),
    [("planned", "v:plan"), ("studies", "v:study"), ("written", "v:write"), ("wives", "n:wife"), ("loved", "v:love")],
)
def test_forms_lead_to_their_lemma(word: str, lemma: str) -> None:
    assert lemma in wordnet().lemmas(word)


def test_sameness_knows_forms_synonyms_and_derived_words() -> None:
    words = wordnet()
    assert words.sameness("wrote", "written") == words.sameness("xyzzy", "xyzzy") == 1.0
    assert words.sameness("situated", "located") > 0.5
    assert words.sameness("governor", "governs") > 0.5
    assert words.sameness("wrote", "ate") == 0.0


def test_opposites_hold_both_ways() -> None:
    words = wordnet()
    assert words.opposition("loves", "hates") == words.opposition("hates", "loves") == 1.0
    assert words.opposition("loves", "paints") == 0.0


NAMES = ["Noam Chomsky", "Karen Sp\u00e4rck Jones", "Kevin Knight", "Kathleen McKeown", "birthPlace", "placeOfBirth"]
NAMES += ["Emma Manning", "Christopher D. Manning"]


NEAR = NearNames(NAMES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Noam Chomski", "Noam Chomsky"),
        ("KNIGHT, KEVIN", "Kevin Knight"),
        ("K. Knight", "Kevin Knight"),
        ("C. Manning", "Christopher D. Manning"),
        ("Manning, C. D.", "Christopher D. Manning"),
        ("E Manning", "Emma Manning"),
        ("knight", "Kevin Knight"),
        ("karen sparck-jones", "Karen Sp\u00e4rck Jones"),
        ("kathleen mckeown", "Kathleen McKeown"),
        ("birth_place", "birthPlace"),
        ("place of birth", "placeOfBirth"),
    ],
)
def test_the_meant_name_comes_first(text: str, expected: str) -> None:
    assert NAMES[NEAR.find(text, top_k=3)[0]] == expected


def test_among_names_of_the_same_words_the_one_in_that_order_comes_first() -> None:
    near = NearNames(["author 1-2", "Author 2-1", "author 1-2"])
    assert near.find("author 2-1", top_k=3) == [1, 0, 2]
    assert near.find("author 1-2", top_k=3) == [0, 2, 1]


def test_at_most_top_k_names_come_back_in_their_order() -> None:
    near = NearNames(["Lee A", "Lee A", "Lee B", "Lee C"])
    assert near.find("Lee A", top_k=2) == [0, 1]
    assert NearNames([]).find("Lee", top_k=2) == []

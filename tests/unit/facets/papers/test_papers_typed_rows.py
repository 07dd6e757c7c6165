"""Typed rows: title and abstract apart, stop words left out."""

import numpy as np

from facets.language.tokenizer import Tokenizer
from facets.language.vocabulary import Vocabulary
from facets.papers.typed_rows import typed_rows

VOCABULARY = Vocabulary(["the", "of", "parser", "tree"], np.array([4, 3, 2, 1]))


def rows(title: str, abstract: str = "") -> list[int]:
    return typed_rows(Tokenizer(), VOCABULARY, [title], [abstract])[0].tolist()


def test_words_of_the_abstract_have_rows_of_their_own() -> None:
    assert rows("Parser", "Parser tree") == [2, 2 + 5, 3 + 5]


def test_stop_words_and_punctuation_are_left_out_but_unknown_words_stay() -> None:
    assert rows("The parser of the zebra!") == [2, 4]


def test_a_title_of_stop_words_keeps_them() -> None:
    assert rows("The of", "The tree") == [0, 1, 3 + 5]


def test_an_endless_abstract_is_cut() -> None:
    assert len(rows("Parser", "tree " * 100_000)) < 10_000


def test_no_texts_give_no_rows() -> None:
    assert typed_rows(Tokenizer(), VOCABULARY, [], []) == []

import numpy as np
from facets_lab.texts.training.word_pieces import PieceDropout, WordPieceTable
from hypothesis import given, settings
from hypothesis import strategies as st

from facets.language.vocabulary import Vocabulary

PIECES = [[7, 8], [9], [], [3, 4, 5], [6]]
UNKNOWN = 1


def reference(rows: list[int], max_pieces: int) -> list[int]:
    """The pieces of each word, one word after the other."""
    table = [ids or [UNKNOWN] for ids in PIECES] + [[UNKNOWN]]
    return [piece for row in rows for piece in table[row]][:max_pieces]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, len(PIECES)), max_size=6), min_size=1, max_size=5),
    st.integers(1, 12),
)
def test_pieces_of_texts_are_those_of_their_words(texts: list[list[int]], max_pieces: int) -> None:
    width = max(1, *map(len, texts)) if texts else 1
    rows = np.array([text + [0] * (width - len(text)) for text in texts])
    lengths = np.array([len(text) for text in texts])
    pieces, counts = WordPieceTable(PIECES, unknown_piece=UNKNOWN).pieces(rows, lengths, max_pieces=max_pieces)
    assert [row[:count].tolist() for row, count in zip(pieces, counts, strict=True)] == [
        reference(text, max_pieces) for text in texts
    ]
    assert not pieces[np.arange(pieces.shape[1]) >= counts[:, None]].any()


def test_some_words_are_read_as_pieces_and_unknown_words_stay_unknown() -> None:
    vocabulary = Vocabulary(["goat", "goatherd", "ox", "##herd"], np.array([4, 3, 2, 1]))
    rows, lengths = np.array([[1, 0, 3], [2, 1, 0]]), np.array([3, 2])
    always = PieceDropout(vocabulary, rate=1.0)
    pieces, counts = always(rows, lengths, np.random.default_rng(1), 8)
    assert [row[:n].tolist() for row, n in zip(pieces, counts, strict=True)] == [[0, 3, 0, 4], [2, 0, 3]]
    whole, counts = always(rows, lengths, None, 8)
    assert [row[:n].tolist() for row, n in zip(whole, counts, strict=True)] == [[1, 0, 4], [2, 1]]

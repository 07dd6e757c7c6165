import numpy as np
from toys import toy_word_pieces

from facets.relations.model import PatternPieces


def test_a_long_pattern_loses_its_middle_and_never_an_argument() -> None:
    pieces = toy_word_pieces()
    words = ["music"] * 30
    for place in (1, 10, 15, 16, 30):
        pattern = ["$ARG2", *words]
        pattern.insert(place, "$ARG1")
        [row] = PatternPieces(pieces, 12).rows([pattern])
        assert len(row) == 12
        assert np.isin([len(pieces), len(pieces) + 1], row).all()
    middle = [*words, "$ARG1", "$ARG2", *words]
    [row] = PatternPieces(pieces, 12).rows([middle])
    assert np.isin([len(pieces), len(pieces) + 1], row).all()
    assert len(row) == 12

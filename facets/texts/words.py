"""The words of many texts as padded arrays, and what the word-based methods compute from them.

Shape suffixes: T texts, L words, B texts of one batch, K facets, D dimensions.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from facets import scoring
from facets.arrays import Floats, Ints
from facets.language.interruption import check_interrupted
from facets.language.reading import read
from facets.language.vocabulary import Vocabulary
from facets.model.contract import TextModel
from facets.model.passage_encoding import length_batches

COMPONENT_KEYS = {False: "plain", True: "attention"}  # key: whether facets weight the words; checkpoints use the values
# Most words in one batch, padding included: 16 MiB of 256-dimensional vectors for each side of a pair.
BATCH_WORDS = 16_384
_MOVED_AT_A_TIME = 1024  # the same for ``wmd``: a tenth of a second at most
_MOVED_PER_TOKEN = 8  # limit of different words or pieces of a text; real texts have hardly more than one per token


class TextWords:
    """The known words among the first ``max_tokens`` tokens of each text, without punctuation.

    A word that the vocabulary knows in pieces is represented by its pieces.
    """

    def __init__(self, model: TextModel, texts: Sequence[str]) -> None:
        vocabulary = model.words.vocabulary
        self._max_moved = _MOVED_PER_TOKEN * model.max_tokens
        self._probabilities_V = torch.from_numpy(vocabulary.probabilities).float()
        rows, shares = [], []
        self._owners: list[Ints] = []
        self._num_tokens: list[int] = []
        for words in model.tokenizer.words([read(text).text for text in texts], most=model.max_tokens):
            text_rows, text_shares, owners = _known_words(vocabulary, words)
            rows.append(text_rows)
            shares.append(text_shares)
            self._owners.append(owners)
            self._num_tokens.append(len(words))
        self._lengths_T = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        mask_TL = np.arange(max(1, self._lengths_T.max(initial=0))) < self._lengths_T[:, None]
        rows_TL = np.zeros(mask_TL.shape, dtype=np.int64)
        rows_TL[mask_TL] = np.concatenate([*rows, np.empty(0, dtype=np.int64)])
        self.rows_TL = torch.from_numpy(rows_TL)  # of the vocabulary, padded with 0
        used_rows = np.unique(rows_TL)
        self._used_rows, self._units_UD = torch.from_numpy(used_rows), torch.from_numpy(model.words.units(used_rows))
        self.mask_TL = torch.from_numpy(mask_TL)  # True for words, False for padding
        uniform_TL = np.zeros(mask_TL.shape, dtype=np.float32)
        uniform_TL[mask_TL] = np.concatenate([*shares, np.empty(0, dtype=np.float32)])
        # Weight 1 for every word, `n ** -0.5` for each of n pieces, 0 for padding.
        self.uniform_TL = torch.from_numpy(uniform_TL)

    def vectors(self, rows: Tensor) -> Tensor:
        """Unit vectors of rows of the texts, ``[..., D]``."""
        return self._units_UD[torch.searchsorted(self._used_rows, rows)]

    def weights(self, facets_TKD: Floats | None, *, by_probability: bool) -> Tensor:
        """Weights of the words, ``[T, L]``, 0 for padding.

        ``facets_TKD``: facets of the same texts: words are weighted by the closest facet, except in texts without a
        word close to a facet; None: no weights. ``by_probability``: multiply by ``alpha / (alpha + p(w))``. With both
        weights the square root of the facet weight is taken (chosen on STS train).
        """
        weights_TL = self.uniform_TL
        if facets_TKD is not None:
            by_facets_TL = self._closest_facet_weights(torch.from_numpy(facets_TKD))
            weights_TL = weights_TL * (by_facets_TL.sqrt() if by_probability else by_facets_TL)
        if by_probability:
            weights_TL = weights_TL * scoring.probability_weights(self._probabilities_V[self.rows_TL])
        return weights_TL

    def _closest_facet_weights(self, facets_TKD: Tensor) -> Tensor:
        weights_TL = torch.zeros(self.mask_TL.shape)
        for texts_B, length in _batches(self._lengths_T, BATCH_WORDS):
            words_BLD = self.vectors(self.rows_TL[texts_B, :length])
            weights_TL[texts_B, :length] = scoring.closest_facet_weight(
                words_BLD, facets_TKD[texts_B], self.mask_TL[texts_B, :length]
            )
        nothing_T1 = weights_TL.sum(dim=1, keepdim=True) <= 0
        return torch.where(nothing_T1, 1.0, weights_TL)

    def token_weights(self, weights_TL: Tensor) -> list[Floats]:
        """Weights of words as weights of the first ``max_tokens`` tokens of each text, float32.

        Unknown tokens and punctuation have weight 0; a word of several pieces has the norm of the pieces' weights.
        """
        token_weights = []
        for weights_L, length, owners, num_tokens in zip(
            weights_TL.numpy(), self._lengths_T, self._owners, self._num_tokens, strict=True
        ):
            squares = np.bincount(owners, weights_L[:length].astype(np.float64) ** 2, minlength=num_tokens)
            token_weights.append(np.sqrt(squares).astype(np.float32))
        return token_weights

    def average(self, weights_TL: Tensor) -> Tensor:
        """``scoring.average`` of every text, ``[T, D]``."""
        averages_TD = torch.zeros(len(self.rows_TL), self._units_UD.shape[1])
        for texts_B, length in _batches(self._lengths_T, BATCH_WORDS):
            words_BLD = self.vectors(self.rows_TL[texts_B, :length])
            averages_TD[texts_B] = scoring.average(words_BLD, weights_TL[texts_B, :length])
        return averages_TD

    def wmd(self, pairs_P2: Tensor, weights_TL: Tensor) -> Tensor:
        """``scoring.wmd`` of pairs of texts, ``[P]``; ``pairs_P2``: indexes of the two texts of each pair, int64."""
        rows_TL, weights_TL, lengths_T = self._merged(weights_TL)
        scores_P = torch.empty(len(pairs_P2))
        for pairs_B, longest in _batches(lengths_T[pairs_P2.numpy()].max(axis=1), _MOVED_AT_A_TIME):
            check_interrupted()
            first_B, second_B = pairs_P2[pairs_B].unbind(dim=1)
            scores_P[pairs_B] = scoring.wmd(
                self.vectors(rows_TL[first_B, :longest]),
                weights_TL[first_B, :longest],
                self.vectors(rows_TL[second_B, :longest]),
                weights_TL[second_B, :longest],
            )
        return scores_P

    def _merged(self, weights_TL: Tensor) -> tuple[Tensor, Tensor, Ints]:
        """Rows, joint weights and number of the different words of each text, which have the same distances.

        Beyond a limit, only the heaviest words: memory and time grow with the square of their number.
        """
        rows_TL, merged_TL = self.rows_TL.numpy().copy(), np.zeros(weights_TL.shape)
        lengths_T = np.zeros_like(self._lengths_T)
        texts = zip(rows_TL, weights_TL.numpy(), merged_TL, self._lengths_T.tolist(), strict=True)
        for text, (rows_L, weights_L, merged_L, length) in enumerate(texts):
            rows_M, places = np.unique(rows_L[:length], return_inverse=True)
            weights_M = np.bincount(places, weights_L[:length])
            heaviest = np.argsort(-weights_M)[: self._max_moved]
            lengths_T[text] = num_moved = len(heaviest)
            rows_L[:num_moved], merged_L[:num_moved] = rows_M[heaviest], weights_M[heaviest]
        return torch.from_numpy(rows_TL), torch.from_numpy(merged_TL), lengths_T


def _batches(lengths: Ints, max_words: int) -> Iterator[tuple[Tensor, int]]:
    """Indexes of texts, or pairs, of similar length, and the most words of one in each batch, at least 1."""
    for batch in length_batches(lengths, max_tokens=max_words, pads=True):
        yield torch.from_numpy(batch), max(1, int(lengths[batch[0]]))


def fit_common_components(model: TextModel, texts: Sequence[str]) -> dict[str, Floats]:
    """The directions that ``sif`` removes, unit vectors ``[D]``, by name (Arora et al. 2017, algorithm 1).

    ``texts``: training texts with at least one token each; ten thousand sentences are plenty.
    """
    words = TextWords(model, texts)
    facets = {False: None, True: model.encode(texts)}
    return {
        key: scoring.fit_common_component(words.average(words.weights(facets[by_facets], by_probability=True))).numpy()
        for by_facets, key in COMPONENT_KEYS.items()
    }


def known_rows(vocabulary: Vocabulary, words: Sequence[str]) -> Ints:
    """Vocabulary rows of the known words or of their pieces, in order, without punctuation."""
    return _known_words(vocabulary, words)[0]


def _known_words(vocabulary: Vocabulary, words: Sequence[str]) -> tuple[Ints, Floats, Ints]:
    """``known_rows``, the weight of each row, and the index of its word."""
    check_interrupted()
    indexes = [i for i, word in enumerate(words) if any(map(str.isalnum, word))]
    rows, counts = vocabulary.split_rows([words[i] for i in indexes])
    shares = np.repeat(counts.astype(np.float32) ** -0.5, counts)  # the pieces of a word together count as one word
    owners = np.repeat(np.array(indexes, dtype=np.int64), counts)
    is_known = rows < len(vocabulary)
    return rows[is_known], shares[is_known], owners[is_known]

"""Pairs of texts; the facets, words and states of each distinct text are computed once.

Shape suffixes: P pairs, T distinct texts, B pairs of one block, L words, K facets, D dimensions.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets import scoring
from facets.errors import ConfigError, ErrorPath, InvalidInputError
from facets.language.tokenizer import check_text
from facets.model.contract import TextEncoder, TextModel, check_readable
from facets.texts.comparison import Comparison, compare_texts
from facets.texts.words import COMPONENT_KEYS, TextWords

# Most facet values in one block of pairs: 64 MiB.
NUMBERS_AT_A_TIME = 16_000_000


class Weighting(NamedTuple):
    """How the words of a text are weighted in a score."""

    by_facets: bool  # by the closest facet (`scoring.closest_facet_weight`); callers know this as `attention`
    by_probability: bool  # by `alpha / (alpha + p(w))`


class PairTexts:
    """Pairs of texts, encoded by one model.

    Attributes:
        texts: The distinct texts.
        pairs_P2: Indexes of the two texts of each pair, int64.
    """

    def __init__(
        self, model: TextModel, pairs: Sequence[tuple[str, str]], *, encoder: TextEncoder | None = None
    ) -> None:
        """Checks the pairs; ``encoder``: encodes the texts instead of the model.

        Raises:
            InvalidInputError: A text is blank or in a foreign script; its path names the text.
        """
        rows: dict[str, int] = {}
        self._paths: dict[str, ErrorPath] = {}  # path of the first occurrence of each text
        for i, pair in enumerate(pairs):
            for side, text in zip(("first", "second"), pair, strict=True):
                check_text(text, ("pairs", i, side))
                if pair[0].split() != pair[1].split():  # equal texts need not be readable
                    check_readable(model, text, ("pairs", i, side))
                rows.setdefault(text, len(rows))
                self._paths.setdefault(text, ("pairs", i, side))
        self.model = model
        self.texts = tuple(rows)
        self.pairs_P2 = torch.tensor([(rows[a], rows[b]) for a, b in pairs], dtype=torch.int64).reshape(-1, 2)
        self._encoder = encoder or model
        self._weights: dict[Weighting, Tensor] = {}

    @cached_property
    def facets(self) -> Tensor:
        """Facets of the texts, ``[T, K, D]``."""
        if not self.texts:
            return torch.zeros(0, self.model.num_facets, 1)
        return self._encoded(self._encoder.encode)

    @cached_property
    def states(self) -> Tensor:
        """Mean contextual states of the encoder, ``[T, H]``."""
        return self._encoded(self._encoder.embed) if self.texts else torch.zeros(0, 1)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Comparison of the two texts of each pair."""
        if not self.texts:
            return ()
        pairs = [(self.texts[first], self.texts[second]) for first, second in self.pairs_P2.tolist()]
        return tuple(compare_texts(self.model, pairs, self.cosines(self.states).numpy()))

    def _encoded(self, encode: Callable[[Sequence[str]], NDArray[np.float32]]) -> Tensor:
        try:
            return torch.from_numpy(encode(self.texts))
        except InvalidInputError as error:
            match error.path:
                case ("texts", int(number)):
                    raise error.at(self._paths[self.texts[number]]) from error
            raise

    @cached_property
    def words(self) -> TextWords:
        """The words of the texts."""
        return TextWords(self.model, self.texts)

    def weights(self, weighting: Weighting) -> Tensor:
        """Weights of the words, ``[T, L]``, for scores and for their explanations."""
        if weighting not in self._weights:
            facets = self.facets.numpy() if weighting.by_facets else None
            self._weights[weighting] = self.words.weights(facets, by_probability=weighting.by_probability)
        return self._weights[weighting]

    def averages(self, weighting: Weighting) -> Tensor:
        """Weighted average of the words of each text, ``[T, D]``."""
        return self.words.average(self.weights(weighting))

    def without_common_direction(self, averages_TD: Tensor, weighting: Weighting) -> Tensor:
        """``averages`` with the direction that all texts share removed, ``[T, D]``."""
        key = COMPONENT_KEYS[weighting.by_facets]
        component_D = self.model.common_components.get(key)
        if component_D is None:
            raise ConfigError(
                f"sif needs the model's common component {key!r}, got {sorted(self.model.common_components)}: "
                "fit_common_components(model, texts) computes it"
            )
        return scoring.remove_component(averages_TD, torch.from_numpy(component_D))

    def cosines(self, vectors_TD: Tensor) -> Tensor:
        """Cosine of the two vectors of each pair, ``[P]``."""
        first_P, second_P = self.pairs_P2.unbind(dim=1)
        return scoring.cosine_score(vectors_TD[first_P], vectors_TD[second_P])

    def compare_facets(self, score: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Scores ``[P]`` of all pairs, given a function of the first and second texts' facets ``[B, K, D]``."""
        return torch.cat([score(*self.facets_of(pairs_B2)) for pairs_B2 in self.blocks()])

    def facets_of(self, pairs_B2: Tensor) -> tuple[Tensor, Tensor]:
        """Facets of the first and the second texts of pairs, ``[B, K, D]`` each."""
        return self.facets[pairs_B2[:, 0]], self.facets[pairs_B2[:, 1]]

    def blocks(self) -> Sequence[Tensor]:
        """Blocks of pairs ``[B, 2]`` whose facets fit ``NUMBERS_AT_A_TIME``."""
        num_facets, dim = self.facets.shape[1:]
        size = max(1, NUMBERS_AT_A_TIME // (2 * num_facets * max(dim, num_facets)))
        return [self.pairs_P2[start : start + size] for start in range(0, max(1, len(self.pairs_P2)), size)]

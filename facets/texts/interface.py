"""What the tasks need of a model; ``facets.load`` returns one."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.text.tokenizer import Tokenizer
from facets.words.vectors import WordVectors

__all__ = ["TextModel", "check_text"]


class TextModel(Protocol):
    """A model of sentences or phrases whose target space is word vectors."""

    @property
    def num_facets(self) -> int:
        """K."""
        ...

    @property
    def max_tokens(self) -> int:
        """Tokens read of one text; the tasks look at the same ones."""
        ...

    @property
    def words(self) -> WordVectors:
        """Word vectors in the space of the facets."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """Splits texts into sentences and tokens."""
        ...

    @property
    def common_components(self) -> Mapping[str, NDArray[np.float32]]:
        """Unit directions ``[D]`` that SIF removes, under ``plain`` and ``attention``; may be empty."""
        ...

    @property
    def calibration_curves(self) -> Mapping[str, NDArray[np.float64]]:
        """What scores of each method mean, ``[2, N]`` each (``scoring.apply_curve``); may be empty."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Facet embeddings ``[len(texts), K, D]``, magnitudes kept; every text has at least one token."""
        ...

    def encode_states(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Averages of the encoder's contextual states, ``[len(texts), H]``; every text has at least one token."""
        ...


def check_text(text: str, field: str) -> None:
    """Refuses texts without a character that is not white space.

    Args:
        text: The text.
        field: Where it stands in the caller's input, for the message.

    Raises:
        TypeError: It is no string.
        InvalidInputError: It is empty or blank.
    """
    if not isinstance(text, str):
        raise TypeError(f"{field} must be a str, got {type(text).__name__}")
    if not text or text.isspace():
        raise InvalidInputError(f"{field} has no words, expected at least one", field=field)

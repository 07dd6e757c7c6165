"""The model contract: what library, server and clients of the library may ask of a model, written once.

``ModelInfo`` is what anybody may know of a model, ``Model`` what every task has, ``TextModel`` what the tasks about
texts need besides. A task with more to ask extends ``Model`` in its own ``contract.py``.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from facets.errors import ErrorPath, InvalidInputError
from facets.language.tokenizer import Tokenizer
from facets.language.vectors import WordVectors


class ModelSettings(Protocol):
    """What a checkpoint says about its model in ``config.json``, whatever the task."""

    @property
    def name(self) -> str:
        """Name of the checkpoint, also in requests."""

    @property
    def task(self) -> str:
        """What it was trained for, a key of ``facets.model.loading.TASKS``."""

    @property
    def num_facets(self) -> int:
        """K, the number of facets of every text."""

    @property
    def dim(self) -> int:
        """D, the width of a facet."""

    @property
    def max_tokens(self) -> int:
        """Tokens of a text that are read; the rest is cut. A model of passages reads windows of so many, and all."""


class ModelInfo(ModelSettings, Protocol):
    """What a model says about itself."""

    @property
    def revision(self) -> str:
        """Content hash: equal revisions give equal answers."""

    @property
    def space(self) -> str:
        """The space of its vectors: those of two models may be compared when these names are equal."""

    @property
    def vocabulary_size(self) -> int:
        """Words the model knows, pieces of words not counted."""


class Model(ModelInfo, Protocol):
    """A model of any task; ``facets.load`` returns one."""

    @property
    def words(self) -> WordVectors:
        """Vocabulary and word vectors."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Splits texts into sentences and tokens."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Facet embeddings ``[len(texts), K, D]``; what a text is depends on the task."""


class TextEncoder(Protocol):
    """What the tasks about texts run a network for; a server puts its queue in the place of the model."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Facet embeddings ``[len(texts), K, D]``, magnitudes kept; every text has at least one token.

        A text may have fewer facets than K: the others are zero.
        """

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector a text: the average of the encoder's contextual states, ``[len(texts), H]``.

        Every text has at least one token.
        """


class TextModel(Model, TextEncoder, Protocol):
    """What the tasks about texts ask of a model."""

    @property
    def common_components(self) -> Mapping[str, NDArray[np.float32]]:
        """Unit directions ``[D]`` that SIF removes, by whether words are weighed; may be empty."""

    @property
    def score_curves(self) -> Mapping[str, NDArray[np.float64]]:
        """What scores of each method mean, ``[2, N]`` each (``score_curves.apply_curve``); may be empty."""


class SentenceModel(TextModel, Protocol):
    """A model of sentences or phrases whose target space is word vectors; texts may be encoded in two steps."""

    def tokenize(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """What ``encode_rows`` reads: rows of each text's first ``max_tokens`` tokens, in order."""

    def encode_rows(self, rows: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        """Facet embeddings ``[len(rows), K, D]`` of what ``tokenize`` returned."""


FOREIGN = (
    "has hardly a word that the model knows, expected the language that it was trained on (shipped models: English)"
)
_LATIN_LETTER = re.compile(r"[A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")
_OTHER_LETTER = re.compile(r"[^\W\d_A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")
_FEW_KNOWN = 0.2  # of the words
_LOOKED_AT = 8_000  # characters of a text


def is_foreign(model: Model, text: str) -> bool:
    """Whether a text is in a script that is none of the model's: what the model would make of it is nonsense.

    Most of its letters are not Latin, and hardly one of its words is in the vocabulary. Names, code, numbers, emoji and
    misspelt words are not foreign; other languages in Latin letters cannot be told from these.
    """
    if text.isascii():
        return False
    letters = text[:_LOOKED_AT]
    if len(_OTHER_LETTER.findall(letters)) <= len(_LATIN_LETTER.findall(letters)):
        return False
    words = [word for word in model.tokenizer.words([letters])[0] if any(map(str.isalpha, word))]
    known = np.count_nonzero(model.words.vocabulary.rows(words) < len(model.words))
    return bool(known < _FEW_KNOWN * len(words))


def check_readable(model: Model, text: str, path: ErrorPath) -> None:
    """Refuses a text of which anything that is said would be nonsense.

    Raises:
        InvalidInputError: It is foreign, see :func:`is_foreign`.
    """
    if is_foreign(model, text):
        raise InvalidInputError(FOREIGN, path=path)

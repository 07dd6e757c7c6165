"""The interface of models: what the library and the server may ask of them.

``Model`` is common to all tasks. A task that needs more extends it in its own package.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from facets.arrays import Doubles, Floats, Ints
from facets.errors import ErrorPath, InvalidInputError
from facets.language.tokenizer import Tokenizer
from facets.language.vectors import WordVectors


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderSettings:
    """What the files of a sentence-transformers encoder say."""

    pooling: str  # of token states, such as "mean"; empty: the encoder has no such step
    query_prompt: str  # put before queries
    document_prompt: str  # put before documents
    similarity: str  # for which it was trained, such as "cosine" or "maxsim"; facets always use cosine
    backend: str  # runs it: "torch", "onnx" or "openvino"


class ModelInfo(Protocol):
    """A model's description of itself."""

    name: str  # of the checkpoint, also in requests
    task: str  # the task it was trained for, a key of `facets.model.loading.TASKS`
    num_facets: int  # K, the number of facets of every text
    dim: int  # D, the width of a facet
    max_tokens: int  # most tokens read of a text; a passage model reads everything, in windows of this size
    revision: str  # content hash: models with equal revisions give equal results
    space: str  # name of the vector space: vectors of two models can be compared when these names are equal
    vocabulary_size: int  # words the model knows, not counting pieces of words


@dataclass(kw_only=True, slots=True)
class ModelDescription:
    """The ``ModelInfo`` of a checkpoint folder whose weights are not loaded."""

    name: str
    task: str
    num_facets: int
    dim: int
    max_tokens: int
    revision: str
    space: str
    vocabulary_size: int


class Model(ModelInfo, Protocol):
    """A model of any task; ``facets.load`` returns one."""

    words: WordVectors
    tokenizer: Tokenizer  # splits texts into tokens

    def encode(self, texts: Sequence[str]) -> Floats:
        """Facet embeddings ``[len(texts), K, D]``; what a text is depends on the task."""

    def knows_script(self, text: str) -> bool:
        """Whether the model knows words of the script that most letters of a text are in."""


def shown_model(model: ModelInfo) -> str:
    """A model as ``FacetModel('facets-en', task='sentences', num_facets=10, dim=256)``."""
    sizes = f"num_facets={model.num_facets}, dim={model.dim}"
    return f"{type(model).__name__}({model.name!r}, task={model.task!r}, {sizes})"


class TextEncoder(Protocol):
    """Encodes texts: the model itself or, in a server, the queue in front of it."""

    def encode(self, texts: Sequence[str]) -> Floats:
        """Facet embeddings ``[len(texts), K, D]``, magnitudes kept; zero rows where a text has fewer than K facets."""

    def embed(self, texts: Sequence[str]) -> Floats:
        """One vector per text: the mean of the encoder's contextual states, ``[len(texts), H]``."""


class TextModel(Model, TextEncoder, Protocol):
    """What text tasks need from a model."""

    # Unit directions `[D]` that SIF removes, under the keys `plain` and `attention`; may be empty.
    common_components: Mapping[str, Floats]
    score_curves: Mapping[str, Doubles]  # `[2, N]` by method, see `score_curves.apply_curve`; may be empty


class SentenceModel(TextModel, Protocol):
    """A model of sentences or phrases, which can encode in two steps."""

    def tokenize(self, texts: Sequence[str]) -> list[Ints]:
        """Token rows of each text's first ``max_tokens`` tokens."""

    def encode_rows(self, rows: Sequence[Ints]) -> Floats:
        """Facet embeddings ``[len(rows), K, D]`` of token rows."""


FOREIGN = (
    "has hardly a word that the model knows, expected the language that it was trained on (shipped models: English)"
)
_LATIN_LETTER = re.compile(r"[A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")
_OTHER_LETTER = re.compile(r"[^\W\d_A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")
_EXAMINED_CHARS = 8_000


def is_foreign(model: Model, text: str) -> bool:
    """Whether most letters of a text are not Latin but of a script that the model does not know.

    Names, code, numbers, emoji and misspelt words are not foreign. Other languages in Latin letters cannot be told from
    these.
    """
    if text.isascii():
        return False
    letters = text[:_EXAMINED_CHARS]
    is_latin = len(_OTHER_LETTER.findall(letters)) <= len(_LATIN_LETTER.findall(letters))
    return not is_latin and not model.knows_script(letters)


def check_readable(model: Model, text: str, path: ErrorPath) -> None:
    """Raises InvalidInputError for a text in a foreign script; see ``is_foreign``."""
    if is_foreign(model, text):
        raise InvalidInputError(FOREIGN, path=path)

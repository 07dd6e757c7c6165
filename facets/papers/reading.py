"""Reading a paper: typed rows of its words, and a sentence vector if the model has them (Chang 2022, B.5).

A typed row is the vocabulary row of a word of the title, or that row plus ``V + 1`` for a word of the abstract; row
``V`` of either half is the unknown word. Stop words and punctuation are left out: they are half of an abstract and do
not tell papers apart.

For sentence vectors, a passage model reads the title and the beginning of the abstract as one text; of its vector, the
principal components in which the training papers differ most are kept. A document is
``[sqrt(1 - s) words ; sqrt(s) sentences]``, so one inner product is the weighted sum of both cosines.
Shape letters: N papers, I papers of the training, E width of the encoder, P components, W width of word averages.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Floats, Ints
from facets.language.tokenizer import Tokenizer
from facets.language.vectors import unit_rows
from facets.language.vocabulary import Vocabulary

# Characters that are examined, many more than any model reads.
MAX_TITLE_CHARS = 2_000
MAX_ABSTRACT_CHARS = 20_000
# Formulas, citations and commands of LaTeX; the text in the braces of other commands stays.
_LATEX = re.compile(
    r"\$(?=[^$]{0,200}[\\^_=])[^$]{1,400}\$|\\\(.{1,400}?\\\)|\\\[.{1,400}?\\\]"
    r"|\\begin\{(?:equation|align).{1,800}?\\end\{\w+\*?\}"
    r"|\\(?:\w{0,9}cite\w{0,9}|\w{0,9}ref|label|begin|end)\*?(?:\[[^\]]{0,90}\]){0,2}\{[^{}]{0,300}\}"
    r"|\\(?:[A-Za-z]+\*?|.)|[{}$~]",
    re.DOTALL,
)
_ACCENT = re.compile(r"\{?\\[`'^\"~=.]\{?(\w)\}{0,2}")  # Poincar{\'e}


def typed_rows(
    tokenizer: Tokenizer, vocabulary: Vocabulary, titles: Sequence[str], abstracts: Sequence[str]
) -> list[NDArray[np.uint16]]:
    """Typed rows of papers, title first.

    ``vocabulary`` has at most 32,766 words. A title of only stop words keeps them. Returns one uint16 array
    ``[L]`` per paper, which is empty only if the title has no token.

    Example:
        >>> vocabulary = Vocabulary(["the", "parser", "works"], np.array([3, 2, 1]))
        >>> [rows.tolist() for rows in typed_rows(Tokenizer(), vocabulary, ["The parser"], ["The new parser."])]
        [[1, 7, 5]]
    """
    title_words = tokenizer.words([_plain(title, MAX_TITLE_CHARS) for title in titles])
    abstract_words = tokenizer.words([_plain(abstract, MAX_ABSTRACT_CHARS) for abstract in abstracts])
    result = []
    for title, abstract in zip(title_words, abstract_words, strict=True):
        title_rows = _content_rows(vocabulary, title)
        if not len(title_rows):
            title_rows = vocabulary.rows(title)
        abstract_rows = _content_rows(vocabulary, abstract) + len(vocabulary) + 1
        result.append(np.concatenate([title_rows, abstract_rows]).astype(np.uint16))
    return result


def _plain(text: str, max_chars: int) -> str:
    """The beginning of the text, without LaTeX unless there is nothing else."""
    plain = _LATEX.sub(" ", _ACCENT.sub(r"\1", text[:max_chars]))
    return text[:max_chars] if plain.isspace() else plain


def _content_rows(vocabulary: Vocabulary, words: Sequence[str]) -> Ints:
    """Rows of the words that are neither stop words nor punctuation; unknown words count."""
    rows = vocabulary.rows(words)
    is_word = np.fromiter((any(map(str.isalnum, word)) for word in words), dtype=np.bool_, count=len(words))
    return rows[np.where(rows == vocabulary.unknown_row, is_word, ~vocabulary.is_stop[rows])]


@dataclass(frozen=True, slots=True)
class SentenceVectors:
    """Reduced sentence vectors of the training papers."""

    axes: Floats  # `[E, P]` float32, projects an encoder's vector
    center: Floats  # `[E]` float32, subtracted first
    values: NDArray[np.int8]  # `[I, P]` int8, unit vectors times 127

    def project(self, vectors_NE: Floats) -> Floats:
        """Unit vectors ``[N, P]`` for vectors of the encoder."""
        return unit_rows((vectors_NE - self.center) @ self.axes)

    def units(self) -> Floats:
        """Unit vectors of the training papers, ``[I, P]`` float32."""
        return unit_rows(self.values.astype(np.float32))


def sentence_texts(titles: Sequence[str], abstracts: Sequence[str], abstract_chars: int) -> list[str]:
    """The text that the encoder reads for each paper: "A parser. It parses"."""
    return [
        f"{_plain(title, MAX_TITLE_CHARS)}. {_plain(abstract, MAX_ABSTRACT_CHARS)[:abstract_chars]}".strip()
        for title, abstract in zip(titles, abstracts, strict=True)
    ]


def document_vectors(averages_NW: Floats, sentences_NP: Floats, share: float) -> Floats:
    """``[sqrt(1 - s) words ; sqrt(s) sentences]``, ``[N, W + P]``; inner products are weighted sums of cosines."""
    scales = np.sqrt(np.array([1 - share, share], dtype=np.float32))
    width = averages_NW.shape[1]
    both = np.empty((len(averages_NW), width + sentences_NP.shape[1]), dtype=np.float32)  # large for many papers
    np.multiply(scales[0], averages_NW, out=both[:, :width])
    np.multiply(scales[1], sentences_NP, out=both[:, width:])
    return both

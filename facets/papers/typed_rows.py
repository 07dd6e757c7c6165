"""The words of a paper that the model reads, each with its type: title or abstract (Chang 2022, B.5).

A typed row is a vocabulary row for a word of the title, and the row plus ``V + 1`` for one of the abstract;
row ``V`` of either half is the unknown word. Stop words and punctuation are left out: half of the words of
an abstract, and half of the time, for nothing that tells papers apart.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets.language.tokenizer import Tokenizer
from facets.language.vocabulary import Vocabulary

__all__ = ["MAX_ABSTRACT_CHARS", "MAX_TITLE_CHARS", "typed_rows"]

# Characters that are looked at: many times what any model reads.
MAX_TITLE_CHARS = 2_000
MAX_ABSTRACT_CHARS = 20_000


def typed_rows(
    tokenizer: Tokenizer, vocabulary: Vocabulary, titles: Sequence[str], abstracts: Sequence[str]
) -> list[NDArray[np.uint16]]:
    """Typed rows of papers, title first.

    Args:
        tokenizer: Splits texts into words.
        vocabulary: At most 32,766 words.
        titles: One a paper; a title of nothing but stop words keeps them.
        abstracts: One a paper, may be empty.

    Returns:
        One uint16 array ``[L]`` a paper; not empty where the title has a token.

    Example:
        >>> vocabulary = Vocabulary(["the", "parser", "works"], np.array([3, 2, 1]))
        >>> [rows.tolist() for rows in typed_rows(Tokenizer(), vocabulary, ["The parser"], ["The new parser."])]
        [[1, 7, 5]]
    """
    title_words = tokenizer.words([title[:MAX_TITLE_CHARS] for title in titles])
    abstract_words = tokenizer.words([abstract[:MAX_ABSTRACT_CHARS] for abstract in abstracts])
    result = []
    for title, abstract in zip(title_words, abstract_words, strict=True):
        title_rows = _content_rows(vocabulary, title)
        if not len(title_rows):
            title_rows = vocabulary.rows(title)
        abstract_rows = _content_rows(vocabulary, abstract) + len(vocabulary) + 1
        result.append(np.concatenate([title_rows, abstract_rows]).astype(np.uint16))
    return result


def _content_rows(vocabulary: Vocabulary, words: Sequence[str]) -> NDArray[np.int64]:
    """Rows of the words that are neither stop words nor punctuation; unknown words stay."""
    rows = vocabulary.rows(words)
    is_word = np.fromiter((any(map(str.isalnum, word)) for word in words), dtype=np.bool_, count=len(words))
    return rows[np.where(rows == vocabulary.unknown_row, is_word, ~vocabulary.is_stop[rows])]

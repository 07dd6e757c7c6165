"""Papers as arrays: word rows with their type, and the pairs of papers with authors and citing papers.

Shape letters: I papers, T words of all papers, P pairs, J authors or citing papers, V words.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.language.tokenizer import Tokenizer
from facets.language.vocabulary import Vocabulary
from facets.papers.inputs import CandidateKind, Paper
from facets.papers.typed_rows import typed_rows
from facets_lab.papers.training.config import PaperTrainingConfig

__all__ = ["Interactions", "PaperCorpus", "build_corpus", "build_vocabulary"]

_TEXTS_AT_A_TIME = 4096


@dataclass(frozen=True, slots=True)
class Interactions:
    """The ones of a matrix of papers and authors (or citing papers), by paper.

    Attributes:
        ids: ``J`` ids of the columns, sorted.
        names: ``J`` names to show.
        papers: ``[P]`` int64, ascending.
        columns: ``[P]`` int64.
        weights: ``[P]`` float32, inverse of the column's number of papers, of mean 1 (r of eq. 3.12).
    """

    ids: list[str]
    names: list[str]
    papers: NDArray[np.int64]
    columns: NDArray[np.int64]
    weights: NDArray[np.float32]

    def offsets(self, num_papers: int) -> NDArray[np.int64]:
        """``[I + 1]``: pairs of paper ``i`` are ``offsets[i]:offsets[i + 1]``."""
        return np.searchsorted(self.papers, np.arange(num_papers + 1)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class PaperCorpus:
    """A file of papers, ready to train on.

    Attributes:
        papers: In the order of the file.
        vocabulary: The ``V`` words.
        rows: ``[T]`` uint16, typed rows (``facets.papers.typed_rows``), titles first.
        offsets: ``[I + 1]`` int64, words of paper ``i`` are ``rows[offsets[i]:offsets[i + 1]]``.
        interactions: By kind.
    """

    papers: Sequence[Paper]
    vocabulary: Vocabulary
    rows: NDArray[np.uint16]
    offsets: NDArray[np.int64]
    interactions: dict[CandidateKind, Interactions]

    def __len__(self) -> int:
        """I."""
        return len(self.papers)


def build_vocabulary(papers: Sequence[Paper], *, min_count: int, max_words: int) -> Vocabulary:
    """The words of titles and abstracts, most frequent first, ties by word.

    Raises:
        InvalidInputError: No word is frequent enough.
    """
    counts: Counter[str] = Counter()
    tokenizer = Tokenizer()
    for first in range(0, len(papers), _TEXTS_AT_A_TIME):
        part = papers[first : first + _TEXTS_AT_A_TIME]
        for words in tokenizer.words([f"{paper.title} \n {paper.abstract}" for paper in part]):
            counts.update(words)
    kept = sorted((word for word, count in counts.items() if count >= min_count), key=lambda w: (-counts[w], w))
    kept = kept[:max_words]
    if not kept:
        raise InvalidInputError(f"expected a word that occurs {min_count} times in the papers, got none")
    return Vocabulary(kept, np.array([counts[word] for word in kept]), total_count=counts.total())


def build_corpus(papers: Sequence[Paper], vocabulary: Vocabulary, config: PaperTrainingConfig) -> PaperCorpus:
    """Word rows and interactions of papers.

    Raises:
        InvalidInputError: No author wrote, and no paper cites, as many papers as the settings ask for.
    """
    tokenizer = Tokenizer()
    rows: list[NDArray[np.uint16]] = []
    for first in range(0, len(papers), _TEXTS_AT_A_TIME):
        part = papers[first : first + _TEXTS_AT_A_TIME]
        rows += typed_rows(tokenizer, vocabulary, [p.title for p in part], [p.abstract for p in part])
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in rows])]).astype(np.int64)
    titles = {paper.id: paper.title for paper in papers}
    names = {author.key: author.name for paper in papers for author in paper.authors}
    interactions = {
        CandidateKind.AUTHORS: _interactions(
            [tuple(author.key for author in paper.authors) for paper in papers], names, config.min_author_papers
        ),
        CandidateKind.CITATIONS: _interactions(
            [paper.cited_by_ids for paper in papers], titles, config.min_cited_papers
        ),
    }
    if not any(len(pairs.ids) for pairs in interactions.values()):
        raise InvalidInputError(
            f"expected an author of {config.min_author_papers} papers or a paper that cites "
            f"{config.min_cited_papers}, got none in {len(papers)} papers"
        )
    return PaperCorpus(papers, vocabulary, np.concatenate(rows), offsets, interactions)


def _interactions(columns_of: Sequence[tuple[str, ...]], names: dict[str, str], min_papers: int) -> Interactions:
    counts = Counter(key for keys in columns_of for key in set(keys))
    ids = sorted(key for key, count in counts.items() if count >= min_papers)
    column = {key: number for number, key in enumerate(ids)}
    pairs = [(row, column[key]) for row, keys in enumerate(columns_of) for key in sorted(set(keys)) if key in column]
    papers, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()
    frequency = np.array([counts[key] for key in ids], dtype=np.float64)
    weights = 1.0 / frequency[columns]
    weights /= weights.mean() if len(weights) else 1.0
    return Interactions(ids, [names.get(key, "") for key in ids], papers, columns, weights.astype(np.float32))

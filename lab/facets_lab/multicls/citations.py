"""Papers by their titles and who cites whom: Multi2SPE with K class tokens, against MiniLM and words (section 5.3).

Shape suffixes: N papers, D dimensions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import average_precision_score, ndcg_score

from facets.errors import InvalidInputError
from facets.language.vectors import unit_rows
from facets.papers.records import Paper

_POSITIVES = 5  # of a query
_NEGATIVES = 500
Vectors = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Citations:
    """Who cites whom, by titles.

    Attributes:
        pairs: Title of a paper and of one that it cites, to learn from.
        queries: Held-out citing papers: title, titles that they cite, titles that they do not cite.
    """

    pairs: list[tuple[str, str]]
    queries: list[tuple[str, list[str], list[str]]]


def read_citations(papers: Sequence[Paper], *, num_queries: int, seed: int = 0) -> Citations:
    """Splits citing papers into those that are learned from and those that are asked for.

    Args:
        papers: With ``cited_by_ids``; citing papers that are not among them are left out.
        num_queries: Held-out citing papers; each is asked for five of its papers at most among the same 500 others.
        seed: Which are held out.

    Raises:
        InvalidInputError: There are not twice as many citing papers.
    """
    titles = {paper.id: paper.title for paper in papers}
    cited: dict[str, list[str]] = {}
    for paper in papers:
        for citing in paper.cited_by_ids:
            if citing in titles and citing != paper.id:
                cited.setdefault(citing, []).append(paper.id)
    if len(cited) < 2 * num_queries:
        raise InvalidInputError(f"expected {2 * num_queries} papers that cite others, got {len(cited)}")
    random = np.random.default_rng(seed)
    order = [list(cited)[place] for place in random.permutation(len(cited))]
    all_cited = sorted({key for keys in cited.values() for key in keys})
    drawn = random.choice(len(all_cited), min(_NEGATIVES, len(all_cited)), replace=False)  # the same for all: read once
    queries = []
    for citing in order[:num_queries]:
        right = [cited[citing][place] for place in random.permutation(len(cited[citing]))[:_POSITIVES]]
        wrong = [all_cited[place] for place in drawn if all_cited[place] not in {*cited[citing], citing}]
        queries.append((titles[citing], [titles[key] for key in right], [titles[key] for key in wrong]))
    pairs = [(titles[citing], titles[key]) for citing in order[num_queries:] for key in cited[citing]]
    return Citations(pairs, queries)


def ranking_figures(citations: Citations, vectors_of: Vectors) -> dict[str, float]:
    """``map`` and ``ndcg`` times 100 of ranking by cosine, each query's positives among its negatives (table 5.5)."""
    titles = sorted({title for query, right, wrong in citations.queries for title in (query, *right, *wrong)})
    row = {title: place for place, title in enumerate(titles)}
    units_ND = unit_rows(np.asarray(vectors_of(titles), np.float32))
    found: list[tuple[float, float]] = []
    for query, right, wrong in citations.queries:
        scores = units_ND[[row[title] for title in (*right, *wrong)]] @ units_ND[row[query]]
        is_right = np.arange(len(scores)) < len(right)
        found.append((average_precision_score(is_right, scores), ndcg_score(is_right[None], scores[None])))
    means = np.mean(found, axis=0)
    return {"map": 100 * float(means[0]), "ndcg": 100 * float(means[1])}


def by_words(citations: Citations) -> Mapping[str, float]:
    """The same by the words of titles (TF-IDF)."""
    words = TfidfVectorizer(sublinear_tf=True).fit([title for pair in citations.pairs for title in pair])
    return ranking_figures(citations, lambda titles: words.transform(titles).toarray())

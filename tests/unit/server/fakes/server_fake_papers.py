"""A fake engine for papers: the words a paper shares with what a candidate wrote or cites."""

import threading
from collections import Counter
from types import SimpleNamespace

import numpy as np
from facets_server.papers.served import ServedPapers
from server_fakes import FakeInfo

from facets.errors import InvalidInputError, NotFoundError
from facets.papers.records import (
    AddResult,
    Author,
    BulkCandidates,
    CandidateEvidence,
    CandidateKind,
    NewAuthor,
    Paper,
    PaperFacets,
    PaperOptions,
    RankedCandidate,
    RankedPaper,
)

NUM_FACETS = 2
WORDS = "boat river sea music song piano king queen war bread cheese wine".split()
TRAINED = (
    Paper("boat river", "sea", "p1", (Author("Ann"), Author("Bob", "bob-1")), ("c1",), 2001),
    Paper("music song", "piano", "p2", (Author("Cat"),), ("c1", "c2"), 2005),
    Paper("king queen", "war", "p3", (Author("Bob", "bob-1"),), ("c2",), 2010),
)


class FakePaperEngine:
    """Has the methods of ``PaperEngine``.

    Attributes:
        batches: Papers of each call so far.
        gate: Work waits while it is cleared.
        slow: Additions of a paper with this word in its title alone wait for the gate, when it is set.
        poison: Word that makes work fail.
    """

    def __init__(self):
        self.papers = {paper.id: paper for paper in TRAINED}
        self.batches = []
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()
        self.slow = ""
        self.poison = ""

    def hold(self):
        """Work waits for the gate from now on; ``started`` tells when some has come so far."""
        self.started.clear()
        self.gate.clear()

    def close(self):
        pass

    @property
    def state(self):
        tables = {}
        for kind in CandidateKind:
            known = self._known(kind)
            names = {name: [row] for row, (name, _) in enumerate(known.values())}
            tables[kind] = SimpleNamespace(row_of_id={key: row for row, key in enumerate(known)}, rows_of_name=names)
        return SimpleNamespace(tables=tables)

    def _known(self, kind):
        """Id -> name, papers."""
        known = {}
        for paper in self.papers.values():
            pairs = [(a.key, a.name) for a in paper.authors]
            if kind is CandidateKind.CITATIONS:
                pairs = [(c, self.papers[c].title if c in self.papers else "") for c in paper.cited_by_ids]
            for key, name in pairs:
                known.setdefault(key, (name, []))[1].append(paper)
        return known

    def size(self, kind):
        return len(self._known(kind))

    def find(self, kind, text, *, top_k=10):
        wanted = set(text.lower())
        near = sorted(self._known(kind).items(), key=lambda item: -len(wanted & set(item[1][0].lower() + item[0])))
        return [(key, name) for key, (name, _) in near[:top_k]]

    def encode(self, papers):
        self.batches.append(len(papers))
        self.started.set()
        if not self.slow or any(self.slow in paper.title for paper in papers):
            assert self.gate.wait(30), "the test forgot to open the gate"
        rows = []
        for i, paper in enumerate(papers):
            if not paper.title.strip():
                raise InvalidInputError("has no words", path=("papers", i, "title"))
            if self.poison and self.poison in paper.title:
                raise RuntimeError(f"cannot read {self.poison}")
            rows.append([_counts(paper.title), _counts(paper.abstract)])
        facets = np.array(rows, np.float32).reshape(-1, NUM_FACETS, len(WORDS))
        ones = np.ones(facets.shape[:2], np.float32)
        return PaperFacets(facets, ones, ones, facets.sum(axis=1))

    def _scores(self, kind, papers, options):
        encoded = papers if isinstance(papers, PaperFacets) else self.encode(papers)
        known = self._known(kind)
        for name in (*options.positive_ids, *options.negative_ids):
            if name not in known:
                raise InvalidInputError(f"is unknown: {name!r}", path=("positive_ids", 0))
        ids = sorted(known)
        vectors = np.array([sum(_counts(p.title) + _counts(p.abstract) for p in known[i][1]) for i in ids])
        examples = sum((vectors[ids.index(i)] for i in options.positive_ids), np.zeros(len(WORDS)))
        bonus = options.example_weight * (vectors @ examples)
        facet_scores = np.maximum((encoded.facets @ vectors.T).max(axis=1), 0)
        return ids, known, facet_scores, facet_scores + bonus, encoded

    def _allowed(self, options, papers, ids, known):
        kept = np.ones((len(papers), len(ids)), bool)
        for j, key in enumerate(ids):
            name, written = known[key]
            years = [p.year for p in written if p.year is not None]
            ok = not {key, name} & set(options.excluded_ids)
            ok &= options.candidates is None or bool({key, name} & set(options.candidates))
            ok &= options.from_year is None or any(y >= options.from_year for y in years)
            ok &= options.to_year is None or any(y <= options.to_year for y in years)
            for i, paper in enumerate(papers):
                kept[i, j] = ok and not {key, name} & set(paper.excluded_ids)
        return kept

    def _recommend(self, kind, papers, options):
        options = options or PaperOptions()
        ids, known, facet_scores, scores, encoded = self._scores(kind, papers, options)
        kept = self._allowed(options, papers, ids, known)
        results = []
        for i in range(len(papers)):
            order = sorted(np.flatnonzero(kept[i]), key=lambda j: (-scores[i, j], ids[j]))[: options.top_k]
            results.append(
                [
                    RankedCandidate(
                        ids[j],
                        known[ids[j]][0],
                        float(scores[i, j]),
                        float(facet_scores[i, j]),
                        0.5,
                        _evidence(encoded.facets[i], known[ids[j]][1]) if options.evidence else None,
                    )
                    for j in order
                ]
            )
        return results

    def recommend_authors(self, papers, options=None):
        return self._recommend(CandidateKind.AUTHORS, papers, options)

    def recommend_citations(self, papers, options=None):
        return self._recommend(CandidateKind.CITATIONS, papers, options)

    def recommend_bulk(self, kind, papers, options=None):
        options = options or PaperOptions()
        results = self._recommend(kind, papers, options)
        ids = sorted(self._known(kind))
        rows = np.full((len(papers), options.top_k), -1, np.int64)
        scores = np.full(rows.shape, -np.inf, np.float32)
        for i, found in enumerate(results):
            for j, item in enumerate(found):
                rows[i, j], scores[i, j] = ids.index(item.id), item.score
        return BulkCandidates(ids, rows, scores)

    def rank_papers(self, kind, ids, papers, *, options=None):
        options = options or PaperOptions()
        known_ids, known, facet_scores, scores, encoded = self._scores(kind, papers, options)
        rankings = []
        for wanted in ids:
            keys = [key for key in known_ids if wanted in (key, known[key][0])]
            if not keys:
                near = ", ".join(key for key, _ in self.find(kind, wanted, top_k=2))
                resource = "author" if kind is CandidateKind.AUTHORS else "citing_paper"
                raise NotFoundError(
                    f"{resource} {wanted!r} is unknown, near: {near}", resource_type=resource, resource_name=wanted
                )
            j = known_ids.index(keys[0])
            rows = [i for i in range(len(encoded)) if isinstance(papers, PaperFacets) or self._fits(papers[i], options)]
            rows = sorted(rows, key=lambda i: (-scores[i, j], i))[: options.top_k]
            rankings.append(
                [
                    RankedPaper(
                        i,
                        "" if isinstance(papers, PaperFacets) else papers[i].id,
                        float(scores[i, j]),
                        float(facet_scores[i, j]),
                        0.5,
                        _evidence(encoded.facets[i], known[keys[0]][1]) if options.evidence else None,
                    )
                    for i in rows
                ]
            )
        return rankings

    @staticmethod
    def _fits(paper, options):
        if paper.id in options.excluded_ids:
            return False
        low, high = options.from_year, options.to_year
        if low is None and high is None:
            return True
        return paper.year is not None and (low or 0) <= paper.year <= (high or 9999)

    def add_papers(self, papers):
        self.encode(papers)
        unknown = tuple(c for p in papers for c in p.cited_by_ids if c not in self.papers)
        self.papers |= {paper.id: paper for paper in papers}
        return AddResult(
            len(papers),
            len({a.key for p in papers for a in p.authors}),
            len({c for p in papers for c in p.cited_by_ids}),
            unknown,
        )

    def add_authors(self, authors):
        assert all(isinstance(author, NewAuthor) for author in authors)
        for author in authors:
            for paper_id in author.paper_ids:
                if paper_id not in self.papers:
                    raise NotFoundError(f"paper {paper_id!r} is unknown", resource_type="paper", resource_name=paper_id)
        for author in authors:
            for number, paper in enumerate(author.papers):
                key = f"{author.author.key}#{number}"
                self.papers[key] = Paper(paper.title, paper.abstract, key, (author.author,))
        return AddResult(sum(len(author.papers) for author in authors), len(authors))


def _counts(text):
    counted = Counter(text.lower().split())
    return np.array([counted[word] for word in WORDS], np.float32)


def _evidence(facets, written):
    facet = int(facets.sum(axis=1).argmax())
    best = int(facets[facet].argmax())
    return CandidateEvidence(facet, ((WORDS[best], 0.9),), tuple((paper.id, paper.title, 0.7) for paper in written[:2]))


def served_papers(name="papers"):
    """A fake engine for papers as the server wants one, and the fake."""
    engine = FakePaperEngine()
    info = FakeInfo(
        name=name,
        revision="p1",
        space="fake",
        task="papers",
        num_facets=NUM_FACETS,
        dim=len(WORDS),
        max_tokens=64,
        vocabulary_size=len(WORDS),
    )
    return ServedPapers(info, engine), engine

"""Papers added since the training and who is concerned by them; kept by the writer alone."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from facets.papers.inputs import CandidateKind, Paper
from facets.papers.trained import TrainedLookup

__all__ = ["AddedPapers", "Change", "candidates_of"]

# By kind and candidate: papers in order, as the keys of a dictionary.
_Members = dict[CandidateKind, dict[str, dict[str, None]]]


@dataclass(frozen=True, slots=True)
class Change:
    """What one call adds.

    Attributes:
        papers: By id; one of a known id takes the old one's place.
        given: Author and paper: papers of an author beyond those that name him or her.
        named: By kind and candidate, the papers of this change that name it.
        given_to: By author, what ``given`` says.
    """

    papers: Mapping[str, Paper]
    given: frozenset[tuple[str, str]] = frozenset()
    named: _Members = field(init=False)
    given_to: dict[str, set[str]] = field(init=False)

    def __post_init__(self) -> None:
        named: _Members = {kind: {} for kind in CandidateKind}
        for paper in self.papers.values():
            for kind, key in candidates_of(paper):
                named[kind].setdefault(key, {})[paper.id] = None
        given_to: dict[str, set[str]] = {}
        for key, paper_id in self.given:
            given_to.setdefault(key, set()).add(paper_id)
        object.__setattr__(self, "named", named)
        object.__setattr__(self, "given_to", given_to)


_NOTHING = Change({})


class AddedPapers:
    """All papers added since the training, by id and by candidate.

    Args:
        trained: The papers of the training.

    Attributes:
        papers: By id, in the order of their latest addition.
    """

    def __init__(self, trained: TrainedLookup) -> None:
        self._trained = trained
        self.papers: dict[str, Paper] = {}
        self._named: _Members = {kind: {} for kind in CandidateKind}
        self._given: dict[str, set[str]] = {}
        self._given_by_paper: dict[str, set[str]] = {}

    def concerned(self, change: Change) -> dict[CandidateKind, list[str]]:
        """By kind, the candidates whose papers, or their texts, a change changes; each once."""
        found: dict[CandidateKind, dict[str, None]] = {kind: {} for kind in CandidateKind}
        for paper in change.papers.values():
            for kind, key in self._known_candidates(paper.id):
                found[kind][key] = None
        for kind, named in change.named.items():
            found[kind].update(dict.fromkeys(named))
        found[CandidateKind.AUTHORS].update(dict.fromkeys(change.given_to))
        return {kind: list(keys) for kind, keys in found.items()}

    def papers_of(self, kind: CandidateKind, key: str, change: Change = _NOTHING) -> list[str]:
        """Ids of a candidate's papers after a change: trained ones, added ones in order, those given by id."""
        named = [paper_id for paper_id in self._named[kind].get(key, ()) if paper_id not in change.papers]
        named += change.named[kind].get(key, ())
        seen = set(named)
        if kind is CandidateKind.AUTHORS:
            given = self._given.get(key, set()) | change.given_to.get(key, set())
            named += sorted(given - seen)
            seen |= given
        trained = [
            paper_id
            for paper_id in self._trained.papers_of(kind, key)
            if paper_id not in seen and paper_id not in self.papers and paper_id not in change.papers
        ]
        return trained + named

    def candidates(self, kind: CandidateKind) -> Iterable[str]:
        """Candidates with an added paper, or with one given by id."""
        given = self._given if kind is CandidateKind.AUTHORS else ()
        return dict.fromkeys([*self._named[kind], *given])

    def apply(self, change: Change) -> None:
        """Takes a change in."""
        for paper_id in change.papers:
            for kind, key in candidates_of(self.papers[paper_id]) if paper_id in self.papers else ():
                self._named[kind][key].pop(paper_id, None)
            self.papers.pop(paper_id, None)  # the latest addition counts
        self.papers.update(change.papers)
        for kind, named in change.named.items():
            for key, papers in named.items():
                self._named[kind].setdefault(key, {}).update(papers)
        for key, paper_id in change.given:
            self._given.setdefault(key, set()).add(paper_id)
            self._given_by_paper.setdefault(paper_id, set()).add(key)

    def _known_candidates(self, paper_id: str) -> Iterator[tuple[CandidateKind, str]]:
        """Who has a paper now: by its latest version, or by being given it."""
        if paper_id in self.papers:
            yield from candidates_of(self.papers[paper_id])
        else:
            yield from ((kind, key) for kind in CandidateKind for key in self._trained.candidates_of(kind, paper_id))
        yield from ((CandidateKind.AUTHORS, key) for key in sorted(self._given_by_paper.get(paper_id, ())))


def candidates_of(paper: Paper) -> list[tuple[CandidateKind, str]]:
    """Kind and id of everybody whom a paper names."""
    authors = [(CandidateKind.AUTHORS, author.key) for author in paper.authors]
    return authors + [(CandidateKind.CITATIONS, key) for key in paper.cited_by_ids]

"""The engine of papers around a made model: its two facets count the words of title and of abstract."""

import tempfile
import threading

import numpy as np
from facets_server.papers.service import ServedPapers

from facets.language.tokenizer import Tokenizer
from facets.language.vectors import WordVectors, unit_rows
from facets.language.vocabulary import Vocabulary
from facets.papers.engine import PaperEngine
from facets.papers.reading import typed_rows
from facets.papers.records import WEIGHTED_WORD, Author, Paper, PaperFacets
from facets.papers.trained import PaperTables, ScoringSettings, TrainedPapers

NUM_FACETS = 2
WORDS = "boat river sea music song piano king queen war bread cheese wine".split()
TRAINED = (
    Paper("boat river", "sea", "p1", (Author("Ann"), Author("Bob", "bob-1")), ("c1",), 2001),
    Paper("music song", "piano", "p2", (Author("Cat"),), ("c1", "c2"), 2005),
    Paper("king queen", "war", "p3", (Author("Bob", "bob-1"),), ("c2",), 2010),
)
_IDS = {"authors": ["Ann", "Cat", "bob-1"], "citations": ["c1", "c2"]}
_PAIRS = {"authors": [[0, 0], [1, 1], [0, 2], [2, 2]], "citations": [[0, 0], [1, 0], [1, 1], [2, 1]]}


class MadeModel:
    """What ``PaperEngine`` needs of a model."""

    task, revision, space = "papers", "p1", "fake"
    num_facets, dim, max_tokens, vocabulary_size = NUM_FACETS, len(WORDS), 64, len(WORDS)
    confidence = None

    def __init__(self, name):
        self.name = name
        self.tokenizer = Tokenizer()
        eye = np.eye(len(WORDS), dtype=np.float32)
        self.words = WordVectors(Vocabulary(WORDS, np.ones(len(WORDS), np.int64)), eye)
        rows = self.paper_rows([paper.title for paper in TRAINED], [paper.abstract for paper in TRAINED])
        self.papers = TrainedPapers(
            ids=[paper.id for paper in TRAINED],
            titles=[paper.title for paper in TRAINED],
            years=np.array([paper.year for paper in TRAINED], np.int32),
            rows=np.concatenate(rows),
            offsets=np.cumsum([0, *map(len, rows)]),
            column_ids=_IDS,
            column_names={"authors": ["Ann", "Cat", "Bob"], "citations": ["", ""]},
            pairs={kind: np.array(pairs) for kind, pairs in _PAIRS.items()},
        )
        counts = self.encode_papers(rows).facets.sum(axis=1)
        vectors = {kind: np.zeros((len(ids), len(WORDS)), np.float32) for kind, ids in _IDS.items()}
        for kind, pairs in _PAIRS.items():
            for paper, column in pairs:
                vectors[kind][column] += counts[paper]
        self.tables = PaperTables(vectors, dict.fromkeys(_IDS, eye))
        self.settings = ScoringSettings(facet_weights=dict.fromkeys(_IDS, 0.5))

    def paper_rows(self, titles, abstracts):
        return typed_rows(self.tokenizer, self.words.vocabulary, titles, abstracts)

    def sentence_vectors(self, titles, abstracts):
        return np.empty((len(titles), 0), np.float32)

    def passage_vectors(self, titles, abstracts):
        return np.empty((len(titles), 0), np.float32)

    def encode_papers(self, rows, sentences=None, passages=None):
        facets = np.zeros((len(rows), NUM_FACETS, len(WORDS) + 1), np.float32)
        for number, own in enumerate(rows):
            np.add.at(facets[number], np.divmod(own, len(WORDS) + 1), 1.0)
        facets, ones = facets[:, :, :-1], np.ones(facets.shape[:2], np.float32)
        documents = self.document_vectors(rows, sentences, facets)
        return PaperFacets(facets, ones, ones, documents, self.passage_vectors(rows, rows), self.weighted_words(rows))

    def weighted_words(self, rows):
        return np.empty((len(rows), 0), WEIGHTED_WORD)

    def document_vectors(self, rows, sentences, facets=None):
        facets = self.encode_papers(rows).facets if facets is None else facets
        return unit_rows(facets.sum(axis=1))

    def trained_documents(self):
        return self.document_vectors(np.split(self.papers.rows, self.papers.offsets[1:-1]), None)

    def words_as_facets(self, rows_V):
        return np.eye(len(WORDS), dtype=np.float32)[rows_V]


class GatedEngine(PaperEngine):
    """The engine, whose work can be made to wait.

    Attributes:
        batches: Papers of each call so far.
        gate: Work waits while it is cleared.
        slow: When it is set, additions of a paper with this word in its title wait for the gate, and nothing else does.
    """

    def __init__(self, model):
        self._folder = tempfile.TemporaryDirectory()
        super().__init__(model, data_dir=self._folder.name)
        self.batches = []
        self.gate, self.started = threading.Event(), threading.Event()
        self.gate.set()
        self.slow = ""

    def close(self):
        super().close()
        self._folder.cleanup()

    def hold(self):
        """Work waits for the gate from now on; ``started`` tells when some has come so far."""
        self.started.clear()
        self.gate.clear()

    def _wait(self, papers):
        self.started.set()
        if not self.slow or any(self.slow in paper.title for paper in papers):
            assert self.gate.wait(30), "the test forgot to open the gate"

    def encode(self, papers, *, passages=False):
        self.batches.append(len(papers))
        self._wait(papers)
        return super().encode(papers, passages=passages)

    def add_papers(self, papers):
        self._wait(papers)
        return super().add_papers(papers)


def served_papers(name="papers"):
    """A served engine around a made model, and the engine."""
    engine = GatedEngine(MadeModel(name))
    return ServedPapers(engine.model, engine), engine

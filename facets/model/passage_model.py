"""Facets of queries: a short one is one vector, a long one and several questions have a vector for each sentence.

A sentence of a long query stands for what it says and for what it means here: its facet is the mean of its vector when
read alone and of its vector among the others. Shape suffixes: Q queries, J facets of a query, P parts of all queries,
D dimensions.

The model of passages: texts in; facets, their spans, and sentence vectors of one space out.

Shape suffixes: N texts, Q queries, J facets of a query, K facets, D dimensions.
"""

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from facets.language.reading import read
from facets.language.sentences import Sentence
from facets.language.tokenizer import check_sequence
from facets.language.vectors import WordVectors, unit_rows
from facets.model.base import CheckpointModel
from facets.model.checkpoint import FilesRead, fit_weights, read_config
from facets.model.passage_checkpoint import (
    PASSAGE_FILES,
    PassageModelConfig,
    read_passage_weights,
    read_passage_words,
    read_word_pieces,
    write_passage_checkpoint,
)
from facets.model.passage_encoding import PassageEncoder, TextFacets
from facets.model.passage_network import PassageNetwork
from facets.model.precision import fastest_precision, wants_int8
from facets.model.score_curves import ScoreCurves, read_score_curves
from facets.model.word_pieces import Pieces, WordPieces

_FIRST_CHARS = 200  # nearly every text without letters has a piece here
_WORD_CHARACTER = re.compile(r"\w")
_SHORT_PIECES = 64
_SHORTEST_PART = 12  # pieces; a shorter sentence is one part with the next
_SHORTEST_QUESTION = 4
_HEADING_SHARE = 0.35  # of a facet; chosen on the six files of docs/use/search.md, 0.3 to 0.4 are alike
MAX_QUERY_FACETS = 16


@dataclass(frozen=True, slots=True)
class QueryFacets:
    """What ``PassageModel.encode_queries`` gives."""

    # `[Q, J, D]` float32, unit norm; zero rows where a query has fewer facets. A short query has one, its own vector.
    facets: NDArray[np.float32]
    weights: NDArray[np.float32]  # `[Q, J]` float32, what each facet counts: they add up to 1, and are 0 for zero rows
    # `[Q]`, whether the facets are several questions, of which a document may answer any.
    are_questions: NDArray[np.bool_]


def query_parts(pieces: Pieces, sentences: Sequence[Sentence]) -> NDArray[np.int64]:
    """Where the parts of a query begin that have facets of their own.

    A short query is one part, several questions are one each, and a long query has its sentences.

    ``pieces``: the query, at least one piece. ``sentences``: its sentences, in order. Returns the first piece of each
    part, and the number of all pieces at the end; at most 16 parts.
    """
    several = are_questions(sentences)
    if len(pieces) <= _SHORT_PIECES and not several:
        return np.array([0, len(pieces)])
    shortest = _SHORTEST_QUESTION if several else _SHORTEST_PART
    starts = np.searchsorted(pieces.starts, [sentence.start for sentence in sentences[1:]])
    kept = [0]
    for start in starts.tolist():
        if start - kept[-1] >= shortest and len(pieces) - start >= shortest:
            kept.append(start)
    bounds = np.array([*kept, len(pieces)])
    if len(kept) > MAX_QUERY_FACETS:
        wanted = np.linspace(0, len(pieces), MAX_QUERY_FACETS + 1)
        bounds = np.unique(bounds[np.abs(bounds[:, None] - wanted).argmin(axis=0)])
    return bounds


def are_questions(sentences: Sequence[Sentence]) -> bool:
    """Whether a query is several questions and nothing else."""
    return len(sentences) > 1 and all(sentence.text.rstrip("\"')\u201d\u2019").endswith("?") for sentence in sentences)


def _read_pieces(encoder: WordPieces, texts: Sequence[str]) -> list[Pieces]:
    """Pieces of what texts say, with their offsets in the texts as they were given."""
    check_sequence(texts, "encode")
    readings = [read(text) for text in texts]
    found = encoder.encode([reading.text for reading in readings])
    for place, (reading, own) in enumerate(zip(readings, found, strict=True)):
        if reading.places is not None:
            starts, ends = reading.original(np.stack((own.starts, own.ends), axis=1)).T
            found[place] = Pieces(own.ids, starts, ends)
    return found


def join_parts(vectors_PD: NDArray[np.float32], num_parts: Sequence[int], several: Sequence[bool] = ()) -> QueryFacets:
    """Facets of queries of the vectors of their parts, which all count the same.

    ``vectors_PD``: unit vectors, those of one query one after another. ``num_parts``: parts of each query, at least 1.
    ``several``: whether each query is several questions; empty: none is.
    """
    counts_Q = np.array(num_parts, dtype=np.int64)
    is_part_QJ = np.arange(max(num_parts, default=1)) < counts_Q[:, None]
    facets_QJD = np.zeros((*is_part_QJ.shape, vectors_PD.shape[1]), dtype=np.float32)
    facets_QJD[is_part_QJ] = vectors_PD
    weights_QJ = (is_part_QJ / counts_Q[:, None]).astype(np.float32)
    return QueryFacets(
        facets_QJD, weights_QJ, np.array(several or [False] * len(counts_Q), dtype=np.bool_) & (counts_Q > 1)
    )


@dataclass(frozen=True, slots=True)
class PassageFacets:
    """What ``PassageModel.encode_passages`` gives."""

    facets: NDArray[np.float32]  # `[N, K, D]` float32, unit norm; zero rows where a text has fewer facets
    # `[N, K, 2]` int32: where each facet attends, as offsets of characters `[start, end)` of the text as it was given;
    # (0, 0) for zero rows, never empty for others.
    spans: NDArray[np.int32]
    num_tokens: NDArray[np.int64]  # `[N]` int64, word pieces of each text
    num_read: NDArray[np.int64]  # `[N]` int64, those that were read: all
    # Facets `[M, D]` and spans `[M, 2]` of the long texts whose documents keep more than K, by place.
    kept: Mapping[int, tuple[NDArray[np.float32], NDArray[np.int32]]] = field(default_factory=dict)

    def document(self, place: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """What a document keeps of the text at this place: K facets and their spans, more where it is long."""
        return self.kept.get(place, (self.facets[place], self.spans[place]))


_shared: "WeakValueDictionary[tuple[object, ...], PassageModel]" = WeakValueDictionary()  # by folder, device and files
_loading = threading.Lock()


class PassageModel(CheckpointModel[PassageNetwork, PassageModelConfig]):
    """Turns passages into facets and queries into vectors of the same space; meets ``facets.model.contract.Model``.

    A text gives the same facets alone and among others, up to the rounding of the processor: cosines of 0.9998 and more
    where it multiplies bfloat16. Where it does not, the encoder multiplies whole numbers, and cosines with float32 are
    0.998.

    Attributes:
        config: What the checkpoint says about itself.
        network: The PyTorch module, in evaluation mode.
        words: Words with vectors in the space of the facets.
        pieces: The word-piece tokenizer.
        tokenizer: Sentence and token splitting.
        revision: Changes when anything that decides an answer changes.
        score_curves: What similarity scores mean, ``[2, N]`` a method; empty when none were fitted.
    """

    def __init__(
        self,
        network: PassageNetwork,
        words: WordVectors,
        *,
        pieces: WordPieces,
        config: PassageModelConfig,
        revision: str = "unsaved",
        score_curves: ScoreCurves | None = None,
        device: str = "cpu",
    ) -> None:
        super().__init__(network, words, config=config, revision=revision, device=device, precision=fastest_precision)
        if wants_int8(self._device):
            self.network.encoder.use_int8()
        self.pieces = pieces
        self.score_curves = dict(score_curves or {})
        self._encoder = PassageEncoder(self.network, pieces, config=config, device=self._device)

    @property
    def space(self) -> str:
        """Name of the space of its vectors; models of one space search each other's collections."""
        return self.config.space

    @property
    def common_components(self) -> dict[str, NDArray[np.float32]]:
        """None: SIF is for word vectors."""
        return {}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Facet embeddings of documents.

        Args:
            texts: Any number of texts of any length, each with at least one character that is not white space.

        Returns:
            ``[len(texts), K, D]`` float32, in the order of the texts: unit norm, in the order of where they attend;
            zero rows at the end where a text has fewer facets.

        Raises:
            InvalidInputError: A text has no word at all.
            TypeError: ``texts`` is one ``str``.
        """
        return self.encode_passages(texts).facets

    def encode_passages(self, texts: Sequence[str]) -> PassageFacets:
        """Facet embeddings of documents and the span of the text that each attends to.

        Args:
            texts: As for ``encode``.

        Returns:
            See ``PassageFacets``. A text of more than K sentences or of several windows is read in runs, whose facets
            are reduced to K, and to one for ``tokens_per_long_facet`` tokens for its document; a reduced facet has the
            span of the facet that is closest to it. What stands under a heading has a share of what that says.

        Raises:
            InvalidInputError: A text has no word at all.
            TypeError: ``texts`` is one ``str``.

        Example:
            >>> import facets
            >>> model = facets.load("facets-passages-en", PassageModel)
            >>> passages = model.encode_passages(["Ada Lovelace wrote the first program. Her father was Lord Byron."])
            >>> passages.facets.shape, int(passages.facets.any(axis=2).sum()), passages.num_read.tolist()
            ((1, 16, 384), 2, [14])
        """
        pieces = self._nonempty(_read_pieces(self.pieces, texts))
        starts = [self._sentence_starts(text, own) for text, own in zip(texts, pieces, strict=True)]
        found = self._encoder.facets(pieces, starts)
        self._say_headings(texts, found)
        num_tokens_N = np.array([len(own) for own in pieces], dtype=np.int64)
        return PassageFacets(found.facets, found.spans, num_tokens_N, num_tokens_N.copy(), found.kept)

    def _say_headings(self, texts: Sequence[str], found: TextFacets) -> None:
        """Adds to each facet, in place, what the heading says that stands over its sentence: "Who does not pays 15".

        The title, with which a text begins, says what all of its facets have in common already.
        """
        readings = {place: own for place, own in enumerate(map(read, texts)) if len(own.headings)}
        if not readings:
            return
        said = [texts[place][a:b] for place, own in readings.items() for a, b in own.headings.tolist()]
        ids = [own.ids for own in _read_pieces(self.pieces, said)]
        vectors_HD = np.zeros((len(ids), self.dim), dtype=np.float32)  # of marks alone
        worded = [place for place, row in enumerate(ids) if len(row)]
        vectors_HD[worded] = self._encoder.vectors([ids[place] for place in worded])
        last = np.cumsum([len(own.headings) for own in readings.values()])
        for (place, reading), own_HD in zip(readings.items(), np.split(vectors_HD, last[:-1]), strict=True):
            has_title = reading.origins is not None and reading.origins[0] == reading.headings[0, 0]
            few = (found.facets[place], found.spans[place])
            for facets_KD, spans_K2 in (few, found.kept[place]) if place in found.kept else (few,):
                above_K, ends_K = reading.headings_above(spans_K2)
                under = np.flatnonzero(facets_KD.any(axis=1) & (above_K >= has_title) & (spans_K2[:, 0] >= ends_K))
                mixed = (1 - _HEADING_SHARE) * facets_KD[under] + _HEADING_SHARE * own_HD[above_K[under]]
                facets_KD[under] = unit_rows(mixed)

    def encode_queries(self, texts: Sequence[str]) -> QueryFacets:
        """Facets of queries.

        Args:
            texts: Queries of any length, each with at least one character that is not white space.

        Returns:
            See ``QueryFacets``: the query's own vector, or those of sentences of a long one or of several questions.

        Raises:
            InvalidInputError: A text has no word at all.
            TypeError: ``texts`` is one ``str``.

        Example:
            >>> import facets
            >>> model = facets.load("facets-passages-en", PassageModel)
            >>> model.encode_queries(["Who wrote the first program?"]).weights.tolist()
            [[1.0]]
        """
        pieces = self._nonempty(_read_pieces(self.pieces, texts))
        sentences = [self.tokenizer.sentences(text) for text in texts]
        bounds = [query_parts(own, said) for own, said in zip(pieces, sentences, strict=True)]
        vectors_PD = self._encoder.part_vectors(pieces, bounds)
        return join_parts(vectors_PD, [len(cut) - 1 for cut in bounds], [are_questions(said) for said in sentences])

    def problem(self, text: str) -> str:
        """Why it cannot read a text that is not blank, as the rule of an error; empty: it can.

        A text without letters and digits may have no piece of a word at all, such as one of invisible characters.
        """
        if _WORD_CHARACTER.search(text):
            return ""
        if any(len(self.pieces.ids([part])[0]) for part in (text.strip()[:_FIRST_CHARS], text)):
            return ""
        return "has no words, expected at least one"

    def _sentence_starts(self, text: str, pieces: Pieces) -> NDArray[np.int64]:
        """The first piece of each sentence."""
        starts = np.searchsorted(pieces.starts, [sentence.start for sentence in self.tokenizer.sentences(text)])
        return np.unique(starts[starts < len(pieces)])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector a text: that of the sentence encoder.

        Args:
            texts: As for ``encode``; a text longer than a window has the mean of all its states.

        Returns:
            ``[len(texts), D]`` float32, unit norm, in the order of the texts.

        Raises:
            InvalidInputError: A text has no word at all.
            TypeError: ``texts`` is one ``str``.
        """
        return self._encoder.vectors(self._nonempty([own.ids for own in _read_pieces(self.pieces, texts)]))

    def save(self, folder: Path) -> None:
        """Writes a checkpoint folder; complete but for the card."""
        weights = self.network.state_dict()
        write_passage_checkpoint(folder, self.config, weights, pieces=self.pieces, words=self.words)

    @classmethod
    def shared(cls, folder: Path, *, device: str = "cpu") -> "PassageModel":
        """As :meth:`from_folder`; one and the same while another who only reads it has it, and its files stay."""
        place = folder.resolve()
        files = [(place / name).stat() for name in PASSAGE_FILES if (place / name).exists()]
        key = (place, device, *((file.st_mtime_ns, file.st_size) for file in files))
        with _loading:
            if (known := _shared.get(key)) is None:
                known = _shared[key] = cls.from_folder(folder, device=device)
        return known

    @classmethod
    def from_folder(cls, folder: Path, *, device: str = "cpu") -> Self:
        """Loads a checkpoint folder whose task is ``passages``; ``facets.load`` also finds shipped ones by name.

        Raises:
            NotFoundError: There is no such folder.
            CheckpointError: It is incomplete or damaged, or for another task.
        """
        files = FilesRead()
        config = read_config(folder, PassageModelConfig, read=files)
        weights = read_passage_weights(folder, read=files)
        pieces = read_word_pieces(folder, config, read=files)
        words = read_passage_words(folder, config, read=files)
        network = fit_weights(folder, lambda: PassageNetwork(config.network), weights)
        revision = files.revision(*(folder / name for name in PASSAGE_FILES))
        curves = read_score_curves(folder, revision)
        return cls(network, words, pieces=pieces, config=config, revision=revision, score_curves=curves, device=device)

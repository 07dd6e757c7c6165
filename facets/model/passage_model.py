"""The passage model: turns texts into facets, their spans, and sentence vectors, all in one space.

A short query becomes one vector. A long query, or one with several questions, gets one vector per sentence: the mean
of the sentence encoded separately and within the query.
Shape suffixes: N texts, Q queries, J facets of a query, P parts of all queries, K facets, H headings, D dimensions.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch

from facets.arrays import Bools, Floats, Ints
from facets.errors import CheckpointError, InvalidInputError
from facets.language.reading import read
from facets.language.sentences import Sentence, sentences_of
from facets.language.tokenizer import check_sequence
from facets.language.vectors import WordVectors, unit_rows
from facets.model.background import QUESTIONS, SENTENCES, background_cosine, score_scale
from facets.model.base import shared_tokenizer
from facets.model.checkpoint import fit_weights, read_config, read_table, read_weights, read_words, revision_of, shared
from facets.model.contract import EncoderSettings, ModelInfo, shown_model
from facets.model.facet_reduction import ALIKE
from facets.model.passage_checkpoint import PASSAGE_FILES, PIECES, PassageModelConfig, read_word_pieces, write_encoder
from facets.model.passage_encoding import Cut, PassageEncoder, PassageFacets, WindowEncoder, cut_text
from facets.model.passage_network import NetworkEncoder, SentenceEncoder
from facets.model.score_curves import ScoreCurves, read_score_curves
from facets.model.shipped import borrowed_folder
from facets.model.word_pieces import Pieces

_FIRST_CHARS = 200  # nearly every text without letters has a word piece here
_WORD_CHARACTER = re.compile(r"\w")
_SHORT_PIECES = 64  # most pieces of a query that becomes one vector
_SHORTEST_PART = 12  # pieces; a shorter sentence is joined with the next
_SHORTEST_QUESTION = 4
_HEADING_SHARE = 0.35  # share in a facet; chosen on the six files of docs/use/search.md, where 0.3 to 0.4 do as well
MAX_QUERY_FACETS = 16


@dataclass(frozen=True, slots=True)
class QueryFacets:
    """Facets of queries."""

    facets: Floats  # `[Q, J, D]` float32, unit norm; zero rows where a query has fewer facets
    weights: Floats  # `[Q, J]` float32, weight of each facet; they sum to 1 and are 0 for zero rows
    are_questions: Bools  # `[Q]`, True for several questions, of which a document may answer any


def query_parts(pieces: Pieces, sentences: Sequence[Sentence]) -> Ints:
    """Cuts a query into parts that get one facet each: its questions, or the sentences of a long query.

    Returns the first piece of each part, then the number of pieces (at least 1); at most ``MAX_QUERY_FACETS`` parts.
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
    """Whether a query consists of several questions."""
    return len(sentences) > 1 and all(
        sentence.text.rstrip("\"')\u201d\u2019\u300d").endswith(("?", "\uff1f", "\u061f")) for sentence in sentences
    )


class PassageModel:
    """Turns passages into facets and queries into vectors of the same space, with any encoder; a ``TextModel``.

    A text has the same facets alone and in a batch, up to rounding. If it has more than K, rounding may change which of
    them are joined.
    """

    task = "passages"
    max_query_facets = MAX_QUERY_FACETS
    __repr__ = shown_model

    def __init__(
        self,
        encoder: WindowEncoder,
        words: WordVectors,
        *,
        name: str,
        revision: str = "unsaved",
        space: str = "",
        num_facets: int = 16,
        reads_windows: bool = True,
        score_curves: ScoreCurves | None = None,
        encoder_settings: EncoderSettings | None = None,
        queries: "PassageModel | None" = None,
    ) -> None:
        """``space``: by default of this revision alone. For the other settings see ``PassageModelConfig``."""
        self.encoder, self.words = encoder, words
        self.name, self.revision, self.space = name, revision, space or f"{name}@{revision}"
        self.num_facets, self.dim = num_facets, encoder.dim
        self.max_tokens = encoder.longest + encoder.num_special
        self.vocabulary_size = words.vocabulary.num_words
        self.tokenizer = shared_tokenizer()
        self.common_components: Mapping[str, Floats] = {}  # SIF applies to word vectors only
        self.score_curves: ScoreCurves = score_curves or {}
        self.encoder_settings = encoder_settings
        self._facets = PassageEncoder(encoder, num_facets, reads_windows=reads_windows)
        if not isinstance(encoder, NetworkEncoder):  # the unrelated texts of others are rarely orthogonal
            alike = 1 - (1 - ALIKE) * (1 - background_cosine(self._facets))
            self._facets = replace(self._facets, alike=alike)
        self._queries = self._facets if queries is None else queries._facets

    @cached_property
    def score_scale(self) -> tuple[float, float] | None:
        """Mean score of sentences that do not answer a question, and of those that do; encodes 64 short texts once.

        None for checkpoints: their scores are about those of all-MiniLM-L6-v2, from which they learned.
        """
        if isinstance(self.encoder, NetworkEncoder):
            return None
        asked = self.encode_queries(QUESTIONS)
        return score_scale(asked.facets * asked.weights[:, :, None], self.encode(SENTENCES))

    def encode(self, texts: Sequence[str]) -> Floats:
        """Facet embeddings ``[len(texts), K, D]`` float32 of documents of any length, in order.

        Facets have unit norm and are in the order of their places in the text; a text with fewer facets has zero rows
        at the end. Raises InvalidInputError for a text without words, TypeError for a single ``str``.
        """
        return self.encode_passages(texts).facets

    def encode_passages(self, texts: Sequence[str]) -> PassageFacets:
        """Facet embeddings of documents, and the characters of each facet's sentence; raises as ``encode``.

        A span of up to twelve pieces gives a facet. More than K facets are reduced to K, and for the document to
        one per eight tokens, at most 128; a reduced facet has the span of the facet closest to it. Facets under
        a heading include a share of the heading's vector.

        Example:
            >>> import facets
            >>> model = facets.load("facets-passages-en", PassageModel)
            >>> passages = model.encode_passages(["Ada Lovelace wrote the first program. Her father was Lord Byron."])
            >>> passages.facets.shape, int(passages.facets.any(axis=2).sum()), passages.num_tokens.tolist()
            ((1, 16, 384), 2, [14])
        """
        pieces = self._pieces(texts)
        cuts = [self._cut(*pair) for pair in zip(texts, pieces, strict=True)]
        encoded = self._facets.facets(pieces, cuts)
        self._mix_in_headings(texts, encoded)
        return encoded

    def _pieces(self, texts: Sequence[str], *, query: bool = False) -> list[Pieces]:
        """Pieces of the texts as they are read, with offsets in the original texts; checks that each has one."""
        check_sequence(texts, "encode")
        readings = [read(text) for text in texts]
        all_pieces = self.encoder.split([reading.text for reading in readings], query=query)
        for i, (reading, pieces) in enumerate(zip(readings, all_pieces, strict=True)):
            if not len(pieces):
                raise InvalidInputError("has no words, expected at least one", path=("texts", i))
            if reading.places is not None:
                starts, ends = reading.original(np.stack((pieces.starts, pieces.ends), axis=1)).T
                all_pieces[i] = replace(pieces, starts=starts, ends=ends)
        return all_pieces

    def _cut(self, text: str, pieces: Pieces) -> Cut:
        firsts = np.searchsorted(pieces.starts, [sentence.start for sentence in sentences_of(text)])
        characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        codes, of_code = np.unique(characters, return_inverse=True)
        is_letter = np.array([chr(code).isalnum() for code in codes.tolist()])[of_code]
        num_letters = np.concatenate([[0], is_letter.cumsum()])
        says_L = num_letters[pieces.ends] > num_letters[pieces.starts]
        gaps_L = pieces.starts > np.concatenate([[-1], pieces.ends[:-1]])
        starts = np.unique(firsts[firsts < len(pieces)])
        return cut_text(starts, says_L, gaps_L, self.encoder)

    def _mix_in_headings(self, texts: Sequence[str], encoded: PassageFacets) -> None:
        """Mixes into each facet, in place, the vector of the heading above its sentence.

        "Members pay 15" answers a question only under the heading "Membership fee". The title, a heading that begins
        the text, is left out: all facets of the text have it in common already.
        """
        readings = {text: reading for text, reading in enumerate(map(read, texts)) if len(reading.headings)}
        if not readings:
            return
        headings = [texts[text][a:b] for text, reading in readings.items() for a, b in reading.headings.tolist()]
        pieces = self.encoder.split([read(heading).text for heading in headings])
        vectors_HD = np.zeros((len(pieces), self.dim), dtype=np.float32)  # zero for a heading without a piece
        with_words = [i for i, own in enumerate(pieces) if len(own)]
        vectors_HD[with_words] = self._facets.vectors([pieces[i] for i in with_words])
        ends = np.cumsum([len(reading.headings) for reading in readings.values()])
        for (text, reading), text_HD in zip(readings.items(), np.split(vectors_HD, ends[:-1]), strict=True):
            has_title = reading.origins is not None and reading.origins[0] == reading.headings[0, 0]
            few = (encoded.facets[text], encoded.spans[text])
            for facets_KD, spans_K2 in (few, encoded.kept[text]) if text in encoded.kept else (few,):
                above_K, ends_K = reading.headings_above(spans_K2)
                under = np.flatnonzero(facets_KD.any(axis=1) & (above_K >= has_title) & (spans_K2[:, 0] >= ends_K))
                mixed = (1 - _HEADING_SHARE) * facets_KD[under] + _HEADING_SHARE * text_HD[above_K[under]]
                facets_KD[under] = unit_rows(mixed)

    def encode_queries(self, texts: Sequence[str]) -> QueryFacets:
        """Facets of queries: one vector for a short query, else one per sentence of a long query or per question.

        A small model lets a larger one of its space read them, see ``PassageModelConfig``. Raises as ``encode``.

        Example:
            >>> import facets
            >>> model = facets.load("facets-passages-en", PassageModel)
            >>> model.encode_queries(["Who wrote the first program?"]).weights.tolist()
            [[1.0]]
        """
        pieces = self._pieces(texts, query=True)
        sentences = [sentences_of(text) for text in texts]
        bounds = [query_parts(*pair) for pair in zip(pieces, sentences, strict=True)]
        counts_Q = np.array([len(parts) - 1 for parts in bounds], dtype=np.int64)
        is_part_QJ = np.arange(counts_Q.max(initial=1)) < counts_Q[:, None]
        facets_QJD = np.zeros((*is_part_QJ.shape, self.dim), dtype=np.float32)
        facets_QJD[is_part_QJ] = self._queries.query_vectors(pieces, bounds)
        weights_QJ = (is_part_QJ / counts_Q[:, None]).astype(np.float32)
        several_Q = np.array([are_questions(own) for own in sentences], dtype=np.bool_)
        return QueryFacets(facets_QJD, weights_QJ, several_Q & (counts_Q > 1))

    def knows_script(self, text: str) -> bool:
        """Whether the tokenizer has words of the script that most letters of a text are in."""
        return self.encoder.knows_script(text)

    def problem(self, text: str) -> str:
        """Why the model cannot read a non-blank text, e.g. of invisible characters, as a rule; empty if it can."""
        if _WORD_CHARACTER.search(text):
            return ""
        if any(map(len, self.encoder.split([text.strip()[:_FIRST_CHARS], text]))):
            return ""
        return "has no words, expected at least one"

    def embed(self, texts: Sequence[str]) -> Floats:
        """One unit vector per text from the sentence encoder, ``[len(texts), D]``; raises as ``encode``."""
        return self._facets.vectors(self._pieces(texts))

    def num_tokens(self, texts: Sequence[str]) -> Ints:
        """Pieces of each text, ``[len(texts)]``; all of them are read."""
        return np.array([len(pieces) for pieces in self.encoder.split(texts)], dtype=np.int64)

    def save(self, folder: Path, **training: object) -> None:
        """Writes a checkpoint folder, except its README; ``training``: facts about the training run."""
        if not isinstance(self.encoder, NetworkEncoder):
            raise TypeError(f"{self.name}: only models of checkpoints can be saved as one")
        config = PassageModelConfig(
            name=self.name,
            space=self.space,
            encoder=self.encoder.network.config,
            num_facets=self.num_facets,
            reads_windows=self._facets.reads_windows,
            window_tokens=self.max_tokens,
            training=training,
        )
        network = self.encoder.network
        pieces_VW = network.pieces(torch.arange(network.config.vocabulary_size))
        write_encoder(folder, config, {**network.state_dict(), PIECES: pieces_VW}, self.encoder.pieces)
        self.words.save(folder)

    @classmethod
    def describe(cls, folder: Path) -> ModelInfo:
        """The description of the model in a folder, without its weights; raises CheckpointError."""
        config = read_config(folder, PassageModelConfig)
        revision = revision_of(*(folder / name for name in PASSAGE_FILES))
        sizes = config.num_facets, config.encoder.width, config.window_tokens
        return config.describe(sizes, revision, folder, space=config.space)

    @classmethod
    def shared(cls, folder: Path, *, device: str = "cpu") -> "PassageModel":
        """Like ``from_folder``, but shares one read-only model while it is in use and its files are unchanged."""
        return shared(partial(cls.from_folder, device=device), folder, PASSAGE_FILES, device)

    @classmethod
    def from_folder(cls, folder: Path, *, device: str = "cpu") -> "PassageModel":
        """Loads a checkpoint folder of this task; raises as ``facets.load``, which also finds models by name."""
        config = read_config(folder, PassageModelConfig)
        queries = cls.shared(borrowed_folder(folder, config.queries), device=device) if config.queries else None
        if queries is not None and queries.space != config.space:
            raise CheckpointError(f"{folder}: queries need a model of space {config.space}, got {queries.space}")
        weights = read_weights(folder)
        pieces = read_word_pieces(folder, config.encoder)
        words = read_words(folder, config.encoder.width)
        network = fit_weights(folder, lambda: SentenceEncoder(config.encoder), weights)
        network.pieces = read_table(folder, PIECES)
        revision = revision_of(*(folder / name for name in PASSAGE_FILES))
        return cls(
            NetworkEncoder(network, pieces, window_tokens=config.window_tokens, device=device),
            words,
            name=config.name,
            revision=revision,
            space=config.space,
            num_facets=config.num_facets,
            reads_windows=config.reads_windows,
            score_curves=read_score_curves(folder, revision),
            queries=queries,
        )

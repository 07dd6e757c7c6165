"""The paper model: turns titles and abstracts into facets with magnitudes for authors and citing papers.

Shape suffixes: B papers, L words, K facets, D dimensions, P width of sentence vectors, W width of word vectors, E width
of passages.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from facets.arrays import Floats, Ints
from facets.errors import CheckpointError, InvalidInputError
from facets.language.interruption import check_interrupted
from facets.language.tokenizer import check_sequence
from facets.language.vectors import WordVectors
from facets.model.base import CheckpointModel
from facets.model.checkpoint import (
    CheckpointConfig,
    fit_weights,
    read_config,
    read_weights,
    revision_files,
    revision_of,
    write_checkpoint,
)
from facets.model.contract import ModelDescription, ModelInfo
from facets.model.network import WordTable
from facets.model.passage_model import PassageModel
from facets.model.shipped import borrowed_folder
from facets.papers.confidence import PaperConfidence
from facets.papers.network import PaperNetwork
from facets.papers.reading import MAX_ABSTRACT_CHARS, document_vectors, sentence_texts, typed_rows
from facets.papers.records import WEIGHTED_WORD, PaperFacets
from facets.papers.trained import (
    AdditionSettings,
    PapersPart,
    SentenceSettings,
    files_of,
    read_papers_part,
    read_settings_part,
    write_papers_part,
)

_BATCH_TOKENS = 1024  # words per forward pass, including padding: some 50 ms
_EMBEDDED_AT_A_TIME = 2048
# Weights of words: saturation of repeated ones, the probability from which words are frequent, and their least weight.
_SATURATION, _FREQUENT, _LEAST_RARITY, _MAX_WEIGHTED_WORDS = 0.9, 0.01, 0.1, 128


class PaperModel(CheckpointModel[PaperNetwork, CheckpointConfig]):
    """Encodes papers and holds the trained vectors of authors and citing papers."""

    def __init__(
        self,
        network: PaperNetwork,
        words: WordVectors,
        *,
        config: CheckpointConfig,
        part: PapersPart,
        encoder: PassageModel | None = None,
        passages: PassageModel | None = None,
        revision: str = "unsaved",
        device: str = "cpu",
    ) -> None:
        sizes = config.model.num_facets, config.model.dim, config.model.max_tokens
        super().__init__(network, words, config=config, sizes=sizes, revision=revision, device=device)
        self.tables, self.settings, self.papers = part.tables, part.settings, part.papers
        self.sentences = part.sentences  # of `papers`; None: documents are only word averages
        self.encoder = encoder  # computes sentence vectors
        self.passages = passages  # compares papers with those of added authors
        self.confidence: PaperConfidence | None = None  # None: not fitted

    def paper_rows(self, titles: Sequence[str], abstracts: Sequence[str]) -> list[NDArray[np.uint16]]:
        """Typed rows of papers; see ``facets.papers.reading``."""
        return typed_rows(self.tokenizer, self.words.vocabulary, titles, abstracts)

    def encode(self, texts: Sequence[str]) -> Floats:
        """Facets ``[B, K, D]``, without magnitudes, of papers given as one text each: title, newline, abstract.

        Raises InvalidInputError for a text without a title, TypeError for a single ``str``.
        """
        check_sequence(texts, "encode")
        parts = [text.partition("\n") for text in texts]
        for number, (title, _, _) in enumerate(parts):
            if not title or title.isspace():
                raise InvalidInputError("has no title in its first line, expected one", path=("texts", number))
        rows = self.paper_rows([title for title, _, _ in parts], [abstract for _, _, abstract in parts])
        return self.encode_papers(rows).facets

    def sentence_vectors(self, titles: Sequence[str], abstracts: Sequence[str]) -> Floats:
        """Unit sentence vectors of papers, ``[B, P]``; P is 0 for a model without sentence vectors."""
        if self.sentences is None or self.encoder is None or self.settings.sentences is None:
            return np.empty((len(titles), 0), dtype=np.float32)
        texts = sentence_texts(titles, abstracts, self.settings.sentences.abstract_chars)
        return self.sentences.project(_embedded(self.encoder, texts))

    def passage_vectors(self, titles: Sequence[str], abstracts: Sequence[str]) -> Floats:
        """Unit vectors of whole titles and abstracts, ``[B, E]``; E is 0 for a model without an encoder for them."""
        if self.passages is None:
            return np.empty((len(titles), 0), dtype=np.float32)
        return _embedded(self.passages, sentence_texts(titles, abstracts, MAX_ABSTRACT_CHARS))

    def weighted_words(self, rows: Sequence[NDArray[np.uint16]]) -> NDArray[np.void]:
        """Words of papers by ``count / (count + 0.9) log(0.01 / p)``, at unit length; ``[B, M]`` of ``WEIGHTED_WORD``.

        The heaviest are kept; rows of the unknown word, without weight, fill up.
        """
        vocabulary = self.words.vocabulary
        rarities = np.maximum(_LEAST_RARITY, np.log(_FREQUENT / vocabulary.probabilities))
        result = np.zeros((len(rows), _MAX_WEIGHTED_WORDS), dtype=WEIGHTED_WORD)
        result["row"] = len(vocabulary)
        for own, typed in zip(result, rows, strict=True):
            words, counts = np.unique(typed % np.uint16(len(vocabulary) + 1), return_counts=True)
            words, counts = words[words < len(vocabulary)], counts[words < len(vocabulary)]
            weights = counts / (counts + _SATURATION) * rarities[words]
            best = np.argsort(-weights, kind="stable")[:_MAX_WEIGHTED_WORDS]
            own["row"][: len(best)] = words[best]
            own["weight"][: len(best)] = weights[best] / max(np.linalg.norm(weights[best]), 1e-9)
        return result

    @torch.inference_mode()
    def encode_papers(
        self, rows: Sequence[NDArray[np.uint16]], sentences: Floats | None = None, passages: Floats | None = None
    ) -> PaperFacets:
        """Facets, magnitudes and documents of papers, given their typed rows.

        ``sentences``: ``sentence_vectors`` of the same papers; None: zeros, for when documents are not needed.
        ``passages``: ``passage_vectors`` of the same papers; None: they are not compared with those of added authors.
        """
        if sentences is None:
            width = 0 if self.sentences is None else self.sentences.axes.shape[1]
            sentences = np.zeros((len(rows), width), dtype=np.float32)
        shape = (len(rows), self.num_facets)
        result = PaperFacets(
            np.empty((*shape, self.dim), dtype=np.float32),
            np.empty(shape, dtype=np.float32),
            np.empty(shape, dtype=np.float32),
            self.document_vectors(rows, sentences),
            np.empty((len(rows), 0), dtype=np.float32) if passages is None else passages,
            np.empty((len(rows), 0), dtype=WEIGHTED_WORD) if passages is None else self.weighted_words(rows),
        )
        for batch, rows_BL, lengths_B in self._batches([row[: self.max_tokens] for row in rows], _BATCH_TOKENS):
            check_interrupted()
            encoded = self.network(rows_BL, lengths_B)
            for own, batch_of_own in zip(result.arrays, encoded[:3], strict=False):
                own[batch] = batch_of_own.float().cpu().numpy()
        return result

    def document_vectors(self, rows: Sequence[NDArray[np.uint16]], sentences: Floats) -> Floats:
        """Documents ``[B, W]`` or ``[B, W + P]``: word averages, and sentence vectors if the model has them."""
        starts = np.cumsum([0, *map(len, rows)])[:-1]
        averages = self._word_averages(np.concatenate([np.empty(0, dtype=np.uint16), *rows]), starts)
        return self._beside(averages, sentences)

    def trained_documents(self) -> Floats:
        """``document_vectors`` of the training papers."""
        averages = self._word_averages(self.papers.rows, self.papers.offsets[:-1])
        return averages if self.sentences is None else self._beside(averages, self.sentences.units())

    def _beside(self, averages: Floats, sentences: Floats) -> Floats:
        settings = self.settings.sentences
        return averages if settings is None else document_vectors(averages, sentences, settings.share)

    @torch.inference_mode()
    def _word_averages(self, rows: NDArray[np.uint16], starts: Ints) -> Floats:
        """Unit weighted averages ``[B, W]`` of the words of papers (eq. B.4); zero where no word is known.

        ``rows`` of all papers are concatenated; paper i begins at ``starts[i]``.
        """
        words = torch.from_numpy((rows % np.uint16(len(self.words) + 1)).astype(np.int32))
        weights = self.network.word_weights.cpu()[words]
        offsets = torch.from_numpy(starts.astype(np.int32))
        used, places = np.unique(words.clamp_max_(len(self.words) - 1).numpy(), return_inverse=True)
        vectors = torch.from_numpy(self.words.units(used))
        sums_BW = torch.nn.functional.embedding_bag(
            torch.from_numpy(places.astype(np.int32)), vectors, offsets, mode="sum", per_sample_weights=weights
        )
        mapped_BD: torch.Tensor = sums_BW @ self.network.average_maps.mean(dim=0).cpu()
        return torch.nn.functional.normalize(mapped_BD, dim=-1).numpy()

    def words_as_facets(self, rows_V: Ints) -> Floats:
        """Vectors of words in the space of the facets, mapped by H of eq. B.4, ``[V, D]``."""
        return self.words.units(rows_V) @ self.network.word_map.weight.detach().cpu().numpy().T

    def save(self, folder: Path) -> None:
        """Writes a checkpoint folder."""
        state = self.network.state_dict()
        state.pop("encoder.embedding.words.vectors", None)  # once trained; stored with the vocabulary
        write_checkpoint(folder, self.config, state)
        self.words.save(folder)
        write_papers_part(folder, PapersPart(self.tables, self.settings, self.papers, self.sentences))

    @classmethod
    def describe(cls, folder: Path) -> ModelDescription:
        """The description of the model in a folder, without its weights; raises CheckpointError."""
        config, settings = read_config(folder, CheckpointConfig), read_settings_part(folder)
        revision = revision_of(*revision_files(folder, config), *files_of(folder, settings))
        for part in (settings.sentences, settings.additions):
            if part is not None:
                revision = _joined(revision, PassageModel.describe(borrowed_folder(folder, part.encoder)))
        sizes = config.model.num_facets, config.model.dim, config.model.max_tokens
        return config.describe(sizes, revision, folder)

    @classmethod
    def from_folder(cls, folder: Path, *, device: str = "cpu") -> Self:
        """Loads a checkpoint folder of this task; raises as ``facets.load``, which also finds models by name."""
        config = read_config(folder, CheckpointConfig)
        tensors = read_weights(folder)
        words = WordVectors.load(folder)
        part = read_papers_part(folder)
        for kind, vectors in part.tables.vectors.items():
            if vectors.shape[1] != config.model.dim:
                raise CheckpointError(
                    f"{folder}: expected vectors of {kind} of width {config.model.dim}, got shape {vectors.shape}"
                )
        probabilities_V = torch.from_numpy(words.vocabulary.probabilities)
        network = fit_weights(folder, lambda: PaperNetwork(config.model, WordTable.of(words), probabilities_V), tensors)
        revision = revision_of(*revision_files(folder, config), *files_of(folder, part.settings))
        encoders = {}
        for name, settings in (("encoder", part.settings.sentences), ("passages", part.settings.additions)):
            if settings is not None:
                encoders[name] = _borrowed(folder, settings, device)
                revision = _joined(revision, encoders[name])
        model = cls(network, words, config=config, part=part, **encoders, revision=revision, device=device)
        model.confidence = PaperConfidence.read(folder, revision)
        return model


def _embedded(encoder: PassageModel, texts: Sequence[str]) -> Floats:
    parts = [texts[first : first + _EMBEDDED_AT_A_TIME] for first in range(0, len(texts), _EMBEDDED_AT_A_TIME)]
    return np.concatenate([np.empty((0, encoder.dim), dtype=np.float32), *map(encoder.embed, parts)])


def _joined(revision: str, encoder: ModelInfo) -> str:
    """The revision of a model that uses an encoder."""
    return hashlib.sha256(f"{revision} {encoder.revision}".encode()).hexdigest()[:12]


def _borrowed(folder: Path, settings: SentenceSettings | AdditionSettings, device: str) -> PassageModel:
    encoder = PassageModel.shared(borrowed_folder(folder, settings.encoder), device=device)
    if encoder.space != settings.space:
        raise CheckpointError(
            f"{folder}: vectors of papers are of the space {settings.space!r}, "
            f"expected an encoder of that space, {encoder.name} has {encoder.space!r}"
        )
    return encoder

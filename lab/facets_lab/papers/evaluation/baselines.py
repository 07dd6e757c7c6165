"""What papers' facets are compared with: averages of word vectors (table 3.8) and sentence vectors."""

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError, NotFoundError
from facets.language.singular import rarity_weights, singular_word_vectors, word_counts
from facets.language.vectors import unit_rows
from facets.model.loading import load
from facets.model.passage_model import PassageModel
from facets.papers.candidates import CandidateTable, PaperBank, build_table
from facets.papers.engine import PaperEngine
from facets.papers.inputs import CandidateKind, Paper
from facets.papers.model import PaperModel
from facets.papers.records import read_papers
from facets_lab.evaluation.embedders import Embed, minilm
from facets_lab.papers.evaluation.systems import (
    DOCUMENT_MODES,
    PaperData,
    PaperSystem,
    document_system,
)

__all__ = ["SENTENCE_ENCODERS", "cbow_systems", "sentence_systems", "words_systems"]

logger = logging.getLogger(__name__)

_ENCODED_AT_A_TIME = 2048

# Name in the report -> what makes the function; the model of passages is in the space of MiniLM.
SENTENCE_ENCODERS: Mapping[str, Callable[[], Embed]] = {
    "minilm": minilm,
    "passages-small": lambda: load("facets-passages-small-en", PassageModel).embed,
}


def cbow_systems(engine: PaperEngine, data: PaperData) -> Iterator[PaperSystem]:
    """CBOW Avg and Max of table 3.8: averages (eq. B.4) of word vectors that saw the papers' texts and nothing else."""
    model, state = engine.model, engine.state
    papers, vocabulary = model.papers, model.words.vocabulary
    counts = word_counts(papers.rows, papers.offsets, len(vocabulary))
    vectors_VW = singular_word_vectors(counts, min(model.words.dim, min(counts.shape) - 1))
    vectors_VW *= rarity_weights(vocabulary.probabilities)[:, None]
    # The training's papers come first in the bank; papers that were added later have no texts here.
    known = np.zeros((len(state.bank.ids), vectors_VW.shape[1]), dtype=np.float32)
    known[: counts.shape[0]] = unit_rows(np.asarray(counts @ vectors_VW))
    bank = PaperBank(state.bank.ids, state.bank.titles, state.bank.years, known)
    tables = {kind: _with_embeddings(table, bank) for kind, table in state.tables.items()}
    rows = model.paper_rows([paper.title for paper in data.papers], [paper.abstract for paper in data.papers])
    offsets = np.cumsum([0, *map(len, rows)])
    unseen = unit_rows(np.asarray(word_counts(np.concatenate(rows), offsets, len(vocabulary)) @ vectors_VW))
    for mode in DOCUMENT_MODES:
        yield document_system(f"cbow-{mode}", unseen, tables, bank=bank, mode=mode)


def words_systems(model: PaperModel, engine: PaperEngine, data: PaperData) -> Iterator[PaperSystem]:
    """Cosines of the model's own averages of trained words, without sentence vectors."""
    state, papers = engine.state, model.papers
    known = model.word_averages_of(papers.rows, papers.offsets[:-1])
    bank = PaperBank(state.bank.ids, state.bank.titles, state.bank.years, known)
    tables = {kind: _with_embeddings(table, bank) for kind, table in state.tables.items()}
    rows = model.paper_rows([paper.title for paper in data.papers], [paper.abstract for paper in data.papers])
    unseen = model.word_averages(rows)
    for mode in DOCUMENT_MODES:
        yield document_system(f"words-{mode}", unseen, tables, bank=bank, mode=mode)


def sentence_systems(
    engine: PaperEngine, data: PaperData, name: str, *, train: Path | None, embeddings: Path | None
) -> Iterator[PaperSystem]:
    """Cosines of sentence vectors; nothing, with a warning, without texts to embed or without the encoder.

    Args:
        engine: Whose candidates are ranked.
        data: The papers to recommend for.
        name: Of ``SENTENCE_ENCODERS``.
        train: The papers of the training, with texts.
        embeddings: Folder where embeddings are kept from run to run; None: nowhere.

    Raises:
        InvalidInputError: A paper of the model is missing in ``train``.
    """
    if train is None:
        logger.warning("the baselines %s are left out: they need the texts of the training papers (--train FILE)", name)
        return
    state = engine.state
    texts = {paper.id: _text(paper) for paper in read_papers(train)}
    needed = _papers_of(state.tables, data)
    missing = [state.bank.ids[row] for row in needed if state.bank.ids[row] not in texts]
    if missing:
        raise InvalidInputError(f"{train} must hold the papers of the model, {missing[0]!r} is missing")
    try:
        part = _embeddings(name, [texts[state.bank.ids[row]] for row in needed], embeddings)
        unseen = _embeddings(name, [_text(paper) for paper in data.papers], embeddings)
    except (ImportError, NotFoundError) as error:
        logger.warning("the baselines %s are left out: %s", name, error)
        return
    known = np.zeros((len(state.bank.ids), part.shape[1]), dtype=np.float32)
    known[needed] = part
    bank = PaperBank(state.bank.ids, state.bank.titles, state.bank.years, known)
    tables = {kind: _with_embeddings(table, bank) for kind, table in state.tables.items()}
    for mode in DOCUMENT_MODES:
        yield document_system(f"{name}-{mode}", unseen, tables, bank=bank, mode=mode)


def _papers_of(tables: Mapping[CandidateKind, CandidateTable], data: PaperData) -> NDArray[np.int64]:
    """Rows of all papers of the candidates that are evaluated, ascending."""
    rows = [tables[kind].papers_of(tables[kind].row_of_id[key]) for kind in CandidateKind for key in data.ids[kind]]
    return np.unique(np.concatenate(rows))


def _with_embeddings(table: CandidateTable, bank: PaperBank) -> CandidateTable:
    columns = np.repeat(np.arange(len(table)), np.diff(table.starts))
    return build_table(
        table.ids, table.names, table.vectors, pairs_P2=np.stack([table.papers, columns], axis=1), bank=bank
    )


def _embeddings(name: str, texts: Sequence[str], folder: Path | None) -> NDArray[np.float32]:
    """Unit sentence vectors of texts, kept in a folder under a digest of the texts."""
    digest = hashlib.sha256("\x00".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    path = None if folder is None else folder / f"{name}-{digest}.npy"
    if path is not None and path.exists():
        return unit_rows(np.load(path).astype(np.float32))
    embed = SENTENCE_ENCODERS[name]()
    order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    result = np.empty((len(texts), 0), dtype=np.float32)
    for first in range(0, len(order), _ENCODED_AT_A_TIME):
        chosen = order[first : first + _ENCODED_AT_A_TIME]
        part = embed([texts[place] for place in chosen])
        if not result.shape[1]:
            result = np.empty((len(texts), part.shape[1]), dtype=np.float32)
        result[chosen] = part
        logger.info("%s: %d of %d texts", name, first + len(chosen), len(order))
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, result.astype(np.float16))
    return unit_rows(result)


def _text(paper: Paper) -> str:
    return f"{paper.title}. {paper.abstract}".strip()

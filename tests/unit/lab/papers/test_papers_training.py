"""Training on papers: data, batches, tables, resuming."""

from pathlib import Path

import numpy as np
import pytest
import torch
from facets_lab.papers.data import PaperStream, PaperTrainingConfig, read_papers, singular_word_vectors, word_counts
from facets_lab.papers.training import MatchedTable, prepare_papers, train_papers
from toy_papers import toy_paper_config, write_toy_papers

import facets
from facets.errors import InvalidInputError
from facets.papers.records import CandidateKind


@pytest.fixture
def config(tmp_path: Path) -> PaperTrainingConfig:
    return toy_paper_config(write_toy_papers(tmp_path / "papers.jsonl"))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"id": "a"}', "a field title, got none"),
        ('{"id": "a", "title": " "}', "title must not be blank"),
        ('{"id": "a", "title": "t", "authors": "Ann"}', "valid array as authors"),
        ('{"id": "a", "title": "t", "year": "1999"}', "valid integer as year"),
        ('{"id": "one", "title": "t"}', "distinct ids"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "papers.jsonl"
    path.write_text('{"id": "one", "title": "t"}\n\n' + line + "\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=problem) as caught:
        read_papers(path)
    assert "line 3" in str(caught.value)


def test_batches_hold_the_pairs_of_their_papers(config: PaperTrainingConfig) -> None:
    corpus, _ = prepare_papers(config)
    stream = PaperStream(corpus, config)
    papers = stream.training_papers[:10]
    batch = stream.batch(papers, np.random.default_rng(0))
    pairs = batch.pairs[CandidateKind.AUTHORS]
    known = corpus.pairs[CandidateKind.AUTHORS]
    found = set(map(tuple, known[pairs.numbers].tolist()))
    wanted = {(p, c) for p, c in known.tolist() if p in papers}
    assert found == wanted
    assert (pairs.columns[pairs.pairs[:, 1]] == known[pairs.numbers, 1]).all()
    lengths = np.concatenate([lengths for _, lengths in batch.parts])
    assert (np.diff(lengths) >= 0).all()
    assert (batch.negatives != np.arange(len(papers))).all()


def test_table_update_keeps_sums_and_matches_together() -> None:
    torch.manual_seed(0)
    columns = torch.tensor([0, 0, 1, 1, 1])
    table = MatchedTable(columns, torch.ones(5, dtype=torch.bool), torch.randn(5, 6), 2)
    numbers = torch.tensor([4, 1])
    new = torch.randn(2, 3, 6)
    own, _ = table.vectors_without(numbers)
    table.update(numbers, new, own)
    for place, number in enumerate(numbers.tolist()):
        best = int((new[place] @ own[place]).argmax())
        torch.testing.assert_close(table.matched[number].float(), new[place, best], atol=2e-3, rtol=2e-3)
    sums = torch.zeros(2, 6).index_add(0, columns, table.matched.float())
    torch.testing.assert_close(table.sums, sums, atol=1e-4, rtol=1e-4)


def test_a_baseline_has_the_vocabulary_of_another_model(config: PaperTrainingConfig, tmp_path: Path) -> None:
    train_papers(config, tmp_path / "base", tmp_path / "base" / "model")
    values = config.to_dict() | {"name": "toy-k1"}
    values["model"] = values["model"] | {"num_facets": 1}
    single = PaperTrainingConfig(**values)
    model = train_papers(single, tmp_path / "k1", tmp_path / "k1" / "model", words_of=tmp_path / "base" / "model")
    assert model.num_facets == 1
    assert model.words.vocabulary.words == facets.load(tmp_path / "base" / "model").words.vocabulary.words


def test_trained_words_stay_unit_vectors_and_come_with_the_model(config: PaperTrainingConfig, tmp_path: Path) -> None:
    quick = PaperTrainingConfig(**config.to_dict() | {"optimizer": {"warmup_steps": 1}})
    _, before = prepare_papers(quick)
    model = train_papers(quick, tmp_path / "run", tmp_path / "model")
    assert np.abs(model.words.vectors - before.vectors).max() > 1e-3
    np.testing.assert_allclose(np.linalg.norm(model.words.vectors, axis=1), 1.0, atol=5e-3)


NUM_WORDS = 12


def corpus() -> tuple[np.ndarray, np.ndarray]:
    """Typed rows of 40 texts, unknown words and an empty text among them."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 9, 40)
    lengths[7] = 0
    return rng.integers(0, 2 * (NUM_WORDS + 1), lengths.sum()).astype(np.uint16), np.concatenate(
        [[0], lengths.cumsum()]
    )


def test_vectors_are_the_singular_vectors_of_the_dense_matrix() -> None:
    counts = word_counts(*corpus(), NUM_WORDS)
    dense = counts.toarray().astype(np.float64)
    weighted = np.where(dense > 0, 1 + np.log(np.maximum(dense, 1)), 0.0)
    weighted *= np.log(len(dense) / (1 + (dense > 0).sum(axis=0))).clip(min=0)
    weighted /= np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-9)
    expected = np.linalg.svd(weighted)[2][:4].T
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = singular_word_vectors(counts, 4)
    # Axes have no sign: compare what words are to each other.
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=0.05)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)

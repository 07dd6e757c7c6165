"""Training on papers: data, batches, tables, resuming."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from facets_lab.papers.data import PaperBatch, PaperStream, PaperTrainingConfig, read_papers
from facets_lab.papers.export import prepare_papers, train_papers
from facets_lab.papers.training import MatchedTable, PaperTrainer
from facets_lab.training.loop import TrainingLoop
from toy_papers import NUM_PAPERS, toy_paper_config, write_toy_papers

import facets
from facets.errors import InvalidInputError
from facets.papers.records import CandidateKind


@pytest.fixture
def config(tmp_path: Path) -> PaperTrainingConfig:
    return toy_paper_config(write_toy_papers(tmp_path / "papers.jsonl"))


def test_weights_are_inverse_frequencies_of_mean_one(config: PaperTrainingConfig) -> None:
    corpus, _ = prepare_papers(config)
    pairs = corpus.interactions[CandidateKind.AUTHORS]
    counts = np.bincount(pairs.columns)
    products = pairs.weights * counts[pairs.columns]
    assert np.allclose(products, products[0])
    assert pairs.weights.mean() == pytest.approx(1.0, rel=1e-5)


def test_rare_authors_get_no_vector(config: PaperTrainingConfig) -> None:
    many = PaperTrainingConfig.from_dict(config.to_dict() | {"min_author_papers": 13})
    corpus, _ = prepare_papers(many)
    pairs = corpus.interactions[CandidateKind.AUTHORS]
    assert np.bincount(pairs.columns).min() >= 13
    with pytest.raises(InvalidInputError, match="expected an author"):
        prepare_papers(
            PaperTrainingConfig.from_dict(config.to_dict() | {"min_author_papers": 999, "min_cited_papers": 999})
        )


def test_an_author_id_wins_over_the_name(tmp_path: Path) -> None:
    path = tmp_path / "papers.jsonl"
    authors = [{"name": "J. Doe", "id": "doe-1"}, "J. Doe", {"name": "Jane Doe", "id": "doe-1"}]
    path.write_text(
        "".join(json.dumps({"id": str(n), "title": "t", "authors": [a]}) + "\n" for n, a in enumerate(authors)),
        encoding="utf-8",
    )
    assert [paper.authors[0].key for paper in read_papers(path)] == ["doe-1", "J. Doe", "doe-1"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "JSON object"),
        ("[1]", "JSON object"),
        ('{"id": "a"}', "a field title, got none"),
        ('{"id": "a", "title": " "}', "title must not be blank"),
        ('{"id": "a", "title": "t", "authors": "Ann"}', "valid list as authors"),
        ('{"id": "a", "title": "t", "cited_by": [7]}', r"valid string as cited_by\.0, got 7"),
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
    known = corpus.interactions[CandidateKind.AUTHORS]
    found = {(int(known.papers[n]), int(known.columns[n])) for n in pairs.numbers}
    wanted = {(int(p), int(c)) for p, c in zip(known.papers, known.columns, strict=True) if p in papers}
    assert found == wanted
    assert (pairs.columns[pairs.pairs[:, 1]] == known.columns[pairs.numbers]).all()
    lengths = np.concatenate([lengths for _, lengths in batch.parts])
    assert (np.diff(lengths) >= 0).all()
    assert (batch.negatives != np.arange(len(papers))).all()


def test_word_dropout_keeps_at_least_a_word(config: PaperTrainingConfig) -> None:
    corpus, _ = prepare_papers(config)
    stream = PaperStream(corpus, config)
    batch = stream.batch(stream.training_papers, np.random.default_rng(0), word_dropout=0.95)
    assert min(lengths.min() for _, lengths in batch.parts) >= 1


def test_held_out_papers_are_never_trained_on(config: PaperTrainingConfig) -> None:
    corpus, _ = prepare_papers(config)
    stream = PaperStream(corpus, config)
    assert not set(stream.training_papers) & set(stream.validation_papers)
    assert len(stream.training_papers) + len(stream.validation_papers) == NUM_PAPERS
    places = np.concatenate([papers for papers, _, _ in stream.all_papers(99)])
    assert sorted(places.tolist()) == list(range(NUM_PAPERS))


def test_table_scores_a_paper_without_itself() -> None:
    torch.manual_seed(0)
    facets = torch.randn(4, 6)
    columns = torch.tensor([0, 0, 0, 1])
    table = MatchedTable(columns, torch.ones(4, dtype=torch.bool), facets, 2)
    own, has_rest = table.vectors_without(torch.tensor([0, 3]))
    expected = torch.nn.functional.normalize(facets[1] + facets[2], dim=0)
    torch.testing.assert_close(own[0], expected, atol=2e-3, rtol=2e-3)
    assert has_rest.tolist() == [True, False]


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


class StoppedTrainer(PaperTrainer):
    """Gets a signal in its second step."""

    def step(self, batch: PaperBatch, number: int) -> dict[str, torch.Tensor]:
        if number == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().step(batch, number)


def test_resumed_run_ends_as_one_that_never_stopped(config: PaperTrainingConfig, tmp_path: Path) -> None:
    whole = config
    corpus, words = prepare_papers(whole)
    first = PaperTrainer(whole, corpus, words)
    TrainingLoop(first, tmp_path / "whole").run(progress=False)
    assert not TrainingLoop(StoppedTrainer(whole, corpus, words), tmp_path / "broken").run(progress=False).finished
    second = PaperTrainer(whole, corpus, words)
    loop = TrainingLoop(second, tmp_path / "broken")
    loop.resume()
    assert loop.run(progress=False).finished
    for name, value in first.network.state_dict().items():
        torch.testing.assert_close(second.network.state_dict()[name], value)
    for kind in CandidateKind:
        torch.testing.assert_close(second.tables[kind].sums, first.tables[kind].sums)


def test_a_baseline_has_the_vocabulary_of_another_model(config: PaperTrainingConfig, tmp_path: Path) -> None:
    train_papers(config, tmp_path / "base", progress=False)
    values = config.to_dict() | {"name": "toy-k1"}
    values["model"] = values["model"] | {"num_facets": 1}
    single = PaperTrainingConfig.from_dict(values)
    model = train_papers(single, tmp_path / "k1", words_of=tmp_path / "base" / "model", progress=False)
    assert model.num_facets == 1
    assert model.words.vocabulary.words == facets.load(tmp_path / "base" / "model").words.vocabulary.words


def test_trained_words_stay_unit_vectors_and_come_with_the_model(config: PaperTrainingConfig, tmp_path: Path) -> None:
    quick = PaperTrainingConfig.from_dict(config.to_dict() | {"optimizer": {"warmup_steps": 1}})
    _, before = prepare_papers(quick)
    model = train_papers(quick, tmp_path / "run", progress=False)
    assert np.abs(model.words.vectors - before.vectors).max() > 1e-3
    np.testing.assert_allclose(np.linalg.norm(model.words.vectors, axis=1), 1.0, atol=5e-3)

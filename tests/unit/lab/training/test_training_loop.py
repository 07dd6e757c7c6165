"""The loop that every kind of training shares: one state, one curve, one way to go on."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from facets_lab.papers.training import PaperTrainer, prepare_papers
from facets_lab.relations.training import RelationTrainer
from facets_lab.texts.training import SentenceTrainer
from facets_lab.training.loop import LOSS, Trainer, TrainingLoop
from relation_toys import toy_relation_config
from torch import Tensor
from toy_papers import toy_paper_config, write_toy_papers
from toy_texts import make_toy_corpus, toy_sentence_config

from facets.errors import CheckpointError

MakeTrainer = Callable[[], Trainer]


def sentence_trainer(folder: Path) -> MakeTrainer:
    make_toy_corpus(folder)
    return lambda: SentenceTrainer(toy_sentence_config(folder, num_steps=4, validate_every=2))


def relation_trainer(folder: Path) -> MakeTrainer:
    config = toy_relation_config(folder, num_steps=4, checkpoint_every=4, validate_every=2)
    return lambda: RelationTrainer(config)


def paper_trainer(folder: Path) -> MakeTrainer:
    config = toy_paper_config(write_toy_papers(folder / "papers.jsonl"), num_steps=4)
    corpus, words = prepare_papers(config)
    return lambda: PaperTrainer(config, corpus, words)


TRAINERS = {"sentences": sentence_trainer, "relations": relation_trainer, "papers": paper_trainer}


@pytest.fixture(params=TRAINERS)
def make_trainer(request: pytest.FixtureRequest, tmp_path: Path) -> MakeTrainer:
    return TRAINERS[request.param](tmp_path)


def tensors(state: object) -> list[Tensor]:
    parts = state.values() if isinstance(state, dict) else [state]
    return [found for part in parts for found in ([part] if isinstance(part, Tensor) else tensors(part))]


def test_an_interrupted_run_ends_as_if_it_had_never_stopped(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    whole, stopped, rest = make_trainer(), make_trainer(), make_trainer()
    TrainingLoop(whole, tmp_path / "whole").run()
    step = stopped.step

    def stop(batch: object, number: int) -> dict[str, Tensor]:
        if number == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(batch, number)

    stopped.step = stop  # type: ignore[method-assign]
    assert TrainingLoop(stopped, tmp_path / "part").run().step == 3
    torch.manual_seed(99)  # what ran in between must not matter
    loop = TrainingLoop(rest, tmp_path / "part")
    loop.resume()
    assert loop.run().step == 4
    for expected, found in zip(tensors(whole.state()), tensors(rest.state()), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    curves = [(tmp_path / run / "curve.jsonl").read_text().splitlines() for run in ("whole", "part")]
    losses = [[json.loads(line).get("validation_loss") for line in curve] for curve in curves]
    assert losses[0] == losses[1]


def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path) -> None:
    class Broken(SentenceTrainer):
        def step(self, batch, number):  # type: ignore[no-untyped-def]
            losses = super().step(batch, number)
            return losses if number < 1 else {LOSS: losses[LOSS] * float("nan")}

    make_toy_corpus(tmp_path)
    with pytest.raises(CheckpointError, match="NaN at step 1"):
        TrainingLoop(Broken(toy_sentence_config(tmp_path)), tmp_path / "run").run()

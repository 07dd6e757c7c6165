"""The loop that every kind of training shares: the losses of before, one state, one curve, one way to go on."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from facets_lab.papers.export import prepare_papers
from facets_lab.papers.training import PaperTrainer
from facets_lab.relations.training import RelationTrainer
from facets_lab.texts.training import SentenceTrainer
from facets_lab.training.loop import LOSS, Trainer, TrainingLoop, train
from relation_toys import toy_relation_config
from torch import Tensor
from toy_papers import toy_paper_config, write_toy_papers
from toy_texts import make_toy_corpus, toy_sentence_config

from facets.errors import CheckpointError, ConfigError

MakeTrainer = Callable[[], Trainer]

CASES = ["sentences loss=kmeans", "sentences inputs=phrases", "relations", "papers"]


def sentence_trainer(folder: Path, **changes: object) -> MakeTrainer:
    make_toy_corpus(folder)
    return lambda: SentenceTrainer(toy_sentence_config(folder, num_steps=4, validate_every=2, **changes))


def relation_trainer(folder: Path, **changes: object) -> MakeTrainer:
    config = toy_relation_config(folder, num_steps=4, checkpoint_every=4, validate_every=2, **changes)
    return lambda: RelationTrainer(config)


def paper_trainer(folder: Path, **changes: object) -> MakeTrainer:
    config = toy_paper_config(write_toy_papers(folder / "papers.jsonl"), num_steps=4, **changes)
    corpus, words = prepare_papers(config)
    return lambda: PaperTrainer(config, corpus, words)


TRAINERS = {"sentences": sentence_trainer, "relations": relation_trainer, "papers": paper_trainer}


@pytest.fixture(params=TRAINERS)
def make_trainer(request: pytest.FixtureRequest, tmp_path: Path) -> MakeTrainer:
    return TRAINERS[request.param](tmp_path)


def plain_losses(trainer: Trainer) -> list[float]:
    """What the loop does, as plainly as it can be written: mean training losses, one a line of the curve."""
    config, network = trainer.config, trainer.network
    optimizer = torch.optim.AdamW(
        trainer.parameter_groups(), lr=config.optimizer.learning_rate, weight_decay=config.optimizer.weight_decay
    )
    rates = [group["lr"] for group in optimizer.param_groups]
    means, losses = [], []
    for step, batch in zip(range(config.num_steps), trainer.batches(0), strict=False):
        warmup = config.optimizer.warmup_steps
        factor = (step + 1) / warmup if step < warmup else (config.num_steps - step) / (config.num_steps - warmup)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * factor
        network.train()
        loss = trainer.step(batch, step)[LOSS]
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), config.optimizer.max_gradient_norm)
        optimizer.step()
        trainer.after_step(factor)
        losses.append(float(loss))
        if (step + 1) % config.validate_every == 0 or step + 1 == config.num_steps:
            means.append(float(np.mean(losses)))
            losses.clear()
            network.eval()
            with torch.no_grad():
                trainer.validate()
    return means


@pytest.mark.parametrize("case", CASES)
def test_losses_are_those_of_a_plain_loop(case: str, tmp_path: Path) -> None:
    kind, _, change = case.partition(" ")
    changes = dict([change.split("=")]) if change else {}
    make_trainer = TRAINERS[kind](tmp_path, **changes)
    TrainingLoop(make_trainer(), tmp_path / "run").run()
    lines = [json.loads(line) for line in (tmp_path / "run" / "curve.jsonl").read_text().splitlines()]
    # The fused optimizer rounds differently.
    assert [line["training_loss"] for line in lines] == pytest.approx(plain_losses(make_trainer()), rel=1e-3, abs=3e-5)


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


def test_a_finished_run_does_nothing_more(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    run = tmp_path / "run"
    _, first = train(make_trainer, run)
    assert first.step == 4
    with pytest.raises(ConfigError, match="already holds a run"):
        train(make_trainer, run)
    _, again = train(make_trainer, run, resume=True)
    assert again == first


def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path) -> None:
    class Broken(SentenceTrainer):
        def step(self, batch, number):  # type: ignore[no-untyped-def]
            losses = super().step(batch, number)
            return losses if number < 1 else {LOSS: losses[LOSS] * float("nan")}

    make_toy_corpus(tmp_path)
    with pytest.raises(CheckpointError, match="NaN at step 1"):
        TrainingLoop(Broken(toy_sentence_config(tmp_path)), tmp_path / "run").run()

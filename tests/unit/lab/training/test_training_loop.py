"""The loop that every kind of training shares: the losses of before, one state, one curve, one way to go on."""

import json
import random
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
from toy_papers import toy_paper_config, write_toy_papers
from toy_texts import make_toy_corpus, toy_sentence_config

from facets.errors import CheckpointError, ConfigError

MakeTrainer = Callable[[], Trainer]

CASES = [
    "sentences",
    "sentences loss=kmeans",
    "sentences inputs=phrases",
    "relations",
    "papers loss=squared",
    "papers loss=softmax",
]


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
    TrainingLoop(make_trainer(), tmp_path / "run").run(progress=False)
    lines = [json.loads(line) for line in (tmp_path / "run" / "curve.jsonl").read_text().splitlines()]
    # The fused optimizer rounds differently.
    assert [line["training_loss"] for line in lines] == pytest.approx(plain_losses(make_trainer()), rel=1e-3, abs=3e-5)


def test_every_kind_saves_the_same_state_and_curve(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    TrainingLoop(make_trainer(), tmp_path / "run").run(progress=False)
    state = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)
    assert set(state) == {
        "config",
        "trainer",
        "optimizer",
        "schedule",
        "generators",
        "step",
        "seconds",
        "validation_loss",
    }
    assert set(state["generators"]) == {"torch", "cuda", "numpy", "python"}
    lines = [json.loads(line) for line in (tmp_path / "run" / "curve.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [2, 4]
    wanted = {"step", "presentations", "training_loss", "learning_rate", "seconds", "presentations_per_second"}
    assert wanted <= set(lines[0])


def test_all_generators_go_on_where_they_were(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    TrainingLoop(make_trainer(), tmp_path / "run").run(progress=False)
    drawn = [float(torch.rand(())), float(np.random.random()), random.random()]
    loop = TrainingLoop(make_trainer(), tmp_path / "run")
    torch.manual_seed(99)
    np.random.seed(99)
    random.seed(99)
    loop.resume()
    assert [float(torch.rand(())), float(np.random.random()), random.random()] == drawn


def test_a_finished_run_does_nothing_more(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    run = tmp_path / "run"
    _, first = train(make_trainer, run, progress=False)
    assert (first.finished, first.step) == (True, 4)
    with pytest.raises(ConfigError, match="already holds a run"):
        train(make_trainer, run, progress=False)
    _, again = train(make_trainer, run, resume=True, progress=False)
    assert again == first


def test_a_checkpoint_of_other_data_is_not_resumed(tmp_path: Path) -> None:
    TrainingLoop(sentence_trainer(tmp_path)(), tmp_path / "run").run(progress=False)
    path = tmp_path / "run" / "checkpoint.pt"
    state = torch.load(path, weights_only=True)
    del state["trainer"]
    torch.save(state, path)
    with pytest.raises(CheckpointError, match="other data or by another version"):
        TrainingLoop(sentence_trainer(tmp_path)(), tmp_path / "run").resume()


def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path) -> None:
    class Broken(SentenceTrainer):
        def step(self, batch, number):  # type: ignore[no-untyped-def]
            losses = super().step(batch, number)
            return losses if number < 1 else {LOSS: losses[LOSS] * float("nan")}

    make_toy_corpus(tmp_path)
    with pytest.raises(CheckpointError, match="NaN at step 1"):
        TrainingLoop(Broken(toy_sentence_config(tmp_path)), tmp_path / "run").run(progress=False)

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from facets_lab.relations.catalogue import read_phrases
from facets_lab.relations.data import (
    FactorizationConfig,
    RelationBatch,
    RelationMatrix,
    RelationStream,
    RelationTrainingConfig,
    load_matrix,
    read_cells,
)
from facets_lab.relations.export import factorize
from facets_lab.relations.training import RelationTrainer
from facets_lab.training.loop import TrainingLoop
from relation_toys import TOY_RELATIONS, make_toy_relation_checkpoint, toy_relation_config
from toy_retrieval import write_lines

from facets.errors import CheckpointError, ConfigError, InvalidInputError
from facets.model import load
from facets.relations.model import RelationModel
from facets.relations.patterns import mirrored

LINES = [
    "a\tb\t$ARG1 met $ARG2\t2",
    "a\tb\t$ARG1 , friend of $ARG2\t1",
    "c\td\t$ARG1 met $ARG2\t1",
    "c\td\t$ARG1 , friend of $ARG2\t1",
    "e\tf\t$ARG1 once saw $ARG2\t1",
]
FACTS = [("a", "b", "knows"), ("g_(x)", "h", "knows"), ("c_(x)", "d", "knows"), ("a", "b", "unheard")]
RELATIONS = ("bornIn", "knows")


def matrix(folder: Path, lines: list[str] | None = None, **limits: int) -> RelationMatrix:
    return load_matrix(
        [write_lines(folder / "cells.tsv", LINES if lines is None else lines)],
        FACTS,
        RELATIONS,
        max_patterns_per_pair=limits.get("per_pair", 100),
        max_pairs_per_pattern=limits.get("per_pattern", 100),
    )


def test_the_matrix_holds_texts_and_facts_of_their_pairs(tmp_path: Path) -> None:
    loaded = matrix(tmp_path)
    assert loaded.relations == RELATIONS
    sizes = dict(zip([*loaded.patterns, *loaded.relations], loaded.row_sizes.tolist(), strict=True))
    assert sizes["$ARG1 met $ARG2"] == 2
    assert sizes["knows"] == 2  # no text has (g, h)
    assert sizes["bornIn"] == 0
    assert "$ARG1 once saw $ARG2" not in sizes  # one pattern, one pair
    assert sorted(loaded.names) == ["a\tb", "c\td"]
    assert loaded.pair_sizes.tolist() == [3, 3]


def test_one_pair_in_very_many_rows_keeps_a_limited_number(tmp_path: Path) -> None:
    lines = [f"a\tb\t$ARG1 saw {number} $ARG2\t1" for number in range(500)]
    lines += [f"c\td\t$ARG1 saw {number} $ARG2\t1" for number in range(500)]
    loaded = matrix(tmp_path, lines, per_pair=20)
    assert max(loaded.pair_sizes) <= 20 + 1


def test_a_frequent_pattern_keeps_a_limited_number(tmp_path: Path) -> None:
    lines = [f"a{n}\tb\t$ARG1 met $ARG2\t1" for n in range(50)] + [f"a{n}\tb\t$ARG1 saw $ARG2\t1" for n in range(50)]
    loaded = matrix(tmp_path, lines, per_pattern=10)
    assert loaded.row_sizes[: len(loaded.patterns)].max() == 10


@pytest.mark.parametrize(
    "line", ["a\tb\t$ARG1 met $ARG2", "a\tb\t$ARG1 met $ARG2\tmany", "\tb\t$ARG1 met $ARG2\t1", "a b c 1"]
)
def test_a_bad_line_is_reported_with_file_and_number(tmp_path: Path, line: str) -> None:
    path = write_lines(tmp_path / "cells.tsv", [LINES[0], line])
    with pytest.raises(InvalidInputError, match=r"cells.tsv, line 2: expected (an? )?entity"):
        list(read_cells(path))


def test_a_bad_phrase_is_reported(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "phrases.tsv", ["spouse\t$ARG1 married $ARG2", "spouse\t$ARG1 married"])
    with pytest.raises(InvalidInputError, match=r"phrases.tsv, line 2"):
        read_phrases(path)


def test_factorization_ranks_seen_pairs_first(tmp_path: Path) -> None:
    lines = [f"{group}{n}\tx\t$ARG1 {group} {p} $ARG2\t1" for group in "ab" for n in range(6) for p in range(4)]
    loaded = matrix(tmp_path, lines)
    settings = FactorizationConfig(dim=16, num_epochs=60, batch_size=64)
    rows, pairs = factorize(loaded, settings, seed=1, show_progress=False)
    scores = rows @ pairs.T
    row = loaded.patterns.index("$ARG1 a 0 $ARG2")
    own = loaded.pairs_of(row)
    others = np.setdiff1d(np.arange(loaded.num_pairs), own)
    assert scores[row, own].mean() > scores[row, others].mean() + 1.0


def config(folder: Path, **changes: object) -> RelationTrainingConfig:
    return toy_relation_config(
        folder, num_facets=2, **{"num_steps": 6, "checkpoint_every": 3, "batch_size": 4, **changes}
    )


class StoppedTrainer(RelationTrainer):
    """Gets a signal in its fourth step."""

    def step(self, batch: RelationBatch, number: int) -> dict[str, torch.Tensor]:
        if number == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().step(batch, number)


def test_an_interrupted_run_ends_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    settings = config(tmp_path)
    whole = RelationTrainer(settings)
    TrainingLoop(whole, tmp_path / "whole").run(progress=False)
    stopped = StoppedTrainer(settings)
    assert TrainingLoop(stopped, tmp_path / "part").run(progress=False).step == 4
    rest = RelationTrainer(settings)
    loop = TrainingLoop(rest, tmp_path / "part")
    loop.resume()
    assert loop.result.step == 4
    assert loop.run(progress=False).finished
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, rest.network.state_dict()[name]), name
    assert torch.equal(whole.pair_vectors, rest.pair_vectors)


def test_an_encoder_of_another_shape_is_reported(tmp_path: Path) -> None:
    settings = config(tmp_path)
    shape = settings.model.replaced(encoder=settings.model.encoder.replaced(num_layers=3))
    with pytest.raises(ConfigError, match=r"model\.encoder must match the encoder"):
        RelationTrainer(settings.replaced(model=shape))


def stream(folder: Path) -> tuple[RelationTrainer, RelationStream]:
    trainer = RelationTrainer(config(folder))
    rows = np.arange(len(trainer.labelled.patterns))
    return trainer, RelationStream(trainer.matrix, trainer.labelled, rows, trainer.config)


def test_batches_are_the_same_from_any_step(tmp_path: Path) -> None:
    _, batches = stream(tmp_path)
    first = [batch for batch, _ in zip(batches.training_batches(0), range(40), strict=False)]
    later = next(iter(batches.training_batches(35)))
    assert np.array_equal(first[35].mined_pairs.pairs, later.mined_pairs.pairs)
    assert first[35].phrases == later.phrases


def test_positives_of_a_batch_are_cells_of_the_matrix(tmp_path: Path) -> None:
    trainer, batches = stream(tmp_path)
    loaded = trainer.matrix
    batch = next(iter(batches.training_batches(0)))
    sample = batch.mined_pairs
    for row, pairs, weights in zip(batch.mined, sample.pairs, sample.weights, strict=True):
        assert set(pairs[weights > 0]) <= set(loaded.pairs_of(row))
        assert np.allclose(weights[weights > 0], 1 / loaded.pair_sizes[pairs[weights > 0]])


def test_training_teaches_which_argument_is_which_and_leaves_symmetric_relations(tmp_path: Path) -> None:
    model = load(make_toy_relation_checkpoint(tmp_path / "toy"), RelationModel)
    for relation, patterns in TOY_RELATIONS.items():
        row = model.relations.names.index(relation)
        centre = model.relations.facets[row].mean(axis=0)
        given = model.encode(patterns)
        other = model.encode([" ".join(mirrored(pattern.split())) for pattern in patterns])
        gains = (given @ centre).max(axis=1) - (other @ centre).max(axis=1)
        if relation == "spouse":
            assert abs(gains).max() < 0.2
        else:
            assert gains.min() > 0.1
    assert model.relations.details[model.relations.names.index("spouse")].symmetric


def test_held_out_phrases_are_validated(tmp_path: Path) -> None:
    settings = config(tmp_path)
    more = "".join(f"capital\t$ARG1 has the seat {n} $ARG2\n" for n in "abcdefgh")
    phrases = tmp_path / "phrases.tsv"
    phrases.write_text(phrases.read_text() + more)
    trainer = RelationTrainer(settings.replaced(held_out_share=0.5))
    found = trainer.validate()
    assert set(found) == {"loss", "top1", "direction"}
    assert all(0 <= value <= 1 for value in found.values())
    assert RelationTrainer(settings).validate() == {}


def test_a_trained_model_loads_and_knows_its_tables(tmp_path: Path) -> None:
    model = load(make_toy_relation_checkpoint(tmp_path / "toy", num_steps=5), RelationModel)
    assert model.task == "relations"
    assert model.num_relation_facets == 3
    assert model.encode(["$ARG1 was born in $ARG2"]).shape == (1, 3, 64)
    assert model.pattern_vectors([("$ARG1", "wed", "$ARG2")]).shape == (1, 32)
    assert model.relations.type_log_odds.shape == (2, 4, 10)
    with pytest.raises(InvalidInputError, match="exactly once"):
        model.encode(["no arguments"])


def test_a_relation_model_without_an_encoder_is_refused(tmp_path: Path) -> None:
    folder = make_toy_relation_checkpoint(tmp_path / "toy", num_steps=2)
    (folder / "config.json").write_text('{"format": 1, "name": "old", "task": "relations", "model": {}, "words": "."}')
    with pytest.raises(CheckpointError, match="encoder_of is missing"):
        load(folder)

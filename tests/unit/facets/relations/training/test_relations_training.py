import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from relation_toys import make_toy_relation_checkpoint

from facets.config import FacetModelConfig
from facets.errors import CheckpointError, ConfigError, InvalidInputError
from facets.model import load
from facets.relations.training.config import FactorizationConfig, RelationTrainingConfig
from facets.relations.training.data import RelationMatrix, load_matrix, read_cells
from facets.relations.training.export import used_facets
from facets.relations.training.factorization import factorize
from facets.relations.training.stream import RelationBatch, RelationStream
from facets.relations.training.trainer import RelationTrainer
from facets.relations.training.verbalization import Triple, name_patterns, read_phrases, verbalize
from facets.text.tokenizer import Tokenizer
from facets.text.vocabulary import Vocabulary
from facets.training.loop import TrainingLoop
from facets.words.vectors import WordVectors

LINES = [
    "a\tb\t$ARG1 met $ARG2\t2",
    "a\tb\t$ARG1 , friend of $ARG2\t1",
    "c\td\t$ARG1 met $ARG2\t1",
    "c\td\t$ARG1 , friend of $ARG2\t1",
    "e\tf\t$ARG1 once saw $ARG2\t1",
]
FACTS = ["a\tb\tkb:knows\t1", "g_(x)\th\tkb:knows\t1", "g_(x)\ti\tkb:bornIn\t1"]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def matrix(
    folder: Path, lines: list[str] | None = None, *, with_mirrors: bool = False, **limits: int
) -> RelationMatrix:
    return load_matrix(
        [write(folder / "cells.tsv", LINES if lines is None else lines)],
        write(folder / "triples.tsv", FACTS),
        tokenizer=Tokenizer(),
        max_patterns_per_pair=limits.get("per_pair", 100),
        max_pairs_per_pattern=limits.get("per_pattern", 100),
        phrases={"knows": ["$ARG1 knows $ARG2 well"]},
        with_mirrors=with_mirrors,
    )


def test_the_matrix_holds_text_triples_and_phrases(tmp_path: Path) -> None:
    loaded = matrix(tmp_path)
    assert loaded.relations == ["bornIn", "knows"]
    sizes = dict(zip([*loaded.patterns, *loaded.relations], loaded.row_sizes.tolist(), strict=True))
    assert sizes["$ARG1 met $ARG2"] == 2
    assert sizes["knows"] == 2
    assert sizes["$ARG1 knows $ARG2 well"] == 2
    assert "$ARG1 once saw $ARG2" not in sizes  # one pattern, one pair
    assert loaded.num_pairs == 4
    assert (loaded.mirrors == -1).all()
    is_verbalized = dict(zip(loaded.patterns, loaded.is_verbalized.tolist(), strict=True))
    assert is_verbalized["$ARG1 knows $ARG2 well"]
    assert not is_verbalized["$ARG1 met $ARG2"]


def test_phrases_of_a_pair_count_as_one_in_its_weight(tmp_path: Path) -> None:
    loaded = matrix(tmp_path)
    # (a, b): two patterns of texts, one triple, and all its phrases together.
    assert sorted(loaded.pair_sizes.tolist()) == [2, 2, 2, 4]


def test_triples_the_other_way_round_are_other_pairs(tmp_path: Path) -> None:
    loaded = matrix(tmp_path, with_mirrors=True)
    assert loaded.num_pairs == 7
    mirrored = np.flatnonzero(loaded.mirrors >= 0)
    assert np.array_equal(loaded.mirrors[loaded.mirrors[mirrored]], mirrored)
    row = loaded.patterns.index("$ARG2 knows $ARG1 well")
    relation = len(loaded.patterns) + loaded.relations.index("knows")
    own = loaded.pairs[loaded.offsets[row] : loaded.offsets[row + 1]]
    known = loaded.pairs[loaded.offsets[relation] : loaded.offsets[relation + 1]]
    assert set(loaded.mirrors[known]) == set(own)
    assert not set(known) & set(own)


def test_one_pair_in_very_many_rows_keeps_a_limited_number(tmp_path: Path) -> None:
    lines = [f"a\tb\t$ARG1 saw {number} $ARG2\t1" for number in range(500)]
    lines += [f"c\td\t$ARG1 saw {number} $ARG2\t1" for number in range(500)]
    loaded = matrix(tmp_path, lines, per_pair=20)
    assert max(loaded.pair_sizes) <= 20 + 2


def test_a_frequent_pattern_keeps_a_limited_number(tmp_path: Path) -> None:
    lines = [f"a{n}\tb\t$ARG1 met $ARG2\t1" for n in range(50)] + [f"a{n}\tb\t$ARG1 saw $ARG2\t1" for n in range(50)]
    loaded = matrix(tmp_path, lines, per_pattern=10)
    assert loaded.row_sizes[: len(loaded.patterns)].max() == 10


@pytest.mark.parametrize(
    "line", ["a\tb\t$ARG1 met $ARG2", "a\tb\t$ARG1 met $ARG2\tmany", "\tb\t$ARG1 met $ARG2\t1", "a b c 1"]
)
def test_a_bad_line_is_reported_with_file_and_number(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "cells.tsv", [LINES[0], line])
    with pytest.raises(InvalidInputError, match=r"cells.tsv, line 2: expected entity<TAB>entity"):
        list(read_cells(path))


def test_a_pattern_without_an_argument_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="exactly once"):
        matrix(tmp_path, ["a\tb\t$ARG1 met\t1"])


def test_triples_without_triples_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must hold kb:relation rows"):
        load_matrix(
            [write(tmp_path / "cells.tsv", LINES)],
            write(tmp_path / "triples.tsv", LINES),
            tokenizer=Tokenizer(),
            max_patterns_per_pair=10,
            max_pairs_per_pattern=10,
            phrases={},
        )


def test_names_become_patterns() -> None:
    assert "$ARG2 is the birth place of $ARG1" in name_patterns("birthPlace")


def test_two_facts_of_a_head_stand_in_one_sentence() -> None:
    facts = [Triple("x", "5", "mass"), Triple("x", "7", "density")]
    made = {fact.relation: patterns for fact, patterns in verbalize(facts, {}, seed=1)}
    composed = [pattern for pattern in made["mass"] if "$ENT" in pattern]
    assert composed
    assert all("density" in pattern and "mass" in pattern for pattern in composed if "(" not in pattern)
    assert all(pattern.split().count("$ARG2") == 1 for pattern in made["mass"])


def test_a_bad_phrase_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "phrases.tsv", ["spouse\t$ARG1 married $ARG2", "spouse\t$ARG1 married"])
    with pytest.raises(InvalidInputError, match=r"phrases.tsv, line 2"):
        read_phrases(path)


def test_factorization_ranks_seen_pairs_first(tmp_path: Path) -> None:
    lines = [f"{group}{n}\tx\t$ARG1 {group} {p} $ARG2\t1" for group in "ab" for n in range(6) for p in range(4)]
    loaded = matrix(tmp_path, lines)
    rows, pairs = factorize(
        loaded, FactorizationConfig(num_epochs=60, batch_size=64), dim=16, seed=1, show_progress=False
    )
    scores = rows @ pairs.T
    row = loaded.patterns.index("$ARG1 a 0 $ARG2")
    own = loaded.pairs[loaded.offsets[row] : loaded.offsets[row + 1]]
    others = np.setdiff1d(np.arange(loaded.num_pairs), own)
    assert scores[row, own].mean() > scores[row, others].mean() + 1.0


def config(folder: Path, **changes: object) -> RelationTrainingConfig:
    words = "met friend of saw once knows well born in is the 's".split()
    vectors = np.random.default_rng(3).standard_normal((len(words), 32)).astype(np.float32)
    WordVectors(Vocabulary(words, np.arange(len(words), 0, -1)), vectors).save(folder / "words")
    values: dict[str, object] = {
        "cells": [str(write(folder / "cells.tsv", LINES))],
        "triples": str(write(folder / "triples.tsv", FACTS)),
        "words": str(folder / "words"),
        "num_relation_facets": 4,
        "num_steps": 6,
        "batch_size": 4,
        "relations_per_step": 2,
        "pairs_per_relation": 2,
        "pattern_tokens": 12,
        "checkpoint_every": 3,
        "precision": "float32",
        "num_threads": 1,
        "model": FacetModelConfig(
            num_facets=2, dim=32, hidden_dim=32, num_heads=2, feedforward_dim=48, max_tokens=12
        ).to_dict(),
        "factorization": FactorizationConfig(num_epochs=2).to_dict(),
        **changes,
    }
    return RelationTrainingConfig.from_dict(values)


class StoppedTrainer(RelationTrainer):
    """Gets a signal in its fourth step."""

    def step(self, batch: RelationBatch, number: int) -> dict[str, torch.Tensor]:
        if number == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().step(batch, number)


@pytest.mark.parametrize("encoder", ["transformer", "lstm"])
def test_an_interrupted_run_ends_as_if_it_had_never_stopped(tmp_path: Path, encoder: str) -> None:
    shape = {"num_facets": 2, "dim": 32, "hidden_dim": 32, "num_heads": 2, "feedforward_dim": 48, "max_tokens": 12}
    settings = config(tmp_path, model={**shape, "encoder": encoder})
    whole = RelationTrainer(settings, tmp_path / "whole")
    TrainingLoop(whole, tmp_path / "whole").run(progress=False)
    stopped = StoppedTrainer(settings, tmp_path / "part")
    assert TrainingLoop(stopped, tmp_path / "part").run(progress=False).step == 4
    rest = RelationTrainer(settings, tmp_path / "part")
    loop = TrainingLoop(rest, tmp_path / "part")
    loop.resume()
    assert loop.result.step == 4
    assert loop.run(progress=False).finished
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, rest.network.state_dict()[name]), name
    assert torch.equal(whole.pair_vectors, rest.pair_vectors)


def test_a_run_of_other_settings_is_not_resumed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    TrainingLoop(RelationTrainer(config(tmp_path), run), run).run(progress=False)
    other = TrainingLoop(RelationTrainer(config(tmp_path, word_dropout=0.5), run), run)
    with pytest.raises(CheckpointError, match="word_dropout changed"):
        other.resume()


def test_batches_are_the_same_from_any_step(tmp_path: Path) -> None:
    settings = config(tmp_path)
    loaded = matrix(tmp_path)
    rows = [np.arange(3)] * len(loaded.patterns)
    stream = RelationStream(loaded, rows, settings)
    first = [batch for batch, _ in zip(stream.training_batches(0), range(40), strict=False)]
    later = next(iter(stream.training_batches(35)))
    assert np.array_equal(first[35].pattern_pairs.pairs, later.pattern_pairs.pairs)
    assert np.array_equal(first[35].relations, later.relations)


def test_positives_of_a_batch_are_cells_of_the_matrix(tmp_path: Path) -> None:
    loaded = matrix(tmp_path)
    tokens = [np.full(3, row) for row in range(len(loaded.patterns))]
    batch = next(iter(RelationStream(loaded, tokens, config(tmp_path)).training_batches(0)))
    for row, pairs, weights in zip(
        batch.rows[:, 0], batch.pattern_pairs.pairs, batch.pattern_pairs.weights, strict=True
    ):
        own = loaded.pairs[loaded.offsets[row] : loaded.offsets[row + 1]]
        assert set(pairs[weights > 0]) <= set(own)
        assert np.allclose(weights[weights > 0], 1 / loaded.pair_sizes[pairs[weights > 0]])


def test_unused_relation_facets_give_their_place_to_used_ones() -> None:
    facets = np.eye(4, dtype=np.float32)[None] * 3
    kept = used_facets(facets, np.array([[6, 0, 2, 0]]))
    assert kept[0].argmax(axis=1).tolist() == [0, 0, 0, 2]
    assert used_facets(facets, np.array([[0, 0, 0, 0]]))[0].argmax(axis=1).tolist() == [0, 1, 2, 3]


def test_a_trained_model_loads_and_knows_its_tables(tmp_path: Path) -> None:
    model = load(make_toy_relation_checkpoint(tmp_path / "toy", num_steps=5))
    assert model.task == "relations"
    assert model.num_relation_facets == 3  # type: ignore[attr-defined]
    assert model.encode(["$ARG1 was born in $ARG2"]).shape == (1, 3, 32)
    with pytest.raises(InvalidInputError, match="exactly once"):
        model.encode(["no arguments"])


@pytest.mark.parametrize(
    ("file", "content"), [("relations.json", "{"), ("patterns.txt", "one\n"), ("relations.json", '{"relations": []}')]
)
def test_a_damaged_table_is_reported(tmp_path: Path, file: str, content: str) -> None:
    folder = make_toy_relation_checkpoint(tmp_path / "toy", num_steps=2)
    (folder / file).write_text(content)
    with pytest.raises(CheckpointError, match=r"damaged|expected"):
        load(folder)

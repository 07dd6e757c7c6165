"""Training of the pair reader: its examples, and a run on a toy passage model."""

import json
import lzma
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from facets_lab.texts import inference
from facets_lab.texts.inference import Pair, all_pairs, contradicted, edited_pair, joined, noised, pairs, written_groups
from toys import TOY_READER_ENCODER, toy_word_pieces, toy_word_vectors

from facets.model import PassageModel
from facets.model.pair_reader import RELATIONS, PairReader
from facets.model.passage_network import NetworkEncoder, SentenceEncoder

WRITTEN = """B: The dog sleeps.
E: The dog is asleep.
G: An animal sleeps.
D: The old dog sleeps in the garage.
C: The dog is awake.
N: The dog plays.

B: The man is in the lake.
E: The lake has the man in it.
C: The man is on land.
N: The man has a guitar.
"""


def test_statements_of_a_group_are_paired_by_what_is_known_of_them() -> None:
    group, second = written_groups(WRITTEN)
    known = {(one.first, one.second): RELATIONS[one.relation] for one in all_pairs(group)}
    assert known["The dog sleeps.", "The dog is asleep."] == "equivalent"
    assert known["The dog is asleep.", "An animal sleeps."] == "entails"
    assert known["The old dog sleeps in the garage.", "The dog is awake."] == "contradicts"
    assert known["The dog sleeps.", "The dog plays."] == "neutral"
    assert ("The dog is awake.", "The dog plays.") not in known
    assert Counter(one.relation for one in all_pairs(second))[RELATIONS.index("entails")] == 0


def test_what_is_added_to_both_texts_keeps_the_relation_and_to_one_only_what_follows() -> None:
    group, random = written_groups(WRITTEN)[1], np.random.default_rng(1)
    same = Pair("The dog sleeps.", "The dog is asleep.", RELATIONS.index("equivalent"))
    found = [joined(same, group, random) for _ in range(40)]
    assert {RELATIONS[one.relation] for one in found} == {"equivalent", "entails"}
    for one in found:
        assert ("lake" in one.second) == (RELATIONS[one.relation] == "equivalent")
    assert Pair("a", "b", RELATIONS.index("entails")).reversed() == Pair("b", "a", RELATIONS.index("entailed"))


def test_edits_change_a_word_to_its_opposite_or_to_another_value() -> None:
    random = np.random.default_rng(1)
    found = {contradicted("The old shop is closed on Monday.", random) for _ in range(200)}
    assert {"The old shop is not closed on Monday.", "The young shop is closed on Monday."} <= found
    assert any("Friday" in text for text in found)
    assert "The old shop is closed on Monday." not in found
    assert contradicted("Rain.", random) == ""
    kinds = {edited.relation for _ in range(100) if (edited := edited_pair("It is old, he says.", "Why?", random))}
    assert len(kinds) >= 2
    assert {len(noised("The shop.", random)) for _ in range(100)} >= {8, 9}


def test_a_run_writes_a_reader_that_another_run_can_begin_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(2)
    network = NetworkEncoder(SentenceEncoder(TOY_READER_ENCODER), toy_word_pieces(), window_tokens=16, device="cpu")
    PassageModel(network, toy_word_vectors(), name="toy", space="toy").save(tmp_path / "start")
    (tmp_path / "written.xz").write_bytes(lzma.compress((WRITTEN + "\n" + WRITTEN).encode()))
    monkeypatch.setattr(inference, "WRITTEN_PAIRS", tmp_path / "written.xz")
    (tmp_path / "corpus.txt").write_text(
        "# Shop\nThe old shop is open in the city. It is the first shop of the city.\n"
    )
    settings = {"name": "toy-pairs", "corpus": str(tmp_path / "corpus.txt"), "num_steps": 2, "batch_size": 4}
    for number, start in enumerate((tmp_path / "start", tmp_path / "run0" / "model")):
        lines = [f"{name} = {json.dumps(value)}" for name, value in {**settings, "start": str(start)}.items()]
        lines += ["[model]", *(f"{name} = {json.dumps(value)}" for name, value in TOY_READER_ENCODER.to_dict().items())]
        (tmp_path / "toy.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        pairs(tmp_path / "toy.toml", tmp_path / f"run{number}")
        written = PairReader.shared(tmp_path / f"run{number}" / "model")
        assert written.config.training["steps"] == 2
        assert np.isfinite(written.read([("the dog plays", "a man")])).all()

"""Text under topics: topics are read where they are inserted, and a small network learns to use them."""

import json
from pathlib import Path

import numpy as np
import pytest
from facets_lab.generation.__main__ import main
from facets_lab.generation.generator import END, GenerationConfig, cut_pieces, learn_pieces, told, with_conditions

from facets.model import FacetModel, load

_NAMES = (
    "piano bridge tiger doctor river army cheese violin rocket island castle bank horse church forest market".split()
)


_SHAPE = "--steps 4 --batch-size 8 --layers 1 --dim 64 --num-pieces 400 --threads 1".split()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences whose noun cannot be guessed without the topic."""
    random, lines = np.random.default_rng(0), []
    for document in range(80):
        lines += [f"# {document}", " ".join(f"the {noun} is here and" for noun in random.choice(_NAMES, 60)), ""]
    path = tmp_path_factory.mktemp("corpus") / "sentences.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "generation"
    assert main(["train", str(corpus), "--work-dir", str(folder), *_SHAPE]) == 0
    return folder


def test_a_word_belongs_to_its_first_piece(corpus: Path):
    words = load("facets-en", FacetModel).words
    pieces = learn_pieces([corpus], 400)
    tokens, rows = cut_pieces(pieces, "The Violin, xqzzy and the piano-bridge", words)
    assert [words.vocabulary.words[row] for row in rows[rows >= 0]] == ["violin", "piano", "bridge"]
    assert all(pieces.decode([token]).strip()[0] in "vpb" for token in tokens[rows >= 0])
    assert pieces.decode(tokens.tolist()).strip() == "the violin, xqzzy and the piano-bridge"


def test_words_are_inserted_before_later_pieces_without_labels():
    config = GenerationConfig(num_steps=1, batch_size=2, num_insertions=2, max_topics=3, next_words=4)
    tokens, words = np.arange(1, 22), np.where(np.arange(21) % 2, np.arange(100, 121), -1)
    for seed in range(30):
        read, asked = with_conditions(tokens, words, config, random=np.random.default_rng(seed))
        assert len(read) == len(asked) == 20 + 2 * 3
        is_piece = asked != -100
        assert read[is_piece].tolist() == tokens[:-1].tolist() and asked[is_piece].tolist() == tokens[1:].tolist()
        for place in np.flatnonzero(read < 0):
            last = read[place:][read[place:] > END][0]  # x_I, token i + 1 at place i
            assert ~read[place] in [row for row in words[last:] if row >= 0][:4]
    assert told(np.array([5, 6, 7]), 2).tolist() == [5, 6, ~0, ~1, 7]


def test_evaluation_and_continuation(corpus: Path, run: Path, capsys):
    assert main(["evaluate", str(corpus), "--work-dir", str(run), "--prompts", "6"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["held_out_perplexity"]) == {"none", "topics", "next_words", "words_of_another_text"}
    assert set(found["continuations"]) == {"none", "topics"}
    assert all(0 <= of["share_of_topics_met"] <= 1 for of in found["continuations"].values())
    assert found["prompts"] == 6

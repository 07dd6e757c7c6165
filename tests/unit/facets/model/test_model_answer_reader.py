"""The answer reader: its checkpoint, and that what it reads does not depend on what is read with it."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from toys import TOY_READER_ENCODER, toy_word_pieces

from facets.errors import CheckpointError, NotFoundError
from facets.model.answer_reader import AnswerNetwork, AnswerReader, ReaderConfig, counted
from facets.model.passage_checkpoint import write_encoder

QUESTION = "who was in the lake?"
TEXTS = [("the lake", ["a man was in the water", "the city is near"]), ("", ["the lake", "a dog", "the man"])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    config = ReaderConfig(name="toy-reader", encoder=TOY_READER_ENCODER, intercept=-1.0, slope=0.5)
    write_encoder(tmp_path / "reader", config, AnswerNetwork(TOY_READER_ENCODER).state_dict(), toy_word_pieces())
    return tmp_path / "reader"


def test_a_text_is_read_the_same_alone_and_with_others(folder: Path) -> None:
    reader = AnswerReader.shared(folder)
    assert AnswerReader.shared(folder) is reader
    together = reader.read(QUESTION, TEXTS)
    assert [len(own) for own in together] == [2, 3]
    for text, own in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(reader.read(QUESTION, [text])[0], own, atol=0.02)
    assert reader.read(QUESTION, []) == []


def test_question_mark_does_not_matter(folder: Path) -> None:
    reader = AnswerReader.shared(folder)
    np.testing.assert_array_equal(reader.read(QUESTION, TEXTS)[0], reader.read("who was in the lake", TEXTS)[0])


def test_sentences_that_do_not_fit_are_not_read(folder: Path) -> None:
    log_odds = AnswerReader.shared(folder).read(QUESTION, [("", ["the lake " * 100] * 5)])[0]
    assert np.isfinite(log_odds[:2]).all()
    assert log_odds[-1] == -math.inf


def test_confidence_is_calibrated_and_bounded(folder: Path) -> None:
    reader = AnswerReader.shared(folder)
    assert reader.answer_confidence(2.0) == pytest.approx(0.5)
    assert 0 <= reader.answer_confidence(-1e9) < reader.answer_confidence(1e9) <= 1
    assert reader.hit_confidence(0.3, -2.0) == 0.3  # not calibrated: the reader does not change it


def test_how_near_a_hit_is_does_not_make_it_an_answer() -> None:
    assert counted(-0.5, 2.0) == counted(-2.0, 2.0) > counted(-4.0, 2.0)
    assert counted(1.5, 2.0) > counted(0.5, 2.0)
    assert counted(1.5, -20.0) == counted(1.5, -5.0)


def test_damaged_or_missing_reader_is_told(folder: Path) -> None:
    with pytest.raises(NotFoundError):
        AnswerReader.shared("no-reader")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        AnswerReader.from_folder(folder)

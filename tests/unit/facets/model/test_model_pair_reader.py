"""The pair reader: its checkpoint; what it reads depends neither on the batch nor on the order of the texts."""

from pathlib import Path

import numpy as np
import pytest
import torch
from toys import TOY_READER_ENCODER, toy_word_pieces

from facets.errors import CheckpointError, NotFoundError
from facets.model.pair_reader import RELATIONS, PairNetwork, PairReader, PairReaderConfig
from facets.model.passage_checkpoint import write_encoder

PAIRS = [("a man was in the water", "the lake"), ("a dog", "the dog plays guitar"), ("music", "music")] * 12


@pytest.fixture
def reader(tmp_path: Path) -> PairReader:
    torch.manual_seed(0)
    config = PairReaderConfig(name="toy-pairs", encoder=TOY_READER_ENCODER)
    write_encoder(tmp_path / "pairs", config, PairNetwork(TOY_READER_ENCODER).state_dict(), toy_word_pieces())
    return PairReader.shared(tmp_path / "pairs")


def test_a_pair_is_read_the_same_alone_and_with_others(reader: PairReader) -> None:
    together = reader.read(PAIRS)
    assert together.shape == (len(PAIRS), len(RELATIONS))
    np.testing.assert_allclose(together.sum(1), 1.0, atol=1e-4)
    np.testing.assert_allclose(reader.read(PAIRS[:1])[0], together[0], atol=0.02)
    assert reader.read([]).shape == (0, len(RELATIONS))


def test_swapped_texts_swap_who_entails_whom(reader: PairReader) -> None:
    there, back = reader.read(PAIRS), reader.read([(second, first) for first, second in PAIRS])
    np.testing.assert_allclose(there[:, [0, 2, 1, 3, 4]], back, atol=0.02)


def test_long_texts_are_read_up_to_a_limit(reader: PairReader) -> None:
    assert np.isfinite(reader.read([("the lake " * 1000, "the dog " * 1000)])).all()


def test_a_missing_or_damaged_checkpoint_is_named(reader: PairReader, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no-reader"):
        PairReader.shared("no-reader")
    (tmp_path / "pairs" / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        PairReader.from_folder(tmp_path / "pairs")

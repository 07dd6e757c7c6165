"""How papers are read: typed rows of words; sentence vectors made, stored, added, brought to another version."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from toy_papers import SHARE

from facets.errors import CheckpointError, NotFoundError
from facets.language.tokenizer import Tokenizer
from facets.language.vocabulary import Vocabulary
from facets.model.passage_model import PassageModel
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.reading import SentenceVectors, sentence_texts, typed_rows
from facets.papers.records import Author, CandidateKind, NewAuthor, Paper, PaperOptions
from facets.papers.trained import write_sentence_vectors

AUTHORS = CandidateKind.AUTHORS
VOICE = Paper("voice of a speaker", "microphone prosody and tone")
NEW = Paper("prosody of a microphone", "tone and pitch", "n1", (Author("New One"),))


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that an encoder reads from now on."""
    texts: list[str] = []
    embed = PassageModel.embed

    def noted(self: PassageModel, some: Any) -> Any:
        texts.extend(some)
        return embed(self, some)

    monkeypatch.setattr(PassageModel, "embed", noted)
    return texts


def test_documents_are_a_weighted_sum_of_both_cosines(sentence_model: PaperModel, model: PaperModel) -> None:
    papers = [VOICE, Paper("parser")]
    documents = PaperEngine(sentence_model).encode(papers).documents @ sentence_model.trained_documents().T
    words = PaperEngine(model).encode(papers).documents @ model.trained_documents().T
    assert sentence_model.sentences is not None
    vectors = sentence_model.sentence_vectors([p.title for p in papers], [p.abstract for p in papers])
    cosines = vectors @ sentence_model.sentences.units().T
    assert_allclose(documents, (1 - SHARE) * words + SHARE * cosines, atol=1e-5)


def test_added_papers_have_sentences_too_and_are_encoded_once(
    sentence_model: PaperModel, tmp_path: Path, embedded: list[str]
) -> None:
    engine = PaperEngine(sentence_model, data_dir=tmp_path)
    engine.add_papers([NEW])
    engine.add_authors([NewAuthor(Author("Other"), (VOICE,))])
    assert embedded == sentence_texts([NEW.title, VOICE.title], [NEW.abstract, VOICE.abstract], 100)
    before = engine.recommend(AUTHORS, [VOICE], PaperOptions(top_k=20, evidence=True))
    [hit] = [hit for hit in before[0] if hit.id == "Other"]
    assert hit.document_score == pytest.approx(1.0, abs=1e-5)
    engine.close()
    embedded.clear()
    again = PaperEngine(sentence_model, data_dir=tmp_path)
    assert not embedded
    [hits] = again.recommend(AUTHORS, [VOICE], PaperOptions(top_k=20, evidence=True))
    assert [hit.id for hit in hits] == [hit.id for hit in before[0]]
    # Matrix products of one paper and of two may differ in the last bit.
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in before[0]], abs=1e-6)
    again.close()


def test_additions_made_before_the_model_had_sentences_get_them_once(
    model: PaperModel, sentence_model: PaperModel, tmp_path: Path, embedded: list[str]
) -> None:
    engine = PaperEngine(model, data_dir=tmp_path)
    engine.add_papers([NEW])
    engine.close()
    asked = [Paper(NEW.title, NEW.abstract)]
    for times in (1, 0):
        embedded.clear()
        engine = PaperEngine(sentence_model, data_dir=tmp_path)
        assert len(embedded) == times
        [hits] = engine.recommend(AUTHORS, asked, PaperOptions(candidates=["New One"]))
        assert hits[0].document_score == pytest.approx(1.0, abs=1e-5)
        engine.close()
    engine = PaperEngine(model, data_dir=tmp_path)  # and back: words alone
    engine.add_papers([Paper("tone", id="n2", authors=(Author("New One"),))])
    assert engine.recommend(AUTHORS, asked, PaperOptions(candidates=["New One"]))[0][0].document_score > 0
    engine.close()


def changed(source: Path, target: Path, **sentences: object) -> Path:
    """A copy of model and encoder, with other settings of the sentences."""
    shutil.copytree(source.parent, target)
    path = target / "papers" / "recommendation.json"
    values = json.loads(path.read_text())
    values["sentences"] |= sentences
    path.write_text(json.dumps(values))
    return target / "papers"


@pytest.mark.parametrize(
    ("sentences", "error", "message"),
    [
        ({"encoder": "../nothing"}, NotFoundError, "nothing"),
        ({"space": "other"}, CheckpointError, "of the space 'other', expected an encoder of that space"),
        ({"abstract_chars": -1}, CheckpointError, "abstract_chars must be in"),
        ({"share": 1.5}, CheckpointError, r"share must lie between 0 and 1, got 1\.5"),
    ],
)
def test_settings_that_do_not_fit_are_told(
    with_sentences: Path, tmp_path: Path, sentences: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        PaperModel.from_folder(changed(with_sentences, tmp_path / "copy", **sentences))


def test_vectors_of_other_papers_are_told(with_sentences: Path, tmp_path: Path) -> None:
    copy = changed(with_sentences, tmp_path / "copy")
    write_sentence_vectors(
        copy, SentenceVectors(np.eye(32, dtype=np.float32), np.zeros(32, np.float32), np.eye(32, dtype=np.int8))
    )
    with pytest.raises(CheckpointError, match=r"sentences\.safetensors\.xz"):
        PaperModel.from_folder(copy)


VOCABULARY = Vocabulary(["the", "of", "parser", "tree"], np.array([4, 3, 2, 1]))


@pytest.mark.parametrize(
    ("title", "abstract", "expected"),
    [
        ("Parser", "Parser tree", [2, 2 + 5, 3 + 5]),  # words of the abstract have rows of their own
        ("The parser of the zebra!", "", [2, 4]),  # stop words and punctuation are left out, unknown words stay
        ("The of", "The tree", [0, 1, 3 + 5]),  # a title of stop words keeps them
    ],
)
def test_rows_hold_the_words_that_tell_papers_apart(title: str, abstract: str, expected: list[int]) -> None:
    [rows] = typed_rows(Tokenizer(), VOCABULARY, [title], [abstract])
    assert rows.tolist() == expected

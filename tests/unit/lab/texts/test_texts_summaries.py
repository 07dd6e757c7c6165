"""``facets-eval summarization``, and the summaries of texts of users."""

import json
import lzma
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.texts import importance, pairs, summaries
from facets_lab.texts.marked_files import HELD_OUT, MarkedFile, marked_files
from facets_lab.texts.summaries import read_summaries, rouge_scores
from numpy.typing import NDArray
from source_tree import ROOT
from toys import toy_model

from facets.language.sentences import sentences_of
from facets.model import FacetModel, load
from facets.texts import summarize
from facets.texts.topics import suggest_topics

DOCUMENT = (
    "A man plays the guitar in the garage.",
    "The dog.",
    "Music and guitar music and the guitar man plays.",
    "Qwxz vbnm!",
    "The man in the garage plays guitar music.",
)
RECORDS = [
    {"id": "1", "sentences": [*DOCUMENT, ""], "references": [DOCUMENT[4]]},
    {"id": "2", "sentences": ["The dog."], "references": ["dogs", "a man"]},
]


def letters(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.array([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], dtype=np.float32)


def write_records(path: Path, records: Sequence[object]) -> Path:
    text = "".join(json.dumps(record) + "\n" for record in records)
    path.write_bytes(lzma.compress(text.encode()) if path.suffix == ".xz" else text.encode())
    return path


def test_read_summaries_leaves_out_blank_sentences(tmp_path: Path) -> None:
    documents, references = read_summaries(write_records(tmp_path / "data.jsonl.xz", RECORDS))
    assert [len(sentences) for sentences in documents] == [5, 1]
    assert references[1] == ["dogs", "a man"]


def test_rouge_is_f1_with_stemming_and_the_best_reference() -> None:
    scores = rouge_scores(["the dogs played", "a b c d"], [["cats", "the dog plays"], ["a b x y"]])
    # First pair: equal after stemming. Second: 2 of 4 words, 1 of 3 bigrams, 2 of 4 in order.
    assert scores["rouge1"] == pytest.approx([1, 1 / 2])
    assert scores["rouge2"] == pytest.approx([1, 1 / 3])
    assert scores["rougeL"] == pytest.approx([1, 1 / 2])
    assert scores["length"].tolist() == [3, 4]


def test_command_prints_models_and_baselines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(summaries, "minilm", lambda: letters)
    monkeypatch.setattr(pairs, "BASELINE_MODELS", ())
    toy_model().save(tmp_path / "toy")
    data = write_records(tmp_path / "data.jsonl", RECORDS)
    arguments = ["--model", str(tmp_path / "toy"), "--baselines", "--words", "10", "--bootstrap", "5"]
    assert main(["summarization", str(data), *arguments]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == 2
    assert {name: list(methods) for name, methods in report["models"].items()} == {
        "toy": ["coverage"],
        "first": ["ranking"],
        "sentence-average": ["coverage"],
        "minilm-centroid": ["ranking"],
    }
    metrics = report["models"]["toy"]["coverage"]
    assert list(metrics)[::3] == ["rouge1", "rouge2", "rougeL", "length"]
    assert 0 < metrics["rouge1"] <= 1 and metrics["length"] <= 10


@pytest.mark.parametrize(
    ("file", "at_least"),  # what was measured, less one
    [
        ("summary_texts", 16),  # of 20
        ("summary_texts_unseen", 8),  # of 10
        ("summary_texts_fresh", 9),
        ("summary_texts_fresh_second", 8),
    ],
)
def test_summaries_of_raw_texts_name_the_subject_and_the_facts(file: str, at_least: int) -> None:
    model, num_good = load(), 0
    for line in (ROOT / f"tests/answers/{file}.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        (summary,) = summarize(model, [case["text"]], num_sentences=3)
        text = " ".join(" ".join(sentence.text for sentence in summary.sentences).split())
        num_facts = sum(re.search(fact, text, re.IGNORECASE) is not None for fact in case["key_facts"])
        is_clean = not any(" ".join(never.split()) in text for never in case["never"])
        is_good = re.search(case["subject"], text) and num_facts >= case["num_key_facts"] and is_clean
        num_good += summary.has_prose == case["has_prose"] and bool(is_good or not case["has_prose"])
    assert num_good >= at_least


def test_summaries_of_marked_files_have_the_sentences_that_people_pick() -> None:
    model, found = load(), []
    for file in marked_files():
        if file.group in HELD_OUT:
            num_sentences = sum(worth == 1 for _, worth in file.marks)
            (summary,) = summarize(model, [file.text], num_sentences=num_sentences)
            worth = file.worth(sentences_of(file.text))
            found.append(sum(worth[sentence.sentence] for sentence in summary.sentences) / num_sentences)
    assert len(found) == 136
    assert np.mean(found) > 0.75  # 0.73 by the layout alone


def test_importance_can_be_fitted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = {"id": "1", "sentences": [*DOCUMENT[:3], DOCUMENT[2]], "references": [DOCUMENT[2]]}
    monkeypatch.setattr(importance, "marked_files", lambda: [MarkedFile(7, "Hello. The boiler broke.", ((7, 1.0),))])
    importance.main("facets-reader-en", str(write_records(tmp_path / "data.jsonl", [record] * 20)))
    alone, beside = map(json.loads, capsys.readouterr().out.splitlines())
    assert (len(alone), len(beside)) == (7, 8)
    assert alone[0] > 0  # longer sentences are picked


@pytest.fixture(scope="module")
def model() -> FacetModel:
    return load("facets-en", FacetModel)


def test_most_prompts_get_a_word_that_a_person_expects(model: FacetModel) -> None:
    lines = (ROOT / "tests/answers/topic_prompts.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    suggested = suggest_topics(model, [case["text"] for case in cases])
    met = [
        bool({word.word for topic in topics.topics for word in topic.words} & set(case["expected"]))
        for case, topics in zip(cases, suggested, strict=True)
    ]
    assert sum(met) >= 16  # of 20; what was measured, less one
    assert all(0 <= topic.likelihood <= 1 for topics in suggested for topic in topics.topics)


def test_topics_of_a_message_are_its_nouns_and_no_names(model: FacetModel) -> None:
    text = (
        "Hi Mr Becker, the washing machine in flat 3 leaks again. Becker said the hose was new, but there is water"
        " on the floor after each wash. Could the plumber look at the hose and the pump? The water has reached"
        " the parquet."
    )
    (found,) = suggest_topics(model, [text], num_topics=4)
    named = {topic.words[0].word for topic in found.topics}
    assert len(named & {"machine", "hose", "water", "pump", "plumber", "floor", "parquet", "wash"}) >= 3
    assert "becker" not in {word.word for topic in found.topics for word in topic.words}

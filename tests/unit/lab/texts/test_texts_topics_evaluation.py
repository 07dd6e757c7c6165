"""Topics of twenty plain prompts, and the figures of table 4.1 in small."""

import json
from pathlib import Path

import numpy as np
import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.texts.data import SentenceTrainingConfig
from facets_lab.texts.topics import NUM_TOPICS, generators, measure, read_prompts, read_texts
from source_tree import ROOT

from facets.errors import InvalidInputError
from facets.model import FacetModel, load
from facets.texts.topics import suggest_topics

_PROMPTS = ROOT / "tests/answers/topic_prompts.jsonl"
# Each prompt was given words before any answer was seen, one of which should be among its topics' words.
_RIGHT = 16  # of 20; 17 when this was written


@pytest.fixture(scope="module")
def model() -> FacetModel:
    return load("facets-en", FacetModel)


def articles() -> list[str]:
    """Five samples a text, long enough to be cut."""
    texts = read_texts(ROOT / "samples/wikipedia.jsonl")
    return [" ".join(texts[first : first + 5]) for first in range(0, len(texts), 5)]


def test_most_prompts_meet_a_word_that_a_person_would_expect(model):
    cases = [json.loads(line) for line in _PROMPTS.read_text(encoding="utf-8").splitlines()]
    found = suggest_topics(model, [case["text"] for case in cases])
    met = [
        bool({word.word for topic in topics.topics for word in topic.words} & set(case["expected"]))
        for case, topics in zip(cases, found, strict=True)
    ]
    assert sum(met) >= _RIGHT
    assert all(0 <= topic.likelihood <= 1 for topics in found for topic in topics.topics)


def test_every_method_has_topics_and_the_prompts_own_words_are_closest_to_it(model):
    prompts = read_prompts(articles(), model, length=35)[:6]
    assert len(prompts) == 6
    methods = generators([model], articles())
    figures = {name: measure(prompts, generate) for name, generate in methods.items()}
    assert set(figures) == {
        *("sample-global", "lda-global", "kmeans-global", "sample-local", "nnsc-local", "kmeans-local"),
        *("facets-en", "facets-en-whole"),
    }
    assert figures["kmeans-local"]["sim_diff"] < figures["facets-en"]["sim_diff"] < figures["sample-global"]["sim_diff"]
    assert figures["facets-en"]["sim"] > figures["sample-global"]["sim"]
    assert all(len(generate(prompts[0])) <= NUM_TOPICS for generate in methods.values())


def test_the_likelihood_is_fitted_and_stored(tmp_path: Path, capsys, model):
    data = tmp_path / "texts.jsonl"
    data.write_text("".join(json.dumps({"text": text}) + "\n" for text in articles()), encoding="utf-8")
    folder = ROOT / "models/facets-en"
    before = (folder / "calibration.json").read_bytes()
    assert main(["fit-topics", str(data), "--model", str(folder), "--source", "test", "--dry-run"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert 0 < report["base_rate"] < 1
    assert (folder / "calibration.json").read_bytes() == before


def test_a_record_without_text_is_named(tmp_path: Path):
    path = tmp_path / "texts.jsonl"
    path.write_text('{"sentences": ["One.", "Two."]}\n{"id": 1}\n', encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"line 2.*text or sentences, got id"):
        read_texts(path)


def test_the_settings_of_what_follows_are_read():
    config = SentenceTrainingConfig.from_toml(ROOT / "lab/configs/facets-topics-en.toml")
    assert (config.targets, config.start_from) == ("next", "models/facets-en")
    assert np.isfinite(config.l1_weight)

"""Raw texts as groups of neighbouring passages."""

from pathlib import Path

import pytest
from facets_lab.documents.data import Passage, PassageDataConfig, SourceConfig, read_groups

from facets.errors import ConfigError, InvalidInputError


def _groups(source: SourceConfig, **settings: int) -> list[list[Passage]]:
    return read_groups(PassageDataConfig(sources=[source], **settings))  # type: ignore[arg-type]


def test_neighbours_of_an_article_stand_together_and_short_paragraphs_are_left_out(raw_texts: Path) -> None:
    groups = _groups(SourceConfig(kind="wikipedia", files=[str(raw_texts / "wiki.txt")], with_title=0.0))
    assert len(groups) == 8
    for group in groups:
        assert [passage.text[-5:] for passage in group] in [[f"ing {n}", "river"] for n in range(8)]
        assert all(not passage.questions for passage in group)


def test_questions_about_one_passage_are_its_questions(raw_texts: Path) -> None:
    source = SourceConfig(kind="questions", files=[str(raw_texts / "questions.jsonl")])
    (group,) = _groups(source)
    assert len(group) == 6
    assert all(len(passage.questions) == 2 for passage in group)


def test_a_title_is_asked_or_read_never_both(raw_texts: Path) -> None:
    source = SourceConfig(kind="papers", files=[str(raw_texts / "papers.jsonl")], with_title=0.5)
    (group,) = _groups(source)
    assert len(group) == 6  # one has no abstract
    assert {bool(passage.questions) for passage in group} == {True, False}
    assert all(bool(passage.questions) != passage.text.startswith("Bread") for passage in group)


def test_bad_data_is_named_by_file_and_line(raw_texts: Path) -> None:
    path = raw_texts / "bad.jsonl"
    path.write_text('{"query": "a", "positive": "b"}\n{"query": "a"}\n')
    with pytest.raises(InvalidInputError, match=r"bad\.jsonl, line 2"):
        _groups(SourceConfig(kind="questions", files=[str(path)]))
    with pytest.raises(ConfigError, match="nothing"):
        _groups(SourceConfig(kind="papers", files=[str(raw_texts / "nothing*")]))

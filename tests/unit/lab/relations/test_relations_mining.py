import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import spacy
from facets_lab.relations.entity_pairs import (
    DocumentMiner,
    distinctive_names,
)
from facets_lab.relations.mining import mine_cells
from facets_lab.relations.title_types import read_types

from facets.errors import ConfigError, NotFoundError
from facets.relations import EntitySpan, EntityType, SpacyEntities
from facets.relations.patterns import PairLimits

CORPUS = """# Ann Lee
Ann Lee is a singer. Ann Lee was born in Paris. Ann Lee lives in Paris. Ann Lee was born in Rome.

# Bob Ray
Bob Ray was born in Paris. Bob Ray lives in Paris. Bob Ray was born in London.

# Paris
Paris is near London. Will London grow? It will.

# London
London lies near Paris.
"""


def corpus(folder: Path) -> Path:
    path = folder / "corpus.txt"
    path.write_text(CORPUS, encoding="utf-8")
    return path


def mine_toy(folder: Path, out: str = "out", **options: Any) -> dict[str, Any]:
    """Mines ``corpus.txt`` of the folder, which is the toy where there is none, in one process."""
    path = folder / "corpus.txt"
    path = path if path.exists() else corpus(folder)
    return mine_cells([path], folder / out, **{"num_workers": 1, "show_progress": False, **options})


def mined(folder: Path) -> dict[tuple[str, str, str], int]:
    lines = (folder / "cells.tsv").read_text(encoding="utf-8").splitlines()
    return {tuple(line.split("\t")[:3]): int(line.split("\t")[3]) for line in lines}  # type: ignore[misc]


def test_mining_keeps_pairs_and_patterns_that_others_share(tmp_path: Path) -> None:
    report = mine_toy(tmp_path, num_workers=2)
    cells = mined(tmp_path / "out")
    assert cells[("Ann Lee", "Paris", "$ARG1 was born in $ARG2")] == 1
    assert cells[("Paris", "Bob Ray", "$ARG2 lives in $ARG1")] == 1
    assert report["num_cells"] == len(cells)
    assert json.loads((tmp_path / "out" / "mining.json").read_text())["num_sentences"] == report["num_sentences"] == 11
    pairs = Counter(cell[:2] for cell in cells)
    assert min(pairs.values()) >= 2


def test_the_number_of_workers_changes_nothing(tmp_path: Path) -> None:
    for workers in (1, 2):
        mine_toy(tmp_path, str(workers), num_workers=workers)
    assert mined(tmp_path / "1") == mined(tmp_path / "2")


def test_patterns_that_are_asked_for_stay_with_one_pair(tmp_path: Path) -> None:
    mine_toy(tmp_path, keep_patterns=["$ARG1 lies near $ARG2", "$ARG1 is near $ARG2"])
    cells = mined(tmp_path / "out")
    assert cells[("London", "Paris", "$ARG1 lies near $ARG2")] == 1
    assert ("Paris", "London", "$ARG2 lies near $ARG1") not in cells


def pipeline(folder: Path, **names: str) -> str:
    nlp = spacy.blank("en")
    patterns = [{"label": kind, "pattern": name.replace("_", " ")} for name, kind in names.items()]
    nlp.add_pipe("entity_ruler").add_patterns(patterns)
    nlp.to_disk(folder / "pipeline")
    return str(folder / "pipeline")


def test_a_recognizer_finds_more_entities_and_their_kinds(tmp_path: Path) -> None:
    recognizer = pipeline(tmp_path, Oslo="GPE", Eve_Poe="PERSON", Poe="PERSON", Ann="PERSON")
    path = tmp_path / "corpus.txt"
    path.write_text("# Ann Lee\nEve Poe met Ann Lee in Oslo. Poe met Ann Lee in Rome.\n", encoding="utf-8")
    report = mine_toy(tmp_path, recognizer=recognizer)
    assert report["num_types"] == 3
    assert read_types(tmp_path / "out" / "types.tsv") == {
        "Eve Poe": EntityType.PERSON,
        "Ann": EntityType.PERSON,
        "Oslo": EntityType.PLACE,
    }


def test_last_names_and_the_longest_span_win_under_a_recognizer(tmp_path: Path) -> None:
    finder = SpacyEntities(pipeline(tmp_path, Oslo="GPE", Eve_Poe="PERSON", Poe="PERSON", Ann="PERSON"))
    cells: Counter[tuple[str, str]] = Counter()
    text = "Eve Poe met Ann Lee in Oslo. Poe met Ann Lee in Rome."
    DocumentMiner(["Ann Lee"], PairLimits(), finder).mine("", [text], cells, Counter())
    assert cells["Eve Poe\tAnn Lee", "$ARG1 met $ARG2"] == 2
    assert cells["Eve Poe\tOslo", "$ARG1 met $ENT in $ARG2"] == 1


def test_sentences_without_two_names_are_not_asked_about() -> None:
    asked: list[str] = []

    class Finder:
        def find(self, texts: Sequence[str]) -> list[list[EntitySpan]]:
            asked.extend(texts)
            return [[] for _ in texts]

    text = "The rain fell on Oslo. It was wet. She was born in Oslo. Ann Lee left. The Beatles met Ann Lee in 1964."
    DocumentMiner(["Ann Lee"], PairLimits(), Finder()).mine("", [text], Counter(), Counter())
    assert asked == ["She was born in Oslo.", "The Beatles met Ann Lee in 1964."]


def test_a_stopped_mining_goes_on_with_the_blocks_that_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = mine_toy(tmp_path, "whole")
    # The last step fails: all blocks are there by then.
    with monkeypatch.context() as broken:
        broken.setattr("facets_lab.relations.mining.write_types", lambda path, types: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            mine_toy(tmp_path)
    report = mine_toy(tmp_path)
    assert report["sentences_per_second"] == 0
    assert report["num_sentences"] == whole["num_sentences"]
    assert mined(tmp_path / "out") == mined(tmp_path / "whole")


def test_a_stopped_mining_with_other_settings_starts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("facets_lab.relations.mining.write_types", lambda path, types: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            mine_toy(tmp_path)
    report = mine_toy(tmp_path, names=["Paris", "London"])
    assert report["sentences_per_second"] > 0


def test_a_recognizer_that_is_not_installed_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no spaCy pipeline 'en_none'"):
        mine_toy(tmp_path, recognizer="en_none")


def test_a_corpus_without_names_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("Only text without a title.\n")
    with pytest.raises(ConfigError, match="gazetteer must hold a name"):
        mine_toy(tmp_path)


def mine(title: str, text: str, *names: str) -> set[str]:
    cells: Counter[tuple[str, str]] = Counter()
    DocumentMiner(names, PairLimits()).mine(title, [text], cells, Counter())
    return {f"{pair}\t{pattern}".replace("\t", " | ") for pair, pattern in cells}


def test_a_person_is_found_by_last_name_pronoun_and_date() -> None:
    text = (
        "Ann Lee was a singer. She was born in Paris. Lee moved to London. Her home was Rome. "
        "She sang in Oslo. Ann Lee was born on 3 May 1950."
    )
    found = mine("Ann Lee", text, "Ann Lee", "Paris", "London", "Rome", "Oslo")
    assert "Ann Lee | Paris | $ARG1 was born in $ARG2" in found
    assert "Ann Lee | London | $ARG1 moved to $ARG2" in found
    assert "Ann Lee | Rome | $ARG1 's home was $ARG2" in found
    assert "Ann Lee | 1950-05-03 | $ARG1 was born on $ARG2" in found
    assert "1950-05-03 | Ann Lee | $ARG2 was born on $ARG1" in found


def test_pronouns_count_in_documents_of_persons_only() -> None:
    assert mine("Paris", "Paris is a city. He likes London.", "Paris", "London") == set()


def test_what_stands_around_a_pair_counts_where_nothing_stands_between() -> None:
    found = mine("", "The capital of Norway is Oslo.", "Norway", "Oslo")
    assert "Norway | Oslo | the capital of $ARG1 is $ARG2" in found
    found = mine("", "Then Ann Lee and Bob Ray were married.", "Ann Lee", "Bob Ray")
    assert "Ann Lee | Bob Ray | $ARG1 and $ARG2 were married" in found


def test_items_of_a_list_are_no_pair_but_neighbours_are() -> None:
    found = mine("", "He saw Rome, Oslo and Bonn.", "Rome", "Oslo", "Bonn")
    assert not any(cell.startswith("Rome | Bonn") for cell in found)
    assert "Rome | Oslo | $ARG1 , $ARG2" in found


def test_common_words_are_no_names() -> None:
    texts = ["the will of the people will stay", "London will grow"]
    names = distinctive_names(["Will", "London", "Al", "New York", "stolen base"], texts)
    assert names == ["London", "New York"]

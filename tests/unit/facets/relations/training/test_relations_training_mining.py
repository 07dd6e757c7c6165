import json
from collections import Counter
from pathlib import Path

import pytest

from facets.errors import ConfigError, InvalidInputError
from facets.relations.patterns import PatternLimits
from facets.relations.training.mining import mine_cells
from facets.relations.training.mining_documents import (
    DocumentMiner,
    distinctive_names,
    name_variants,
    read_titled_documents,
)

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


def mined(folder: Path) -> dict[tuple[str, str, str], int]:
    lines = (folder / "cells.tsv").read_text(encoding="utf-8").splitlines()
    return {tuple(line.split("\t")[:3]): int(line.split("\t")[3]) for line in lines}  # type: ignore[misc]


def test_mining_keeps_pairs_and_patterns_that_others_share(tmp_path: Path) -> None:
    report = mine_cells([corpus(tmp_path)], tmp_path / "out", num_workers=2, show_progress=False)
    cells = mined(tmp_path / "out")
    assert cells[("Ann Lee", "Paris", "$ARG1 was born in $ARG2")] == 1
    assert cells[("Paris", "Bob Ray", "$ARG2 lives in $ARG1")] == 1
    assert report.num_cells == len(cells)
    assert json.loads((tmp_path / "out" / "mining.json").read_text())["num_sentences"] == report.num_sentences == 11
    pairs = Counter(cell[:2] for cell in cells)
    assert min(pairs.values()) >= 2


def test_the_number_of_workers_changes_nothing(tmp_path: Path) -> None:
    for workers in (1, 2):
        mine_cells([corpus(tmp_path)], tmp_path / str(workers), num_workers=workers, show_progress=False)
    assert mined(tmp_path / "1") == mined(tmp_path / "2")


def test_pairs_of_the_knowledge_base_stay_with_one_pattern(tmp_path: Path) -> None:
    mine_cells(
        [corpus(tmp_path)],
        tmp_path / "out",
        extra_names=["Bob_Ray"],
        keep_pairs=[("Bob_Ray", "London")],
        num_workers=1,
        show_progress=False,
    )
    assert any(cell[:2] == ("Bob Ray", "London") for cell in mined(tmp_path / "out"))


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    mine_cells([corpus(tmp_path)], tmp_path / "out", num_workers=1, show_progress=False)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["cells.tsv", "mining.json"]


def test_a_corpus_without_names_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("Only text without a title.\n")
    with pytest.raises(ConfigError, match="gazetteer must hold a name"):
        mine_cells([path], tmp_path / "out", num_workers=1, show_progress=False)


def test_a_damaged_corpus_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"# Ann\ngood\n\xff\xfe\n")
    with pytest.raises(InvalidInputError, match=r"corpus.txt, line 3"):
        mine_cells([path], tmp_path / "out", num_workers=1, show_progress=False)


def mine(title: str, text: str, *names: str) -> set[str]:
    cells: Counter[str] = Counter()
    DocumentMiner(names, PatternLimits()).mine(title, [text], cells)
    return {cell.replace("\t", " | ") for cell in cells}


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


def test_items_of_a_list_are_no_pair_but_neighbours_are() -> None:
    found = mine("", "He saw Rome, Oslo and Bonn.", "Rome", "Oslo", "Bonn")
    assert not any(cell.startswith("Rome | Bonn") for cell in found)
    assert "Rome | Oslo | $ARG1 , $ARG2" in found


def test_common_words_are_no_names() -> None:
    texts = ["the will of the people will stay", "London will grow"]
    names = distinctive_names(["Will", "London", "Al", "New York", "stolen base"], texts)
    assert names == ["London", "New York"]


def test_name_variants_are_what_texts_say() -> None:
    assert name_variants("Paris,_Texas") == ["Paris, Texas", "Paris"]
    assert name_variants("Arrabbiata_sauce_(food)") == ["Arrabbiata sauce"]


def test_documents_come_with_their_titles(tmp_path: Path) -> None:
    titles = [title for title, _ in read_titled_documents(corpus(tmp_path))]
    assert titles == ["Ann Lee", "Bob Ray", "Paris", "London"]

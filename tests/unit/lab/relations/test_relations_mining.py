import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import spacy
from facets_lab.relations.entity_pairs import DocumentMiner
from facets_lab.relations.mining import mine_cells

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
    """Mines ``corpus.txt`` of the folder, which is the toy where there is none."""
    path = folder / "corpus.txt"
    path = path if path.exists() else corpus(folder)
    return mine_cells([path], folder / out, **options)


def mined(folder: Path) -> dict[tuple[str, str, str], int]:
    lines = (folder / "cells.tsv").read_text(encoding="utf-8").splitlines()
    return {tuple(line.split("\t")[:3]): int(line.split("\t")[3]) for line in lines}  # type: ignore[misc]


def test_mining_keeps_pairs_and_patterns_that_others_share(tmp_path: Path) -> None:
    report = mine_toy(tmp_path)
    cells = mined(tmp_path / "out")
    assert cells[("Ann Lee", "Paris", "$ARG1 was born in $ARG2")] == 1
    assert cells[("Paris", "Bob Ray", "$ARG2 lives in $ARG1")] == 1
    assert report["num_cells"] == len(cells)
    assert report["num_sentences"] == 11
    pairs = Counter(cell[:2] for cell in cells)
    assert min(pairs.values()) >= 2


def test_patterns_that_are_asked_for_stay_with_one_pair(tmp_path: Path) -> None:
    (tmp_path / "phrases.tsv").write_text("near\t$ARG1 lies near $ARG2\nnear\t$ARG1 is near $ARG2\n")
    mine_toy(tmp_path, phrases=tmp_path / "phrases.tsv")
    cells = mined(tmp_path / "out")
    assert cells[("London", "Paris", "$ARG1 lies near $ARG2")] == 1
    assert ("Paris", "London", "$ARG2 lies near $ARG1") not in cells


def pipeline(folder: Path, **names: str) -> str:
    nlp = spacy.blank("en")
    patterns = [{"label": kind, "pattern": name.replace("_", " ")} for name, kind in names.items()]
    nlp.add_pipe("entity_ruler").add_patterns(patterns)
    nlp.to_disk(folder / "pipeline")
    return str(folder / "pipeline")


def test_a_stopped_mining_goes_on_with_missing_blocks_and_starts_again_with_other_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = mine_toy(tmp_path, "whole")
    # The last step fails: all blocks are there by then.
    with monkeypatch.context() as broken:
        broken.setattr("facets_lab.relations.mining.write_types", lambda path, types: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            mine_toy(tmp_path)
        shutil.copytree(tmp_path / "out", tmp_path / "other")
    with monkeypatch.context() as broken:
        broken.setattr("facets_lab.relations.mining.mine_block", lambda task: 1 / 0)
        report = mine_toy(tmp_path)
    assert report["num_sentences"] == whole["num_sentences"]
    assert mined(tmp_path / "out") == mined(tmp_path / "whole")
    (tmp_path / "triples.tsv").write_text("Zed Foo\tLondon\tkb:near\t1\n")
    assert mine_toy(tmp_path, "other", triples=tmp_path / "triples.tsv") == whole | {
        "num_names": whole["num_names"] + 1
    }


def mine(title: str, text: str, *names: str) -> set[str]:
    cells: Counter[tuple[str, str]] = Counter()
    DocumentMiner(names).mine(title, [text], cells, Counter())
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

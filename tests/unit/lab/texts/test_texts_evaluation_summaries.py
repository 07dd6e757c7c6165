"""Summaries: reading, ROUGE, the command's JSON."""

import json
import lzma
from pathlib import Path

import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.texts.evaluation import read_summaries, rouge
from toys import toy_model

from facets.errors import InvalidInputError

RECORDS = [
    {
        "id": "1",
        "sentences": ["A man plays the guitar.", "", "The dog plays.", "Weights.", "Music in the garage, the dog!"],
        "references": ["The man plays guitar music."],
    },
    {"id": "2", "sentences": ["The dog."], "references": ["dogs", "a man"]},
]


@pytest.fixture
def rouge_score() -> None:
    pytest.importorskip("rouge_score", reason="the extra 'train' is not installed")


def _write(path: Path, records: list[object]) -> Path:
    text = "".join(json.dumps(record) + "\n" for record in records)
    path.write_bytes(lzma.compress(text.encode()) if path.suffix == ".xz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["data.jsonl", "data.jsonl.xz"])
def test_read_leaves_out_blank_sentences(tmp_path: Path, name: str) -> None:
    read = read_summaries(_write(tmp_path / name, RECORDS))
    assert [len(sentences) for sentences in read.documents] == [4, 1]
    assert read.references[1] == ("dogs", "a man")


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ([], "object, got list"),
        ({"references": ["a"]}, "a field sentences, got none"),
        ({"sentences": "text", "references": ["a"]}, "valid list as sentences, got 'text'"),
        ({"sentences": ["a", 3], "references": ["a"]}, r"sentences\.1, got 3"),
        ({"sentences": [" "], "references": ["a"]}, "sentences must have at least one"),
        ({"sentences": ["a"], "references": []}, "references must have at least one"),
    ],
)
def test_bad_records_are_named_by_file_and_line(tmp_path: Path, record: object, what: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"bad\.jsonl, line 2: .*{what}"):
        read_summaries(_write(tmp_path / "bad.jsonl", [RECORDS[0], record]))


def test_cut_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_text(json.dumps(RECORDS[0]) + '\n{"id": "2", "sent')
    with pytest.raises(InvalidInputError, match=r"cut\.jsonl, line 2: expected a JSON object"):
        read_summaries(path)


@pytest.mark.usefixtures("rouge_score")
def test_rouge_is_f1_with_stemming_and_the_best_reference() -> None:
    result = rouge(["the dogs played", "a b c d"], [["cats", "the dog plays"], ["a b x y"]])
    # First pair: equal after stemming. Second: 2 of 4 words, 1 of 3 bigrams, 2 of 4 in order.
    assert result["rouge1"] == pytest.approx((1 + 1 / 2) / 2)
    assert result["rouge2"] == pytest.approx((1 + 1 / 3) / 2)
    assert result["rougeL"] == pytest.approx((1 + 1 / 2) / 2)
    assert result["length"] == pytest.approx(3.5)


@pytest.mark.usefixtures("rouge_score")
@pytest.mark.parametrize(("option", "value", "length"), [("--sentences", "4", 8.5), ("--words", "5", None)])
def test_command_prints_one_object_of_the_agreed_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str, length: float | None
) -> None:
    toy_model().save(tmp_path / "toy")
    data = _write(tmp_path / "data.jsonl", RECORDS)
    assert main(["summarization", str(data), "--model", str(tmp_path / "toy"), option, value]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == 2 and list(report["models"]["toy"]) == ["coverage"]
    metrics = report["models"]["toy"]["coverage"]
    assert list(metrics) == ["rouge1", "rouge2", "rougeL", "length"]
    assert all(0 < metrics[name] <= 1 for name in ("rouge1", "rougeL"))
    assert metrics["length"] == length if length else metrics["length"] <= 5

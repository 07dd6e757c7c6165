"""STS: reading, correlations, the command's JSON and exit codes."""

import json
from pathlib import Path

import numpy as np
import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.texts.evaluation import correlations, evaluate_sts, read_sts
from facets_lab.texts.systems import PAIR_METHODS, FacetPairs
from toys import toy_model

from facets.errors import ConfigError, InvalidInputError
from facets.texts import fit_common_components

LINES = [
    "5.0\tA man plays the guitar.\tThe man plays a guitar.",
    "3.5\tA dog plays.\tThe dog lifting weights",
    '0.2\tmusic "in the garage"\tdog',
    "1.0\tguitar music\ta man",
    "2.4\tthe weights\tA man lifting weights",
    "0\tqwxz vbnm\tweights in the garage",
]
METHODS = "codebook max_facet average probability_average sif wmd probability_wmd encoder".split()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    model = toy_model()
    model.common_components = fit_common_components(model, [field for line in LINES for field in line.split("\t")[1:]])
    model.save(tmp_path / "toy")
    return str(tmp_path / "toy")


def test_methods_are_the_contract() -> None:
    assert {*METHODS, *(f"{name}+attention" for name in METHODS[2:-1])} <= set(PAIR_METHODS)


def test_read_keeps_quotes_and_takes_any_line_end(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes("\r\n".join(LINES).encode())
    read = read_sts(path)
    assert read.gold.tolist() == [5.0, 3.5, 0.2, 1.0, 2.4, 0.0]
    assert read.pairs[2] == ('music "in the garage"', "dog")


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (b"3.0\tonly one", "3 fields|2 fields"),
        (b"3.0\ta\tb\tneutral", "4 fields"),
        (b"", "empty line"),
        (b"high\ta\tb", "number.*'high'"),
        (b"nan\ta\tb", "number"),
        (b"1.0\t \tb", "first sentence"),
        (b"1.0\ta\t", "second sentence"),
        (b"1.0\ta\xff\tb", "UTF-8"),
    ],
)
def test_bad_lines_are_named_by_file_and_line(tmp_path: Path, bad: bytes, what: str) -> None:
    path = tmp_path / "bad.tsv"
    path.write_bytes(LINES[0].encode() + b"\n" + bad + b"\n" + LINES[1].encode() + b"\n")
    with pytest.raises(InvalidInputError, match=rf"bad\.tsv, line 2: .*({what})"):
        read_sts(path)


def test_labels_are_read_where_all_lines_have_them(tmp_path: Path) -> None:
    path = tmp_path / "sick.tsv"
    path.write_text("3.6\ta\tb\tcontradicts\n1\tc\td\tneutral\n")
    labels = read_sts(path).labels
    assert labels is not None and labels.tolist() == ["contradicts", "neutral"]
    for bad, what in (("2\te\tf", "3 fields"), ("2\te\tf\tmaybe", "label of .*maybe")):
        path.write_text(f"3.6\ta\tb\tcontradicts\n{bad}\n")
        with pytest.raises(InvalidInputError, match=rf"line 2: .*{what}"):
            read_sts(path)


def test_missing_and_empty_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.tsv"):
        read_sts(tmp_path / "none.tsv")
    (tmp_path / "empty.tsv").touch()
    with pytest.raises(InvalidInputError, match="empty"):
        read_sts(tmp_path / "empty.tsv")
    for suffix in ("xz", "gz"):
        (tmp_path / f"bad.{suffix}").write_text("no archive")
        with pytest.raises(InvalidInputError, match=rf"bad\.{suffix}, line 1: .*damaged"):
            read_sts(tmp_path / f"bad.{suffix}")


def test_correlations_over_all_and_over_the_lower_half() -> None:
    gold = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 5.0])
    scores = np.array([0.3, 0.2, 0.1, 0.5, 0.7, 0.9], dtype=np.float32)
    result = correlations(scores, gold)
    assert result["pearson"] == pytest.approx(np.corrcoef(scores, gold)[0, 1])
    assert result["pearson_low"] == pytest.approx(-1)  # the median is 3.5
    assert result["spearman_low"] == pytest.approx(-1)
    assert result["spearman"] == pytest.approx(np.corrcoef([3, 2, 1, 4, 5, 6], [1, 2, 3, 4, 5.5, 5.5])[0, 1])


def test_undefined_correlations_are_none() -> None:
    gold = np.array([1.0, 2.0, 3.0])
    assert set(correlations(np.zeros(3), gold).values()) == {None}
    one_low = correlations(np.array([0.1, 0.5, 0.2]), gold)
    assert one_low["pearson"] is not None and one_low["pearson_low"] is None


def test_evaluation_scores_with_the_model(checkpoint: str, data: Path) -> None:
    model = toy_model()
    read = read_sts(data)
    result = evaluate_sts(FacetPairs("toy", model, ("average",)), read)
    from facets.texts import score_pairs

    scores = score_pairs(model, read.pairs, "average").scores
    assert result == {"average": correlations(scores, read.gold)}


def test_command_prints_one_object_of_the_agreed_form(
    checkpoint: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ot", reason="the extra 'wmd' is not installed")
    assert main(["sts", str(data), "--model", checkpoint]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["data"] == str(data) and report["rows"] == 6
    assert list(report["models"]) == ["toy"]
    methods = report["models"]["toy"]
    assert list(methods) == [str(name) for name in PAIR_METHODS]
    for metrics in methods.values():
        assert list(metrics) == ["pearson", "spearman", "pearson_low", "spearman_low"]
        assert all(-1 <= value <= 1 for value in metrics.values())


def test_command_takes_several_models_and_chosen_methods(
    checkpoint: str, data: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = json.loads((Path(checkpoint) / "config.json").read_text())
    other = tmp_path / "other"
    other.mkdir()
    for file in Path(checkpoint).iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    (other / "config.json").write_text(json.dumps({**config, "name": "other-k1"}))
    arguments = ["--model", checkpoint, "--model", str(other), "--method", "codebook", "--method", "sif+attention"]
    assert main(["sts", str(data), *arguments]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    assert {name: list(methods) for name, methods in models.items()} == {
        "toy": ["codebook", "sif+attention"],
        "other-k1": ["codebook", "sif+attention"],
    }


def test_skip_wmd_leaves_out_four_methods(checkpoint: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sts", str(data), "--model", checkpoint, "--skip-wmd"]) == 0
    methods = json.loads(capsys.readouterr().out)["models"]["toy"]
    assert list(methods) == [str(name) for name in PAIR_METHODS if "wmd" not in name]


def test_errors_go_to_standard_error_with_exit_code_1(
    checkpoint: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data.write_text("1.0\tno second\n", encoding="utf-8")
    for arguments in (["sts", str(data), "--model", checkpoint], ["sts", "/nowhere.tsv"]):
        assert main(arguments) == 1
        output = capsys.readouterr()
        assert output.out == "" and output.err.startswith("error: ") and output.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["sts"],
        ["sts", "x.tsv", "--method", "magic"],
        ["summarization", "x", "--words", "0"],
        ["summarization", "x", "--words", "9", "--sentences", "2"],
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert main(arguments) == 2


def test_labels_and_opposed_pairs_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("The door is open.", "The door is closed."), ("A dog barks.", "A dog barks loudly.")]
    sick, opposed = tmp_path / "sick.tsv", tmp_path / "pairs.tsv"
    sick.write_text("".join(f"{3 + i}\t{a}\t{b}\t{('contradicts', 'neutral')[i]}\n" for i, (a, b) in enumerate(rows)))
    opposed.write_text(
        "".join(f"{('contradiction', 'paraphrase')[i]}\tplain\t{a}\t{b}\n" for i, (a, b) in enumerate(rows))
    )
    model = ["--model", "facets-passages-small-en"]
    assert main(["sts", str(sick), *model, "--method", "alignment", "--method", "encoder"]) == 0
    methods = json.loads(capsys.readouterr().out)["models"]["facets-passages-small-en"]
    assert methods["alignment"]["labels_right"] >= 0.5 and "labels_right" not in methods["encoder"]
    assert main(["opposed-pairs", str(opposed), *model]) == 0
    methods = json.loads(capsys.readouterr().out)["models"]["facets-passages-small-en"]
    assert methods["alignment"] == {"above": 1.0, "told": 1.0, "denied": 0.0}
    opposed.write_text("paraphrase\tplain\ta\tb\n")
    assert main(["opposed-pairs", str(opposed), *model]) == 1
    assert "both labels" in capsys.readouterr().err

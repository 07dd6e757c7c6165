"""Runs the notebooks of examples/ without Jupyter, and stores what their cells print and show."""

import argparse
import ast
import contextlib
import io
import json
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


def main(arguments: list[str] | None = None) -> None:
    """Runs notebooks and writes their outputs into them."""
    paths = {path.stem: path for path in sorted(EXAMPLES.glob("*.ipynb"))}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*paths], help=f"of {', '.join(paths)}; default: all")
    names = parser.parse_args(arguments).names
    if unknown := sorted(set(names) - set(paths)):
        parser.error(f"there is no notebook {unknown[0]!r}, expected {', '.join(paths)}")
    for path in map(paths.__getitem__, names):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for number, (cell, outputs) in enumerate(run_cells(notebook), start=1):
            cell.update(outputs=outputs, execution_count=number)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

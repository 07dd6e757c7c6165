"""Model cards of every task: what a model is, how it was trained, what was measured."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from facets.errors import ConfigError
from facets.model.checkpoint import read_settings

_MAX_CURVE_ROWS = 8


def write_card(folder: Path, *, run_dir: Path, summary: str, reports: Sequence[Path] = ()) -> None:
    """Writes ``README.md`` of a checkpoint folder.

    Args:
        folder: The checkpoint.
        run_dir: Folder of its training run, for the curve.
        summary: Opening paragraphs, Markdown.
        reports: Outputs of ``facets-eval``; the metrics of this model go in, as fractions.

    Raises:
        ConfigError: A file cannot be read.
        CheckpointError: The folder holds no model.
    """
    settings = read_settings(folder)
    points = _read_objects(run_dir / "curve.jsonl")
    points = points[:: -max(1, len(points) // _MAX_CURVE_ROWS)][::-1]  # at equal distances, the last one among them
    shown = [
        name for name in points[0] if name in ("step", "presentations") or "_loss" in name or "validation_" in name
    ]
    parts = [
        f"# {settings['name']}",
        summary.strip(),
        "## Training",
        "\n".join(f"- {name.replace('_', ' ')}: {value}" for name, value in settings.get("training", {}).items()),
        _table(shown, ([point[name] for name in shown] for point in points)),
    ]
    for path in reports:
        for report in _read_objects(path):
            measured = report.get("models", {}).get(settings["name"])
            if measured is None:
                raise ConfigError(f"{path}: expected a report of facets-eval with {settings['name']}, got none")
            parts += ["## Measured", f"{report['data']}, {report['rows']:,} rows:"]
            parts.append(_table(["method", "metric", "figure"], _figures(measured)))
    (folder / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _figures(measured: Mapping[str, Any], *above: str) -> Iterator[list[object]]:
    """Method, metric (with the kind before it, where a method has kinds) and figure."""
    for name, value in measured.items():
        if isinstance(value, Mapping):
            yield from _figures(value, *above, name)
        else:
            yield [above[0], " ".join([*above[1:], name]), value]


def _table(head: Sequence[str], rows: Iterator[list[object]]) -> str:
    """A table of Markdown, numbers with four digits."""
    lines = [[f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))


def _read_objects(path: Path) -> list[dict[str, Any]]:
    """Objects of a file of JSON: one, or one a line."""
    try:
        text = path.read_text(encoding="utf-8")
        try:
            objects = [json.loads(text)]
        except ValueError:
            objects = [json.loads(line) for line in text.splitlines()]
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    if not objects or not all(isinstance(values, dict) for values in objects):
        raise ConfigError(f"{path} must hold JSON objects")
    return objects

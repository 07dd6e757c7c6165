"""Model cards: a Markdown template a task, filled with what a training run and a report say.

A template holds fields of ``str.format``, and how a number is written stands in it: ``{training[papers]:,} papers``.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from facets.errors import ConfigError

__all__ = ["curve_rows", "fill_card", "read_objects", "table"]

_MAX_CURVE_ROWS = 8


def fill_card(template: str, values: Mapping[str, object]) -> str:
    """A card as Markdown.

    Args:
        template: Name of a file beside this one, without ``.md``.
        values: Of its fields.
    """
    text = resources.files(__name__).joinpath(f"{template}.md").read_text(encoding="utf-8")
    return text.format_map(values).rstrip("\n") + "\n"


def table(head: Sequence[str], rows: Iterable[str]) -> str:
    """A table of Markdown.

    Example:
        >>> print(table(["model", "K"], ["| toy | 3 |"]))
        | model | K |
        |---|---|
        | toy | 3 |
    """
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows])


def curve_rows(path: Path) -> list[dict[str, Any]]:
    """Points of a training curve at equal distances, the last one among them.

    Raises:
        ConfigError: The file cannot be read.
    """
    points = read_objects(path)
    return points[:: -max(1, len(points) // _MAX_CURVE_ROWS)][::-1]


def read_objects(path: Path) -> list[dict[str, Any]]:
    """Objects of a file of JSON: one, or one a line.

    Raises:
        ConfigError: The file cannot be read.
    """
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

"""Model cards of passages: what a model was trained on, how its losses went, what was measured."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from facets.errors import ConfigError
from facets.model.passage_model import PassageModel

_MAX_CURVE_ROWS = 8


def write_passage_card(model: Path, *, run_dir: Path, summary: str, report: Path | None = None) -> None:
    """Writes ``README.md`` of a checkpoint folder.

    Args:
        model: The folder.
        run_dir: Folder of its training run.
        summary: Opening paragraphs, Markdown.
        report: Output of ``facets-eval retrieval``; its nDCG@10 goes in.

    Raises:
        ConfigError: A file cannot be read.
        CheckpointError: The folder holds no model of passages.
    """
    loaded = PassageModel.from_folder(model)
    training, network = loaded.config.training, loaded.config.network
    encoder = network.encoder
    minutes = training["seconds"] / 60
    facts = (
        f"- {training['step']:,} steps of {training['batch_size']} passages, {minutes:.0f} minutes on a shared core, "
        f"seed {training['seed']}",
        f"- K={network.num_facets} at most, one for {network.tokens_per_facet:g} tokens, D={encoder.width}; encoder of "
        f"{encoder.num_layers} layers; {len(loaded.words):,} words",
    )
    parts = [
        f"# {loaded.name}",
        summary.strip(),
        "## Training",
        "\n".join(facts),
        _curve_table(run_dir / "curve.jsonl"),
    ]
    if report is not None:
        parts += ["## Measured", _report_table(_json_lines(report)[0], loaded.name)]
    (model / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _curve_table(path: Path) -> str:
    lines = _json_lines(path)
    step = max(1, len(lines) // _MAX_CURVE_ROWS)
    chosen = lines[::-step][::-1]
    names = [name.removeprefix("validation_") for name in lines[-1] if name.startswith("validation_")]
    head = "| step | training loss | " + " | ".join(f"held out: {name}" for name in names) + " |"
    rows = [
        f"| {line['step']:,} | {line['training_loss']:.4f} | "
        + " | ".join(f"{line[f'validation_{name}']:.4f}" for name in names)
        + " |"
        for line in chosen
    ]
    return "\n".join([head, "|---" * (2 + len(names)) + "|", *rows])


def _report_table(report: Mapping[str, Any], name: str) -> str:
    try:
        folders: Mapping[str, Any] = report["folders"]
        own = {folder: systems[name] for folder, systems in folders.items()}
        means = report["models"][name]
        rows = [
            f"| {method} | {100 * means[method]['ndcg_10']:.1f} | "
            + " | ".join(f"{100 * own[folder][method]['ndcg_10']:.1f}" for folder in folders)
            + " |"
            for method in means
        ]
    except (KeyError, TypeError) as error:
        raise ConfigError(f"expected a report of facets-eval retrieval with {name}, got: {error}") from error
    head = "| nDCG@10 of | mean | " + " | ".join(folders) + " |"
    return f"`facets-eval retrieval`, {report['rows']:,} queries.\n\n" + "\n".join(
        [head, "|---" * (2 + len(folders)) + "|", *rows]
    )


def _json_lines(path: Path) -> list[dict[str, Any]]:
    """Objects of a file: one, or one a line."""
    try:
        text = path.read_text(encoding="utf-8")
        try:
            return [json.loads(text)]
        except ValueError:
            return [json.loads(line) for line in text.splitlines()]
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error

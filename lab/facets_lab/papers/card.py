"""Model cards of papers: what a model was trained on, how its losses went, what was measured."""

import json
from collections.abc import Mapping
from pathlib import Path

from facets.errors import ConfigError
from facets.papers.model import PaperModel

_METRICS = ("map", "auc", "ndcg", "recall_50", "recall_200")
_MAX_CURVE_ROWS = 8


def write_paper_card(model: Path, *, run_dir: Path, summary: str, report: Path | None = None) -> None:
    """Writes ``README.md`` of a checkpoint folder.

    Args:
        model: The folder.
        run_dir: Folder of its training run.
        summary: Opening paragraphs, Markdown.
        report: Output of ``facets-eval recommendation``; its table goes in.

    Raises:
        ConfigError: A file cannot be read.
        CheckpointError: The folder holds no model of papers.
    """
    loaded = PaperModel.from_folder(model)
    training, shape = loaded.config.training, loaded.config.model
    settings = loaded.settings
    parts = [
        f"# {loaded.name}",
        summary.strip(),
        "## Training",
        "\n".join(
            (
                f"- {training['presentations']:,} presentations of {training['papers']:,} papers, "
                f"{training['seconds'] / 60:.0f} minutes on one shared CPU core, seed {training['seed']}",
                f"- K={shape.num_facets}, D={shape.dim}; {shape.encoder} of {shape.num_encoder_layers} layer(s) and a "
                f"decoder of {shape.num_decoder_layers}, width {shape.hidden_dim}; "
                f"weight of the autoencoder {training['autoencoder_weight']}",
                f"- {len(loaded.papers.column_ids['authors']):,} authors, "
                f"{len(loaded.papers.column_ids['citations']):,} citing papers, {len(loaded.words):,} words",
                f"- hybrid, tuned on the development file: weight of the facets {dict(settings.facet_weights)}, "
                f"documents by {dict(settings.document_modes)}, {_sentences(loaded)}",
            )
        ),
        _curve_table(run_dir / "curve.jsonl"),
    ]
    if report is not None:
        parts += ["## Measured", _report_table(_json(report))]
    (model / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _sentences(model: PaperModel) -> str:
    settings = model.settings.sentences
    if settings is None or model.sentences is None:
        return "word averages alone"
    return (
        f"share of sentences {settings.share}: {model.sentences.trained.axes.shape[1]} components of the vectors of "
        f"{model.sentences.encoder.name}, of titles and {settings.abstract_chars} characters of abstracts"
    )


def _curve_table(path: Path) -> str:
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    step = max(1, len(lines) // _MAX_CURVE_ROWS)
    rows = [
        f"| {line['step']:,} | {line['training_loss']:.4f} | {line['validation_authors']:.4f} | "
        f"{line['validation_citations']:.4f} | {line['validation_autoencoder']:.4f} |"
        for line in lines[::-step][::-1]
    ]
    head = "| step | training loss | held out: authors | citations | autoencoder |\n|---|---|---|---|---|"
    return "\n".join([head, *rows])


def _report_table(report: Mapping[str, object]) -> str:
    models = report["models"]
    columns = report["columns"]
    assert isinstance(models, dict)
    assert isinstance(columns, dict)
    rows = []
    for name, methods in models.items():
        for method, kinds in methods.items():
            for kind, metrics in kinds.items():
                values = " | ".join(f"{100 * metrics[metric]:.2f}" for metric in _METRICS)
                rows.append(f"| {kind} | {name} | {method} | {values} |")
    head = (
        f"`facets-eval recommendation` on {report['rows']:,} papers never trained on; {columns.get('authors', 0):,} "
        f"authors and {columns.get('citations', 0):,} citing papers with at least one of them. Times 100.\n\n"
        "| of | model | method | MAP | AUC | NDCG | R@50 | R@200 |\n|---|---|---|---|---|---|---|---|"
    )
    return "\n".join([head, *sorted(rows)])


def _json(path: Path) -> dict[str, object]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must be a report of facets-eval recommendation")
    return values

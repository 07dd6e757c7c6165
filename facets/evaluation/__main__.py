"""The published tables as commands: ``facets-eval sts FILE.tsv`` prints one JSON object."""

import argparse
import importlib.util
import json
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from facets.errors import ConfigError, FacetsError
from facets.evaluation.sts import STS_METHODS, evaluate_sts, read_sts
from facets.evaluation.summaries import evaluate_summarization, read_summaries
from facets.model.facet_model import FacetModel, load
from facets.tasks.similarity import SimilarityMethod

__all__ = ["main"]

logger = logging.getLogger(__name__)

Metrics = dict[str, dict[str, float | None]]
_WMD_METHODS = tuple(name for name in STS_METHODS if "wmd" in name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one evaluation; returns the exit code: 0, 1 after an error that was told, 2 for wrong usage."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    options = _parser().parse_args(arguments)
    try:
        report = options.run(options)
    except (FacetsError, ImportError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write(json.dumps(report, indent=2, allow_nan=False) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="facets-eval", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("file", type=Path, metavar="FILE", help="data; .gz and .xz open too")
    shared.add_argument(
        "--model", action="append", dest="models", metavar="NAME|PATH", help="may be repeated; default: facets-en"
    )
    sts = commands.add_parser(
        "sts",
        parents=[shared],
        help="sentence similarity: score<TAB>sentence<TAB>sentence",
        epilog="example: facets-eval sts stsb-dev.tsv --model facets-en --model facets-en-k1 --skip-wmd",
    )
    sts.add_argument(
        "--methods",
        action="extend",
        nargs="+",
        choices=STS_METHODS,
        metavar="METHOD",
        help=f"of {', '.join(STS_METHODS)}",
    )
    sts.add_argument("--skip-wmd", action="store_true", help="leave out the word mover's distances")
    sts.set_defaults(run=_run_sts)
    summaries = commands.add_parser(
        "summarization",
        parents=[shared],
        help='summaries: JSON lines {"id", "sentences", "references"}',
        epilog="example: facets-eval summarization bbc-dev.jsonl.xz --sentences 3",
    )
    budget = summaries.add_mutually_exclusive_group()
    budget.add_argument("--sentences", type=_positive, metavar="N", help="sentences of a summary; default 3")
    budget.add_argument("--words", type=_positive, metavar="N", help="instead: most words of a summary")
    summaries.set_defaults(run=_run_summarization)
    return parser


def _run_sts(options: argparse.Namespace) -> dict[str, object]:
    data = read_sts(options.file)

    def evaluate(model: FacetModel) -> Metrics:
        return evaluate_sts(model, data, _sts_methods(options, model))

    return _report(options, len(data.pairs), evaluate)


def _sts_methods(options: argparse.Namespace, model: FacetModel) -> list[str]:
    """The methods asked for, or all that the model and the installed packages allow."""
    if options.methods:
        return list(dict.fromkeys(options.methods))
    methods = [name for name in STS_METHODS if not (options.skip_wmd and name in _WMD_METHODS)]
    if importlib.util.find_spec("ot") is None and not options.skip_wmd:
        logger.warning("the extra 'wmd' is not installed: the word mover's distances are left out")
        methods = [name for name in methods if name not in _WMD_METHODS]
    if not model.common_components:
        logger.warning("%s stores no common components: sif is left out", model.name)
        methods = [name for name in methods if not name.startswith(SimilarityMethod.SIF)]
    return methods


def _run_summarization(options: argparse.Namespace) -> dict[str, object]:
    data = read_summaries(options.file)

    def evaluate(model: FacetModel) -> Metrics:
        return evaluate_summarization(model, data, num_sentences=options.sentences, max_words=options.words)

    return _report(options, len(data.documents), evaluate)


def _report(options: argparse.Namespace, num_rows: int, evaluate: Callable[[FacetModel], Metrics]) -> dict[str, object]:
    """The JSON object every command prints: one entry under ``models`` for each model, by name."""
    results: dict[str, Metrics] = {}
    for name_or_path in options.models or [None]:
        model = load(name_or_path)
        if model.name in results:
            raise ConfigError(f"models must have distinct names, got {model.name!r} twice")
        results[model.name] = evaluate(model)
    return {"data": str(options.file), "rows": num_rows, "models": results}


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be >= 1, got {value}")
    return value


if __name__ == "__main__":
    sys.exit(main())

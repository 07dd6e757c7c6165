"""Arguments of ``facets-eval recommendation``."""

import argparse
from pathlib import Path

from facets.papers.evaluation.run import RecommendationRun, run_recommendation

__all__ = ["add_recommendation_command"]


def add_recommendation_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the command to the parser of ``facets-eval``."""
    parser = commands.add_parser(
        "recommendation",
        help='authors and citations: JSON lines {"id", "title", "abstract", "authors", "cited_by"}',
        epilog="example: facets-eval recommendation dev.jsonl.xz --baselines --train train.jsonl.xz",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="papers the model has not seen; .gz and .xz open too")
    parser.add_argument(
        "--model",
        action="append",
        dest="models",
        metavar="NAME|PATH",
        help="may be repeated; default: facets-papers-en",
    )
    parser.add_argument("--baselines", action="store_true", help="also one facet, word averages, MiniLM, mixtures")
    parser.add_argument(
        "--train", type=Path, metavar="FILE", help="the papers of the training; MiniLM needs their texts"
    )
    parser.add_argument("--embeddings", type=Path, metavar="DIR", help="keep MiniLM's embeddings here for the next run")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="only N authors and N citing papers, drawn with a fixed seed"
    )
    parser.add_argument(
        "--tune", action="store_true", help="find the best mixtures on FILE and store them in the model folders"
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> dict[str, object]:
    return run_recommendation(
        RecommendationRun(
            file=options.file,
            models=options.models or (),
            baselines=options.baselines,
            train=options.train,
            embeddings=options.embeddings,
            sample=options.sample,
            tune=options.tune,
        )
    )

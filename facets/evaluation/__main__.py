"""The published tables as commands: ``facets-eval sts FILE.tsv`` prints one JSON object."""

import argparse
import importlib.util
import json
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from facets.errors import ConfigError, FacetsError
from facets.evaluation.intervals import Metrics
from facets.model.facet_model import FacetModel
from facets.papers.evaluation.command import add_recommendation_command
from facets.relations.evaluation.commands import add_calibrate_relations, run_entailment, run_relations
from facets.texts.coverage import PAPER_COVERAGE, CoverageConfig
from facets.texts.evaluation.baselines import baseline_models, embedding_baselines, load_models, summarization_baselines
from facets.texts.evaluation.calibrate import add_calibrate
from facets.texts.evaluation.pair_systems import PAIR_METHODS, FacetPairs, PairSystem
from facets.texts.evaluation.phrases import (
    evaluate_phrase_choice,
    evaluate_phrase_pairs,
    read_phrase_choices,
    read_phrase_pairs,
)
from facets.texts.evaluation.sts import evaluate_sts, read_sts
from facets.texts.evaluation.summaries import evaluate_summarization, read_summaries
from facets.texts.evaluation.summarizers import Budget, CoverageSummarizer, Summarizer
from facets.texts.similarity_methods import SimilarityMethod

__all__ = ["main"]

_System = TypeVar("_System", PairSystem, Summarizer)

logger = logging.getLogger(__name__)

_WMD_METHODS = tuple(name for name in PAIR_METHODS if "wmd" in name)
_PHRASE_METHODS = (str(SimilarityMethod.CODEBOOK), str(SimilarityMethod.ENCODER))


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
    sts = _command(
        commands,
        "sts",
        _run_sts,
        help="sentence similarity: score<TAB>sentence<TAB>sentence",
        example="sts stsb-dev.tsv --model facets-en --model facets-en-k1 --skip-wmd",
    )
    sts.add_argument(
        "--methods",
        action="extend",
        nargs="+",
        choices=PAIR_METHODS,
        metavar="METHOD",
        help=f"of {', '.join(PAIR_METHODS)}",
    )
    sts.add_argument("--skip-wmd", action="store_true", help="leave out the word mover's distances")
    _command(
        commands,
        "phrase-pairs",
        _run_phrase_pairs,
        help="phrases and words, alike or not: 0|1<TAB>phrase<TAB>word",
        example="phrase-pairs semeval2013-dev.tsv --bootstrap 1000",
    )
    _command(
        commands,
        "phrase-choice",
        _run_phrase_choice,
        help="which word means the phrase: phrase, answer, the phrase's two words, four distractors, by tabs",
        example="phrase-choice turney2012-dev.tsv --baselines",
    )
    summaries = _command(
        commands,
        "summarization",
        _run_summarization,
        help='summaries: JSON lines {"id", "sentences", "references"}',
        example="summarization bbc-dev.jsonl.xz --sentences 3",
    )
    budget = summaries.add_mutually_exclusive_group()
    budget.add_argument("--sentences", type=_positive, metavar="N", help="sentences of a summary; default 3")
    budget.add_argument("--words", type=_positive, metavar="N", help="instead: most words of a summary")
    summaries.add_argument(
        "--paper", action="store_true", help="coverage as printed in eq. 3.7: facets alone, repetition worth nothing"
    )
    _command(
        commands,
        "relations",
        run_relations,
        help="relations of entity pairs: entity, entity, pattern or kb:relation, count, by tabs",
        example="relations webnlg-dev.tsv --baselines",
    )
    _command(
        commands,
        "entailment",
        run_entailment,
        help="entailment of patterns: label (> < : N), specific, general pattern, two frequencies, by tabs",
        example="entailment entailment-dev.tsv --baselines",
    )
    add_calibrate(commands)
    add_calibrate_relations(commands)
    add_recommendation_command(commands)
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Callable[[argparse.Namespace], dict[str, object]],
    *,
    help: str,
    example: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=help, epilog=f"example: facets-eval {example}")
    parser.add_argument("file", type=Path, metavar="FILE", help="data; .gz and .xz open too")
    parser.add_argument(
        "--model", action="append", dest="models", metavar="NAME|PATH", help="may be repeated; default: facets-en"
    )
    parser.add_argument(
        "--baselines", action="store_true", help="also the baselines of the paper and today's peers that are installed"
    )
    parser.add_argument(
        "--bootstrap",
        type=_positive,
        default=0,
        metavar="N",
        help="also 95%% confidence intervals from N resamples of the rows",
    )
    parser.set_defaults(run=run)
    return parser


def _run_sts(options: argparse.Namespace) -> dict[str, object]:
    data = read_sts(options.file)
    systems = _pair_systems(options, lambda model: _sts_methods(options, model))
    return _report(
        options,
        len(data.pairs),
        systems,
        lambda system: evaluate_sts(system, data, num_resamples=options.bootstrap),
    )


def _sts_methods(options: argparse.Namespace, model: FacetModel) -> tuple[str, ...]:
    """The methods asked for, or all that the model and the installed packages allow."""
    if options.methods:
        return tuple(dict.fromkeys(options.methods))
    methods = [name for name in PAIR_METHODS if not (options.skip_wmd and name in _WMD_METHODS)]
    if importlib.util.find_spec("ot") is None and not options.skip_wmd:
        logger.warning("the extra 'wmd' is not installed: the word mover's distances are left out")
        methods = [name for name in methods if name not in _WMD_METHODS]
    if not model.common_components:
        logger.warning("%s stores no common components: sif is left out", model.name)
        methods = [name for name in methods if not name.startswith(SimilarityMethod.SIF)]
    return tuple(methods)


def _run_phrase_pairs(options: argparse.Namespace) -> dict[str, object]:
    data = read_phrase_pairs(options.file)
    return _report(
        options,
        len(data.pairs),
        _phrase_systems(options),
        lambda system: evaluate_phrase_pairs(system, data, num_resamples=options.bootstrap),
    )


def _run_phrase_choice(options: argparse.Namespace) -> dict[str, object]:
    data = read_phrase_choices(options.file)
    return _report(
        options,
        len(data.phrases),
        _phrase_systems(options),
        lambda system: evaluate_phrase_choice(system, data, num_resamples=options.bootstrap),
    )


def _phrase_systems(options: argparse.Namespace) -> list[PairSystem]:
    systems = _pair_systems(options, lambda model: _PHRASE_METHODS)
    if options.baselines:
        # The words of the first model, without its network (GloVe Avg of table 3.4).
        first = next(system for system in systems if isinstance(system, FacetPairs))
        systems.append(FacetPairs("words", first.model, (str(SimilarityMethod.AVERAGE),)))
    return systems


def _pair_systems(options: argparse.Namespace, methods_of: Callable[[FacetModel], tuple[str, ...]]) -> list[PairSystem]:
    systems: list[PairSystem] = [FacetPairs(name, model, methods_of(model)) for name, model in _models(options).items()]
    if options.baselines:
        systems += embedding_baselines()
    return systems


def _run_summarization(options: argparse.Namespace) -> dict[str, object]:
    data = read_summaries(options.file)
    budget = Budget(options.sentences, options.words)
    models = _models(options)
    coverage = PAPER_COVERAGE if options.paper else CoverageConfig()
    summarizers: list[Summarizer] = [CoverageSummarizer(name, model, coverage) for name, model in models.items()]
    if options.baselines:
        summarizers += summarization_baselines(next(iter(models.values())), coverage)
    return _report(
        options,
        len(data.documents),
        summarizers,
        lambda summarizer: evaluate_summarization(summarizer, data, budget, num_resamples=options.bootstrap),
    )


def _models(options: argparse.Namespace) -> dict[str, FacetModel]:
    models = load_models(options.models or [None])
    return models | baseline_models(tuple(models)) if options.baselines else models


def _report(
    options: argparse.Namespace,
    num_rows: int,
    systems: Sequence[_System],
    evaluate: Callable[[_System], dict[str, Metrics]],
) -> dict[str, object]:
    """The JSON object every command prints: one entry under ``models`` for each system, by name."""
    results: dict[str, dict[str, Metrics]] = {}
    for system in systems:
        if system.name in results:
            raise ConfigError(f"models must have names other than the baselines, got {system.name!r} twice")
        results[system.name] = evaluate(system)
    return {"data": str(options.file), "rows": num_rows, "models": results}


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be >= 1, got {value}")
    return value


if __name__ == "__main__":
    sys.exit(main())

"""``facets-eval sts``, ``phrase-pairs``, ``phrase-choice``, ``summarization`` and ``calibrate``."""

from pathlib import Path
from typing import Annotated

import typer

from facets_lab.evaluation.commands.options import Baselines, Bootstrap, DataFile, DryRun, Models

__all__ = ["calibrate", "phrase_choice", "phrase_pairs", "sts", "summarization"]

_SOURCE = "STS Benchmark, training pairs (Cer et al. 2017)"


Methods = Annotated[
    list[str] | None,
    typer.Option("--method", metavar="METHOD", help="Repeatable; see docs/measure/evaluation.md; all when none."),
]


def sts(
    file: DataFile,
    models: Models = None,
    baselines: Baselines = False,
    bootstrap: Bootstrap = 0,
    method: Methods = None,
    skip_wmd: Annotated[bool, typer.Option("--skip-wmd", help="Leave out the word mover's distances.")] = False,
) -> None:
    """Sentence similarity: score, sentence, sentence, by tabs.

    Example: facets-eval sts stsb-dev.tsv --model facets-en --model facets-en-k1 --skip-wmd
    """
    from facets_lab.texts.evaluation.tasks import sts_task

    task = sts_task(_checked(method), skip_wmd=skip_wmd)
    task.print_report(file, models, baselines=baselines, num_resamples=bootstrap)


def phrase_pairs(file: DataFile, models: Models = None, baselines: Baselines = False, bootstrap: Bootstrap = 0) -> None:
    """Phrases and words, alike or not: 0 or 1, phrase, word, by tabs.

    Example: facets-eval phrase-pairs semeval2013-dev.tsv --bootstrap 1000
    """
    from facets_lab.texts.evaluation.tasks import PHRASE_PAIRS

    PHRASE_PAIRS.print_report(file, models, baselines=baselines, num_resamples=bootstrap)


def phrase_choice(
    file: DataFile, models: Models = None, baselines: Baselines = False, bootstrap: Bootstrap = 0
) -> None:
    """Which word means the phrase: phrase, answer, the phrase's two words, four distractors, by tabs.

    Example: facets-eval phrase-choice turney2012-dev.tsv --baselines
    """
    from facets_lab.texts.evaluation.tasks import PHRASE_CHOICE

    PHRASE_CHOICE.print_report(file, models, baselines=baselines, num_resamples=bootstrap)


def summarization(
    file: DataFile,
    models: Models = None,
    baselines: Baselines = False,
    bootstrap: Bootstrap = 0,
    sentences: Annotated[int | None, typer.Option(min=1, metavar="N", help="Sentences of a summary; 3.")] = None,
    words: Annotated[int | None, typer.Option(min=1, metavar="N", help="Instead: most words of a summary.")] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Coverage as printed in eq. 3.7: facets alone, repetition worth nothing.")
    ] = False,
) -> None:
    """Summaries: JSON lines {"id", "sentences", "references"}.

    Example: facets-eval summarization bbc-dev.jsonl.xz --sentences 3
    """
    if sentences is not None and words is not None:
        raise typer.BadParameter("--sentences and --words exclude each other")
    from facets_lab.texts.evaluation.tasks import summarization_task

    task = summarization_task(num_sentences=sentences, max_words=words, as_in_paper=paper)
    task.print_report(file, models, baselines=baselines, num_resamples=bootstrap)


def calibrate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Pairs to fit on, scores 0 to 5; .gz and .xz open too.")],
    test: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Other pairs, to say how well the curves fit.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="The one to calibrate; the shipped one when none.")
    ] = None,
    method: Methods = None,
    source: Annotated[str, typer.Option(help="What FILE is, for readers.")] = _SOURCE,
    dry_run: DryRun = False,
) -> None:
    """Fit what similarity scores mean, and store it with the model: score, sentence, sentence, by tabs.

    Example: facets-eval calibrate stsb-train.tsv --test stsb-dev.tsv --model models/facets-en
    """
    from facets_lab.evaluation.task import print_report
    from facets_lab.texts.evaluation.calibrate import calibrate_model

    methods = _checked(method)
    print_report(calibrate_model(model, file, test=test, source=source, dry_run=dry_run, methods=methods))


def _checked(methods: list[str] | None) -> tuple[str, ...]:
    from facets_lab.texts.evaluation.pair_systems import PAIR_METHODS

    for name in methods or ():
        if name not in PAIR_METHODS:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(PAIR_METHODS)}", param_hint="--method")
    return tuple(dict.fromkeys(methods or ()))

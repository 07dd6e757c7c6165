"""``facets-eval``: the published tables and the calibration of shipped models; each command prints one JSON object."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from facets_lab.evaluation.comparison import print_report
from facets_lab.program import run_program

DataFile = Annotated[Path, typer.Argument(metavar="FILE", help="Data file; .gz and .xz are decompressed.")]
Folders = Annotated[
    list[Path], typer.Argument(metavar="DIR...", help="BEIR folders: corpus.jsonl, queries.jsonl, qrels/test.tsv.")
]
Models = Annotated[
    list[str] | None, typer.Option("--model", metavar="NAME|PATH", help="Repeatable; default: the shipped model.")
]
Baselines = Annotated[bool, typer.Option("--baselines", help="Also measure the paper's baselines and peers.")]
Bootstrap = Annotated[int, typer.Option(min=0, metavar="N", help="95 % confidence intervals from N resamples.")]
Methods = Annotated[
    list[str] | None, typer.Option("--method", metavar="METHOD", help="Repeatable; default: all available methods.")
]
CalibratedModel = Annotated[
    str | None, typer.Option("--model", metavar="NAME|PATH", help="Model to calibrate; default: the shipped one.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Leave the model unchanged.")]
Source = Annotated[str | None, typer.Option(help="Description of the data, stored with the model.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the samples.")]
NumDocuments = Annotated[
    int | None, typer.Option("--limit-documents", min=1, metavar="N", help="Sample N documents, judged ones included.")
]


def sts(
    file: DataFile,
    models: Models = None,
    baselines: Baselines = False,
    bootstrap: Bootstrap = 0,
    method: Methods = None,
    skip_wmd: Annotated[bool, typer.Option("--skip-wmd", help="Leave out the word mover's distances.")] = False,
) -> None:
    """Evaluate sentence similarity. Tab-separated columns: score, sentence, sentence and, in SICK, label.

    Example: facets-eval sts stsb-dev.tsv --model facets-en --model facets-en-k1 --skip-wmd
    """
    from facets_lab.texts.pairs import evaluate_sts

    methods = _check_methods(method)
    print_report(
        evaluate_sts(
            file, models or (), baselines=baselines, num_resamples=bootstrap, methods=methods, skip_wmd=skip_wmd
        )
    )


def _check_methods(methods: list[str] | None) -> tuple[str, ...]:
    from facets_lab.texts.pairs import PAIR_METHODS

    for name in methods or ():
        if name not in PAIR_METHODS:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(PAIR_METHODS)}", param_hint="--method")
    return tuple(dict.fromkeys(methods or ()))


def opposed_pairs(file: DataFile, models: Models = None, baselines: Baselines = False) -> None:
    """Rank paraphrases above contradictions. Tab-separated: paraphrase or contradiction, kind, two sentences.

    Example: facets-eval opposed-pairs tests/answers/similarity-fresh.tsv --model facets-passages-small-en
    """
    from facets_lab.texts.pairs import evaluate_opposed_pairs

    print_report(evaluate_opposed_pairs(file, models or (), baselines=baselines))


def phrase_pairs(file: DataFile, models: Models = None, baselines: Baselines = False, bootstrap: Bootstrap = 0) -> None:
    """Recognize similar phrases and words. Tab-separated columns: 0 or 1, phrase, word.

    Example: facets-eval phrase-pairs semeval2013-dev.tsv --bootstrap 1000
    """
    from facets_lab.texts.pairs import evaluate_phrase_pairs

    print_report(evaluate_phrase_pairs(file, models or (), baselines=baselines, num_resamples=bootstrap))


def phrase_choice(
    file: DataFile, models: Models = None, baselines: Baselines = False, bootstrap: Bootstrap = 0
) -> None:
    """Choose the word that means the same as a phrase. Columns: phrase, answer, the phrase's words, four distractors.

    Example: facets-eval phrase-choice turney2012-dev.tsv --baselines
    """
    from facets_lab.texts.pairs import evaluate_phrase_choice

    print_report(evaluate_phrase_choice(file, models or (), baselines=baselines, num_resamples=bootstrap))


def summarization(
    file: DataFile,
    models: Models = None,
    baselines: Baselines = False,
    bootstrap: Bootstrap = 0,
    sentences: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Sentences of a summary; default: 3.")
    ] = None,
    words: Annotated[int | None, typer.Option(min=1, metavar="N", help="Or: maximum words of a summary.")] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Coverage as printed in eq. 3.7: facets only, no credit for repetition.")
    ] = False,
) -> None:
    """Evaluate summaries. FILE has JSON lines {"id", "sentences", "references"}.

    Example: facets-eval summarization bbc-dev.jsonl.xz --sentences 3
    """
    if sentences is not None and words is not None:
        raise typer.BadParameter("--sentences and --words exclude each other")
    from facets_lab.texts.summaries import evaluate_summarization

    print_report(
        evaluate_summarization(
            file,
            models or (),
            baselines=baselines,
            num_resamples=bootstrap,
            num_sentences=sentences,
            max_words=words,
            as_in_paper=paper,
        )
    )


def topics(
    file: DataFile,
    models: Models = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of prompts.")] = 200,
) -> None:
    """Compare suggested topics with the words that come next. FILE has JSON lines with text or sentences.

    Example: facets-eval topics bbc-dev.jsonl.xz --model facets-en
    """
    from facets.model.facet_model import FacetModel
    from facets.model.loading import load
    from facets_lab.texts.topics import evaluate_topics, read_texts

    loaded = [load(name, FacetModel) for name in models or ["facets-en"]]
    print_report(evaluate_topics(loaded, read_texts(file)[:limit]))


def entailment(file: DataFile, models: Models = None, baselines: Baselines = False, bootstrap: Bootstrap = 0) -> None:
    """Evaluate entailment. Tab-separated columns: label (> < : N), specific and general pattern, two frequencies.

    Example: facets-eval entailment entailment-dev.tsv --baselines
    """
    from facets_lab.relations.entailment import evaluate_entailment

    print_report(evaluate_entailment(file, models or (), baselines=baselines, num_resamples=bootstrap))


def relations(file: DataFile, models: Models = None, baselines: Baselines = False, bootstrap: Bootstrap = 0) -> None:
    """Evaluate relations of entity pairs. Tab-separated columns: entity, entity, pattern or kb:relation, count.

    Example: facets-eval relations webnlg-dev.tsv --baselines
    """
    from facets_lab.relations.evaluation import evaluate_relations

    print_report(evaluate_relations(file, models or (), baselines=baselines, num_resamples=bootstrap))


def recommendation(
    file: DataFile,
    models: Models = None,
    baselines: Baselines = False,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Training papers with their texts, for MiniLM.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Sample N authors and N citing papers with a fixed seed.")
    ] = None,
    tune: Annotated[bool, typer.Option("--tune", help="Store the mixture best on FILE in the model folders.")] = False,
) -> None:
    """Recommend authors and citations for unseen papers: JSON lines {"id", "title", "abstract", "authors", "cited_by"}.

    Example: facets-eval recommendation dev.jsonl.xz --baselines --train train.jsonl.xz
    """
    from facets_lab.papers.evaluation import evaluate_recommendation

    print_report(
        evaluate_recommendation(file, models or (), baselines=baselines, train=train, sample=sample, tune=tune)
    )


def retrieval(
    folders: Folders,
    models: Models = None,
    baselines: Baselines = False,
    bootstrap: Bootstrap = 0,
    limit_queries: Annotated[int | None, typer.Option(min=1, metavar="N", help="Sample N queries per folder.")] = None,
    limit_documents: NumDocuments = None,
    seed: Seed = 0,
) -> None:
    """Evaluate search on BEIR folders, in the same engine that the server uses.

    Example: facets-eval retrieval data/retrieval/squad data/retrieval/bioasq --baselines
    """
    from facets_lab.documents.retrieval import evaluate_retrieval

    print_report(
        evaluate_retrieval(
            folders,
            models or (),
            baselines=baselines,
            num_queries=limit_queries,
            num_documents=limit_documents,
            seed=seed,
            num_resamples=bootstrap,
        )
    )


def calibrate_similarity(
    file: DataFile,
    test: Annotated[Path | None, typer.Option(metavar="FILE", help="Other pairs, used to measure the curves.")] = None,
    model: CalibratedModel = None,
    method: Methods = None,
    source: Source = "STS Benchmark, training pairs (Cer et al. 2017)",
    dry_run: DryRun = False,
) -> None:
    """Fit what similarity scores mean. Tab-separated columns: score 0 to 5, sentence, sentence.

    Example: facets-eval calibrate-similarity stsb-train.tsv --test stsb-dev.tsv --model models/facets-en
    """
    from facets_lab.texts import calibration

    methods = _check_methods(method)
    print_report(
        calibration.calibrate_similarity(model, file, test=test, source=source or "", dry_run=dry_run, methods=methods)
    )


def calibrate_topics(
    file: DataFile, model: CalibratedModel = None, source: Source = None, dry_run: DryRun = False
) -> None:
    """Fit the likelihood of topics on one half of the texts, and measure it on the other half.

    Example: facets-eval calibrate-topics wikipedia.jsonl --model models/facets-en --source Wikipedia
    """
    from facets.model.facet_model import FacetModel
    from facets.model.loading import load
    from facets.model.score_curves import write_score_curves
    from facets.model.shipped import find_model
    from facets.texts.topics import CURVE
    from facets_lab.texts.topics import fit_likelihood, read_texts

    folder = find_model(model or "facets-en")
    loaded = load(folder, FacetModel)
    curve_2N, figures = fit_likelihood(loaded, read_texts(file))
    if not dry_run:
        curves = {**loaded.score_curves, CURVE: curve_2N}
        write_score_curves(folder, loaded.revision, curves, source=source or file.name)
    print_report({"points": curve_2N.shape[1], **figures})


def calibrate_relations(
    file: DataFile,
    model: CalibratedModel = None,
    threshold: Annotated[
        float | None, typer.Option(min=-1.0, max=1.0, help="Lowest accepted score; default: the one with the best F1.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Fit the threshold and the probabilities of a relation model; data as for ``relations``.

    Example: facets-eval calibrate-relations webnlg-dev.tsv --model models/facets-relations-en
    """
    from facets_lab.relations import calibration

    print_report(calibration.calibrate_relations(model, file, threshold=threshold, dry_run=dry_run))


def calibrate_entailment(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Pairs, as for the command entailment.")],
    model: CalibratedModel = None,
    dry_run: DryRun = False,
) -> None:
    """Fit the weights of the entailment features; all files have equal weight.

    Reports each file with weights fitted on the other files (across) and on all files (inside).

    Example: facets-eval calibrate-entailment entailment-dev.tsv levy_holt-dev.tsv --model models/facets-relations-en
    """
    from facets_lab.relations import calibration

    print_report(calibration.calibrate_entailment(model, files, dry_run=dry_run))


def calibrate_search(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND=]DIR|FILE|python:MODULE,...",
            help="BEIR folders, files of (query, positive) pairs, or docstrings; each with its kind of text.",
        ),
    ],
    model: CalibratedModel = None,
    limit_queries: Annotated[int, typer.Option(min=1, metavar="N", help="Sample N queries of each source.")] = 300,
    limit_documents: NumDocuments = None,
    source: Source = None,
    seed: Seed = 0,
    dry_run: DryRun = False,
) -> None:
    """Fit the probability that a hit is relevant; each kind is also measured with a fit on the other kinds.

    Example: facets-eval calibrate-search articles=squad abstracts=bioasq code=python:numpy questions=quora
    """
    from facets_lab.documents import calibration

    print_report(
        calibration.calibrate_search(
            sources,
            model,
            num_queries=limit_queries,
            num_documents=limit_documents,
            source=source,
            seed=seed,
            dry_run=dry_run,
        )
    )


def calibrate_recommendation(
    file: DataFile,
    folders: Folders,
    model: CalibratedModel = None,
    limit_texts: Annotated[int, typer.Option(min=10, metavar="N", help="N texts per folder and 3 N papers.")] = 300,
    source: Source = None,
    seed: Seed = 0,
    dry_run: DryRun = False,
) -> None:
    """Fit the probability that a paper is in a candidate's field, against texts of other kinds.

    FILE has papers as for the command recommendation.

    Example: facets-eval calibrate-recommendation dev.jsonl.xz bioasq cranfield squad --model models/facets-papers-en
    """
    from facets_lab.papers import calibration

    print_report(
        calibration.calibrate_recommendation(
            file, folders, model, num_texts=limit_texts, source=source, seed=seed, dry_run=dry_run
        )
    )


_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    sts,
    opposed_pairs,
    phrase_pairs,
    phrase_choice,
    summarization,
    topics,
    entailment,
    relations,
    recommendation,
    retrieval,
    calibrate_similarity,
    calibrate_topics,
    calibrate_relations,
    calibrate_entailment,
    calibrate_search,
    calibrate_recommendation,
)
COMMANDS = {function.__name__.replace("_", "-"): function for function in _FUNCTIONS}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code: 0, 1 after a reported error, 2 for wrong usage."""
    return run_program(
        "facets-eval", COMMANDS, arguments, help="Measure models on the paper's tasks; prints one JSON object."
    )


if __name__ == "__main__":
    sys.exit(main())

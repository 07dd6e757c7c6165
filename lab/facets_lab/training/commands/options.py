"""Options that commands of ``facets-train`` share."""

from pathlib import Path
from typing import Annotated

import typer

from facets.errors import ConfigError

__all__ = ["CheckpointOut", "ConfigFile", "Resume", "RunConfigFile", "RunFolder", "RunOut", "WordsOf", "read_text"]

ConfigFile = Annotated[Path, typer.Option("--config", help="TOML file of the settings, see lab/configs/.")]
RunConfigFile = Annotated[Path, typer.Option("--config", help="TOML file of the run's settings.")]
RunOut = Annotated[Path, typer.Option("--out", help="Folder of the run: checkpoint, curve, then the model.")]
RunFolder = Annotated[Path, typer.Option("--run", help="Folder of the run.")]
CheckpointOut = Annotated[Path, typer.Option("--out", help="Checkpoint folder to write.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")]
WordsOf = Annotated[Path | None, typer.Option(help="Refer to this checkpoint's word vectors instead of storing them.")]


def read_text(path: Path) -> str:
    """A whole file of UTF-8.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error

"""Arguments that commands of ``facets-eval`` share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Baselines", "Bootstrap", "DataFile", "DryRun", "Models"]

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

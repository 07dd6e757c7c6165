"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

DataFile = Annotated[Path, typer.Argument(metavar="FILE", help="Data file; .gz and .xz are decompressed.")]
Folders = Annotated[
    list[Path], typer.Argument(metavar="DIR...", help="BEIR folders: corpus.jsonl, queries.jsonl, qrels/test.tsv.")
]
Models = Annotated[
    list[str] | None, typer.Option("--model", metavar="NAME|PATH", help="Repeatable; default: the shipped model.")
]
Baselines = Annotated[bool, typer.Option("--baselines", help="Also measure the paper's baselines and peers.")]
Bootstrap = Annotated[
    int, typer.Option("--bootstrap", min=0, metavar="N", help="95 % confidence intervals from N resamples.")
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

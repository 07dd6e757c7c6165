"""``facets encode``."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from facets_client.cli.bulk import ProgressOption, RejectedOption, bulk_input
from facets_client.cli.documents.index import (
    DelimiterOption,
    EncodingOption,
    FilesArgument,
    FormatOption,
    IdOption,
    IdsOption,
    LimitOption,
    PayloadOption,
    StrictOption,
    TextOption,
    TitleOption,
    capped,
    chosen_columns,
)
from facets_client.cli.options import SearchFieldOption, parse_search_fields
from facets_client.cli.output import count_of, print_json
from facets_client.cli.settings import settings_of
from facets_client.core.extras import require_extra
from facets_client.documents.encoding import EncodeTask, RayWorker, Worker, Workers, connect_to_ray
from facets_client.load.files import DocumentFiles
from facets_client.load.formats import find_files
from facets_client.load.records import ReadOptions
from facets_client.load.runner import BulkReport, BulkSettings


def encode(
    context: typer.Context,
    files: FilesArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of Parquet parts; made.", show_default=False)],
    model: Annotated[str, typer.Option(help="Model of passages, by name or folder.  [default: the shipped one]")] = "",
    search_field: SearchFieldOption = None,
    workers: Annotated[int, typer.Option(help="Processes with a model each; 0: 1, with Ray all its.", min=0)] = 0,
    ray: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Cluster of Ray that encodes; auto finds one, local starts one.")
    ] = "",
    text: TextOption = None,
    title: TitleOption = "",
    id_column: IdOption = "",
    payload: PayloadOption = None,
    ids: IdsOption = None,
    form: FormatOption = None,
    encoding: EncodingOption = "",
    delimiter: DelimiterOption = "",
    part_size: Annotated[int, typer.Option(help="Most documents of a part.", min=1)] = 512,
    rejected: RejectedOption = None,
    strict: StrictOption = False,
    limit: LimitOption = 0,
    progress: ProgressOption = None,
) -> None:
    """Encode documents here or in a cluster of Ray, for `facets index --from-encoded`: the server then only stores.

    Reads what `facets index` reads, with the same columns and ids. Needs the library with a model on every machine that
    encodes (pip install 'multifacet[model,models]'), and the model that the collection has.

    Safe to interrupt: parts are whole or not there, and the same command makes the missing ones. However often workers
    are lost and parts are made again, the folder holds the same.

    \b
    Examples:
      facets encode articles.csv --out articles.encoded
      facets encode handbook/ --out handbook.encoded --workers 4
      facets encode part-*.jsonl.gz --out all.encoded --ray auto
      facets index --from-encoded articles.encoded --collection news --create
    """
    settings = settings_of(context)
    require_extra("parquet", "pyarrow")
    choice = chosen_columns(text, title, id_column, payload, ids)
    options = ReadOptions(encoding=encoding, delimiter=delimiter, tell=capped(settings.note))
    found = find_files(files, form, settings.note)
    with DocumentFiles(found, options, choice=choice, form=form) as documents:
        given = bulk_input(settings, documents, rejected, paths=[file.path for file in found])
        documents.check()
        pool = _workers(ray, workers, model, parse_search_fields(search_field))
        try:
            from facets_client.adapters.encoded import EncodedFolder

            made_by = pool.describe()
            settings.note(f"{made_by.name} encodes, in {count_of(pool.number, 'process', 'processes')}")
            bulk = BulkSettings(batch_size=part_size, window=4 * pool.number, limit=limit, strict=strict)
            task = EncodeTask(pool, documents.read, EncodedFolder(out, made_by), settings=bulk)
            report = given.run(task, bulk, state_file=None, resume=False, progress=progress, done="encoded")
        finally:
            pool.close()
    _print_report(report, out, as_json=settings.json, quiet=settings.quiet)
    given.end(report.place)


def _workers(address: str, number: int, model: str, search_fields: Mapping[str, float] | None) -> Workers:
    processors = connect_to_ray(address, os.environ) if address else 1
    return Workers(partial(RayWorker if address else Worker, model, search_fields), number or processors)


def _print_report(report: BulkReport, out: Path, *, as_json: bool, quiet: bool) -> None:
    place, kept = report.place, report.place.totals.get("num_kept", 0)
    if as_json:
        print_json(
            {
                "num_records": place.num_records,
                "num_encoded": place.num_done,
                "num_rejected": place.num_rejected,
                "num_parts_kept": kept,
                "duration_s": report.duration_s,
                "documents_per_s": report.records_per_s,
                "folder": str(out),
            }
        )
    elif not quiet:
        there = f", {count_of(kept, 'part was', 'parts were')} there" if kept else ""
        typer.echo(
            f"{count_of(place.num_records, 'record')}: {place.num_done:,} encoded, {place.num_rejected:,} rejected, "
            f"{report.duration_s:.1f} s, {report.records_per_s:.0f} documents/s{there}: {out}"
        )

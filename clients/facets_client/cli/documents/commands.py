"""``facets documents``."""

import itertools
from typing import Annotated

import typer

from facets_client.cli.failures import CommandError, ExitCode, Failure
from facets_client.cli.output import documents_table, is_interactive, print_json, stdout
from facets_client.cli.settings import settings_of
from facets_client.cli.where import WhereOption, parse_where
from facets_client.documents.results import Document

app = typer.Typer(invoke_without_command=True)

CollectionOption = Annotated[
    str, typer.Option("--collection", "-c", help="Name of the collection.", show_default=False)
]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of documents.", show_default=False)]


@app.callback()
def documents(context: typer.Context) -> None:
    """Get, list, count and delete documents.

    \b
    Examples:
      facets documents list -c news
      facets documents get article-17 -c news
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(ExitCode.USAGE)


@app.command()
def get(
    context: typer.Context,
    ids: Ids,
    collection: CollectionOption,
    facets: Annotated[bool, typer.Option("--facets", help="With facet embeddings (JSON only).")] = False,
) -> None:
    """Show documents by id; exit code 2 when one is not there.

    \b
    Examples:
      facets documents get article-17 -c news
      facets --json documents get article-17 article-18 -c news --facets
    """
    settings = settings_of(context)
    with settings.connect() as client:
        found = client.get_documents(collection, ids, include_facets=facets)
    if settings.json:
        documents = [_as_json(document) for document in found.documents]
        print_json({"documents": documents, "missing_ids": found.missing_ids})
    elif found.documents:
        _print_table(list(found.documents), text_chars=2_000)
    if found.missing_ids:
        missing = ", ".join(found.missing_ids)
        sentence = f"collection {collection} has no document {missing}"
        raise CommandError(Failure(sentence=sentence, exit_code=ExitCode.USAGE, code="NOT_FOUND"))


@app.command("list")
def list_documents(
    context: typer.Context,
    collection: CollectionOption,
    where: WhereOption = None,
    limit: Annotated[int, typer.Option(help="Most documents to list; 0: all.", min=0)] = 20,
    facets: Annotated[bool, typer.Option("--facets", help="With facet embeddings (JSON only).")] = False,
) -> None:
    """List documents in the order of their ids; with --json one object a line.

    \b
    Examples:
      facets documents list -c news --where 'year=2024'
      facets --json documents list -c news --limit 0 > news.jsonl
    """
    settings = settings_of(context)
    with settings.connect() as client:
        found = client.list_documents(collection, where=parse_where(where), include_facets=facets)
        documents = itertools.islice(found, limit or None)
        if settings.json:
            for document in documents:
                print_json(_as_json(document))
        else:
            _print_table(list(documents), text_chars=120)


@app.command()
def count(context: typer.Context, collection: CollectionOption, where: WhereOption = None) -> None:
    """Count documents.

    \b
    Examples:
      facets documents count -c news
      facets documents count -c news --where 'language=en'
    """
    settings = settings_of(context)
    with settings.connect() as client:
        number = client.count_documents(collection, where=parse_where(where))
    if settings.json:
        print_json({"collection": collection, "num_documents": number})
    else:
        typer.echo(str(number))


@app.command()
def delete(
    context: typer.Context,
    collection: CollectionOption,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of documents.", show_default=False)
    ] = None,
    where: WhereOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask (with --where).")] = False,
) -> None:
    """Delete documents by id, or all that match conditions; ids that are not there are no error.

    \b
    Examples:
      facets documents delete article-17 article-18 -c news
      facets documents delete -c news --where 'year<2000' --yes
    """
    settings = settings_of(context)
    condition = parse_where(where)
    if bool(ids) == (condition is not None):
        raise typer.BadParameter("expected ids, or --where CONDITION")
    with settings.connect() as client:
        if condition is not None and not yes:
            if not is_interactive():
                raise typer.BadParameter("--yes is needed where nobody can be asked")
            number = client.count_documents(collection, where=condition)
            typer.confirm(f"Delete {number} documents of {collection}?", abort=True, err=True)
        done = client.delete_documents(collection, ids or (), where=condition)
    if settings.json:
        print_json({"num_deleted": done.num_documents, "index_revision": done.index_revision})
    else:
        settings.note(f"deleted {done.num_documents} documents")


def _as_json(document: Document) -> dict[str, object]:
    fields: dict[str, object] = {
        "id": document.id,
        "text": document.text,
        "payload": document.payload,
        "revision": document.revision,
    }
    if document.facet_embeddings is not None:
        fields["facet_embeddings"] = document.facet_embeddings
    return fields


def _print_table(documents: list[Document], *, text_chars: int) -> None:
    rows = ((document.id, document.text, document.payload) for document in documents)
    stdout().print(documents_table(rows, text_chars=text_chars))

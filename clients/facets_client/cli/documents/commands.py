"""``facets collections`` and ``facets documents``."""

import itertools
from typing import Annotated

import typer

from facets_client.cli.failures import CommandError, ExitCode, Failure
from facets_client.cli.options import SearchFieldOption, WhereOption, parse_search_fields, parse_where
from facets_client.cli.output import (
    add_row,
    count_of,
    documents_table,
    is_interactive,
    print_json,
    progress_bar,
    stdout,
    table,
)
from facets_client.cli.settings import ask, settings_of
from facets_client.generated.types import Collection, Document

collections_app = typer.Typer(invoke_without_command=True)

Name = Annotated[str, typer.Argument(help="Name of the collection.", show_default=False)]


@collections_app.callback()
def collections(context: typer.Context) -> None:
    """List, make, show, move and delete collections; without a subcommand: list.

    \b
    Examples:
      facets collections
      facets collections create news --model facets-en
      facets collections show news
      facets collections reindex news --model facets-minilm-en
      facets collections delete news --yes
    """
    if context.invoked_subcommand is None:
        list_collections(context)


@collections_app.command("list")
def list_collections(context: typer.Context) -> None:
    """List all collections.

    \b
    Examples:
      facets collections list
      facets --json collections list
    """
    ask(context, lambda client: {"collections": client.list_collections()}, lambda found: _print_collections(**found))


@collections_app.command("create")
def create_collection(
    context: typer.Context,
    name: Name,
    model: Annotated[str, typer.Option(help="Its model; the server's default for collections when not given.")] = "",
    search_field: SearchFieldOption = None,
) -> None:
    """Make an empty collection.

    \b
    Examples:
      facets collections create news
      facets collections create papers --search-field title --search-field authors:1
      facets collections create news --model facets-en
    """
    note, fields = settings_of(context).note, parse_search_fields(search_field)
    ask(
        context,
        lambda client: client.create_collection(name, model=model, search_fields=fields),
        lambda made: note(f"made collection {made.name} with model {made.model} (space {made.space})"),
    )


@collections_app.command("show")
def show_collection(context: typer.Context, name: Name) -> None:
    """Show one collection.

    \b
    Examples:
      facets collections show news
    """
    ask(context, lambda client: client.get_collection(name), lambda found: _print_collections([found]))


@collections_app.command("reindex")
def reindex_collection(
    context: typer.Context,
    name: Name,
    model: Annotated[str, typer.Option(help="Model to move to; the served revision of its own when not given.")] = "",
    search_field: SearchFieldOption = None,
    progress: Annotated[bool | None, typer.Option(help="Progress bar; by default only on a terminal.")] = None,
) -> None:
    """Move a collection to another model, to the served revision of its own, or to other fields that are searched.

    Its texts are encoded anew. Meanwhile it is searched and written as it was. When this is interrupted, run it again:
    it goes on where it ended.

    \b
    Examples:
      facets collections reindex news
      facets collections reindex news --model facets-minilm-en
      facets collections reindex news --search-field title:2 --search-field authors:1
    """
    settings = settings_of(context)
    fields = parse_search_fields(search_field)
    with settings.connect(watched=False) as client, progress_bar(shown=progress, counted="documents") as bar:
        task = bar.add_task("", total=None)
        for step in client.reindex_collection(name, model=model, search_fields=fields):
            moved = step.collection
            bar.update(task, completed=step.num_encoded, total=moved.num_documents)
    if settings.json:
        print_json(moved)
    else:
        settings.note(
            f"collection {name} with {count_of(moved.num_documents, 'document')} is of model {moved.model} now"
        )


@collections_app.command("delete")
def delete_collection(
    context: typer.Context,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a collection with all its documents.

    \b
    Examples:
      facets collections delete news
      facets collections delete news --yes
    """
    settings = settings_of(context)
    with settings.connect() as client:
        if not yes:
            found = client.get_collection(name)
            question = f"Delete collection {name} with its {count_of(found.num_documents, 'document')}?"
            if not is_interactive():
                raise typer.BadParameter("--yes is needed where nobody can be asked")
            typer.confirm(question, abort=True, err=True)
        done = client.delete_collection(name)
    if settings.json:
        print_json({"name": name, "num_documents": done.num_documents})
    else:
        settings.note(f"deleted collection {name} with {count_of(done.num_documents, 'document')}")


def _print_collections(collections: list[Collection]) -> None:
    columns = ("collection", "documents", "model", "space", "facets", "dim", "index", "made")
    shown = table(*columns, right=("documents", "facets", "dim"))
    for item in collections:
        made = item.create_time.strftime("%Y-%m-%d %H:%M") if item.create_time else ""
        add_row(
            shown,
            item.name,
            f"{item.num_documents} ({item.num_damaged} damaged)" if item.num_damaged else item.num_documents,
            item.model,
            item.space,
            item.num_facets,
            item.dim,
            item.index_kind,
            made,
        )
    stdout().print(shown)


documents_app = typer.Typer(invoke_without_command=True)

CollectionOption = Annotated[
    str, typer.Option("--collection", "-c", help="Name of the collection.", show_default=False)
]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of documents.", show_default=False)]


@documents_app.callback()
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


@documents_app.command("get")
def get_documents(
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
        _print_documents(list(found.documents), text_chars=2_000)
    if found.missing_ids:
        missing = ", ".join(found.missing_ids)
        sentence = f"collection {collection} has no document {missing}"
        raise CommandError(Failure(sentence=sentence, exit_code=ExitCode.USAGE, code="NOT_FOUND"))


@documents_app.command("list")
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
            _print_documents(list(documents), text_chars=120)


@documents_app.command("count")
def count_documents(context: typer.Context, collection: CollectionOption, where: WhereOption = None) -> None:
    """Count documents.

    \b
    Examples:
      facets documents count -c news
      facets documents count -c news --where 'language=en'
    """
    condition = parse_where(where)
    ask(
        context,
        lambda client: {"collection": collection, "num_documents": client.count_documents(collection, where=condition)},
        lambda counted: typer.echo(str(counted["num_documents"])),
    )


@documents_app.command("delete")
def delete_documents(
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
            typer.confirm(f"Delete {count_of(number, 'document')} of {collection}?", abort=True, err=True)
        done = client.delete_documents(collection, ids or (), where=condition)
    if settings.json:
        print_json({"num_deleted": done.num_documents, "index_revision": done.index_revision})
    else:
        settings.note(f"deleted {count_of(done.num_documents, 'document')}")


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


def _print_documents(documents: list[Document], *, text_chars: int) -> None:
    rows = ((document.id, document.text, document.payload) for document in documents)
    stdout().print(documents_table(rows, text_chars=text_chars))

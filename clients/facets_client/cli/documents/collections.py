"""``facets collections``, ``documents``, ``delete`` and ``diagnose``."""

import difflib
import itertools
import sys
from typing import Annotated, Any

import typer
from typer import Argument, Option

from facets_client.cli.failures import CommandError, need_command
from facets_client.cli.options import (
    CollectionOption,
    LanguageOption,
    SearchFieldOption,
    WhereOption,
    parse_search_fields,
    parse_where,
    texts_from,
)
from facets_client.cli.output import print_documents, print_json, print_table
from facets_client.cli.settings import ask, settings_of
from facets_client.core.drawing import count_of, progress_bar
from facets_client.generated.types import Document

collections_app = typer.Typer(invoke_without_command=True, add_completion=False)
documents_app = typer.Typer(invoke_without_command=True, add_completion=False)

NameArgument = Annotated[str, Argument(help="Name of the collection.")]
FacetsOption = Annotated[bool, Option("--facets", help="Include facet embeddings (JSON only).")]
SourceOption = Annotated[str, Option("--source", metavar="FILE", help="Only documents that came from this file.")]
YesOption = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")]


@collections_app.callback()
def collections(context: typer.Context) -> None:
    """List, create, show, reindex and delete collections.

    Without a subcommand, lists them.

    \b
    Examples:
      facets collections create papers --search-field title --search-field authors:1
      facets collections reindex news --model facets-passages-en
      facets collections delete news --yes
    """
    if context.invoked_subcommand is None:
        list_collections(context)


@collections_app.command("list")
def list_collections(context: typer.Context) -> None:
    """List all collections."""
    ask(context, lambda client: client.list_collections(), as_json=lambda found: {"collections": found})


@collections_app.command("create")
def create_collection(
    context: typer.Context,
    name: NameArgument,
    model: Annotated[str, Option(help="Model of the collection.  [default: the server's for collections]")] = "",
    search_field: SearchFieldOption = None,
    language: LanguageOption = "",
) -> None:
    """Create an empty collection."""
    note, search_fields = settings_of(context).note, parse_search_fields(search_field)
    ask(
        context,
        lambda client: client.create_collection(name, model=model, search_fields=search_fields, language=language),
        lambda made: note(f"created collection {made.name} with model {made.model} (space {made.space})"),
    )


@collections_app.command("show")
def show_collection(context: typer.Context, name: NameArgument) -> None:
    """Show one collection."""
    ask(context, lambda client: client.get_collection(name))


@collections_app.command("sources")
def list_sources(context: typer.Context, name: NameArgument) -> None:
    """List the files that the documents of a collection came from; see facets documents delete --source."""
    ask(
        context,
        lambda client: {"sources": client.list_sources(name)},
        lambda found: print_table(("source", "documents"), found["sources"].items()),
    )


@collections_app.command("reindex")
def reindex_collection(
    context: typer.Context,
    name: NameArgument,
    model: Annotated[str, Option(help="The new model.  [default: the served revision of the current one]")] = "",
    search_field: SearchFieldOption = None,
) -> None:
    """Move a collection to another model, to the served revision of its current one, or to other search fields.

    All texts are encoded again. Until that is done, the collection can be searched and written as before. If it
    is interrupted, run it again to continue where it stopped.
    """
    settings = settings_of(context)
    search_fields = parse_search_fields(search_field)
    with settings.connect() as client, progress_bar("documents", quiet=settings.quiet) as bar:
        task = bar.add_task("", total=None)
        for step in client.reindex_collection(name, model=model, search_fields=search_fields):
            moved = step.collection
            bar.update(task, completed=step.num_encoded, total=moved.num_documents)
    documents = count_of(moved.num_documents, "document")
    settings.done(moved, f"collection {name} with {documents} now uses model {moved.model}")


@collections_app.command("delete")
def delete_collection(context: typer.Context, name: NameArgument, yes: YesOption = False) -> None:
    """Delete a collection with all its documents."""
    settings = settings_of(context)
    with settings.connect() as client:
        if not yes:
            number = client.get_collection(name).num_documents
            _confirm(f"Delete collection {name} with its {count_of(number, 'document')}?")
        done = client.delete_collection(name)
    documents = count_of(done.num_documents, "document")
    settings.done({"name": name, "num_documents": done.num_documents}, f"deleted collection {name} with {documents}")


def diagnose(
    context: typer.Context,
    collection: CollectionOption,
    queries: Annotated[str | None, Option(help="File with questions, one per line.")] = None,
) -> None:
    """Report duplicates, hubs and recall of a collection.

    Recall is measured on --queries. Use real questions, not sentences from the documents.

    \b
    Examples:
      facets diagnose -c news
      facets diagnose -c news --queries asked.txt
    """
    asked = [] if queries is None else list(texts_from(None, queries))
    ask(context, lambda client: client.diagnose_collection(collection, asked))


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise typer.BadParameter("--yes is required where the user cannot be asked")
    typer.confirm(question, abort=True, err=True)


@documents_app.callback()
def documents(context: typer.Context) -> None:
    """Get, list, count and delete documents.

    \b
    Examples:
      facets --json documents list -c news --limit 0 > news.jsonl
      facets --json documents get article-17 article-18 -c news --facets
    """
    need_command(context)


@documents_app.command("get")
def get_documents(
    context: typer.Context,
    ids: Annotated[list[str], Argument(metavar="ID...", help="Ids of documents.")],
    collection: CollectionOption,
    facets: FacetsOption = False,
) -> None:
    """Show documents by id; exit code 2 if one does not exist."""
    settings = settings_of(context)
    with settings.connect() as client:
        found = client.get_documents(collection, ids, include_facets=facets)
    if settings.json:
        print_json({"documents": list(map(_to_json, found.documents)), "missing_ids": found.missing_ids})
    elif found.documents:
        print_documents(found.documents, text_chars=2_000)
    if found.missing_ids:
        message = f"collection {collection} has no document {', '.join(found.missing_ids)}"
        raise CommandError(message, "NOT_FOUND")


@documents_app.command("list")
def list_documents(
    context: typer.Context,
    collection: CollectionOption,
    where: WhereOption = None,
    source: SourceOption = "",
    limit: Annotated[int, Option(min=0, help="Maximum number of documents; 0: all.")] = 20,
    facets: FacetsOption = False,
) -> None:
    """List documents in the order of their ids; with --json one object per line."""
    settings = settings_of(context)
    with settings.connect() as client:
        found = client.list_documents(collection, where=parse_where(where), source=source, include_facets=facets)
        documents = itertools.islice(found, limit or None)
        if settings.json:
            for document in documents:
                print_json(_to_json(document))
        else:
            print_documents(documents)


@documents_app.command("count")
def count_documents(context: typer.Context, collection: CollectionOption, where: WhereOption = None) -> None:
    """Count documents."""
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
    ids: Annotated[list[str] | None, Argument(metavar="[ID]...", help="Ids of documents.")] = None,
    where: WhereOption = None,
    source: SourceOption = "",
    yes: YesOption = False,
) -> None:
    """Delete documents by id, or by conditions and source.

    Unknown ids are ignored.

    \b
    Examples:
      facets delete article-17 article-18 -c news
      facets delete -c news --where 'year<2000' --yes
      facets delete -c news --source old.csv --yes
    """
    settings = settings_of(context)
    condition = parse_where(where)
    if bool(ids) == (condition is not None or source != ""):
        raise typer.BadParameter("expected ids, or --where CONDITION or --source FILE")
    with settings.connect() as client:
        if source and source not in (sources := client.list_sources(collection)):
            near = difflib.get_close_matches(source, sources, 1)
            hint = f"did you mean {near[0]!r}?" if near else "facets collections sources lists the files"
            raise CommandError(f"collection {collection} has no document of {source!r}", "NOT_FOUND", hint=hint)
        if not ids and not yes:
            found = client.list_documents(collection, where=condition, source=source, include_document=False)
            number = sum(1 for _ in found) if sys.stdin.isatty() else 0
            _confirm(f"Delete {count_of(number, 'document')} of {collection}?")
        done = client.delete_documents(collection, ids or (), where=condition, source=source)
    value = {"num_deleted": done.num_documents, "index_revision": done.index_revision}
    settings.done(value, f"deleted {count_of(done.num_documents, 'document')}")


def _to_json(document: Document) -> dict[str, Any]:
    fields = {name: getattr(document, name) for name in ("id", "text", "payload", "source", "revision")}
    if document.facet_embeddings is not None:
        fields["facet_embeddings"] = document.facet_embeddings
    return fields

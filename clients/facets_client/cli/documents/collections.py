"""``facets collections``."""

from typing import Annotated

import typer

from facets_client.cli.output import add_row, is_interactive, print_json, progress_bar, stdout, table
from facets_client.cli.settings import settings_of
from facets_client.documents.results import Collection

app = typer.Typer(invoke_without_command=True)

Name = Annotated[str, typer.Argument(help="Name of the collection.", show_default=False)]


@app.callback()
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
        list_all(context)


@app.command("list")
def list_all(context: typer.Context) -> None:
    """List all collections.

    \b
    Examples:
      facets collections list
      facets --json collections list
    """
    settings = settings_of(context)
    with settings.connect() as client:
        found = client.list_collections()
    if settings.json:
        print_json({"collections": found})
    else:
        _print_table(found)


@app.command()
def create(
    context: typer.Context,
    name: Name,
    model: Annotated[str, typer.Option(help="Its model; the server's default for collections when not given.")] = "",
) -> None:
    """Make an empty collection.

    \b
    Examples:
      facets collections create news
      facets collections create news --model facets-en
    """
    settings = settings_of(context)
    with settings.connect() as client:
        made = client.create_collection(name, model=model)
    if settings.json:
        print_json(made)
    else:
        settings.note(f"made collection {made.name} with model {made.model} (space {made.space})")


@app.command()
def show(context: typer.Context, name: Name) -> None:
    """Show one collection.

    \b
    Examples:
      facets collections show news
    """
    settings = settings_of(context)
    with settings.connect() as client:
        found = client.get_collection(name)
    if settings.json:
        print_json(found)
    else:
        _print_table([found])


@app.command()
def reindex(
    context: typer.Context,
    name: Name,
    model: Annotated[str, typer.Option(help="Model to move to; the served revision of its own when not given.")] = "",
    progress: Annotated[bool | None, typer.Option(help="Progress bar; by default only on a terminal.")] = None,
) -> None:
    """Move a collection to another model, or to the served revision of its own.

    Its texts are encoded anew. Meanwhile it is searched and written as it was. When this is interrupted, run it again:
    it goes on where it ended.

    \b
    Examples:
      facets collections reindex news
      facets collections reindex news --model facets-minilm-en
    """
    settings = settings_of(context)
    with settings.connect(watched=False) as client, progress_bar(shown=progress, counted="documents") as bar:
        task = bar.add_task("", total=None)
        for step in client.reindex_collection(name, model=model):
            moved = step.collection
            bar.update(task, completed=step.num_encoded, total=moved.num_documents)
    if settings.json:
        print_json(moved)
    else:
        settings.note(f"collection {name} with {moved.num_documents} documents is of model {moved.model} now")


@app.command()
def delete(
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
            question = f"Delete collection {name} with its {found.num_documents} documents?"
            if not is_interactive():
                raise typer.BadParameter("--yes is needed where nobody can be asked")
            typer.confirm(question, abort=True, err=True)
        done = client.delete_collection(name)
    if settings.json:
        print_json({"name": name, "num_documents": done.num_documents})
    else:
        settings.note(f"deleted collection {name} with {done.num_documents} documents")


def _print_table(found: list[Collection]) -> None:
    columns = ("collection", "documents", "model", "space", "facets", "dim", "index", "made")
    shown = table(*columns, right=("documents", "facets", "dim"))
    for item in found:
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

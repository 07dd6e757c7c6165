"""Facets: several embeddings per text, for similarity, summaries and search.

>>> import facets
>>> with facets.open() as notes:  # in memory; facets.open("notes") keeps them in a folder
...     stored = notes.add(["The library opens at nine on weekdays.", "Dogs must be on a lead."])
...     [hit.text for hit in notes.search("when can I borrow books", top_k=1)]
['The library opens at nine on weekdays.']
>>> model = facets.load()
>>> model.encode(["A man is lifting weights in a garage."]).shape
(1, 10, 256)
"""

from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from facets.extras import quick_imports, require_extra

if TYPE_CHECKING:
    from facets_server.local import LocalClient

    from facets.model.loading import load

__version__ = "0.1.0"

__all__ = ["__version__", "load", "open"]


def open(
    path: "str | Path | None" = None, *, models: Sequence[str] = (), device: str = "cpu", allow_downloads: bool = False
) -> "LocalClient":
    """Opens a folder of collections, without a server; one process at a time may use a folder.

    The result has the methods of ``facets_client.FacetsClient``, so a program moves to a server by changing one line.
    ``facets serve --data-dir PATH`` serves the same folder.

    Args:
        path: The folder, created if it is missing; None: in memory.
        models: Names or folders of models, ``sentence-transformers:NAME`` for an encoder; the first of each task is the
            default. Empty: the shipped models.
        device: ``cpu``, ``cuda``, ``cuda:1`` and so on, or ``auto``: a GPU if there is one.
        allow_downloads: Download encoders that are not in the local cache.

    Raises:
        ImportError: The package of the server is not installed.
        FailedPreconditionError: The folder is in use by another process, or was written by a newer release.
        InvalidArgumentError: ``path`` is a file, or ``device`` has another name than these.
        UnavailableError: The folder cannot be read or written.
        FacetsClientError: The folder or a model cannot be opened; a subclass for each reason.
    """
    require_extra("local", "facets_server", "torch")
    with quick_imports():
        client: type[LocalClient] = resolve_name("facets_server.local:LocalClient")
    return client(path, models=models, device=device, allow_downloads=allow_downloads)


def __getattr__(name: str) -> object:
    """Loads ``load`` when it is first used, so that ``import facets`` stays light."""
    if name != "load":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_extra("model", "torch", "spacy", "safetensors", "tokenizers")
    with quick_imports():
        from facets.model.loading import load

    return load

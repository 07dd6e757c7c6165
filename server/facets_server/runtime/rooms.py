"""The table of the rooms."""

from importlib import import_module

from facets_server.runtime.room import Room

__all__ = ["ROOMS"]

# Folders of the server with a module ``room``, in the order of the models and services. A new task is a line here.
_NAMES = (
    "texts",
    "documents",
    "relations",
    "papers",
)
ROOMS: tuple[Room, ...] = tuple(import_module(f"facets_server.{name}.room").ROOM for name in _NAMES)

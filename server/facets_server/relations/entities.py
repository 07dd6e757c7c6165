"""Finds the entities of a request: by its spans or names, or with the server's gazetteer or spaCy pipeline."""

import threading
from collections.abc import Sequence
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path

from facets.errors import ConfigError, FacetsError
from facets.relations.entities import EntityFinder, Gazetteer
from facets_server.runtime.config import RelationsConfig

_MAX_KEPT_GAZETTEERS = 4  # a client with many texts sends the same names with each request


class EntitySource(StrEnum):
    """Source of the entities; ``ANY``: the first available of spans, names, the server's gazetteer, NER."""

    ANY = ""
    SPANS = "spans"
    GAZETTEER = "gazetteer"
    NER = "ner"


class EntityFinders:
    """Entity finders by source; files are read once, on first use. Thread-safe."""

    def __init__(self, config: RelationsConfig) -> None:
        self._config = config
        self._lock = threading.Lock()  # calls that come while a pipeline is loaded wait for it
        self._of_names = lru_cache(maxsize=_MAX_KEPT_GAZETTEERS)(Gazetteer)
        self._gazetteer = cache(lambda: Gazetteer(_names(config.gazetteer)))
        self._pipeline = cache(lambda: _pipeline(config.ner_pipeline))

    def get(self, source: EntitySource, names: Sequence[str], *, has_spans: bool) -> EntityFinder | None:
        """The finder for a request with these gazetteer names; None: its spans are the entities."""
        if source is EntitySource.SPANS or (source is EntitySource.ANY and has_spans):
            return None
        if names and source is not EntitySource.NER:
            return self._of_names(tuple(names))
        with self._lock:
            if source is EntitySource.GAZETTEER or (source is EntitySource.ANY and self._config.gazetteer is not None):
                return self._gazetteer()
            return self._pipeline()


def _pipeline(name: str) -> EntityFinder:
    from facets.relations.recognizer import SpacyEntities  # spaCy takes half a second

    try:
        return SpacyEntities(name)
    except FacetsError as error:  # pipeline not installed, or it has no entity recognizer
        message = f"the server cannot find entities itself ({error}): give entities or gazetteer_names"
        raise ConfigError(message) from error


def _names(file: Path | None) -> list[str]:
    if file is None:
        raise ConfigError("the server has no gazetteer: expected gazetteer_names in the request")
    try:
        names = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"gazetteer {file} cannot be read, expected UTF-8 with one name per line") from error
    if not names:
        raise ConfigError(f"gazetteer {file} is empty, expected one entity name per line")
    return names

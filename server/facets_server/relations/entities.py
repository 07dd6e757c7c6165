"""Where the entities of a request come from: its own spans or names, or what the server is configured with."""

import threading
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from facets.errors import ConfigError, FacetsError
from facets.relations.entities import EntityFinder, Gazetteer
from facets.relations.recognizer import SpacyEntities
from facets_server.runtime.config import RelationsConfig

_KEPT_GAZETTEERS = 4  # a caller with many texts sends the same names again and again


class EntitySource(StrEnum):
    """What finds the entities."""

    ANY = ""  # the first that is there: spans, names, the server's gazetteer, NER
    SPANS = "spans"
    GAZETTEER = "gazetteer"
    NER = "ner"


class EntityFinders:
    """Finders by source; what is read from files is read once, when first asked for. May be shared by threads."""

    def __init__(self, config: RelationsConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._own: dict[EntitySource, EntityFinder] = {}
        self._of_names = lru_cache(maxsize=_KEPT_GAZETTEERS)(Gazetteer)

    def get(self, source: EntitySource, names: Sequence[str], *, has_spans: bool) -> EntityFinder | None:
        """The finder for a request; None: its spans are the entities.

        Args:
            source: As asked for.
            names: Gazetteer of the request; empty: none.
            has_spans: Some text of the request has entities.

        Raises:
            InvalidInputError: A name has no word.
            ConfigError: The server has no such source.
        """
        if source is EntitySource.SPANS or (source is EntitySource.ANY and has_spans):
            return None
        if names and source is not EntitySource.NER:
            return self._of_names(tuple(names))
        if source is EntitySource.GAZETTEER or (source is EntitySource.ANY and self._config.gazetteer is not None):
            return self._read_once(EntitySource.GAZETTEER, self._read_gazetteer)
        return self._read_once(EntitySource.NER, self._read_pipeline)

    def _read_once(self, source: EntitySource, read: Callable[[], EntityFinder]) -> EntityFinder:
        with self._lock:
            if source not in self._own:
                self._own[source] = read()
            return self._own[source]

    def _read_gazetteer(self) -> EntityFinder:
        file = self._config.gazetteer
        if file is None:
            raise ConfigError("the server has no gazetteer of its own, expected gazetteer_names in the request")
        return Gazetteer(_names(file))

    def _read_pipeline(self) -> EntityFinder:
        try:
            return SpacyEntities(self._config.ner_pipeline)
        except FacetsError as error:  # not installed, or without a recognizer
            raise ConfigError(
                f"the server cannot find entities by itself ({error}): give entities or gazetteer_names"
            ) from error


def _names(file: Path) -> list[str]:
    try:
        names = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"gazetteer {file} cannot be read, expected UTF-8 with one name a line") from error
    if not names:
        raise ConfigError(f"gazetteer {file} holds no name, expected one a line")
    return names

"""The catalogue of relations: canonical names, what knowledge bases call them, directions and kinds of arguments."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from facets.config import Settings
from facets.relations.entity_types import EntityType

__all__ = ["CanonicalName", "CatalogueEntry", "RelationCatalogue"]

# TOML gives the names of kinds.
_Kinds = Annotated[list[Annotated[EntityType, Field(strict=False)]], Field(min_length=1)]
_Name = Annotated[str, Field(min_length=1)]


class CatalogueEntry(Settings):
    """One relation; ``tail`` is the NAME of ``head``: capital(France, Paris).

    Attributes:
        name: Canonical name.
        aliases: Other names of the same relation.
        inverse_aliases: Names of the same relation with head and tail exchanged.
        head: What a head may be.
        tail: What a tail may be.
        symmetric: Holds both ways round.
        example: A sentence; the head stands in ``[..]``, the tail in ``{..}``.
        description: One line.
    """

    name: _Name
    aliases: list[_Name] = Field(default=[])
    inverse_aliases: list[_Name] = Field(default=[])
    head: _Kinds
    tail: _Kinds
    symmetric: bool = False
    example: str
    description: str

    @model_validator(mode="after")
    def _check(self) -> Self:
        marks = [self.example.count(mark) for mark in "[]{}"]
        self.require("example", marks == [1, 1, 1, 1], "a sentence with one [head] and one {tail}")
        return self

    @property
    def example_sentence(self) -> str:
        """The example without the marks of its arguments."""
        return self.example.translate(str.maketrans("", "", "[]{}"))


@dataclass(frozen=True, slots=True)
class CanonicalName:
    """What a name means: the canonical relation, head and tail exchanged where it is an inverse."""

    name: str
    is_inverse: bool = False


class RelationCatalogue(Settings):
    """All relations of a catalogue (``lab/configs/relations-en.toml``); every name and alias stands there once.

    Example:
        >>> entry = {"name": "capital", "inverse_aliases": ["capitalOf"], "head": ["place"], "tail": ["place"]}
        >>> entry |= {"example": "{Paris} is the capital of [France].", "description": "Where a government is."}
        >>> RelationCatalogue.from_dict({"relation": [entry]}).canonical("capitalOf")
        CanonicalName(name='capital', is_inverse=True)
    """

    relation: Annotated[list[CatalogueEntry], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        seen: set[str] = set()
        for entry in self.relation:
            for name in (entry.name, *entry.aliases, *entry.inverse_aliases):
                self.require("relation", name not in seen, f"one meaning for each name, {name!r} has two")
                seen.add(name)
        return self

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a TOML file with one ``[[relation]]`` each.

        Raises:
            ConfigError: It cannot be read, is not TOML, or an entry breaks its rule.
        """
        return cls.from_toml(path)

    def names(self) -> Mapping[str, CanonicalName]:
        """What each name and alias means."""
        meanings: dict[str, CanonicalName] = {}
        for entry in self.relation:
            meanings |= dict.fromkeys([entry.name, *entry.aliases], CanonicalName(entry.name))
            meanings |= dict.fromkeys(entry.inverse_aliases, CanonicalName(entry.name, is_inverse=True))
        return meanings

    def canonical(self, name: str) -> CanonicalName:
        """What a name means; unknown names mean themselves."""
        return self.names().get(name, CanonicalName(name))

    def canonical_triples(self, triples: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
        """Triples head, tail, relation under canonical names, each once; symmetric ones as they are given."""
        meanings = self.names()
        result = []
        for head, tail, name in triples:
            meaning = meanings.get(name, CanonicalName(name))
            result.append((tail, head, meaning.name) if meaning.is_inverse else (head, tail, meaning.name))
        return list(dict.fromkeys(result))

"""What a relation means: other names, kinds of arguments, an example; for people, and for requests by other names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from facets.relations.entity_types import EntityType

__all__ = ["RelationDetails"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RelationDetails:
    """What is known of a relation beside its facets; all of it may be left out.

    Attributes:
        description: One line.
        example: A sentence; the head stands in ``[..]``, the tail in ``{..}``.
        aliases: Other names of the same relation.
        inverse_aliases: Names of the same relation with head and tail exchanged.
        head: What a head may be; empty: anything.
        tail: What a tail may be; empty: anything.
        symmetric: Holds both ways round.
        pairs: Well-known heads and tails by name.
    """

    description: str = ""
    example: str = ""
    aliases: tuple[str, ...] = ()
    inverse_aliases: tuple[str, ...] = ()
    head: tuple[EntityType, ...] = ()
    tail: tuple[EntityType, ...] = ()
    symmetric: bool = False
    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From an entry of a file; other keys are left alone.

        Raises:
            ValueError: A kind of entity is unknown, or a pair is none.
        """
        return cls(
            description=str(values.get("description", "")),
            example=str(values.get("example", "")),
            aliases=tuple(map(str, values.get("aliases", ()))),
            inverse_aliases=tuple(map(str, values.get("inverse_aliases", ()))),
            head=tuple(map(EntityType, values.get("head", ()))),
            tail=tuple(map(EntityType, values.get("tail", ()))),
            symmetric=bool(values.get("symmetric", False)),
            pairs=tuple((str(head), str(tail)) for head, tail in values.get("pairs", ())),
        )

    def to_dict(self) -> dict[str, object]:
        """For a file: what is given."""
        values: dict[str, object] = {
            "description": self.description,
            "example": self.example,
            "aliases": list(self.aliases),
            "inverse_aliases": list(self.inverse_aliases),
            "head": list(self.head),
            "tail": list(self.tail),
            "symmetric": self.symmetric,
            "pairs": [list(pair) for pair in self.pairs],
        }
        return {name: value for name, value in values.items() if value}

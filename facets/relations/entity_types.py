"""Kinds of entities: one coarse set for recognisers, callers, the catalogue of relations and training."""

from enum import StrEnum

__all__ = ["EntityType", "entity_type_of_label"]


class EntityType(StrEnum):
    """What an entity is; the order of the members is that of type arrays (``[R, T]``).

    Attributes:
        PERSON: People, fictional ones too.
        ORGANIZATION: Companies, institutions, teams, bands, parties.
        PLACE: Countries, cities, mountains, buildings.
        DATE: Dates, years, times, periods.
        NUMBER: Counts, ordinals, amounts, measures.
        WORK: Books, films, pieces of music, paintings, laws.
        EVENT: Wars, battles, matches, festivals.
        GROUP: Nationalities, religions, languages.
        THING: Any other known kind: products, dishes, species, occupations, awards.
        UNKNOWN: Not given.
    """

    PERSON = "person"
    ORGANIZATION = "organization"
    PLACE = "place"
    DATE = "date"
    NUMBER = "number"
    WORK = "work"
    EVENT = "event"
    GROUP = "group"
    THING = "thing"
    UNKNOWN = ""


# Labels of spaCy's English pipelines (OntoNotes 5).
_LABELS = {
    EntityType.PERSON: ("PERSON", "PER"),
    EntityType.ORGANIZATION: ("ORG",),
    EntityType.PLACE: ("GPE", "LOC", "FAC"),
    EntityType.DATE: ("DATE", "TIME"),
    EntityType.NUMBER: ("CARDINAL", "ORDINAL", "QUANTITY", "MONEY", "PERCENT"),
    EntityType.WORK: ("WORK_OF_ART", "LAW"),
    EntityType.EVENT: ("EVENT",),
    EntityType.GROUP: ("NORP", "LANGUAGE"),
    EntityType.THING: ("PRODUCT",),
}
_TYPE_OF_LABEL = {label: kind for kind, labels in _LABELS.items() for label in labels}


def entity_type_of_label(label: str) -> EntityType:
    """The kind behind a recogniser's label; ``UNKNOWN`` for labels of no known kind.

    Example:
        >>> entity_type_of_label("GPE"), entity_type_of_label("MISC")
        (<EntityType.PLACE: 'place'>, <EntityType.UNKNOWN: ''>)
    """
    return _TYPE_OF_LABEL.get(label, EntityType.UNKNOWN)

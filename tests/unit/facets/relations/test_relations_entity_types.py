from pathlib import Path

import spacy

from facets.relations import EntitySpan, EntityType, SpacyEntities
from facets.relations.entity_types import entity_type_of_label


def test_entity_type_of_label_every_label_of_the_english_pipelines_has_a_kind() -> None:
    labels = (
        "CARDINAL DATE EVENT FAC GPE LANGUAGE LAW LOC MONEY NORP ORDINAL ORG PERCENT PERSON PRODUCT QUANTITY TIME "
        "WORK_OF_ART"
    )
    assert EntityType.UNKNOWN not in map(entity_type_of_label, labels.split())
    assert entity_type_of_label("NORP") is EntityType.GROUP
    assert entity_type_of_label("anything else") is EntityType.UNKNOWN


def test_entity_span_type_does_not_count_in_comparisons() -> None:
    assert EntitySpan(0, 3, EntityType.PERSON) == EntitySpan(0, 3)
    assert sorted([EntitySpan(4, 7, EntityType.DATE), EntitySpan(0, 3)]) == [EntitySpan(0, 3), EntitySpan(4, 7)]


def test_spacy_entities_find_with_types(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns(
        [{"label": "PERSON", "pattern": "Ann"}, {"label": "GPE", "pattern": "Oslo"}, {"label": "X", "pattern": "it"}]
    )
    nlp.to_disk(tmp_path / "pipeline")
    [spans] = SpacyEntities(str(tmp_path / "pipeline")).find(["Ann left Oslo for it."])
    assert [span.type for span in spans] == [EntityType.PERSON, EntityType.PLACE, EntityType.UNKNOWN]


def test_spacy_entities_do_not_depend_on_how_much_is_read_at_a_time(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Ann"}])
    nlp.to_disk(tmp_path / "pipeline")
    texts = ["Then Ann came. " * 9, "", "Ann left."] * 5
    few, many = (
        SpacyEntities(str(tmp_path / "pipeline"), chars_at_a_time=chars).find(texts) for chars in (300, 20_000)
    )
    assert few == many
    assert sum(map(len, many)) == 50

"""Gazetteers and spans of entities."""

from pathlib import Path

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from facets.errors import InvalidInputError
from facets.relations import SpacyEntities
from facets.relations.entities import Gazetteer

PIECES = st.text(alphabet="aB 1_,-\u00e9\ufdd0\ufdd1\U0001f600", min_size=1, max_size=4)


def obvious_find(names: list[str], text: str) -> list[tuple[int, int, int]]:
    """Every name at every place, then the longest from the left."""
    found = []
    for number, name in enumerate(names):
        for start in range(len(text) - len(name) + 1):
            end = start + len(name)
            inside = text[start - 1 : start].isalnum() and text[start].isalnum()
            inside |= text[end - 1].isalnum() and text[end : end + 1].isalnum()
            if text.startswith(name, start) and not inside:
                found.append((start, -end, number))
    chosen: list[tuple[int, int, int]] = []
    for start, negative_end, number in sorted(found):
        if not chosen or start >= chosen[-1][1]:
            chosen.append((start, -negative_end, number))
    return chosen


@given(st.lists(PIECES, max_size=6), st.lists(PIECES, max_size=12))
def test_gazetteer_equals_a_search_of_every_position(pieces: list[str], text: list[str]) -> None:
    names = list(dict.fromkeys(name for name in pieces if any(map(str.isalnum, name))))
    whole = "".join(text)
    assert Gazetteer(names).find_names(whole) == obvious_find(names, whole)


def test_repetitive_long_names_are_fast() -> None:
    """A full automaton of one such name has a quadratic number of steps to make; here are two hundred."""
    names = [f"{number} " + "x " * 490 for number in range(200)]
    assert Gazetteer(names).find_names("7 " + "x " * 490) == [(0, 982, 7)]


def test_an_endless_name_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at most 1000 characters, got 40000") as caught:
        Gazetteer(["York", "York", "x" * 40_000])
    assert caught.value.field == "names[2]"


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

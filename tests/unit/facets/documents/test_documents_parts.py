"""Documents of several parts: found by part, shown as documents, written and deleted as one."""

import json
import sqlite3
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from facets.documents import (
    CollectionEngine,
    Document,
    DocumentPart,
    EncodedText,
    SearchMode,
    SearchRequest,
    TargetModel,
)
from facets.documents import engine as engine_module
from facets.documents.store import SCHEMA
from facets.documents.types import MAX_NUM_FACETS, TokenStats
from facets.errors import DamagedDocumentsError, InvalidInputError
from facets.storage.backup import problems_of

OpenEngine = Callable[..., CollectionEngine]
DIM = 32


def facets_of(seed: int, num: int = 2) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((num, DIM)).astype(np.float32)


def book(id: str, texts: list[str], *, seed: int = 0, **others: object) -> Document:
    """A part for each text, with two facets of its own that span the first and the last four characters."""
    ends = np.cumsum([len(text) for text in texts]).tolist()
    starts = [0, *ends[:-1]]
    spans = [[[start, start + 4], [end - 4, end]] for start, end in zip(starts, ends, strict=True)]
    return Document(
        **{
            "id": id,
            "text": "".join(texts),
            "facet_embeddings": np.concatenate([facets_of(seed + place) for place in range(len(texts))]),
            "facet_spans": np.array(spans).reshape(-1, 2),
            "payload": {"kind": id},
            "parts": [
                DocumentPart(start=start, end=end, headings=("Book", f"Chapter {place}"), page=place + 1)
                for place, (start, end) in enumerate(zip(starts, ends, strict=True))
            ],
            "part_facets": [2] * len(texts),
            "token_stats": TokenStats(90, 100),
            **others,
        }  # type: ignore[arg-type]  # any field
    )


CRANE = ["A crane stood here. ", "It fell on Monday. ", "Nobody was hurt. "]


@pytest.fixture
def books(engine: CollectionEngine) -> CollectionEngine:
    engine.upsert("docs", [book("crane", CRANE), book("short", ["One part alone."], seed=50)])
    return engine


def test_a_part_is_found_with_its_place_and_stands_for_its_document(books: CollectionEngine) -> None:
    hit, other = books.search("docs", SearchRequest(facets=facets_of(1)[None], top_k=5)).hits[0]
    assert (hit.id, hit.text, hit.part_number, hit.num_parts) == ("crane", CRANE[1], 2, 3)
    assert hit.part == DocumentPart(start=20, end=39, headings=("Book", "Chapter 1"), page=2)
    assert hit.score == pytest.approx(1, abs=1e-3)
    assert (other.id, other.part, other.part_number, other.num_parts) == ("short", None, 0, 1)
    spans = {(match.second_span.start, match.second_span.end) for match in hit.evidence if match.second_span}
    assert spans == {(0, 4), (15, 19)}
    assert hit.answer is not None and hit.text[hit.answer.start : hit.answer.end] == hit.answer.text


def test_words_are_those_of_a_part_and_of_the_headings_above_it(books: CollectionEngine) -> None:
    def found(text: str) -> list[tuple[str, int]]:
        request = SearchRequest(texts=[text], mode="lexical", top_k=5, group=False)
        return [(hit.id, hit.part_number) for hit in books.search("docs", request).hits[0]]

    assert found("monday") == [("crane", 2)]
    assert found('"fell on monday"') == [("crane", 2)]
    assert sorted(found("chapter")) == [("crane", 1), ("crane", 2), ("crane", 3)]
    answer = books.search("docs", SearchRequest(texts=["monday"], mode="lexical", top_k=1)).hits[0][0].answer
    assert answer is not None and (answer.start, answer.text, answer.words) == (0, "It fell on Monday.", ((11, 17),))


@pytest.mark.parametrize("mode", ["facets", "lexical", "hybrid"])
@pytest.mark.parametrize("backend", ["exact", "faiss"])
def test_a_long_document_pushes_no_other_out(open_engine: OpenEngine, mode: SearchMode, backend: str) -> None:
    engine = open_engine(exact_max_facets=100_000 if backend == "exact" else 400)
    engine.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=DIM)
    asked, rng = facets_of(1), np.random.default_rng(3)
    near = np.concatenate([asked + 0.1 * rng.standard_normal((2, DIM)) for _ in range(300)])
    long = book("long", [f"crane number {place}. " for place in range(300)], facet_embeddings=near)
    others = [
        book(f"d{place:02}", ["a crane with others. "], facet_embeddings=asked + 0.5 * rng.standard_normal((2, DIM)))
        for place in range(20)
    ]
    engine.upsert("docs", [long, *others])
    engine.maintain()
    request = SearchRequest(facets=asked[None], texts=None if mode == "facets" else ["crane"], mode=mode, top_k=15)
    hits = engine.search("docs", request).hits[0]
    assert len({hit.id for hit in hits}) == 15
    assert ("long" in {hit.id for hit in hits}) == (mode != "lexical"), "its headings make its parts longer"
    alone = engine.search("docs", SearchRequest(facets=asked[None], top_k=15, group=False)).hits[0]
    assert {hit.id for hit in alone} == {"long"} and len({hit.part_number for hit in alone}) == 15


@pytest.mark.parametrize(("include_facets", "most"), [(False, 260), (True, 1700)])
def test_a_page_ends_where_its_documents_have_too_many_bytes(
    books: CollectionEngine, monkeypatch: pytest.MonkeyPatch, include_facets: bool, most: int
) -> None:
    books.upsert("docs", [book(f"z{place}", ["Word " * 20, "More. " * 10], seed=place) for place in range(4)])
    sizes = {}
    for one in books.list_documents("docs", include_facets=True).documents:
        assert one.facet_embeddings is not None
        num_bytes = len(one.text) + len(json.dumps(one.payload, separators=(",", ":")))
        sizes[one.id] = num_bytes + include_facets * len(one.facet_embeddings) * 4 * (DIM + 2)
    for limit in ("MAX_PAGE_BYTES", "MAX_READ_BYTES"):
        monkeypatch.setattr(engine_module, limit, most)
    token, pages = "", list[list[str]]()
    while token or not pages:
        page = books.list_documents("docs", page_token=token, include_facets=include_facets)
        pages.append([one.id for one in page.documents])
        token = page.next_page_token
    assert [id for ids in pages for id in ids] == list(sizes) and 1 < len(pages) < len(sizes)
    for ids, following in pairwise(pages):
        assert len(ids) == 1 or sum(sizes[id] for id in ids) <= most
        assert sum(sizes[id] for id in [*ids, following[0]]) > most
    assert len(books.get("docs", [pages[-1][-1]], include_facets=include_facets).documents) == 1
    with pytest.raises(InvalidInputError, match="ask for fewer at a time"):
        books.get("docs", list(sizes), include_facets=include_facets)


def test_nothing_of_a_deleted_document_is_left_on_disk(books: CollectionEngine, tmp_path: Path) -> None:
    books.delete("docs", ids=["crane", "short"])
    books.upsert("docs", [book("later", CRANE)])
    books.delete_collection("docs")
    with sqlite3.connect(tmp_path / "data" / "documents.sqlite3") as connection:
        for table in ("documents", "parts"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table


def test_a_damaged_part_is_left_out_and_named_and_the_others_answer(
    books: CollectionEngine, open_engine: OpenEngine, tmp_path: Path
) -> None:
    books.close()
    file = tmp_path / "data" / "documents.sqlite3"
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE parts SET text = 'It fell on Sunday. ' WHERE text LIKE '%Monday%'")
    assert [problem for problem in problems_of(file, SCHEMA) if "'crane'" in problem and "text" in problem]
    engine = open_engine()
    hits = engine.search("docs", SearchRequest(facets=facets_of(1)[None], top_k=5, group=False)).hits[0]
    assert sorted((hit.id, hit.part_number) for hit in hits) == [("crane", 1), ("crane", 3), ("short", 0)]
    assert engine.get_collection("docs").num_damaged == 1
    with pytest.raises(DamagedDocumentsError, match="crane"):
        engine.get("docs", ["crane"])
    engine.upsert("docs", [book("crane", CRANE)])
    assert engine.get_collection("docs").num_damaged == 0


@pytest.mark.parametrize(
    ("id", "damage"),
    [
        ("crane", "DELETE FROM parts WHERE text LIKE '%Monday%'"),
        *(("short", f"UPDATE documents SET num_parts = {number} WHERE id = 'short'") for number in (0, -1, 2)),
    ],
)
def test_a_wrong_number_of_parts_is_found(
    books: CollectionEngine, open_engine: OpenEngine, tmp_path: Path, id: str, damage: str
) -> None:
    books.close()
    with sqlite3.connect(tmp_path / "data" / "documents.sqlite3") as connection:
        connection.execute(damage)
    engine = open_engine()
    hits = engine.search("docs", SearchRequest(facets=facets_of(1)[None], top_k=5)).hits[0]
    assert id == "crane" or [hit.id for hit in hits] == ["crane"]
    with pytest.raises(DamagedDocumentsError, match=id):
        engine.get("docs", [id])
    engine.delete("docs", ids=[id])
    assert engine.get_collection("docs").num_damaged == 0


def test_damaged_terms_of_a_part_are_counted_anew(
    books: CollectionEngine, open_engine: OpenEngine, tmp_path: Path
) -> None:
    books.close()
    with sqlite3.connect(tmp_path / "data" / "documents.sqlite3") as connection:
        connection.execute("UPDATE parts SET terms = x'00'")
    engine = open_engine()
    for text, wanted in (("monday", [2]), ("chapter", [1, 2, 3])):
        request = SearchRequest(texts=[text], mode="lexical", top_k=5, group=False)
        assert sorted(hit.part_number for hit in engine.search("docs", request).hits[0]) == wanted


def test_reindexing_keeps_the_parts(books: CollectionEngine) -> None:
    seen: list[str] = []

    def encode(texts: list[str]) -> list[EncodedText]:
        seen.extend(texts)
        own = [len(text.split("\n\n")[-1]) for text in texts]  # behind the headings
        facets = [np.full((2, 16), len(text), dtype=np.float32) + np.arange(16) for text in texts]
        spans = [len(text) - n + np.array([[0, 2], [0, n]]) for text, n in zip(texts, own, strict=True)]
        return [EncodedText(*one) for one in zip(facets, spans, map(TokenStats, own, own), strict=True)]

    target = TargetModel(model="other", model_revision="1", num_facets=2, dim=16, encode=encode)  # type: ignore[arg-type]  # any sequence
    assert books.reindex("docs", target).done
    assert sorted(text.split("\n\n")[-1] for text in seen) == sorted([*CRANE, "One part alone."])
    assert {text.split("\n\n")[0] for text in seen if "\n\n" in text} == {
        f"Book\nChapter {n}" for n in range(len(CRANE))
    }
    (document,) = books.get("docs", ["crane"], include_facets=True).documents
    assert document.parts == tuple(book("crane", CRANE).parts)
    assert document.token_stats == TokenStats(len(document.text), len(document.text))
    assert document.facet_spans is not None and document.facet_spans[3].tolist() == [20, 39]
    assert books.get_collection("docs").num_parts == 4


def test_reindexing_a_long_document_goes_on_where_a_call_ended(books: CollectionEngine) -> None:
    texts = [f"Page {place} of the long one. " for place in range(300)]
    books.upsert("docs", [book("long", texts)])
    sizes: list[int] = []

    def encode(texts: list[str]) -> list[EncodedText]:
        sizes.append(len(texts))
        if len(sizes) == 2:
            raise TimeoutError
        return [EncodedText(np.full((2, 16), len(text), dtype=np.float32)) for text in texts]

    target = TargetModel(model="other", model_revision="1", num_facets=2, dim=16, encode=encode)  # type: ignore[arg-type]  # any sequence
    assert not books.reindex("docs", target, budget_s=0.0).done
    with pytest.raises(TimeoutError):
        books.reindex("docs", target, budget_s=0.0)
    assert books.get_collection("docs").model != "other"
    for _ in range(10):
        if books.reindex("docs", target, budget_s=0.0).done:
            break
    assert sizes == [128, 128, 128, 304 - 256], "the text that was read when time was up is not read again"
    (document,) = books.get("docs", ["long"], include_facets=True).documents
    assert document.text == "".join(texts) and document.facet_embeddings is not None
    lengths = np.repeat([len(part) + len(f"Book\nChapter {n}\n\n") for n, part in enumerate(texts)], 2)
    np.testing.assert_allclose(document.facet_embeddings[:, 0], lengths, rtol=2e-3)


@pytest.mark.parametrize(
    ("others", "match"),
    [
        ({"part_facets": [2, 2]}, "share of 6 facets"),
        ({"part_facets": [2, 2, 1]}, "share of 6 facets"),
        ({"part_facets": [1, 3, 2]}, "has shape"),
        (
            {"parts": [DocumentPart(start=0, end=5), DocumentPart(start=6, end=39), DocumentPart(start=39, end=56)]},
            "one part directly after another",
        ),
        (
            {"parts": [DocumentPart(start=0, end=20), DocumentPart(start=20, end=39), DocumentPart(start=39, end=50)]},
            "56 characters",
        ),
        ({"facet_spans": np.array([[0, 4], [5, 30], [20, 24], [20, 24], [40, 41], [40, 41]])}, "lie in the part"),
    ],
)
def test_parts_against_the_rules_are_refused(engine: CollectionEngine, others: dict[str, object], match: str) -> None:
    with pytest.raises(InvalidInputError, match=match):
        engine.upsert("docs", [book("crane", CRANE, **others)])
    assert engine.count("docs").num_documents == 0


def test_a_few_long_documents_do_not_hide_the_others(open_engine: OpenEngine) -> None:
    """Every facet of two documents is closer to the query than any other: they fill the list of the best facets."""
    rng, query = np.random.default_rng(0), np.eye(1, DIM, dtype=np.float32)
    engine = open_engine(exact_max_facets=10)
    engine.create_collection("docs", model="toy", model_revision="1", num_facets=3, dim=DIM)
    counts = [MAX_NUM_FACETS, MAX_NUM_FACETS, *np.where(rng.random(300) < 0.3, rng.integers(4, 41, 300), 3).tolist()]
    facets = [0.05 * rng.standard_normal((count, DIM)) for count in counts]
    documents = [
        Document(
            id=f"d{number}",
            text="word " * 50,
            facet_embeddings=own + query if number < 2 else own,
            facet_spans=np.zeros((len(own), 2), dtype=np.int64),
        )
        for number, own in enumerate(facets)
    ]
    engine.upsert("docs", documents)
    engine.maintain()
    [hits] = engine.search("docs", SearchRequest(facets=query[None], top_k=50)).hits
    assert len(hits) == 50
    assert {hits[0].id, hits[1].id} == {"d0", "d1"}

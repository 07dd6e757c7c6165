"""Collections search words by the rules of their language, which is given or that of their first documents."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from facets.documents import (
    CollectionEngine,
    Document,
    EncodedText,
    Equals,
    SearchHit,
    SearchMode,
    SearchRequest,
    TargetModel,
)
from facets.documents import engine as engines
from facets.documents.parts import split_text
from facets.errors import InvalidInputError

OpenEngine = Callable[..., CollectionEngine]
GERMAN = "Die alten Häuser am Hafen wurden verkauft, und die neuen sind noch nicht fertig. Das Haus steht hier."
FRENCH = "Les vieilles maisons du port ont été vendues, et les nouvelles ne sont pas encore prêtes pour nous."


def document(id: str, text: str) -> Document:
    return Document(id=id, text=text, facet_embeddings=np.eye(2, 32))


def create(made: CollectionEngine, language: str = "", name: str = "docs") -> None:
    made.create_collection(name, model="m", model_revision="1", num_facets=2, dim=32, language=language)


def hits(made: CollectionEngine, query: str, name: str = "docs") -> list[tuple[str, list[str]]]:
    """Ids, and the words that are highlighted in the answer."""
    (found,) = made.search(name, SearchRequest(texts=[query], mode="lexical")).hits
    return [(hit.id, [hit.text[slice(*word)] for word in hit.answer.words] if hit.answer else []) for hit in found]


@pytest.mark.parametrize(
    ("language", "text", "other", "query", "shown"),
    [
        ("de", "Die Häuser am Hafen.", "Die Hütten am See.", "Wo ist das Haus?", ["Häuser"]),
        ("fi", "Kissa asuu taloissa.", "Koira asuu pihalla.", "talo", ["taloissa"]),
        ("ja", "京都は東京都から遠い。猫が寝る。", "大阪は近い。犬が寝る。", "東京", ["東京"]),
        ("ja", "京都は遠い。猫が寝る。", "大阪は近い。犬が走る。", "猫", ["猫"]),
        ("ja", "東京タワーは高い。", "スカイツリーは高い。", '"東京タワー"', ["東京タワー"]),
        ("zh", "狗在院子里。图书馆关门了。", "猫在沙发上睡觉。", "图书馆在哪里", ["图书馆"]),
        ("th", "แมวนอนหลับอยู่บนโซฟา", "สุนัขวิ่งเล่นในสวน", "โซฟา", ["โซฟา"]),
        ("hi", "लड़कियाँ पढ़ रही हैं।", "कुत्ता सो गया।", "लड़कियों", ["लड़कियाँ"]),
    ],
)
def test_words_are_found_and_shown(
    open_engine: OpenEngine, language: str, text: str, other: str, query: str, shown: list[str]
) -> None:
    made = open_engine()
    create(made, language)
    made.upsert("docs", [document("it", text), document("other", other)])
    assert hits(made, query) == [("it", shown)]


def test_unknown_language_is_refused_and_nothing_is_made(open_engine: OpenEngine) -> None:
    made = open_engine()
    with pytest.raises(InvalidInputError, match="or one of ar") as caught:
        create(made, "klingon")
    assert caught.value.field == "language"
    assert made.list_collections() == ()


def test_the_first_documents_give_a_collection_its_language(open_engine: OpenEngine) -> None:
    made = open_engine()
    create(made)
    assert made.get_collection("docs").language == ""
    assert hits(made, "Haus") == []
    with pytest.raises(InvalidInputError):
        made.upsert("docs", [document("a", FRENCH), document("", FRENCH)])
    assert made.get_collection("docs").language == ""
    made.upsert("docs", [document("a", GERMAN)])
    made.upsert("docs", [document("b", FRENCH)])
    made.delete("docs", ids=["a", "b"])
    made.upsert("docs", [document("c", GERMAN)])
    nothing = EncodedText(np.eye(2, 32, dtype=np.float32))
    shape = {"num_facets": 2, "dim": 32}
    made.reindex("docs", TargetModel(model="m", model_revision="2", encode=lambda texts: [nothing], **shape))
    assert made.get_collection("docs").language == "de"
    made.close()
    assert hits(open_engine(), "Häusern") == [("c", ["Häuser", "Haus"])]


def test_of_two_first_writes_the_earlier_decides(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    made, encode = open_engine(), engines.encode_documents
    create(made)

    def interrupted(*arguments: object) -> object:
        monkeypatch.setattr(engines, "encode_documents", encode)
        batch = encode(*arguments)  # type: ignore[arg-type]
        made.upsert("docs", [document("first", FRENCH)])
        return batch

    monkeypatch.setattr(engines, "encode_documents", interrupted)
    made.upsert("docs", [document("second", "Les maison et les chevaux, " + GERMAN)])
    assert made.get_collection("docs").language == "fr"
    assert {id for id, _ in hits(made, "cheval")} == {"second"}
    made.close()
    assert {id for id, _ in hits(open_engine(), "cheval")} == {"second"}


CHAPTER = "Bring them to the shop. " * 100


DOCUMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "INV-2031": ("Cups, delivered to the side door.", {"kind": "order"}),
    "INV-2032": ("Saucers. See INV-2031, INV-2031 and INV 2031.", {}),
    "functools.partial": ("New function with some arguments given.", {}),
    "functools.partialmethod": ("A functools.partial: partial functools, partial.", {}),
    "manuals/X-20S.md": ("# Printer\nHas a cutter.\n\n## 3. Cleaning the head\nUse alcohol.", {}),
    "manuals/X-20.md": ("The X-20S is an X-20 with a cutter; X-20S.", {}),
    "p1": ("A weekly on politics.", {"title": "The Spectator"}),
    "p2": ("The Spectator says that a spectator is the spectator.", {"title": "Spectator, spectator"}),
    "long": (f"# Story\n{CHAPTER}\n\n# Disposal of batteries\n{CHAPTER}\n\n# Other\n{CHAPTER}", {}),
    "short": ("Disposal of batteries: disposal of batteries. How to clean the cleaning head: cleaning head.", {}),
    **{f"report {number}": (f"# Summary\nNumber {number}.", {}) for number in range(60)},
    "t.csv#1": ("| Ticket | Answer |\n| --- | --- |\n| HD-2045 | Changed. |", {}),
    "t.csv#2": ("| Ticket | Answer |\n| --- | --- |\n| HD-2046 | HD-2045 is like HD-2045, HD 2045. |", {}),
    "summaries": ("A summary of the summary, summary.", {}),
}


@pytest.fixture
def engine(open_engine: OpenEngine) -> CollectionEngine:
    made = open_engine()
    made.create_collection("docs", model="m", model_revision="1", num_facets=1, dim=32)
    documents = []
    for id, (text, payload) in DOCUMENTS.items():
        parts = split_text(text)
        # Documents that only mention a name are the closest to every query.
        facet = np.eye(32)[
            0 if id in ("INV-2032", "functools.partialmethod", "manuals/X-20.md", "p2", "t.csv#2", "short") else 1
        ]
        facets = np.tile(facet, (max(1, len(parts)), 1))
        documents.append(
            Document(
                id=id, text=text, facet_embeddings=facets, payload=payload, parts=parts, part_facets=[1] * len(parts)
            )
        )
    made.upsert("docs", documents)
    return made


def first(engine: CollectionEngine, query: str, mode: SearchMode, **options: Any) -> SearchHit:
    facets = None if mode == "lexical" else np.eye(32, dtype=np.float32)[None, :1]
    return engine.search("docs", SearchRequest(texts=[query], facets=facets, mode=mode, **options)).hits[0][0]


@pytest.mark.parametrize("mode", ["hybrid", "lexical"])
@pytest.mark.parametrize(
    ("query", "id"),
    [
        *((query, "INV-2031") for query in ("INV-2031", "inv-2031", '"INV-2031"', " INV-2031? ", "Where is INV-2031?")),
        *((query, "functools.partial") for query in ("functools.partial", "what does functools.partial do?")),
        *((query, "manuals/X-20S.md") for query in ("manuals/x-20s.md", "X-20S.md", "x-20s", "cleaning the head")),
        *((query, "p1") for query in ("The Spectator", "\u201cthe spectator\u201d")),
        ("Disposal of batteries", "long"),
        *((query, "t.csv#1") for query in ("HD-2045", "Where is hd-2045?")),
    ],
)
def test_query_that_is_a_name_finds_its_document_first(
    engine: CollectionEngine, mode: SearchMode, query: str, id: str
) -> None:
    hit = first(engine, query, mode)
    assert hit.id == id
    assert -1 <= hit.score <= 1 or mode == "lexical"


def test_heading_finds_its_part(engine: CollectionEngine) -> None:
    assert first(engine, "disposal of batteries", "hybrid").text.startswith("# Disposal of batteries")


def test_named_document_must_pass_the_filter(engine: CollectionEngine) -> None:
    assert first(engine, "INV-2032", "hybrid", where=Equals("kind", "order")).id == "INV-2031"


@pytest.mark.parametrize("mode", ["hybrid", "lexical"])
def test_heading_of_many_documents_names_none(engine: CollectionEngine, mode: SearchMode) -> None:
    assert first(engine, "summary", mode).id == "summaries"


def test_name_is_forgotten_with_its_document(engine: CollectionEngine) -> None:
    engine.delete("docs", ids=["INV-2031"])
    assert first(engine, "INV-2031", "hybrid").id == "INV-2032"

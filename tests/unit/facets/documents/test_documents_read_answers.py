"""The answer reader chooses the answers of the first hits; a reader made for the test knows the answer."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest

from facets.documents import CollectionEngine, Document, DocumentPart, SearchHit, SearchRequest
from facets.documents.confidence import RelevanceCurve

OpenEngine = Callable[..., CollectionEngine]
CURVE = RelevanceCurve(revision="r", weights={"hybrid": {"intercept": 0.0}})  # confidence 0.5 for every hit
TICKET = "The screen stays black. The screen was black on Monday, too.\n\nSelect input two with the button below."
LONG = "The screen is black. " + "Nothing happened for a while on that day. " * 60 + "Select input two."


class Reader:
    """Finds that sentences with a word answer, and keeps what it was given."""

    def __init__(self, word: str = "input") -> None:
        self.word = word
        self.texts: list[tuple[str, Sequence[str]]] = []

    def read(self, question: str, texts: Sequence[tuple[str, Sequence[str]]]) -> list[np.ndarray]:
        self.texts += texts
        return [np.array([4.0 if self.word in one else -4.0 for one in own], dtype=np.float32) for _, own in texts]

    def answer_confidence(self, log_odds: float) -> float:
        return 0.9 if log_odds > 0 else 0.01

    def hit_confidence(self, confidence: float, log_odds: float) -> float:
        return 0.8 if log_odds > 0 else confidence / 10


@pytest.fixture
def engine(open_engine: OpenEngine) -> CollectionEngine:
    made = open_engine()
    made.create_collection("docs", model="m", model_revision="1", num_facets=1, dim=4)
    texts = {"ticket": (TICKET, {"title": "Monitors"}), "long": (LONG, {}), "table": (TABLE, {})}
    texts["asks"] = ("Who has the mugs? Where are they?", {})
    texts |= {f"other {i}": (f"Cups of number {i}.", {}) for i in range(20)}
    facets, spans = np.eye(4)[:1], np.array([[0, 10]])
    made.upsert(
        "docs",
        [
            Document(id=id, text=text, facet_embeddings=facets, facet_spans=spans, payload=payload)
            for id, (text, payload) in texts.items()
        ],
    )
    return made


TABLE = "| Model | Input |\n|---|---|\n| X-20 | one |\n| X-20S | two |"


def search(engine: CollectionEngine, query: str, reader: Reader | None, **options: object) -> dict[str, SearchHit]:
    facets = np.eye(4, dtype=np.float32)[None, :1]
    request = SearchRequest(texts=[query], facets=facets, **{"top_k": 30, **options})  # type: ignore[arg-type]
    return {hit.id: hit for hit in engine.search("docs", request, curve=CURVE, reader=lambda: reader).hits[0]}


def test_reader_chooses_the_sentence_that_answers(engine: CollectionEngine) -> None:
    reader = Reader()
    hit = search(engine, "my screen is black", reader)["ticket"]
    assert hit.answer is not None
    assert hit.answer.text == "Select input two with the button below."
    assert hit.answer_confidence == 0.9
    assert ("Monitors", ["The screen stays black.", "The screen was black on Monday, too.", hit.answer.text]) in [
        (heading, list(own)) for heading, own in reader.texts
    ]


def test_only_the_first_hits_are_read(engine: CollectionEngine) -> None:
    hits = search(engine, "cups of number", Reader()).values()
    assert [hit.answer_confidence for hit in hits] == [0.01] * 5 + [None] * (len(hits) - 5)
    assert len(hits) > 10


def test_of_a_long_text_close_sentences_are_read(engine: CollectionEngine) -> None:
    reader = Reader()
    search(engine, "black screen", reader)
    assert all(sum(map(len, own)) <= 700 for _, own in reader.texts)


def test_text_that_only_asks_is_not_read(engine: CollectionEngine) -> None:
    first, second, *_ = search(engine, "who has the mugs", Reader()).values()
    assert first.id == "asks" and first.answer is not None
    assert (first.answer_confidence, second.answer_confidence) == (None, 0.01)


def test_row_of_a_table_is_read_with_the_names_of_its_columns(engine: CollectionEngine) -> None:
    reader = Reader("X-20S")
    hit = search(engine, "input of the X-20S", reader)["table"]
    assert hit.answer is not None
    assert hit.answer.cells == ("X-20S", "two")
    assert ["X-20: Input one", "X-20S: Input two"] in [list(own) for _, own in reader.texts]


@pytest.mark.parametrize("top_k", [1, 3, 30])
def test_documents_that_answer_come_before_those_as_close(engine: CollectionEngine, top_k: int) -> None:
    hits = list(search(engine, "number of cups", Reader("number 12"), top_k=top_k).values())
    assert hits[0].id == "other 12"
    assert len(hits) == min(top_k, 24)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(first.confidence >= second.confidence for first, second in pairwise(hits))


def test_of_a_long_document_the_part_that_answers_is_the_hit(engine: CollectionEngine) -> None:
    texts = ["A dishwasher is a nuisance. ", "A dishwasher has a menu. "]
    ends = np.cumsum([len(text) for text in texts]).tolist()
    spans = np.array([[0, 10], [ends[0], ends[0] + 10]])
    parts = [DocumentPart(start=0, end=ends[0]), DocumentPart(start=ends[0], end=ends[1])]
    own = {"facet_embeddings": np.eye(4)[[0, 0]], "facet_spans": spans, "parts": parts, "part_facets": [1, 1]}
    engine.upsert("docs", [Document(id="manual", text="".join(texts), **own)])  # type: ignore[arg-type]
    for top_k in (1, 30):
        hits = list(search(engine, "the dishwasher", Reader("menu"), top_k=top_k).values())
        assert [hit.id for hit in hits].count("manual") == 1 and len(hits) == min(top_k, 25)
        assert (hits[0].id, hits[0].part_number) == ("manual", 2)


def test_confidence_of_a_hit_follows_the_reader(engine: CollectionEngine) -> None:
    hits = search(engine, "number of cups", Reader("number 12"))
    confidences = [hit.confidence for hit in hits.values()]
    assert confidences[0] == 0.8
    assert set(confidences[1:]) == {0.05}  # what was not read is not above what was
    assert set(search(engine, "number of cups", Reader("number 12"), min_confidence=0.1)) == {"other 12"}


@pytest.mark.parametrize("options", [{"use_reader": False}, {"reasons": False}])
def test_reader_can_be_left_out(engine: CollectionEngine, options: dict[str, bool]) -> None:
    reader = Reader()
    hits = search(engine, "black screen", reader, **options)
    assert not reader.texts
    assert {hit.answer_confidence for hit in hits.values()} == {None}

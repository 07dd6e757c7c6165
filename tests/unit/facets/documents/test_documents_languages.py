"""Collections search words by the rules of their language, which is given or that of their first documents."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from facets.documents import CollectionEngine, Document, EncodedText, SearchRequest, TargetModel, engine
from facets.documents.store import SCHEMA, STORE_FILE
from facets.errors import InvalidInputError
from facets.storage.backup import back_up, restore
from facets.storage.database import Database

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


def test_the_first_documents_give_a_collection_its_language(open_engine: OpenEngine, tmp_path: Path) -> None:
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
    assert made.get_collection("docs").language == "de"
    made.close()
    back_up(tmp_path / "data", tmp_path / "backup", [(tmp_path / "data" / STORE_FILE, SCHEMA.counter)])
    restore(tmp_path / "backup", tmp_path / "restored", stores={STORE_FILE: SCHEMA}, needed=STORE_FILE)
    for path in (tmp_path / "data", tmp_path / "restored"):
        with CollectionEngine.open(path) as again:
            assert again.get_collection("docs").language == "de"
            assert hits(again, "Häusern")[0] == ("c", ["Häuser"])


def test_of_two_first_writes_the_earlier_decides(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    made, encode = open_engine(), engine.encode_documents
    create(made)

    def interrupted(*arguments: object) -> object:
        monkeypatch.setattr(engine, "encode_documents", encode)
        batch = encode(*arguments)  # type: ignore[arg-type]
        made.upsert("docs", [document("first", FRENCH)])
        return batch

    monkeypatch.setattr(engine, "encode_documents", interrupted)
    made.upsert("docs", [document("second", "Les maison et les chevaux, " + GERMAN)])
    assert made.get_collection("docs").language == "fr"
    assert {id for id, _ in hits(made, "cheval")} == {"second"}
    made.close()
    assert {id for id, _ in hits(open_engine(), "cheval")} == {"second"}


def test_language_moves_to_another_model(open_engine: OpenEngine) -> None:
    made = open_engine()
    create(made)
    nothing = EncodedText(np.eye(2, 32, dtype=np.float32))
    shape = {"num_facets": 2, "dim": 32}
    target = TargetModel(model="other", model_revision="1", encode=lambda texts: [nothing] * len(texts), **shape)
    made.upsert("docs", [document("a", GERMAN)])
    made.reindex("docs", target)
    info = made.get_collection("docs")
    assert (info.model, info.language) == ("other", "de")
    assert hits(made, "Häusern")[0][0] == "a"


def test_collections_from_before_there_were_languages_are_english(open_engine: OpenEngine, tmp_path: Path) -> None:
    made = open_engine()
    create(made, "en")
    made.upsert("docs", [document("a", "The engines stalled.")])
    made.close()
    with closing(Database(tmp_path / "data" / STORE_FILE, SCHEMA)) as database, database.write() as connection:
        connection.execute("UPDATE collections SET config = '{}'")
    again = open_engine()
    again.upsert("docs", [document("b", GERMAN)])
    assert again.get_collection("docs").language == "en"
    assert hits(again, "stalling engine") == [("a", ["engines", "stalled"])]

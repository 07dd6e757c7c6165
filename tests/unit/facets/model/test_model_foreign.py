"""Texts in scripts that a model does not know are told from all others, and no task says anything of them."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from tiny_encoders import tiny_encoder
from toys import toy_model, toy_passage_model

import facets
from facets.errors import InvalidInputError
from facets.model.contract import FOREIGN, is_foreign
from facets.texts import score_pairs, summarize
from facets.texts.topics import suggest_topics

FOREIGN_TEXTS = {
    "Chinese": "\u4eca\u5929\u4e0b\u5348\u7684\u4f1a\u8bae\u53d6\u6d88\u4e86\u3002",
    "Arabic": "\u0623\u0644\u063a\u062a \u0627\u0644\u0634\u0631\u0643\u0629.",
    "Russian": "\u0412\u0447\u0435\u0440\u0430 \u043c\u044b \u0433\u0443\u043b\u044f\u043b\u0438.",
    "Hindi": "\u092c\u093f\u0932\u094d\u0932\u0940 \u092c\u0948\u0920\u0940 \u0925\u0940\u0964",
    "Thai": "\u0e41\u0e21\u0e27\u0e19\u0e31\u0e48\u0e07\u0e2d\u0e22\u0e39\u0e48\u0e1a\u0e19\u0e1e\u0e23\u0e21",
    "Chinese with a name": "\u8bf7\u628a\u53d1\u7968\u53d1\u7ed9\u6211\u4eec\u7684\u4f1a\u8ba1 IBM",
}
READABLE_TEXTS = {
    "English": "The dog plays the guitar.",
    "emoji": "I love it \U0001f60d\U0001f389",
    "code": 'for (int i = 0; i < n; i++) { s[i] = "\u00fc"; }',
    "a quoted word": "The sign said \u4f1a\u8bae\u53d6\u6d88, which means that the meeting was cancelled.",
    "a name in Cyrillic": "He signed as \u0418\u0432\u0430\u043d, but nobody believed him.",
    "accents": "na\u00efve caf\u00e9 cr\u00e8me br\u00fbl\u00e9e",
    "unknown names": "Kowalczyk Szczepa\u0144ski",
    "numbers": "17.5 \u2013 42 \u20ac",
}


@pytest.mark.parametrize("model", [toy_model(), toy_passage_model()], ids=["words", "passages"])
def test_scripts_that_a_model_does_not_know_are_foreign_and_nothing_else(model) -> None:
    assert [name for name, text in FOREIGN_TEXTS.items() if not is_foreign(model, text)] == []
    assert [name for name, text in READABLE_TEXTS.items() if is_foreign(model, text)] == []


@pytest.mark.parametrize(
    ("tokenizer", "foreign"), [("wordpiece", FOREIGN_TEXTS), ("unigram", ["Hindi"]), ("bpe", []), ("slow", [])]
)
def test_an_encoder_knows_the_scripts_of_its_own_tokenizer(
    tmp_path: Path, tokenizer: str, foreign: Iterable[str]
) -> None:
    model = facets.load(f"sentence-transformers:{tiny_encoder(tmp_path / 'encoder', tokenizer=tokenizer)}")
    assert [name for name, text in FOREIGN_TEXTS.items() if is_foreign(model, text)] == list(foreign)
    assert [name for name, text in READABLE_TEXTS.items() if is_foreign(model, text)] == []


def test_no_task_says_anything_of_a_foreign_text() -> None:
    model, text = toy_model(), FOREIGN_TEXTS["Russian"]
    for ask, path in (
        (lambda: score_pairs(model, [("The dog plays.", text)]), "pairs[0].second"),
        (lambda: summarize(model, ["The dog plays.", text]), "documents[1]"),
        (lambda: summarize(model, [[text, text * 2]]), "documents[0]"),
        (lambda: summarize(model, ["The dog plays."], query=text), "query"),
        (lambda: suggest_topics(model, [text]), "texts[0]"),
    ):
        with pytest.raises(InvalidInputError, match="hardly a word") as caught:
            ask()
        assert (caught.value.rule, caught.value.field) == (FOREIGN, path)

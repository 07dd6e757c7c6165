"""Terms of texts and queries."""

import pytest

from facets.language.terms import query_terms, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\U0001f600 !? --", []),
        ("Cats running", ["cat", "run"]),
        ("AB-1234", ["ab", "1234", "ab-1234"]),
        ("error_code E0x7f", ["error", "code", "e0x7f"]),
        ("well-known", ["well", "known"]),
        ("\uff21\uff22 Stra\u00dfe", ["ab", "strass"]),
    ],
)
def test_terms_of_a_text(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_query_drops_stop_words_unless_there_is_nothing_else() -> None:
    assert [word for _, word in query_terms("What is the capital of France?").words] == ["capital", "france"]
    assert [word for _, word in query_terms("to be or not to be").words] == ["to", "be", "or", "not", "to", "be"]


def test_phrases_keep_their_stop_words_in_order() -> None:
    assert query_terms('who said "to be or not to be" and "x"').phrases == (("to", "be", "or", "not", "to", "be"),)


def test_many_phrases_are_bounded_and_counted_once() -> None:
    assert query_terms('"a b" "a b"').phrases == (("a", "b"),)
    assert len(query_terms(" ".join(f'"a {n}"' for n in range(1000))).phrases) == 32

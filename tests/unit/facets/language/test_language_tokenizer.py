from itertools import pairwise
from pathlib import Path

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from facets.language.sentences import sentences_of
from facets.language.tokenizer import Tokenizer

TOKENIZER = Tokenizer()
SPACY = spacy.blank("en")
# Text as people write it, and stops, quotes, line ends and spaces of many kinds close together.
texts = st.one_of(
    st.text(max_size=80),
    st.text(alphabet=st.characters(exclude_categories=()), max_size=20),
    st.text(alphabet="aB.!?\"') \u201d\u2026\u3002\n\r\u2028\u00a0\U0001f600 1,-$U", max_size=40),
)


def is_utf8(text: str) -> bool:
    return text.encode("utf-8", "ignore").decode() == text


def split(text: str) -> list[str]:
    return [sentence.text for sentence in sentences_of(text)]


@settings(max_examples=40)
@given(texts)
def test_token_offsets_slice_back_and_cover_the_text(text: str) -> None:
    [tokens] = TOKENIZER.tokenize([text])
    assert all(text[token.start : token.end] == token.text for token in tokens)
    assert "".join(token.text for token in tokens) == "".join(text.split())
    assert all(first.end <= second.start for first, second in pairwise(tokens))


@given(texts)
def test_words_are_the_lower_cased_tokens(text: str) -> None:
    [tokens] = TOKENIZER.tokenize([text])
    expected = [token.text.lower() for token in tokens]
    assert TOKENIZER.words([text]) == [expected]
    assert TOKENIZER.words([text]) == [expected]  # from the cache


@given(st.one_of(texts.filter(is_utf8), st.text(alphabet=st.characters(codec="utf-8"), max_size=60)))
def test_tokens_are_those_of_spacy(text: str) -> None:
    expected = [(t.text, t.idx) for t in SPACY.tokenizer(text) if not t.is_space]
    assert [(t.text, t.start) for t in TOKENIZER.tokenize([text])[0]] == expected


@pytest.mark.timeout(60)  # quadratic rules take many minutes
@pytest.mark.parametrize("character", ["a", "(", "http://a.b/"])
def test_text_without_any_space_is_split_in_linear_time(character: str) -> None:
    text = character * 20_000
    assert "".join(TOKENIZER.words([text])[0]) == text.lower()
    assert split(text) == [text]


def test_tokenizer_knows_which_texts_it_has_seen():
    tokenizer = Tokenizer()
    assert not tokenizer.has_seen(["The cat's tail."])
    tokenizer.words(["The cat's tail."])
    assert tokenizer.has_seen(["The cat's tail.", "tail. The", ""])
    assert not tokenizer.has_seen(["The cat's tail"])


# One text a line, "|" where a sentence ends.
SENTENCES = (Path(__file__).parents[3] / "answers" / "sentences.txt").read_text(encoding="utf-8")


# Without a dictionary of names these stay together: a capital after such an abbreviation is taken for a name.
TOGETHER = """
It happened in 44 B.C.|Caesar died.
It was built by Smith & Co.|Work began in 1900.
The car was made by Ford Motor Co.|Prices rose.
The temperature was 30 C.|Water boiled at 100 C.
"""


@pytest.mark.parametrize("marked", SENTENCES.strip().splitlines())
def test_a_stop_ends_a_sentence_where_a_reader_ends_it(marked: str) -> None:
    expected = marked.split("|")
    assert [sentence.text for sentence in sentences_of(" ".join(expected))] == expected


@pytest.mark.parametrize("marked", TOGETHER.strip().splitlines())
def test_a_name_may_follow_an_abbreviation(marked: str) -> None:
    assert len(sentences_of(marked.replace("|", " "))) == 1

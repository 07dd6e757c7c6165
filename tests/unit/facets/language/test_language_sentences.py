"""Where sentences end around abbreviations, initials, labels and hours."""

from pathlib import Path

import pytest

from facets.language.tokenizer import Tokenizer

TOKENIZER = Tokenizer()

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
    assert [sentence.text for sentence in TOKENIZER.sentences(" ".join(expected))] == expected


@pytest.mark.parametrize("marked", TOGETHER.strip().splitlines())
def test_a_name_may_follow_an_abbreviation(marked: str) -> None:
    assert len(TOKENIZER.sentences(marked.replace("|", " "))) == 1

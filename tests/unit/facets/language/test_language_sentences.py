"""Where sentences end around abbreviations, initials, labels and hours."""

import pytest

from facets.language.tokenizer import Tokenizer

TOKENIZER = Tokenizer()

# One text a line, "|" where a sentence ends.
SENTENCES = """
The figure is given in IE.|Paul Randle wrote it.
We met at 5 p.m.|Tomorrow we leave.
Take some Vitamin C.|It is good.
The trial used hepatitis B.|Patients recovered.
George W. Bush was president.|He left in 2009.
The U.S. President spoke.|Everyone listened.
At 5 p.m. on Monday we met.|Nobody spoke.
Use a tool, e.g. this one.|It helps.
No. 5 is alive.|So is no. 6.
He moved to the U.S.|In 1990 he returned.
Apple Inc. Chairman Lee resigned.|Shares fell.
She has a Ph.D.|Her brother has none.
He has a Ph.D. from Yale.|She has not.
John F. Kennedy Jr. died in 1999.|He was 38.
It was in the time of Philip II.|Spain was rich.
See Fig. 3 for details.|It is large.
She got an A.|He got a B.|They were glad.
In 500 B.C. Greece was at war.|Persia lost.
The vowel is followed by an E.|This is rare.
E. coli is common.|So is S. aureus.
William H. Macy stars.|Felicity Huffman does too.
He was born in St. Louis.|His father worked for Gen. Motors.
Prof. A. B. Jones et al. found it.|Others agreed.
They arrived on Jan. 3 at 10 a.m. Eastern time.|It rained.
The score was 3-2 vs. Spain.|The crowd left.
Type I.|Type II is rarer.
Approx. 300 people came.|Some stayed.
The best team was Group A.|France won.
The sea was deep.|It was known to Jones et al. (1983) as well.
He sang at the 5 p.m. Mass.|She left.
Indologist J. A. B. van Buitenen began it.|He died.
Written by K. He and others.|It spread.
He lives in the U. S.|There he works.
He works for Lee Inc.|Mr. Lee pays well.
"""
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

import pytest

from facets.language.wordnet import wordnet


@pytest.mark.parametrize(
    ("word", "other"), [("assassinated", "killed"), ("mother", "parent"), ("flew", "travelled"), ("dogs", "animal")]
)
def test_a_kind_is_no_kind_the_other_way_round(word: str, other: str) -> None:
    assert wordnet().hypernymy(word, other) > 0.3 > wordnet().hypernymy(other, word)


@pytest.mark.parametrize(
    ("word", "lemma"),
    [("planned", "v:plan"), ("studies", "v:study"), ("written", "v:write"), ("wives", "n:wife"), ("loved", "v:love")],
)
def test_forms_lead_to_their_lemma(word: str, lemma: str) -> None:
    assert lemma in wordnet().lemmas(word)


def test_sameness_knows_forms_synonyms_and_derived_words() -> None:
    words = wordnet()
    assert words.sameness("wrote", "written") == words.sameness("xyzzy", "xyzzy") == 1.0
    assert words.sameness("situated", "located") > 0.5
    assert words.sameness("governor", "governs") > 0.5
    assert words.sameness("wrote", "ate") == 0.0


def test_opposites_hold_both_ways() -> None:
    words = wordnet()
    assert words.opposition("loves", "hates") == words.opposition("hates", "loves") == 1.0
    assert words.opposition("loves", "paints") == 0.0

import pytest

from facets.errors import InvalidInputError, path_text


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        ("has no words", ("papers", 3, "title"), "papers[3].title has no words"),
        ("must be >= 1, got 0", "top_k", "top_k must be >= 1, got 0"),
        ("the archive is empty", (), "the archive is empty"),
    ],
)
def test_an_error_reads_as_a_sentence_about_its_path(rule, path, text):
    error = InvalidInputError(rule, path=path)
    assert (str(error), error.field) == (text, text.removesuffix(rule).strip())
    assert str(error.at(("texts", 0))) == f"texts[0] {rule}"


def test_places_follow_each_other():
    assert path_text(("spans", 0, 2)) == "spans[0][2]"

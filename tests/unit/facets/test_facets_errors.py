from facets.errors import InvalidInputError, path_text


def test_an_error_with_a_path_reads_as_a_sentence():
    error = InvalidInputError("has no words, expected at least one", path=("papers", 3, "title"))
    assert str(error) == "papers[3].title has no words, expected at least one"
    assert (error.path, error.field) == (("papers", 3, "title"), "papers[3].title")


def test_one_name_is_a_path():
    assert InvalidInputError("must be >= 1, got 0", path="top_k").path == ("top_k",)


def test_an_error_without_a_path_is_its_rule():
    error = InvalidInputError("the archive is empty")
    assert (str(error), error.path, error.field) == ("the archive is empty", (), "")


def test_the_same_rule_at_another_path_is_worded_anew():
    moved = InvalidInputError("is empty", path=("texts", 0)).at(("papers", 7, "abstract"))
    assert str(moved) == "papers[7].abstract is empty"


def test_places_follow_each_other():
    assert path_text(("spans", 0, 2)) == "spans[0][2]"

import pytest
from facets_server.runtime.errors import ITEM, in_request

from facets.errors import InvalidFieldsError, InvalidInputError

FIELDS = {
    "premises": ("pairs", ITEM, "premise"),
    "spans": ("texts", ITEM, "entities"),
    "excluded_ids": ("options", "excluded_ids"),
    "head": ("slots", 4, "head"),
}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (("premises", 3), "pairs[259].premise"),
        (("spans", 0, 2), "texts[256].entities[2]"),
        (("spans",), "texts"),
        (("excluded_ids", 1), "options.excluded_ids[1]"),
        (("head",), "slots[4].head"),
        (("threshold",), "threshold"),
        ((), ""),
    ],
)
def test_arguments_are_named_as_fields_of_the_request(ours, theirs):
    with pytest.raises(InvalidInputError) as caught, in_request(FIELDS, start=256):
        raise InvalidInputError("has premises[3] in its text", path=ours)
    assert caught.value.field == theirs
    assert str(caught.value) == f"{theirs} has premises[3] in its text".strip()


def test_all_of_several_errors_are_named():
    errors = [InvalidInputError("is empty", path=("premises", i)) for i in (0, 2)]
    with pytest.raises(InvalidFieldsError) as caught, in_request(FIELDS):
        raise InvalidFieldsError(errors)
    assert [error.field for error in caught.value.errors] == ["pairs[0].premise", "pairs[2].premise"]
    assert str(caught.value) == "pairs[0].premise is empty (and 1 more)"

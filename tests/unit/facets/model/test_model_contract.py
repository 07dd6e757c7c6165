"""The models of all tasks, and the fake that stands in for one in tests of the server, have what the contract lists."""

import pytest
from server_fakes import FakeModel
from toys import toy_model
from typing_extensions import get_protocol_members

from facets.model.contract import Model, ModelInfo, TextModel
from facets.model.loading import TASKS, load


@pytest.mark.parametrize("task", TASKS)
def test_every_shipped_model_meets_the_contract(task: str) -> None:
    model = load(TASKS[task].default)
    assert [name for name in get_protocol_members(Model) if not hasattr(model, name)] == []
    assert model.vocabulary_size > 0 and model.task == task


def test_models_of_texts_and_their_fake_meet_the_contract_of_texts() -> None:
    for model in (toy_model(), FakeModel()):
        assert [name for name in get_protocol_members(TextModel) if not hasattr(model, name)] == []


def test_what_is_known_of_a_model_is_part_of_every_model() -> None:
    assert get_protocol_members(ModelInfo) < get_protocol_members(Model) < get_protocol_members(TextModel)

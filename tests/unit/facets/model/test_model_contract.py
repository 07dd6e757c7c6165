"""The model of texts and the fake that stands in for it in tests of the server have what the contract lists."""

from itertools import pairwise

from server_fakes import FakeModel
from toys import toy_model, toy_passage_model
from typing_extensions import get_protocol_members

from facets.model.contract import Model, ModelInfo, SentenceModel, TextModel


def test_models_of_texts_and_their_fake_meet_the_contract_of_texts() -> None:
    for model in (toy_model(), FakeModel()):
        assert [name for name in get_protocol_members(SentenceModel) if not hasattr(model, name)] == []


def test_a_model_of_passages_meets_the_contract_of_all_tasks() -> None:
    model = toy_passage_model()
    assert [name for name in get_protocol_members(Model) if not hasattr(model, name)] == []


def test_what_is_known_of_a_model_is_part_of_every_model() -> None:
    contracts = [get_protocol_members(kind) for kind in (ModelInfo, Model, TextModel, SentenceModel)]
    assert contracts == sorted(contracts, key=len) and all(a < b for a, b in pairwise(contracts))

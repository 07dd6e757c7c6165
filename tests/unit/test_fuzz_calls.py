"""The fuzzer knows every rpc, and its changes reach every kind of field."""

import random

from proto_files import SERVICES

from benchmarks.fuzz.calls import VALID, rpcs
from benchmarks.fuzz.mutation import Mutator, fields_of


def test_every_rpc_has_a_valid_call() -> None:
    assert set(VALID) == {f"{service.name}/{method.name}" for service in SERVICES for method in service.methods}


def test_valid_calls_set_fields_that_exist() -> None:
    for rpc in rpcs():
        assert rpc.valid and all(message.DESCRIPTOR is rpc.input_type for message in rpc.valid)


def test_changes_come_again_with_the_same_seed_and_differ_with_another() -> None:
    [rpc] = [rpc for rpc in rpcs() if rpc.name == "DocumentService/Search"]

    def changed(seed: int) -> bytes:
        message = type(rpc.valid[0]).FromString(rpc.valid[0].SerializeToString())
        mutator = Mutator(random.Random(seed))
        mutator.mutate(message)
        return mutator.garble(message.SerializeToString(deterministic=True))

    assert changed(1) == changed(1)
    assert len({changed(seed) for seed in range(20)}) > 15


def test_changes_reach_nested_messages_lists_and_maps() -> None:
    [rpc] = [rpc for rpc in rpcs() if rpc.name == "DocumentService/Upsert"]
    mutator, seen = Mutator(random.Random(3)), set()
    for _ in range(300):
        message = type(rpc.valid[0])()
        mutator.mutate(message)
        seen |= fields_of(message)
    for field in ("UpsertRequest.documents", "Document.payload", "Document.facet_embeddings", "FacetArray.shape"):
        assert f"facets.v1.{field}" in seen

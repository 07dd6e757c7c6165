"""What importing the client may do, and what the table of calls must hold."""

import json
import subprocess
import sys

import facets_client
import pytest
from facets_client.core import channel as rpc
from facets_client.core.requests import ENVELOPE_BYTES, ITEM_BYTES, slices
from google.protobuf.message_factory import GetMessageClass
from proto_files import SERVICES

PROBE = """
import json, sys, socket
def refuse(*args, **kwargs):
    raise AssertionError("the import opened a socket")
socket.socket.connect = refuse
import facets_client, facets_client.cli, facets_client.documents.bulk
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_import_is_light(environment):
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, env=environment)
    loaded = set(json.loads(done.stdout))
    assert not loaded & {"torch", "faiss", "spacy", "scipy", "transformers", "facets", "facets_server"}
    assert "facets_client" in loaded


def test_every_public_name_is_there():
    assert sorted(facets_client.__all__) == facets_client.__all__
    for name in facets_client.__all__:
        assert getattr(facets_client, name)


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_every_rpc_is_found_by_its_request(service):
    assert service.full_name in rpc.SERVICES
    for method in service.methods:
        request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
        found = rpc.rpc_of(request, response)
        assert found.path == f"/{service.full_name}/{method.name}"
        with pytest.raises(TypeError, match=method.input_type.name):
            rpc.rpc_of(request, request)


def test_timeouts_of_their_own_belong_to_rpcs():
    assert set(rpc.TIMEOUTS_S) <= {method.full_name for service in SERVICES for method in service.methods}


def test_slices_cover_the_items_in_order_within_both_limits():
    sizes = [10, 500, 90, 3_000, 1, 1, 1, 1]
    budget = ENVELOPE_BYTES + 700
    cut = list(slices(sizes, max_items=3, max_bytes=budget))
    covered = [position for part in cut for position in range(len(sizes))[part]]
    assert covered == list(range(len(sizes)))
    for part in cut:
        inside = sizes[part]
        assert len(inside) <= 3
        assert len(inside) == 1 or sum(inside) + ITEM_BYTES * len(inside) <= 700
    assert slice(3, 4) in cut  # too big alone: on its own, for the server to say so


def test_slices_without_limits_is_one_slice():
    assert list(slices([1] * 100, max_items=0, max_bytes=0)) == [slice(0, 100)]

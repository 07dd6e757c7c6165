"""Generated files, the methods of both clients, and what importing the client does."""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import facets_client
import pytest
from facets_client import AsyncFacetsClient, FacetsClient
from facets_client.cli.documents.search import search
from facets_client.core.channel import SERVICES, SLOW_RPCS, rpc_of
from facets_proto.v1 import documents_pb2
from google.protobuf.message_factory import GetMessageClass
from proto_files import SERVICES as DESCRIPTORS

ROOT = Path(__file__).parents[4]
PROBE = """
import json, sys, socket
def refuse(*args, **kwargs):
    raise AssertionError("the import opened a socket")
socket.socket.connect = refuse
import facets_client, facets_client.cli, facets_client.documents.bulk
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def public(kind):
    return {name: member for name, member in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}


BLOCKING, ASYNC = public(FacetsClient), public(AsyncFacetsClient)


def test_generated_files_match_their_sources():
    pytest.importorskip("ruff")
    pytest.importorskip("grpc_tools")
    from generate_client import generate

    for file, source in generate().items():
        assert source == file.read_text(encoding="utf-8"), f"{file}: run python clients/generate_client.py"


def test_both_clients_have_the_same_methods_with_the_same_arguments():
    assert set(BLOCKING) == set(ASYNC)
    for name, method in BLOCKING.items():
        ours, theirs = (inspect.signature(kind[name]).parameters.values() for kind in (BLOCKING, ASYNC))
        assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs]
        assert method.__doc__ and method.__doc__.startswith(ASYNC[name].__doc__.rstrip())


@pytest.mark.parametrize("service", DESCRIPTORS, ids=lambda service: service.name)
def test_every_rpc_is_found_by_its_request(service):
    assert service.full_name in SERVICES
    for method in service.methods:
        assert rpc_of(GetMessageClass(method.input_type)).path == f"/{service.full_name}/{method.name}"


def test_timeouts_belong_to_rpcs():
    assert {method.name for service in DESCRIPTORS for method in service.methods} >= SLOW_RPCS


def fields(source, pattern, body):
    """Names that ``pattern`` finds in the part of a source that ``body`` finds, in the spelling of the protos."""
    found = re.search(body, source.read_text(encoding="utf-8"), re.DOTALL)
    return {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in re.findall(pattern, found[1], re.MULTILINE)}


def test_fields_of_a_search_have_one_name_in_every_layer():
    rpc = set(documents_pb2.SearchRequest.DESCRIPTOR.fields_by_name)
    assert set(inspect.signature(BLOCKING["search"]).parameters) - {"self", "query_or_collection"} == rpc
    printed = {"explain", "full"}  # of the command: what is printed of an answer
    assert set(inspect.signature(search).parameters) - {"context", "query"} - printed < rpc
    views = ROOT / "server/facets_server/gateway/playground/js/views"
    page = fields(views / "ask.js", r"^    (\w+): ", r"function request\(.*?{\n(.*?)\n}")
    assert {"where", "top_k"} <= page <= rpc, page ^ rpc


def test_importing_the_client_is_light_and_opens_no_connection(environment):
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, env=environment)
    loaded = set(json.loads(done.stdout))
    assert not loaded & {"torch", "faiss", "spacy", "scipy", "transformers", "facets", "facets_server"}
    assert "facets_client" in loaded
    assert sorted(facets_client.__all__) == facets_client.__all__


@pytest.mark.parametrize("task", ["documents", "papers", "relations", "texts"])
def test_no_argument_is_dropped_from_a_request(task):
    module = importlib.import_module(f"facets_client.{task}.calls")
    for method in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(method, ast.AsyncFunctionDef) and not method.decorator_list:  # no overload
            calls = [node for node in ast.walk(method) if isinstance(node, ast.Call)]
            built = [call for call in calls if getattr(call.func, "id", "") == "request_from"]
            fields = {
                name for call in built for name in getattr(module.pb, call.args[0].attr).DESCRIPTOR.fields_by_name
            }
            used = {node.id for node in ast.walk(method) if isinstance(node, ast.Name)}
            arguments = {argument.arg for argument in (*method.args.args, *method.args.kwonlyargs)} - {"self"}
            assert arguments <= fields | used, f"{method.name} ignores {arguments - fields - used}"

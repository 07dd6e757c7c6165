"""The methods of both clients: generated, alike, and with a check of everything that must be a sequence."""

import asyncio
import inspect
import json
import re
from pathlib import Path
from typing import get_args

import pytest
from facets_client import AsyncFacetsClient, Document, FacetsClient
from facets_client.cli.documents.search import search
from facets_client.core import commands
from facets_client.errors import ErrorInfo, FieldViolation, InvalidArgumentError
from facets_client.filters import AllOf, Equals, OneOf
from facets_client.generate import METHODS_FILE, generate, generate_types
from facets_client.generated.types import Author, Method, NewAuthor, Paper
from facets_client.load.files import IDS, TEXTS, TITLES
from facets_client.methods import AsyncMethods, BlockingMethods, Operations
from facets_client.papers.results import PaperOptions
from facets_proto.v1 import documents_pb2, filters_pb2, papers_pb2, texts_pb2
from grpc import StatusCode


def public(kind):
    return {name: member for name, member in vars(kind).items() if inspect.isfunction(member) and name[0] != "_"}


ROOT = Path(__file__).parents[4]
FILTER = filters_pb2.Filter.DESCRIPTOR
BLOCKING, ASYNC = public(BlockingMethods), public(AsyncMethods)
MANY = re.compile(r"(collections\.abc\.)?(Sequence|Iterable)\[")
SEQUENCES = [
    pytest.param(name, parameter.name, id=f"{name}-{parameter.name}")
    for name, method in BLOCKING.items()
    for parameter in inspect.signature(method).parameters.values()
    if MANY.match(str(parameter.annotation))
]


def test_generated_methods_match_the_operations():
    pytest.importorskip("ruff")
    assert generate().encode() == METHODS_FILE.read_bytes()


def test_generated_records_match_the_protos():
    pytest.importorskip("ruff")
    pytest.importorskip("grpc_tools")
    for file, source in generate_types().items():
        assert source.encode() == file.read_bytes(), file


def test_names_of_similarity_methods_match_the_proto():
    prefix = "SIMILARITY_METHOD_"
    assert [prefix + name.upper() for name in get_args(Method)] == texts_pb2.SimilarityMethod.keys()[1:]


def fields(source, pattern, body):
    """Names that a pattern finds in the first part of a source that another one finds, as the protos write them."""
    found = re.search(body, source.read_text(encoding="utf-8"), re.DOTALL)
    return {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in re.findall(pattern, found[1], re.MULTILINE)}


def test_what_a_search_asks_for_has_one_name_in_every_layer():
    """Of rpc and HTTP, Python, the command, TypeScript, Go and the page."""
    rpc = set(documents_pb2.SearchRequest.DESCRIPTOR.fields_by_name)
    assert set(inspect.signature(BLOCKING["search"]).parameters) - {"self"} == rpc
    shown = {"explain", "full", "parts"}  # what of an answer is printed; parts: not grouped
    assert set(inspect.signature(search).parameters) - {"context", "query"} - shown < rpc
    typescript = fields(ROOT / "clients/typescript/src/client.ts", r"^  (\w+)\?:", r"interface SearchOptions (.*?)\n}")
    go = fields(ROOT / "clients/go/client.go", r"^\t([A-Z]\w+) \S+$", r"type SearchOptions struct {(.*?)\n}")
    views = ROOT / "server/facets_server/gateway/playground/js/views"
    page = fields(views / "search.js", r"^    (\w+): ", r"function request\(.*?{\n(.*?)\n}")
    for names in (typescript, go, page):
        assert {"where", "top_k"} <= names <= rpc, names ^ rpc


def test_conditions_are_given_as_where():
    files = (documents_pb2.DESCRIPTOR, papers_pb2.DESCRIPTOR)
    asked = [field for file in files for message in file.message_types_by_name.values() for field in message.fields]
    in_rpcs = [field.name for field in asked if field.message_type is FILTER]
    taken = [parameter for method in BLOCKING.values() for parameter in inspect.signature(method).parameters.values()]
    in_python = [parameter.name for parameter in taken if Equals in get_args(parameter.annotation)]
    assert in_rpcs == in_python == ["where"] * 5


@pytest.mark.parametrize("wrong", [{"language": "en"}, "language=en", [Equals("language", "en")]])
def test_what_is_no_condition_is_named(wrong):
    with FacetsClient("localhost:1") as client, pytest.raises(TypeError, match=r"where must be a filter .* got .*en"):
        client.count_documents("news", where=wrong)


def test_the_page_and_the_command_know_the_same_columns():
    names = r"const {} = (\[.*?\]);"
    page = (ROOT / "server/facets_server/gateway/playground/js/records.js").read_text(encoding="utf-8")
    for kind, known in (("TEXTS", TEXTS), ("TITLES", TITLES), ("IDS", IDS)):
        assert json.loads(re.search(names.format(kind), page)[1]) == list(known)


def test_both_clients_have_every_operation_with_the_same_arguments_and_docstring():
    operations = {name for room in Operations.__mro__ for name in public(room)}
    assert set(BLOCKING) == set(ASYNC) == operations
    for name, method in BLOCKING.items():
        ours, theirs = (inspect.signature(kind[name]).parameters.values() for kind in (BLOCKING, ASYNC))
        assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs]
        assert method.__doc__ and method.__doc__ == ASYNC[name].__doc__


def arguments(method, wrong):
    """Arguments that a method takes, but one string where many things are expected."""
    values = {}
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        if parameter.name == wrong:
            values[parameter.name] = "oops"
        elif parameter.default is parameter.empty:
            values[parameter.name] = ["x"] if MANY.match(str(parameter.annotation)) else "x"
    return values


def test_there_are_sequences_to_check():
    assert len(SEQUENCES) > 25


@pytest.mark.parametrize(("name", "wrong"), SEQUENCES)
def test_one_string_where_many_are_expected(name, wrong):
    expected = f"{wrong} must be a sequence, got one str: try \\['oops'\\]"
    with FacetsClient("localhost:1") as client, pytest.raises(TypeError, match=expected):
        getattr(client, name)(**arguments(BLOCKING[name], wrong))

    async def call():
        async with AsyncFacetsClient("localhost:1") as client:
            called = getattr(client, name)(**arguments(ASYNC[name], wrong))
            if inspect.isawaitable(called):
                await called

    with pytest.raises(TypeError, match=expected):
        asyncio.run(call())


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda client: client.search("c", None), "queries must be a sequence, got one NoneType"),
        (lambda client: client.search("c", [1]), r"queries\[0\] must be str or ndarray, got int 1"),
        (lambda client: client.search("c", (word for word in "ab")), r"got one generator: try list\(...\)"),
        (lambda client: client.embed(["a", None]), r"texts\[1\] must be str, got NoneType"),
        (lambda client: client.embed([float("nan")]), r"texts\[0\] must be str, got float nan"),
        (lambda client: client.embed(7), "texts must be a sequence, got one int"),
        (lambda client: client.upsert("c", Document("a", "b")), "documents must be a sequence, got one Document"),
        (lambda client: client.upsert("c", [{"id": "a"}]), "expected a Document, got dict {'id': 'a'}: try Document"),
        (lambda client: client.upsert("c", [Document(1, "b")]), "expected a str, got int 1"),
        (lambda client: client.delete_documents("c", [1]), r"ids\[0\] must be str, got int 1"),
    ],
)
def test_what_a_notebook_gives_by_mistake_is_named(call, says):
    with FacetsClient("localhost:1") as client, pytest.raises(TypeError, match=says):
        call(client)


def test_a_client_says_where_it_talks_to():
    with FacetsClient("localhost:1") as client:
        assert repr(client) == "FacetsClient('localhost:1')"


def test_pairs_are_no_strings():
    with FacetsClient("localhost:1") as client:
        with pytest.raises(TypeError, match=r"pairs\[1\] must be a pair, got one str"):
            client.similarity([("a", "b"), "ab"])
        with pytest.raises(TypeError, match=r"slots\[0\] must be a pair"):
            client.fill_slots(["ab"], ["a text"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: OneOf("language", "en"),
        lambda: AllOf("oops"),
        lambda: PaperOptions(positive_ids="Ann"),
        lambda: Paper("a title", cited_by_ids="oops"),
        lambda: NewAuthor(Author("Ann"), paper_ids="oops"),
    ],
)
def test_one_string_in_what_a_call_takes(make):
    with pytest.raises(TypeError, match="must be a sequence"):
        make()


def test_places_in_a_part_become_places_in_the_whole():
    violations = tuple(FieldViolation(f"papers.texts[{i}].x", "is like texts[1]") for i in (1, 11))
    error = InvalidArgumentError(
        StatusCode.INVALID_ARGUMENT,
        "papers.texts[1].x is like texts[1] (and 1 more)",
        info=ErrorInfo(field_violations=violations),
    )
    commands.move_indices(error, "texts", 10)
    assert error.details == "papers.texts[11].x is like texts[1] (and 1 more)"  # what a caller wrote stays
    assert [violation.field for violation in error.field_violations] == ["papers.texts[11].x", "papers.texts[21].x"]
    commands.move_indices(error, "pairs", 10)
    assert error.details.startswith("papers.texts[11]")

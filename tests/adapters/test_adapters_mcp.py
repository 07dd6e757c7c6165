"""``facets mcp`` against the client of the MCP SDK: a real subprocess over stdio and HTTP, before a real server."""

import json
import re
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from facets_client import FacetsClient
from integration.server_process import COMMAND, ROOT, ServerProcess, client_environment, free_port

mcp = pytest.importorskip("mcp")
READING = {"search", "list_collections", "get_document", "recommend_reviewers"}
EAGLE = "Which bird of prey lives near large bodies of open water?"
PAGE = (ROOT / "docs" / "use" / "mcp.md").read_text(encoding="utf-8")
SETTINGS = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, documents) -> Iterator[str]:
    """A server with models for every tool and the collection ``handbook``."""
    arguments = ["--model", str(ROOT / "models" / "facets-papers-en")]
    small = ROOT / "models" / "facets-passages-small-en"
    with ServerProcess(tmp_path_factory.mktemp("mcp") / "data", small, arguments=arguments) as server:
        with FacetsClient(server.target) as client:
            client.create_collection("handbook")
            client.add(documents, collection="handbook")
        yield server.target


@asynccontextmanager
async def session(target: str, folder: Path, *arguments: str) -> AsyncIterator[mcp.Client]:
    """Of a server that is started as the first settings on the page say."""
    started = SETTINGS[0]["mcpServers"]["facets"]
    assert started["command"] == "facets"
    command, *options = [*COMMAND, *started["args"], *arguments]
    environment = client_environment(folder, FACETS_TARGET=target)
    async with mcp.Client(mcp.StdioServerParameters(command=command, args=options, env=environment)) as client:
        yield client


@pytest.mark.asyncio
async def test_only_reading_tools_are_listed_without_write(target: str, tmp_path: Path) -> None:
    async with session(target, tmp_path) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert client.server_info.name == "facets" and "'handbook'" in client.instructions
        refused = await client.call_tool("add_documents", {"documents": [{"id": "a", "text": "b"}]})
    assert set(tools) == READING and refused.is_error
    for tool in tools.values():
        assert tool.annotations.read_only_hint and tool.description and tool.output_schema
    assert tools["search"].input_schema["required"] == ["query"]
    assert all("description" in field for field in tools["search"].input_schema["properties"].values())


@pytest.mark.asyncio
async def test_search_gives_answers_with_their_source_or_says_that_there_is_none(target: str, tmp_path: Path) -> None:
    async with session(target, tmp_path) as client:
        found = await client.call_tool("search", {"query": EAGLE, "top_k": 2})
        nothing = await client.call_tool("search", {"query": "how do I reset my router password"})
    hit = found.structured_content["result"][0]
    assert (hit["id"], hit["source"]) == ("bald-eagle", "Bald eagle")
    assert "open water" in hit["answer"] and hit["confidence"] > 0.1
    assert hit["answer"] in found.content[0].text and "Bald eagle" in found.content[0].text
    assert nothing.structured_content == {"result": []} and not nothing.is_error
    assert nothing.content[0].text.startswith("Nothing relevant was found")


@pytest.mark.asyncio
async def test_documents_are_added_and_read_in_pages(target: str, tmp_path: Path) -> None:
    text = " ".join(f"The library of town number {number} opens at nine." for number in range(1000))
    new = {"documents": [{"id": "long", "text": text, "payload": {"url": "x"}}], "collection": "added"}
    async with session(target, tmp_path, "--write") as client:
        for _ in range(2):  # the second time it replaces
            added = await client.call_tool("add_documents", new)
            assert added.structured_content == {"result": 1}
        listed = await client.call_tool("list_collections", {})
        first = await client.call_tool("get_document", {"id": "long", "collection": "added"})
        start = first.structured_content["next_start"]
        others = [
            await client.call_tool("get_document", {"id": "long", "collection": "added", "start": at})
            for at in (start, 2 * start)
        ]
    sizes = {each["name"]: each["num_documents"] for each in listed.structured_content["result"]}
    assert sizes["added"] == 1
    pages = [each.structured_content for each in (first, *others)]
    assert "".join(page["text"] for page in pages) == text
    assert [page["next_start"] for page in pages] == [start, 2 * start, None] and pages[0]["payload"] == {"url": "x"}


@pytest.mark.asyncio
async def test_reviewers_are_found_but_not_those_who_are_left_out(target: str, tmp_path: Path) -> None:
    async with session(target, tmp_path) as client:
        paper = {"title": "A parser for free word order languages", "top_k": 2}
        reviewers = await client.call_tool("recommend_reviewers", paper)
        best = reviewers.structured_content["result"][0]["name"]
        others = await client.call_tool("recommend_reviewers", {**paper, "excluded": [best]})
    assert best in reviewers.content[0].text
    assert best not in [reviewer["name"] for reviewer in others.structured_content["result"]]


@pytest.mark.asyncio
async def test_mistakes_are_one_sentence_each(target: str, tmp_path: Path) -> None:
    mistakes = [
        ("search", {}, "query"),
        ("search", {"query": ""}, "query"),
        ("search", {"query": "a", "top_k": 21}, "top_k"),
        ("search", {"query": "a", "topk": 2}, "topk"),
        ("search", {"query": "a", "collection": "none"}, "list_collections"),
        ("get_document", {"id": "none"}, "none"),
        ("add_documents", {"documents": [{"id": "a"}]}, "documents[0].text"),
        ("add_documents", {"documents": [{"id": "a", "text": " "}]}, "documents[0]"),
        ("no_such_tool", {}, "no_such_tool"),
    ]
    async with session(target, tmp_path, "--write") as client:
        replies = [await client.call_tool(tool, arguments) for tool, arguments, _ in mistakes]
    async with session(f"127.0.0.1:{free_port()}", tmp_path) as client:
        replies.append(await client.call_tool("list_collections", {}))
    for reply, part in zip(replies, [*(part for *_, part in mistakes), "not available"], strict=True):
        (content,) = reply.content
        assert reply.is_error and part in content.text and "\n" not in content.text, content.text


@pytest.mark.asyncio
async def test_http_serves_the_same_tools_to_this_machine_only(target: str, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    url, environment = f"http://{address}/mcp", client_environment(tmp_path, FACETS_TARGET=target)
    command = [*COMMAND, "mcp", "--http", address]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr.readline().strip().endswith(url)
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                try:
                    foreign = httpx.post(url, json={}, headers={"Host": "evil.example"}, trust_env=False)
                    break
                except httpx.ConnectError:
                    time.sleep(0.1)
            assert foreign.status_code == 421
            page = httpx.post(url, json={}, headers={"Origin": "http://evil.example"}, trust_env=False)
            assert page.status_code == 403
            async with mcp.Client(url) as client:
                found = await client.call_tool("search", {"query": EAGLE, "collection": "handbook"})
            assert found.structured_content["result"][0]["id"] == "bald-eagle"
            taken = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
            assert taken.returncode == 2 and address in taken.stderr and "Traceback" not in taken.stderr
        finally:
            process.terminate()


@pytest.mark.parametrize("arguments", [["127.0.0.1:1"], ["--http", "localhost"], ["--http", "localhost:99999"]])
def test_wrong_addresses_are_one_sentence(arguments: list[str], tmp_path: Path) -> None:
    command = [*COMMAND, "mcp", *arguments]
    done = subprocess.run(
        command, env=client_environment(tmp_path), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "") and len(done.stderr.splitlines()) <= 2
    assert "Traceback" not in done.stderr

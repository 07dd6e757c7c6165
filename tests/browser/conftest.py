"""A real Chromium and real servers with the page; tests are skipped without Chromium or models."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))

pytest.importorskip("playwright", reason="playwright drives the browser: make test-browser installs it")
pytest.importorskip("uvicorn", reason="the page is served by the HTTP gateway, which needs uvicorn")

from facets_client import Document, FacetsClient  # noqa: E402
from playwright.sync_api import Browser, Page, expect, sync_playwright  # noqa: E402
from server_process import ServerProcess, free_port, make_toy_checkpoint  # noqa: E402

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
MODELS = ("facets-en", "facets-passages-small-en", "facets-relations-en", "facets-papers-en")
WAIT_MS = 60_000  # for busy machines
expect.set_options(timeout=WAIT_MS)


class WebServer(ServerProcess):
    """A server process with its page at ``url``."""

    def __init__(
        self, data_dir: Path, models: tuple[Path, ...], *, http_port: int | None = None, **settings: object
    ) -> None:
        self.http_port = http_port or free_port()
        self.url = f"http://127.0.0.1:{self.http_port}/"
        further = [word for model in models[1:] for word in ("--model", str(model))]
        arguments = [*further, "--http-port", str(self.http_port)]
        super().__init__(data_dir, models[0], arguments=arguments, **settings)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium: apt-get install chromium, or CHROMIUM=/path/to/it")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def sample_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A server with the shipped models and the bundled samples."""
    folders = tuple(ROOT / "models" / name for name in MODELS)
    if not all((folder / "config.json").is_file() for folder in folders):
        pytest.skip("needs the shipped models")
    with WebServer(tmp_path_factory.mktemp("samples") / "data", folders) as server:
        with FacetsClient(server.target, timeout_s=120) as client:
            client.create_collection("samples")
            lines = (ROOT / "samples" / "wikipedia.jsonl").read_text(encoding="utf-8").splitlines()
            records = map(json.loads, lines)
            client.add(
                [Document(record.pop("id"), record.pop("text"), record) for record in records], collection="samples"
            )
        yield server


@pytest.fixture(scope="session")
def toy_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that loads and runs fast."""
    return make_toy_checkpoint(tmp_path_factory.mktemp("models") / "toy")


@pytest.fixture(scope="session")
def toy_server(toy_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with WebServer(tmp_path_factory.mktemp("toy") / "data", (toy_model,)) as server:
        yield server


@pytest.fixture
def client(toy_server: WebServer) -> Iterator[FacetsClient]:
    """A client of the toy server, which begins without collections."""
    with FacetsClient(toy_server.target) as client:
        for collection in client.list_collections():
            client.delete_collection(collection.name)
        yield client


@pytest.fixture
def errors() -> list[str]:
    """Console errors of all pages; a test that expects errors clears it."""
    return []


@pytest.fixture
def open_page(browser: Browser, errors: list[str]) -> Iterator[Callable[..., Page]]:
    """Opens pages; they must not throw, violate the content policy or contact other sites."""
    contexts = []

    def make(url: str, **settings: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1180, "height": 900}, **settings})  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        own = url.partition("#")[0].partition("?")[0]
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: None if request.url.startswith(own) else errors.append(request.url))
        page.goto(url)
        return page

    yield make
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture
def view(open_page: Callable[..., Page], sample_server: WebServer) -> Callable[..., Page]:
    """Opens a view with the samples."""

    def make(name: str, **settings: object) -> Page:
        address = {"ask": "?c=samples", "map": "#map?c=samples", "files": "#files?c=samples"}.get(name, f"#{name}")
        page = open_page(sample_server.url + address, **settings)
        page.locator(f".view.{name} h1").wait_for()
        return page

    return make

"""The page is files of its own and nothing else: no addresses of others, no code in its HTML, no HTML in its code."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from source_tree import PACKAGES

PLAYGROUND = PACKAGES["facets_server"] / "gateway" / "playground"
FILES = sorted(path for path in PLAYGROUND.rglob("*") if path.is_file())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
# What a script would make HTML, code or inline style of a string with.
FORBIDDEN = re.compile(
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|eval|srcdoc)\b"
    r"|new Function|setAttribute\(\s*[\"'](style|on\w+)"
)
IMPORT = re.compile(r"(?:from|import\()\s*[\"']([^\"']+)[\"']")
MOST_BYTES = 200_000


class Elements(HTMLParser):
    """All elements of a page: name and attributes, and the text inside scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.code = ""
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style"):
            self.code += data.strip()


@pytest.fixture(scope="module")
def page() -> Elements:
    return Elements((PLAYGROUND / "index.html").read_text(encoding="utf-8"))


def test_page_has_no_code_and_no_style_of_its_own(page: Elements) -> None:
    assert page.code == ""
    assert not [(tag, name) for tag, attributes in page.found for name in attributes if name.startswith("on")]
    assert not [tag for tag, attributes in page.found if "style" in attributes]


def test_page_names_only_files_that_are_there(page: Elements) -> None:
    named = {value for _, attributes in page.found for name, value in attributes.items() if name in ("src", "href")}
    files = {name for name in named if name and not name.startswith("#")} - {"openapi.json"}
    assert {"style.css", "js/main.js"} <= files
    assert all((PLAYGROUND / name / ("index.html" if name.endswith("/") else "")).is_file() for name in files)


def test_every_link_of_the_frame_is_a_view_and_every_view_has_one(page: Elements) -> None:
    links = {
        value for tag, attributes in page.found if tag == "a" for name, value in attributes.items() if name == "href"
    }
    views = {f"#{path.stem}" for path in (PLAYGROUND / "js" / "views").glob("*.js")}
    assert {link for link in links if link and link.startswith("#")} == views | {"#main"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_make_text_nodes_and_never_html_of_strings(script: Path) -> None:
    assert not FORBIDDEN.findall(script.read_text(encoding="utf-8"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_import_only_what_is_there(script: Path) -> None:
    for name in IMPORT.findall(script.read_text(encoding="utf-8")):
        assert name.startswith("."), name
        assert (script.parent / name).is_file(), name


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix != ".png"], ids=lambda path: path.name)
def test_nothing_is_fetched_from_elsewhere(path: Path) -> None:
    addresses = re.findall(r"https?://[^\s\"')]+", path.read_text(encoding="utf-8"))
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}  # a name, not a place


def test_page_is_small() -> None:
    assert sum(path.stat().st_size for path in FILES) < MOST_BYTES

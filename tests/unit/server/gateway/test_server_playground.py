"""The page loads only its own files, has no code in its HTML, and creates no HTML from strings."""

import re
from html.parser import HTMLParser

import pytest
from source_tree import PACKAGES

PLAYGROUND = PACKAGES["facets_server"] / "gateway" / "playground"
FILES = sorted(path for path in PLAYGROUND.rglob("*") if path.is_file())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
# Functions that create HTML, code or inline style from strings.
FORBIDDEN = re.compile(
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|eval|srcdoc)\b"
    r"|new Function|setAttribute\(\s*[\"'](style|on\w+)"
)
IMPORT = re.compile(r"(?:^import .* from |import\()[\"']([^\"']+)[\"']", re.MULTILINE)
MAX_BYTES = 200_000


class Elements(HTMLParser):
    """All elements of a page with their attributes, and the text inside scripts and styles."""

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


def test_page_has_no_inline_code_or_style(page: Elements) -> None:
    assert page.code == ""
    assert not [(tag, name) for tag, attributes in page.found for name in attributes if name.startswith("on")]
    assert not [tag for tag, attributes in page.found if "style" in attributes]


def test_page_refers_only_to_existing_files(page: Elements) -> None:
    named = {value for _, attributes in page.found for name, value in attributes.items() if name in ("src", "href")}
    files = {name for name in named if name and not name.startswith("#")}
    assert {"style.css", "js/main.js"} <= files
    assert all((PLAYGROUND / name).is_file() for name in files)


def test_every_view_has_a_link(page: Elements) -> None:
    links = {
        value for tag, attributes in page.found if tag == "a" for name, value in attributes.items() if name == "href"
    }
    views = {f"#{path.stem}" for path in (PLAYGROUND / "js" / "views").glob("*.js")}
    assert {link for link in links if link and link.startswith("#")} == views | {"#main"}


def test_scripts_create_no_html_from_strings_and_import_only_existing_files() -> None:
    for script in SCRIPTS:
        source = script.read_text(encoding="utf-8")
        assert not FORBIDDEN.findall(source), script.name
        for name in IMPORT.findall(source):
            assert name.startswith(".") and (script.parent / name).is_file(), (script.name, name)


def test_nothing_is_loaded_from_other_sites_and_the_page_is_small() -> None:
    for path in FILES:
        addresses = re.findall(r"https?://[^\s\"')]+", path.read_text(encoding="utf-8"))
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}, path.name  # a namespace
    assert sum(path.stat().st_size for path in FILES) < MAX_BYTES

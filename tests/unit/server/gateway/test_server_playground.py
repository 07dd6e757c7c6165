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
MAX_BYTES = 160_000


@pytest.fixture(scope="module")
def page() -> list[tuple[str, dict[str, str]]]:
    """All elements of the page with their attributes."""
    found: list[tuple[str, dict[str, str]]] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: found.append((tag, dict(attrs)))  # type: ignore[method-assign,arg-type]
    parser.feed((PLAYGROUND / "index.html").read_text(encoding="utf-8"))
    return found


def test_the_page_has_no_inline_code_or_style_and_refers_only_to_existing_files(page):
    assert not [tag for tag, attributes in page if tag == "style" or (tag == "script" and "src" not in attributes)]
    assert not [name for _, attributes in page for name in attributes if name == "style" or name.startswith("on")]
    named = {attributes.get(name, "") for _, attributes in page for name in ("src", "href")}
    assert all((PLAYGROUND / name).is_file() for name in named if name and not name.startswith("#"))
    views = {f"#{path.stem}" for path in (PLAYGROUND / "js" / "views").glob("*.js")}
    assert {name for name in named if name.startswith("#")} == views | {"#main"}


def test_scripts_create_no_html_from_strings_and_import_only_existing_files():
    for script in SCRIPTS:
        source = script.read_text(encoding="utf-8")
        assert not FORBIDDEN.findall(source), script.name
        for name in IMPORT.findall(source):
            assert name.startswith(".") and (script.parent / name).is_file(), (script.name, name)


def test_nothing_is_loaded_from_other_sites_and_the_page_is_small():
    for path in FILES:
        addresses = re.findall(r"https?://[^\s\"')]+", path.read_text(encoding="utf-8"))
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}, path.name  # a namespace
    assert sum(path.stat().st_size for path in FILES) < MAX_BYTES

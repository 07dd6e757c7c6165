"""What the documents promise about the tree is so: rooms, imports, paths, commands, sizes."""

import ast
import re
from pathlib import Path

import pytest
from source_tree import PACKAGES, ROOT, TASK_ROOMS, modules
from test_layers import LIBRARY_ROOMS, strongly_connected

ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "proto" / "README.md"]
BASE = {"errors", "extras", "config", "devices", "storage"}
SHARED = {"language", "coding", "scoring", "model"}
# A path of ours in backticks: it begins with a folder of the checkout and names a file.
PATH = re.compile(r"`((?:facets|server|clients|proto|tests|scripts|benchmarks|lab|docs|samples)/[\w./-]+\.\w+)`")


def test_the_same_rooms_are_in_every_package() -> None:
    folders = [*(PACKAGES[name] for name in ("facets", "facets_server", "facets_client"))]
    folders += [PACKAGES["facets_client"] / "cli"]
    folders += [ROOT / "tests" / "unit" / name for name in ("facets", "server", "client")]
    for folder in folders:
        assert set(TASK_ROOMS) <= {path.stem for path in folder.iterdir()}, folder


def test_the_table_of_imports_is_the_one_that_is_checked() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \| ([^|]*) \|$", ARCHITECTURE.partition("| imports |")[2], re.MULTILINE)
    shown = {}
    for rooms, imported in rows:
        named = set(re.findall(r"`(\w+)`", imported)) | (SHARED if "the same" in imported else set())
        for room in re.findall(r"`(\w+)`", rooms):
            shown[room] = named
    checked = {
        room: rooms - BASE for room, rooms in LIBRARY_ROOMS.items() if room and "." not in room and room not in BASE
    }
    not_shown = {room: SHARED for room in TASK_ROOMS if room not in shown}
    assert shown | not_shown == checked


def test_rooms_do_not_import_each_other_in_circles() -> None:
    assert strongly_connected({room: rooms - {room} for room, rooms in LIBRARY_ROOMS.items()}) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_that_a_page_names_exist(page: Path) -> None:
    missing = [path for path in PATH.findall(page.read_text(encoding="utf-8")) if not (ROOT / path).exists()]
    assert not missing


def test_durable_files_go_through_the_storage_room() -> None:
    opens = {"sqlite3.connect", "os.replace", "os.rename", "os.fsync"}
    wrong = [
        module.place(node.lineno)
        for module in modules().values()
        if module.package != "facets_client" and module.room != "storage"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in opens
    ]
    assert not wrong


def test_make_targets_that_are_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", CONTRIBUTING, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_models_are_as_small_as_their_page_says() -> None:
    folder = ROOT / "models"
    most = re.search(r"at most (\d+) MB together", (folder / "README.md").read_text(encoding="utf-8"))
    assert most is not None
    files = [path for path in folder.glob("*/*") if path.is_file() and path.parent.name != "baselines"]
    assert 0 < sum(path.stat().st_size for path in files) <= int(most[1]) * 1_000_000

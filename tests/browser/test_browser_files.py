"""Storing, listing and deleting files: real uploads, problems, slow and absent servers."""

from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest
from asking import RULES, open_view
from axe_playwright_python.sync_playwright import Axe
from conftest import WebServer
from facets_client import Document, FacetsClient
from playwright.sync_api import Page, Route, expect

Opening = Callable[..., Page]
TICKETS = """id,title,body
a,Refund,"I was charged twice for March,
please send the second amount back."
b,Login,"I cannot sign in since the update; the page says ""wrong code""."
c,Empty,
"""
MARKUP = "<img src=x onerror=alert(1)>"
DROP = """(files) => {
    const given = new DataTransfer();
    for (const [name, text] of files) given.items.add(new File([text], name));
    const event = (kind) => new DragEvent(kind, { dataTransfer: given, bubbles: true, cancelable: true });
    return ["dragover", "drop"].map((kind) => document.querySelector("main").dispatchEvent(event(kind)));
}"""


@pytest.fixture
def desk(toy_server: WebServer, client: FacetsClient, open_page: Opening) -> Page:
    """The files of the empty collection "desk"."""
    client.create_collection("desk")
    return open_page(f"{toy_server.url}#files")


def drop(page: Page, **files: str) -> None:
    """Drops files; the browser would open them if the events were not prevented."""
    named = [[name.replace("__", "."), text] for name, text in files.items()]
    assert page.evaluate(DROP, named) == [False, False]


def upload(page: Page, name: str) -> Page:
    return page.get_by_role("group", name=name)  # type: ignore[return-value]


def test_dropped_files_are_stored_listed_and_undone(desk: Page, client: FacetsClient) -> None:
    page = desk
    open_view(page, "ask")
    drop(page, tickets__csv=TICKETS, notes__md="# Taps\n\nThe tap drips at night.")
    tickets = upload(page, "tickets.csv")
    expect(tickets).to_contain_text("Documents in desk: 2 added")
    tickets.get_by_text("1 record could not be stored").click()
    expect(tickets).to_contain_text("line 5")
    expect(page.locator("li.file strong")).to_have_text(["notes.md", "tickets.csv"])
    expect(page.get_by_role("heading", name="3 documents in desk")).to_be_visible()
    expect(page.locator("select[name=c] option:checked")).to_have_text("desk (3)")
    page.locator("li.file summary").last.click()
    page.locator("li.file details details summary").first.click()
    expect(page.locator("li.file .passage")).to_contain_text("charged twice")
    assert Axe().run(page, options=RULES).response["violations"] == []
    drop(page, tickets__csv=TICKETS.replace("March", "April"))
    expect(tickets.first).to_contain_text("Documents in desk: 1 changed, 1 unchanged")
    expect(tickets.first.get_by_role("button", name="Undo")).to_have_count(0)
    upload(page, "notes.md").get_by_role("button", name="Undo").click()
    expect(page.locator("li.file strong")).to_have_text(["tickets.csv"])
    assert client.count_documents("desk") == 2


def test_a_deleted_file_is_restored_and_the_list_follows_the_collection(
    toy_server: WebServer, client: FacetsClient, open_page: Opening
) -> None:
    for name in ("first", "second"):
        client.create_collection(name)
        documents = [Document(f"{name}{n:02}", f"The {name} tap drips.", source=f"{name}.txt") for n in range(25)]
        client.add([*documents, Document("loose", "No file.", {"title": MARKUP})], collection=name)
    page = open_page(f"{toy_server.url}#files")
    expect(page.get_by_role("button", name="Delete first.txt from first")).to_be_visible()
    page.get_by_label("Collection", exact=True).select_option("second")
    remove = page.get_by_role("button", name="Delete second.txt from second")
    expect(remove).to_be_visible()
    expect(page.locator("li.file", has_text="first.txt")).to_have_count(0)
    page.locator("li.file summary").first.click()
    documents = page.locator("li.file").first.locator("details details")
    expect(documents).to_have_count(20)
    page.get_by_role("button", name="More").first.click()
    expect(documents).to_have_count(25)
    remove.click()
    expect(page.locator(".notice")).to_contain_text("second.txt (25 documents) was deleted from second.")
    assert (client.count_documents("first"), client.count_documents("second")) == (26, 1)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".notice")).to_contain_text("second.txt is back in second.")
    assert client.list_sources("second") == {"second.txt": 25}
    page.locator("li.file", has_text="not stored as files").locator("summary").click()
    expect(page.locator("li.file", has_text=MARKUP)).to_be_visible()
    assert page.locator("main img").count() == 0
    page.reload()
    expect(page.get_by_label("Collection", exact=True)).to_have_value("second")


def test_files_go_into_a_new_collection(toy_server: WebServer, client: FacetsClient, open_page: Opening) -> None:
    page = open_page(f"{toy_server.url}#files")
    expect(page.get_by_label("Name of the new collection")).to_have_value("documents")
    page.get_by_label("Name of the new collection").fill("Not allowed")
    drop(page, a__txt="The tap drips.")
    assert client.list_collections() == []
    page.get_by_label("Name of the new collection").fill("taps")
    drop(page, a__txt="The tap drips.")
    expect(page.get_by_role("heading", name="1 document in taps")).to_be_visible()
    expect(page.get_by_label("Collection", exact=True)).to_have_value("taps")


def test_a_folder_is_stored_without_hidden_files_and_an_archive_is_undone(
    desk: Page, client: FacetsClient, tmp_path: Path
) -> None:
    names = ("a.txt", "deep/b.md", ".hidden/c.txt", "deep/.d.txt")
    for name in names:
        (tmp_path / "plan" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "plan" / name).write_text(f"The tap of {name} drips.")
    with ZipFile(tmp_path / "plan" / "old.zip", "w") as archive:
        for name in names:
            archive.writestr(name, f"The old tap of {name} dripped.")
    desk.locator("input[webkitdirectory]").set_input_files(tmp_path / "plan")
    files = desk.locator("li.file strong")
    expect(files).to_have_text(["a.txt", "deep/b.md", "old.zip"])
    upload(desk, "old.zip").get_by_role("button", name="Undo").click()
    expect(files).to_have_text(["a.txt", "deep/b.md"])
    assert client.count_documents("desk") == 2


def test_files_that_cannot_be_read_have_a_reason_and_stop_no_others(
    desk: Page, tmp_path: Path, errors: list[str]
) -> None:
    problems = {"paper.pdf": ("%PDF-1.4", "Expected a PDF"), "odd.json": ("{", "JSON"), "none.txt": ("", "empty")}
    for name, (content, _) in problems.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "good.txt").write_text("The tap drips.")
    names = [*problems, "good.txt"]
    desk.locator("input[type=file]").first.set_input_files([tmp_path / name for name in names])
    expect(upload(desk, "good.txt")).to_contain_text("1 added")
    for name, (_, message) in problems.items():
        problem = upload(desk, name).get_by_role("alert")
        expect(problem).to_contain_text(message)
        assert "Traceback" not in problem.inner_text() and len(problem.inner_text()) < 300
    assert all("400" in error for error in errors)
    errors.clear()


def test_an_upload_goes_on_in_other_views_and_waits_for_the_server(
    desk: Page, client: FacetsClient, errors: list[str]
) -> None:
    busy = {"code": "unavailable", "message": "too many uploads"}
    answers = [lambda route: route.abort("connectionrefused"), lambda route: route.fulfill(status=503, json=busy)]
    desk.route("**/v1/collections/**", lambda route: (answers.pop(0) if answers else Route.continue_)(route))
    drop(desk, a__txt="The tap drips.")
    expect(upload(desk, "a.txt")).to_contain_text("Waiting for the server; no data is lost")
    open_view(desk, "summary")
    open_view(desk, "files")
    expect(upload(desk, "a.txt")).to_contain_text("1 added")
    assert (answers, client.count_documents("desk")) == ([], 1)
    errors.clear()  # the browser logs failed requests


def test_a_stopped_upload_is_sent_again(desk: Page, client: FacetsClient) -> None:
    desk.route("**/v1/collections/**", lambda route: None)
    drop(desk, a__txt="The tap drips.", b__txt="The door creaks.")
    expect(desk.get_by_text("File 1 of 2")).to_be_visible()
    desk.get_by_role("button", name="Stop all").click()
    expect(upload(desk, "a.txt")).to_contain_text("Stopped.")
    desk.unroute("**/v1/collections/**")
    desk.get_by_role("button", name="Store again").click()
    expect(upload(desk, "a.txt")).to_contain_text("1 added")
    assert client.count_documents("desk") == 1
    expect(desk.locator("li.file")).to_have_count(1)

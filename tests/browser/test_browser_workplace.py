"""Working with collections: upload, browse, delete, restore, compare, back up."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from asking import RULES, ask, enter_key, open_view, settled
from axe_playwright_python.sync_playwright import Axe
from conftest import WebServer
from facets_client import Document, FacetsClient
from facets_server.__main__ import main
from playwright.sync_api import Page, expect

Opening = Callable[..., Page]
TICKETS = ("The tap drips at night.", "I was charged twice and want a refund.", "The reset mail never arrives.")
ADMIN, READER = "a-key-that-may-do-everything-0123", "a-key-that-may-only-read-01234567"
LONG = "n" * 10_000
NUM_MANY = 6_000
MARKUP = "<img src=x onerror=alert(1)>"


def test_an_upload_continues_after_a_restart_of_the_server_and_after_a_stop(
    open_page: Opening, toy_model: Path, tmp_path: Path, errors: list[str]
) -> None:
    path = tmp_path / "many.jsonl"  # takes a while to store
    path.write_text("".join(json.dumps({"id": f"d{n:05}", "text": TICKETS[n % 3]}) + "\n" for n in range(NUM_MANY)))
    with WebServer(tmp_path / "data", (toy_model,)) as server:
        page = open_page(f"{server.url}#add")
        page.get_by_label("or choose them").set_input_files(path)
        page.get_by_role("button", name="Store").click()
        status = page.locator(".loading p.status")
        expect(status).to_contain_text(re.compile(r"[1-9]\d* documents? stored"))
        server.kill()
        expect(status).to_contain_text("Waiting for the server; no data is lost")
    with WebServer(tmp_path / "data", (toy_model,), port=server.port, http_port=server.http_port) as server:
        expect(status).not_to_contain_text("Waiting")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("Drop the same file again to continue")).to_be_visible()
        with FacetsClient(server.target) as client:
            assert 0 < client.count_documents("many") < NUM_MANY
            page.reload()  # as if the tab was closed
            page.get_by_label("or choose them").set_input_files(path)
            expect(page.get_by_label("Into")).to_have_value("many")  # not a new one of that name
            page.get_by_role("button", name="Store").click()
            expect(status).to_contain_text("rows were stored earlier")
            expect(page.get_by_text("Done.")).to_be_visible()
            assert client.count_documents("many") == NUM_MANY
        page.close()
    errors.clear()  # the browser logs failed requests


def test_documents_can_be_opened_deleted_and_restored(own_server: WebServer, open_page: Opening) -> None:
    with FacetsClient(own_server.target) as client:
        client.create_collection("notes")
        texts = [Document(f"n{n:02}", TICKETS[n % 3], {"title": f"{MARKUP} {n}", "n": n}) for n in range(30)]
        client.upsert("notes", [*texts, Document(LONG[:500], "A long name.", {"title": LONG})])
        page = open_page(f"{own_server.url}#documents")
        settled(page)
        expect(page.locator("li.document")).to_have_count(25)
        expect(page.locator("li.document img")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= 1180
        page.locator("li.document summary").first.click()
        expect(page.locator("li.document table").first).to_contain_text("Revision")
        expect(page.locator(".facet-card").first).to_be_visible()
        page.get_by_role("button", name="Next page").click()
        settled(page)
        expect(page.locator("li.document")).to_have_count(6)
        page.go_back()
        expect(page.locator("li.document")).to_have_count(25)
        page.get_by_label("Choose").nth(1).check()
        page.get_by_label("Choose").nth(2).check()
        page.get_by_role("button", name="Delete 2 documents").click()
        expect(page.locator(".notice")).to_contain_text("2 documents deleted from notes")
        assert client.count_documents("notes") == 29
        page.get_by_role("button", name="Restore").click()
        expect(page.locator(".notice")).to_contain_text("2 documents restored")
        back = client.get_documents("notes", [LONG[:500], "n00"]).documents
        assert client.count_documents("notes") == 31
        assert {len(str(document.payload["title"])) for document in back} == {10_000, len(MARKUP) + 2}


def test_a_collection_is_downloaded_kept_and_deleted_in_two_tabs(
    own_server: WebServer, open_page: Opening, tmp_path: Path, errors: list[str]
) -> None:
    with FacetsClient(own_server.target) as client:
        client.create_collection("old")
        pages = [open_page(f"{own_server.url}#status") for _ in range(2)]
        page = open_page(f"{own_server.url}#documents")
        expect(page.get_by_text("This collection is empty. Add files.")).to_be_visible()
        for view, button in (("map", "Draw the map"), ("diagnose", "Diagnose")):
            open_view(page, view)
            ask(page, button)
            expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("Collection 'old' is empty")
        client.upsert("old", [Document(f"n{n:03}", TICKETS[n % 3], {"n": n}) for n in range(250)])
    expect(pages[0].get_by_role("region", name="Backup")).to_contain_text("facets-server backup NEW-FOLDER")
    expect(pages[0].get_by_role("button", name="Take a backup")).to_have_count(0)
    pages[0].once("dialog", lambda dialog: dialog.dismiss())
    pages[0].get_by_role("button", name="Delete old").click()
    with pages[0].expect_download() as downloading:
        pages[0].get_by_role("button", name="Download old").click()
    downloading.value.save_as(tmp_path / "old.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "old.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 250 and rows[7] == {"id": "n007", "text": TICKETS[1], "n": 7}
    for page, says in zip(pages, ("250 documents were deleted", "old was already deleted"), strict=True):
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Delete old").click()
        expect(page.locator(".notice")).to_contain_text(says)
        expect(page.get_by_text("There are no collections yet")).to_be_visible()
    errors.clear()  # 400 of the empty collection, 404 in the second tab


def test_an_admin_takes_a_backup_and_the_shown_command_restores_it(
    open_page: Opening, toy_model: Path, tmp_path: Path, errors: list[str]
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"{ADMIN}\n{READER} read\n", encoding="utf-8")
    keys.chmod(0o600)
    settings = {"SECURITY_API_KEYS_FILE": keys, "BACKUP_DIR": tmp_path / "my backups", "BACKUP_KEEP": 1}
    environment = {f"FACETS_SERVER_{name}": str(value) for name, value in settings.items()}
    with WebServer(tmp_path / "data", (toy_model,), environment=environment) as server:
        with FacetsClient(server.target, api_key=ADMIN) as client:
            client.create_collection("notes")
            client.upsert("notes", [Document("n", TICKETS[0])])
        page = open_page(f"{server.url}#status")
        enter_key(page, READER)
        page.get_by_role("button", name="Take a backup").click()
        expect(page.get_by_role("main").get_by_role("alert")).to_contain_text('the call requires "admin"')
        assert not list(tmp_path.glob("my backups/*"))
        enter_key(page, ADMIN)
        expect(page.get_by_text("There is no backup yet.")).to_be_visible()
        page.get_by_role("button", name="Take a backup").click()
        expect(page.locator(".notice")).to_contain_text("the checksums are correct")
        assert Axe().run(page, options=RULES).response["violations"] == []
        expect(page.get_by_role("region", name="Backup")).to_contain_text("the latest 1 are kept")
        page.get_by_role("button", name="Take a backup").click()
        expect(page.locator(".notice")).to_contain_text("1 older backup removed")
        [folder] = tmp_path.glob("my backups/*")
        expect(page.get_by_role("region", name="Backup").locator("tbody tr")).to_contain_text(str(folder))
        command = shlex.split(page.get_by_role("region", name="Backup").get_by_label("Command").inner_text())
        page.close()
    assert command[0] == "facets-server" and command[-1] == "NEW-FOLDER"
    assert main([*command[1:-1], str(tmp_path / "restored")]) == 0
    assert main(["verify", str(tmp_path / "restored")]) == 0
    assert all("401" in error or "403" in error for error in errors)
    errors.clear()


def test_an_error_of_one_side_leaves_the_other(view: Opening, sample_server: WebServer, errors: list[str]) -> None:
    with FacetsClient(sample_server.target) as client:
        client.create_collection("tickets")
        client.upsert("tickets", [Document(f"t{n}", text, {"title": f"Ticket {n}"}) for n, text in enumerate(TICKETS)])
        page = view("sides")
        page.get_by_label("Question").fill("I paid two times, give it back")
        for name, place in (("samples", 0), ("tickets", 1)):
            page.get_by_label("Collection").nth(place).select_option(name)
            page.get_by_label("Ranked by").nth(place).select_option("Facets and words")
        ask(page, "Compare")
        right = page.get_by_role("region", name="Right")
        expect(right.locator(".hit").first.get_by_role("heading")).to_have_text("Ticket 1")
        expect(right.locator(".hit .chip").first).to_have_text("only here")
        page.get_by_label("Model").first.select_option("facets-en")  # of another space than the samples
        ask(page, "Compare")
        expect(page.get_by_role("main").get_by_role("alert")).to_have_count(1)
        expect(right.locator(".hit").first).to_be_visible()
        client.delete_collection("tickets")
    assert all("400" in error for error in errors)
    errors.clear()

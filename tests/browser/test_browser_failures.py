"""Errors are one sentence with advice, and input is kept."""

from collections.abc import Callable
from pathlib import Path

from asking import TOOLS, ask, enter_key, open_view
from conftest import WebServer
from facets_client import Document, FacetsClient
from playwright.sync_api import Page, expect

KEY = "a-key-of-the-test-0123456789abcdef"
BOUND = "a-key-of-one-collection-0123456789"
FIELDS = "input:is([type=text], [type=search], :not([type])):visible, textarea:visible"
EVIL = "<img src=x onerror=alert(1)> A cat sat on the mat. <script>alert(2)</script>"


def test_keys_are_asked_for_and_markup_in_documents_is_shown_as_text(
    open_page: Callable[..., Page], toy_model: Path, tmp_path: Path, errors: list[str]
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"{KEY}\n{BOUND} read evil\n", encoding="utf-8")
    keys.chmod(0o600)
    environment = {"FACETS_SERVER_SECURITY_API_KEYS_FILE": str(keys)}
    with WebServer(tmp_path / "data", (toy_model,), environment=environment) as server:
        with FacetsClient(server.target, api_key=KEY) as client:
            client.create_collection("evil")
            client.add([Document("<b>x</b>", EVIL, {"title": "<i>cat</i>", "kind": "<u>k</u>"})], collection="evil")
        page = open_page(server.url)
        page.get_by_role("button", name="Enter a key").click()
        page.get_by_role("textbox", name="Key").fill("wrong")
        page.get_by_role("button", name="Use this key").click()
        expect(page.get_by_role("alert").filter(has_text="Enter a valid API key")).to_be_visible()
        enter_key(page, KEY)
        expect(page.locator("select[name=c]")).to_contain_text("evil")
        assert KEY not in page.evaluate("[JSON.stringify(localStorage), document.cookie, location.href].join()")
        page.get_by_label("Question").fill("cat")
        ask(page)
        expect(page.locator(".hit h2")).to_have_text("<i>cat</i>")
        expect(page.locator(".hit .passage")).to_have_text(EVIL)
        assert page.locator("main img, main script, main i, main u").count() == 0
        enter_key(page, BOUND)  # may not list collections
        page.locator("input[name=c]").fill("evil")
        page.get_by_label("Question").fill("cat")
        ask(page)
        expect(page.locator(".hit")).to_have_count(1)
        page.get_by_label("Collection").fill("other")
        ask(page)
        expect(page.get_by_role("main").get_by_role("alert")).to_be_visible()
        errors[:] = [error for error in errors if not any(status in error for status in ("401", "403"))]


def test_a_stopped_server_is_reported_and_retried(
    open_page: Callable[..., Page], tmp_path: Path, toy_model: Path, errors: list[str]
) -> None:
    with WebServer(tmp_path / "data", (toy_model,)) as server:
        with FacetsClient(server.target) as client:
            client.create_collection("notes")
            client.add([Document(id="one", text="the cat sat on a chair")], collection="notes")
        page = open_page(server.url)
        page.get_by_label("Question").fill("cat")
    ports = {"port": server.port, "http_port": server.http_port}
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="tries again every few seconds")).to_be_visible()
    expect(page.get_by_label("Question")).to_have_value("cat")
    with WebServer(tmp_path / "data", (toy_model,), **ports):
        expect(page.locator(".hit h2, .nothing h2").first).to_be_visible()
    errors.clear()


def test_long_markup_in_every_field_is_harmless(view: Callable[..., Page], errors: list[str]) -> None:
    page = view("ask")
    ran: list[str] = []
    page.on("dialog", lambda dialog: (ran.append(dialog.message), dialog.dismiss()))
    filled = 0
    for name in ("ask", *TOOLS, "map", "files", "status"):
        open_view(page, name)
        for settings in page.get_by_text("Settings").all():
            settings.click()
        for control in page.locator("main").locator(FIELDS).all():
            control.fill((EVIL * 200)[:10_000] if name != "summary" else "   ")
            filled += 1
        for submit in page.locator("main form button[type=submit]:visible").all():
            submit.click()
            page.locator("form[aria-busy=false]").wait_for()
            page.locator(".results > *").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 1180, name
        assert page.locator("main img, main script").count() == 0, name
        for told in page.get_by_role("main").get_by_role("alert").all():
            sentence = told.inner_text()
            assert len(sentence) < 500 and "\n" not in sentence and "Traceback" not in sentence, f"{name}: {sentence}"
    assert (ran, filled >= 12) == ([], True)
    assert all(status in error for error in errors for status in ("400",))
    errors.clear()

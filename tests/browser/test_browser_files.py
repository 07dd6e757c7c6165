"""Uploading files: messy tables, unreadable files, slow and absent servers."""

import json
import re
from collections.abc import Callable
from pathlib import Path

from asking import RULES, open_view, settled
from axe_playwright_python.sync_playwright import Axe
from conftest import WebServer
from facets_client import FacetsClient
from playwright.sync_api import Page, Route, expect

Opening = Callable[..., Page]
PROBLEMS = (
    "I was charged twice for March,\nplease send the second amount back.",
    'I cannot sign in since the update; the page says "wrong code".',
    "The parcel was left in the rain and\nthe books are wet.",
    "The app closes when I turn the phone.",
)
LARGE = "The tap drips. " * 1_200_000
DROP = """([name, text]) => {
    const given = new DataTransfer();
    given.items.add(new File([text], name));
    const event = (kind) => new DragEvent(kind, { dataTransfer: given, bubbles: true, cancelable: true });
    const target = document.querySelector("main");
    return ["dragover", "drop"].map((kind) => target.dispatchEvent(event(kind)));
}"""

# Each batch takes a quarter of a second more.
LATE = """() => {
    const ask = window.fetch;
    const late = (url, ...more) => new Promise((go) => setTimeout(go, 250)).then(() => ask(url, ...more));
    window.fetch = (url, ...more) => (String(url).includes("Upsert") ? late : ask)(url, ...more);
}"""


def messy() -> str:
    """A BOM, semicolons, quotes over lines, doubled quotes, missing values, repeated and missing names."""
    rows = ["\ufeffTicket No;Opened;Customer;Details;Status;Status;Year"]
    for number in range(300):
        cell = f"Hello,\n\n{PROBLEMS[number % 4]}\n\nOrder {10_000 + number}.\nRegards".replace('"', '""')
        text = "" if number % 97 == 5 else f'"{cell}"'
        rows.append(
            f"T-{number:04};2024-05-{1 + number % 28};{'' if number % 9 else 'Acme & Sons'};{text};open;mail;2024"
        )
    return "\r\n".join([*rows, ""])


def test_a_dropped_messy_table_is_searchable_after_three_steps(view: Opening, sample_server: WebServer) -> None:
    page = view("search")
    # Step 1: the file is dropped; the browser would open it if the events were not prevented.
    assert page.evaluate(DROP, ["Support tickets (May).csv", messy()]) == [False, False]
    expect(page.locator(".preview")).to_contain_text("I was charged twice for March, please send")
    expect(page.get_by_label("Name", exact=True)).to_have_value("support-tickets-may")
    expect(page.get_by_label("Text", exact=True)).to_have_value("Details")
    expect(page.get_by_role("button", name="Store")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("296 documents stored in support-tickets-may")).to_be_visible()
    page.get_by_text("4 rows were not stored").click()
    expect(page.get_by_text("Row 6: has no text in column Details")).to_be_visible()
    assert Axe().run(page, options=RULES).response["violations"] == []
    question = page.get_by_label("Search these documents")
    question.press_sequentially("billed two times, I want my money back\n")
    settled(page)
    expect(page.get_by_label("Collection")).to_have_value("support-tickets-may")
    expect(page.locator(".hit mark.answer").first).to_contain_text("charged twice")
    with FacetsClient(sample_server.target) as client:
        [document] = client.get_documents("support-tickets-may", ["Support tickets (May).csv#1"]).documents
        expected = {"Ticket No": "T-0000", "Status": "open", "Status 2": "mail", "Year": 2024}
        assert document.payload.items() >= expected.items()
        client.delete_collection("support-tickets-may")


def test_uploads_continue_in_other_views(own_server: WebServer, open_page: Opening, tmp_path: Path) -> None:
    page = open_page(f"{own_server.url}#add")
    page.evaluate(LATE)
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"id": "r{n}", "text": "The tap drips."}}\n' for n in range(300)))
    page.get_by_label("or choose them").set_input_files(tmp_path / "rows.jsonl")
    page.get_by_role("button", name="Store").click()
    expect(page.locator(".loading p.status")).to_contain_text(re.compile("[1-9].* documents stored"))
    page.locator("#views").get_by_role("link", name="Documents").click()
    page.get_by_role("heading", name="Documents").wait_for()
    page.locator("#views").get_by_role("link", name="Add files").click()
    expect(page.get_by_text("Done. 300 documents stored in rows.")).to_be_visible()


UNREADABLE = {
    "paper.pdf": (b"%PDF-1.4", "has a format that this page does not read"),
    "open.csv": (b'id,text\n1,"never closed', "a quote is not closed"),
    "none.csv": (b"", "is empty"),
    "odd.json": (b"{", "is not JSON"),
    "rows.jsonl": (b"no json\n", "has no valid row"),
    "picture.txt": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "is not a text file"),
    "large.txt": (LARGE.encode(), "has 18 MB. The command facets index stores texts of more than 15 MB"),
}


def test_unreadable_files_get_one_sentence(view: Opening, tmp_path: Path) -> None:
    page = view("search")
    open_view(page, "add")
    for name, (content, _) in UNREADABLE.items():
        (tmp_path / name).write_bytes(content)
    page.get_by_label("or choose them").set_input_files([tmp_path / name for name in UNREADABLE])
    for name, (_, message) in UNREADABLE.items():
        expect(page.get_by_role("region", name=name).get_by_role("alert")).to_contain_text(message)


def test_slow_batches_get_more_time_and_rows_that_are_too_large_are_rejected_alone(
    own_server: WebServer, open_page: Opening, tmp_path: Path, errors: list[str]
) -> None:
    page = open_page(f"{own_server.url}#add")
    times: list[int] = []

    def late(route: Route) -> None:
        times.append(int(route.request.headers["connect-timeout-ms"]))
        if len(times) > 2:
            return route.continue_()
        return route.fulfill(status=504, json={"code": "deadline_exceeded", "message": "too late"})

    page.route("**/*DocumentService/Upsert", late)
    rows = [{"id": "large", "text": LARGE}, {"id": "small", "text": "The tap drips."}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    page.get_by_label("or choose them").set_input_files(tmp_path / "rows.jsonl")
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_text("Done. 1 document stored in rows.")).to_be_visible()
    page.get_by_text("1 row was not stored").click()
    expect(page.get_by_text("Row 1: ")).to_contain_text("larger than the limit")
    assert times[:3] == [60_000, 120_000, 240_000]
    assert all("413" in error or "504" in error for error in errors)
    errors.clear()

"""The map, the text tools and the status, with the shipped models and the bundled samples."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from asking import ask, example, open_view
from conftest import WebServer
from facets_client import Document, FacetsClient
from facets_server.__main__ import main
from playwright.sync_api import Page, expect

View = Callable[..., Page]
TICKET = "The tap drips at night."


def test_a_facet_highlights_the_words_it_attends_to(view: View) -> None:
    page = view("facets")
    example(page, "Plants, pianos, taxes")
    cards = page.locator(".facet-card")
    assert cards.count() >= 3
    taxes = cards.filter(has=page.locator("strong", has_text=re.compile("^tax"))).first
    taxes.hover()
    glowing = set(page.locator(".passage .glow").all_inner_texts())
    assert {"Income", "taxes"} & glowing and "Plants" not in glowing
    expect(page.locator(".passage .attention-4").first).to_be_visible()
    text = "\U0001f419\U0001f419 The octopus has three hearts."
    page.get_by_label("Text", exact=True).fill(text)
    ask(page, "Show facets")
    assert {"octopus", "hearts"} <= set(page.locator(".passage .token").all_inner_texts()), "offsets count code points"
    expect(page.locator(".passage")).to_have_text(text)


def test_similarity_shows_score_method_and_a_bar_per_match(view: View) -> None:
    page = view("similarity")
    example(page, "A tram, a railway")
    expect(page.locator(".big")).to_have_text(re.compile(r"\d+ %"))
    expect(page.locator("main [role=status]")).to_contain_text("cross encoder by facets-passages")
    matches = page.locator(".match")
    assert matches.count() >= 3
    expect(page.locator(".bond")).to_have_count(matches.count())
    matches.nth(1).hover()
    assert page.locator(".passage .glow").count() >= 2
    example(page, "Open, closed")
    expect(page.get_by_label("Differences")).to_contain_text("open / closed differ")
    expect(page.locator(".verdict")).to_contain_text("They contradict each other.")


def test_a_summary_shows_coverage_and_positions(view: View) -> None:
    page = view("summary")
    example(page, "The octopus")
    for part in (".sentence", "mark.picked", ".coverage .part"):
        expect(page.locator(part)).to_have_count(3)
    expect(page.get_by_role("heading", name=re.compile(r"\d+ % covered"))).to_be_visible()
    sentences = page.locator(".sentence span:nth-child(2)").all_inner_texts()
    assert sentences == page.locator("mark.picked").all_inner_texts()


def test_relations_have_their_entities_and_evidence(view: View) -> None:
    page = view("relations")
    example(page, "Marie Curie")
    row = page.locator("li.relation", has_text="birthPlace")
    expect(row.locator("strong").first).to_have_text("Marie Curie")
    expect(row.locator("strong").nth(1)).to_have_text("Warsaw")
    expect(row.locator(".meter")).to_contain_text("% sure")
    row.locator("button").hover()
    expect(page.locator(".entity.glow")).to_have_text(["Marie Curie", "Warsaw"])
    row.get_by_text("Why").click()
    expect(row.get_by_text("$ARG1 was born in $ARG2").first).to_be_visible()
    example(page, "Said, denied, asked")
    unsaid = page.get_by_role("region", name="Mentioned, but not asserted")
    expect(unsaid).to_contain_text("Ludwig Wittgenstein, Berlin: negated")
    expect(unsaid).to_contain_text("Freddie Mercury, Zanzibar: questioned")


def test_papers_recommend_authors_with_reasons_and_exclusions_and_citing_papers(view: View) -> None:
    page = view("papers")
    example(page, "A parser")
    expect(page.locator(".hit")).to_have_count(10)
    first = page.locator(".hit h2").first.inner_text()
    expect(page.locator(".hit").first).to_contain_text("Best facet of the paper")
    expect(page.locator(".hit").first).to_contain_text("Closest work")
    page.get_by_label("Exclude").fill(first)
    ask(page, "Recommend")
    expect(page.locator(".hit h2", has_text=re.compile(f"^{re.escape(first)}$"))).to_have_count(0)
    example(page, "Who would cite it")
    titles = page.locator(".hit h2").all_inner_texts()
    assert len(titles) == 10 and any(re.search("(?i)sense", title) for title in titles)


def test_the_map_names_themes_and_is_read_with_the_keyboard(view: View) -> None:
    page = view("map")
    expect(page.locator("main [role=status]")).to_have_text("184 documents drawn, by t-SNE")
    expect(page.get_by_role("group", name="Themes").get_by_role("button")).to_have_count(8)
    page.locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    heading = page.locator(".reading h2")
    expect(heading).to_be_visible()
    before = heading.inner_text()
    page.keyboard.press("ArrowRight")
    expect(heading).not_to_have_text(before)
    page.get_by_role("button", name="List the visible documents").click()
    expect(heading).to_have_text("184 documents visible")
    page.locator("canvas").focus()
    for key in ("+", "+", "+", "s"):
        page.keyboard.press(key)
    expect(heading).to_have_text(re.compile(r"^\d{1,2} documents? visible$"))
    page.keyboard.press("0")
    page.keyboard.press("s")
    page.locator(".reading button").first.click()
    expect(page.locator(".reading .passage")).to_be_visible()


def test_a_collection_is_downloaded_kept_and_deleted_in_two_tabs(
    toy_server: WebServer, client: FacetsClient, open_page: View, tmp_path: Path, errors: list[str]
) -> None:
    client.create_collection("old")
    pages = [open_page(f"{toy_server.url}#status") for _ in range(2)]
    page = open_page(f"{toy_server.url}#files")
    expect(page.get_by_role("heading", name="0 documents in old")).to_be_visible()
    for view, button in (("map", "Draw the map"), ("diagnose", "Diagnose")):
        open_view(page, view)
        ask(page, button)
        expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("Collection 'old' is empty")
    client.add([Document(f"n{n:03}", TICKET, {"n": n}) for n in range(250)], collection="old")
    expect(pages[0].get_by_role("region", name="Backup")).to_contain_text("facets-server backup NEW-FOLDER")
    expect(pages[0].get_by_role("button", name="Take a backup")).to_have_count(0)
    pages[0].once("dialog", lambda dialog: dialog.dismiss())
    pages[0].get_by_role("button", name="Delete old").click()
    with pages[0].expect_download() as downloading:
        pages[0].get_by_role("button", name="Download old").click()
    downloading.value.save_as(tmp_path / "old.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "old.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 250 and rows[7] == {"id": "n007", "text": TICKET, "n": 7}
    for page, says in zip(pages, ("250 documents were deleted", "old was already deleted"), strict=True):
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Delete old").click()
        expect(page.locator(".notice")).to_contain_text(says)
        expect(page.get_by_text("There are no collections yet")).to_be_visible()
    errors.clear()  # 400 of the empty collection, 404 in the second tab


def test_a_backup_is_taken_and_the_shown_command_restores_it(open_page: View, toy_model: Path, tmp_path: Path) -> None:
    environment = {"FACETS_SERVER_BACKUP_DIR": str(tmp_path / "my backups"), "FACETS_SERVER_BACKUP_KEEP": "1"}
    with WebServer(tmp_path / "data", (toy_model,), environment=environment) as server:
        with FacetsClient(server.target) as client:
            client.create_collection("notes")
            client.add([Document("n", TICKET)], collection="notes")
        page = open_page(f"{server.url}#status")
        expect(page.get_by_text("There is no backup yet.")).to_be_visible()
        page.get_by_role("button", name="Take a backup").click()
        expect(page.locator(".notice")).to_contain_text("the checksums are correct")
        expect(page.get_by_role("region", name="Backup")).to_contain_text("the latest 1 are kept")
        page.get_by_role("button", name="Take a backup").click()
        expect(page.locator(".notice")).to_contain_text("1 older backup removed")
        [folder] = tmp_path.glob("my backups/*")
        expect(page.get_by_role("region", name="Backup").locator("tbody tr")).to_contain_text(str(folder))
        command = shlex.split(page.get_by_role("region", name="Backup").get_by_label("Command").inner_text())
        page.close()
    assert command[0] == "facets-server" and command[-1] == "NEW-FOLDER"
    assert main([*command[1:-1], str(tmp_path / "restored")]) == 0

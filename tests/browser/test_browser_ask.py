"""Asking: answers in their context, links, examples, filters, honest refusals."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from asking import ask, open_view, settled
from conftest import WebServer
from facets_client import Document, FacetsClient
from playwright.sync_api import Page, expect

View = Callable[..., Page]
HOSTILE = ("#constructor", "#__proto__?x=1", "#ask?toString=1", "?q=bee&c=samples&where=constructor~1;=;!!&valueOf=1")
TABLE = """# Workshop

Machines of the workshop, with their masses.

| Machine | Weight | Noise |
|---|---|---|
| Lathe | 340 kg | 71 dB |
| Band saw | 95 kg | 88 dB |

Visitors wear goggles in every room of the workshop."""


def test_an_answer_has_its_sentence_words_confidence_and_facets(view: View) -> None:
    page = view("ask")
    page.get_by_label("Question").fill("how vaccines protect against disease")
    ask(page)
    hit = page.locator(".hit").first
    expect(hit.get_by_role("heading")).to_have_text("Vaccine")
    expect(hit.locator("mark.answer").first).to_contain_text("A vaccine is a biological preparation")
    expect(hit.locator(".word").first).to_have_text("vaccine")
    expect(hit.locator(".meter")).to_contain_text(re.compile(r"\d+ % sure"))
    facet = hit.get_by_role("group", name="Matching facets").get_by_role("button").first
    assert re.fullmatch(r"\w+(, | \u2192 )\w+|\w+", facet.inner_text()), "one or two plain words"
    facet.click()
    expect(facet).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".glow").first).to_be_visible()
    facet.click()
    page.mouse.move(0, 0)
    page.get_by_label("Question").focus()
    expect(page.locator(".glow")).to_have_count(0)


def test_a_link_opens_its_answers_and_the_address_follows_the_question(view: View, sample_server: WebServer) -> None:
    page = view("map")
    page.goto(f"{sample_server.url}?q=the+largest+river+in+the+world&c=samples&top_k=5")
    settled(page)
    expect(page.locator(".hit").first.get_by_role("heading")).to_have_text("Amazon River")
    page.get_by_label("Question").fill("capital city of France")
    ask(page)
    asked = parse_qs(urlsplit(page.url).query)
    assert asked == {"q": ["capital city of France"], "c": ["samples"], "top_k": ["5"]}
    page.go_back()
    expect(page.locator(".hit").first.get_by_role("heading")).to_have_text("Amazon River")
    open_view(page, "map")
    assert urlsplit(page.url).query == ""
    page.go_back()
    settled(page)
    expect(page.get_by_label("Question")).to_have_value("the largest river in the world")
    page.locator(".brand").click()
    expect(page.get_by_label("Question")).to_have_value("")
    expect(page.locator(".hit")).to_have_count(0)


def test_an_unanswered_question_hides_the_closest_documents(view: View) -> None:
    page = view("ask")
    page.get_by_label("Question").fill("renew a parking permit")
    ask(page)
    expect(page.get_by_role("heading", name="Nothing relevant")).to_be_visible()
    expect(page.locator(".hit").first).to_be_hidden()
    page.get_by_text("Show the closest documents anyway").click()
    expect(page.locator(".hit").first).to_be_visible()


def test_settings_and_filters_are_sent(view: View) -> None:
    page = view("ask")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or "") if "/Search" in request.url else None)
    page.get_by_label("Question").fill("animals that live in Australia")
    page.get_by_text("Settings").click()
    page.get_by_label("Must answer").select_option("All parts")
    ask(page)
    assert '"combine":"FACET_COMBINATION_SUM"' in sent[-1]
    page.get_by_text("Why this answer").first.click()
    page.get_by_role("button", name="topic: animals, only these documents").first.click()
    settled(page)
    expect(page.get_by_label("Only documents with")).to_have_value("topic=animals")
    page.get_by_label("Only documents with").fill('topic="animals"; num_words>=70; title; !draft; title!=Bee')
    ask(page)
    shown = page.locator(".hit .chip")
    assert set(shown.filter(has_text="topic:").all_text_contents()) == {"topic: animals"}
    counts = shown.filter(has_text="num_words:").all_text_contents()
    assert counts and all(int(chip.split()[-1]) >= 70 for chip in counts), "compared as numbers"


def test_examples_come_from_the_chosen_collection_and_tables_are_drawn(
    open_page: View, toy_server: WebServer, client: FacetsClient, errors: list[str]
) -> None:
    for name in ("a", "b"):
        client.create_collection(name)
    client.add([Document("n", "The stapler is a device that joins sheets of paper.")], collection="a")
    client.add([Document("manual.md", TABLE, {"title": "The weights of our machines"})], collection="b")
    page = open_page(toy_server.url)
    examples = page.get_by_role("group", name="Examples")
    expect(examples.get_by_role("button")).to_have_text("device that joins sheets of paper")
    page.get_by_label("Collection").select_option("b")
    examples.get_by_role("button", name="The weights of our machines").click()
    settled(page)
    expect(page.get_by_role("heading", name="The weights of our machines")).to_be_visible()
    table = page.locator(".passage table")
    expect(table.locator("th")).to_have_text(["Machine", "Weight", "Noise"])
    expect(table.locator("tr").nth(2).locator("td").nth(2)).to_have_text("88 dB")
    expect(page.locator(".passage b")).to_have_text("Workshop")
    expect(page.locator(".passage")).not_to_contain_text(re.compile(r"[|#]"))
    assert parse_qs(urlsplit(page.url).query)["c"] == ["b"]
    page.goto(f"{toy_server.url}?q=cat&c=gone")
    expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("Collection 'gone' does not exist.")
    page.get_by_label("Collection").select_option("b")
    ask(page)
    expect(page.get_by_role("main").get_by_role("alert")).to_have_count(0)
    errors[:] = [error for error in errors if "404" not in error]


@pytest.mark.parametrize("address", HOSTILE)
def test_a_hostile_address_breaks_nothing(
    view: View, sample_server: WebServer, address: str, errors: list[str]
) -> None:
    page = view("map")
    page.goto("about:blank")
    page.goto(sample_server.url + address)
    expect(page.locator(".view.ask form")).to_be_visible()
    page.get_by_label("Question").fill("the largest river in the world")
    page.get_by_text("Settings").click()
    page.get_by_label("Only documents with").fill("")
    ask(page)
    expect(page.locator(".hit").first.get_by_role("heading")).to_have_text("Amazon River")
    errors[:] = [error for error in errors if "400" not in error]

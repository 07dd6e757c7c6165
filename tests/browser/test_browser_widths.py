"""Every view at the width of a phone, a tablet and a desk: nothing hidden, clipped or left unsaid."""

from collections.abc import Callable

import pytest
from asking import EXAMPLES, PLAIN, RULES, example, open_view
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

View = Callable[..., Page]
WIDTHS = {390: 812, 820: 1180, 1440: 900}
# Selects whose chosen text is wider than the room for it, measured with the select's own font.
CLIPPED = """() => [...document.querySelectorAll("select")].filter((select) => {
    const context = document.createElement("canvas").getContext("2d");
    context.font = getComputedStyle(select).font;
    const style = getComputedStyle(select);
    const room = select.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 16;
    return [...select.selectedOptions].some((option) => context.measureText(option.text).width > room);
}).map((select) => `${select.name}: ${select.clientWidth}`)"""


@pytest.mark.parametrize("width", WIDTHS)
def test_every_view_fits_its_answer_comes_into_sight_and_axe_finds_nothing(view: View, width: int) -> None:
    size = {"width": width, "height": WIDTHS[width]}
    page = view("search", viewport=size, reduced_motion="reduce")
    found = []
    for name, label in EXAMPLES.items():
        open_view(page, name)
        assert page.evaluate(CLIPPED) == [], name
        example(page, label)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        top = page.locator(".results > *").first.bounding_box()
        assert top is not None and 0 <= top["y"] < WIDTHS[width] * 0.8, f"{name}: the answer begins at {top}"
        assert "undefined" not in page.locator("main").inner_text(), name
        violations = Axe().run(page, options=RULES).response["violations"]
        found += [(name, one["id"], [node["target"] for node in one["nodes"]][:3]) for one in violations]
    for name in PLAIN:
        open_view(page, name)
        page.locator("main .card").nth(1).wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert "undefined" not in page.locator("main").inner_text(), name
        violations = Axe().run(page, options=RULES).response["violations"]
        found += [(name, one["id"], [node["target"] for node in one["nodes"]][:3]) for one in violations]
    assert found == []


def test_twenty_relations_are_seen_at_once(view: View) -> None:
    names = ("Kafka", "Rilke", "Werfel", "Einstein", "Planck", "Born", "Heisenberg", "Pauli", "Bohr", "Dirac")
    towns = ("Prague", "Vienna", "Berlin", "Ulm", "Kiel", "Munich", "Zurich", "Geneva", "Paris", "London")
    pairs = zip(names, towns, strict=True)
    text = " ".join(f"Franz {name} was born in {town} and died in {towns[-1]}." for name, town in pairs)
    page = view("relations")
    page.get_by_label("Text").fill(text)
    page.get_by_role("button", name="Find relations").click()
    rows = page.locator("li.relation")
    rows.first.wait_for()
    heights = rows.evaluate_all("rows => rows.map((row) => row.getBoundingClientRect().height)")
    assert len(heights) >= 15 and max(heights) < 60
    crossed = page.evaluate(
        """() => [...document.querySelectorAll(".arc-label")].filter((label) => {
            const one = label.getBoundingClientRect();
            return [...document.querySelectorAll(".sentence-stage .entity")].some((entity) => {
                const other = entity.getBoundingClientRect();
                return one.left < other.right && one.right > other.left
                    && one.top + 3 < other.bottom && one.bottom - 3 > other.top;
            });
        }).map((label) => label.textContent)"""
    )
    assert crossed == [], "labels cover words"


def test_start_says_what_a_facet_is_until_something_is_asked(view: View) -> None:
    page = view("search")
    expect(page.get_by_role("heading", name="One text, several facets")).to_be_visible()
    example(page, "games played with a ball")
    expect(page.locator(".intro")).to_have_count(0)


def test_questions_are_combined_as_asked(view: View) -> None:
    page = view("search")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or "") if "Search" in request.url else None)
    page.get_by_label("Must answer").select_option("All parts")
    example(page, "two questions in one")
    assert '"combine":"FACET_COMBINATION_SUM"' in asked[-1]


def test_routes_over_http_are_read_searched_and_tried(open_page: Callable[..., Page], sample_server: object) -> None:
    page = open_page(f"{sample_server.url}")  # type: ignore[attr-defined]
    page.get_by_role("link", name="HTTP: every route").click()
    page.get_by_label("Find a route").fill("CountDocuments")
    route = page.locator(".route:visible")
    expect(route).to_have_count(1)
    route.locator("summary").click()
    route.get_by_label("Try it").fill('{"collection": "samples"}')
    route.get_by_role("button", name="Send").click()
    expect(route.locator("pre")).to_contain_text('"numDocuments": "184"')
    assert Axe().run(page, options=RULES).response["violations"] == []

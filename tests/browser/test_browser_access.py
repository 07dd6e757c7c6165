"""Layout and accessibility: widths, axe, keyboard, focus, themes."""

from collections.abc import Callable

import pytest
from asking import RULES, TOOLS, example, open_view, settled
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

View = Callable[..., Page]


def check(page: Page, name: str, width: int) -> list[object]:
    """Checks the layout of a view; returns the violations that axe finds."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    assert "undefined" not in page.locator("main").inner_text(), name
    violations = Axe().run(page, options=RULES).response["violations"]
    return [(name, found["id"], [node["target"] for node in found["nodes"]][:3]) for found in violations]


@pytest.mark.parametrize(("width", "height", "scheme"), [(390, 812, "light"), (1180, 900, "dark")])
def test_every_view_fits_and_axe_finds_nothing(view: View, width: int, height: int, scheme: str) -> None:
    page = view("ask", viewport={"width": width, "height": height}, color_scheme=scheme)
    links = [link.bounding_box() for link in page.locator(".bar > nav:first-of-type a").all()]
    assert len({box["y"] for box in links if box}) == 1, "the first level of the navigation fits in one row"
    page.get_by_role("group", name="Examples").wait_for()
    expect(page.locator("main input:visible")).to_have_count(1)
    violations = check(page, "ask", width)
    example(page, "vehicle safety device")
    violations += check(page, "answers", width)
    for name, label in TOOLS.items():
        open_view(page, name)
        if label:
            example(page, label)
        else:
            page.get_by_label("Question").fill("games played with a ball")
            page.locator("main form .primary").click()
            settled(page)
        if name == "diagnose":
            expect(page.get_by_role("region", name="Recall of the index")).to_contain_text("finds 100 % of the hits")
        top = page.locator(".results > *").first.bounding_box()
        assert top is not None and 0 <= top["y"] < height * 0.8, f"{name}: the results begin at {top}"
        violations += check(page, name, width)
    for name, part in (("map", "canvas"), ("files", "li.file"), ("status", ".card:nth-child(2)")):
        open_view(page, name)
        page.locator(f"main {part}").first.wait_for()
        violations += check(page, name, width)
    assert violations == []


def test_the_keyboard_alone_asks_and_highlights_facets(view: View) -> None:
    page = view("map")
    page.keyboard.press("/")
    expect(page.get_by_label("Question")).to_be_focused()
    page.keyboard.type("how vaccines protect against disease")
    page.keyboard.press("Enter")
    settled(page)
    facet = page.locator(".hit .facet").first
    facet.focus()
    expect(page.locator(".glow").first).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.locator(".glow")).to_have_count(0)
    page.keyboard.press("/")
    expect(page.get_by_label("Question")).to_be_focused()


def test_a_new_view_gets_focus_and_title(view: View) -> None:
    page = view("similarity")
    open_view(page, "summary")
    expect(page).to_have_title("Summary \u2013 Facets")
    expect(page.get_by_role("main")).to_be_focused()
    expect(page.get_by_role("link", name="Summary")).to_have_attribute("aria-current", "page")

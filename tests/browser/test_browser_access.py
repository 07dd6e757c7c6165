"""For everybody: assistive programs, keys alone, small screens, light and dark, less motion."""

from collections.abc import Callable

import pytest
from asking import EXAMPLES, RULES, example, open_view, settled
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

View = Callable[..., Page]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_any_view(view: View, scheme: str) -> None:
    page = view("search", color_scheme=scheme, reduced_motion="reduce")
    found = []
    for name, label in EXAMPLES.items():
        open_view(page, name)
        example(page, label)
        violations = Axe().run(page, options=RULES).response["violations"]
        found += [(name, one["id"], [node["target"] for node in one["nodes"]][:3]) for one in violations]
    assert found == []


def test_keys_alone_find_and_read_an_answer(view: View) -> None:
    page = view("search")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_attribute("name", "query")
    page.keyboard.type("how vaccines protect against disease")
    page.keyboard.press("Enter")
    settled(page)
    facet = page.locator(".hit .facet").first
    facet.focus()
    expect(page.locator(".glow").first).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.locator(".glow")).to_have_count(0)


def test_another_view_takes_focus_and_title(view: View) -> None:
    page = view("search")
    open_view(page, "summary")
    expect(page).to_have_title("Summary \u2013 Facets playground")
    expect(page.get_by_role("main")).to_be_focused()
    expect(page.get_by_role("link", name="Summary")).to_have_attribute("aria-current", "page")


def test_theme_is_chosen_and_kept(view: View) -> None:
    page = view("search", color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    button = page.get_by_role("button", name="Theme")
    button.click()
    button.click()
    expect(button).to_have_text("Theme: dark")
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    expect(button).to_have_text("Theme: dark")
    assert page.evaluate(background) == dark


def test_less_motion_means_none(view: View) -> None:
    times = "document.getAnimations().map((one) => one.effect.getComputedTiming().endTime)"
    moving = view("search", reduced_motion="no-preference").evaluate(times)
    assert len(moving) > 10 and max(moving) <= 5_000, "what a facet is moves, and is said in five seconds"
    page = view("search", reduced_motion="reduce")
    assert page.evaluate(times) == []
    assert page.evaluate("getComputedStyle(document.querySelector('.results')).transitionDuration") in ("0s", "")

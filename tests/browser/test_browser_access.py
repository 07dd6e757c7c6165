"""Keyboard, focus, themes, reduced motion."""

from collections.abc import Callable

from asking import open_view, settled
from playwright.sync_api import Page, expect

View = Callable[..., Page]


def test_search_works_with_the_keyboard_alone(view: View) -> None:
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


def test_a_new_view_gets_focus_and_title(view: View) -> None:
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


def test_reduced_motion_stops_animations(view: View) -> None:
    times = "document.getAnimations().map((one) => one.effect.getComputedTiming().endTime)"
    moving = view("search", reduced_motion="no-preference").evaluate(times)
    assert len(moving) > 10 and max(moving) <= 5_000, "what a facet is moves, and is said in five seconds"
    page = view("search", reduced_motion="reduce")
    assert page.evaluate(times) == []
    assert page.evaluate("getComputedStyle(document.querySelector('.results')).transitionDuration") in ("0s", "")

"""Actions on the page that several tests use."""

from playwright.sync_api import Page

# Text tools with their first example; those without one are sent as they are.
TOOLS = {
    "similarity": "A tram, a railway",
    "facets": "Plants, pianos, taxes",
    "summary": "The octopus",
    "relations": "Said, denied, asked",
    "papers": "A parser",
    "diagnose": "",
}
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}


def example(page: Page, label: str) -> None:
    """Presses an example and waits for its results."""
    page.get_by_role("group", name="Examples").get_by_role("button", name=label).click()
    settled(page)


def ask(page: Page, button: str = "Ask") -> None:
    """Sends the form and waits for the results."""
    page.locator("form").get_by_role("button", name=button, exact=True).click()
    settled(page)


def settled(page: Page) -> None:
    """Waits for the results or an error."""
    page.locator("form[aria-busy=false]").wait_for()
    page.locator(".results > *").first.wait_for()


def open_view(page: Page, name: str) -> None:
    if name == "status":
        page.get_by_role("button", name="Server").click()
    elif name in TOOLS:
        page.get_by_role("link", name="Text tools").click()
    page.locator(f'nav a[href="#{name}"]:visible, .menu a[href="#{name}"]:visible').last.click()
    page.locator(f".view.{name} h1").first.wait_for()


def enter_key(page: Page, key: str) -> None:
    page.get_by_role("button", name="Server").click()
    page.locator("#key-button").click()
    page.get_by_role("textbox", name="Key").fill(key)
    page.get_by_role("button", name="Use this key").click()

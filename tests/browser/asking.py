"""What people do on the page, in the words of the page."""

from playwright.sync_api import Page

__all__ = ["ask", "example", "settled"]


def example(page: Page, label: str) -> None:
    """Presses an example and waits for its answer."""
    page.get_by_role("group", name="Examples").get_by_role("button", name=label).click()
    settled(page)


def ask(page: Page, button: str) -> None:
    """Sends the form and waits for the answer."""
    page.locator("form").get_by_role("button", name=button, exact=True).click()
    settled(page)


def settled(page: Page) -> None:
    """Waits until the question is answered, or refused."""
    page.locator("form[aria-busy=false]").wait_for()
    page.locator(".results > *").first.wait_for()

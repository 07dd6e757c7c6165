"""Every view with the shipped models and the bundled samples."""

import re
from collections.abc import Callable

from asking import ask, example, settled
from playwright.sync_api import Page, expect

View = Callable[..., Page]


def test_search_shows_passage_words_confidence_and_highlights_facets(view: View) -> None:
    page = view("search")
    example(page, "how vaccines protect against disease")
    hit = page.locator(".hit").first
    expect(hit.get_by_role("heading")).to_have_text("Vaccine")
    expect(hit.locator("mark.answer").first).to_contain_text("A vaccine is a biological preparation")
    expect(hit.locator(".word").first).to_have_text("vaccine")
    expect(hit.locator(".meter")).to_contain_text(re.compile(r"\d+ % sure"))
    expect(page.locator("main [role=status]")).to_contain_text("every document compared")
    facet = hit.get_by_role("button", name=re.compile("^Matching facets"))
    expect(page.locator(".glow")).to_have_count(0)
    facet.click()
    expect(facet).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".glow").first).to_be_visible()
    facet.click()
    page.mouse.move(0, 0)
    page.get_by_label("Question").focus()
    expect(page.locator(".glow")).to_have_count(0)


def test_the_combination_and_the_mode_are_sent_and_the_address_has_the_question(view: View) -> None:
    page = view("search")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or "") if "Search" in request.url else None)
    page.get_by_label("Must answer").select_option("All parts")
    page.get_by_label("Ranked by").select_option("Words only")
    example(page, "two questions in one")
    assert '"combine":"FACET_COMBINATION_SUM"' in asked[-1]
    expect(page.locator(".hit .facet")).to_have_count(0)
    expect(page.locator("main [role=status]")).to_contain_text("lexical")
    page.goto("about:blank")
    page.go_back()
    settled(page)
    expect(page.get_by_label("Question")).to_have_value("How do vaccines work? Which insects make honey?")
    expect(page.get_by_label("Ranked by")).to_have_value("SEARCH_MODE_LEXICAL")


def test_an_unanswered_question_hides_the_closest_documents(view: View) -> None:
    page = view("search")
    example(page, "nothing here answers this")
    expect(page.get_by_role("heading", name="Nothing relevant")).to_be_visible()
    expect(page.locator(".hit").first).to_be_hidden()
    page.get_by_text("Show the closest documents anyway").click()
    expect(page.locator(".hit").first).to_be_visible()


def test_a_payload_value_becomes_a_filter(view: View) -> None:
    page = view("search")
    page.get_by_label("Question").fill("animals that live in Australia")
    ask(page, "Search")
    page.get_by_role("button", name="topic: animals, only these documents").first.click()
    settled(page)
    assert set(page.locator(".hit .chip", has_text="topic:").all_text_contents()) == {"topic: animals"}
    expect(page.get_by_label("Value")).to_have_value("animals")
    page.get_by_label("Field").fill("num_words")
    page.get_by_label("Test").select_option("is at least")
    page.get_by_label("Value").fill("70")
    ask(page, "Search")
    counts = page.locator(".hit .chip", has_text="num_words:").all_text_contents()
    assert counts and all(int(chip.split()[-1]) >= 70 for chip in counts), "compared as numbers"
    page.get_by_role("button", name="Remove this filter").click()
    ask(page, "Search")
    expect(page.locator(".filter")).to_have_count(0)


def test_explore_next_suggests_topics_with_answers(view: View) -> None:
    page = view("search")
    example(page, "games played with a ball")
    page.get_by_role("button", name="Explore next").first.click()
    topic = page.get_by_role("group", name="What may come next").get_by_role("button").first
    words = topic.inner_text()
    topic.click()
    expect(page.get_by_label("Question")).to_have_value(words)
    settled(page)
    expect(page.locator(".hit h2").first).to_be_visible()


def test_a_facet_highlights_the_words_it_attends_to(view: View) -> None:
    page = view("facets")
    example(page, "Plants, pianos, taxes")
    cards = page.locator(".facet-card")
    assert cards.count() >= 3
    taxes = cards.filter(has=page.locator(".facet-words", has_text=re.compile("^tax"))).first
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
    expect(page.locator("main [role=status]")).to_contain_text("alignment by facets-passages")
    matches = page.locator(".match")
    assert matches.count() >= 3
    expect(page.locator(".bond")).to_have_count(matches.count())
    matches.nth(1).hover()
    assert page.locator(".passage .glow").count() >= 2
    example(page, "Open, closed")
    expect(page.get_by_label("Differences")).to_contain_text("open / closed differ (antonym)")
    expect(page.locator(".verdict")).to_contain_text("They contradict each other.")


def test_a_summary_shows_coverage_and_positions(view: View) -> None:
    page = view("summary")
    example(page, "The octopus")
    for part in (".sentence", "mark.picked", ".coverage .part"):
        expect(page.locator(part)).to_have_count(3)
    expect(page.get_by_role("heading", name=re.compile(r"\d+ % covered"))).to_be_visible()
    sentences = page.locator(".sentence span:nth-child(2)").all_inner_texts()
    assert sentences == page.locator("mark.picked").all_inner_texts()


def test_relations_are_drawn_with_direction_and_evidence(view: View) -> None:
    page = view("relations")
    example(page, "Marie Curie")
    row = page.locator("li.relation", has_text="birthPlace")
    expect(row.locator("strong").first).to_have_text("Marie Curie")
    expect(row.locator("strong").nth(1)).to_have_text("Warsaw")
    expect(row.locator(".meter")).to_contain_text("% sure")
    expect(page.locator(".arc-label", has_text="birthPlace")).to_be_visible()
    expect(page.locator(".arrow")).to_have_count(page.locator("li.relation").count())
    row.locator("button").hover()
    expect(page.locator(".arrow.chosen")).to_have_count(1)
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
    expect(page.locator(".hit").first).to_contain_text("Best facet")
    expect(page.locator(".hit").first).to_contain_text("Closest work")
    page.get_by_label("Exclude").fill(first)
    ask(page, "Recommend")
    expect(page.locator(".hit h2", has_text=re.compile(f"^{re.escape(first)}$"))).to_have_count(0)
    example(page, "Who would cite it")
    titles = page.locator(".hit h2").all_inner_texts()
    assert len(titles) == 10 and any(re.search("(?i)sense", title) for title in titles)


def test_the_map_names_themes_and_is_read_with_the_keyboard(view: View) -> None:
    page = view("map")
    example(page, "The samples")
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


def test_diagnosis_measures_the_recall_of_the_index(view: View) -> None:
    page = view("diagnose")
    example(page, "The samples, five questions")
    expect(page.get_by_role("heading", name="Recall of the index")).to_be_visible()
    expect(page.locator("main")).to_contain_text("finds 100 % of the hits")

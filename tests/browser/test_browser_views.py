"""Every view with the shipped models and the bundled samples."""

import re
from collections.abc import Callable

from asking import ask, example, settled
from playwright.sync_api import Page, expect

View = Callable[..., Page]


def test_search_shows_passage_words_and_confidence(view: View) -> None:
    page = view("search")
    example(page, "how vaccines protect against disease")
    hit = page.locator(".hit").first
    expect(hit.get_by_role("heading")).to_have_text("Vaccine")
    expect(hit.locator("mark.answer").first).to_contain_text("A vaccine is a biological preparation")
    expect(hit.locator(".word").first).to_have_text("vaccine")
    expect(hit.locator(".meter")).to_contain_text(re.compile(r"\d+ % sure"))
    expect(page.locator("main [role=status]")).to_contain_text("every document compared")


def test_a_matching_facet_highlights_its_part_of_the_passage(view: View) -> None:
    page = view("search")
    example(page, "how vaccines protect against disease")
    facet = page.locator(".hit").first.get_by_role("button", name=re.compile("^Matching facets"))
    expect(page.locator(".glow")).to_have_count(0)
    facet.click()
    expect(facet).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".glow").first).to_be_visible()
    facet.click()
    page.mouse.move(0, 0)
    page.get_by_label("Question").focus()
    expect(page.locator(".glow")).to_have_count(0)


def test_a_double_question_finds_both_answers(view: View) -> None:
    page = view("search")
    example(page, "two questions in one")
    titles = page.locator(".hit h2").all_inner_texts()
    assert {"Vaccine", "Bee"} & set(titles[:4]) and len(titles) >= 2


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
    chips = page.locator(".hit .chip", has_text="topic:")
    assert set(chips.all_text_contents()) == {"topic: animals"}
    expect(page.get_by_label("Value")).to_have_value("animals")
    page.get_by_role("button", name="Remove this filter").click()
    ask(page, "Search")
    expect(page.locator(".filter")).to_have_count(0)


def test_numbers_are_compared_as_numbers(view: View) -> None:
    page = view("search")
    page.get_by_label("Question").fill("animals")
    page.get_by_role("button", name="Add a filter").click()
    page.get_by_label("Field").fill("num_words")
    page.get_by_label("Test").select_option("is at least")
    page.get_by_label("Value").fill("70")
    ask(page, "Search")
    counts = page.locator(".hit .chip", has_text="num_words:").all_text_contents()
    assert counts and all(int(chip.split()[-1]) >= 70 for chip in counts)


def test_words_alone_rank_without_facets(view: View) -> None:
    page = view("search")
    page.get_by_label("Question").fill("photosynthesis")
    page.get_by_label("Ranked by").select_option("Words only")
    ask(page, "Search")
    expect(page.locator(".hit h2").first).to_have_text("Photosynthesis")
    expect(page.locator(".hit .facet")).to_have_count(0)
    expect(page.locator("main [role=status]")).to_contain_text("lexical")


def test_the_address_has_the_question(view: View) -> None:
    page = view("search")
    example(page, "games played with a ball")
    first = page.locator(".hit h2").first.inner_text()
    page.goto("about:blank")
    page.go_back()
    settled(page)
    expect(page.get_by_label("Question")).to_have_value("games played with a ball")
    expect(page.locator(".hit h2").first).to_have_text(first)


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


def test_marks_are_correct_after_emoji(view: View) -> None:
    page = view("facets")
    page.get_by_label("Text", exact=True).fill("\U0001f419\U0001f419 The octopus has three hearts.")
    ask(page, "Show facets")
    tokens = page.locator(".passage.large .token").all_inner_texts()
    assert {"octopus", "hearts"} <= set(tokens)
    expect(page.locator(".passage.large")).to_have_text("\U0001f419\U0001f419 The octopus has three hearts.")


def test_similarity_shows_score_method_and_a_line_per_match(view: View) -> None:
    page = view("similarity")
    example(page, "A tram, a railway")
    expect(page.locator(".big")).to_have_text(re.compile(r"\d+ %"))
    expect(page.locator("main [role=status]")).to_contain_text("alignment by facets-passages")
    meetings = page.locator(".match")
    assert meetings.count() >= 3
    expect(page.locator(".lines path")).to_have_count(meetings.count())
    meetings.nth(1).hover()
    expect(page.locator(".lines path.chosen")).to_have_count(1)
    assert page.locator(".side .glow").count() >= 2


def test_contradicting_texts_show_their_differences(view: View) -> None:
    page = view("similarity")
    example(page, "Open, closed")
    expect(page.get_by_label("Differences")).to_contain_text("open / closed differ (antonym)")
    expect(page.locator(".verdict")).to_contain_text("They contradict each other.")


def test_every_similarity_method_works(view: View) -> None:
    page = view("similarity")
    example(page, "A dog, a puppy")
    methods = page.get_by_label("Method")
    for value in methods.locator("option").evaluate_all("options => options.map((option) => option.value)"):
        methods.select_option(value)
        ask(page, "Compare")
        expect(page.locator(".big")).to_have_text(re.compile(r"\d"))


def test_a_summary_shows_coverage_and_positions(view: View) -> None:
    page = view("summary")
    example(page, "The octopus")
    expect(page.locator(".sentence")).to_have_count(3)
    expect(page.locator("mark.picked")).to_have_count(3)
    expect(page.locator(".coverage .part")).to_have_count(3)
    expect(page.get_by_role("heading", name=re.compile(r"\d+ % covered"))).to_be_visible()
    assert (
        page.locator(".sentence span:nth-child(2)").all_inner_texts() == page.locator("mark.picked").all_inner_texts()
    )


def test_relations_are_drawn_with_direction_and_evidence(view: View) -> None:
    page = view("relations")
    example(page, "Marie Curie")
    card = page.locator("li.relation", has_text="birthPlace")
    expect(card.locator("strong").first).to_have_text("Marie Curie")
    expect(card.locator("strong").nth(1)).to_have_text("Warsaw")
    expect(card.locator(".meter")).to_contain_text("% sure")
    expect(page.locator(".arc-label", has_text="birthPlace")).to_be_visible()
    expect(page.locator(".arrow-head")).to_have_count(page.locator(".arc").count())
    card.get_by_text("Why").click()
    expect(card.get_by_text("$ARG1 was born in $ARG2").first).to_be_visible()


def test_denied_and_asked_relations_are_listed_separately(view: View) -> None:
    page = view("relations")
    example(page, "Said, denied, asked")
    unsaid = page.get_by_role("region", name="Mentioned, but not asserted")
    expect(unsaid).to_contain_text("Ludwig Wittgenstein, Berlin: negated")
    expect(unsaid).to_contain_text("Freddie Mercury, Zanzibar: questioned")


def test_papers_recommend_authors_with_reasons_and_exclusions(view: View) -> None:
    page = view("papers")
    example(page, "A parser")
    expect(page.locator(".hit")).to_have_count(10)
    first = page.locator(".hit h2").first.inner_text()
    expect(page.locator(".hit .reason").first).to_contain_text("Best facet")
    expect(page.locator(".hit").first).to_contain_text("Closest work")
    page.get_by_label("Exclude").fill(first)
    ask(page, "Recommend")
    expect(page.locator(".hit h2", has_text=re.compile(f"^{re.escape(first)}$"))).to_have_count(0)


def test_citing_papers_have_titles(view: View) -> None:
    page = view("papers")
    example(page, "Who would cite it")
    titles = page.locator(".hit h2").all_inner_texts()
    assert len(titles) == 10 and any(re.search("(?i)sense", title) for title in titles)


def test_map_draws_all_documents_and_names_its_themes(view: View) -> None:
    page = view("map")
    example(page, "The samples")
    expect(page.locator("main [role=status]")).to_have_text("184 documents drawn, by t-SNE")
    themes = page.get_by_role("group", name="Themes").get_by_role("button")
    expect(themes).to_have_count(8)
    assert not [name for name in themes.all_inner_texts() if name.startswith("theme ")]


def test_map_is_read_with_the_keyboard(view: View) -> None:
    page = view("map")
    example(page, "The samples")
    page.locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    heading = page.locator(".reading h2")
    expect(heading).to_be_visible()
    before = heading.inner_text()
    page.keyboard.press("ArrowRight")
    expect(heading).not_to_have_text(before)
    page.keyboard.press("+")
    page.keyboard.press("0")


def test_selecting_an_area_lists_its_documents(view: View) -> None:
    page = view("map")
    example(page, "The samples")
    page.get_by_role("button", name="Select an area").click()
    box = page.locator("canvas").bounding_box()
    assert box is not None
    corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=5)
    page.mouse.up()
    expect(page.locator(".reading h2")).to_have_text(re.compile(r"^1\d\d documents$"))
    page.locator(".reading button").first.click()
    expect(page.locator(".reading .passage")).to_be_visible()


def test_explore_next_suggests_topics_with_answers(view: View) -> None:
    page = view("search")
    example(page, "games played with a ball")
    page.get_by_role("button", name="Explore next").first.click()
    topics = page.get_by_role("group", name="What may come next").get_by_role("button")
    expect(topics.first).to_be_visible()
    words = topics.all_inner_texts()
    topics.first.click()
    expect(page.get_by_label("Question")).to_have_value(words[0])
    settled(page)
    for topic in words:
        page.get_by_label("Question").fill(topic)
        ask(page, "Search")
        expect(page.locator(".hit h2").first).to_be_visible()

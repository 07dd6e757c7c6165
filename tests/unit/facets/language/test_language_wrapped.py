"""Ten texts of ten kinds as people have them, each at four widths: sentences come back whole, lines stay lines."""

import textwrap
from collections.abc import Callable

import pytest

from facets.language.reading import read
from facets.language.sentences import sentences_of

WIDTHS = (40, 60, 72, 100)
LEAST_WHOLE = 0.95  # of the sentences of each case

LICENCE = [
    [
        "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated "
        "documentation files, to deal in the Software without restriction, including without limitation the rights to "
        "use, copy, modify, merge, publish and sell copies of the Software.",
        "The above copyright notice and this permission notice shall be included in all copies of the Software.",
    ],
    [
        "The software is provided as is, without warranty of any kind, express or implied, including but not limited "
        "to the warranties of merchantability and fitness for a particular purpose.",
        "In no event shall the authors be liable for any claim, damages or other liability arising from the use of it.",
    ],
]
MAIL = [
    [
        "We have looked at the crane again and are now fairly sure of what has happened there.",
        "The accident in the harbour of Oslo, which the papers had placed in June, happened on the fourth of May 1962.",
    ],
    [
        "Could you please send us the report of Mr. Hansen before Friday so that we may compare the two accounts?",
        "I would be grateful for the photographs too.",
    ],
]
PAPER = [
    [
        "Sentence encoders map a text to one vector, which cannot say that a text is about several things at once.",
        "We predict the centres of clusters of the words that are likely to occur beside the text instead.",
        "Experiments on Wikipedia and on the Stanford corpus show that more than one vector helps most for long texts.",
    ],
    [
        "Our method needs no labels.",
        "It was trained for 2.5 days on one machine with Dr. Lee's corpus of 80 million sentences.",
    ],
]
MINUTES = [
    [
        "The meeting was opened by Ms. Okafor at nine, with seven members present and two excused for illness.",
        "The board approved the budget of 2.4 million for next year after a short discussion of the costs of heating.",
    ],
    ["The next meeting takes place on the third of March in the library of the school.", "Nobody asked for the floor."],
]
ITEMS = [
    "Boil the potatoes in salted water until a knife goes through them without any effort at all",
    "Cut the onions into rings as thin as you can and let them fry slowly in butter until they are golden",
    "Mix everything with the cream, put it into a dish and leave it in the oven for forty minutes",
]
POEM = [
    "The fog comes down the hill at night",
    "Like someone looking for a door",
    "It leaves before the morning light",
    "And no one sees it any more",
]
LOG = [
    "2024-03-01 10:00:01 INFO server started on port 8080",
    "2024-03-01 10:00:07 WARN disk is nearly full, only two gigabytes are left on it",
    "2024-03-01 10:00:09 ERROR could not write the index of the collection",
    "2024-03-01 10:02:12 INFO retry in five seconds",
]
ARGUMENTS = {
    "path": "where the archive lies, as a name or as a path object that the caller has checked",
    "depth": "how many folders deep the walk goes before it gives up and reports what it has",
}


def wrapped(paragraphs: list[list[str]], width: int, prefix: str = "", first: str = "") -> str:
    return "\n\n".join(
        textwrap.fill(" ".join(own), width, initial_indent=prefix + first, subsequent_indent=prefix)
        for own in paragraphs
    )


def flat(paragraphs: list[list[str]]) -> list[str]:
    return [sentence for own in paragraphs for sentence in own]


def licence(width: int) -> tuple[str, list[str]]:
    return "MIT License\n\n" + wrapped(LICENCE, width), ["MIT License", *flat(LICENCE)]


def docstring(width: int) -> tuple[str, list[str]]:
    entries = [f"{name}: {text}" for name, text in ARGUMENTS.items()]
    hanging = [textwrap.fill(e, width, initial_indent="    ", subsequent_indent="        ") for e in entries]
    text = "Walks an archive.\n\n" + wrapped(PAPER[:1], width) + "\n\nArgs:\n" + "\n".join(hanging)
    return text, ["Walks an archive.", *PAPER[0], "Args:", *entries]


def mail(width: int) -> tuple[str, list[str]]:
    head = ["From: Ann Berg <ann@example.org>", "Subject: The crane in Oslo", "Dear Bo,"]
    quoted = wrapped([LICENCE[1]], width, prefix="> ")
    end = ["Best wishes", "Ann"]
    text = (
        "\n".join(head[:2])
        + "\n\n"
        + head[2]
        + "\n\n"
        + wrapped(MAIL, width)
        + "\n\n"
        + quoted
        + "\n\n"
        + "\n".join(end)
    )
    return text, [*head, *flat(MAIL), *LICENCE[1], *end]


def readme(width: int) -> tuple[str, list[str]]:
    items = [textwrap.fill(item, width, initial_indent="- ", subsequent_indent="  ") for item in ITEMS]
    code = ["```", "pip install cooking", "cook --help", "```"]
    text = "# Cooking\n\n" + wrapped(MINUTES, width) + "\n## Steps\n\n" + "\n".join(items) + "\n\n" + "\n".join(code)
    return text, ["Cooking", *flat(MINUTES), "Steps", *ITEMS, *code[1:-1]]


def pdf(width: int) -> tuple[str, list[str]]:
    paragraphs = [textwrap.fill(" ".join(own), width, initial_indent="   ") for own in PAPER]
    return "1 Introduction\n" + "\n".join(paragraphs), ["1 Introduction", *flat(PAPER)]


def minutes(width: int) -> tuple[str, list[str]]:
    present = ["Present:", "Ann Berg", "Bo Dahl", "Carl Eng"]
    first, second = (wrapped([own], width) for own in MINUTES)
    text = f"Minutes\n=======\n{first}\n\n" + "\n".join(present) + f"\n\n{second}"
    return text, ["Minutes", *MINUTES[0], *present, *MINUTES[1]]


def numbered(width: int) -> tuple[str, list[str]]:
    items = [f"{number}. {item}" for number, item in enumerate(ITEMS, start=1)]
    return "\n".join(textwrap.fill(item, width, subsequent_indent="   ") for item in items), ITEMS


def poem(width: int) -> tuple[str, list[str]]:
    return "\n".join(POEM) + "\n\n" + wrapped(MAIL, width), [*POEM, *flat(MAIL)]


def log(width: int) -> tuple[str, list[str]]:
    return wrapped(MINUTES, width) + "\n\n" + "\n".join(LOG), [*flat(MINUTES), *LOG]


def comments(width: int) -> tuple[str, list[str]]:
    code = ["total = count(rows)", "if total:", "    report(total)"]
    hashes, block = wrapped([PAPER[0]], width, prefix="# "), wrapped([MAIL[0]], width, prefix=" * ")
    text = f"{hashes}\n" + "\n".join(code) + f"\n\n/*\n{block}\n */"
    return text, [*PAPER[0], *(line.strip() for line in code), *MAIL[0]]


KINDS: list[Callable[[int], tuple[str, list[str]]]]
KINDS = [licence, docstring, mail, readme, pdf, minutes, numbered, poem, log, comments]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_sentences_of_wrapped_text_are_whole(kind: Callable[[int], tuple[str, list[str]]], width: int) -> None:
    text, expected = kind(width)
    sentences = sentences_of(text)
    assert all(sentence.text == text[sentence.start : sentence.end] for sentence in sentences)
    found = [sentence.said for sentence in sentences]
    missing = [sentence for sentence in expected if sentence not in found]
    assert len(missing) <= (1 - LEAST_WHOLE) * len(expected), (missing, found)


UNWRAPPED = [
    "Ann\nBo\nCarl",
    "Name: Ann\nBorn: 1962\nLives in: Oslo",
    "Bread\nButter and two kinds of cheese\nSome of the good apples from the market",
    "How do I reset my password\nWhy was my order sent to the old address\nCan I pay by invoice",
    "\n".join(POEM),
    "\n".join(LOG),
    "total = count(rows)\nprint(total)\nreturn_value = total",
    "name\tcity\nAnn\tOslo\nBo\tRome",
    "The crane fell in May\n\nand nobody was hurt",
    "Oslo\nOslo is the capital of Norway and lies at the end of a fjord that is a hundred kilometres long",
    "A long paragraph on one line " * 8 + "\nand another one that begins in lower case " * 6,
]


@pytest.mark.parametrize("text", UNWRAPPED)
def test_lines_of_text_that_is_not_wrapped_stay_lines(text: str) -> None:
    assert [s.text for s in sentences_of(text)] == [line.strip() for line in text.split("\n") if line.strip()]


def test_a_title_right_above_a_short_paragraph_does_not_unwrap_it() -> None:
    text = (
        "Item 3: Zebra crossing\nThe town has refused a zebra crossing in front of the school. The parents\n"
        "resolved to collect signatures, and Mr Boone will write to the newspaper.\n"
    )
    assert sentences_of(text)[-1].said.startswith("The parents resolved to collect signatures")


def test_a_line_that_begins_with_code_goes_on() -> None:
    text = (
        "Version 2.3 did not have the problem. The colour seems to be set in\n"
        "`editor.css`, where the last line says so for all themes of the editor.\n"
    )
    assert sentences_of(text)[-1].said.startswith("The colour seems to be set in editor.css, where")


def test_a_line_that_ends_with_what_ends_nothing_goes_on_in_the_shortest_text() -> None:
    cell = "The crane tipped over on the fourth of\nNovember and damaged the fence. Nobody was hurt."
    assert read(cell).text == cell.replace("\n", " ")
    for kept in ("salt and\nPepper", "what we saw in the north of the\n\nNorth Sea"):
        assert "\n" in read(kept).text  # a border

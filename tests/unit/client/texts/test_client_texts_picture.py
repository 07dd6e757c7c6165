"""Pictures of explanations: who stands opposite whom, the layout, the two file formats, the command."""

import importlib.util
import itertools
import json
import xml.etree.ElementTree as ElementTree

import pytest
from facets_client.core.types import AttendedToken, FacetMatch, FacetWords, NearestWord, TokenAttention, TokenStats
from facets_client.texts.picture import explanation_picture, pair_picture, paired_rows, plot
from facets_client.texts.results import Explanation
from rich.cells import cell_len

NAMESPACE = "{http://www.w3.org/2000/svg}"
needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="the extra 'plot' is not installed"
)
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def explained(text: str, *, attention=None, num_facets=3, word="dog", num_words=3) -> Explanation:
    tokens, start = [], 0
    for number, part in enumerate(text.split()):
        start = text.index(part, start)
        weight = attention[number] if attention else 1.0
        tokens.append(TokenAttention(part, start, start + len(part), weight, part != "qwxz"))
        start += len(part)
    words = (NearestWord(word, 0.5),) * num_words
    facets = tuple(FacetWords(k, words, (AttendedToken(0, 0.4),)) for k in range(num_facets))
    return Explanation(tuple(tokens), facets, TokenStats(len(tokens), 0, False, len(tokens)))


def met(first: int, second: int, contribution: float, cosine: float = 0.5) -> FacetMatch:
    return FacetMatch(first, second, cosine, contribution, (), ())


def test_rows_put_the_largest_meetings_side_by_side():
    rows = paired_rows([met(0, 2, 0.5), met(1, 2, 0.3), met(1, 0, 0.2)], 3, 3)
    assert [(row.first_facet, row.second_facet) for row in rows] == [(0, 2), (1, 0), (2, 1)]
    assert [row.match is not None for row in rows] == [True, True, False]


@pytest.mark.parametrize(("num_first", "num_second"), [(1, 3), (3, 1), (2, 2), (0, 2)])
def test_every_facet_has_one_row(num_first, num_second):
    rows = paired_rows([met(0, 0, 1.0)] if num_first else [], num_first, num_second)
    assert sorted(row.first_facet for row in rows if row.first_facet is not None) == list(range(num_first))
    assert sorted(row.second_facet for row in rows if row.second_facet is not None) == list(range(num_second))


def axes_of(picture):
    (axes,) = picture.axes
    return axes


def strengths(picture) -> list[float]:
    return [patch.get_alpha() / 0.6 for patch in axes_of(picture).patches]


@needs_matplotlib
def test_shades_grow_with_attention_on_one_scale_for_both_texts():
    pair = (explained("a longer text", attention=[0.0, 1.0, 2.0]), explained("short one", attention=[4.0, 1.0]))
    both = pair_picture(("a longer text", "short one"), pair, [])
    assert strengths(both) == pytest.approx([0.0, 0.25, 0.5, 1.0, 0.25])
    assert strengths(explanation_picture("a longer text", pair[0])) == pytest.approx([0.0, 0.5, 1.0])


@needs_matplotlib
def test_each_meeting_is_a_line_with_its_cosine_from_facet_to_facet():
    pair = (explained("one"), explained("two"))
    picture = pair_picture(("one", "two"), pair, [met(0, 1, 0.6, 0.91), met(2, 2, 0.39, -0.2), met(1, 1, 0.001, 0.3)])
    strong, weak = axes_of(picture).lines
    assert (strong.get_alpha(), weak.get_alpha()) == pytest.approx((0.85, 0.35 + 0.5 * 0.65))
    texts = [label.get_text() for label in axes_of(picture).texts]
    assert "0.91" in texts and "-0.20" in texts and "0.30" not in texts
    assert strong.get_ydata()[0] == strong.get_ydata()[1]  # side by side
    assert strong.get_xdata()[0] < strong.get_xdata()[1]


@needs_matplotlib
@pytest.mark.parametrize(
    "text", ["word", "\u732b \u732b\u732b " * 40, "x" * 500, "a <b> & 'c' \"d\" $5", "\u05e9\u05dc\u05d5\u05dd e\u0301"]
)
def test_nothing_leaves_the_picture_or_covers_its_neighbour(text):
    item = explained(text, word="z" * 30, num_words=9)
    for picture in (explanation_picture(text, item), pair_picture((text, text), (item, item), [met(0, 0, 1.0)])):
        (left, right), (bottom, top) = axes_of(picture).get_xlim(), axes_of(picture).get_ylim()
        lines = {}
        for label in axes_of(picture).texts:
            x, y = label.get_position()
            assert left <= x and x + cell_len(label.get_text()) <= right
            assert top <= y <= bottom
            lines.setdefault(y, []).append((x, x + cell_len(label.get_text())))
        for spans in lines.values():
            spans.sort()
            assert all(end <= start + 1e-6 for (_, end), (start, _) in itertools.pairwise(spans))


def drawn_lines(root) -> int:
    return sum(group.get("id", "").startswith("line2d_") for group in root.iter(f"{NAMESPACE}g"))


@needs_matplotlib
def test_svg_is_well_formed_escaped_and_always_the_same():
    text = "a <b> & \x00\x1b[2J ]]> \ud7ff $5"
    picture = pair_picture((text, text), (explained(text, word="<&>"), explained(text)), [met(0, 1, 1.0)])
    document = plot(picture, "svg")
    root = ElementTree.fromstring(document)
    assert root.tag == f"{NAMESPACE}svg"
    shown = [element.text for element in root.iter(f"{NAMESPACE}text")]
    assert "<b>" in shown and any("<&>" in part for part in shown)
    assert drawn_lines(root) == 1
    assert b"\x1b" not in document
    targets = [value for element in root.iter() for name, value in element.attrib.items() if name.endswith("href")]
    assert all(target.startswith("#") for target in targets)  # nothing is loaded from outside
    assert document == plot(picture, "svg")


@needs_matplotlib
@pytest.mark.filterwarnings("error")
def test_a_character_without_a_glyph_is_no_warning():
    for form in ("svg", "png"):
        assert plot(explanation_picture("\u732b", explained("\u732b")), form)


@needs_matplotlib
def test_png_is_a_picture_and_always_the_same():
    picture = pair_picture(("a $b_$", "two"), (explained("a $b_$"), explained("two")), [met(0, 1, 1.0)])
    painted = plot(picture, "png")
    assert painted.startswith(PNG_SIGNATURE)
    width = int.from_bytes(painted[16:20], "big")
    assert width == pytest.approx(2 * 72 * picture.get_size_inches()[0], abs=2)
    assert plot(picture, "png") == painted


@needs_matplotlib
def test_png_refuses_what_is_too_large():
    item = explained("one", num_facets=100, num_words=100)
    with pytest.raises(ValueError, match="SVG"):
        plot(explanation_picture("one", item), "png")


def test_command_shows_two_texts_side_by_side(facets):
    out = facets("explain", "--pair", "a longer text", "short", "--num-words", "2").stdout
    assert "longer/9" in out and "short/8" in out  # on one scale
    assert "1  dog 0.90, dog 0.90" in out
    assert "-- 0.75 --" in out  # facet 1 met facet 2
    found = json.loads(facets("--json", "explain", "--pair", "one", "two").stdout)
    assert found["texts"] == ["one", "two"] and len(found["explanations"]) == 2
    assert (found["matches"][0]["first_facet"], found["matches"][0]["second_facet"]) == (1, 2)


@needs_matplotlib
def test_command_writes_pictures(facets, tmp_path):
    assert "wrote pair.svg" in facets("explain", "--pair", "one", "two", "--out", "pair.svg").stderr
    root = ElementTree.parse(tmp_path / "pair.svg").getroot()
    assert drawn_lines(root) == 1
    assert json.loads(facets("--json", "explain", "one", "--out", "one.svg").stdout) == {"file": "one.svg"}
    assert ElementTree.parse(tmp_path / "one.svg").getroot().tag == f"{NAMESPACE}svg"
    facets("explain", "one", "--out", "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(PNG_SIGNATURE)


@pytest.mark.parametrize("file", ["one.svg", "one.png"])
def test_a_missing_extra_is_one_line(facets, tmp_path, monkeypatch, file):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (line,) = facets("--target", "127.0.0.1:1", "explain", "one", "--out", file, code=2).stderr.splitlines()
    assert "multifacet-client[plot]" in line  # before any server is asked
    assert not (tmp_path / file).exists()


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["one", "two", "--out", "x.svg"], "--out expects one text"),
        (["one", "--pair"], "--pair expects two texts, got 1"),
        (["one", "two", "three", "--pair"], "got 3"),
        (["one", "--out", "x.gif"], ".svg or .png"),
        pytest.param(["one", "--out", "nowhere/x.svg"], "No such file", marks=needs_matplotlib),
        (["one", " ", "--pair"], "texts[1]"),
    ],
)
def test_wrong_use_is_one_sentence(facets, args, sentence):
    done = facets("explain", *args, code=2)
    assert sentence in done.stderr and done.stdout == ""

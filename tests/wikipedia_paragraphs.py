"""Four thousand paragraphs of Wikipedia and forty plain questions to them, written before any system had answered.

The articles are 400 of the 2,500 best known (by how many others name them), drawn with seed 11; of each the first ten
paragraphs of 200 to 1,500 characters, without the title. Run as a program it writes a folder in BEIR's layout:

    PYTHONPATH=. python tests/wikipedia_paragraphs.py ../shared/data/corpus runs/answers/wikipedia
"""

import json
import lzma
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toy_retrieval import write_beir

ANSWERS = Path(__file__).resolve().parent / "answers"
CORPUS = Path(__file__).resolve().parents[2] / "shared" / "data" / "corpus"

_PARAGRAPHS = 10
_SHORTEST, _LONGEST = 200, 1500


@dataclass(frozen=True, slots=True)
class Question:
    """What a stranger asks.

    Attributes:
        text: The question.
        articles: Titles of articles with a paragraph that answers it; one of theirs should come first.
    """

    text: str
    articles: tuple[str, ...]


def questions() -> list[Question]:
    """The forty, in the order of the file."""
    lines = (ANSWERS / "wikipedia_questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [Question(record["question"], tuple(record["articles"])) for record in map(json.loads, lines)]


def unanswered() -> list[tuple[str, str]]:
    """Queries that nothing there answers, and their kinds: unanswered, stop words, emoji, gibberish."""
    lines = (ANSWERS / "unanswered_queries.jsonl").read_text(encoding="utf-8").splitlines()
    return [(record["query"], record["kind"]) for record in map(json.loads, lines)]


def paragraphs(corpus: Path = CORPUS) -> dict[str, list[str]]:
    """Ten paragraphs of each article, by title."""
    wanted = set((ANSWERS / "wikipedia_articles.txt").read_text(encoding="utf-8").splitlines())
    found: dict[str, list[str]] = {}
    for title, lines in _articles(sorted(corpus.glob("*.txt.xz"))):
        if title in wanted and title not in found:
            found[title] = [line for line in lines if _SHORTEST <= len(line) <= _LONGEST][:_PARAGRAPHS]
    return {title: found[title] for title in sorted(found)}


def paragraph_id(title: str, number: int) -> str:
    """Id of a paragraph, numbers from 0."""
    return f"{title.replace(' ', '_')}/{number}"


def title_of(key: str) -> str:
    """Title of the article whose paragraph has this id."""
    return key.rpartition("/")[0].replace("_", " ")


def num_right(rankings: Sequence[Sequence[str]]) -> int:
    """How many of the questions have a paragraph of a right article first."""
    return sum(
        bool(ranking) and title_of(ranking[0]) in question.articles
        for question, ranking in zip(questions(), rankings, strict=True)
    )


def write_folder(corpus: Path, folder: Path) -> Path:
    """The paragraphs, the questions, and every paragraph of a right article as relevant, in BEIR's layout."""
    texts = paragraphs(corpus)
    documents = {paragraph_id(title, row): ("", text) for title in texts for row, text in enumerate(texts[title])}
    asked = questions()
    judged: Mapping[str, Mapping[str, int]] = {
        str(number): {key: 1 for key in documents if title_of(key) in question.articles}
        for number, question in enumerate(asked)
    }
    queries = {str(number): question.text for number, question in enumerate(asked)}
    return write_beir(folder, documents=documents, queries=queries, judgements=judged)


def _articles(shards: Sequence[Path]) -> Iterator[tuple[str, list[str]]]:
    for shard in shards:
        title, lines = "", list[str]()
        with lzma.open(shard, "rt", encoding="utf-8") as file:
            for line in map(str.rstrip, file):
                if line.startswith("# "):
                    yield title, lines
                    title, lines = line.removeprefix("# "), []
                elif line:
                    lines.append(line)
        yield title, lines


if __name__ == "__main__":
    write_folder(Path(sys.argv[1]), Path(sys.argv[2]))

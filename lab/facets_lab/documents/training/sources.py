"""Raw texts as groups of neighbouring passages: those of one article are hard to tell apart, and that is learned."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from facets.errors import InvalidInputError
from facets.language.files import read_lines
from facets_lab.documents.training.config import PassageDataConfig, SourceConfig
from facets_lab.training.corpus import expand_files

__all__ = ["Passage", "read_groups"]

_TITLE = "# "


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage and what is asked about it.

    Attributes:
        text: The passage.
        questions: What it answers; may be empty.
    """

    text: str
    questions: tuple[str, ...] = ()


def read_groups(config: PassageDataConfig) -> list[list[Passage]]:
    """Groups of all sources in random order, the same one for the same seed.

    Raises:
        ConfigError: A pattern matches no file, or a file cannot be opened.
        InvalidInputError: A line cannot be read; file and line are named.
    """
    random_choice = random.Random(config.seed)
    groups: list[list[Passage]] = []
    for source in config.sources:
        ours = list(_READERS[source.kind](source, config.max_neighbours, random_choice))
        random_choice.shuffle(ours)
        count = 0
        for group in ours:
            if count >= source.max_passages:
                break
            groups.append(group)
            count += len(group)
    random_choice.shuffle(groups)
    return groups[: config.max_groups]


def _wikipedia(source: SourceConfig, size: int, random_choice: random.Random) -> Iterator[list[Passage]]:
    for title, paragraphs in _articles(source):
        fitting = [text for text in paragraphs if _fits(text, source)]
        if len(fitting) >= 2:
            first = random_choice.randrange(max(1, len(fitting) - size + 1))
            has_title = random_choice.random() < source.with_title
            yield [Passage(f"{title}. {text}" if has_title else text) for text in fitting[first : first + size]]


def _articles(source: SourceConfig) -> Iterator[tuple[str, list[str]]]:
    title, paragraphs = "", list[str]()
    for line in chain.from_iterable(map(read_lines, expand_files(source.files))):
        if line.startswith(_TITLE):
            yield title, paragraphs
            title, paragraphs = line.removeprefix(_TITLE), []
        elif line:
            paragraphs.append(line)
    yield title, paragraphs


def _questions(source: SourceConfig, size: int, _: random.Random) -> Iterator[list[Passage]]:
    asked: dict[str, list[str]] = {}
    for line in _json_lines(source, ("query", "positive")):
        if _fits(line["positive"], source):
            asked.setdefault(line["positive"], []).append(line["query"])
    passages = [Passage(text, tuple(dict.fromkeys(questions))) for text, questions in asked.items()]
    yield from _in_groups(passages, size)


def _papers(source: SourceConfig, size: int, random_choice: random.Random) -> Iterator[list[Passage]]:
    def read() -> Iterator[Passage]:
        for line in _json_lines(source, ("title", "abstract")):
            title, abstract = line["title"], line["abstract"]
            if not _fits(abstract, source):
                continue
            if random_choice.random() < source.with_title:  # else the title is what is asked: it must not be read
                yield Passage(f"{title}. {abstract}")
            else:
                yield Passage(abstract, (title,))

    yield from _in_groups(list(read()), size)


def _in_groups(passages: list[Passage], size: int) -> Iterator[list[Passage]]:
    for start in range(0, len(passages), size):
        yield passages[start : start + size]


def _json_lines(source: SourceConfig, names: tuple[str, ...]) -> Iterator[dict[str, str]]:
    for path in expand_files(source.files):
        for number, text in enumerate(read_lines(path), start=1):
            yield _strings(text, names, path, number)


def _strings(text: str, names: tuple[str, ...], path: Path, number: int) -> dict[str, str]:
    try:
        line = json.loads(text)
        found = {name: line[name].strip() for name in names}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        expected = f"expected a JSON object with text under {' and '.join(names)}"
        raise InvalidInputError(f"{path}, line {number}: {expected}, got {text[:80]!r}") from error
    return found


def _fits(text: str, source: SourceConfig) -> bool:
    return source.min_words <= len(text.split()) <= source.max_words


_READERS: dict[str, Callable[[SourceConfig, int, random.Random], Iterator[list[Passage]]]] = {
    "wikipedia": _wikipedia,
    "questions": _questions,
    "papers": _papers,
}

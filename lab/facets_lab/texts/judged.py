"""Summaries judged by rules: what a reader would object to in the three sentences that a system picks of his text.

A file holds texts as people have them (mails, read-me files, minutes ...), each with what a summary must name, what it
must never hold, and how many of its key facts it must have. A text of items alone has no prose to summarize, and the
right answer is to say so.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

from pydantic import ConfigDict, Field

from facets.errors import InvalidInputError
from facets.language.sentences import sentences_of
from facets.model.contract import TextModel
from facets.texts.coverage import CoverageConfig
from facets.texts.summarization import summarize
from facets_lab.evaluation.comparison import EvaluationTask
from facets_lab.evaluation.files import Record, read_as
from facets_lab.evaluation.statistics import Metrics
from facets_lab.texts.systems import RankingSummarizer, load_text_model, summarization_baselines

NUM_SENTENCES = 3
RULES = ("names_subject", "resolved", "whole", "no_markup", "nothing_else", "key_facts", "honest")
"""What is asked of a summary; it is good when all hold.

- ``names_subject``: a sentence of it names what the text is about.
- ``resolved``: a sentence that begins with a pronoun, a demonstrative or a connective has the one before it beside it,
  or names the subject itself in its first words.
- ``whole``: every sentence begins and ends as one; it is no heading, and no line was cut off.
- ``no_markup``: no heading, table row, fence, badge, rule, prompt or bare mark of an item.
- ``nothing_else``: no greeting, farewell, signature, navigation, licence or item that the text's own list names.
- ``key_facts``: as many of the key facts as the text asks for.
- ``honest``: a text without prose is called one, and no other.
"""
_MARKUP = re.compile(
    r"^\s*(?:#{1,6}\s|[-*+]\s|\d{1,2}[.)]\s|\||`{3}|\$ |>>>|>|!\[|\[!|<\w|\* \[|[-=*_]{3,})|\]\(https?://[^)]*badge|\|---"
)
_ENDS = re.compile(r"[.!?][\"')*]*$")
# What stands before a whole sentence: nothing, the end of another one, a border, a mark, a speaker.
_BEGINS = re.compile(r"(?:^|[.!?:][\"')*]*\s+|\n[ \t]*\n\s*|\n\s*(?:[-*]|\d+[.)])\s+|\n.{1,40}\n)$")
_SPEAKER = re.compile(r"^(?:\[[\d:]+\]\s*)?(?:[A-Z][\w.]*(?: [A-Z][\w.]*){0,2}|[QA]):\s+")
_FEW_WORDS = 2
_OPENER = re.compile(
    r"^[\"'(*_-]*(?:it|its|they|their|them|he|his|him|she|her|this|that|these|those|such|however|but|therefore"
    r"|otherwise|instead|also|moreover|furthermore|then|so|thus|and|or)\b(?P<next>(?:\W+\w+){0,2})",
    re.IGNORECASE,
)


_Texts = Annotated[tuple[str, ...], Field(strict=False)]  # JSON has lists


class JudgedText(Record):
    """A text with what its summary is judged by.

    Attributes:
        kind: What it is: a mail, minutes, ...
        name: Its own.
        text: As it stands in a file.
        subject: Expression for what it is about.
        key_facts: Expressions; ``num_key_facts`` of them must be found.
        num_key_facts: At least.
        never: What must not be in the summary.
        has_prose: Whether there is any prose.
    """

    model_config = ConfigDict(extra="forbid")

    kind: str
    name: str
    text: str
    subject: str
    key_facts: _Texts
    num_key_facts: int
    never: _Texts
    has_prose: bool


@dataclass(frozen=True, slots=True)
class Picked:
    """A summary: its sentences as they stand in the text, and whether the system says that the text has prose."""

    sentences: tuple[str, ...]
    has_prose: bool = True


class Picker(Protocol):
    """Summarizes raw texts."""

    @property
    def name(self) -> str:
        """Its key in the report."""
        ...

    def pick(self, text: str) -> Picked:
        """A summary of at most ``NUM_SENTENCES`` sentences."""
        ...


@dataclass(frozen=True, slots=True)
class FacetPicker:
    """``facets.texts.summarize``."""

    name: str
    model: TextModel

    def pick(self, text: str) -> Picked:
        """See ``Picker``."""
        (summary,) = summarize(self.model, [text], num_sentences=NUM_SENTENCES)
        return Picked(tuple(sentence.text for sentence in summary.sentences), summary.has_prose)


@dataclass(frozen=True, slots=True)
class RankingPicker:
    """The best sentences of a ranking, which knows of sentences alone."""

    ranking: RankingSummarizer

    @property
    def name(self) -> str:
        """See ``Picker``."""
        return self.ranking.name

    def pick(self, text: str) -> Picked:
        """See ``Picker``."""
        sentences = [sentence.text for sentence in sentences_of(text)]
        return Picked(tuple(sentences[place] for place in sorted(self.ranking.rank(sentences)[:NUM_SENTENCES])))


def read_judged(path: Path) -> tuple[JudgedText, ...]:
    """Reads JSON lines with the fields of ``JudgedText``.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: A line has other fields, or there is none; the message names file and line.
    """
    texts = tuple(text for _, text in read_as(JudgedText, path))
    if not texts:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    return texts


def judge(picked: Picked, case: JudgedText) -> dict[str, bool]:
    """Whether each of ``RULES`` holds; where there is no prose, and that is said, only ``honest`` is asked.

    Example:
        >>> case = JudgedText(kind="article", name="owl", text="The owl hunts at night. It hears well.", subject="owl",
        ...     key_facts=("night", "hear"), num_key_facts=1, never=(), has_prose=True)
        >>> [name for name, holds in judge(Picked(("It hears well.",)), case).items() if not holds]
        ['names_subject', 'resolved']
    """
    honest = picked.has_prose == case.has_prose
    if not case.has_prose:
        return {rule: honest for rule in RULES}
    said = " ".join(" ".join(picked.sentences).split())
    found = sum(re.search(fact, said, re.IGNORECASE) is not None for fact in case.key_facts)
    return {
        "names_subject": re.search(case.subject, said) is not None,
        "resolved": not _dangling(picked, case),
        "whole": all(_is_whole(sentence, case.text) for sentence in picked.sentences),
        "no_markup": not any(_MARKUP.search(sentence) for sentence in picked.sentences),
        "nothing_else": not any(" ".join(what.split()) in said for what in case.never),
        "key_facts": found >= case.num_key_facts,
        "honest": honest,
    }


def _dangling(picked: Picked, case: JudgedText) -> list[str]:
    """Sentences that begin with what stands for something before them, which is not beside them."""
    return [
        sentence
        for sentence in picked.sentences
        if _depends(sentence, case.subject)
        and not any(before in " ".join(picked.sentences) for before in _before(sentence, case.text))
    ]


def _is_whole(sentence: str, text: str) -> bool:
    return bool(_ENDS.search(sentence) and _BEGINS.search(text[: text.find(sentence)]))


def _depends(sentence: str, subject: str) -> bool:
    opener = _OPENER.match(_SPEAKER.sub("", sentence))
    return opener is not None and re.search(subject, opener["next"], re.IGNORECASE) is None


def _before(sentence: str, text: str) -> list[str]:
    """The sentence that stands before another one, however a system has cut it; a word or two are none."""
    before = [one.text for one in sentences_of(text[: text.find(sentence)])]
    return [said for said in before if len(said.split()) > _FEW_WORDS][-1:]


def evaluate_judged(system: Picker, texts: Sequence[JudgedText], *, num_resamples: int = 0) -> dict[str, Metrics]:
    """How many summaries are good, and for how many each rule holds.

    Args:
        system: What summarizes.
        texts: The texts.
        num_resamples: Not used: a count of so few says no more with an interval.
    """
    judged = [judge(system.pick(case.text), case) for case in texts]
    metrics: Metrics = {"good": float(sum(all(rules.values()) for rules in judged))}
    return {"rules": metrics | {rule: float(sum(rules[rule] for rules in judged)) for rule in RULES}}


def pickers(names_or_paths: Sequence[str], baselines: bool) -> Iterator[Picker]:
    """Facet models; the first sentences, and rankings by graph and by the centroid of MiniLM."""
    models = [load_text_model(name) for name in names_or_paths or (None,)]
    yield from (FacetPicker(model.name, model) for model in models)
    if baselines:
        for summarizer in summarization_baselines(models[0], CoverageConfig()):
            if isinstance(summarizer, RankingSummarizer):
                yield RankingPicker(summarizer)


JUDGED_SUMMARIES = EvaluationTask(read=read_judged, num_rows=len, systems=pickers, evaluate=evaluate_judged)

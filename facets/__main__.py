"""Encodes documents in a separate process, for bulk loads: ``python -m facets``.

The process reads pickles from standard input and writes one pickle for each to standard output: first the model, the
searched fields and the settings of an encoder (see ``facets.load``), then lists of documents, until the input ends. It
trusts the process that started it.
"""

import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from facets.documents.encoders import ModelEncoder, described
from facets.documents.fields import DEFAULT_SEARCH_FIELDS, check_search_fields
from facets.documents.ingest import DocumentReader
from facets.documents.records import CollectionModel
from facets.documents.types import Document, JsonValue
from facets.errors import FacetsError
from facets.model import load
from facets.model.passage_model import PassageModel

Sent: TypeAlias = tuple[str, str, Mapping[str, JsonValue]]  # id, text, payload
Answer: TypeAlias = dict[str, object] | str


def encode(model: PassageModel, documents: Sequence[Sent], search_fields: Mapping[str, float]) -> list[Answer]:
    """Encodes documents as a server does before it stores them.

    ``search_fields``: fields of the payload that are encoded with the text. Returns for each document the encoded
    fields of :class:`facets.documents.Document`, or what is wrong with it.
    """
    collection = CollectionModel(**described(model), search_fields=search_fields, language="")
    reader = DocumentReader(collection=collection, encoder=ModelEncoder(model))
    batch = reader.prepare([Document(id=id, text=text, payload=payload) for id, text, payload in documents])
    answers: dict[int, Answer] = {position: _answer(document) for position, document in reader.encoded(batch)}
    for rejection in batch.rejections:
        _, _, *path = rejection.error.path
        answers[rejection.position] = str(rejection.error.at(path))
    return [answers[position] for position in range(len(documents))]


def _answer(document: Document) -> dict[str, object]:
    stats = document.token_stats
    return {
        "facet_embeddings": document.facet_embeddings.astype("float32", copy=False),
        "facet_spans": document.facet_spans,
        "part_facets": list(document.part_facets) if document.parts else [],
        "num_tokens": stats and stats.num_tokens_in_text,
        "num_read": stats and stats.num_tokens,
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

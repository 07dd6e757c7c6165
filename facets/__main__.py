"""A worker of bulk loads: encodes documents as a server would that stores them.

``python -m facets`` reads pickles from standard input and answers each on standard output: the model and the fields
that are searched first, then documents, some at a time. Whoever starts it trusts it and is trusted; the end of the
input is its end.
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

_TEXTS_AT_A_TIME = 128  # read by the model
Sent: TypeAlias = tuple[str, str, Mapping[str, JsonValue]]  # id, text, payload
Answer: TypeAlias = dict[str, object] | str


def encode(model: PassageModel, documents: Sequence[Sent], search_fields: Mapping[str, float]) -> list[Answer]:
    """What the model makes of each document, or why it cannot read it.

    Args:
        model: Of passages.
        documents: Id, text and payload of each.
        search_fields: Fields of the payload that are read with the text.

    Returns:
        Of each document the fields of :class:`facets.documents.Document` that tell what was read, or the rule that its
        text breaks.
    """
    parts = [split_text(text) for _, text, _ in documents]
    said = [
        searched_parts(text, payload, search_fields, parts=own)
        for (_, text, payload), own in zip(documents, parts, strict=True)
    ]
    problems = [model.problem(searched_parts(text, payload, search_fields)[0].read) for _, text, payload in documents]
    wanted = [
        part.read
        for one, problem in zip(said, problems, strict=True)
        for part in one
        if not (problem or model.problem(part.read))
    ]
    read, nothing = _readings(model, wanted), EncodedText.of_nothing(model.num_facets, model.dim)
    answers: list[Answer] = []
    for document, own, one, problem in zip(documents, parts, said, problems, strict=True):
        if problem:
            answers.append(problem)
            continue
        encoded = [nothing if model.problem(part.read) else next(read) for part in one]
        answers.append(_answer(from_encoded(*document, parts=own, said=one, encoded=encoded)))
    return answers


def _readings(model: PassageModel, texts: Sequence[str]) -> Iterator[EncodedText]:
    for start in range(0, len(texts), _TEXTS_AT_A_TIME):
        found = model.encode_passages(texts[start : start + _TEXTS_AT_A_TIME])
        for row in range(len(found.facets)):
            yield EncodedText(*found.document(row), int(found.num_tokens[row]), int(found.num_read[row]))


def _answer(made: Document) -> dict[str, object]:
    facets = made.facet_embeddings.astype("float32", copy=False)
    several = made.part_facets if made.parts else ()
    return {
        "facet_embeddings": facets,
        "facet_spans": made.facet_spans,
        "part_facets": list(several),
        "num_tokens": made.num_tokens,
        "num_read": made.num_read,
    }


def main() -> None:
    """Answers until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer

    def say(answer: object) -> None:
        pickle.dump(answer, answers, protocol=5)
        answers.flush()

    name, search_fields = pickle.load(sys.stdin.buffer)
    try:
        model = load(name or None, PassageModel)
        fields = check_search_fields(DEFAULT_SEARCH_FIELDS if search_fields is None else search_fields)
    except (FacetsError, ImportError) as error:
        return say(str(error))
    about = {key: getattr(model, key) for key in ("name", "revision", "space", "num_facets", "dim")}
    say(about | {"search_fields": fields})
    while True:
        try:
            documents = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        say(encode(model, documents, fields))


if __name__ == "__main__":
    main()

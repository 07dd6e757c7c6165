"""Encodes documents without a server: library processes, each with a model.

The client never imports the library. A worker runs ``python -m facets``, which reads documents and answers with their
facets. A process that dies is started again and repeats its work.
"""

import importlib.util
import pickle
import queue
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from facets_proto.codec import from_message

from facets_client.core.extras import INSTALL_LOCAL
from facets_client.documents.messages import DocumentMessage
from facets_client.generated.types import Document, Span, TokenStats
from facets_client.load.source import InputError

_LIBRARY = "facets"
_MAX_ATTEMPTS = 3  # for the same work


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedBy:
    """The model that encodes, and the payload fields that it reads along with the text."""

    name: str
    revision: str
    space: str
    num_facets: int
    dim: int
    search_fields: Mapping[str, float]


class Workers:
    """Library processes, each with a model, started by the first questions. Thread-safe.

    ``settings``: of ``facets.load`` for encoders, ``allow_downloads`` and ``trust_remote_code``.
    """

    def __init__(
        self, number: int, model: str, search_fields: Mapping[str, float] | None, settings: Mapping[str, bool]
    ) -> None:
        self._model = model, search_fields, settings
        self._described: Any = None
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes] | None] = queue.SimpleQueue()  # None: to be started
        for _ in range(number):
            self._idle.put(None)
        self._started: list[subprocess.Popen[bytes]] = []
        self._is_closed = False

    def describe(self) -> EncodedBy:
        """Model and fields of the workers; InputError when the model cannot be loaded."""
        described = self._ask([])
        if isinstance(described, str):
            raise InputError(described)
        return EncodedBy(**described)

    def encode(self, messages: Sequence[DocumentMessage]) -> list[Document | str]:
        """The encoded documents; for one that cannot be encoded, what is wrong."""
        documents = [from_message(message, Document) for message in messages]
        answers = self._ask([(document.id, document.text, dict(document.payload)) for document in documents])
        return [
            answer if isinstance(answer, str) else _encoded_document(document, answer)
            for document, answer in zip(documents, answers, strict=True)
        ]

    def close(self) -> None:
        """Ends all processes; a waiting caller gets an InputError."""
        self._is_closed = True
        for process in self._started:
            process.kill()
            process.wait()

    def _ask(self, documents: list[tuple[str, str, dict[str, object]]]) -> Any:
        """The answers of an idle process to ids, texts and payloads; without any, the model or why it has none."""
        process, code = self._idle.get(), None
        try:
            for _ in range(_MAX_ATTEMPTS):
                if self._is_closed:
                    break
                try:
                    if process is None:
                        process = self._start()
                    return _exchange(process, documents) if documents else self._described
                except (EOFError, OSError, ValueError, pickle.UnpicklingError):
                    if process is not None:
                        process.kill()
                        code, process = process.wait(), None
        finally:
            self._idle.put(process)
        problem = f"the library ended {_MAX_ATTEMPTS} times while it encoded the same documents, at last with code"
        raise InputError(f"{problem} {code}", hint="is there enough memory? try fewer --workers")

    def _start(self) -> subprocess.Popen[bytes]:
        if not all(map(importlib.util.find_spec, (_LIBRARY, "torch"))):
            raise ImportError(f"encoding needs the library and its models on this machine: {INSTALL_LOCAL}")
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", _LIBRARY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the command, which ends its workers
        )
        self._started.append(process)
        self._described = _exchange(process, self._model)
        return process


def _exchange(process: subprocess.Popen[bytes], question: object) -> Any:
    assert process.stdin is not None and process.stdout is not None
    pickle.dump(question, process.stdin, protocol=5)
    process.stdin.flush()
    return pickle.load(process.stdout)


def _encoded_document(document: Document, answer: Mapping[str, Any]) -> Document:
    num_read, num_tokens = answer["num_read"], answer["num_tokens"]
    return replace(
        document,
        facet_embeddings=answer["facet_embeddings"],
        facet_spans=[Span(start, end) if end > start else None for start, end in answer["facet_spans"].tolist()],
        part_facets=answer["part_facets"],
        token_stats=TokenStats(num_read, 0, num_read < num_tokens, num_tokens),
    )

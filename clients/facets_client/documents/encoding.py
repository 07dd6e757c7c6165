"""Encodes documents without a server: library processes, each with a model, on this machine or a Ray cluster.

The client never imports the library. A worker runs ``python -m facets``, which reads documents and answers with their
facets. A process that dies is started again and repeats its work.
"""

import importlib.util
import os
import pickle
import queue
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from facets_proto.codec import from_message

from facets_client.core.extras import INSTALL_LOCAL, require_extra
from facets_client.documents.messages import DocumentMessage
from facets_client.generated.types import Document, Span, TokenStats
from facets_client.load.source import InputError

_LIBRARY = "facets"
_MAX_ATTEMPTS = 3  # for the same work
_CONNECT_TIMEOUT_S = 10.0

SearchFields: TypeAlias = Mapping[str, float] | None
Sent: TypeAlias = tuple[str, str, Mapping[str, object]]  # id, text and payload of a document


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedBy:
    """The model that encodes, and the payload fields that it reads along with the text."""

    name: str
    revision: str
    space: str
    num_facets: int
    dim: int
    search_fields: Mapping[str, float]


class Worker:
    """A library process with a model, started by the first question. Serves one caller at a time.

    ``settings``: of ``facets.load`` for encoders, ``allow_downloads`` and ``trust_remote_code``.
    """

    def __init__(self, model: str, search_fields: SearchFields, settings: Mapping[str, bool]) -> None:
        self._model = model, search_fields, settings
        self._process: subprocess.Popen[bytes] | None = None
        self._described: Any = None
        self._is_closed = False

    def ask(self, documents: Sequence[Sent]) -> Any:
        """The answers to documents; without documents the model and its fields, or why it cannot be loaded."""
        code: int | None = None
        for _ in range(_MAX_ATTEMPTS):
            if self._is_closed:
                break
            try:
                if self._process is None:
                    self._process = _start_library()
                    self._described = _exchange(self._process, self._model)
                return _exchange(self._process, documents) if documents else self._described
            except (EOFError, OSError, ValueError, pickle.UnpicklingError):
                code = self._end()
        self._end()
        message = (
            f"the library ended {_MAX_ATTEMPTS} times while it encoded the same documents, at last with code {code}"
        )
        raise InputError(message, hint="is there enough memory? try fewer --workers")

    def close(self) -> None:
        """Ends the process; a waiting caller gets an InputError."""
        self._is_closed = True
        self._end()

    def _end(self) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        return process.wait()


def _start_library() -> subprocess.Popen[bytes]:
    if not all(map(importlib.util.find_spec, (_LIBRARY, "torch"))):
        raise ImportError(f"encoding needs the library and its models on this machine: {INSTALL_LOCAL}")
    return subprocess.Popen(
        [sys.executable, "-P", "-m", _LIBRARY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the command, which ends its workers
    )


def _exchange(process: subprocess.Popen[bytes], question: object) -> Any:
    assert process.stdin is not None and process.stdout is not None
    pickle.dump(question, process.stdin, protocol=5)
    process.stdin.flush()
    return pickle.load(process.stdout)


class RayWorker:
    """A worker in a Ray actor, on any machine with a free processor; Ray starts a lost one again."""

    def __init__(self, model: str, search_fields: SearchFields, settings: Mapping[str, bool]) -> None:
        import ray

        self._ray = ray
        actor = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(Worker)
        self._actor = actor.remote(model, search_fields, settings)

    def ask(self, documents: Sequence[Sent]) -> Any:
        """See :meth:`Worker.ask`."""
        try:
            return self._ray.get(self._actor.ask.remote(documents))
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except self._ray.exceptions.RayError as error:
            raise InputError(f"Ray lost a worker: {error}") from error

    def close(self) -> None:
        """Ends the actor; this closes the process's standard input and so ends the process."""
        self._ray.kill(self._actor)


def connect_to_ray(address: str) -> int:
    """Connects to a Ray cluster (``auto`` finds one, ``local`` starts one) and returns its number of processors."""
    require_extra("ray", "ray")
    import ray

    paths = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    try:
        if address not in ("local", "auto"):  # Ray itself retries for minutes
            host, _, port = address.removeprefix("ray://").rpartition(":")
            socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()
        ray.init(
            address=None if address == "local" else address,
            runtime_env={"env_vars": paths},
            log_to_driver=False,
            configure_logging=False,
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"--ray {address}: no cluster answers: {error}") from error
    return int(ray.cluster_resources().get("CPU", 1))


class Workers:
    """Several workers. Thread-safe."""

    def __init__(self, start: Callable[[], Worker | RayWorker], number: int) -> None:
        self._workers = [start() for _ in range(number)]
        self._idle: queue.SimpleQueue[Worker | RayWorker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def describe(self) -> EncodedBy:
        """Model and fields of the workers; InputError when the model cannot be loaded."""
        described = self._ask(())
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
        """Ends all workers."""
        for worker in self._workers:
            worker.close()

    def _ask(self, documents: Sequence[Sent]) -> Any:
        worker = self._idle.get()
        try:
            return worker.ask(documents)
        finally:
            self._idle.put(worker)


def _encoded_document(document: Document, answer: Mapping[str, Any]) -> Document:
    num_read, num_tokens = answer["num_read"], answer["num_tokens"]
    return replace(
        document,
        facet_embeddings=answer["facet_embeddings"],
        facet_spans=[Span(start, end) if end > start else None for start, end in answer["facet_spans"].tolist()],
        part_facets=answer["part_facets"],
        token_stats=TokenStats(num_read, 0, num_read < num_tokens, num_tokens),
    )

"""Encodes documents without a server: processes of the library with a model each, here or in a cluster of Ray.

The client never imports the library. A worker is ``python -m facets``, which reads documents and answers with their
facets. A worker that dies is started again and repeats its work.
"""

import importlib.util
import pickle
import queue
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from facets_client.core.extras import require_extra
from facets_client.documents.messages import DocumentMessage, to_document
from facets_client.generated.types import Document, Span, TokenStats
from facets_client.load.source import InputError

_LIBRARY = "facets"
_INSTALL_LIBRARY = "pip install 'multifacet[model,models]'"
_MAX_ATTEMPTS = 3  # at the same work, each with a worker of its own
_CONNECT_TIMEOUT_S = 10.0

SearchFields: TypeAlias = Mapping[str, float] | None
Sent: TypeAlias = tuple[str, str, Mapping[str, object]]  # id, text and payload of a document
Answer: TypeAlias = Mapping[str, Any] | str  # the fields of an encoded document, or the rule that its text breaks


class WorkerLostError(RuntimeError):
    """A worker ended during its work: killed, or out of memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedBy:
    """The model that encodes, and the payload fields that it reads with the text."""

    name: str
    revision: str
    space: str
    num_facets: int
    dim: int
    search_fields: Mapping[str, float]


class Worker:
    """A process of the library with a model. Serves one caller at a time.

    Args:
        model: Name or folder; empty: the default model of passages.
        search_fields: Payload fields that are read with the text and their weights; None: those of a collection.
    """

    def __init__(self, model: str, search_fields: SearchFields) -> None:
        if importlib.util.find_spec(_LIBRARY) is None:
            raise ImportError(f"encoding needs the library and its models on this machine: {_INSTALL_LIBRARY}")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _LIBRARY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the command, which ends its workers
        )
        self._encoded_by = self._ask((model, search_fields))

    def describe(self) -> EncodedBy:
        """What it encodes with. Raises InputError if the model cannot be loaded."""
        if isinstance(self._encoded_by, str):
            raise InputError(self._encoded_by)
        return EncodedBy(**self._encoded_by)

    def encode(self, documents: Sequence[Sent]) -> list[Answer]:
        """What the model reads of each document."""
        answers: list[Answer] = self._ask(documents)
        return answers

    def close(self) -> None:
        """Ends the process; a waiting caller gets WorkerLostError."""
        self._process.kill()
        self._process.wait()

    def _ask(self, question: object) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            pickle.dump(question, stdin, protocol=5)
            stdin.flush()
            return pickle.load(stdout)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
            raise WorkerLostError(f"a worker ended with code {self._process.poll()}") from error


class RayWorker:
    """A worker in an actor of Ray, on any machine with a free processor."""

    def __init__(self, model: str, search_fields: SearchFields) -> None:
        import ray

        self._ray = ray
        self._actor = ray.remote(num_cpus=1)(Worker).remote(model, search_fields)

    def describe(self) -> EncodedBy:
        """See :meth:`Worker.describe`."""
        described: EncodedBy = self._result(self._actor.describe.remote())
        return described

    def encode(self, documents: Sequence[Sent]) -> list[Answer]:
        """See :meth:`Worker.encode`."""
        answers: list[Answer] = self._result(self._actor.encode.remote(documents))
        return answers

    def close(self) -> None:
        """Ends the actor, and with its standard input the process."""
        self._ray.kill(self._actor)

    def _result(self, reference: object) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except self._ray.exceptions.RayError as error:
            raise WorkerLostError(f"an actor was lost: {type(error).__name__}") from error


def connect_to_ray(address: str, environment: Mapping[str, str]) -> int:
    """Connects to a cluster of Ray and returns the number of its processors.

    Args:
        address: Address of the cluster; ``auto`` finds one, ``local`` starts one on this machine.
        environment: Environment of the process; workers get its PYTHONPATH.

    Raises:
        ImportError: Ray is not installed.
        InputError: No cluster answers there.
    """
    require_extra("ray", "ray")
    import ray

    paths = {name: environment[name] for name in ("PYTHONPATH",) if name in environment}
    try:
        if address not in ("local", "auto"):  # Ray itself tries for minutes
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
    """Several workers, each started when it is needed and again when it was lost. Thread-safe.

    Args:
        start: Starts a worker.
        number: How many.
    """

    def __init__(self, start: Callable[[], Worker | RayWorker], number: int) -> None:
        self._start = start
        self.number = number
        self._idle: queue.SimpleQueue[Worker | RayWorker | None] = queue.SimpleQueue()  # None: not started
        for _ in range(number):
            self._idle.put(None)
        self._started: list[Worker | RayWorker] = []
        self._is_closed = False

    def describe(self) -> EncodedBy:
        """What the workers encode with."""
        described: EncodedBy = self._with_worker(lambda worker: worker.describe())
        return described

    def encode(self, messages: Sequence[DocumentMessage]) -> list[Document | str]:
        """The documents as the model reads them; in place of one that it cannot read, the rule that its text breaks.

        Raises:
            InputError: Workers were lost again and again.
        """
        documents = list(map(to_document, messages))
        sent = [(document.id, document.text, dict(document.payload)) for document in documents]
        answers = self._with_worker(lambda worker: worker.encode(sent))
        return [
            answer if isinstance(answer, str) else _encoded_document(document, answer)
            for document, answer in zip(documents, answers, strict=True)
        ]

    def close(self) -> None:
        """Ends all workers."""
        self._is_closed = True
        for worker in list(self._started):
            worker.close()

    def _with_worker(self, work: Callable[[Worker | RayWorker], Any]) -> Any:
        worker = self._idle.get()
        try:
            for attempt in range(1, _MAX_ATTEMPTS + 1):
                try:
                    if worker is None:
                        worker = self._start()
                        self._started.append(worker)
                    if self._is_closed:  # while it was started
                        worker.close()
                    return work(worker)
                except WorkerLostError as error:
                    if worker is not None:
                        self._started.remove(worker)
                        worker.close()
                        worker = None
                    if self._is_closed or attempt == _MAX_ATTEMPTS:
                        message = f"{_MAX_ATTEMPTS} workers were lost one after the other, the last one: {error}"
                        raise InputError(message, hint="is there enough memory? try fewer --workers") from error
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

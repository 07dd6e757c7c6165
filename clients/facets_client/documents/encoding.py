"""Encodes documents without a server: library processes, each with a model, on this machine or a Ray cluster.

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
_MAX_ATTEMPTS = 3  # for the same work, each on a different worker
_CONNECT_TIMEOUT_S = 10.0

SearchFields: TypeAlias = Mapping[str, float] | None
Sent: TypeAlias = tuple[str, str, Mapping[str, object]]  # id, text and payload of a document
Answer: TypeAlias = Mapping[str, Any] | str  # the fields of an encoded document, or the rule that its text violates


class WorkerLostError(RuntimeError):
    """A worker ended during its work: killed, or out of memory."""


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
    """A library process with a model. Serves one caller at a time.

    Args:
        model: Name or folder; empty: the default passage model.
        search_fields: Payload fields read along with the text -> weights; None: the defaults of a collection.
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
        """Its model and fields. Raises InputError if the model cannot be loaded."""
        if isinstance(self._encoded_by, str):
            raise InputError(self._encoded_by)
        return EncodedBy(**self._encoded_by)

    def encode(self, documents: Sequence[Sent]) -> list[Answer]:
        """Encodes documents; one answer per document."""
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
    """A worker in a Ray actor, on any machine with a free processor."""

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
        """Ends the actor; this closes the process's standard input and so ends the process."""
        self._ray.kill(self._actor)

    def _result(self, reference: object) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except self._ray.exceptions.RayError as error:
            raise WorkerLostError(f"an actor was lost: {type(error).__name__}") from error


def connect_to_ray(address: str, environment: Mapping[str, str]) -> int:
    """Connects to a Ray cluster and returns its number of processors.

    Args:
        address: Address of the cluster; ``auto`` finds one, ``local`` starts one on this machine.
        environment: Environment of the process; workers get its PYTHONPATH.

    Raises:
        ImportError: Ray is not installed.
        InputError: No cluster answers at the address.
    """
    require_extra("ray", "ray")
    import ray

    paths = {name: environment[name] for name in ("PYTHONPATH",) if name in environment}
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
    """Several workers, started on demand and restarted when lost. Thread-safe.

    Args:
        start: Function that starts a worker.
        number: Number of workers.
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
        """Model and fields of the workers."""
        described: EncodedBy = self._with_worker(lambda worker: worker.describe())
        return described

    def encode(self, messages: Sequence[DocumentMessage]) -> list[Document | str]:
        """The encoded documents; for one that cannot be encoded, the rule that its text violates.

        Raises:
            InputError: Workers were lost repeatedly.
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
                    if self._is_closed:  # while the worker was starting
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

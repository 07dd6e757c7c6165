"""Documents encoded here or on many machines: processes of the library with a model each, kept busy by the bulk runner.

The client never imports the library: a worker is ``python -m facets``, which is sent documents and answers with their
facets. What is done with a batch depends on the batch alone, so a worker that dies costs its batch's time and no more.
"""

import hashlib
import importlib.util
import pickle
import queue
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeAlias

from facets_client.core.blocking import Background
from facets_client.core.extras import require_extra
from facets_client.documents.bulk import Reading, document_batches
from facets_client.documents.messages import DocumentMessage, to_document
from facets_client.generated.types import Document, Span, TokenStats
from facets_client.load.batches import Batch, Place
from facets_client.load.runner import BulkSettings, Settled
from facets_client.load.source import InputError

_LIBRARY = "facets"
INSTALL_LIBRARY = "pip install 'multifacet[model,models]'"
_ATTEMPTS = 3  # at one batch, each with a worker of its own
_CONNECT_TIMEOUT_S = 10.0
_AHEAD = 2  # batches of each worker under way: one is read while another one is written

Sent: TypeAlias = tuple[str, str, Mapping[str, object]]  # id, text, payload
Answer: TypeAlias = Mapping[str, Any] | str  # what was read of a document, or why nothing was


class WorkerLostError(RuntimeError):
    """A worker ended in the midst of its work: killed, or out of memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedBy:
    """What encodes: the model, and the fields that it reads with the text."""

    name: str
    revision: str
    space: str
    num_facets: int
    dim: int
    search_fields: Mapping[str, float]


class Worker:
    """A process of the library with a model; one caller at a time.

    Args:
        model: Name or folder; empty: the default model of passages.
        search_fields: Fields of payloads that are read with the text, and what their words weigh; None: those that a
            collection has unless it is said otherwise.
    """

    def __init__(self, model: str, search_fields: Mapping[str, float] | None) -> None:
        if importlib.util.find_spec(_LIBRARY) is None:
            raise ImportError(f"encoding needs the library and its models on this machine: {INSTALL_LIBRARY}")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _LIBRARY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the command, which ends its workers
        )
        self._made_by = self._ask((model, search_fields))

    def describe(self) -> EncodedBy:
        """What it encodes with.

        Raises:
            InputError: It cannot.
        """
        if isinstance(self._made_by, str):
            raise InputError(self._made_by)
        return EncodedBy(**self._made_by)

    def encode(self, documents: Sequence[Sent]) -> list[Answer]:
        """What the model makes of each document.

        Raises:
            WorkerLostError: The process has ended.
        """
        found: list[Answer] = self._ask(documents)
        return found

    def close(self) -> None:
        """Ends the process; whoever waits for it gets WorkerLostError."""
        self._process.kill()
        self._process.wait()

    def _ask(self, question: object) -> Any:
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None and answers is not None
        try:
            pickle.dump(question, asked, protocol=5)
            asked.flush()
            return pickle.load(answers)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
            raise WorkerLostError(f"a worker ended with code {self._process.poll()}") from error


class RayWorker:
    """A worker in an actor of Ray, on whichever machine has a processor for it."""

    def __init__(self, model: str, search_fields: Mapping[str, float] | None) -> None:
        import ray

        self._ray = ray
        self._actor = ray.remote(num_cpus=1)(Worker).remote(model, search_fields)

    def describe(self) -> EncodedBy:
        """See :meth:`Worker.describe`."""
        found: EncodedBy = self._got(self._actor.describe.remote())
        return found

    def encode(self, documents: Sequence[Sent]) -> list[Answer]:
        """See :meth:`Worker.encode`."""
        found: list[Answer] = self._got(self._actor.encode.remote(documents))
        return found

    def close(self) -> None:
        """Ends the actor, and with its standard input the process."""
        self._ray.kill(self._actor)

    def _got(self, promised: object) -> Any:
        try:
            return self._ray.get(promised)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except self._ray.exceptions.RayError as error:
            raise WorkerLostError(f"an actor was lost: {type(error).__name__}") from error


Encoder: TypeAlias = Worker | RayWorker


def connect_to_ray(address: str, environment: Mapping[str, str]) -> int:
    """Connects to a cluster of Ray.

    Args:
        address: Of the cluster; ``local``: one on this machine, which ends with the command.
        environment: Of the process; its paths are those of the workers.

    Returns:
        Its processors.

    Raises:
        ImportError: Ray is not installed.
        InputError: Nobody answers there.
    """
    require_extra("ray", "ray")
    import ray

    paths = {name: environment[name] for name in ("PYTHONPATH",) if name in environment}
    try:
        if address not in ("local", "auto"):  # Ray itself looks for minutes
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
    """Some workers, each started when it is needed and again when it was lost; thread-safe.

    Args:
        make: Starts one.
        number: How many.
    """

    def __init__(self, make: Callable[[], Encoder], number: int) -> None:
        self._make = make
        self.number = number
        self._idle: queue.SimpleQueue[Encoder | None] = queue.SimpleQueue()
        for _ in range(number):
            self._idle.put(None)
        self._open: list[Encoder] = []
        self._closed = False

    def describe(self) -> EncodedBy:
        """What they encode with; starts one."""
        return Background(partial(self._with_one, lambda worker: worker.describe())).result()

    def submit(self, documents: Sequence[Sent]) -> Background[list[Answer]]:
        """Has documents encoded.

        Raises, with the result:
            InputError: Workers were lost again and again.
        """
        return Background(partial(self._with_one, lambda worker: worker.encode(documents)))

    def close(self) -> None:
        """Ends all of them."""
        self._closed = True
        for worker in list(self._open):
            worker.close()

    def _with_one(self, work: Callable[[Encoder], Any]) -> Any:
        worker = self._idle.get()
        try:
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    if worker is None:
                        worker = self._make()
                        self._open.append(worker)
                    if self._closed:  # while it was started
                        worker.close()
                    return work(worker)
                except WorkerLostError as error:
                    lost, worker = worker, None
                    if lost is not None:
                        self._open.remove(lost)
                        lost.close()
                    if self._closed or attempt == _ATTEMPTS:
                        rule = f"{_ATTEMPTS} workers were lost one after the other, the last one: {error}"
                        raise InputError(rule, hint="is there memory for so many? try fewer --workers") from error
        finally:
            self._idle.put(worker)


class Parts(Protocol):
    """Where encoded documents are kept, a part a batch; see ``facets_client.adapters.encoded``."""

    def rejected_of(self, number: int, digest: str) -> list[tuple[int, str]] | None:
        """The documents without facets of a part that is there and is of this batch; None: it is not."""

    def write(
        self, number: int, documents: Sequence[Document], *, digest: str, rejected: list[tuple[int, str]]
    ) -> None:
        """Writes a part, whole or not at all."""

    def finish(self, num_parts: int) -> None:
        """Says that these parts are all."""


class EncodeTask:
    """A task of the bulk runner: encodes the documents of an input, a part a batch, in their order.

    A part that is there and was made of the same documents is left as it is.

    Args:
        workers: Encode.
        reading: The documents.
        parts: Where they are kept.
        settings: How to go through the input.
    """

    resume_token = ""

    def __init__(self, workers: Workers, reading: Reading, parts: Parts, *, settings: BulkSettings) -> None:
        self._workers = workers
        self._reading = reading
        self._parts = parts
        self._settings = settings
        self._num_sent = 0
        self._under_way: deque[tuple[int, str, Background[list[Answer]] | None]] = deque()
        self.max_under_way = _AHEAD * workers.number

    def read(self, place: Place) -> Iterator[Batch[DocumentMessage]]:
        """The batches, the same for the same input."""
        return document_batches(self._reading(place, 0), self._settings, place=place)

    def send(self, batch: Batch[DocumentMessage]) -> None:
        """Has a batch encoded, unless its part is there."""
        self._num_sent += 1
        digest = hashlib.sha256(
            b"".join(hashlib.sha256(item.SerializeToString(deterministic=True)).digest() for item in batch.items)
        ).hexdigest()
        there = self._parts.rejected_of(self._num_sent, digest) is not None
        sent = [(item.id, item.text, dict(to_document(item).payload)) for item in batch.items if not there]
        self._under_way.append((self._num_sent, digest, None if there else self._workers.submit(sent)))

    def settle(self, batch: Batch[DocumentMessage]) -> Settled:
        """Waits for the oldest batch and writes its part."""
        number, digest, promised = self._under_way.popleft()
        rejected = self._parts.rejected_of(number, digest) if promised is None else None
        if promised is not None:
            answers = promised.result()
            rejected = [(place, answer) for place, answer in enumerate(answers) if isinstance(answer, str)]
            pairs = zip(batch.items, answers, strict=True)
            documents = [_document(item, answer) for item, answer in pairs if not isinstance(answer, str)]
            self._parts.write(number, documents, digest=digest, rejected=rejected)
        found = [batch.entries[place].rejected("unreadable_text", f"text {rule}") for place, rule in rejected or ()]
        return Settled(found, {"num_kept": promised is None})

    def abandon(self) -> None:
        """Ends the workers; the parts that are there stay."""
        self._workers.close()

    def finish(self) -> None:
        """Says that all parts are there."""
        self._parts.finish(self._num_sent)


def _document(item: DocumentMessage, answer: Mapping[str, Any]) -> Document:
    read, of_all, spans = answer["num_read"], answer["num_tokens"], answer["facet_spans"]
    return replace(
        to_document(item),
        facet_embeddings=answer["facet_embeddings"],
        facet_spans=[Span(start, end) if end > start else None for start, end in spans.tolist()],
        part_facets=answer["part_facets"],
        token_stats=TokenStats(read, 0, read < of_all, of_all),
    )

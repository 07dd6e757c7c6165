"""Callers of a server that gets killed; each keeps a shadow: the states that the server may hold.

A caller makes one call after another. Before each call it notes what the server may hold if it is killed during the
call: the state before, the state after, and for a stream the state after each batch. Callers own different data, so
each shadow is checked separately; the register callers share theirs, see :mod:`benchmarks.faults.linearizability`.
"""

import copy
import random
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import grpc
import numpy as np
from facets_client.core.channel import rpc_of
from facets_proto.v1 import documents_pb2, documents_pb2_grpc, filters_pb2, papers_pb2, relations_pb2, texts_pb2
from facets_proto.values import array_from_message
from google.protobuf.message import Message
from toys import WORDS

from benchmarks.faults.linearizability import Access

MODELS = ("toy-a", "toy-b")  # sentence models
_TIMEOUT_S = 60.0
_NUM_IDS = 40  # ids per collection
_MIN_COSINE = 0.98  # between a stored facet and the same facet encoded again
_REVISION_LOCK = threading.Lock()
State = dict[str, Any]  # plain values


def ask(channel: grpc.Channel, request: Message) -> Any:
    """Makes the call that takes a request."""
    rpc = rpc_of(type(request))
    call = channel.unary_unary(rpc.path, type(request).SerializeToString, rpc.reply.FromString)
    return call(request, timeout=_TIMEOUT_S)


class Shadow:
    """A caller, and the possible states of its data on the server."""

    name = ""

    def __init__(self, rng: random.Random, state: State | None = None) -> None:
        self.rng = rng
        self.may_hold = [state or {}]  # exactly one between two calls

    def step(self, channel: grpc.Channel) -> None:
        """Makes one call and records what it changes."""
        raise NotImplementedError

    def read(self, channel: grpc.Channel) -> State:
        """Reads the state from the server: model and documents of the caller's collection."""
        return read_collection(channel, self.name)

    def check(self, channel: grpc.Channel) -> str:
        """Compares the server's state with the possible ones and continues from it; returns what is wrong."""
        found, may_hold = self.read(channel), self.may_hold
        self.may_hold = [found]
        return "" if found in may_hold else f"{type(self).__name__}: found {found}, expected one of {may_hold}"

    def write(self, channel: grpc.Channel, request: Message, after: State) -> None:
        """Makes a call whose changes are atomic."""
        self.may_hold.append(after)
        ask(channel, request)
        self.may_hold = [after]

    def text(self) -> str:
        """A text that no other document has."""
        return f"{' '.join(self.rng.choices(WORDS, k=self.rng.randint(3, 30)))} number{self.rng.getrandbits(40)}"

    def documents(self, most: int) -> dict[str, str]:
        """Random texts by id."""
        return {f"d{id}": self.text() for id in self.rng.sample(range(_NUM_IDS), self.rng.randint(1, most))}


class CollectionShadow(Shadow):
    """Creates, fills, reindexes and deletes a collection. State: model and documents, or empty."""

    name = "moving"

    def step(self, channel: grpc.Channel) -> None:
        """Makes one write."""
        after = copy.deepcopy(self.may_hold[0])
        kind = self.rng.choices(["upsert", "delete", "reindex", "drop"], [10, 4, 3, 1])[0] if after else "create"
        if kind == "create":
            model = self.rng.choice(MODELS)
            request = documents_pb2.CreateCollectionRequest(name=self.name, model=model)
            self.write(channel, request, {"model": model, "documents": {}})
        elif kind == "drop":
            self.write(channel, documents_pb2.DeleteCollectionRequest(name=self.name), {})
        elif kind == "upsert":
            batch = self.documents(12)
            after["documents"].update(batch)
            self.write(channel, _upsert(self.name, batch), after)
        elif kind == "delete":
            ids = list(self.documents(8))
            after["documents"] = {id: text for id, text in after["documents"].items() if id not in ids}
            self.write(channel, documents_pb2.DeleteDocumentsRequest(collection=self.name, ids=ids), after)
        else:
            after["model"] = self.rng.choice(MODELS)
            request = documents_pb2.ReindexCollectionRequest(name=self.name, model=after["model"])
            self.may_hold.append(after)  # the last of these calls switches the collection atomically
            while not ask(channel, request).done:
                pass
            self.may_hold = [after]


class StreamShadow(Shadow):
    """Fills a collection with streams that it resumes by token; batches are acknowledged one by one."""

    name = "streamed"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._token, self._last_acked = "", 0

    def step(self, channel: grpc.Channel) -> None:
        """Sends one stream of a few batches."""
        if not self.may_hold[0]:
            request = documents_pb2.CreateCollectionRequest(name=self.name, model=MODELS[0])
            self.write(channel, request, {"model": MODELS[0], "documents": {}})
        batches = [self.documents(10) for _ in range(self.rng.randint(1, 5))]
        stream = documents_pb2_grpc.DocumentServiceStub(channel).UpsertStream
        opening = documents_pb2.UpsertStreamOpen(collection=self.name, resume_token=self._token)
        replies = stream(iter([documents_pb2.UpsertStreamRequest(open=opening)]), timeout=_TIMEOUT_S)
        opened = next(replies).opened
        # The stored position may be a batch behind the documents, never ahead of them.
        if opened.last_acked_sequence < self._last_acked:
            raise AssertionError(
                f"batch {self._last_acked} was acknowledged, the stream is at {opened.last_acked_sequence}"
            )
        self._token, self._last_acked = opened.resume_token, opened.last_acked_sequence
        opening.resume_token = self._token
        first = self._last_acked
        for batch in batches:
            after = copy.deepcopy(self.may_hold[-1])
            after["documents"].update(batch)
            self.may_hold.append(after)

        def requests() -> Iterator[documents_pb2.UpsertStreamRequest]:
            yield documents_pb2.UpsertStreamRequest(open=opening)
            for sequence, batch in enumerate(batches, first + 1):
                sent = documents_pb2.UpsertStreamBatch(sequence=sequence, documents=_documents(batch))
                yield documents_pb2.UpsertStreamRequest(batch=sent)

        for reply in stream(requests(), timeout=_TIMEOUT_S):
            if reply.WhichOneof("message") == "ack":
                if reply.ack.rejected_documents or reply.ack.sequence != self._last_acked + 1:
                    raise AssertionError(f"batch {self._last_acked + 1} answered by {reply.ack}")
                self._last_acked += 1
                del self.may_hold[0]
        if self._last_acked != first + len(batches):
            raise AssertionError(f"{self._last_acked - first} of {len(batches)} batches were acknowledged")


class AdditionShadow(Shadow):
    """Adds papers, authors and relations, and deletes relations."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, {"authors": [], "relations": {}})
        self._num_relations, self._names = 0, list[str]()

    def step(self, channel: grpc.Channel) -> None:
        """Makes one addition or deletion."""
        after = copy.deepcopy(self.may_hold[0])
        kind = self.rng.choices(["papers", "authors", "add relation", "delete relation"], [4, 2, 3, 1])[0]
        names = [f"{self.rng.getrandbits(64):x}" for _ in range(3)]
        if kind in ("papers", "authors"):
            after["authors"] += names
            self._names += names
        if kind == "papers":
            added = [
                papers_pb2.Paper(id=f"of {name}", title=self.text(), authors=[papers_pb2.Author(name=name)])
                for name in names
            ]
            self.write(channel, papers_pb2.AddPapersRequest(papers=added), after)
        elif kind == "authors":
            new = [
                papers_pb2.NewAuthor(author=papers_pb2.Author(name=name), papers=[papers_pb2.Paper(title=self.text())])
                for name in names
            ]
            self.write(channel, papers_pb2.AddAuthorsRequest(authors=new), after)
        elif kind == "add relation" or not after["relations"]:
            self._num_relations += 1
            name, pattern = f"relation {self._num_relations}", f"$ARG1 met number {self._num_relations} of $ARG2"
            after["relations"][name] = [pattern]
            self.write(channel, relations_pb2.AddRelationRequest(name=name, examples=[pattern]), after)
        else:
            name = self.rng.choice(sorted(after["relations"]))
            del after["relations"][name]
            self.write(channel, relations_pb2.DeleteRelationRequest(name=name), after)

    def read(self, channel: grpc.Channel) -> State:
        """Reads which of the authors are known, and the added relations."""
        known = []
        for start in range(0, len(self._names), 50):
            names = self._names[start : start + 50]
            request = papers_pb2.FindCandidatesRequest(kind="CANDIDATE_KIND_AUTHORS", texts=names, top_k=1)
            for name, result in zip(names, ask(channel, request).results, strict=True):
                known += [candidate.id for candidate in result.candidates if candidate.id == name]
        listed = ask(channel, relations_pb2.ListRelationsRequest(page_size=1000)).relations
        return {"authors": known, "relations": {entry.name: list(entry.examples) for entry in listed if entry.added}}


class RegisterShadow(Shadow):
    """One of several callers of the same registers: pairs of documents that are always written together."""

    name = "registers"
    NUM_REGISTERS = 3

    def __init__(self, rng: random.Random, histories: list[list[Access]], newest: list[int]) -> None:
        super().__init__(rng)
        self._histories, self._newest = histories, newest

    def step(self, channel: grpc.Channel) -> None:
        """Writes, deletes, reads or searches one register."""
        register = self.rng.randrange(self.NUM_REGISTERS)
        history, ids, began = self._histories[register], [f"r{register}-{copy}" for copy in range(2)], time.monotonic()
        kind = self.rng.choices(["write", "delete", "read", "search"], [4, 1, 4, 3])[0]
        if kind in ("write", "delete"):
            value = self.text() if kind == "write" else None
            history.append(pending := Access(began, float("inf"), value, is_write=True, certain=False))
            if value is not None:
                reply = ask(channel, _upsert(self.name, dict.fromkeys(ids, value), {"register": register}))
            else:
                reply = ask(channel, documents_pb2.DeleteDocumentsRequest(collection=self.name, ids=ids))
            with _REVISION_LOCK:
                self._newest[0] = max(self._newest[0], reply.index_revision)
            history[history.index(pending)] = Access(began, time.monotonic(), value, is_write=True)
            return
        if kind == "read":
            request = documents_pb2.GetDocumentsRequest(collection=self.name, ids=ids)
            texts = [document.text for document in ask(channel, request).documents]
        else:  # search the index, which must hold every acknowledged write
            min_revision = self._newest[0]
            where = filters_pb2.FieldCondition(field="register", equals={"number_value": register})
            search = documents_pb2.SearchRequest(
                collection=self.name,
                queries=[documents_pb2.SearchQuery(text="dog")],
                where=filters_pb2.Filter(field=where),
                mode="SEARCH_MODE_FACETS",
                exact=True,
                min_revision=min_revision,
            )
            reply = ask(channel, search)
            texts = [hit.text for hit in reply.results[0].hits]
            if reply.index_revision < min_revision:
                raise AssertionError(f"min_revision {min_revision} was answered at {reply.index_revision}")
        value = None if not texts else texts[0] if len(texts) == 2 and len(set(texts)) == 1 else "torn"
        history.append(Access(began, time.monotonic(), value, is_write=False))

    def check(self, channel: grpc.Channel) -> str:
        """Nothing to check here: the histories are checked at the end."""
        return ""


def all_shadows(rng: random.Random, histories: list[list[Access]]) -> list[Shadow]:
    """One caller of each kind, and three of the registers."""
    newest = [0]
    shadows: list[Shadow] = [
        kind(random.Random(rng.random())) for kind in (CollectionShadow, StreamShadow, AdditionShadow)
    ]
    return shadows + [RegisterShadow(random.Random(rng.random()), histories, newest) for _ in range(3)]


def is_unavailable(error: Exception) -> bool:
    """Whether a call failed because no server accepts it."""
    return isinstance(error, grpc.RpcError) and error.code() is grpc.StatusCode.UNAVAILABLE


def end_pending(histories: list[list[Access]], ended: float) -> None:
    """Writes without an answer may have happened until now, but not later."""
    for history in histories:
        history[:] = [
            call if call.ended < float("inf") else Access(call.began, ended, call.value, True, certain=False)
            for call in history
        ]


def read_collection(channel: grpc.Channel, name: str) -> State:
    """Model and texts of a collection, empty if there is none; asserts that facets and words are those of the texts."""
    try:
        model = ask(channel, documents_pb2.GetCollectionRequest(name=name)).collection.model
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.NOT_FOUND:
            raise
        return {}
    page = ask(channel, documents_pb2.ListDocumentsRequest(collection=name, page_size=1000, include_facets=True))
    texts = {document.id: document.text for document in page.documents}
    if texts:
        _check_facets(channel, model, page.documents)
    for id, text in list(texts.items())[:: max(1, len(texts) // 4)]:
        search = documents_pb2.SearchRequest(
            collection=name,
            queries=[documents_pb2.SearchQuery(text=text.split()[-1])],
            top_k=1,
            mode="SEARCH_MODE_LEXICAL",
            min_revision=page.index_revision,
        )
        hits = ask(channel, search).results[0].hits
        assert [hit.id for hit in hits] == [id], f"{name}: the last word of {id} finds {hits}"
    return {"model": model, "documents": texts}


def _check_facets(channel: grpc.Channel, model: str, documents: Any) -> None:
    request = texts_pb2.EmbedRequest(texts=[document.text for document in documents], model=model)
    encoded = array_from_message(ask(channel, request).facet_embeddings)
    for document, expected in zip(documents, encoded, strict=True):
        stored = array_from_message(document.facet_embeddings)
        norms = np.linalg.norm(stored, axis=-1) * np.linalg.norm(expected, axis=-1)
        cosines = (stored * expected).sum(axis=-1)[norms > 0] / norms[norms > 0]
        assert len(cosines) and cosines.min() > _MIN_COSINE, f"facets of {document.id}: cosines {cosines}"


def _documents(batch: Mapping[str, str]) -> list[documents_pb2.Document]:
    return [documents_pb2.Document(id=id, text=text) for id, text in batch.items()]


def _upsert(
    name: str, batch: Mapping[str, str], payload: Mapping[str, int] | None = None
) -> documents_pb2.UpsertRequest:
    documents = _documents(batch)
    for document in documents:
        document.payload.update(payload or {})
    return documents_pb2.UpsertRequest(collection=name, documents=documents)

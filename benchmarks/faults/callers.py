"""Callers of a server that is killed: each knows what the server must hold, whatever moment that happens at.

A caller makes one call after the other. Before each he notes what the server may hold once it has been killed in it:
what it held, what it holds after the call, and of a stream what it holds after each batch. Callers own different
things, so what each finds afterwards is judged by itself; only those of the registers share theirs, see
:mod:`benchmarks.faults.linearizability`.
"""

import copy
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import numpy as np
from facets_proto.v1 import (
    diagnosis_pb2,
    documents_pb2,
    documents_pb2_grpc,
    filters_pb2,
    papers_pb2,
    papers_pb2_grpc,
    relations_pb2,
    relations_pb2_grpc,
    texts_pb2,
    texts_pb2_grpc,
)
from facets_proto.values import array_from_message
from google.protobuf.message import Message

from benchmarks.faults.linearizability import Access

MODELS = ("toy-a", "toy-b")  # of sentences
_TIMEOUT_S = 60.0
WORDS = "the cat and a dog ran to an old house by the river where music was on and water went over bread".split()
_IDS = 40  # of a collection
_SAME = 0.98  # cosine of a facet that was stored and the same one made again
Held = dict[str, Any]  # plain values
_NEWEST_LOCK = threading.Lock()


class Caller:
    """Somebody who writes.

    Attributes:
        may_hold: What the server may hold of his; one state unless he is in a call.
    """

    def __init__(self, rng: random.Random, held: Held) -> None:
        self.rng = rng
        self.may_hold = [held]

    def step(self, channel: grpc.Channel) -> None:
        """Makes one write and notes what it changes."""
        raise NotImplementedError

    def find(self, channel: grpc.Channel) -> Held:
        """What the server holds of his now."""
        raise NotImplementedError

    def judge(self, channel: grpc.Channel) -> str:
        """Compares the server with what it may hold; what is wrong, empty: nothing. Goes on from what is there."""
        found, may_hold = self.find(channel), self.may_hold
        self.may_hold = [found]
        return "" if found in may_hold else f"{type(self).__name__}: found {found}, expected one of {may_hold}"

    def write(self, call: Callable[..., Message], request: Message, after: Held) -> Any:
        """One call, which changes everything it changes at once."""
        self.may_hold.append(after)
        reply = call(request, timeout=_TIMEOUT_S)
        self.may_hold = [after]
        return reply

    def text(self) -> str:
        """A text like no other."""
        return f"{' '.join(self.rng.choices(WORDS, k=self.rng.randint(3, 30)))} number{self.rng.getrandbits(40)}"

    def documents(self, most: int) -> dict[str, str]:
        """Texts by id."""
        return {f"d{id}": self.text() for id in self.rng.sample(range(_IDS), self.rng.randint(1, most))}


class CollectionCaller(Caller):
    """Makes, fills, moves and deletes a collection: model and documents, or no collection."""

    name = "moving"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, {})

    def step(self, channel: grpc.Channel) -> None:
        """One write, of what there is to write to."""
        collections = documents_pb2_grpc.CollectionServiceStub(channel)
        documents = documents_pb2_grpc.DocumentServiceStub(channel)
        after = copy.deepcopy(self.may_hold[0])
        kind = self.rng.choices(["upsert", "delete", "reindex", "drop"], [10, 4, 3, 1])[0] if after else "create"
        if kind == "create":
            model = self.rng.choice(MODELS)
            request = documents_pb2.CreateCollectionRequest(name=self.name, model=model)
            self.write(collections.CreateCollection, request, {"model": model, "documents": {}})
        elif kind == "drop":
            self.write(collections.DeleteCollection, documents_pb2.DeleteCollectionRequest(name=self.name), {})
        elif kind == "upsert":
            batch = self.documents(12)
            after["documents"].update(batch)
            self.write(documents.Upsert, _upsert(self.name, batch), after)
        elif kind == "delete":
            ids = list(self.documents(8))
            after["documents"] = {id: text for id, text in after["documents"].items() if id not in ids}
            request = documents_pb2.DeleteDocumentsRequest(collection=self.name, ids=ids)
            self.write(documents.DeleteDocuments, request, after)
        else:
            after["model"] = self.rng.choice(MODELS)
            request = documents_pb2.ReindexCollectionRequest(name=self.name, model=after["model"])
            self.may_hold.append(after)  # it moves at once, by the last of these calls
            while not collections.ReindexCollection(request, timeout=_TIMEOUT_S).done:
                pass
            self.may_hold = [after]

    def find(self, channel: grpc.Channel) -> Held:
        """Model and documents, or nothing."""
        return found_in(channel, self.name)


class StreamCaller(Caller):
    """Fills a collection by streams, which he opens again by their token: batches are acknowledged one by one."""

    name = "streamed"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, {})
        self._token, self._last = "", 0

    def step(self, channel: grpc.Channel) -> None:
        """One stream of some batches."""
        if not self.may_hold[0]:
            request = documents_pb2.CreateCollectionRequest(name=self.name, model=MODELS[0])
            create = documents_pb2_grpc.CollectionServiceStub(channel).CreateCollection
            self.write(create, request, {"model": MODELS[0], "documents": {}})
        batches = [self.documents(10) for _ in range(self.rng.randint(1, 5))]
        stream = documents_pb2_grpc.DocumentServiceStub(channel).UpsertStream
        opening = documents_pb2.UpsertStreamOpen(collection=self.name, resume_token=self._token)

        def requests() -> Iterator[documents_pb2.UpsertStreamRequest]:
            yield documents_pb2.UpsertStreamRequest(open=opening)
            for place, batch in enumerate(batches):
                sent = documents_pb2.UpsertStreamBatch(sequence=self._last + 1 + place, documents=_documents(batch))
                yield documents_pb2.UpsertStreamRequest(batch=sent)

        # The position of a stream may be a batch behind its documents, never ahead of them: then a batch is sent again.
        opened = self._opened(stream, opening)
        if opened.last_acked_sequence < self._last:
            raise AssertionError(f"batch {self._last} was acknowledged, the stream is at {opened.last_acked_sequence}")
        opening.resume_token, self._token, self._last = (opened.resume_token,) * 2 + (opened.last_acked_sequence,)
        for batch in batches:
            after = copy.deepcopy(self.may_hold[-1])
            after["documents"].update(batch)
            self.may_hold.append(after)
        first = self._last
        for reply in stream(requests(), timeout=_TIMEOUT_S):
            if reply.WhichOneof("message") == "ack":
                if reply.ack.rejected_documents or reply.ack.sequence != self._last + 1:
                    raise AssertionError(f"batch {self._last + 1} answered by {reply.ack}")
                self._last += 1
                del self.may_hold[0]
        if self._last != first + len(batches):
            raise AssertionError(f"{self._last - first} of {len(batches)} batches were acknowledged")

    def _opened(self, stream: Any, opening: documents_pb2.UpsertStreamOpen) -> documents_pb2.UpsertStreamOpened:
        def ask() -> documents_pb2.UpsertStreamOpened:
            replies = stream(iter([documents_pb2.UpsertStreamRequest(open=opening)]), timeout=_TIMEOUT_S)
            return next(replies).opened

        try:
            return ask()
        except grpc.RpcError as error:
            if not opening.resume_token or error.code() is not grpc.StatusCode.NOT_FOUND:
                raise
            opening.resume_token, self._last = "", 0  # a clock that went ahead by years has forgotten it
            return ask()

    def find(self, channel: grpc.Channel) -> Held:
        """Model and documents, or nothing."""
        return found_in(channel, self.name)


class AdditionCaller(Caller):
    """Adds papers, authors and relations, and takes relations away."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, {"authors": [], "relations": {}})
        self._number, self._names = 0, list[str]()

    def step(self, channel: grpc.Channel) -> None:
        """One addition, or one taken away."""
        papers = papers_pb2_grpc.RecommendationServiceStub(channel)
        relations = relations_pb2_grpc.RelationServiceStub(channel)
        after = copy.deepcopy(self.may_hold[0])
        self._number += 1
        kind = self.rng.choices(["papers", "authors", "relation", "unrelate"], [4, 2, 3, 1])[0]
        names = [f"{self.rng.getrandbits(64):x}" for _ in range(3)]
        if kind in ("papers", "authors"):
            after["authors"] += names
            self._names += names
        if kind == "papers":
            sent = [
                papers_pb2.Paper(id=f"of {name}", title=self.text(), authors=[papers_pb2.Author(name=name)])
                for name in names
            ]
            self.write(papers.AddPapers, papers_pb2.AddPapersRequest(papers=sent), after)
        elif kind == "authors":
            new = [
                papers_pb2.NewAuthor(author=papers_pb2.Author(name=name), papers=[papers_pb2.Paper(title=self.text())])
                for name in names
            ]
            self.write(papers.AddAuthors, papers_pb2.AddAuthorsRequest(authors=new), after)
        elif kind == "relation" or not after["relations"]:
            pattern = f"$ARG1 met number {self._number} of $ARG2"
            after["relations"][f"relation {self._number}"] = [pattern.lower().replace("$arg", "$ARG")]
            request = relations_pb2.AddRelationRequest(name=f"relation {self._number}", examples=[pattern])
            self.write(relations.AddRelation, request, after)
        else:
            name = self.rng.choice(sorted(after["relations"]))
            del after["relations"][name]
            self.write(relations.DeleteRelation, relations_pb2.DeleteRelationRequest(name=name), after)

    def find(self, channel: grpc.Channel) -> Held:
        """The authors and the relations that are known."""
        stub, known = papers_pb2_grpc.RecommendationServiceStub(channel), []
        for start in range(0, len(self._names), 50):
            some = self._names[start : start + 50]
            request = papers_pb2.FindCandidatesRequest(kind="CANDIDATE_KIND_AUTHORS", texts=some, top_k=1)
            for name, found in zip(some, stub.FindCandidates(request, timeout=_TIMEOUT_S).results, strict=True):
                known += [one.id for one in found.candidates if one.id == name]
        listed = relations_pb2_grpc.RelationServiceStub(channel).ListRelations(
            relations_pb2.ListRelationsRequest(page_size=1000), timeout=_TIMEOUT_S
        )
        return {"authors": known, "relations": {one.name: list(one.examples) for one in listed.relations if one.added}}


class RegisterCaller(Caller):
    """One of several who write and read the same registers, each of two documents that are always written together.

    Args:
        rng: His choices.
        number: His.
        histories: By register, what all of them saw; shared.
        newest: The latest revision that any of them heard of; shared.
    """

    name = "registers"
    NUM_REGISTERS = 3

    def __init__(self, rng: random.Random, number: int, histories: list[list[Access]], newest: list[int]) -> None:
        super().__init__(rng, {})
        self._number, self._histories, self._newest = number, histories, newest

    def step(self, channel: grpc.Channel) -> None:
        """One write or one read of one register."""
        stub = documents_pb2_grpc.DocumentServiceStub(channel)
        register = self.rng.randrange(self.NUM_REGISTERS)
        ids, began = [f"r{register}-{place}" for place in range(2)], time.monotonic()
        kind = self.rng.choices(["write", "delete", "read", "search"], [4, 1, 4, 3])[0]
        history = self._histories[register]
        if kind in ("write", "delete"):
            value = self.text() if kind == "write" else None
            call, request = (
                (stub.Upsert, _upsert(self.name, dict.fromkeys(ids, value), register=register))
                if value is not None
                else (stub.DeleteDocuments, documents_pb2.DeleteDocumentsRequest(collection=self.name, ids=ids))
            )
            history.append(pending := Access(began, float("inf"), value, is_write=True, certain=False))
            reply = call(request, timeout=_TIMEOUT_S)
            self._heard(reply.index_revision)
            history[history.index(pending)] = Access(began, time.monotonic(), value, is_write=True)
            return
        if kind == "read":
            request = documents_pb2.GetDocumentsRequest(collection=self.name, ids=ids)
            reply = stub.GetDocuments(request, timeout=_TIMEOUT_S)
            texts = [document.text for document in reply.documents]
        else:  # by the index, which has to have all that was acknowledged to anybody
            least = self._newest[0]
            reply = stub.Search(_register_search(self.name, register, least), timeout=_TIMEOUT_S)
            texts = [hit.text for hit in reply.results[0].hits]
            if reply.index_revision < least:
                raise AssertionError(f"min_revision {least} was answered at {reply.index_revision}")
        value = None if not texts else texts[0] if len(texts) == 2 and len(set(texts)) == 1 else "torn"
        history.append(Access(began, time.monotonic(), value, is_write=False))

    def _heard(self, revision: int) -> None:
        with _NEWEST_LOCK:
            self._newest[0] = max(self._newest[0], revision)

    def judge(self, channel: grpc.Channel) -> str:
        """Nothing: the order of all calls is judged at the end."""
        return ""


_WHERE = filters_pb2.Filter(field=filters_pb2.FieldCondition(field="page", exists=True))
_QUERY = documents_pb2.SearchQuery(text="music by the river")
_NAMED: dict[str, Any] = {"collection": CollectionCaller.name}
_ASKED: tuple[dict[str, Any], ...] = ({}, {"where": _WHERE}, {"diversify": 0.5})
# What is read of a collection that others make, fill, move and delete: service, method, request, and whether an empty
# collection is refused.
_READS: tuple[tuple[Callable[[grpc.Channel], Any], str, Message, bool], ...] = (
    *(
        (
            documents_pb2_grpc.DocumentServiceStub,
            "Search",
            documents_pb2.SearchRequest(queries=[_QUERY, _QUERY], top_k=5, mode=mode, **asked, **_NAMED),
            False,
        )
        for mode in ("SEARCH_MODE_HYBRID", "SEARCH_MODE_FACETS", "SEARCH_MODE_LEXICAL")
        for asked in _ASKED
    ),
    (
        documents_pb2_grpc.DocumentServiceStub,
        "ListDocuments",
        documents_pb2.ListDocumentsRequest(page_size=5, include_facets=True, **_NAMED),
        False,
    ),
    (documents_pb2_grpc.DocumentServiceStub, "CountDocuments", documents_pb2.CountDocumentsRequest(**_NAMED), False),
    (
        documents_pb2_grpc.DocumentServiceStub,
        "Rerank",
        documents_pb2.RerankRequest(query="music", texts=["a river", "a dog"]),
        False,
    ),
    (documents_pb2_grpc.CollectionServiceStub, "ListCollections", documents_pb2.ListCollectionsRequest(), False),
    (
        documents_pb2_grpc.CollectionServiceStub,
        "MapCollection",
        diagnosis_pb2.MapCollectionRequest(name=CollectionCaller.name),
        True,
    ),
    (
        documents_pb2_grpc.CollectionServiceStub,
        "DiagnoseCollection",
        diagnosis_pb2.DiagnoseCollectionRequest(name=CollectionCaller.name, queries=["music"]),
        True,
    ),
)


class ReaderCaller(Caller):
    """Reads what others write, in every way: there, not there, or to be asked again, and nothing else."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, {})

    def step(self, channel: grpc.Channel) -> None:
        """One read."""
        service, method, request, may_be_empty = self.rng.choice(_READS)
        expected = {grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAVAILABLE}
        try:
            getattr(service(channel), method)(request, timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            if error.code() not in expected | ({grpc.StatusCode.INVALID_ARGUMENT} if may_be_empty else set()):
                raise

    def judge(self, channel: grpc.Channel) -> str:
        """Nothing: he holds nothing."""
        return ""


def all_callers(rng: random.Random, histories: list[list[Access]]) -> list[Caller]:
    """One of each kind, and three of the registers, who share histories."""
    newest = [0]
    seeds = iter(lambda: random.Random(rng.random()), None)
    alone: list[Caller] = [kind(next(seeds)) for kind in (CollectionCaller, StreamCaller, AdditionCaller, ReaderCaller)]
    return [*alone, *(RegisterCaller(next(seeds), number, histories, newest) for number in range(3))]


def end_pending(histories: list[list[Access]], ended: float) -> None:
    """Writes without an answer may have happened until now, not later."""
    for history in histories:
        history[:] = [
            call if call.ended < float("inf") else Access(call.began, ended, call.value, True, certain=False)
            for call in history
        ]


def found_in(channel: grpc.Channel, name: str) -> Held:
    """Model and texts of a collection, empty without one.

    Raises:
        AssertionError: Facets or words of a document are not those of its text.
    """
    documents = documents_pb2_grpc.DocumentServiceStub(channel)
    try:
        request = documents_pb2.GetCollectionRequest(name=name)
        collection = documents_pb2_grpc.CollectionServiceStub(channel).GetCollection(request, timeout=_TIMEOUT_S)
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.NOT_FOUND:
            raise
        return {}
    request = documents_pb2.ListDocumentsRequest(collection=name, page_size=1000, include_facets=True)
    page = documents.ListDocuments(request, timeout=_TIMEOUT_S)
    model, texts = collection.collection.model, {one.id: one.text for one in page.documents}
    if texts:
        _check_facets(channel, model, page.documents)
        for id, text in list(texts.items())[:: max(1, len(texts) // 4)]:
            query = documents_pb2.SearchQuery(text=text.split()[-1])
            request = documents_pb2.SearchRequest(
                collection=name, queries=[query], top_k=1, mode="SEARCH_MODE_LEXICAL", min_revision=page.index_revision
            )
            hits = documents.Search(request, timeout=_TIMEOUT_S).results[0].hits
            assert [hit.id for hit in hits] == [id], f"{name}: the last word of {id} finds {hits}"
    return {"model": model, "documents": texts}


def _check_facets(channel: grpc.Channel, model: str, documents: Any) -> None:
    request = texts_pb2.EmbedRequest(texts=[one.text for one in documents], model=model)
    made = texts_pb2_grpc.EmbeddingServiceStub(channel).Embed(request, timeout=_TIMEOUT_S).facet_embeddings
    for document, expected in zip(documents, array_from_message(made), strict=True):
        stored = array_from_message(document.facet_embeddings)
        lengths = np.linalg.norm(stored, axis=-1) * np.linalg.norm(expected, axis=-1)
        cosines = (stored * expected).sum(axis=-1)[lengths > 0] / lengths[lengths > 0]
        assert len(cosines) and cosines.min() > _SAME, f"facets of {document.id}: cosines {cosines}"


def _documents(batch: dict[str, str]) -> list[documents_pb2.Document]:
    return [documents_pb2.Document(id=id, text=text) for id, text in batch.items()]


def _upsert(name: str, batch: dict[str, str], **payload: int) -> documents_pb2.UpsertRequest:
    documents = _documents(batch)
    for document in documents:
        document.payload.update(payload)
    return documents_pb2.UpsertRequest(collection=name, documents=documents)


def _register_search(name: str, register: int, least: int) -> documents_pb2.SearchRequest:
    its = filters_pb2.Filter(field=filters_pb2.FieldCondition(field="register", equals={"number_value": register}))
    query = documents_pb2.SearchQuery(text="cat")
    return documents_pb2.SearchRequest(
        collection=name, queries=[query], where=its, mode="SEARCH_MODE_FACETS", exact=True, min_revision=least
    )

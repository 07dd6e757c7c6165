"""Random writes, each told before and after, and what they do to a shadow."""

import copy
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.faults.stores import DIM, NUM_FACETS, Content, Stores, facets_of
from facets.documents import Document
from facets.documents.parts import EncodedText
from facets.documents.reindexing import TargetModel
from facets.papers.records import Paper
from facets.relations.additions import AddedRelation
from facets.storage import back_up

# Kind and arguments, plain values: it goes through a pipe.
Operation = tuple[str, tuple[object, ...]]

_WEIGHTS = {
    **{"upsert": 12, "delete": 4, "create": 1, "drop": 1, "maintain": 4, "reopen": 2, "reindex": 2, "backup": 1},
    **{"paper": 3, "relation": 3, "unrelate": 1, "stream": 1, "advance": 2},
}
_NAMES = ("a", "b")


def empty() -> Content:
    """What new stores hold."""
    return {"papers": {}, "relations": {}, "streams": {}}


def choose(rng: random.Random, content: Content, number: int) -> Operation:
    """A write that can be made, given what there is; ``number`` makes its texts its own."""
    there = [name for name in _NAMES if f"documents/{name}" in content]
    kind = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    if kind == "create" or (not there and kind in ("upsert", "delete", "drop", "reindex")):
        missing = [name for name in _NAMES if name not in there]
        return ("create", (missing[0],)) if missing else ("maintain", ())
    if kind == "upsert":
        ids = rng.sample(range(200), rng.randint(1, 30))
        return kind, (rng.choice(there), tuple((f"d{id}", f"words of {id} word{number}x{id}") for id in ids))
    if kind == "delete":
        return kind, (rng.choice(there), tuple(f"d{id}" for id in rng.sample(range(200), 10)))
    if kind in ("drop", "reindex"):
        return kind, (rng.choice(there), number)
    if kind == "relation":
        return kind, (f"relation {number}", f"$ARG1 met {number} $ARG2")
    if kind == "unrelate" and content["relations"]:
        return kind, (rng.choice(sorted(content["relations"])),)
    if kind == "paper":
        return kind, (f"p{rng.randint(0, 30)}", f"title {number}")
    if kind == "advance" and content["streams"]:
        return kind, (rng.choice(sorted(content["streams"])), number)
    return (kind, (number,)) if kind in ("stream", "backup", "reopen") else ("maintain", ())


def applied(content: Content, operation: Operation, result: object = None) -> Content:
    """What the stores hold after a write."""
    kind, values = operation
    after = copy.deepcopy(content)
    if kind == "create":
        after[f"documents/{values[0]}"] = {}
    elif kind == "drop":
        del after[f"documents/{values[0]}"]
    elif kind == "upsert":
        name, documents = values
        after[f"documents/{name}"].update(dict(documents))  # type: ignore[call-overload]  # pairs of id and text
    elif kind == "delete":
        for id in values[1]:  # type: ignore[attr-defined]  # ids
            after[f"documents/{values[0]}"].pop(id, None)
    elif kind == "paper":
        after["papers"][str(values[0])] = values[1]
    elif kind == "relation":
        after["relations"][str(values[0])] = [values[1]]
    elif kind == "unrelate":
        del after["relations"][str(values[0])]
    elif kind == "stream" and result:
        after["streams"][str(result)] = 0
    elif kind == "advance":
        after["streams"][str(values[0])] = values[1]
    return after


class Performer:  # its public methods are the kinds of operations
    """Makes writes in the stores of a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.stores = Stores(directory)
        self.is_closed = False

    def perform(self, operation: Operation) -> object:
        """Makes one write; returns what names it from now on, if anything does."""
        kind, values = operation
        if self.is_closed:  # opening again failed on a full disk
            self.reopen(0)
        handler: Callable[..., object] = getattr(self, kind)
        return handler(*values)

    def create(self, name: str) -> None:
        """Makes a collection."""
        self.stores.engine.create_collection(name, model="toy", model_revision="1", num_facets=NUM_FACETS, dim=DIM)

    def drop(self, name: str, _: int) -> None:
        """Deletes a collection."""
        self.stores.engine.delete_collection(name)

    def upsert(self, name: str, documents: Sequence[tuple[str, str]]) -> None:
        """Stores documents."""
        batch = [Document(id=id, text=text, facet_embeddings=facets_of(text)) for id, text in documents]
        self.stores.engine.upsert(name, batch)

    def delete(self, name: str, ids: Sequence[str]) -> None:
        """Deletes documents."""
        self.stores.engine.delete(name, ids=list(ids))

    def maintain(self) -> None:
        """Folds and saves indexes."""
        self.stores.engine.maintain()

    def reindex(self, name: str, number: int) -> None:
        """Moves a collection to another model."""
        model = TargetModel(
            name="toy",
            revision=str(number),
            num_facets=NUM_FACETS,
            dim=DIM,
            encode=lambda texts: [EncodedText(facets_of(text)) for text in texts],
        )
        self.stores.engine.reindex(name, model)

    def reopen(self, _: int) -> None:
        """Closes and opens again."""
        if not self.is_closed:
            self.is_closed = True
            self.stores.close()
        self.stores = Stores(self.directory)
        self.is_closed = False

    def backup(self, number: int) -> None:
        """Takes a backup and throws it away."""
        folder = self.directory.with_name(f"{self.directory.name}-backup{number}")
        back_up(self.directory, folder, [(self.directory / "documents.sqlite3", "")])
        shutil.rmtree(folder)

    def paper(self, id: str, title: str) -> None:
        """Adds a paper."""
        self.stores.papers.add(revision="r1", papers=[Paper(title, id=id)])

    def relation(self, name: str, pattern: str) -> None:
        """Adds a relation."""
        self.stores.relations.add(AddedRelation(name, (pattern,), 0.5))

    def unrelate(self, name: str) -> None:
        """Takes a relation away."""
        self.stores.relations.remove(name)

    def stream(self, _: int) -> str:
        """Begins an ingest stream; returns its token."""
        return self.stores.streams.begin(collection="a", collection_created="then").token

    def advance(self, token: str, sequence: int) -> None:
        """Notes a batch of a stream."""
        opened = self.stores.streams.resume(token, collection="a", collection_created="then")
        self.stores.streams.advance(opened, sequence)

"""Questions over folders of files, and what the answer reader reads for each of them in a search."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from facets_client.documents.files import Columns, DocumentFiles
from facets_client.load.formats import find_files
from facets_client.load.rows import ReadOptions
from facets_client.load.rows import Record as FileRecord

from facets.arrays import Floats
from facets.documents import DocumentQuery
from facets.documents.types import Document, SearchHit
from facets.language.sentences import sentences_of
from facets.model.answer_reader import AnswerReader
from facets.model.shipped import DEFAULT_READER, find_model
from facets_lab.documents.collection import NAME, indexed, load_searched
from facets_lab.evaluation.files import Record, read_records

FOLDERS = Path(__file__).with_name("written_folders.jsonl.xz")
REFERENCES = Path(__file__).with_name("written_references.jsonl.xz")  # short documents, near twins of each other
_TOP_K, _AROUND = 5, 3  # hits that are read; sentences around an answer


class FolderQuestion(Record):
    """A question over a folder; without ``documents``, nothing in it answers."""

    question: str
    documents: list[str]  # files that answer, or their parts
    answers: list[str]  # a part of each sentence that does, or cells of a row, with | between them
    kind: str

    def is_answered_by(self, key: str, text: str) -> bool:
        """Whether a text of the document ``key`` answers."""
        said, is_right = _plain(text), not {key, key.partition("#")[0]}.isdisjoint(self.documents)
        return is_right and any(all(_plain(cell) in said for cell in part.split("|")) for part in self.answers)


class Folder(Record):
    """A folder: its files by name, and questions."""

    name: str
    split: str  # train, dev, or held
    files: dict[str, str]
    questions: list[FolderQuestion]


class ReadText(NamedTuple):
    """A text that is read for a question."""

    heading: str
    sentences: tuple[str, ...]
    answers: tuple[int, ...]  # sentences that answer


class _Noting(AnswerReader):
    """Notes what it is given to read, and does not read it."""

    noted: dict[str, Sequence[tuple[str, Sequence[str]]]]  # texts of each question

    def read(self, question: str, texts: Sequence[tuple[str, Sequence[str]]]) -> list[Floats]:
        self.noted[question] = texts
        return [np.zeros(len(sentences), dtype=np.float32) for _, sentences in texts]


def read_folders(*splits: str, path: Path = FOLDERS) -> Iterator[Folder]:
    """The folders of these splits."""
    return (folder for _, folder in read_records(Folder, path) if folder.split in splits)


def texts_read(folder: Folder) -> Iterator[tuple[FolderQuestion, list[ReadText]]]:
    """What is read for each question, best hit first, and the text that answers, if it would not be read."""
    reader, documents = _Noting.from_folder(find_model(DEFAULT_READER)), documents_of(folder)
    reader.noted = {}
    with indexed(load_searched(None), documents, reader=reader) as collection:
        asked = DocumentQuery(queries=[one.question for one in folder.questions], top_k=_TOP_K)
        found = collection.collections.search(NAME, asked).hits
    for question, hits in zip(folder.questions, found, strict=True):
        texts = [_labelled(question, hits, *text) for text in reader.noted.get(question.question, ())]
        if not any(text.answers for text in texts):
            texts += chain.from_iterable(_around_answer(question, document.id, document.text) for document in documents)
        yield question, texts


def documents_of(folder: Folder) -> list[Document]:
    """The documents of the files, as a client reads them."""
    with TemporaryDirectory(prefix="facets-files-") as directory:
        for name, text in folder.files.items():
            (Path(directory) / name).write_text(text, encoding="utf-8")
        found = find_files([directory], ReadOptions())
        with DocumentFiles(found, Columns(), ReadOptions()) as read:
            items = [record.item for record in read.read() if isinstance(record, FileRecord)]
    return [Document(id=item.id, text=item.text, payload=item.payload) for item in items]  # type: ignore[arg-type]


def _labelled(question: FolderQuestion, hits: Sequence[SearchHit], heading: str, read: Sequence[str]) -> ReadText:
    words = set(" ".join(read).split())
    hit = max(hits, key=lambda one: len(words.intersection(one.text.split())))  # whose text this is
    answers = tuple(i for i, sentence in enumerate(read) if question.is_answered_by(hit.id, sentence))
    around = [] if answers else _around_answer(question, hit.id, hit.text, heading)
    return around[0] if around else ReadText(heading, tuple(read), answers)


def _around_answer(question: FolderQuestion, key: str, text: str, heading: str = "") -> list[ReadText]:
    """The first sentence of a document that answers, with those around it; empty if none does."""
    said = [sentence.said for sentence in sentences_of(text)]
    for first in (i for i, sentence in enumerate(said) if question.is_answered_by(key, sentence)):
        some = tuple(said[max(0, first - _AROUND) : first + _AROUND + 1])
        return [ReadText(heading, some, tuple(i for i, one in enumerate(some) if question.is_answered_by(key, one)))]
    return []


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()

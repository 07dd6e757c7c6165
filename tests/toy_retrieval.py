"""A folder in BEIR's layout small enough to rank by hand."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

DOCUMENTS = {
    "dog": ("Dogs", "A dog plays the guitar. The man plays music."),
    "lift": ("", "The man lifting weights. A garage."),
    "song": ("Songs", "Music music music."),
    "blank": ("", ""),
}
QUERIES = {"q1": "the dog plays guitar", "q2": "lifting weights", "q3": "the garage"}
JUDGEMENTS = {"q1": {"dog": 2, "song": 1}, "q2": {"lift": 1, "dog": 0}}  # nobody has judged q3


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_beir(
    folder: Path,
    *,
    documents: Mapping[str, tuple[str, str]] = DOCUMENTS,
    queries: Mapping[str, str] = QUERIES,
    judgements: Mapping[str, Mapping[str, int]] = JUDGEMENTS,
    header: bool = True,
) -> Path:
    write_lines(
        folder / "corpus.jsonl",
        [json.dumps({"_id": key, "title": title, "text": text}) for key, (title, text) in documents.items()],
    )
    write_lines(folder / "queries.jsonl", [json.dumps({"_id": key, "text": text}) for key, text in queries.items()])
    lines = [f"{query}\t{key}\t{grade}" for query, grades in judgements.items() for key, grade in grades.items()]
    write_lines(folder / "qrels" / "test.tsv", (["query-id\tcorpus-id\tscore"] if header else []) + lines)
    return folder

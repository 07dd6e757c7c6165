"""Writes facets/language/wordnet.json.xz: the part of WordNet that entailment uses, from its database files.

    python scripts/make_wordnet.py /usr/share/wordnet shared/data/words/frequencies.tsv.xz

The first argument is a folder with WordNet 3.0 in the format of wndb(5) (Debian: wordnet-base), the second a list
``word<TAB>count``, most frequent first: nouns and adjectives are included if among its first 60,000, verbs always.
"""

import json
import lzma
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

PARTS = {"v": "verb", "n": "noun", "a": "adj"}
NUM_WORDS = 60_000
MAX_SENSES = 6
ABOVE = ("@", "*", ">")  # hypernym, entailment, cause
OUT = Path(__file__).resolve().parent.parent / "facets" / "language" / "wordnet.json.xz"


def lines(path: Path) -> Iterator[str]:
    """Lines of a file after its licence."""
    with path.open(encoding="ascii") as file:
        yield from (line for line in file if not line.startswith(" "))


def read_senses(folder: Path, frequent: set[str]) -> dict[tuple[str, str], list[str]]:
    """Synsets of each lemma, the most frequent sense first."""
    senses = {}
    for part, name in PARTS.items():
        for line in lines(folder / f"index.{name}"):
            fields = line.split()
            lemma, num_pointers = fields[0], int(fields[3])
            if lemma.isalpha() and (part == "v" or lemma in frequent):
                senses[part, lemma] = [part + offset for offset in fields[6 + num_pointers :]][:MAX_SENSES]
    return senses


def read_synsets(
    folder: Path,
) -> tuple[dict[str, list[str]], dict[str, set[str]], dict[str, set[str]]]:
    """For each synset, the synsets above it, and its opposite and derived lemmas as ``part:lemma``."""
    words: dict[str, list[str]] = {}
    pointers = []
    for part, name in PARTS.items():
        for line in lines(folder / f"data.{name}"):
            fields = line.split(" | ")[0].split()
            num_words = int(fields[3], 16)
            synset = part + fields[0]
            words[synset] = [f"{part}:{word.split('(')[0].lower()}" for word in fields[4 : 4 + 2 * num_words : 2]]
            rest = fields[5 + 2 * num_words :]
            pointers += [(synset, *rest[4 * n : 4 * n + 4]) for n in range(int(fields[4 + 2 * num_words]))]
    above, opposites, derived = defaultdict(list), defaultdict(set), defaultdict(set)
    for synset, symbol, offset, kind, places in pointers:
        target = ("a" if kind == "s" else kind) + offset
        if symbol in ABOVE:
            above[synset].append(target)
        elif symbol in ("!", "+") and target in words:
            table = opposites if symbol == "!" else derived
            table[words[synset][int(places[:2], 16) - 1]].add(words[target][int(places[2:], 16) - 1])
    return above, opposites, derived


def main() -> None:
    """Writes the table."""
    folder, frequencies = map(Path, sys.argv[1:3])
    with lzma.open(frequencies, "rt", encoding="utf-8") as file:
        frequent = {line.split("\t")[0] for line in islice(file, NUM_WORDS)}
    senses = read_senses(folder, frequent)
    above, opposites, derived = read_synsets(folder)
    rows: dict[str, int] = {}
    waiting = [synset for synsets in senses.values() for synset in synsets]
    while waiting:
        synset = waiting.pop()
        if synset not in rows:
            rows[synset] = len(rows)
            waiting += above[synset]
    known = {f"{part}:{lemma}" for part, lemma in senses}
    table = {
        "above": [[rows[target] for target in above[synset]] for synset in rows],
        "senses": {f"{part}:{lemma}": [rows[s] for s in synsets] for (part, lemma), synsets in senses.items()},
        "opposites": {lemma: sorted(others & known) for lemma, others in opposites.items() if lemma in known},
        "derived": {lemma: sorted(others & known) for lemma, others in derived.items() if lemma in known},
        "forms": {
            f"{part}:{fields[0]}": fields[1:]
            for part, name in PARTS.items()
            if part != "a"
            for fields in map(str.split, lines(folder / f"{name}.exc"))
            if fields[0].isalpha() and f"{part}:{fields[1]}" in known
        },
    }
    for name in ("opposites", "derived"):
        table[name] = {lemma: others for lemma, others in table[name].items() if others}
    content = json.dumps(table, separators=(",", ":"), sort_keys=True).encode("ascii")
    OUT.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()

"""Writes facets/language/wordnet.json.xz: the part of WordNet that entailment uses, from its database files.

    python scripts/make_wordnet.py /usr/share/wordnet shared/data/words/frequencies.tsv.xz

The first argument is a folder with WordNet 3.0 in the format of wndb(5) (Debian: wordnet-base), the second a list
``word<TAB>count``, most frequent first: nouns are included if among its first 60,000, verbs and adjectives always.
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
SIMILAR = "&"  # of an adjective such as "rude" to the head of its cluster, "impolite", or the reverse
OUT = Path(__file__).resolve().parent.parent / "facets" / "language" / "wordnet.json.xz"


def lines(folder: Path, name: str) -> Iterator[tuple[str, list[str]]]:
    """Part of speech and fields of the lines of its files after their licence, without glosses."""
    for part, word in PARTS.items():
        for line in (folder / name.format(word)).read_text(encoding="ascii").splitlines():
            if not line.startswith(" "):
                yield part, line.split(" | ")[0].split()


def main() -> None:
    """Writes the table."""
    folder, frequencies = map(Path, sys.argv[1:3])
    with lzma.open(frequencies, "rt", encoding="utf-8") as file:
        frequent = {line.split("\t")[0] for line in islice(file, NUM_WORDS)}
    senses = {  # lemma -> its synsets, the most frequent sense first
        f"{part}:{fields[0]}": [part + offset for offset in fields[6 + int(fields[3]) :]][:MAX_SENSES]
        for part, fields in lines(folder, "index.{}")
        if fields[0].isalpha() and (part != "n" or fields[0] in frequent)
    }
    words: dict[str, list[str]] = {}
    pointers, satellites = [], set()
    for part, fields in lines(folder, "data.{}"):
        end = 4 + 2 * int(fields[3], 16)
        words[part + fields[0]] = [f"{part}:{word.split('(')[0].lower()}" for word in fields[4:end:2]]
        if fields[2] == "s":
            satellites.add(part + fields[0])
        rest = fields[end + 1 :]
        pointers += [(part + fields[0], *rest[4 * n : 4 * n + 4]) for n in range(int(fields[end]))]
    above, opposed = defaultdict(list), defaultdict(set)
    opposites, derived = defaultdict(set), defaultdict(set)
    for synset, symbol, offset, kind, places in pointers:
        target = ("a" if kind == "s" else kind) + offset
        if symbol in ABOVE or (symbol == SIMILAR and synset in satellites):
            above[synset].append(target)
        elif symbol in ("!", "+") and target in words:
            if symbol == "!":
                opposed[synset].add(target)
            lemma, other = words[synset][int(places[:2], 16) - 1], words[target][int(places[2:], 16) - 1]
            if lemma in senses and other in senses:
                (opposites if symbol == "!" else derived)[lemma].add(other)
    rows: dict[str, int] = {}
    waiting = [synset for synsets in senses.values() for synset in synsets]
    while waiting:
        synset = waiting.pop()
        if synset not in rows:
            rows[synset] = len(rows)
            waiting += above[synset]
    table = {
        "above": [[rows[target] for target in above[synset]] for synset in rows],
        "opposed": [sorted(rows[target] for target in opposed[synset] if target in rows) for synset in rows],
        "senses": {lemma: [rows[synset] for synset in synsets] for lemma, synsets in senses.items()},
        "opposites": {lemma: sorted(others) for lemma, others in opposites.items()},
        "derived": {lemma: sorted(others) for lemma, others in derived.items()},
        "forms": {
            f"{part}:{fields[0]}": fields[1:]
            for part, fields in lines(folder, "{}.exc")
            if part != "a" and fields[0].isalpha() and f"{part}:{fields[1]}" in senses
        },
    }
    content = json.dumps(table, separators=(",", ":"), sort_keys=True).encode("ascii")
    OUT.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()

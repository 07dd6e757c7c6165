"""Topics of what comes next against what does come next (Chang 2022, section 4.3.2), and how likely they are.

Shape suffixes: K topics, J topics of the whole vocabulary, W words, D dimensions,
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.decomposition import DictionaryLearning, LatentDirichletAllocation
from sklearn.metrics import roc_auc_score

from facets.errors import InvalidInputError
from facets.language.vectors import WordVectors, unit_rows
from facets.model.facet_model import FacetModel
from facets.model.score_curves import apply_curve
from facets.texts.topics import cohesion, topic_vectors
from facets_lab.evaluation.files import read_records
from facets_lab.evaluation.statistics import expected_calibration_error
from facets_lab.texts.calibration import fit_curve

NUM_TOPICS = 10
NUM_WORDS = 3  # M
CONTINUATION_WORDS = 25  # that are no stop words
PROMPTS = {"long": 180, "short": 35}  # words
_ABOUT = 0.5  # cosine above which a word is about a topic
_GLOBAL_TOPICS = {"lda-global": 150, "kmeans-global": 1000}
_L1_WEIGHT = 0.4  # of NNSC, as in training


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text so far and what comes next.

    Attributes:
        text: The prompt.
        words: Its words that are no stop words, unit vectors ``[W, D]``.
        next_words: Those that come next.
    """

    text: str
    words: NDArray[np.float32]
    next_words: NDArray[np.float32]


def read_prompts(texts: Iterable[str], model: FacetModel, *, length: int) -> list[Prompt]:
    """Texts cut after ``length`` words; those that end too early are left out.

    Raises:
        InvalidInputError: All do.
    """
    vocabulary, units = model.words.vocabulary, model.words.unit_vectors
    prompts = []
    for text in texts:
        pieces = text.split()
        before, after = " ".join(pieces[:length]), " ".join(pieces[length : length + 3 * CONTINUATION_WORDS])
        rows, next_rows = (vocabulary.rows(words) for words in model.tokenizer.words([before, after]))
        rows, next_rows = rows[~vocabulary.is_stop[rows]], next_rows[~vocabulary.is_stop[next_rows]]
        if len(rows) >= NUM_TOPICS and len(next_rows) >= CONTINUATION_WORDS:
            prompts.append(Prompt(before, units[rows], units[next_rows[:CONTINUATION_WORDS]]))
    if not prompts:
        raise InvalidInputError(f"expected texts that go on behind {length} words, got none")
    return prompts


def read_texts(path: Path) -> list[str]:
    """The field ``text`` of each record, or its ``sentences``.

    Raises:
        InvalidInputError: A record has none.
    """
    texts = []
    for place, record in read_records(path):
        text = record.get("text", record.get("sentences"))
        if isinstance(text, list):
            text = " ".join(map(str, text))
        if not isinstance(text, str):
            raise InvalidInputError(
                f"{place}: expected a field text or sentences, got {', '.join(record) or 'no field'}"
            )
        texts.append(text)
    return texts


Generator = Callable[[Prompt], NDArray[np.float32]]  # topics of a prompt, [K, D] at unit length


def generators(models: Sequence[FacetModel], corpus: Sequence[str], *, seed: int = 0) -> Mapping[str, Generator]:
    """The methods of table 4.1, in the word space of the first model, and the models.

    Args:
        models: Of one word space.
        corpus: Texts for LDA, other ones than the prompts.
        seed: Of everything random.
    """
    words = models[0].words
    random = np.random.default_rng(seed)
    usable = np.flatnonzero(~words.vocabulary.is_stop[:-1] & ~words.vocabulary.is_piece[:-1])

    def of_centers(centers: NDArray[np.floating]) -> NDArray[np.float32]:
        return topic_vectors(words, words.nearest(centers, NUM_WORDS, exclude_stop_words=True))

    def closest(topics_JD: NDArray[np.float32], prompt: Prompt) -> NDArray[np.float32]:
        mean_D = unit_rows(prompt.words.mean(axis=0, keepdims=True))[0]
        return topics_JD[np.argsort(-(topics_JD @ mean_D), kind="stable")[:NUM_TOPICS]]

    def k_means(prompt: Prompt) -> NDArray[np.float32]:
        return of_centers(KMeans(NUM_TOPICS, n_init=1, random_state=seed).fit(prompt.words).cluster_centers_)

    def sparse(prompt: Prompt) -> NDArray[np.float32]:
        learned = DictionaryLearning(
            NUM_TOPICS,
            alpha=_L1_WEIGHT,
            max_iter=30,
            positive_code=True,
            fit_algorithm="cd",
            transform_algorithm="lasso_cd",
            random_state=seed,
        ).fit(prompt.words.astype(np.float64))  # its tolerance is too fine for float32
        return of_centers(learned.components_)

    clusters = MiniBatchKMeans(_GLOBAL_TOPICS["kmeans-global"], n_init=1, random_state=seed)
    of_vocabulary = of_centers(clusters.fit(words.unit_vectors[usable]).cluster_centers_)
    of_lda = of_centers(_lda_centers(words, models[0], corpus, seed))
    found: dict[str, Generator] = {
        "sample-global": lambda _: of_centers(words.unit_vectors[random.choice(usable, NUM_TOPICS, replace=False)]),
        "lda-global": lambda prompt: closest(of_lda, prompt),
        "kmeans-global": lambda prompt: closest(of_vocabulary, prompt),
        "sample-local": lambda prompt: of_centers(
            prompt.words[random.choice(len(prompt.words), NUM_TOPICS, replace=False)]
        ),
        "nnsc-local": sparse,
        "kmeans-local": k_means,
    }
    for model in models:
        found[model.name] = lambda prompt, model=model: _of_model(model, prompt)[0]  # type: ignore[misc]

    return found | {f"{models[0].name}-whole": lambda prompt: of_centers(_centers_of_whole(models[0], prompt, seed))}


def _lda_centers(words: WordVectors, model: FacetModel, corpus: Sequence[str], seed: int) -> NDArray[np.float32]:
    """Mean vectors of LDA's topics, weighted by the words' probabilities, ``[J, D]``."""
    from scipy import sparse

    counted = []
    for text in corpus:
        rows = words.vocabulary.rows(model.tokenizer.words([text])[0])
        counted.append(rows[~words.vocabulary.is_stop[rows]])
    owners = np.repeat(np.arange(len(counted)), [len(rows) for rows in counted])
    counts = sparse.csr_array(
        (np.ones(len(owners)), (owners, np.concatenate(counted))), shape=(len(counted), len(words) + 1)
    )
    lda = LatentDirichletAllocation(
        min(_GLOBAL_TOPICS["lda-global"], len(corpus)), max_iter=5, learning_method="online", random_state=seed
    ).fit(counts)
    shares = lda.components_[:, :-1] / lda.components_.sum(axis=1, keepdims=True)
    best = np.argsort(-shares, axis=1)[:, :NUM_WORDS]
    return np.stack([share[rows] @ words.unit_vectors[rows] for share, rows in zip(shares, best, strict=True)])


def _of_model(model: FacetModel, prompt: Prompt) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Topics of a prompt's end and their facets."""
    facets_KD = _facets(model, " ".join(prompt.text.split()[-_words_read(model) :]))
    return topic_vectors(model.words, model.words.nearest(facets_KD, NUM_WORDS, exclude_stop_words=True)), facets_KD


def _words_read(model: FacetModel) -> int:
    """About as many words as the model reads of a text."""
    return model.max_tokens * 3 // 4


def _facets(model: FacetModel, text: str) -> NDArray[np.float32]:
    facets_KD = model.encode([text])[0]
    return facets_KD[np.linalg.norm(facets_KD, axis=1) > 0]


def _centers_of_whole(model: FacetModel, prompt: Prompt, seed: int) -> NDArray[np.float32]:
    """Centres of the facets of all parts of a prompt, each as long as the model reads."""
    pieces = prompt.text.split()
    parts = np.array_split(pieces, -(-len(pieces) // _words_read(model)))
    facets_ND = np.concatenate([_facets(model, " ".join(part)) for part in parts])
    groups = KMeans(min(NUM_TOPICS, len(facets_ND)), n_init=3, random_state=seed).fit(facets_ND)
    centers_KD: NDArray[np.float32] = groups.cluster_centers_
    return centers_KD


def measure(prompts: Sequence[Prompt], generate: Generator) -> dict[str, float]:
    """Sim and Sim Diff of table 4.1, and how many topics the continuation has a word about.

    Returns:
        ``sim``: sum over the 25 words that come next of the cosine of the closest topic (eq. 4.2); ``sim_diff``: that
        less the same of 25 words of the prompt drawn by chance; ``met``: share of the topics with a word about them.
    """
    random = np.random.default_rng(0)
    sims, diffs, met = [], [], []
    for prompt in prompts:
        topics_KD = generate(prompt)
        next_WK = prompt.next_words @ topics_KD.T
        own = random.choice(len(prompt.words), CONTINUATION_WORDS, replace=len(prompt.words) < CONTINUATION_WORDS)
        sims.append(float(next_WK.max(axis=1).sum()))
        diffs.append(sims[-1] - float((prompt.words[own] @ topics_KD.T).max(axis=1).sum()))
        met.append(float((next_WK.max(axis=0) > _ABOUT).mean()))
    return {"sim": float(np.mean(sims)), "sim_diff": float(np.mean(diffs)), "met": float(np.mean(met))}


def report(models: Sequence[FacetModel], texts: Sequence[str], *, limit: int) -> dict[str, object]:
    """Table 4.1: every method on long and on short prompts.

    Args:
        models: Of one word space, the one of topics among them.
        texts: The first ``limit`` are prompts, the rest is LDA's corpus.
        limit: Prompts.
    """
    methods = generators(models, texts[limit:] or texts)
    tables: dict[str, object] = {}
    for name, length in PROMPTS.items():
        prompts = read_prompts(texts[:limit], models[0], length=length)
        tables[name] = {
            "num_prompts": len(prompts),
            "methods": {method: measure(prompts, generate) for method, generate in methods.items()},
        }
    return tables


def fit_likelihood(
    model: FacetModel, texts: Sequence[str], *, seed: int = 0
) -> tuple[NDArray[np.float64], dict[str, float]]:
    """Fits how likely a topic is on one half of the texts and measures on the other.

    Returns:
        The curve ``CURVE``, ``[2, N]``, and of the other half ``auc``, ``calibration_error`` and ``base_rate``.
    """
    scores, found, owners = [], [], []
    for length in PROMPTS.values():
        for place, prompt in enumerate(read_prompts(texts, model, length=length)):
            topics_KD, facets_KD = _of_model(model, prompt)
            scores.append(cohesion(facets_KD, topics_KD))
            found.append((prompt.next_words @ topics_KD.T).max(axis=0) > _ABOUT)
            owners.append(np.full(len(topics_KD), place))
    score_K, found_K, owners_K = np.concatenate(scores), np.concatenate(found), np.concatenate(owners)
    is_fitted = np.random.default_rng(seed).random(int(owners_K.max()) + 1)[owners_K] < 0.5
    curve_2N = fit_curve(score_K[is_fitted], found_K[is_fitted].astype(np.float64), highest=1.0)
    told_K = apply_curve(curve_2N, score_K[~is_fitted])
    return curve_2N, {
        "auc": float(roc_auc_score(found_K[~is_fitted], told_K)),
        "calibration_error": expected_calibration_error(told_K, found_K[~is_fitted]),
        "base_rate": float(found_K.mean()),
    }

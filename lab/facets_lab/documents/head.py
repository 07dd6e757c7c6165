"""Fits a linear map on the facets of a model to questions and their answers, and keeps it only where it helps.

Shape suffixes: Q queries, J facets of a query, N documents, K facets, D dimensions.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.optim import AdamW

from facets.arrays import Doubles, Floats, Ints
from facets.model.checkpoint import write_parts
from facets.model.passage_checkpoint import HEAD, FacetHeadConfig
from facets.model.passage_model import PassageModel
from facets_lab.documents.beir import DEPTH, RetrievalData, read_beir, read_pairs, sampled
from facets_lab.documents.collection import indexed
from facets_lab.documents.retrieval import values_of_queries
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.statistics import Metrics, with_intervals

logger = logging.getLogger(__name__)

_SEED = 1
_QUESTIONS = 1_000  # of a file of pairs
_DEV_QUERIES, _DEV_DOCUMENTS = 120, 450  # of a development set
_BATCH = 64  # questions, with their answers
_TEMPERATURE = 0.05
_LEARNING_RATE = 5e-4
_MOST_EPOCHS = 20
_NUM_RESAMPLES = 1_000
_LARGEST_LOSS = 0.005  # of nDCG@10 on a development set


class EncodedPairs(NamedTuple):
    """Encoded questions and answers."""

    queries: Tensor  # `[Q, J, D]`
    weights: Tensor  # `[Q, J]`
    facets: Tensor  # `[N, K, D]`
    answers: Tensor  # `[Q, N]`, whether a document answers

    @classmethod
    def of(cls, model: PassageModel, data: RetrievalData) -> "EncodedPairs":
        """Encodes all texts."""
        queries = model.encode_queries(list(data.queries.values()))
        facets_NKD = model.encode_passages(list(data.documents.values())).facets
        answers_QN = np.array([[key in grades for key in data.documents] for grades in data.judgements.values()])
        return cls(*map(torch.from_numpy, (queries.facets, queries.weights, facets_NKD, answers_QN)))

    def loss(self, head_DD: Tensor, rows: Ints) -> Tensor:
        """Cross-entropy of the answers to some questions among the answers to all of these."""
        documents = self.answers[rows].any(dim=0)
        facets_NKD = self.facets[documents]
        mapped_NKD = functional.normalize(facets_NKD + facets_NKD @ head_DD.T, dim=2)
        cosines_QJNK = torch.einsum("qjd,nkd->qjnk", self.queries[rows], mapped_NKD)
        closest_QJN = cosines_QJNK.masked_fill(~facets_NKD.any(dim=2), -1).amax(dim=3)
        scores_QN = torch.einsum("qjn,qj->qn", closest_QJN, self.weights[rows]) / _TEMPERATURE
        of_answers_QN = scores_QN.masked_fill(~self.answers[rows][:, documents], -torch.inf)
        return (scores_QN.logsumexp(dim=1) - of_answers_QN.logsumexp(dim=1)).mean()


def fit_head(sources: Sequence[EncodedPairs], held_out: EncodedPairs) -> Floats:
    """The map with the lowest loss on the held-out source, ``[D, D]``; zero if training only raises that loss."""
    dim, generator = held_out.queries.shape[2], np.random.default_rng(_SEED)
    head_DD = torch.zeros(dim, dim, requires_grad=True)
    optimizer = AdamW([head_DD], lr=_LEARNING_RATE)

    def batches(source: EncodedPairs) -> Iterator[tuple[EncodedPairs, Ints]]:
        order = generator.permutation(len(source.queries))
        return ((source, order[start : start + _BATCH]) for start in range(0, len(order), _BATCH))

    best_DD, lowest, held_out_batches = head_DD.detach().clone(), np.inf, list(batches(held_out))
    for epoch in range(_MOST_EPOCHS):
        with torch.no_grad():
            loss = float(np.mean([float(source.loss(head_DD, rows)) for source, rows in held_out_batches]))
        logger.info("epoch %d: held-out loss %.4f", epoch, loss)
        if loss >= lowest:
            break
        best_DD, lowest = head_DD.detach().clone(), loss
        of_epoch = [batch for source in sources for batch in batches(source)]
        for number in generator.permutation(len(of_epoch)).tolist():
            source, rows = of_epoch[number]
            optimizer.zero_grad()
            source.loss(head_DD, rows).backward()
            optimizer.step()
    return best_DD.numpy()


def train_head(
    model: PassageModel, encoder_of: str, folder: Path, pairs: Sequence[Path], dev: Sequence[Path]
) -> Report:
    """Fits a head on all files of pairs but the last, measures it on samples of BEIR folders, writes it if it helps."""
    sets = [sampled(read_beir(path), _DEV_QUERIES, _DEV_DOCUMENTS, seed=_SEED) for path in dev]
    sources = [EncodedPairs.of(model, sampled(read_pairs(path), _QUESTIONS, 1, seed=_SEED)) for path in pairs]
    head_DD, name = fit_head(sources[:-1], sources[-1]), f"{model.name}-head"
    models = (model, model.with_head(head_DD, name=name, revision="unsaved"))
    values = {data.name: np.stack([_measure(own, data) for own in models]) for data in sets}
    gains = {key: after - before for key, (before, after) in values.items()}
    weights_Q = np.concatenate([np.full(len(own), 1 / len(own)) for own in gains.values()])
    gain = with_intervals(_mean, np.concatenate(list(gains.values())), weights_Q, num_resamples=_NUM_RESAMPLES)
    least, worst = gain["ndcg_10_ci95_from"] or 0.0, min(own.mean() for own in gains.values())
    helps = bool(least > 0 and worst >= -_LARGEST_LOSS)

    def metrics(pair: Doubles) -> dict[str, object]:
        return {
            key: {"facets": {"ndcg_10": value}} for key, value in zip((model.name, name), pair.tolist(), strict=True)
        }

    report: Report = {
        "data": list(map(str, dev)),
        "rows": sum(own.shape[1] for own in values.values()),
        "models": metrics(np.mean([own.mean(axis=1) for own in values.values()], axis=0)),
        "folders": {key: metrics(own.mean(axis=1)) for key, own in values.items()},
        "gain": gain,
        "written": helps,
    }
    if helps:
        facts = {"pairs": [path.name for path in pairs], "measured": report["models"]}
        config = FacetHeadConfig(name=name, encoder_of=encoder_of, encoder_revision=model.revision, training=facts)
        write_parts(folder, config, {HEAD: torch.from_numpy(head_DD)})
    return report


def _mean(gains_Q: Doubles, weights_Q: Doubles) -> Metrics:
    return {"ndcg_10": float(np.average(gains_Q, weights=weights_Q))}


def _measure(model: PassageModel, data: RetrievalData) -> Doubles:
    """nDCG@10 of each query by facets alone, ``[Q]``."""
    with indexed(model, data.documents) as collection:
        found = collection.search(list(data.queries.values()), ["facets"], top_k=DEPTH + 1)["facets"]
    return values_of_queries([[hit.id for hit in hits] for hits in found], data)["ndcg_10"]

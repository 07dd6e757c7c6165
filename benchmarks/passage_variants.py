"""Ways to make the facets of passages, trained alike on one encoder: what a facet may be, and what is tuned.

``python -m benchmarks.passage_variants SET... --data FOLDER [--variant NAME]... [--num-steps 300]`` prints a line of
JSON for each variant: nDCG@10 of facets alone on sets in BEIR's layout, exact, and processor time. The data are those
of ``facets-train prepare-passages``. Every text has as many facets as the shipped models give it, and every facet
holds as much of the text's own vector. Queries are read by the encoder as it was before; where a variant tunes it,
``own_queries`` is the same of queries read by the tuned one.

Shape suffixes: B texts, K facets, W width, Q queries, N documents.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from facets_lab.documents.baselines import sentence_facets, window_means
from facets_lab.documents.beir import DEPTH, RetrievalData, limit_documents, limit_queries, query_metrics, read_beir
from facets_lab.documents.data import PassageTrainingConfig, Teacher, vectors_of
from facets_lab.documents.systems import FacetScorer, best_rows
from facets_lab.documents.training import PassageBatch, PassageTrainer
from facets_lab.training.loop import LOSS, OptimizerConfig, TrainingLoop, use_bfloat16
from numpy.typing import NDArray
from torch import Tensor

import facets
from benchmarks.passage_networks import FreeDecoder, MultiClsNetwork
from facets.config import PassageNetworkConfig
from facets.language.tokenizer import Tokenizer
from facets.language.vectors import unit_rows
from facets.model import PassageModel
from facets.model.passage_encoding import length_batches
from facets.model.passage_network import PassageNetwork, RaggedBatch, SentenceEncoder, average_states

_MAX_TOKENS, _MAX_SENTENCE_TOKENS, _BATCH_TOKENS = 256, 96, 4096

# How many of the last layers of the encoder are tuned.
VARIANTS = {
    "spans": 0,
    "spans, last layer tuned": 1,
    "decoder": 0,
    "decoder, from the own vector": 0,
    "decoder, last layer tuned": 1,
    "multi-cls, last layer tuned": 1,
    "multi-cls, all layers tuned": 100,
}


class VariantTrainer(PassageTrainer):
    """Trains one variant on an encoder that is there already; losses and batches are those of the shipped models.

    Attributes:
        kept: States of passages by the encoder as it was, by number; variants that leave it alone share them.
    """

    kept: dict[int, Tensor]

    def __init__(self, config: PassageTrainingConfig, encoder: SentenceEncoder, name: str) -> None:
        super().__init__(config)
        self.kept = {}
        self._is_frozen = VARIANTS[name] == 0
        torch.manual_seed(config.seed)
        if name.startswith("multi-cls"):
            cls_piece = int(self._data.texts["passage"].row(0)[0])  # every text begins with it
            self.network = MultiClsNetwork(config.model, cls_piece)
        else:
            self.network = PassageNetwork(config.model)
        if name.startswith("decoder"):
            self.network.pooling = FreeDecoder(config.model, from_vector="own vector" in name)  # type: ignore[assignment]
        self.network.encoder.load_state_dict(encoder.state_dict())
        layers = list(self.network.encoder.layers)
        self.network.encoder.requires_grad_(False)
        for layer in layers[max(0, len(layers) - VARIANTS[name]) :]:
            layer.requires_grad_(True)
        self.network.to(self.device)

    def _losses(self, batch: PassageBatch, random_choice: np.random.Generator) -> dict[str, Tensor]:
        passages = RaggedBatch.of([self._data.texts["passage"].row(number) for number in batch.passages], self.device)
        with self.autocast():
            if self._is_frozen:
                states_TW = self._states(batch, passages)
                facets_BKW, _ = self.network.pooling(states_TW, average_states(states_TW, passages), passages)
            else:
                facets_BKW, _, _ = self.network(passages)
        losses = self._facet_losses(facets_BKW, batch)
        return {LOSS: losses["ranking"] + self.config.fit_weight * losses["fit"], **losses}

    @torch.no_grad()
    def _states(self, batch: PassageBatch, passages: RaggedBatch) -> Tensor:
        numbers = batch.passages.tolist()
        if not all(number in self.kept for number in numbers):
            parts = self.network.encoder(passages).bfloat16().split(passages.lengths.tolist())
            self.kept |= zip(numbers, parts, strict=True)
        return torch.cat([self.kept[number] for number in numbers]).float()


class Sets:
    """Sets of documents and queries, cut into pieces and with vectors of the encoder as it is before training."""

    def __init__(self, data: Sequence[RetrievalData], teacher: Teacher, encoder: SentenceEncoder) -> None:
        self.data = data
        self.encoder = encoder
        self._teacher = teacher
        max_tokens = min(_MAX_TOKENS, encoder.config.max_tokens)
        self._documents = [teacher.ids(one.documents, max_tokens) for one in data]
        self._queries = [teacher.ids(one.queries, max_tokens) for one in data]
        self._query_units = [self._vectors(encoder, rows) for rows in self._queries]

    def measure(self, network: PassageNetwork) -> dict[str, object]:
        """nDCG@10 times 100 and facets a document, by set."""
        report: dict[str, dict[str, float]] = {}
        tuned = any(weights.requires_grad for weights in network.encoder.parameters())
        for place, rows in enumerate(self._documents):
            found = _encoded(rows, lambda batch: network(batch)[0].float().numpy())
            own = {"own_queries": self._vectors(network.encoder, self._queries[place])} if tuned else {}
            report[self.data[place].name] = self._figures(place, [one[one.any(axis=1)] for one in found], **own)
        return dict(report)

    def references(self, config: PassageNetworkConfig, *, seed: int) -> Iterator[tuple[str, dict[str, object]]]:
        """As ``measure``, of what is not trained: one vector, windows, k-means of sentences, equal segments."""
        vectors = [self._vectors(self.encoder, rows) for rows in self._documents]
        of_name = {
            "one vector": [units[:, None] for units in vectors],
            "windows": [self._windows(rows) for rows in self._documents],
            "sentence k-means": [self._sentences(one, config.num_facets, seed=seed) for one in self.data],
        }
        for name, of_set in of_name.items():
            mixed = [
                [unit_rows(part + config.own_vector_weight * own) for part, own in zip(parts, units, strict=True)]
                for parts, units in zip(of_set, vectors, strict=True)
            ]
            yield name, {one.name: self._figures(place, mixed[place]) for place, one in enumerate(self.data)}

    def _figures(
        self, place: int, found: Sequence[NDArray[np.float32]], *, own_queries: NDArray[np.float32] | None = None
    ) -> dict[str, float]:
        data = self.data[place]
        figures = {"facets": round(sum(map(len, found)) / len(found), 1)}
        for name, units in (("ndcg_10", self._query_units[place]), ("own_queries", own_queries)):
            if units is not None:
                scores_QN = FacetScorer(found, units).scores(slice(None))
                ranked = [[data.document_ids[row] for row in best_rows(scores_N, DEPTH)] for scores_N in scores_QN]
                judged = [data.judgements[query] for query in data.query_ids]
                figures[name] = round(100 * float(query_metrics(ranked, judged)["ndcg_10"].mean()), 1)
        return figures

    def _vectors(self, encoder: SentenceEncoder, rows: Sequence[NDArray[np.uint16]]) -> NDArray[np.float32]:
        return unit_rows(vectors_of(encoder, rows).astype(np.float32))

    def _windows(self, rows: Sequence[NDArray[np.uint16]]) -> list[NDArray[np.float32]]:
        def states(batch: RaggedBatch) -> list[NDArray[np.float32]]:
            return [part.float().numpy()[1:-1] for part in self.encoder(batch).split(batch.lengths.tolist())]

        return [window_means(part, np.array([len(part)]))[0] for part in _encoded(rows, states)]

    def _sentences(self, data: RetrievalData, num_facets: int, *, seed: int) -> list[NDArray[np.float32]]:
        tokenizer = Tokenizer()
        parts = [[sentence.text for sentence in tokenizer.sentences(text)] or [text] for text in data.documents]
        rows = self._teacher.ids([part for of_one in parts for part in of_one], _MAX_SENTENCE_TOKENS)
        units = np.split(self._vectors(self.encoder, rows), np.cumsum([len(of_one) for of_one in parts])[:-1])
        return [sentence_facets(of_one, num_facets, seed=seed) for of_one in units]


@torch.inference_mode()
def _encoded(
    rows: Sequence[NDArray[np.uint16]], encode: Callable[[RaggedBatch], Sequence[NDArray[np.float32]]]
) -> list[NDArray[np.float32]]:
    """What each text becomes."""
    found: list[NDArray[np.float32]] = [np.empty((0, 0), dtype=np.float32)] * len(rows)
    for places in length_batches([len(row) for row in rows], max_tokens=_BATCH_TOKENS):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=use_bfloat16("auto", torch.device("cpu"))):
            parts = encode(RaggedBatch.of([rows[place] for place in places]))
        for place, part in zip(places, parts, strict=True):
            found[place] = part
    return found


def train(
    name: str, config: PassageTrainingConfig, encoder: SentenceEncoder, *, kept: dict[int, Tensor]
) -> tuple[PassageNetwork, dict[str, object]]:
    """A trained variant, its losses on what is held out, and seconds of processor time; see ``VariantTrainer.kept``."""
    started = time.process_time()
    trainer = VariantTrainer(config, encoder, name)
    trainer.kept = kept
    with tempfile.TemporaryDirectory() as folder:
        loop = TrainingLoop(trainer, Path(folder))
        loop.run(progress=False)
        losses = {key: round(value, 3) for key, value in loop.validate().items()}
    return trainer.network.eval(), {"held_out": losses, "training_cpu_s": round(time.process_time() - started)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", type=Path, nargs="+", help="folders in BEIR's layout")
    parser.add_argument("--data", required=True, help="folder of facets-train prepare-passages")
    parser.add_argument("--model", default="facets-passages-small-en", help="name or folder, whose encoder is taken")
    parser.add_argument("--teacher", default="all-MiniLM-L6-v2", help="whose word pieces the encoder reads")
    parser.add_argument("--variant", action="append", choices=VARIANTS, help="all when none is given")
    parser.add_argument("--num-steps", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    parser.add_argument("--validation-groups", type=int, default=64)
    parser.add_argument("--num-queries", type=int, default=300)
    parser.add_argument("--num-documents", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    model, teacher = facets.load(options.model, PassageModel), Teacher(options.teacher)
    encoder = SentenceEncoder(model.config.network.encoder).eval()
    encoder.load_state_dict(model.network.encoder.state_dict())
    data = [limit_queries(read_beir(folder), options.num_queries, seed=options.seed) for folder in options.sets]
    data = [limit_documents(one, options.num_documents, seed=options.seed) for one in data]
    sets = Sets(data, teacher, model.network.encoder)
    config = PassageTrainingConfig(
        name="variant",
        data=options.data,
        words="",
        teacher=options.teacher,
        layers=list(range(encoder.config.num_layers)),
        num_steps=options.num_steps,
        batch_size=options.batch_size,
        validate_every=options.num_steps,
        checkpoint_every=options.num_steps,
        validation_groups=options.validation_groups,
        seed=options.seed,
        num_threads=1,
        optimizer=OptimizerConfig(learning_rate=options.learning_rate, warmup_steps=options.num_steps // 10),
        model=model.config.network.replaced(own_vector_weight=PassageNetworkConfig().own_vector_weight),
    )
    for name, figures in sets.references(config.model, seed=options.seed):
        print(json.dumps({"untrained": name, "sets": figures}), flush=True)
    kept: dict[int, Tensor] = {}
    for name in options.variant or VARIANTS:
        network, facts = train(name, config, encoder, kept=kept)
        print(json.dumps({"variant": name, "sets": sets.measure(network), **facts}), flush=True)


if __name__ == "__main__":
    main()

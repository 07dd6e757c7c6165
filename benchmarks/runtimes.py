"""Runtimes for the networks of two shipped models: what they cost on the same texts in one run, and what they lose.

``python -m benchmarks.encode --runtimes FOLDER``, a folder in BEIR's layout with questions and passages (squad). Each
runtime takes the place of the eager network inside the library's own model, so that a figure is what a user of the
library would get: tokenizing, padding and all. Runtimes that are not installed are left out and named.
"""

import copy
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
import torch
from facets_lab.documents.beir import DEPTH, RetrievalData, limit_documents, limit_queries, query_metrics, read_beir
from facets_lab.documents.systems import VectorScorer, best_rows
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from facets.model.facet_model import FacetModel
from facets.model.loading import load
from facets.model.network import FacetNetwork
from facets.model.passage_checkpoint import read_passage_weights
from facets.model.passage_model import PassageModel
from facets.model.passage_network import RaggedBatch, SentenceEncoder
from facets.model.precision import PackedLinear, fastest_precision
from facets.model.shipped import find_model

BASELINE = "eager float32"
_SEED = 0
_NUM_QUERIES = 300
_PASSAGE_WORDS = (110, 190)
_NUM_DOCUMENTS = 400
# Texts of a round, texts of a call.
_WORKLOADS = {"query": (64, 1), "32 queries": (128, 32), "passage": (16, 1), "32 passages": (32, 32)}

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
Network = Callable[[Tensor, Tensor], Tensor]  # token rows [B, L] and lengths [B], int64, to float32


class PaddedEncoder(nn.Module):
    """A ``SentenceEncoder`` over padded rows, as exporters follow it: no shape hangs on the numbers in a tensor."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """States ``[B, L, W]``."""
        encoder: Any = self.encoder
        places_L = torch.arange(rows_BL.shape[1])
        seen_B11L = (places_L < lengths_B[:, None])[:, None, None]
        states_BLW = encoder.norm(encoder.pieces(rows_BL) + encoder.positions(places_L))
        for layer in encoder.layers:
            heads = layer.attention_in(states_BLW).unflatten(2, (3, encoder.config.num_heads, -1))
            queries, keys, values = heads.permute(2, 0, 3, 1, 4).unbind(0)
            met = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=seen_B11L)
            states_BLW = layer.attention_norm(states_BLW + layer.attention_out(met.transpose(1, 2).flatten(2)))
            inner = layer.feedforward_out(functional.gelu(layer.feedforward_in(states_BLW)))
            states_BLW = layer.feedforward_norm(states_BLW + inner)
        padded: Tensor = states_BLW
        return padded


class PaddedFacets(nn.Module):
    """A ``FacetNetwork`` that always masks, for the same reason."""

    def __init__(self, network: FacetNetwork) -> None:
        super().__init__()
        self.network = network
        embedding: Any = network.encoder.embedding
        self.table = nn.Embedding.from_pretrained(torch.cat([embedding.word_vectors, embedding.special]))

    def forward(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """Facets ``[B, K, D]``."""
        encoder: Any = self.network.encoder
        places_L = torch.arange(rows_BL.shape[1] + 1)
        is_eos_BL = places_L == lengths_B[:, None]
        vectors_BLD = self.table(functional.pad(rows_BL, (0, 1)).masked_fill(is_eos_BL, self.table.num_embeddings - 1))
        mask_B11L = (places_L <= lengths_B[:, None])[:, None, None]
        states_BLH = encoder.input(vectors_BLD) + encoder.position_scale * encoder.positions[places_L]
        for block in encoder.blocks:
            states_BLH = block(states_BLH, mask_B11L)
        states_BLH = encoder.norm(states_BLH)
        eos_BH = (states_BLH * is_eos_BL[:, :, None]).sum(dim=1)
        facets_BKD: Tensor = self.network.decoder(eos_BH, states_BLH, mask_B11L)
        return facets_BKD


@dataclass(frozen=True, slots=True)
class Runtime:
    """One way to run a network.

    Attributes:
        make: A padded network in float32, an example of its inputs and a folder for files, to the same network.
        needs: Packages besides PyTorch.
    """

    make: Callable[[nn.Module, tuple[Tensor, Tensor], Path], Network]
    needs: tuple[str, ...] = ()


def _compiled(network: nn.Module, example: tuple[Tensor, Tensor], folder: Path) -> Network:
    run: Network = torch.compile(network, dynamic=True)
    for size in (1, 2, 3):  # one text has code of its own
        run(example[0][:1].repeat(size, 1), example[1][:1].repeat(size))
    return run


def _onnx(network: nn.Module, example: tuple[Tensor, Tensor], folder: Path) -> Network:
    return _onnx_session(_onnx_file(network, example, folder))


def _onnx_int8(network: nn.Module, example: tuple[Tensor, Tensor], folder: Path) -> Network:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    small = folder / "int8.onnx"
    options = {"MatMulConstBOnly": True}
    file = _onnx_file(network, example, folder)
    quantize_dynamic(file, small, per_channel=True, weight_type=QuantType.QInt8, extra_options=options)
    return _onnx_session(small)


def _onnx_file(network: nn.Module, example: tuple[Tensor, Tensor], folder: Path) -> Path:
    import onnx

    file = folder / "network.onnx"
    names = ["rows", "lengths"]
    torch.onnx.export(_exported(network, example), f=file, input_names=names, dynamo=True, verbose=False)
    model = onnx.load(file)
    del model.graph.value_info[:]  # shapes that the exporter has noted, which the quantizer finds to be others
    onnx.save(model, file)
    return file


def _exported(network: nn.Module, example: tuple[Tensor, Tensor]) -> torch.export.ExportedProgram:
    either = torch.export.Dim.DYNAMIC
    return torch.export.export(network, example, dynamic_shapes=({0: either, 1: either}, {0: either}))


def _onnx_session(file: Path) -> Network:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]

    def run(rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        inputs = dict(zip(names, (rows_BL.numpy(), lengths_B.numpy()), strict=True))
        return torch.from_numpy(session.run(None, inputs)[0])

    return run


def _openvino(precision: str, *, compress: bool = False) -> Callable[..., Network]:
    def make(network: nn.Module, example: tuple[Tensor, Tensor], folder: Path) -> Network:
        import openvino

        model = openvino.convert_model(_exported(network, example))
        settings: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": precision,
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
            "PERFORMANCE_HINT": "LATENCY",
        }
        if compress:
            with redirect_stdout(sys.stderr):  # where it shows its progress
                import nncf

                model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM)
            settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 32
        compiled = openvino.Core().compile_model(model, "CPU", settings)

        def run(rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
            return torch.from_numpy(compiled([rows_BL.numpy(), lengths_B.numpy()])[0])

        return run

    return make


# What takes the place of a padded network; the eager ones are the library's own, without padding.
_RUNTIMES = {
    "torch.compile float32": Runtime(_compiled),
    "ONNX Runtime float32": Runtime(_onnx, ("onnx", "onnxscript", "onnxruntime")),
    "ONNX Runtime int8, dynamic": Runtime(_onnx_int8, ("onnx", "onnxscript", "onnxruntime")),
    "OpenVINO float32": Runtime(_openvino("f32"), ("openvino",)),
    "OpenVINO bfloat16": Runtime(_openvino("bf16"), ("openvino",)),
    "OpenVINO int8 weights, dynamic": Runtime(_openvino("f32", compress=True), ("openvino", "nncf")),
}


class _States(nn.Module):
    """In place of a ``SentenceEncoder``."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._run = network

    def forward(self, batch: RaggedBatch) -> Tensor:
        """See ``SentenceEncoder.forward``."""
        rows_BL = batch.pad(batch.ids[:, None])[:, :, 0]
        return batch.flatten(self._run(rows_BL, batch.lengths))


class _Facets(nn.Module):
    """In place of a ``FacetNetwork``."""

    def __init__(self, network: Network, encoder: nn.Module) -> None:
        super().__init__()
        self._run = network
        self.encoder = encoder  # says how texts are tokenized

    def forward(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """See ``FacetNetwork.forward``."""
        return self._run(rows_BL, lengths_B)


class _Subject(Protocol):
    """A model whose network another runtime can take over."""

    name: str
    searches: bool  # by one vector a text

    def as_loaded(self) -> Any: ...

    def eager(self, dtype: torch.dtype) -> Any: ...

    def int8(self) -> Any: ...

    def on(self, runtime: Runtime, folder: Path) -> Any: ...

    def encode(self, model: Any, texts: Sequence[str]) -> NDArray[np.float32]: ...


class _Passages:
    """The model of passages: its sentence encoder, one vector a text."""

    searches = True

    def __init__(self, name: str) -> None:
        self.name = name
        self._folder = find_model(name)

    def as_loaded(self) -> PassageModel:
        return load(self.name, PassageModel)

    def eager(self, dtype: torch.dtype) -> PassageModel:
        model = self.as_loaded()
        _unpack(model.network)
        model.network.float().load_state_dict(read_passage_weights(self._folder))
        model.network.to(dtype)
        return model

    def int8(self) -> PassageModel:
        model = self.eager(torch.float32)
        model.network.encoder = _int8_linears(model.network.encoder)
        return model

    def on(self, runtime: Runtime, folder: Path) -> PassageModel:
        model = self.eager(torch.float32)
        example = torch.randint(1000, 2000, (3, 20)), torch.tensor([20, 11, 7])
        padded = PaddedEncoder(copy.deepcopy(model.network.encoder)).eval()
        model.network.encoder = _States(runtime.make(padded, example, folder))  # type: ignore[assignment]
        return model

    def encode(self, model: PassageModel, texts: Sequence[str]) -> NDArray[np.float32]:
        return model.embed(texts)


class _Sentences:
    """The model of sentences: its whole network, all facets of a text."""

    searches = False

    def __init__(self, name: str) -> None:
        self.name = name

    def as_loaded(self) -> FacetModel:
        return load(self.name, FacetModel)

    def eager(self, dtype: torch.dtype) -> FacetModel:
        model = self.as_loaded()
        _unpack(model.network)
        model.network.to(dtype)
        return model

    def int8(self) -> FacetModel:
        model = self.eager(torch.float32)
        model.network = _int8_linears(model.network)
        return model

    def on(self, runtime: Runtime, folder: Path) -> FacetModel:
        model = self.eager(torch.float32)
        example = torch.randint(0, 1000, (3, 20)), torch.tensor([20, 11, 7])
        run = runtime.make(PaddedFacets(model.network).eval(), example, folder)
        model.network = _Facets(run, model.network.encoder)  # type: ignore[assignment]
        return model

    def encode(self, model: FacetModel, texts: Sequence[str]) -> NDArray[np.float32]:
        return model.encode(texts).reshape(len(texts), -1)


def _unpack(network: nn.Module) -> None:
    for layer in network.modules():
        if isinstance(layer, PackedLinear):
            layer.__class__ = nn.Linear


def _int8_linears(network: Any) -> Any:
    return torch.ao.quantization.quantize_dynamic(copy.deepcopy(network), {nn.Linear}, dtype=torch.qint8)


def compare_runtimes(folder: Path, *, rounds: int, peers: Mapping[str, Encode]) -> dict[str, object]:
    """Costs and losses of every runtime that is installed, for both models.

    Args:
        folder: In BEIR's layout.
        rounds: Each in turns over all runtimes; medians count.
        peers: Other encoders on the same texts, by name.
    """
    data = limit_queries(read_beir(folder), _NUM_QUERIES, seed=_SEED)
    data = limit_documents(data, _NUM_DOCUMENTS, seed=_SEED)
    subjects: tuple[_Subject, ...] = (_Passages("facets-passages-small-en"), _Sentences("facets-en"))
    return {
        "benchmark": "encode, runtimes",
        "threads": torch.get_num_threads(),
        "multiplies_bfloat16": fastest_precision(torch.device("cpu")) == torch.bfloat16,
        "data": folder.name,
        "queries": len(data.queries),
        "documents": len(data.documents),
        "words_per_query": round(statistics.mean(len(text.split()) for text in data.queries), 1),
        "words_per_passage": round(statistics.mean(len(text.split()) for text in _passages(data)), 1),
        "models": {subject.name: _compare(subject, data, rounds=rounds, peers=peers) for subject in subjects},
    }


def _passages(data: RetrievalData) -> list[str]:
    least, most = _PASSAGE_WORDS
    return [text for text in data.documents if least <= len(text.split()) <= most]


def _compare(subject: _Subject, data: RetrievalData, *, rounds: int, peers: Mapping[str, Encode]) -> dict[str, object]:
    left_out: dict[str, str] = {}
    with TemporaryDirectory() as scratch, torch.inference_mode():
        models = dict(_models(subject, Path(scratch), left_out))
        encoders: dict[str, Encode] = {name: _encoder(subject, model) for name, model in models.items()}
        costs = _costs({**encoders, **peers}, data, rounds)
        texts = [*data.queries[:100], *_passages(data)[:100]]
        exact_NX = encoders[BASELINE](texts)
        figures: dict[str, dict[str, object]] = {}
        for name in {**encoders, **peers}:
            figures[name] = {"cpu_ms_per_text": costs[name], "times_as_fast": _ratios(costs[BASELINE], costs[name])}
            if name in models:
                cosines_N = _cosines(exact_NX, encoders[name](texts))
                figures[name]["cosine"] = {
                    "mean": round(float(cosines_N.mean()), 5),
                    "least": round(float(cosines_N.min()), 5),
                }
                if subject.searches:
                    figures[name]["ndcg_10"] = round(_ndcg(encoders[name], data), 4)
    return {"runtimes": figures, "left_out": left_out}


def _ndcg(encode: Encode, data: RetrievalData) -> float:
    """Of rankings by one vector a text, every document compared."""
    scorer = VectorScorer(encode(data.documents), encode(data.queries))
    scored = scorer.scores(slice(0, len(data.queries)))
    rankings = [[data.document_ids[row] for row in best_rows(scores_N, DEPTH)] for scores_N in scored]
    judgements = [data.judgements[query] for query in data.query_ids]
    return float(query_metrics(rankings, judgements)["ndcg_10"].mean())


def _models(subject: _Subject, scratch: Path, left_out: dict[str, str]) -> Iterator[tuple[str, Any]]:
    yield BASELINE, subject.eager(torch.float32)
    yield "eager, as the library loads it", subject.as_loaded()
    yield "eager bfloat16", subject.eager(torch.bfloat16)
    yield "eager int8, dynamic", subject.int8()
    for name, runtime in _RUNTIMES.items():
        missing = [package for package in runtime.needs if find_spec(package) is None]
        if missing:
            left_out[name] = f"not installed: {', '.join(missing)}"
            continue
        folder = scratch / name
        folder.mkdir()
        try:
            yield name, subject.on(runtime, folder)
        except RuntimeError as error:  # no compiler, or an operation that the runtime does not know
            left_out[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"


def _encoder(subject: _Subject, model: Any) -> Encode:
    return lambda texts: subject.encode(model, texts)


def _costs(encoders: Mapping[str, Encode], data: RetrievalData, rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds of processor time a text: medians of rounds in turns."""
    taken: dict[str, dict[str, list[float]]] = {name: {load: [] for load in _WORKLOADS} for name in encoders}
    for number in range(rounds + 1):
        for load_name, (num_texts, size) in _WORKLOADS.items():
            texts = (data.queries if "quer" in load_name else _passages(data))[:num_texts]
            for name, encode in encoders.items():
                with _one_round() as spent:
                    for start in range(0, len(texts), size):
                        encode(texts[start : start + size])
                if number:  # the first warms up
                    taken[name][load_name].append(1000 * spent[0] / len(texts))
    return {
        name: {load_name: round(statistics.median(values), 3) for load_name, values in of_loads.items()}
        for name, of_loads in taken.items()
    }


@contextmanager
def _one_round() -> Iterator[list[float]]:
    spent: list[float] = []
    started = time.process_time()
    yield spent
    spent.append(time.process_time() - started)


def _ratios(baseline: Mapping[str, float], costs: Mapping[str, float]) -> dict[str, float]:
    return {name: round(baseline[name] / cost, 2) for name, cost in costs.items()}


def _cosines(exact_NX: NDArray[np.float32], found_NX: NDArray[np.float32]) -> NDArray[np.float64]:
    exact, found = exact_NX.astype(np.float64), found_NX.astype(np.float64)
    norms = np.linalg.norm(exact, axis=1) * np.linalg.norm(found, axis=1)
    cosines: NDArray[np.float64] = (exact * found).sum(axis=1) / norms
    return cosines

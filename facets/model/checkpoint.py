r"""The checkpoint folder: everything a model needs, loaded offline from its path alone.

::

    config.json          format, name, task, network settings, where the word vectors are
    model.safetensors    weights, half precision
    vocabulary.tsv       words and counts                 \\  or `words` in config.json names another
    vectors.safetensors  word vectors, 1 byte per number  /  checkpoint folder, relative to this one
    README.md            model card
    modules.json, config_sentence_transformers.json
                         so that it also opens as a sentence-transformers MultiVectorEncoder
"""

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.nn import init
from torch.overrides import TorchFunctionMode

from facets.config import FacetModelConfig, NonNegative, Settings
from facets.errors import CheckpointError, NotFoundError
from facets.language.vectors import WordVectors, dequantize, has_equal_groups, quantize
from facets.model.base import ModelConfig
from facets.model.network import WordTable
from facets.model.precision import use_half_weights
from facets.model.shipped import ENCODER_PREFIX, borrowed_folder
from facets.storage.files import content_hash, reading, write_whole

NetworkT = TypeVar("NetworkT", bound=nn.Module)
ConfigT = TypeVar("ConfigT", bound=Settings)
ModelT = TypeVar("ModelT")

_shared: "WeakValueDictionary[tuple[object, ...], Any]" = WeakValueDictionary()
_tables: "WeakValueDictionary[bytes, Tensor]" = WeakValueDictionary()  # by hash of the content
_loading = threading.RLock()  # a model may use another one

_FORMAT = 1
_CONFIG_FILE, _WEIGHTS_FILE = "config.json", "model.safetensors"
_SCALES_SUFFIX = ".scales"


class CheckpointConfig(ModelConfig):
    """``config.json`` of a model of sentences or papers."""

    model: FacetModelConfig  # shape of the network
    l1_weight: NonNegative = 0.4  # lambda of eq. 3.1 in training; scoring uses the same value
    words: str = "."  # folder of the word vectors, relative to the checkpoint; `.` is the checkpoint itself


def write_checkpoint(folder: Path, config: CheckpointConfig, tensors: dict[str, Tensor], **others: object) -> None:
    """Writes configuration and weights, floating point tensors in half precision; see ``write_parts``."""
    halves = {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
    write_parts(folder, config, halves, **others)


def write_parts(folder: Path, config: Settings, tensors: Mapping[str, Tensor], **others: object) -> None:
    """Writes ``config.json``, ``model.safetensors`` and ``others`` (JSON by file name), each file atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_whole(folder / _WEIGHTS_FILE, save(weights))
    for name, content in {**others, _CONFIG_FILE: {"format": _FORMAT, **config.to_dict()}}.items():
        write_whole(folder / name, json.dumps(content, indent=2) + "\n")


def shared(load: Callable[[Path], ModelT], folder: Path, files: Iterable[str], device: str) -> ModelT:
    """What ``load`` makes of a folder, read-only and shared while it is in use and these ``files`` are unchanged."""
    folder = folder.resolve()
    stats = [(folder / name).stat() for name in files if (folder / name).exists()]
    key = (folder, device, *((file.st_mtime_ns, file.st_size) for file in stats))
    with _loading:
        model: ModelT | None = _shared.get(key)
        if model is None:
            model = _shared[key] = load(folder)
    return model


def revision_of(*files: Path) -> str:
    """Hash of the content of a model's files, as twelve hexadecimal digits; raises CheckpointError."""
    with reading(files[0].parent):
        return hashlib.sha256(b"".join(map(content_hash, files))).hexdigest()[:12]


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of ``model.safetensors``, bytes with scales as float32 too; raises CheckpointError."""
    tensors = _stored_tensors(folder)
    with reading(folder / _WEIGHTS_FILE):
        for name in [name for name in tensors if name + _SCALES_SUFFIX in tensors]:
            scales = tensors.pop(name + _SCALES_SUFFIX).numpy()
            tensors[name] = torch.from_numpy(dequantize(tensors[name].numpy(), scales))
    return {name: t.float() if t.is_floating_point() else t for name, t in tensors.items()}


def read_table(folder: Path, name: str) -> WordTable:
    """A matrix of ``model.safetensors`` as it is stored; equal ones share memory. Raises CheckpointError."""
    tensors = _stored_tensors(folder)
    if name not in tensors:
        raise CheckpointError(f"{folder}: expected a model of passages, its weights have no {name}")
    values, scales = tensors[name], tensors.get(name + _SCALES_SUFFIX)
    if scales is None or not has_equal_groups(values, scales):
        return WordTable(read_weights(folder)[name])
    values = values.clone()  # else the whole file stays mapped
    values = _tables.setdefault(hashlib.sha256(values.numpy().data).digest(), values)
    return WordTable(values, scales.float())


def _stored_tensors(folder: Path) -> dict[str, Tensor]:
    path = folder / _WEIGHTS_FILE
    with reading(path):
        tensors = load_file(path)
        for name, tensor in tensors.items():
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                raise ValueError(f"tensor {name} has NaN or infinite values, expected finite ones")
    return tensors


def packed_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights with matrices as bytes and scales, and others in half precision, as ``read_weights`` reads them."""
    packed: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if tensor.ndim == 2:
            values, scales = quantize(tensor.detach().float().cpu().numpy())
            packed |= {name: torch.from_numpy(values), name + _SCALES_SUFFIX: torch.from_numpy(scales)}
        else:
            packed[name] = tensor.half() if tensor.is_floating_point() else tensor
    return packed


def check_weights(folder: Path) -> None:
    """Raises CheckpointError if ``model.safetensors`` is missing or cut off; does not read the weights."""
    with reading(folder / _WEIGHTS_FILE), safe_open(folder / _WEIGHTS_FILE, "numpy"):
        pass


def read_words(folder: Path, dim: int) -> WordVectors:
    """Word vectors in the space of a model's facets, of ``dim`` dimensions; raises CheckpointError."""
    words = WordVectors.load(folder)
    if words.dim != dim:
        raise CheckpointError(f"{folder}: word vectors have {words.dim} dimensions, the model expects {dim}")
    return words


def revision_files(folder: Path, config: CheckpointConfig) -> list[Path]:
    """The files that determine a model's output: configuration, weights and words."""
    words = borrowed_folder(folder, config.words)
    own = [folder / _CONFIG_FILE, folder / _WEIGHTS_FILE]
    return [*own, words / "vectors.safetensors", words / "vocabulary.tsv"]


_INITIALIZERS = {init.uniform_, init.normal_, init.trunc_normal_, init.kaiming_uniform_}


class _NoInitialization(TorchFunctionMode):
    """Skips the random initialization of layers; the meta device would import PyTorch's compiler, which takes 2 s."""

    def __torch_function__(self, function: Callable[..., Any], _: object, inputs: Any = (), options: Any = None) -> Any:
        options = options or {}
        if function in _INITIALIZERS:
            return options["tensor"]
        if function is torch.randn:
            return torch.empty(*inputs, **options)
        return function(*inputs, **options)


def fit_weights(folder: Path, build: Callable[[], NetworkT], tensors: dict[str, Tensor]) -> NetworkT:
    """Builds a network with the weights of a checkpoint; raises CheckpointError if they do not fit."""
    try:
        with _NoInitialization():
            network = build()
        network.load_state_dict(tensors, assign=True)
        use_half_weights(network)
    except RuntimeError as error:  # also raised if the network does not fit into memory
        problem = " ".join(str(error).split())[:300]  # PyTorch reports every tensor on a separate line
        raise CheckpointError(f"{folder}: the weights do not fit config.json: {problem}") from error
    return network


def read_config(folder: Path, kind: type[ConfigT]) -> ConfigT:
    """Configuration of a checkpoint of a known task; raises as ``read_settings``, also for another task."""
    values = read_settings(folder)
    task, expected = values.get("task"), kind.model_fields["task"]
    if not expected.is_required() and task != expected.default:
        raise CheckpointError(f"{folder}: expected a model for {expected.default}, got one for {task!r}")
    with reading(folder / _CONFIG_FILE):
        return kind(**{name: value for name, value in values.items() if name != "format"})


def read_settings(folder: Path) -> dict[str, Any]:
    """Content of ``config.json`` of a checkpoint of any task.

    Raises NotFoundError without such a folder, CheckpointError if the file is missing, damaged or of an unknown format.
    """
    if not folder.is_dir():
        raise NotFoundError(f"no model folder at {folder}", resource_type="model", resource_name=str(folder))
    path = folder / _CONFIG_FILE
    with reading(path):
        values = json.loads(path.read_bytes())
    if not isinstance(values, dict) or values.get("format") != _FORMAT:
        got = values.get("format") if isinstance(values, dict) else type(values).__name__
        if got is None and (folder / "modules.json").exists():
            raise CheckpointError(f"{folder} is an encoder: write {ENCODER_PREFIX}{folder}")
        raise CheckpointError(f"{path}: expected checkpoint format {_FORMAT}, got {got!r}")
    return values

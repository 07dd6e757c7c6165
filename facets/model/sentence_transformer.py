"""Opens any sentence-transformers encoder as a passage model: ``facets.load("sentence-transformers:NAME_OR_PATH")``.

Pooling, prompts, ``Dense`` layers, normalization, truncation of vectors and the longest text come from the model's own
files. Extra ``backbone``.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from facets.errors import CheckpointError, ConfigError, NotFoundError
from facets.extras import missing_modules
from facets.model.contract import EncoderSettings
from facets.model.late_interaction import LateInteractionEncoder, LateInteractionModel
from facets.model.passage_encoding import WindowEncoder
from facets.model.passage_model import PassageModel
from facets.model.precision import fastest_precision
from facets.model.shipped import ENCODER_PREFIX
from facets.model.window_encoders import LazyWords, TextEncoder, TokenEncoder, prompt_of
from facets.storage.files import content_hash, reading

# Files that determine the vectors: of the root, and of the folder of a module.
_ROOT_FILES = (
    "modules.json config.json config_sentence_transformers.json sentence_*_config.json artifact.metadata"
    " router_config.json *processor_config.json tokenizer* vocab* merges.txt *.model special_tokens_map.json"
    " added_tokens.json adapter_* model*.safetensors*"
).split()
_MODULE_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")
_ENGINE_FILES = {"torch": "", "onnx": "*.onnx*", "openvino": "openvino*.xml openvino*.bin"}
_TOKENIZER_FILES = ("tokenizer*.json", "vocab.*", "*.model")
_BACKENDS = {"torch": (), "onnx": ("optimum.onnxruntime",), "openvino": ("optimum.intel",)}  # and what they need
_OLD_WEIGHTS = "pytorch_model.bin"
_NOT_DOWNLOADED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.gguf", _OLD_WEIGHTS]
_WORD_LISTS = (".WordEmbeddings", ".BoW")
_PYLATE_DENSE = "pylate.models.Dense.Dense"  # sentence-transformers has this class of its own


def load_sentence_transformer(
    name_or_path: str,
    *,
    device: str = "cpu",
    allow_downloads: bool = False,
    trust_remote_code: bool = False,
    backend: str = "torch",
) -> PassageModel:
    """A passage model of an encoder; for the arguments see ``facets.load``, which also documents the errors."""
    if backend not in _BACKENDS:
        raise ConfigError(f"backend must be {', '.join(_BACKENDS)}, got {backend!r}")
    if missing_modules(*_BACKENDS[backend]):
        extra = f"sentence-transformers[{backend}]"
        raise ImportError(f"backend {backend} needs {_BACKENDS[backend][0]}, not installed: pip install '{extra}'")
    folder = find_encoder(name_or_path, allow_downloads=allow_downloads)
    try:
        is_late = _is_late(folder)
        model = _open(folder, is_late, device=device, trust_remote_code=trust_remote_code, backend=backend)
    except (AttributeError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder}: expected JSON files as sentence-transformers writes them: {error}") from error
    if is_late and not _is_transformer(model):
        raise CheckpointError(f"{folder}: expected a fast tokenizer, which late interaction needs")
    for size in ("truncate_dim", "max_seq_length"):
        value = getattr(model, size, None)
        if value not in (None, math.inf) and (not isinstance(value, int) or value < 1):
            raise CheckpointError(f"{folder}: expected {size} to be an integer of at least 1, got {value!r}")
    kind = LateInteractionEncoder if is_late else TokenEncoder if _is_transformer(model) else TextEncoder
    encoder: WindowEncoder = kind(model)
    if encoder.longest < 1:
        rule = f"expected room for text beside the {encoder.num_special} tokens of prompt and special tokens"
        raise CheckpointError(f"{folder}: {rule}, max_seq_length is {model.max_seq_length}")
    if encoder.dim < 1:
        raise CheckpointError(f"{folder}: expected a last module that says how wide its vectors are")
    revision = _revision(folder, backend)
    name = os.path.basename(os.path.abspath(Path(name_or_path).expanduser()))  # also of "."
    identity: dict[str, Any] = {
        "name": name,
        "revision": revision,
        "space": f"{ENCODER_PREFIX}{name}@{revision}",
        "encoder_settings": _settings(model, backend),
    }
    words = LazyWords(encoder, _pieces_of(model))
    if isinstance(encoder, LateInteractionEncoder):
        return LateInteractionModel(encoder, words, **identity)
    return PassageModel(encoder, words, **identity)


def _pieces_of(model: Any) -> Mapping[str, int]:
    """The pieces of the tokenizer with their ids; none if it does not say."""
    get_vocab = getattr(getattr(model[0], "tokenizer", None), "get_vocab", dict)
    return {str(piece): int(number) for piece, number in get_vocab().items()}


def _settings(model: Any, backend: str) -> EncoderSettings:
    modes = next((module.pooling_mode for module in model.modules() if hasattr(module, "pooling_mode")), ())
    return EncoderSettings(
        pooling="+".join(map(str, np.atleast_1d(modes).tolist())),
        query_prompt=prompt_of(model, query=True),
        document_prompt=prompt_of(model, query=False),
        similarity=str(model.similarity_fn_name or "cosine"),
        backend=backend,
    )


def find_encoder(name: str, *, allow_downloads: bool = False) -> Path:
    """The folder of a model: the path itself or a folder of the local cache; downloads what is missing if allowed."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    path = Path(name).expanduser()
    if name and path.is_dir():
        return path
    full_name = name if "/" in name else f"sentence-transformers/{name}"
    fetch = partial(snapshot_download, full_name, local_files_only=not allow_downloads)
    try:
        folder = Path(fetch(ignore_patterns=_NOT_DOWNLOADED))
        if allow_downloads and not any(folder.glob("*.safetensors")):  # older models have these weights only
            folder = Path(fetch(ignore_patterns=[name for name in _NOT_DOWNLOADED if name != _OLD_WEIGHTS]))
        return folder
    except LocalEntryNotFoundError as error:
        instead = "give a folder, or allow downloads (--allow-downloads, in Python allow_downloads=True)"
        problem = f"{name} is no folder and not in the local cache of models: {instead}"
        if allow_downloads:
            problem = f"{name} could not be downloaded and is not in the local cache of models: {error}"
    except HFValidationError:
        problem = f"{ENCODER_PREFIX}{name} names no folder, and no model such as intfloat/multilingual-e5-small"
    except Exception as error:  # the hub answers in many ways, such as 401 for a name that does not exist
        problem = f"{name} could not be downloaded: {' '.join(str(error).split())[:300]}"
    raise NotFoundError(problem, resource_type="model", resource_name=name)


def _is_late(folder: Path) -> bool:
    """Whether a model gives a vector for each token; sentence-transformers would open it with another class too."""
    modules, settings = _modules(folder), _json(folder / "config_sentence_transformers.json")
    architectures = _json(folder / "config.json").get("architectures") or []
    if any(name.endswith("ForRetrieval") for name in architectures):
        raise CheckpointError(f"{folder}: expected a model of texts, got one of images ({', '.join(architectures)})")
    kind = settings.get("model_type")
    if kind in ("MultiVectorEncoder", "ColBERT") or "HF_ColBERT" in architectures:
        return True
    if not modules:
        raise CheckpointError(f"{folder}: expected a sentence-transformers model, there is no modules.json")
    if kind not in (None, "SentenceTransformer"):
        raise CheckpointError(
            f"{folder}: expected a model that gives vectors of texts or of their tokens, got a {kind}"
        )
    is_of_pylate = "query_prefix" in settings or any(module["type"] == _PYLATE_DENSE for module in modules)
    return kind is None and is_of_pylate


def _open(folder: Path, is_late: bool, *, device: str, trust_remote_code: bool, backend: str) -> Any:
    """A ``SentenceTransformer``, or if ``is_late`` a ``MultiVectorEncoder``, in the fastest precision."""
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer

    modules = _modules(folder)
    if words := [module["type"] for module in modules if module["type"].endswith(_WORD_LISTS)]:
        kinds = "expected a transformer or a static model, with a tokenizer of pieces"
        raise CheckpointError(f"{folder}: {kinds}, got lists of words ({', '.join(words)})")
    if not trust_remote_code and (code := _own_code(folder, modules)):
        rule = "which runs only if you trust it (--trust-remote-code, in Python trust_remote_code=True)"
        raise CheckpointError(f"{folder}: the model brings its own Python code ({code}), {rule}")
    if not any(any(folder.rglob(pattern)) for pattern in _TOKENIZER_FILES):
        raise CheckpointError(f"{folder}: the model is incomplete, it has no tokenizer")
    dtype = fastest_precision(torch.device(device)) if backend == "torch" else torch.float32
    try:
        with _silence():
            return (MultiVectorEncoder if is_late else SentenceTransformer)(
                str(folder),
                device=device,
                local_files_only=True,
                trust_remote_code=trust_remote_code,
                backend=backend,
                model_kwargs={"dtype": dtype} if backend == "torch" else {},
            )
    except Exception as error:  # models fail to open in many ways
        problem = " ".join(str(error).split())[:300]
        raise CheckpointError(f"{folder}: expected a sentence-transformers model: {problem}") from error


@contextmanager
def _silence() -> Iterator[None]:
    """No progress bars and notes of transformers while a model is opened; errors are raised."""
    from transformers.utils import logging as untyped

    logging: Any = untyped
    had_bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if had_bars:
            logging.enable_progress_bar()


def _own_code(folder: Path, modules: Sequence[Mapping[str, str]]) -> str:
    """Names of the classes that the model's own Python files define, separated by commas."""
    from transformers import CONFIG_MAPPING

    known = ("sentence_transformers.", _PYLATE_DENSE)
    found = [module["type"] for module in modules if not module["type"].startswith(known)]
    for path in folder.glob("**/config.json"):
        config = _json(path)
        if str(config.get("model_type")) not in CONFIG_MAPPING:
            found += map(str, (config.get("auto_map") or {}).values())
    return ", ".join(found)


def _json(path: Path) -> Any:
    """Content of a JSON file; empty if there is none."""
    with reading(path), suppress(FileNotFoundError):
        return json.loads(path.read_text(encoding="utf-8"))
    return {}


def _modules(folder: Path) -> list[dict[str, str]]:
    """The modules that ``modules.json`` names, and those of a router."""
    modules, routes = _json(folder / "modules.json"), []
    for module in modules:
        if module["type"].endswith(".Router"):
            path = folder / module["path"] / "router_config.json"
            types = _json(path).get("types") or {}
            routes += [{"type": kind, "path": os.path.join(module["path"], own)} for own, kind in types.items()]
    return [*modules, *routes]


def _revision(folder: Path, backend: str) -> str:
    """Hash of the files that determine the vectors, as twelve hexadecimal digits."""
    modules = _modules(folder)
    found = [path for pattern in _ROOT_FILES for path in folder.glob(pattern)]
    found += [path for pattern in _ENGINE_FILES[backend].split() for path in folder.rglob(pattern)]
    if _own_code(folder, modules):  # it is trusted, or the model would not be open
        found += folder.rglob("*.py")
    for own in {module["path"] for module in modules} - {""}:
        found += [path for pattern in _MODULE_FILES for path in (folder / own).rglob(pattern)]
    for place in {folder, *(path.parent for path in found)}:
        if not any(place.glob("*.safetensors")):
            found += place.glob("pytorch_model*.bin")
    total = hashlib.sha256(backend.encode())
    for path in sorted(set(found)):
        if path.is_file():
            total.update(os.path.relpath(path, folder).encode())
            total.update(content_hash(path))
    return total.hexdigest()[:12]


def _is_transformer(model: Any) -> bool:
    """Whether the first module is a transformer whose tokenizer tells the characters of each piece."""
    return getattr(getattr(model[0], "tokenizer", None), "is_fast", False) and hasattr(model[0], "auto_model")

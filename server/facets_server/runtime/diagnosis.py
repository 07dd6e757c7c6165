"""What can be told of vectors in a file, or of the word vectors of a model: ``facets-server diagnose``."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from facets.diagnose import HullReport, Reach, VectorReport, certify, describe
from facets.errors import InvalidInputError
from facets.model.loading import load

_SHOWN = 10


def diagnose_file(source: str, *, hull: bool, budget_s: float | None, as_json: bool) -> str:
    """What is told, as text or as JSON.

    Args:
        source: A file ``.npy`` of ``[rows, dim]`` or ``[documents, facets, dim]``, or a model: its word vectors.
        hull: Whether to prove which rows no query ranks first by inner product.
        budget_s: Seconds for that; what is open then is undecided.
        as_json: Whether to write JSON.

    Raises:
        InvalidInputError: The files hold no such arrays.
        NotFoundError: No model of that name.
        OSError: A file cannot be read.
    """
    rows_ND, owners_N = _read(source)
    report = describe(rows_ND, owners_N=owners_N)
    proved = certify(rows_ND, owners_N=owners_N, budget_s=budget_s) if hull else None
    if as_json:
        return json.dumps(_plain(report, proved, owners_N), indent=2)
    return "\n".join(_lines(report, proved, owners_N))


def _array(path: Path) -> NDArray[np.float32]:
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InvalidInputError(f"{path} is no .npy file of numbers: {error}") from error
    if not isinstance(array, np.ndarray) or not np.issubdtype(array.dtype, np.floating):
        raise InvalidInputError(f"{path}: expected an array of floats, got {getattr(array, 'dtype', 'an archive')}")
    return array.astype(np.float32)


def _read(source: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Rows and whose they are; rows of zeros, which documents with fewer facets have, left out."""
    if source.endswith(".npy"):
        array = _array(Path(source))
    else:
        array = load(source).words.vectors
    if array.ndim == 2:
        return array, np.arange(len(array))
    if array.ndim != 3 or not array.size:
        shape = list(array.shape)
        raise InvalidInputError(f"has shape {shape}, expected [rows, dim] or [documents, facets, dim]", path=source)
    rows = array.reshape(-1, array.shape[2])
    owners = np.repeat(np.arange(len(array)), array.shape[1])
    there = np.any(rows != 0, axis=1)
    return rows[there], owners[there]


def _unreached(proved: HullReport, owners_N: NDArray[np.int64]) -> NDArray[np.int64]:
    """Documents of which every row is proved to be inside the hull of others."""
    return np.setdiff1d(owners_N, owners_N[proved.reach != Reach.INTERIOR])


def _plain(report: VectorReport, proved: HullReport | None, owners_N: NDArray[np.int64]) -> dict[str, Any]:
    content: dict[str, Any] = {"vectors": asdict(report)}
    if proved is not None:
        counts = {reach.name.lower(): proved.num(reach) for reach in Reach}
        content["hull"] = {**counts, "unreached": _unreached(proved, owners_N).tolist()}
    return content


def _lines(report: VectorReport, proved: HullReport | None, owners_N: NDArray[np.int64]) -> list[str]:
    lines = [
        f"{report.num_rows:,} vectors of {report.dim} dimensions, {report.num_owners:,} documents",
        f"duplicates {report.num_duplicates:,} (largest group {report.largest_duplicate}), zeros {report.num_zero:,}",
        f"effective rank {report.effective_rank:.1f}, {report.epsilon_rank} directions above 1 %",
    ]
    for name, near in (("inner product", report.dot), ("cosine", report.cosine)):
        lines.append(
            f"by {name}: {near.self_first:.1%} find themselves, {near.unreached:.1%} are near nobody, the largest hub "
            f"(document {near.hub}) is in {near.largest_hub:,} of {near.num_queries:,} lists"
        )
    if proved is not None:
        unreached = _unreached(proved, owners_N)
        lines.append(
            f"hull: {proved.num(Reach.VERTEX):,} vectors can be first, {proved.num(Reach.INTERIOR):,} cannot, "
            f"{proved.num(Reach.UNDECIDED):,} undecided; documents that no query ranks first: {len(unreached):,}"
            + (f" ({', '.join(map(str, unreached[:_SHOWN]))}...)" if len(unreached) else "")
        )
    return lines + [f"-> {sentence}" for sentence in report.findings]

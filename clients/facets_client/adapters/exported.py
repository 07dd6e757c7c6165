"""Documents as other stores keep them: unit vectors and norms, spans as numbers, files that are whole or not there.

Shape letters: K facets of a document, D dimensions, U those of them that are not zero.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from facets_client.core.types import Span, TokenStats
from facets_client.documents.types import Document

T = TypeVar("T")


def facets_of(document: Document) -> NDArray[np.float32]:
    """The facets of a document that was read with them, ``[K, D]``.

    Raises:
        ValueError: It was read without.
    """
    if document.facet_embeddings is None:
        raise ValueError(f"document {document.id!r} has no facets: list documents with include_facets=True")
    return np.ascontiguousarray(document.facet_embeddings, dtype=np.float32)


def split_norms(facets_KD: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Unit vectors ``[U, D]`` of the facets that are not zero, and the norms of all ``[K]``.

    Example:
        >>> units, norms = split_norms(np.array([[0.0, 2.0], [0.0, 0.0]], dtype=np.float32))
        >>> units.tolist(), norms.tolist()
        ([[0.0, 1.0]], [2.0, 0.0])
    """
    norms_K = np.linalg.norm(facets_KD, axis=1).astype(np.float32)
    kept = norms_K > 0
    return facets_KD[kept] / norms_K[kept, None], norms_K


def join_norms(units_UD: NDArray[np.float32], norms_K: NDArray[np.float32]) -> NDArray[np.float32]:
    """The facets ``[K, D]`` that ``split_norms`` took apart.

    Raises:
        ValueError: Norms and vectors do not belong together.
    """
    kept = norms_K > 0
    if int(kept.sum()) != len(units_UD):
        raise ValueError(f"got {len(units_UD)} vectors, the norms expect {int(kept.sum())}")
    facets_KD = np.zeros((len(norms_K), units_UD.shape[1]), dtype=np.float32)
    facets_KD[kept] = units_UD * norms_K[kept, None]
    return facets_KD


def from_spans(spans: Sequence[Span | None]) -> list[list[int]]:
    """``[start, end]`` a facet; empty for one that has no place in the text."""
    return [[span.start, span.end] if span else [] for span in spans]


def to_spans(pairs: Iterable[Sequence[int]]) -> tuple[Span | None, ...]:
    """The spans that ``from_spans`` wrote."""
    return tuple(Span(int(pair[0]), int(pair[1])) if len(pair) else None for pair in pairs)


def token_stats(num_tokens: int, num_unknown_tokens: int, num_tokens_in_text: int) -> TokenStats:
    """What a model read of a text: of so many tokens so many, and of these so many that it does not know."""
    return TokenStats(num_tokens, num_unknown_tokens, num_tokens < num_tokens_in_text, num_tokens_in_text)


def to_json(payload: object) -> str:
    """Compact JSON, the same for equal payloads: those of messages have their keys in any order."""
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def from_json(text: str) -> dict[str, object]:
    """The payload that ``to_json`` wrote."""
    payload: dict[str, object] = json.loads(text)
    return payload


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of ``size``, the last one shorter."""
    source = iter(items)
    while batch := list(islice(source, size)):
        yield batch


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """A file to write beside ``path``; it takes that place at the end, after an error it is gone."""
    target = Path(path)
    partial = target.with_name(f"{target.name}.partial")
    try:
        yield partial
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)

"""What kinds of heads and tails a relation has, as log-odds to add to the scores of its patterns.

Shape suffixes: R relations, T kinds of entities in the order of ``EntityType``.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from facets.relations.entity_types import EntityType
from facets_lab.relations.training.bootstrapping import kind_of_name
from facets_lab.relations.training.catalogue import RelationCatalogue
from facets_lab.relations.training.mining_documents import bare_name

__all__ = ["type_log_odds"]

_KINDS = list(EntityType)
_UNKNOWN = _KINDS.index(EntityType.UNKNOWN)
_PRIOR_PAIRS = 20.0  # what the catalogue says counts as much as so many pairs
_MAX_PAIRS = 200.0  # more of one relation make it no surer
_STRANGE = 0.04  # share of the kinds that a relation does not take, all together: texts and recognisers err
_LIMIT = 4.0  # no pattern is silenced by kinds alone


def type_log_odds(
    triples: Iterable[tuple[str, str, str]],
    catalogue: RelationCatalogue,
    types: Mapping[str, EntityType],
    *,
    relations: Sequence[str],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Log-odds of the kind of an argument for each relation, against the average relation.

    Args:
        triples: Head, tail and canonical relation, of a knowledge base or bootstrapped.
        catalogue: What kinds a relation takes: where a relation has few pairs, that decides.
        types: Kinds of names.
        relations: The order of the rows; relations that the catalogue does not hold get zeros.

    Returns:
        For heads and for tails: natural logarithms, ``[R, T]`` float32 in ``[-4, 4]``, columns in the order of
        ``EntityType``. The column of ``UNKNOWN`` is 0, for what is not known says nothing.
    """
    row_of = {name: row for row, name in enumerate(relations)}
    counts_ART = np.zeros((2, len(relations), len(_KINDS)))
    for head, tail, relation in dict.fromkeys(triples):
        row = row_of.get(relation)
        if row is not None:
            for argument, name in enumerate((head, tail)):
                counts_ART[argument, row, _KINDS.index(kind_of_name(bare_name(name), types))] += 1
    counts_ART[:, :, _UNKNOWN] = 0
    totals_AR1 = counts_ART.sum(axis=2, keepdims=True)
    counts_ART *= np.minimum(1.0, _MAX_PAIRS / np.maximum(totals_AR1, 1.0))
    shares_ART = counts_ART + _PRIOR_PAIRS * _signatures(catalogue, row_of)
    is_known_R = shares_ART.sum(axis=(0, 2)) > 0
    odds_ART = np.zeros_like(shares_ART)
    if is_known_R.any():
        known_ART = shares_ART[:, is_known_R]
        known_ART = known_ART / known_ART.sum(axis=2, keepdims=True)
        average_A1T = known_ART.mean(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            odds_ART[:, is_known_R] = np.log(known_ART) - np.log(average_A1T)
    odds_ART[:, :, _UNKNOWN] = 0
    odds_ART = np.clip(np.nan_to_num(odds_ART, nan=0.0), -_LIMIT, _LIMIT).astype(np.float32)
    return odds_ART[0], odds_ART[1]


def _signatures(catalogue: RelationCatalogue, row_of: Mapping[str, int]) -> NDArray[np.float64]:
    """Shares of the kinds by the catalogue alone, ``[2, R, T]``; zeros for relations that it does not hold."""
    shares_ART = np.zeros((2, len(row_of), len(_KINDS)))
    for entry in catalogue.relation:
        if entry.name not in row_of:
            continue
        for argument, kinds in enumerate((entry.head, entry.tail)):
            shares = shares_ART[argument, row_of[entry.name]]
            shares[:] = _STRANGE / (len(_KINDS) - 1)
            shares[_UNKNOWN] = 0
            for kind in kinds:
                shares[_KINDS.index(kind)] += (1 - _STRANGE) / len(kinds)
    return shares_ART

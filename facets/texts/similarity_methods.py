"""The table of similarity methods, one row per method.

Dispatch, checks and documentation (``methods_table``) are derived from the rows. The proto enum has the same names.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Self

import torch
from torch import Tensor

from facets import scoring
from facets.errors import ConfigError, InvalidInputError
from facets.extras import require_extra
from facets.texts.pairs import PairTexts, Weighting

# Pairs of facets with a smaller share of a score are left out of explanations.
_MIN_CONTRIBUTION = 1e-4
_MINUS_DISTANCE = (-2.0, 0.0)


class MethodKind(StrEnum):
    """The kind of data that a method compares."""

    FACET = "facet"
    WORD = "word"  # known words without punctuation; facets can weight them
    ENCODER = "encoder"
    ALIGNMENT = "alignment"


def mutual_shares(first_PKD: Tensor, second_PKD: Tensor) -> Tensor:
    """Share of each pair of facets in the mutual reconstruction of eq. 3.5, ``[P, K, K]``."""
    contributions_PKK = scoring.codebook_contributions(first_PKD, second_PKD)
    shares_PKK = contributions_PKK / contributions_PKK.sum(dim=(1, 2), keepdim=True).clamp_min(1e-12)
    shares_PKK = torch.where(shares_PKK >= _MIN_CONTRIBUTION, shares_PKK, 0.0)
    return shares_PKK / shares_PKK.sum(dim=(1, 2), keepdim=True).clamp_min(1e-12)


def best_match_shares(first_PKD: Tensor, second_PKD: Tensor) -> Tensor:
    """1 for the two closest facets of each pair of texts, else 0, ``[P, K, K]``."""
    _, first_P, second_P = scoring.best_facet_match(first_PKD, second_PKD)
    shares_PKK = torch.zeros(len(first_PKD), first_PKD.shape[1], second_PKD.shape[1])
    shares_PKK[torch.arange(len(first_PKD)), first_P, second_P] = 1.0
    return shares_PKK


def _average(texts: PairTexts, weighting: Weighting) -> Tensor:
    return texts.cosines(texts.averages(weighting))


def _wmd(texts: PairTexts, weighting: Weighting) -> Tensor:
    return texts.words.wmd(texts.pairs_P2, texts.weights(weighting))


@dataclass(frozen=True, slots=True)
class MethodRow:
    """Everything about a method.

    Attributes:
        kind: The kind of data it compares.
        description: Description for readers, in Markdown.
        score: Function that returns scores ``[P]`` of pairs, with the given word weighting.
        range: Lowest and highest score. A text has the highest score with itself.
        by_probability: Whether frequent words get less weight.
        shares: Share of each pair of facets in a score, ``[P, K, K]``, for explanations.
        task: Task whose default model is used when the caller names no model.
        needs_common_component: Whether the model must have the direction that all texts share.
        extra: The extra that must be installed, and the module it provides.
    """

    kind: MethodKind
    description: str
    score: Callable[[PairTexts, Weighting], Tensor]
    _: KW_ONLY
    range: tuple[float, float] = (-1.0, 1.0)  # the range of cosines
    by_probability: bool = False
    task: str = "sentences"
    shares: Callable[[Tensor, Tensor], Tensor] = mutual_shares
    needs_common_component: bool = False
    extra: tuple[str, str] | None = None

    def weighting(self, attention: bool) -> Weighting:
        """How the method weights words."""
        return Weighting(by_facets=attention, by_probability=self.by_probability)


class SimilarityMethod(StrEnum):
    """Scoring method of pairs. All are symmetric, and a higher score means more similar.

    Methods of the kind ``word`` compare the known words of texts, without punctuation. For a text without known words
    cosines are 0, and word mover's distances are those of unrelated words.
    """

    row: MethodRow

    def __new__(cls, name: str, row: MethodRow) -> Self:
        """Creates a member from its name and row."""
        method = str.__new__(cls, name)
        method._value_ = name
        method.row = row
        return method

    CODEBOOK = (
        "codebook",
        MethodRow(
            MethodKind.FACET,
            "minus the mutual reconstruction error of the facets (eq. 3.5, averaged)",
            lambda texts, _: texts.compare_facets(scoring.codebook_score),
            range=_MINUS_DISTANCE,
        ),
    )
    MAX_FACET = (
        "max_facet",
        MethodRow(
            MethodKind.FACET,
            "cosine of the closest two facets",
            lambda texts, _: texts.compare_facets(lambda first, second: scoring.best_facet_match(first, second)[0]),
            shares=best_match_shares,
        ),
    )
    AVERAGE = "average", MethodRow(MethodKind.WORD, "cosine of the average word vectors", _average)
    PROBABILITY_AVERAGE = (
        "probability_average",
        MethodRow(
            MethodKind.WORD,
            "the same, frequent words weighing less: alpha / (alpha + p(w)), alpha = 1e-4",
            _average,
            by_probability=True,
        ),
    )
    SIF = (
        "sif",
        MethodRow(
            MethodKind.WORD,
            "`probability_average` without the direction all texts share, stored with the model",
            lambda texts, by: texts.cosines(texts.without_common_direction(texts.averages(by), by)),
            by_probability=True,
            needs_common_component=True,
        ),
    )
    WMD = (
        "wmd",
        MethodRow(
            MethodKind.WORD,
            "minus the word mover's distance, cosine distance between words",
            _wmd,
            range=_MINUS_DISTANCE,
            extra=("wmd", "ot"),
        ),
    )
    PROBABILITY_WMD = (
        "probability_wmd",
        MethodRow(
            MethodKind.WORD,
            "the same, frequent words weighing less",
            _wmd,
            range=_MINUS_DISTANCE,
            by_probability=True,
            extra=("wmd", "ot"),
        ),
    )
    ENCODER = (
        "encoder",
        MethodRow(
            MethodKind.ENCODER,
            "cosine of the averages of the encoder's states",
            lambda texts, _: texts.cosines(texts.states),
            task="passages",
        ),
    )
    ALIGNMENT = (
        "alignment",
        MethodRow(
            MethodKind.ALIGNMENT,
            "`encoder` and aligned words, less for negations, opposites, exchanged roles, other numbers",
            lambda texts, _: torch.tensor([comparison.score for comparison in texts.comparisons]),
            range=(0.0, 1.0),
            task="passages",
        ),
    )

    def require(self) -> None:
        """Checks that the extra of the method is installed.

        Raises:
            ConfigError: The extra is not installed.
        """
        if self.row.extra is None:
            return
        try:
            require_extra(*self.row.extra)
        except ImportError as error:
            raise ConfigError(f"{self.value} needs the extra {self.row.extra[0]!r}: {error}") from error


WORD_METHODS = frozenset(method for method in SimilarityMethod if method.row.kind is MethodKind.WORD)


_DEFAULTS = {"sentences": SimilarityMethod.CODEBOOK, "passages": SimilarityMethod.ALIGNMENT}


def default_method(task: str) -> SimilarityMethod:
    """Default method of a task: the one that agrees best with human judgements (``docs/use/similarity.md``)."""
    return _DEFAULTS.get(task, SimilarityMethod.CODEBOOK)


def method_named(name: str) -> SimilarityMethod:
    """The method with this name.

    Raises:
        InvalidInputError: There is no such method.
    """
    for method in SimilarityMethod:
        if method == name:
            return method
    raise InvalidInputError(f"must be one of {', '.join(SimilarityMethod)}, got {name!r}", path="method")


def methods_table() -> str:
    """The Markdown table of methods in docs/use/similarity.md."""
    lines = ["| method | compares | definition | range | a text with itself |", "|---|---|---|---|---|"]
    for method in SimilarityMethod:
        row = method.row
        extra = f" (extra `{row.extra[0]}`)" if row.extra else ""
        low, high = row.range
        lines.append(f"| `{method}` | {row.kind}s | {row.description}{extra} | {low:g} to {high:g} | {high:g} |")
    return "\n".join(lines) + "\n"

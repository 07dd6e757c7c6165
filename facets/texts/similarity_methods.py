"""The table of similarity methods: one row a method.

What is called by a method's name follows from its row: enum, dispatch, checks, documentation (``methods_table``), and
by the same name the enum of the proto, which server and client read their names from.
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

# Meetings of facets that explain less of a score than this are left out.
_MIN_CONTRIBUTION = 1e-4
_MINUS_DISTANCE = (-2.0, 0.0)


class MethodKind(StrEnum):
    """What a method compares."""

    FACET = "facet"
    WORD = "word"  # known words without punctuation; these can be weighed by facets
    ENCODER = "encoder"
    ALIGNMENT = "alignment"


def mutual_shares(first_PKD: Tensor, second_PKD: Tensor) -> Tensor:
    """What each meeting of facets explains in the mutual reconstruction of eq. 3.5, ``[P, K, K]``, a share."""
    contributions_PKK = scoring.codebook_contributions(first_PKD, second_PKD)
    shares_PKK = contributions_PKK / contributions_PKK.sum(dim=(1, 2), keepdim=True).clamp_min(1e-12)
    shares_PKK = torch.where(shares_PKK >= _MIN_CONTRIBUTION, shares_PKK, 0.0)
    return shares_PKK / shares_PKK.sum(dim=(1, 2), keepdim=True).clamp_min(1e-12)


def best_match_shares(first_PKD: Tensor, second_PKD: Tensor) -> Tensor:
    """1 for the closest two facets of each pair, ``[P, K, K]``."""
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
    """Everything that is to be known of a method.

    Attributes:
        kind: What it compares.
        description: For people, in Markdown.
        score: Pairs and the weighting of their words -> scores ``[P]``.
        range: Lowest and highest score; the highest is that of a text with itself, where there is anything to compare.
        by_probability: Frequent words weigh less.
        shares: What explains it: facets of first and second texts -> share of each meeting, ``[P, K, K]``.
        task: Whose default model answers where none is named.
        needs_common_component: The model must know the direction that all texts share.
        extra: The extra of the distribution that has to be installed, and its package; empty: none.
    """

    kind: MethodKind
    description: str
    score: Callable[[PairTexts, Weighting], Tensor]
    _: KW_ONLY
    range: tuple[float, float] = (-1.0, 1.0)  # of cosines
    by_probability: bool = False
    task: str = "sentences"
    shares: Callable[[Tensor, Tensor], Tensor] = mutual_shares
    needs_common_component: bool = False
    extra: tuple[str, str] | None = None

    def weighting(self, attention: bool) -> Weighting:
        """How words are weighed."""
        return Weighting(by_facets=attention, by_probability=self.by_probability)


class SimilarityMethod(StrEnum):
    """How a pair is scored; ``row`` describes the method. Every method is symmetric; higher is more alike.

    Methods of the kind ``word`` look at the known words of a text, without punctuation. A text that has none is no
    more like one text than another: cosines are 0, word mover's distances those of unrelated words.
    """

    row: MethodRow

    def __new__(cls, name: str, row: MethodRow) -> Self:
        """A name that carries its row."""
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
        """Checks that what the method needs is installed.

        Raises:
            ConfigError: It is not.
        """
        if self.row.extra is None:
            return
        try:
            require_extra(*self.row.extra)
        except ImportError as error:
            raise ConfigError(f"{self.value} needs the extra {self.row.extra[0]!r}: {error}") from error


WORD_METHODS = frozenset(method for method in SimilarityMethod if method.row.kind is MethodKind.WORD)


# Task of a model -> what its pairs are scored by when no method is named.
_DEFAULTS = {"sentences": SimilarityMethod.CODEBOOK, "passages": SimilarityMethod.ALIGNMENT}


def default_method(task: str) -> SimilarityMethod:
    """How models of a task score when nothing is said: what agrees best with people (``docs/use/similarity.md``)."""
    return _DEFAULTS.get(task, SimilarityMethod.CODEBOOK)


def method_named(name: str) -> SimilarityMethod:
    """The method of a name; a method is its own name.

    Raises:
        InvalidInputError: There is none.
    """
    for method in SimilarityMethod:
        if method == name:
            return method
    raise InvalidInputError(f"must be one of {', '.join(SimilarityMethod)}, got {name!r}", path="method")


def methods_table() -> str:
    """The methods as a table in Markdown, as docs/use/similarity.md has it."""
    lines = ["| method | compares | what | range | a text with itself |", "|---|---|---|---|---|"]
    for method in SimilarityMethod:
        row = method.row
        extra = f" (extra `{row.extra[0]}`)" if row.extra else ""
        low, high = row.range
        lines.append(f"| `{method}` | {row.kind}s | {row.description}{extra} | {low:g} to {high:g} | {high:g} |")
    return "\n".join(lines) + "\n"

"""Frozen settings, checked when they are made.

Each message names the field, its rule and the value. Standard library only.
"""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from facets.errors import ConfigError

__all__ = [
    "ENCODER_KINDS",
    "FacetModelConfig",
    "FactorizationConfig",
    "OptimizerConfig",
    "PaperTrainingConfig",
    "RelationTrainingConfig",
    "SentenceTrainingConfig",
]

ENCODER_KINDS = ("transformer", "lstm", "gru", "backbone")


def _check(owner: object, name: str, holds: bool, rule: str) -> None:
    if not holds:
        raise ConfigError(f"{type(owner).__name__}.{name} must be {rule}, got {getattr(owner, name)!r}")


class _FromDict:
    """Builds a settings dataclass from a plain dictionary and refuses unknown keys."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Returns the settings in ``values``; nested sections are dictionaries.

        Raises:
            ConfigError: An unknown or missing key, or a value that breaks its rule.
        """
        known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise ConfigError(f"{cls.__name__} has no setting {unknown[0]!r}; it has {', '.join(known)}")
        nested = {
            name: known[name].type.from_dict(value)  # type: ignore[union-attr]
            if isinstance(known[name].type, type) and issubclass(known[name].type, _FromDict)  # type: ignore[arg-type]
            else value
            for name, value in values.items()
        }
        try:
            return cls(**nested)
        except TypeError as error:
            raise ConfigError(f"{cls.__name__}: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Returns plain nested dictionaries, ready for JSON."""
        return asdict(self)  # type: ignore[call-overload]


@dataclass(frozen=True, kw_only=True, slots=True)
class FacetModelConfig(_FromDict):
    """Shape of the network: encoder, K input maps, facet decoder (Chang 2022, eq. 3.3, 3.4)."""

    num_facets: int = 10
    dim: int = 256  # of the target space; a multiple of 32 (vector units and FAISS)
    hidden_dim: int = 256
    num_heads: int = 4
    feedforward_dim: int = 512
    num_encoder_layers: int = 2
    num_decoder_layers: int = 2
    max_tokens: int = 128  # longer texts are cut
    dropout: float = 0.0
    encoder: str = "transformer"
    cross_attention: bool = True  # False for phrases
    backbone: str = ""  # sentence-transformers model, when encoder is "backbone"
    tune_backbone: bool = False

    def __post_init__(self) -> None:
        _check(self, "num_facets", self.num_facets >= 1, ">= 1")
        _check(self, "dim", self.dim >= 32 and self.dim % 32 == 0, "a positive multiple of 32")
        _check(
            self,
            "hidden_dim",
            self.hidden_dim >= 1 and self.hidden_dim % (2 * self.num_heads) == 0,
            f"a multiple of 2 x num_heads ({2 * self.num_heads})",
        )
        _check(self, "feedforward_dim", self.feedforward_dim >= 1, ">= 1")
        _check(self, "num_encoder_layers", self.num_encoder_layers >= 1, ">= 1")
        _check(self, "num_decoder_layers", self.num_decoder_layers >= 1, ">= 1")
        _check(self, "max_tokens", self.max_tokens >= 1, ">= 1")
        _check(self, "dropout", 0 <= self.dropout < 1, "in [0, 1)")
        _check(self, "encoder", self.encoder in ENCODER_KINDS, f"one of {', '.join(ENCODER_KINDS)}")
        _check(
            self,
            "backbone",
            bool(self.backbone) == (self.encoder == "backbone"),
            "set exactly when encoder is 'backbone'",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerConfig(_FromDict):
    """AdamW with linear warm-up and linear decay to zero."""

    learning_rate: float = 1e-3
    warmup_steps: int = 500
    weight_decay: float = 0.01
    max_gradient_norm: float = 1.0

    def __post_init__(self) -> None:
        _check(self, "learning_rate", self.learning_rate > 0, "> 0")
        _check(self, "warmup_steps", self.warmup_steps >= 0, ">= 0")
        _check(self, "weight_decay", self.weight_decay >= 0, ">= 0")
        _check(self, "max_gradient_norm", self.max_gradient_norm > 0, "> 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceTrainingConfig(_FromDict):
    """Training of a sentence model (Chang 2022, algorithm 1)."""

    corpus: str  # folder of a packed corpus
    words: str  # folder of word vectors, same vocabulary as the corpus
    name: str = "facets-en"
    inputs: str = "sentences"  # or "phrases": one to three words, targets from five positions around
    loss: str = "sparse_coding"  # or "kmeans", the ablation
    l1_weight: float = 0.4  # lambda of eq. 3.1
    num_steps: int = 12_000
    batch_size: int = 256  # sentences a step
    max_targets: int = 30  # words of the neighbouring sentences a text is trained on
    input_tokens: int = 32  # a training input is cut after so many tokens
    piece_rate: float = 0.0  # share of input words that are read as their pieces, as unknown words will be
    long_input_rate: float = 0.02  # share of inputs that run on over the next sentences
    long_input_tokens: int = 96  # and are cut only here, so that long texts are met too
    validation_share: float = 0.01  # of the documents, never trained on
    validation_sentences: int = 4096
    validate_every: int = 500  # steps
    checkpoint_every: int = 500  # steps
    seed: int = 1
    precision: str = "auto"  # float32, bfloat16, or auto: bfloat16 where the hardware multiplies it
    device: str = "auto"  # cpu, cuda, or auto: cuda where there is one
    num_threads: int = 0  # 0: torch's default
    model: FacetModelConfig = field(default_factory=FacetModelConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)

    def __post_init__(self) -> None:
        _check(self, "inputs", self.inputs in ("sentences", "phrases"), "sentences or phrases")
        _check(self, "loss", self.loss in ("sparse_coding", "kmeans"), "sparse_coding or kmeans")
        _check(self, "l1_weight", self.l1_weight >= 0, ">= 0")
        _check(self, "precision", self.precision in ("auto", "float32", "bfloat16"), "auto, float32 or bfloat16")
        for name in (
            "num_steps",
            "batch_size",
            "max_targets",
            "input_tokens",
            "long_input_tokens",
            "validation_sentences",
            "validate_every",
            "checkpoint_every",
        ):
            _check(self, name, getattr(self, name) >= 1, ">= 1")
        _check(self, "batch_size", self.batch_size >= 2, ">= 2 (negatives come from the same batch)")
        _check(self, "piece_rate", 0 <= self.piece_rate <= 1, "in [0, 1]")
        _check(self, "long_input_rate", 0 <= self.long_input_rate <= 1, "in [0, 1]")
        _check(self, "validation_share", 0 < self.validation_share < 1, "in (0, 1)")
        _check(self, "num_threads", self.num_threads >= 0, ">= 0")
        limit = self.model.max_tokens
        _check(self, "input_tokens", self.input_tokens <= limit, f"<= model.max_tokens ({limit})")
        _check(self, "long_input_tokens", self.long_input_tokens <= limit, f"<= model.max_tokens ({limit})")


@dataclass(frozen=True, kw_only=True, slots=True)
class FactorizationConfig(_FromDict):
    """Universal schema by matrix factorization (BPR), with Adagrad."""

    num_epochs: int = 20
    batch_size: int = 8192  # cells a step
    learning_rate: float = 0.1
    l2_weight: float = 1e-3  # of the embeddings of a cell
    num_negatives: int = 2  # entity pairs a cell

    def __post_init__(self) -> None:
        for name in ("num_epochs", "batch_size", "num_negatives"):
            _check(self, name, getattr(self, name) >= 1, ">= 1")
        _check(self, "learning_rate", self.learning_rate > 0, "> 0")
        _check(self, "l2_weight", self.l2_weight >= 0, ">= 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class RelationTrainingConfig(_FromDict):
    """Training of multi-facet universal schema (Chang 2022, algorithm 2)."""

    cells: list[str]  # matrix files: entity, entity, pattern, count
    triples: str  # matrix file whose kb:... rows are the knowledge base
    words: str  # folder of word vectors
    name: str = "facets-relations-en"
    num_relation_facets: int = 11  # K_rel
    max_patterns_per_pair: int = 100  # of the matrix, the most frequent ones
    max_pairs_per_pattern: int = 2000
    phrases: str = ""  # file of patterns that say a relation, beside those made of its name's words
    known_share: float = 0.4  # of the patterns of a step: those that co-occur with pairs of the knowledge base
    mirrored_triples: bool = False  # triples the other way round are other pairs, with mirrored patterns, and negatives
    num_steps: int = 12_000
    batch_size: int = 256  # patterns a step
    pairs_per_pattern: int = 4  # entity pairs drawn for each
    relations_per_step: int = 64
    pairs_per_relation: int = 16
    sampling_power: float = 0.5  # a pattern is drawn in proportion to (number of its pairs) ** power
    pattern_tokens: int = 20  # longer patterns lose their middle
    word_dropout: float = 0.1
    autoencoder_weight: float = 0.2  # gamma of eq. B.1
    pair_learning_rate: float = 0.1  # of the entity pair embeddings, plain gradient descent
    checkpoint_every: int = 500  # steps
    seed: int = 1
    precision: str = "auto"
    num_threads: int = 0
    model: FacetModelConfig = field(default_factory=lambda: FacetModelConfig(num_facets=5))
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    factorization: FactorizationConfig = field(default_factory=FactorizationConfig)

    def __post_init__(self) -> None:
        _check(self, "cells", isinstance(self.cells, list) and bool(self.cells), "a list of at least one file")
        _check(self, "precision", self.precision in ("auto", "float32", "bfloat16"), "auto, float32 or bfloat16")
        for name in (
            "num_relation_facets",
            "max_patterns_per_pair",
            "max_pairs_per_pattern",
            "num_steps",
            "pairs_per_pattern",
            "relations_per_step",
            "pairs_per_relation",
            "checkpoint_every",
        ):
            _check(self, name, getattr(self, name) >= 1, ">= 1")
        _check(self, "batch_size", self.batch_size >= 2, ">= 2 (negatives come from the same batch)")
        _check(self, "sampling_power", 0 <= self.sampling_power <= 1, "in [0, 1]")
        _check(self, "known_share", 0 <= self.known_share <= 1, "in [0, 1]")
        _check(self, "word_dropout", 0 <= self.word_dropout < 1, "in [0, 1)")
        _check(self, "autoencoder_weight", self.autoencoder_weight >= 0, ">= 0")
        _check(self, "pair_learning_rate", self.pair_learning_rate >= 0, ">= 0")
        _check(self, "num_threads", self.num_threads >= 0, ">= 0")
        limit = self.model.max_tokens
        _check(self, "pattern_tokens", 3 <= self.pattern_tokens <= limit, f"in [3, model.max_tokens ({limit})]")
        _check(self, "model", self.model.encoder in ("transformer", "lstm", "gru"), "one without a backbone")


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperTrainingConfig(_FromDict):
    """Training of a model of papers with its author and citing-paper tables (Chang 2022, section 3.4, B.3 to B.5)."""

    data: str  # JSON lines {"id", "title", "abstract", "authors", "cited_by"}; .xz and .gz too
    name: str = "facets-papers-en"
    word_dim: int = 256
    min_word_count: int = 3
    max_words: int = 32_000
    min_author_papers: int = 2  # authors with fewer papers get no vector
    min_cited_papers: int = 5  # citing papers that cite fewer get none
    author_weight: float = 1.0  # alpha of eq. 3.14, for means over pairs (the paper's 5:1:10 is for sums)
    citation_weight: float = 1.0  # beta
    autoencoder_weight: float = 0.1  # gamma of eq. B.3
    loss: str = "softmax"  # the author's paper among those of the batch, or "squared", eq. 3.12
    temperature: float = 0.1  # softmax
    negative_weight: float = 30.0  # squared: of the negatives of a positive, together; the paper draws one, of weight 1
    train_words: bool = True  # as in B.5; False: the word vectors stay as they are
    word_learning_rate: float = 3e-3
    num_steps: int = 0  # 0: four passes over the papers
    batch_size: int = 512  # papers a step
    input_tokens: int = 64  # a training input is cut after so many words
    word_dropout: float = 0.3  # share of the words of a training input that are left out
    validation_papers: int = 2000  # never trained on
    validate_every: int = 200  # steps
    checkpoint_every: int = 200  # steps
    seed: int = 1
    precision: str = "auto"
    device: str = "auto"
    num_threads: int = 0
    model: FacetModelConfig = field(default_factory=lambda: FacetModelConfig(num_facets=5, hidden_dim=128))
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(warmup_steps=30))

    def __post_init__(self) -> None:
        for name in (
            "min_word_count",
            "max_words",
            "min_author_papers",
            "min_cited_papers",
            "input_tokens",
            "validation_papers",
            "validate_every",
            "checkpoint_every",
        ):
            _check(self, name, getattr(self, name) >= 1, ">= 1")
        _check(self, "num_steps", self.num_steps >= 0, ">= 0")
        _check(self, "max_words", self.max_words < 32_767, "< 32767 (stored in 16 bits with the type)")
        _check(self, "batch_size", self.batch_size >= 2, ">= 2 (negatives come from the same batch)")
        _check(self, "word_dim", self.word_dim >= 32 and self.word_dim % 32 == 0, "a positive multiple of 32")
        for name in ("author_weight", "citation_weight", "autoencoder_weight", "negative_weight"):
            _check(self, name, getattr(self, name) >= 0, ">= 0")
        _check(self, "word_dropout", 0 <= self.word_dropout < 1, "in [0, 1)")
        _check(self, "loss", self.loss in ("squared", "softmax"), "squared or softmax")
        _check(self, "temperature", self.temperature > 0, "> 0")
        _check(self, "word_learning_rate", self.word_learning_rate >= 0, ">= 0")
        _check(self, "precision", self.precision in ("auto", "float32", "bfloat16"), "auto, float32 or bfloat16")
        _check(self, "num_threads", self.num_threads >= 0, ">= 0")
        _check(self, "model", self.model.encoder in ("transformer", "gru", "lstm"), "with a transformer, gru or lstm")
        _check(
            self,
            "input_tokens",
            self.input_tokens <= self.model.max_tokens,
            f"<= model.max_tokens ({self.model.max_tokens})",
        )

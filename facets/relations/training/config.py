"""Settings of the training of a relation model."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from facets.config import AtLeastOne, FacetModelConfig, NonNegative, Positive, Probability, Settings, Share
from facets.training.config import BatchSize, TrainingConfig

__all__ = ["FactorizationConfig", "RelationTrainingConfig"]


class FactorizationConfig(Settings):
    """Universal schema by matrix factorization (BPR), with Adagrad."""

    num_epochs: AtLeastOne = 20
    batch_size: AtLeastOne = 8192  # cells a step
    learning_rate: Positive = 0.1
    l2_weight: NonNegative = 1e-3  # of the embeddings of a cell
    num_negatives: AtLeastOne = 2  # entity pairs a cell


class RelationTrainingConfig(TrainingConfig):
    """Training of multi-facet universal schema (Chang 2022, algorithm 2)."""

    cells: Annotated[list[str], Field(min_length=1)]  # matrix files: entity, entity, pattern, count
    triples: str  # matrix file whose kb:... rows are the knowledge base
    words: str  # folder of word vectors
    name: str = "facets-relations-en"
    num_relation_facets: AtLeastOne = 11  # K_rel
    max_patterns_per_pair: AtLeastOne = 100  # of the matrix, the most frequent ones
    max_pairs_per_pattern: AtLeastOne = 2000
    phrases: str = ""  # file of patterns that say a relation, beside those made of its name's words
    known_share: Share = 0.4  # of the patterns of a step: those that co-occur with pairs of the knowledge base
    mirrored_triples: bool = False  # triples the other way round are other pairs, with mirrored patterns, and negatives
    num_steps: AtLeastOne = 12_000
    batch_size: BatchSize = 256  # patterns a step
    pairs_per_pattern: AtLeastOne = 4  # entity pairs drawn for each
    relations_per_step: AtLeastOne = 64
    pairs_per_relation: AtLeastOne = 16
    sampling_power: Share = 0.5  # a pattern is drawn in proportion to (number of its pairs) ** power
    pattern_tokens: Annotated[int, Field(ge=3)] = 20  # longer patterns lose their middle
    word_dropout: Probability = 0.1
    autoencoder_weight: NonNegative = 0.2  # gamma of eq. B.1
    pair_learning_rate: NonNegative = 0.1  # of the entity pair embeddings, plain gradient descent
    validate_every: AtLeastOne = 250  # steps
    model: FacetModelConfig = FacetModelConfig(num_facets=5)
    factorization: FactorizationConfig = FactorizationConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        limit = self.model.max_tokens
        self.require("pattern_tokens", self.pattern_tokens <= limit, f"<= model.max_tokens ({limit})")
        self.require("model", self.model.encoder != "backbone", "one without a backbone")
        return self

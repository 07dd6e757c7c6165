"""Settings of the training of a relation model."""

from typing import Annotated

from pydantic import Field

from facets.config import AtLeastOne, NonNegative, PatternNetworkConfig, Positive, Settings, Share
from facets_lab.training.config import BatchSize, TrainingConfig

__all__ = ["FactorizationConfig", "RelationTrainingConfig"]


class FactorizationConfig(Settings):
    """Universal schema by matrix factorization (BPR), with Adagrad."""

    dim: AtLeastOne = 64
    num_epochs: AtLeastOne = 20
    batch_size: AtLeastOne = 8192  # cells a step
    learning_rate: Positive = 0.1
    l2_weight: NonNegative = 1e-3  # of the embeddings of a cell
    num_negatives: AtLeastOne = 2  # entity pairs a cell


class RelationTrainingConfig(TrainingConfig):
    """Training of multi-facet universal schema (Chang 2022, algorithm 2) on a sentence encoder."""

    name: str = "facets-relations-en"
    encoder_of: str  # folder of the model of passages whose encoder is tuned
    catalogue: str  # file of the relations
    phrases: str  # file of patterns that say a relation
    none_patterns: str  # file of patterns that say none of them
    cells: Annotated[list[str], Field(min_length=1)]  # matrix files: entity, entity, pattern, count
    triples: str = ""  # matrix file whose kb:... rows are facts
    facts: list[str] = Field(default=[])  # files of facts found in a corpus
    types: list[str] = Field(default=[])  # files of the types of names
    num_relation_facets: AtLeastOne = 11  # K_rel
    max_patterns_per_pair: AtLeastOne = 100  # of the matrix, the most frequent ones
    max_pairs_per_pattern: AtLeastOne = 2000
    num_steps: AtLeastOne = 400
    batch_size: BatchSize = 64  # mined patterns a step
    pairs_per_pattern: AtLeastOne = 4  # entity pairs drawn for each
    relations_per_step: AtLeastOne = 24
    pairs_per_relation: AtLeastOne = 16
    phrases_per_step: AtLeastOne = 64
    others_per_step: AtLeastOne = 24  # patterns that say no relation
    composed_share: Share = 0.3  # of the phrases: said beside another fact
    sampling_power: Share = 0.5  # a pattern is drawn in proportion to (number of its pairs) ** power
    similar_relations: Share = 0.8  # relations whose first facets have a cosine above are no negatives of each other
    slope: Positive = 30.0  # of the scores in the ranking loss
    direction_slope: Positive = 20.0
    schema_weight: NonNegative = 1.0  # of eq. 3.9
    encoder_weight: NonNegative = 2.0  # of staying near the encoder's own sentence vectors
    encoder_learning_rate: Positive = 4e-5
    relation_learning_rate: Positive = 3e-4  # of the relations' facets
    pair_learning_rate: NonNegative = 0.1  # of the entity pair embeddings, plain gradient descent
    held_out_share: Share = 0.0  # of the phrases of each relation that has five or more: for validation
    model: PatternNetworkConfig = PatternNetworkConfig()
    factorization: FactorizationConfig = FactorizationConfig()

"""Settings of the training of a model of papers."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from facets.config import AtLeastOne, FacetModelConfig, NonNegative, NonNegativeInt, Positive, Probability, VectorWidth
from facets_lab.training.config import BatchSize, OptimizerConfig, TrainingConfig

__all__ = ["PaperTrainingConfig"]


class PaperTrainingConfig(TrainingConfig):
    """Training of a model of papers with its author and citing-paper tables (Chang 2022, section 3.4, B.3 to B.5)."""

    data: str  # JSON lines {"id", "title", "abstract", "authors", "cited_by"}; .xz and .gz too
    name: str = "facets-papers-en"
    word_dim: VectorWidth = 256
    min_word_count: AtLeastOne = 3
    max_words: Annotated[int, Field(ge=1, lt=32_767)] = 32_000  # stored in 16 bits with the type
    min_author_papers: AtLeastOne = 2  # authors with fewer papers get no vector
    min_cited_papers: AtLeastOne = 5  # citing papers that cite fewer get none
    author_weight: NonNegative = 1.0  # alpha of eq. 3.14, for means over pairs (the paper's 5:1:10 is for sums)
    citation_weight: NonNegative = 1.0  # beta
    autoencoder_weight: NonNegative = 0.1  # gamma of eq. B.3
    loss: Literal["softmax", "squared"] = "softmax"  # the author's paper among those of the batch, or eq. 3.12
    temperature: Positive = 0.1  # softmax
    negative_weight: NonNegative = 30.0  # squared: of the negatives of a positive, together; the paper draws one
    train_words: bool = True  # as in B.5; False: the word vectors stay as they are
    word_learning_rate: NonNegative = 3e-3
    num_steps: NonNegativeInt = 0  # 0: four passes over the papers
    batch_size: BatchSize = 512  # papers a step
    input_tokens: AtLeastOne = 64  # a training input is cut after so many words
    word_dropout: Probability = 0.3  # share of the words of a training input that are left out
    validation_papers: AtLeastOne = 2000  # never trained on
    validate_every: AtLeastOne = 200  # steps
    checkpoint_every: AtLeastOne = 200  # steps
    model: FacetModelConfig = FacetModelConfig(num_facets=5, hidden_dim=128)
    optimizer: OptimizerConfig = OptimizerConfig(warmup_steps=30)

    @model_validator(mode="after")
    def _check(self) -> Self:
        limit = self.model.max_tokens
        self.require("input_tokens", self.input_tokens <= limit, f"<= model.max_tokens ({limit})")
        self.require("model", self.model.encoder != "backbone", "one without a backbone")
        return self

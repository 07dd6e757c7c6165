"""Settings of the training of a sentence or phrase model."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from facets.config import AtLeastOne, FacetModelConfig, NonNegative, Share
from facets_lab.training.config import BatchSize, TrainingConfig

__all__ = ["SentenceTrainingConfig"]


class SentenceTrainingConfig(TrainingConfig):
    """Training of a sentence model (Chang 2022, algorithm 1)."""

    corpus: str  # folder of a packed corpus
    words: str  # folder of word vectors, same vocabulary as the corpus
    name: str = "facets-en"
    inputs: Literal["sentences", "phrases"] = "sentences"  # phrases: one to three words, targets from five around
    loss: Literal["sparse_coding", "kmeans"] = "sparse_coding"  # kmeans is the ablation
    l1_weight: NonNegative = 0.4  # lambda of eq. 3.1
    num_steps: AtLeastOne = 12_000
    batch_size: BatchSize = 256  # sentences a step
    max_targets: AtLeastOne = 30  # words of the neighbouring sentences a text is trained on
    input_tokens: AtLeastOne = 32  # a training input is cut after so many tokens
    piece_rate: Share = 0.0  # of input words that are read as their pieces, as unknown words will be
    long_input_rate: Share = 0.02  # of inputs that run on over the next sentences
    long_input_tokens: AtLeastOne = 96  # and are cut only here, so that long texts are met too
    validation_share: Annotated[float, Field(gt=0, lt=1)] = 0.01  # of the documents, never trained on
    validation_sentences: AtLeastOne = 4096
    model: FacetModelConfig = FacetModelConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        limit = self.model.max_tokens
        for field in ("input_tokens", "long_input_tokens"):
            self.require(field, getattr(self, field) <= limit, f"<= model.max_tokens ({limit})")
        return self

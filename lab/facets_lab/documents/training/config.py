"""Settings of the training of passage models: the data, and the runs."""

from typing import Literal, Self

from pydantic import Field, model_validator

from facets.config import AtLeastOne, NonNegative, NonNegativeInt, PassageNetworkConfig, Positive, Settings, Share
from facets_lab.training.config import BatchSize, OptimizerConfig, TrainingConfig

__all__ = ["PassageDataConfig", "PassageTrainingConfig", "SourceConfig"]


class SourceConfig(Settings):
    """One kind of raw text.

    ``wikipedia``: documents of paragraphs, as ``facets-train pack`` reads them. ``questions``: JSON lines of ``query``
    and ``positive``, the passage that answers. ``papers``: JSON lines of ``title`` and ``abstract``.
    """

    kind: Literal["wikipedia", "questions", "papers"]
    files: list[str]  # patterns
    max_passages: AtLeastOne = 1_000_000
    min_words: AtLeastOne = 8  # shorter passages are left out
    max_words: AtLeastOne = 350  # longer ones too
    with_title: Share = 0.5  # of the passages that have a title begin with it, as documents often do


class PassageDataConfig(Settings):
    """What is prepared for training: passages, their sentences and questions, and the teacher's vectors of all."""

    sources: list[SourceConfig]
    teacher: str = "all-MiniLM-L6-v2"  # or the folder of a sentence-transformers model of BERT's form
    max_groups: AtLeastOne = 1_000_000  # of all sources together, a random choice
    max_tokens: AtLeastOne = 256  # of a passage, special pieces included; the rest is cut
    max_sentence_tokens: AtLeastOne = 96
    max_neighbours: AtLeastOne = 6  # passages of one article in a group
    max_sentences: AtLeastOne = 16  # of a passage, as targets
    max_questions: AtLeastOne = 6  # of a passage
    seed: int = 1
    num_threads: AtLeastOne = 1


class PassageTrainingConfig(TrainingConfig):
    """Training of a passage model on prepared data."""

    data: str  # folder of ``facets-train prepare-passages``
    words: str  # file of words and their counts, the frequent ones first: those that explain facets
    num_words: AtLeastOne = 20_000
    name: str = "facets-passages-en"
    teacher: str = "all-MiniLM-L6-v2"  # weights the encoder begins with
    exported_vector_weight: NonNegative | None = None  # own_vector_weight of the model that is written, if another one
    window_tokens: AtLeastOne = 256  # of a long text that the model reads at once
    window_overlap: NonNegativeInt = 32
    layers: list[int] = Field(default=[0, 1, 2, 3, 4, 5])  # those of the teacher that the encoder begins with
    tune_encoder: bool = False
    start: str = ""  # folder of a run whose network this one begins with
    start_facets: str = ""  # folder of a run whose facets this one begins with, of whatever encoder
    facets: bool = True  # False: only the vectors are learned (distillation)
    distillation_weight: NonNegative = 0.0  # of the loss of vectors: as close to the teacher's, and as similar
    question_weight: NonNegative = 2.0  # of a question; a sentence has 1
    question_repeats: AtLeastOne = 1  # how often a pass over the data meets the groups that have questions
    fit_weight: NonNegative = 2.0  # of the distance between a target and its facets, beside the ranking loss
    ranking_temperature: Positive = 0.05  # of the softmax over the passages of a batch
    facet_temperature: Positive = 0.03  # of the soft maximum over facets: a hard one lets facets die
    distilled_texts: AtLeastOne = 192  # sentences and questions of a step of distillation
    similar_groups: AtLeastOne = 1  # groups of a step that resemble one another: hard to tell apart
    num_steps: AtLeastOne = 2_500
    batch_size: BatchSize = 48  # passages a step, groups of neighbours
    validation_groups: AtLeastOne = 64  # never trained on
    optimizer: OptimizerConfig = OptimizerConfig(learning_rate=2e-4, warmup_steps=50)
    model: PassageNetworkConfig = PassageNetworkConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        layers = self.model.encoder.num_layers
        self.require("layers", len(self.layers) == layers, f"as many as model.encoder.num_layers ({layers})")
        self.require("facets", self.facets or self.distillation_weight > 0, "true, or distillation_weight above 0")
        self.require("tune_encoder", self.tune_encoder or self.distillation_weight == 0, "true to distil into it")
        return self

"""A tiny relation model, really trained: four relations, a dozen patterns, a few seconds."""

import json
from pathlib import Path

import numpy as np

from facets.config import FacetModelConfig
from facets.relations.training.config import FactorizationConfig, RelationTrainingConfig
from facets.relations.training.export import export_relation_model
from facets.relations.training.trainer import RelationTrainer
from facets.text.vocabulary import Vocabulary
from facets.training.config import OptimizerConfig
from facets.training.loop import train
from facets.words.vectors import WordVectors

TOY_RELATIONS = {
    "birthPlace": ("$ARG1 was born in $ARG2", "$ARG1 , a native of $ARG2", "$ARG1 grew up in $ARG2"),
    "spouse": ("$ARG1 is married to $ARG2", "$ARG1 , the wife of $ARG2", "$ARG1 wed $ARG2"),
    "employer": ("$ARG1 works for $ARG2", "$ARG2 hired $ARG1", "$ARG1 , an engineer at $ARG2"),
    "capital": ("$ARG2 is the capital of $ARG1", "$ARG1 is ruled from $ARG2", "$ARG2 , the seat of $ARG1"),
}
TOY_RELATION_THRESHOLD = 0.4
_PAIRS_A_RELATION = 12
_WORDS = (
    "was born in a native of grew up is married to the wife wed works for hired an engineer at capital ruled from seat "
    ", . birth place spouse employer not never by and partner fellow taught mentor pupil"
).split()


def toy_relation_config(
    folder: Path, *, num_facets: int = 3, num_steps: int = 100, **changes: object
) -> RelationTrainingConfig:
    """Settings of a few seconds' training, its data written into a folder."""
    vectors = np.random.default_rng(3).standard_normal((len(_WORDS), 32)).astype(np.float32)
    WordVectors(Vocabulary(_WORDS, np.arange(len(_WORDS), 0, -1) * 10), vectors).save(folder / "words")
    cells, triples = folder / "cells.tsv", folder / "triples.tsv"
    with cells.open("w", encoding="utf-8") as texts, triples.open("w", encoding="utf-8") as facts:
        for relation, patterns in TOY_RELATIONS.items():
            for number in range(_PAIRS_A_RELATION):
                pair = f"{relation} head {number}\t{relation} tail {number}"
                facts.write(f"{pair}\tkb:{relation}\t1\n")
                for pattern in patterns:
                    texts.write(f"{pair}\t{pattern}\t1\n")
    values: dict[str, object] = dict(
        name="toy-relations",
        cells=[str(cells)],
        triples=str(triples),
        words=str(folder / "words"),
        num_relation_facets=num_facets,
        num_steps=num_steps,
        batch_size=12,
        relations_per_step=4,
        pairs_per_relation=8,
        pattern_tokens=16,
        word_dropout=0.0,
        checkpoint_every=num_steps,
        precision="float32",
        num_threads=1,
        model=FacetModelConfig(
            num_facets=num_facets, dim=32, hidden_dim=32, num_heads=2, feedforward_dim=48, max_tokens=16, dropout=0.0
        ),
        optimizer=OptimizerConfig(learning_rate=3e-3, warmup_steps=10),
        factorization=FactorizationConfig(num_epochs=20, learning_rate=0.3),
    )
    return RelationTrainingConfig(**(values | changes))


def make_toy_relation_checkpoint(folder: Path, *, num_facets: int = 3, num_steps: int = 100) -> Path:
    """Trains the model in ``folder``'s neighbourhood and writes it to ``folder``."""
    work = folder.with_name(folder.name + "-run")
    work.mkdir(parents=True)
    config = toy_relation_config(work, num_facets=num_facets, num_steps=num_steps)
    train(lambda: RelationTrainer(config, work / "run"), work / "run", progress=False)
    export_relation_model(config, work / "run", folder)
    # Thresholds are fitted on development data, of which there is none here.
    file = folder / "relations.json"
    values = json.loads(file.read_text(encoding="utf-8"))
    values["calibration"]["thresholds"] = [TOY_RELATION_THRESHOLD] * len(TOY_RELATIONS)
    file.write_text(json.dumps(values), encoding="utf-8")
    return folder

"""A tiny relation model, really trained: four relations, a dozen patterns, a few seconds."""

import json
from pathlib import Path

from facets_lab.relations.data import FactorizationConfig, RelationTrainingConfig
from facets_lab.relations.training import RelationTrainer, relation_model
from facets_lab.training.loop import OptimizerConfig, train
from toys import TOY_ENCODER, toy_passage_model

from facets.config import PatternNetworkConfig

TOY_RELATIONS = {
    "birthPlace": ("$ARG1 was born in $ARG2", "$ARG1 , a native of $ARG2", "$ARG1 grew up in $ARG2"),
    "spouse": ("$ARG1 is married to $ARG2", "$ARG1 , the wife of $ARG2", "$ARG1 wed $ARG2"),
    "employer": ("$ARG1 works for $ARG2", "$ARG2 hired $ARG1", "$ARG1 , an engineer at $ARG2"),
    "capital": ("$ARG2 is the capital of $ARG1", "$ARG1 is ruled from $ARG2", "$ARG2 , the seat of $ARG1"),
}
TOY_RELATION_THRESHOLD = 0.4
TOY_ENTAILMENT = [
    ">\t$ARG1 was born in $ARG2\t$ARG1 grew up in $ARG2\t10\t20",
    "<\t$ARG1 wed $ARG2\t$ARG1 is married to $ARG2\t10\t20",
    ":\t$ARG1 works for $ARG2\t$ARG2 hired $ARG1\t10\t20",
    "N\t$ARG1 works for $ARG2\t$ARG1 wed $ARG2\t10\t2",
]
_PAIRS_A_RELATION = 12
_KINDS = {
    "birthPlace": ("person", "place"),
    "spouse": ("person", "person"),
    "employer": ("person", "organization"),
    "capital": ("place", "place"),
}


def write_toy_relation_data(folder: Path) -> None:
    """Encoder, catalogue, phrases, other patterns, cells and triples of the toy relations."""
    toy_passage_model().save(folder / "encoder")
    with (folder / "relations.toml").open("w", encoding="utf-8") as file:
        for relation, (head, tail) in _KINDS.items():
            file.write(f'[[relation]]\nname = "{relation}"\nhead = ["{head}"]\ntail = ["{tail}"]\n')
            file.write(f"symmetric = {'true' if relation == 'spouse' else 'false'}\n")
            file.write(f'example = "[A] {relation} {{B}}."\ndescription = "What {relation} says."\n\n')
    (folder / "none.txt").write_text("# nothing\n$ARG1 met $ARG2\n$ARG1 never saw $ARG2\n", encoding="utf-8")
    cells, triples, phrases = folder / "cells.tsv", folder / "triples.tsv", folder / "phrases.tsv"
    with (
        cells.open("w", encoding="utf-8") as texts,
        triples.open("w", encoding="utf-8") as facts,
        phrases.open("w", encoding="utf-8") as labelled,
    ):
        for relation, patterns in TOY_RELATIONS.items():
            labelled.writelines(f"{relation}\t{pattern}\n" for pattern in patterns)
            for number in range(_PAIRS_A_RELATION):
                pair = f"{relation} head {number}\t{relation} tail {number}"
                facts.write(f"{pair}\tkb:{relation}\t1\n")
                texts.writelines(f"{pair}\t{pattern}\t1\n" for pattern in patterns)


def toy_relation_config(
    folder: Path, *, num_facets: int = 3, num_steps: int = 40, **changes: object
) -> RelationTrainingConfig:
    """Settings of a few seconds' training, its data written into a folder."""
    write_toy_relation_data(folder)
    values: dict[str, object] = dict(
        name="toy-relations",
        encoder_of=str(folder / "encoder"),
        catalogue=str(folder / "relations.toml"),
        phrases=str(folder / "phrases.tsv"),
        none_patterns=str(folder / "none.txt"),
        cells=[str(folder / "cells.tsv")],
        facts=[str(folder / "triples.tsv")],
        num_relation_facets=num_facets,
        num_steps=num_steps,
        batch_size=8,
        relations_per_step=4,
        pairs_per_relation=8,
        phrases_per_step=16,
        others_per_step=4,
        composed_share=0.0,
        similar_relations=1.0,
        encoder_weight=0.0,
        encoder_learning_rate=3e-3,
        relation_learning_rate=1e-2,
        checkpoint_every=num_steps,
        precision="float32",
        num_threads=1,
        model=PatternNetworkConfig(
            num_facets=num_facets, order_dim=32, num_heads=2, feedforward_dim=48, encoder=TOY_ENCODER
        ),
        optimizer=OptimizerConfig(learning_rate=3e-3, warmup_steps=10),
        factorization=FactorizationConfig(dim=16, num_epochs=20, learning_rate=0.3),
    )
    return RelationTrainingConfig(**(values | changes))


def make_toy_relation_checkpoint(folder: Path, *, num_facets: int = 3, num_steps: int = 40) -> Path:
    """Trains the model in ``folder``'s neighbourhood and writes it to ``folder``."""
    work = folder.with_name(folder.name + "-run")
    work.mkdir(parents=True)
    config = toy_relation_config(work, num_facets=num_facets, num_steps=num_steps)
    relation_model(*train(lambda: RelationTrainer(config), work / "run"), folder).save(folder)
    # Thresholds are fitted on development data, of which there is none here.
    file = folder / "relations.json"
    values = json.loads(file.read_text(encoding="utf-8"))
    values["calibration"]["thresholds"] = [TOY_RELATION_THRESHOLD] * len(TOY_RELATIONS)
    file.write_text(json.dumps(values), encoding="utf-8")
    return folder

"""The tables of relations: table 3.5 (relations of pairs) and 3.7 (entailment) of Chang 2022."""

from facets_lab.evaluation.task import EvaluationTask
from facets_lab.relations.evaluation.entailment import entailment_systems, evaluate_entailment
from facets_lab.relations.evaluation.entailment_data import read_entailment
from facets_lab.relations.evaluation.relations import evaluate_relations, read_pairs
from facets_lab.relations.evaluation.systems import relation_systems

__all__ = ["ENTAILMENT", "RELATIONS"]

RELATIONS = EvaluationTask(
    read=read_pairs,
    num_rows=lambda data: data.num_rows,
    systems=relation_systems,
    evaluate=evaluate_relations,
)
ENTAILMENT = EvaluationTask(
    read=read_entailment,
    num_rows=lambda data: len(data.premises),
    systems=entailment_systems,
    evaluate=evaluate_entailment,
)

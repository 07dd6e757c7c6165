"""What the table of relations compares: relation models, chance, and MiniLM's nearest training pattern."""

from collections.abc import Iterator, Sequence

import numpy as np

from facets.language.vectors import unit_rows
from facets.model.loading import load
from facets.relations.engine import RelationEngine
from facets.relations.model import RelationModel
from facets.relations.ranking import combined_scores
from facets_lab.evaluation.embedders import minilm
from facets_lab.evaluation.systems import if_installed, load_systems
from facets_lab.relations.evaluation.relations import PatternMethod, RelationSystem

__all__ = ["FacetRelations", "load_relation_models", "relation_systems"]

_BASELINES = ("facets-relations-en-k1",)
_SEED = 0


class _ModelRelations:
    """The relations of a model, whatever compares patterns with them."""

    def __init__(self, model: RelationModel) -> None:
        table = model.relations
        self.relations = table.names
        self.meanings = table.meanings()
        self.symmetric = table.symmetric_names


class FacetRelations(_ModelRelations):
    """A relation model: its facets, its look-up, and the higher of both."""

    def __init__(self, model: RelationModel) -> None:
        super().__init__(model)
        self.name = model.name
        self._model = model

    def methods(self, patterns: Sequence[str]) -> dict[str, PatternMethod]:
        """``symmetric`` (eq. 3.11), ``asymmetric`` (eq. 3.10), ``universal_schema`` (look-up), and maxima with it."""
        arrays = RelationEngine(self._model).score_arrays(patterns, self.relations)
        confidence = self._model.relations.confidence
        schema = arrays.universal_schema
        both = {
            name: combined_scores(scores, schema, confidence)
            for name, scores in (("symmetric", arrays.symmetric), ("asymmetric", arrays.asymmetric))
        }
        # The model decides by one of the two maxima; the thresholds are that one's.
        decides = "asymmetric" if confidence.use_asymmetric else "symmetric"
        thresholds = np.array(confidence.thresholds, dtype=np.float32)
        return {
            "symmetric": PatternMethod(arrays.symmetric, None),
            "asymmetric": PatternMethod(arrays.asymmetric, None),
            "universal_schema": PatternMethod(schema, None),
            **{
                f"{name}+universal_schema": PatternMethod(
                    scores, thresholds if name == decides else None, confidence.margin
                )
                for name, scores in both.items()
            },
        }


class RandomRelations(_ModelRelations):
    """Chance."""

    name = "random"

    def methods(self, patterns: Sequence[str]) -> dict[str, PatternMethod]:
        """Seeded random scores."""
        rng = np.random.default_rng([_SEED, *patterns[0].encode()])  # another order of arguments, other numbers
        return {"random": PatternMethod(rng.random((len(patterns), len(self.relations)), dtype=np.float32), None)}


class NearestPattern(_ModelRelations):
    """Cosine of MiniLM embeddings to the nearest training pattern of each relation."""

    def __init__(self, model: RelationModel) -> None:
        super().__init__(model)
        self.name = "minilm"
        self._model = model
        self._embed = minilm()

    def methods(self, patterns: Sequence[str]) -> dict[str, PatternMethod]:
        """``nearest_pattern``, and the higher of it and the look-up."""
        table = list(self._model.table.rows)
        members = self._model.relations.patterns
        used = sorted({row for rows in members for row in rows})
        places = {row: place for place, row in enumerate(used)}
        training = unit_rows(self._embed([table[row] for row in used]))
        cosines = unit_rows(self._embed([pattern.lower() for pattern in patterns])) @ training.T
        columns = [
            cosines[:, [places[row] for row in rows]].max(axis=1) if rows else np.full(len(patterns), np.nan)
            for rows in members
        ]
        return {"nearest_pattern": PatternMethod(np.stack(columns, axis=1).astype(np.float32), None)}


def load_relation_models(names_or_paths: Sequence[str], baselines: bool) -> list[RelationModel]:
    """Relation models in the given order, or the shipped one; with baselines the single-facet one too."""
    return load_systems(names_or_paths, _BASELINES if baselines else (), lambda asked: load(asked, RelationModel))


def relation_systems(names_or_paths: Sequence[str], baselines: bool) -> Iterator[RelationSystem]:
    """The models; chance and MiniLM over the relations and training patterns of the first one."""
    models = load_relation_models(names_or_paths, baselines)
    yield from map(FacetRelations, models)
    if baselines:
        yield RandomRelations(models[0])
        yield from if_installed("minilm", lambda: NearestPattern(models[0]))

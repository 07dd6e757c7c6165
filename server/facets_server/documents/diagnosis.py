"""A collection looked at as a whole, with questions that people ask."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from facets.documents import MAX_DIAGNOSE_QUERIES, CollectionDiagnosis, CollectionEngine
from facets.model.contract import TextModel
from facets_server.documents.searching import reader_of
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.limits import check_count
from facets_server.texts.served import TextModels


def diagnose(
    name: str, queries: Sequence[str], engine: CollectionEngine, *, models: TextModels, call: CallContext
) -> tuple[CollectionDiagnosis, TextModel]:
    """What is known of a collection, and the model that read the queries.

    Raises:
        NotFoundError: No such collection, or its model is not served.
        InvalidInputError: An empty collection, too many queries, one without a word.
    """
    record = engine.record(name)
    served = reader_of(record, models, "")
    queries_QD = np.empty((0, record.dim), dtype=np.float32)
    if queries:
        check_count(queries, ("queries",), MAX_DIAGNOSE_QUERIES)
        served.check(queries, "queries")
        queries_QD = served.embed(queries, call)
    call.num_items = len(queries)
    with call.stages.measured("search", num_items=len(queries)):
        return engine.diagnose(record.name, queries_QD, partial(served.embed, call=call)), served.model

"""Moving a collection to another model: which one, and how long one call may work at it."""

from collections.abc import Mapping, Sequence

from facets.documents import EncodedText, TargetModel
from facets_server.documents.ingest import encoded_text
from facets_server.runtime.call_context import CallContext
from facets_server.texts.served import ServedTexts

_LONGEST_STEP_S = 5.0  # well within the time that the server gives to running calls when it stops
_SHARE_OF_DEADLINE = 0.5  # the rest is for the batch that is being encoded and for the last writes


def step_budget_s(call: CallContext) -> float:
    """Seconds after which the call returns though there is more to do."""
    remaining = call.time_remaining()
    return _LONGEST_STEP_S if remaining is None else min(_LONGEST_STEP_S, _SHARE_OF_DEADLINE * remaining)


def target_of(served: ServedTexts, search_fields: Mapping[str, float] | None, call: CallContext) -> TargetModel:
    """The model, encoding on behalf of the call, and the fields that are searched; None: as they are."""
    model = served.model

    def encode(texts: Sequence[str]) -> list[EncodedText]:
        known = [place for place, text in enumerate(texts) if not served.problem(text)]
        found = [EncodedText.of_nothing(model.num_facets, model.dim)] * len(texts)
        if known:
            encoded = served.encode([texts[place] for place in known], call)
            for row, place in enumerate(known):
                found[place] = encoded_text(encoded, row)
        return found

    return TargetModel(
        name=model.name,
        revision=model.revision,
        space=model.space,
        num_facets=model.num_facets,
        dim=model.dim,
        encode=encode,
        search_fields=search_fields,
    )

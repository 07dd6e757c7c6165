"""Converts texts to messages, and messages to scores of pairs."""

from collections.abc import Sequence

from facets_proto.codec import from_message
from facets_proto.v1 import texts_pb2 as pb

from facets_client.core.requests import request_of
from facets_client.generated.types import Difference
from facets_client.texts.results import PairScore


def document_message(document: str | Sequence[str]) -> pb.SummaryDocument:
    """A document to summarize: a raw text, or a list of sentences."""
    if isinstance(document, str):
        return request_of(pb.SummaryDocument, text=document)
    return pb.SummaryDocument(sentences=request_of(pb.SentenceList, sentences=document))


def pair_score(message: pb.PairScore) -> PairScore:
    """The score of a pair, with its explanation in one record."""
    return from_message(
        message.explanation,
        PairScore,
        score=message.score,
        calibrated_score=message.calibrated_score if message.HasField("calibrated_score") else None,
        label=pb.InferenceLabel.Name(message.label).removeprefix("INFERENCE_LABEL_").lower() if message.label else "",
        differences=tuple(from_message(item, Difference) for item in message.differences),
    )

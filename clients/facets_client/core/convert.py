"""What messages of every room hold, as results of the client: models, timings, words, meetings; and filters."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import UTC

from facets_proto.v1 import common_pb2, documents_pb2, models_pb2
from google.protobuf import struct_pb2
from grpc_health.v1 import health_pb2

from facets_client import filters
from facets_client.core import results
from facets_client.core.values import finite_double


def to_model(message: models_pb2.Model) -> results.Model:
    """What the server says about a model and its limits."""
    normalization = models_pb2.Normalization.Name(message.normalization)
    return results.Model(
        name=message.name,
        revision=message.revision,
        task=message.task,
        num_facets=message.num_facets,
        dim=message.dim,
        vocabulary_size=message.vocabulary_size,
        max_tokens=message.max_tokens,
        normalization=normalization.removeprefix("NORMALIZATION_").lower(),
        is_default=message.is_default,
        limits=_to_limits(message.limits),
        space=message.space,
    )


def _to_limits(message: models_pb2.Limits) -> results.Limits:
    return results.Limits(**{field.name: getattr(message, field.name) for field in fields(results.Limits)})


def to_status(message: models_pb2.GetServerStatusResponse) -> results.ServerStatus:
    """How a server is."""
    backup = message.last_backup_time.ToDatetime(tzinfo=UTC) if message.HasField("last_backup_time") else None
    return results.ServerStatus(
        version=message.version,
        start_time=message.start_time.ToDatetime(tzinfo=UTC),
        num_running=message.num_running,
        num_queued=message.num_queued,
        num_streams=message.num_streams,
        num_waiting={queue.model: queue.num_waiting for queue in message.model_queues},
        num_requests={count.code: count.num_requests for count in message.request_counts},
        disk_bytes={use.part: use.num_bytes for use in message.disk_uses},
        free_bytes=message.free_bytes,
        last_backup_time=backup,
    )


def to_health(message: health_pb2.HealthCheckResponse) -> str:
    """Name of a serving status; UNKNOWN for a number nobody knows."""
    statuses = health_pb2.HealthCheckResponse.ServingStatus
    return statuses.Name(message.status) if message.status in statuses.values() else "UNKNOWN"


def to_model_version(message: common_pb2.ModelVersion) -> results.ModelVersion:
    """Which model answered."""
    return results.ModelVersion(message.name, message.revision)


def total_timings(parts: Iterable[common_pb2.Timings]) -> results.Timings:
    """Timings of the parts of a call, added up."""
    total = results.Timings()
    for part in parts:
        total += results.Timings(part.queue_ms, part.inference_ms, part.total_ms)
    return total


def to_words(words: Iterable[common_pb2.NearestWord]) -> tuple[results.NearestWord, ...]:
    """Words near a facet, in the order of the reply."""
    return tuple(results.NearestWord(item.word, item.cosine) for item in words)


def to_span(message: common_pb2.Span) -> results.Span | None:
    """A part of a text; None where the message says that there is none."""
    return results.Span(message.start, message.end) if message.end else None


def to_matches(matches: Iterable[common_pb2.FacetMatch]) -> tuple[results.FacetMatch, ...]:
    """Facets that met, in the order of the reply."""
    return tuple(
        results.FacetMatch(
            m.first_facet,
            m.second_facet,
            m.cosine,
            m.contribution,
            to_words(m.first_words),
            to_words(m.second_words),
            to_span(m.second_span),
        )
        for m in matches
    )


def from_filter(where: filters.Filter | None) -> documents_pb2.Filter | None:
    """A condition on payloads as a message; None stays None."""
    return None if where is None else _from_filter(where)


def _from_filter(where: filters.Filter) -> documents_pb2.Filter:
    match where:
        case filters.AllOf(inner):
            return documents_pb2.Filter(all_of=_filter_list(inner))
        case filters.AnyOf(inner):
            return documents_pb2.Filter(any_of=_filter_list(inner))
        case filters.NoneOf(inner):
            return documents_pb2.Filter(none_of=_filter_list(inner))
        case filters.Equals(field, value):
            condition = documents_pb2.FieldCondition(field=field, equals=_from_scalar(field, value))
        case filters.OneOf(field, values):
            listed = struct_pb2.ListValue(values=[_from_scalar(field, value) for value in values])
            condition = documents_pb2.FieldCondition(field=field, one_of=listed)
        case filters.Range(field, gt, gte, lt, lte):
            condition = _from_range(field, {"gt": gt, "gte": gte, "lt": lt, "lte": lte})
        case filters.Contains(field, value):
            condition = documents_pb2.FieldCondition(field=field, contains=_from_scalar(field, value))
        case filters.Exists(field, exists):
            condition = documents_pb2.FieldCondition(field=field, exists=exists)
    return documents_pb2.Filter(field=condition)


def _from_range(field: str, bounds: dict[str, float | str | None]) -> documents_pb2.FieldCondition:
    numbers = {
        name: finite_double(bound, f"the bound for {field}")
        for name, bound in bounds.items()
        if isinstance(bound, int | float)
    }
    strings = {name: bound for name, bound in bounds.items() if isinstance(bound, str)}
    if strings:
        return documents_pb2.FieldCondition(field=field, string_range=documents_pb2.StringRange(**strings))
    return documents_pb2.FieldCondition(field=field, range=documents_pb2.NumberRange(**numbers))


def _filter_list(inner: Sequence[filters.Filter]) -> documents_pb2.FilterList:
    return documents_pb2.FilterList(filters=[_from_filter(item) for item in inner])


def _from_scalar(field: str, value: filters.Scalar) -> struct_pb2.Value:
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    return struct_pb2.Value(number_value=finite_double(value, f"the value for {field}"))

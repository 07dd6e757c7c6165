"""The table of rpcs, read from the descriptors, and their messages as bodies: the JSON of protobuf, or protobuf itself.

A new rpc is a route at once.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, NoReturn, TypeVar

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import FileDescriptor, MethodDescriptor
from google.protobuf.message import DecodeError, Message
from grpc_health.v1 import health_pb2

from facets_server.gateway.failures import bad_request

_PACKAGE = "facets_proto.v1"
MessageT = TypeVar("MessageT", bound=Message)
MAX_JSON_VALUES = 262_144  # of one body, or of one line of a stream
_SEPARATORS = (b",", b"[", b"{", b":")
_JSON_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_UNKNOWN_FIELD = re.compile(
    r'has no field named "(.*?)" at "\w+\.?([^"]*)"\.?\s+Available Fields\(.*?\): "\[(.*?)\]"', re.DOTALL
)
_LONGEST_PROBLEM = 300  # characters of the parser's own words, which quote the caller's


@dataclass(frozen=True, slots=True)
class Rpc:
    """One rpc.

    Attributes:
        descriptor: What the proto file says of it.
        request: Class of its request.
        reply: Class of its reply.
    """

    descriptor: MethodDescriptor
    request: type[Message]
    reply: type[Message]

    @property
    def path(self) -> str:
        """Its path in gRPC and here: ``/facets.v1.EmbeddingService/Embed``."""
        service = self.descriptor.containing_service
        assert service is not None
        return f"/{service.full_name}/{self.descriptor.name}"

    @property
    def is_stream(self) -> bool:
        """True when requests or replies are a stream."""
        return bool(self.descriptor.client_streaming or self.descriptor.server_streaming)


@cache
def proto_files() -> tuple[FileDescriptor, ...]:
    """Descriptors of our proto files, by name."""
    names = sorted(entry.name for entry in files(_PACKAGE).iterdir() if entry.name.endswith("_pb2.py"))
    return tuple(import_module(f"{_PACKAGE}.{name.removesuffix('.py')}").DESCRIPTOR for name in names)


def proto_sources() -> list[str]:
    """The texts of our proto files."""
    return [entry.read_text(encoding="utf-8") for entry in files(_PACKAGE).iterdir() if entry.name.endswith(".proto")]


@cache
def rpcs() -> Mapping[str, Rpc]:
    """Path -> rpc, of all our services and of health's ``Check``."""
    methods: list[Any] = [  # not typed where they come from
        method
        for file in proto_files()
        for service in file.services_by_name.values()
        for method in service.methods_by_name.values()
    ]
    methods.append(health_pb2.DESCRIPTOR.services_by_name["Health"].methods_by_name["Check"])
    found = (Rpc(method, _class_of(method.input_type), _class_of(method.output_type)) for method in methods)
    return {rpc.path: rpc for rpc in found}


def _class_of(descriptor: object) -> type[Message]:
    return message_factory.GetMessageClass(descriptor)  # type: ignore[arg-type]


def parsed_json(body: bytes) -> Any:
    """A body as JSON: UTF-8, every name once, numbers that JSON has, not so many values that they need much room.

    Raises:
        CallFailedError: It is none.
    """
    _check_num_values(body)
    try:
        return json.loads(body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise bad_request(f"the body is not UTF-8: byte {error.start} cannot be read") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise bad_request(f"the body is not JSON: {error.msg.lower()} at {where}") from error
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {error}") from error
    except RecursionError as error:
        raise bad_request("the body is nested too deeply") from error


def _check_num_values(body: bytes) -> None:
    """A value of one or two bytes takes a hundred once it is an object."""
    if sum(map(body.count, _SEPARATORS)) < MAX_JSON_VALUES:
        return
    without_strings = _JSON_STRING.sub(b"", body)
    num_values = sum(map(without_strings.count, _SEPARATORS))
    if num_values >= MAX_JSON_VALUES:
        raise bad_request(f"the body holds {num_values} values, the limit is {MAX_JSON_VALUES}")


def message_of_json(body: bytes, kind: type[MessageT]) -> MessageT:
    """A body in the JSON of protobuf as a message.

    Raises:
        CallFailedError: It is no JSON, has a field that the message has not, or a value of another type.
    """
    values = parsed_json(body)
    if not isinstance(values, dict):
        raise bad_request(f"the body is no JSON object, expected the fields of {kind.DESCRIPTOR.name}")
    try:
        return json_format.ParseDict(values, kind())
    except (json_format.ParseError, ValueError, TypeError, OverflowError) as error:
        raise bad_request(_problem(error, values)) from error
    except RecursionError as error:
        raise bad_request("the body is nested too deeply") from error


def message_of_proto(body: bytes, kind: type[MessageT]) -> MessageT:
    """A body of protobuf as a message.

    Raises:
        CallFailedError: It is none.
    """
    try:
        return kind.FromString(body)
    except DecodeError as error:
        raise bad_request("the body cannot be decoded: expected a protobuf message with UTF-8 strings") from error


def json_of(message: Message) -> bytes:
    """A message as one line of JSON."""
    values = json_format.MessageToDict(message)
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return values


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _problem(error: Exception, values: Any) -> str:
    """The parser's sentence; of a field that is not there which ones there are, of a string that is no object so."""
    if isinstance(error, UnicodeEncodeError):
        return "a string holds half of a surrogate pair, expected Unicode text"
    found = _UNKNOWN_FIELD.search(str(error))
    if not found:
        return f"the body does not fit: {str(error).partition(chr(10))[0].strip().rstrip('.')[:_LONGEST_PROBLEM]}"
    name, path, listed = found.groups()
    try:
        for step in re.findall(r"\w+", path):
            values = values[int(step) if isinstance(values, list) else step]
    except (LookupError, ValueError, TypeError):
        pass  # the parser calls a field otherwise than the caller
    known = listed.replace("'", "")
    if isinstance(values, str):
        return f"{path} is a string, expected an object with fields of {known}"[:_LONGEST_PROBLEM]
    return f"{path or 'the body'} has no field {name[:80]!r}, expected some of {known}"[:_LONGEST_PROBLEM]

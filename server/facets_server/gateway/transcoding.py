"""Bodies as messages and back: the JSON of protobuf, or protobuf itself."""

import json
from typing import Any, NoReturn, TypeVar

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

from facets_server.gateway.failures import bad_request

__all__ = ["json_of", "message_of_json", "message_of_proto", "parsed_json"]

MessageT = TypeVar("MessageT", bound=Message)

_LONGEST_PROBLEM = 300  # characters of the parser's own words, which quote the caller's


def parsed_json(body: bytes) -> Any:
    """A body as JSON: UTF-8, every name once, numbers that JSON has.

    Raises:
        CallFailedError: It is none.
    """
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
        raise bad_request(_problem(error)) from error
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


def _problem(error: Exception) -> str:
    """The parser's sentence without its list of all the fields there are."""
    if isinstance(error, UnicodeEncodeError):
        return "a string holds half of a surrogate pair, expected Unicode text"
    text = str(error).partition("\n")[0].strip().rstrip(".")
    return f"the body does not fit: {text[:_LONGEST_PROBLEM]}"

"""The fields of a request of OpenAI's or TEI's routes, each with its rule."""

from collections.abc import Collection
from typing import Any

from starlette.requests import Request

from facets_server.gateway.bodies import BodyReader
from facets_server.gateway.failures import CallFailedError, bad_request
from facets_server.gateway.rpc_routes import JSON, content_type_of
from facets_server.gateway.transcoding import parsed_json

__all__ = ["BadFieldError", "Fields", "read_fields"]

_MOST_NAMED = 40  # characters of a name that we do not know


class BadFieldError(CallFailedError):
    """A field breaks its rule.

    Attributes:
        field: Its name.
    """

    def __init__(self, field: str, rule: str) -> None:
        problem = bad_request(f"{field} {rule}")
        super().__init__(problem.code, problem.message)
        self.field = field


async def read_fields(reader: BodyReader, request: Request, *, known: Collection[str]) -> "Fields":
    """The fields of a JSON body.

    Raises:
        CallFailedError: It is no JSON object.
        BadFieldError: It has a field that is not known.
    """
    content_type_of(request, JSON)
    values = parsed_json(await reader.body(request))
    if not isinstance(values, dict):
        raise bad_request("the body is no JSON object")
    for name in values:
        if name not in known:
            raise BadFieldError(name[:_MOST_NAMED], f"is not known, expected one of {', '.join(sorted(known))}")
    return Fields(values)


class Fields:
    """Values by name; null is as if it were not given."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = {name: value for name, value in values.items() if value is not None}

    def texts(self, name: str) -> list[str]:
        """One text or a list of them.

        Raises:
            BadFieldError: It is neither.
        """
        value = self._values.get(name, [])
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not texts:
            raise BadFieldError(name, "is missing or empty, expected a text or a list of texts")
        for place, text in enumerate(texts):
            if isinstance(text, int | list):
                raise BadFieldError(name, "has tokens, expected texts: models have tokens of their own here")
            if not isinstance(text, str):
                raise BadFieldError(f"{name}[{place}]", "is no text")
            if not _is_unicode(text):
                raise BadFieldError(f"{name}[{place}]", "holds half of a surrogate pair, expected Unicode text")
        return texts

    def text(self, name: str, default: str = "", *, of: Collection[str] = ()) -> str:
        """A text, one of some where they are named.

        Raises:
            BadFieldError: It is none.
        """
        value = self._values.get(name, default)
        if not isinstance(value, str) or not _is_unicode(value):
            raise BadFieldError(name, "is no text")
        if of and value not in of:
            raise BadFieldError(name, f"is {value[:_MOST_NAMED]!r}, expected one of {', '.join(of)}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false.

        Raises:
            BadFieldError: It is neither.
        """
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise BadFieldError(name, "is neither true nor false")
        return value

    def number(self, name: str) -> int | None:
        """A whole number >= 1; None where none is given.

        Raises:
            BadFieldError: It is none.
        """
        value = self._values.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise BadFieldError(name, "is no whole number of at least 1")
        return value


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text) if not text.isascii() else True

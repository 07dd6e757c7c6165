"""The comments of our proto files, by the full name of what they stand above.

The generated code has none, so the files are read: one statement a line, as `buf format` leaves them. A test holds
the result against protoc's own.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from facets_server.gateway.rpcs import proto_sources

__all__ = ["proto_comments"]

_OPENS = re.compile(r"(message|enum|service|oneof)\s+(\w+)\s*\{")
_RPC = re.compile(r"rpc\s+(\w+)\s*\(")
_FIELD = re.compile(r"(?:repeated |optional )?[\w.]+(?:<[^>]*>)?\s+(\w+)\s*=\s*\d+")
_VALUE = re.compile(r"(\w+)\s*=\s*\d+")


@cache
def proto_comments() -> Mapping[str, str]:
    """Full name of a service, rpc, message, field or enum value -> its comment in one line."""
    found: dict[str, str] = {}
    for text in proto_sources():
        found.update(_comments_of(text))
    return found


def _comments_of(text: str) -> Iterator[tuple[str, str]]:
    package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
    scopes = [package.group(1) if package is not None else ""]
    is_oneof = [False]
    comment: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("//"):
            comment.append(line.removeprefix("//").strip())
            continue
        name = _name_in(line)
        # The fields of a oneof belong to its message.
        scope = next(place for place, inside in zip(reversed(scopes), reversed(is_oneof), strict=True) if not inside)
        if name and comment:
            yield f"{scope}.{name}", " ".join(filter(None, comment))
        if line.endswith("{"):
            scopes.append(f"{scope}.{name}")
            is_oneof.append(line.startswith("oneof "))
        elif line.startswith("}"):
            scopes.pop()
            is_oneof.pop()
        comment = []


def _name_in(line: str) -> str:
    """What a line declares; empty: nothing."""
    opens = _OPENS.match(line)
    if opens is not None:
        return opens.group(2)
    found = _RPC.match(line) or _FIELD.match(line) or _VALUE.match(line)
    return found.group(1) if found is not None else ""

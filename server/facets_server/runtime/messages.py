"""What a call brings: its metadata and its messages, read on the event loop, never without end."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError

from facets.errors import InvalidInputError
from facets_server.runtime.wait_limit import WaitLimit

__all__ = ["decoded", "first_message", "metadata_of", "next_message"]

_END_S = 0.02

Context = Any  # grpc.aio.ServicerContext
MessageT = TypeVar("MessageT")


async def first_message(context: Context, waits: WaitLimit) -> bytes:
    """The first message of a call, as bytes.

    Raises:
        InvalidInputError: The caller has closed its side without one.
        DeadlineExceededError, OverloadedError: It did not come in time.
    """
    data = await next_message(context, waits)
    if data is None:
        raise InvalidInputError("the call carries no request message, expected one")
    return data


async def next_message(context: Context, waits: WaitLimit) -> bytes | None:
    """The next message of a call, as bytes; None when the caller has closed its side.

    Raises:
        DeadlineExceededError, OverloadedError: It did not come in time.
    """
    data = await waits.wait(context.read())
    if data is grpc.aio.EOF:
        await asyncio.sleep(_END_S)  # a call that was cancelled reads like this too, and then this raises
        return None
    return bytes(data)


def decoded(decode: Callable[[bytes], MessageT], data: bytes) -> MessageT:
    """Bytes as a message.

    Raises:
        InvalidInputError: They are none: the caller's fault, for which gRPC itself would answer INTERNAL.
    """
    try:
        return decode(data)
    except DecodeError as error:
        rule = "the request cannot be decoded: expected a protobuf message with UTF-8 strings"
        raise InvalidInputError(rule) from error


def metadata_of(context: Context, name: str) -> str:
    """The first value of a name in the metadata of a call; empty: none."""
    return next((str(value) for key, value in context.invocation_metadata() if key == name), "")

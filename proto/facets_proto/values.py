"""Converts values that messages and records represent differently: arrays, JSON objects, enums."""

import math
from enum import Enum
from typing import Any

import numpy as np
from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.struct_pb2 import Struct
from numpy.typing import NDArray

from facets_proto.v1 import common_pb2

Path = tuple[str | int, ...]

_DTYPES = {common_pb2.DATA_TYPE_FLOAT32: np.dtype("<f4"), common_pb2.DATA_TYPE_FLOAT16: np.dtype("<f2")}
_MAX_EXACT_INTEGER = 2**53  # that a double can represent


class WireError(ValueError):
    """A value of a message breaks a ``rule`` of its record; ``path`` names the field in the message."""

    def __init__(self, rule: str, path: Path = ()) -> None:
        super().__init__(f"{'.'.join(map(str, path))} {rule}".lstrip())
        self.rule = rule
        self.path = path

    def within(self, *path: str | int) -> "WireError":
        """The same error, with the field of the outer message put before its path."""
        return WireError(self.rule, (*path, *self.path))


def array_to_message(array: NDArray[np.floating]) -> dict[str, Any]:
    """Converts an array to the fields of a ``FacetArray``: float16 stays, other types are clipped to float32."""
    kind = common_pb2.DATA_TYPE_FLOAT16 if array.dtype == np.float16 else common_pb2.DATA_TYPE_FLOAT32
    dtype = _DTYPES[kind]
    if dtype.itemsize < array.dtype.itemsize:
        limit = float(np.finfo(dtype).max)
        array = np.clip(array, -limit, limit)
    return {"shape": array.shape, "dtype": kind, "data": array.astype(dtype, copy=False).tobytes()}


def array_from_message(message: common_pb2.FacetArray) -> NDArray[np.floating]:
    """Converts a ``FacetArray`` to a writable array of its shape and type; default float32.

    Raises:
        WireError: Type, shape and bytes do not match.
    """
    dtype = _DTYPES.get(message.dtype or common_pb2.DATA_TYPE_FLOAT32)
    if dtype is None:
        raise WireError(f"must be float32 or float16, got number {message.dtype}", ("dtype",))
    shape = tuple(message.shape)
    expected = math.prod(shape) * dtype.itemsize
    if len(message.data) != expected:
        raise WireError(f"must be {expected} bytes for shape {list(shape)}, got {len(message.data)}", ("data",))
    return np.frombuffer(message.data, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def payload_from_message(message: Struct) -> dict[str, Any]:
    """Converts a ``Struct`` to a JSON object; whole numbers become integers. WireError: a number is not finite.

    Fields are in the order of their names: a message has none, and protobuf's changes from process to process.
    """
    fields = message.fields
    return {name: _json_value(fields[name], name) for name in sorted(fields)}


def _json_value(value: Any, step: str | int) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return value.string_value
    if kind == "number_value":
        number = value.number_value
        if not math.isfinite(number):
            raise WireError(f"must be a finite number, got {number}", (step,))
        return int(number) if number.is_integer() and abs(number) <= _MAX_EXACT_INTEGER else number
    if kind == "bool_value":
        return value.bool_value
    try:
        if kind == "struct_value":
            return payload_from_message(value.struct_value)
        if kind == "list_value":
            return [_json_value(item, index) for index, item in enumerate(value.list_value.values)]
    except WireError as error:
        raise error.within(step) from error
    return None


def enum_number(enum: EnumDescriptor, value: object) -> int:
    """The number of an enum value, given as member or name; 0 if it is empty. ValueError: there is no such value."""
    if isinstance(value, int) and not isinstance(value, Enum):
        return value
    if not (value.value if isinstance(value, Enum) else value):
        return 0
    name = value.name if isinstance(value, Enum) else str(value).upper()
    found = enum.values_by_name.get(_prefix(enum) + name)
    if found is None:
        raise ValueError(f"must be one of {', '.join(enum_names(enum).values()).lower()}, got {value!r}")
    return int(found.number)


def _prefix(enum: EnumDescriptor) -> str:
    return str(enum.values_by_number[0].name).removesuffix("UNSPECIFIED")


def enum_names(enum: EnumDescriptor) -> dict[int, str]:
    """Names of the values without prefix, by number; without the unspecified one."""
    return {value.number: value.name.removeprefix(_prefix(enum)) for value in enum.values if value.number}

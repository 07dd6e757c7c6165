"""Values that are written otherwise in messages than in records: arrays, JSON objects, enums."""

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
_EXACT = 2**53  # beyond it a double does not hold every integer


class WireError(ValueError):
    """A message is not what its record wants.

    Attributes:
        rule: What it breaks.
        path: Of the field in the message.
    """

    def __init__(self, rule: str, path: Path = ()) -> None:
        super().__init__(f"{'.'.join(map(str, path))} {rule}".lstrip())
        self.rule = rule
        self.path = path

    def within(self, *path: str | int) -> "WireError":
        """The same of a message that lies in another one."""
        return WireError(self.rule, (*path, *self.path))


def array_to_message(array: NDArray[np.floating]) -> dict[str, Any]:
    """An array as the fields of a ``FacetArray``: half precision stays, everything else travels as float32.

    Larger magnitudes than a type has are cut at its largest, rather than sent as infinity.
    """
    half = array.dtype == np.float16
    dtype = _DTYPES[common_pb2.DATA_TYPE_FLOAT16 if half else common_pb2.DATA_TYPE_FLOAT32]
    if dtype.itemsize < array.dtype.itemsize:
        limit = float(np.finfo(dtype).max)
        array = np.clip(array, -limit, limit)
    return {
        "shape": array.shape,
        "dtype": common_pb2.DATA_TYPE_FLOAT16 if half else common_pb2.DATA_TYPE_FLOAT32,
        "data": np.ascontiguousarray(array, dtype=dtype).tobytes(),
    }


def array_from_message(message: common_pb2.FacetArray, *, num_axes: int | None = None) -> NDArray[np.floating]:
    """A ``FacetArray`` as a writable array of its shape and type, which is float32 where the message names none.

    Args:
        message: From outside.
        num_axes: Expected length of the shape; the numbers must then be positive ones, and finite what is in it.

    Raises:
        WireError: Type, shape and bytes do not fit.
    """
    dtype = _DTYPES.get(message.dtype or common_pb2.DATA_TYPE_FLOAT32)
    if dtype is None:
        raise WireError(f"must be float32 or float16, got number {message.dtype}", ("dtype",))
    shape = tuple(message.shape)
    if num_axes is not None and (len(shape) != num_axes or 0 in shape):
        raise WireError(f"must have {num_axes} positive numbers, got {list(shape)}", ("shape",))
    expected = math.prod(shape) * dtype.itemsize
    if len(message.data) != expected:
        raise WireError(f"must be {expected} bytes for shape {list(shape)}, got {len(message.data)}", ("data",))
    array: NDArray[np.floating] = np.frombuffer(message.data, dtype).reshape(shape).astype(dtype.newbyteorder("="))
    if num_axes is not None and not np.isfinite(array).all():
        raise WireError("must be finite numbers, got NaN or infinity", ("data",))
    return array


def payload_from_message(message: Struct) -> dict[str, Any]:
    """A ``Struct`` as a JSON object; whole numbers become integers.

    Raises:
        WireError: A number is not finite.
    """
    return {name: _json_value(value, name) for name, value in message.fields.items()}


def _json_value(value: Any, place: str | int) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return value.string_value
    if kind == "number_value":
        number = value.number_value
        if not math.isfinite(number):
            raise WireError(f"must be a finite number, got {number}", (place,))
        return int(number) if number.is_integer() and abs(number) <= _EXACT else number
    if kind == "bool_value":
        return value.bool_value
    try:
        if kind == "struct_value":
            return payload_from_message(value.struct_value)
        if kind == "list_value":
            return [_json_value(item, number) for number, item in enumerate(value.list_value.values)]
    except WireError as error:
        raise error.within(place) from error
    return None


def enum_number(enum: EnumDescriptor, value: object) -> int:
    """The number of a value given by member or name; 0 for an empty one.

    Raises:
        ValueError: There is no such value.
    """
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
    """Number of each value but the unspecified one, with its name without prefix."""
    return {value.number: value.name.removeprefix(_prefix(enum)) for value in enum.values if value.number}

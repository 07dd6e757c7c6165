"""Facet arrays: NumPy here, shape, type and little-endian bytes on the wire."""

import math

import numpy as np
from facets_proto.v1 import common_pb2
from numpy.typing import NDArray

from facets.errors import ErrorPath, InvalidInputError

__all__ = ["array_from_proto", "array_to_proto"]

_DTYPES: dict[int, np.dtype[np.floating]] = {
    common_pb2.DATA_TYPE_UNSPECIFIED: np.dtype("<f4"),
    common_pb2.DATA_TYPE_FLOAT32: np.dtype("<f4"),
    common_pb2.DATA_TYPE_FLOAT16: np.dtype("<f2"),
}


def array_to_proto(array: NDArray[np.floating], data_type: int = 0) -> common_pb2.FacetArray:
    """An array as a message.

    Args:
        array: Any shape.
        data_type: A ``DataType``; 0 means float32.

    Raises:
        InvalidInputError: ``data_type`` is unknown.
    """
    dtype = _dtype(data_type, ("dtype",))
    sent = data_type or common_pb2.DATA_TYPE_FLOAT32
    limit = float(np.finfo(dtype).max)
    # Half precision ends at 65504: larger magnitudes are cut there rather than sent as infinity.
    fitting = np.clip(array, -limit, limit) if dtype.itemsize < array.dtype.itemsize else array
    data = np.ascontiguousarray(fitting, dtype=dtype).tobytes()
    return common_pb2.FacetArray(shape=array.shape, dtype=sent, data=data)  # type: ignore[arg-type]


def array_from_proto(message: common_pb2.FacetArray, path: ErrorPath, *, num_axes: int) -> NDArray[np.float32]:
    """A message as a float32 array.

    Args:
        message: From outside.
        path: Its path in the request, for errors.
        num_axes: Expected length of the shape.

    Raises:
        InvalidInputError: Type, shape and bytes do not fit, or a number is not finite.
    """
    dtype = _dtype(message.dtype, (*path, "dtype"))
    shape = tuple(message.shape)
    if len(shape) != num_axes or 0 in shape:
        raise InvalidInputError(f"must have {num_axes} positive numbers, got {list(shape)}", path=(*path, "shape"))
    expected = math.prod(shape) * dtype.itemsize
    if len(message.data) != expected:
        raise InvalidInputError(
            f"must be {expected} bytes for shape {list(shape)}, got {len(message.data)}",
            path=(*path, "data"),
        )
    array = np.frombuffer(message.data, dtype).reshape(shape).astype(np.float32)
    if not np.isfinite(array).all():
        raise InvalidInputError("must be finite numbers, got NaN or infinity", path=(*path, "data"))
    return array


def _dtype(data_type: int, path: ErrorPath) -> np.dtype[np.floating]:
    if data_type not in _DTYPES:
        raise InvalidInputError(f"must be float32 or float16, got number {data_type}", path=path)
    return _DTYPES[data_type]

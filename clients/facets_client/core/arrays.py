"""NumPy arrays as bytes with shape and type."""

import math

import numpy as np
from facets_proto.v1 import common_pb2
from numpy.typing import NDArray

from facets_client.core.results import FacetsArray

_DTYPES: dict[int, str] = {common_pb2.DATA_TYPE_FLOAT32: "<f4", common_pb2.DATA_TYPE_FLOAT16: "<f2"}


def to_array(message: common_pb2.FacetArray) -> FacetsArray:
    """A writable array of the message's shape and type.

    Raises:
        ValueError: When shape, type and number of bytes do not agree.
    """
    dtype = _DTYPES.get(message.dtype)
    if dtype is None:
        raise ValueError(f"array has dtype {message.dtype}, expected one of {sorted(_DTYPES)}")
    num_bytes = math.prod(message.shape) * np.dtype(dtype).itemsize
    if num_bytes != len(message.data):
        raise ValueError(f"array of shape {list(message.shape)} has {len(message.data)} bytes, not {num_bytes}")
    flat = np.frombuffer(message.data, dtype=dtype)
    native: FacetsArray = flat.astype(flat.dtype.newbyteorder("="), copy=True)
    return native.reshape(tuple(message.shape))


def from_array(array: NDArray[np.floating]) -> common_pb2.FacetArray:
    """An array as a message: half precision stays, everything else travels as float32."""
    half = array.dtype == np.float16
    data = np.ascontiguousarray(array, dtype="<f2" if half else "<f4")
    dtype = common_pb2.DATA_TYPE_FLOAT16 if half else common_pb2.DATA_TYPE_FLOAT32
    return common_pb2.FacetArray(shape=array.shape, dtype=dtype, data=data.tobytes())

"""Changes to messages that may be anything the wire can carry, by their descriptors alone."""

import math
import random
import struct
from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_DEEPEST = 5  # messages in messages that are made up; those of valid calls may be deeper
_MOST_CHANGES = 4
_TEXTS = (
    *(
        "",
        " ",
        "a",
        "fuzz",
        "no-such-name",
        "A dog barks.",
        "$ARG1 met $ARG2",
        "\x00",
        "\u202e\u200b",
        "\U0001f389" * 50,
    ),
    *(
        "(" * 5_000,
        "word " * 3_000,
        "x" * 40_000,
        "../etc/passwd",
        "' OR 1=1 --",
        "{}",
        "\ufeff",
        "d0",
        "d1",
        "9" * 400,
    ),
)
_NUMBERS = (0.0, -0.0, 0.5, 1.0, -1.0, 1e-320, 1e308, math.nan, math.inf, -math.inf)
_INTEGERS = (0, 1, 2, 3, 7, 100, 1_000, 65_536, 2**31 - 1, 2**31, 2**32 - 1, 2**53 + 1, 2**63 - 1, 2**64 - 1)
_SIGNED = (*_INTEGERS, -1, -2, -(2**31), -(2**63))
_F = FieldDescriptor
_RANGES = {
    **dict.fromkeys((_F.TYPE_INT32, _F.TYPE_SINT32, _F.TYPE_SFIXED32), (-(2**31), 2**31 - 1)),
    **dict.fromkeys((_F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_SFIXED64), (-(2**63), 2**63 - 1)),
    **dict.fromkeys((_F.TYPE_UINT32, _F.TYPE_FIXED32), (0, 2**32 - 1)),
    **dict.fromkeys((_F.TYPE_UINT64, _F.TYPE_FIXED64), (0, 2**64 - 1)),
}


def fields_of(message: Message) -> set[str]:
    """Full names of the fields that are set in a message and in all messages of it."""
    found: set[str] = set()
    for field, value in message.ListFields():
        found.add(field.full_name)
        for inner in _messages(field, value):
            found |= fields_of(inner)
    return found


class Mutator:
    """Makes changes with one source of chance."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def mutate(self, message: Message) -> None:
        """Changes some fields of a message, or of one that is in it."""
        for _ in range(self._rng.randint(1, _MOST_CHANGES)):
            target = self._rng.choice(list(_all_messages(message)))
            if target.DESCRIPTOR.fields:
                self._change(target, self._rng.choice(list(target.DESCRIPTOR.fields)))

    def garble(self, data: bytes) -> bytes:
        """Changes the bytes of a message: they may be no message any more, or hold strings that are not UTF-8."""
        changed = bytearray(data or b"\x0a\x01a")
        kind = self._rng.randrange(5)
        place = self._rng.randrange(len(changed))
        if kind == 0:
            changed[place] ^= 1 << self._rng.randrange(8)
        elif kind == 1:
            del changed[place:]
        elif kind == 2:
            changed[place:place] = self._rng.randbytes(self._rng.randint(1, 20))
        elif kind == 3:
            letters = [number for number, byte in enumerate(changed) if 0x61 <= byte <= 0x7A]
            changed[self._rng.choice(letters or [place])] = 0xFF
        else:
            changed += self._rng.choice([b"\x0b" * 200, b"\xff" * 10, b"\x0a\xff\xff\xff\xff\x0f", bytes(changed) * 3])
        return bytes(changed)

    def _change(self, message: Message, field: Any) -> None:
        if self._rng.random() < 0.15:
            message.ClearField(field.name)
        elif _is_map(field):
            self._add_entry(message, field)
        elif field.is_repeated:
            self._change_list(getattr(message, field.name), field)
        elif field.message_type is not None:
            self._fill(getattr(message, field.name), depth=1)
        else:
            setattr(message, field.name, self._scalar(field))

    def _change_list(self, values: Any, field: Any) -> None:
        if len(values) and self._rng.random() < 0.3:
            del values[self._rng.randrange(len(values))]
            return
        for _ in range(self._rng.choice([1, 1, 1, 2, 30, 700])):
            if field.message_type is None:
                values.append(self._scalar(field, is_many=len(values) > 5))
            elif len(values) and self._rng.random() < 0.5:
                values.add().CopyFrom(values[0])
            else:
                self._fill(values.add(), depth=2)

    def _add_entry(self, message: Message, field: Any) -> None:
        entry = field.message_type.fields_by_name
        key, values = self._scalar(entry["key"], is_many=True), getattr(message, field.name)
        if entry["value"].message_type is not None:
            self._fill(values[key], depth=2)
        else:
            values[key] = self._scalar(entry["value"], is_many=True)

    def _fill(self, message: Message, *, depth: int) -> None:
        """Sets some of the fields of a message; of one without any, that it is there."""
        message.SetInParent()
        for field in message.DESCRIPTOR.fields:
            if self._rng.random() < 0.4 and (depth < _DEEPEST or field.message_type is None):
                if field.message_type is not None and not field.is_repeated:
                    self._fill(getattr(message, field.name), depth=depth + 1)
                elif field.is_repeated and not _is_map(field) and field.message_type is not None:
                    self._fill(getattr(message, field.name).add(), depth=depth + 1)
                else:
                    self._change(message, field)

    def _scalar(self, field: Any, *, is_many: bool = False) -> Any:
        """Any value of the type of a field; ``is_many``: a short one."""
        if field.enum_type is not None:
            return self._rng.choice([*field.enum_type.values_by_number, 99, 2**31 - 1])
        if field.type in _RANGES:
            lowest, highest = _RANGES[field.type]
            return self._rng.choice([number for number in _SIGNED if lowest <= number <= highest])
        make: dict[int, Callable[[], Any]] = {
            _F.TYPE_STRING: lambda: self._rng.choice([text for text in _TEXTS if not is_many or len(text) < 100]),
            _F.TYPE_BYTES: self._bytes,
            _F.TYPE_BOOL: lambda: self._rng.random() < 0.5,
            _F.TYPE_FLOAT: lambda: self._rng.choice([number for number in _NUMBERS if abs(number) != 1e308]),
            _F.TYPE_DOUBLE: lambda: self._rng.choice(_NUMBERS),
        }
        return make[field.type]()

    def _bytes(self) -> bytes:
        length = self._rng.choice([0, 1, 3, 4, 128, 1_024, 4_000])
        numbers = struct.pack("<3f", math.nan, math.inf, 1e38)
        return self._rng.choice([self._rng.randbytes(length), bytes(length), numbers * (length // 12)])


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _messages(field: Any, value: Any) -> list[Message]:
    if field.message_type is None:
        return []
    if _is_map(field):
        return [one for one in value.values() if isinstance(one, Message)]
    return list(value) if field.is_repeated else [value]


def _all_messages(message: Message) -> list[Message]:
    found = [message]
    for field, value in message.ListFields():
        for inner in _messages(field, value)[:5]:
            found += _all_messages(inner)
    return found

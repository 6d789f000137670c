# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Messages that no sane peer sends, made from the interface definitions: any type, any field.

What a receiver checks first would keep the rest from being tried: half of the messages begin as
sensible ones, and a few of their fields become odd.
"""

from __future__ import annotations

import array
import importlib
import math
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from rosidl_parser.definition import (
    AbstractString,
    AbstractWString,
    Array,
    BasicType,
    BoundedSequence,
    NamespacedType,
)

MEGABYTE = 1_000_000
_FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    math.nan,
    math.inf,
    -math.inf,
    5e-324,
    1e-40,
    1e-7,
    3e38,
    -3e38,
    1e12,
    -1e6,
    90.0,
)
_DOUBLES = (*_FLOATS, 1.7e308, -1.7e308, 1e-308, 1e154, 1e160)
_TEXTS = (
    "",
    "map",
    "map_ned",
    "/map",
    "odom",
    "base_link",
    "x",
    " ",
    "\n",
    "a\tb",
    "ä€𝄞",
    "../../etc/passwd",
    "%s%n{0}",
    "1e999",
)
_TEXTS += ("FLIGHT", "DRIVE", "LAND", "TAKEOFF", "ARM", "DISARM", "x" * 300)
_STAMPS = (0, 1, -1, -(2**31), 2**31 - 1, 5, 1_700_000_000)
_NANOSECONDS = (0, 1, 999_999_999, 1_000_000_000, 2**32 - 1)
_CODES = {
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
}
_CODES |= {"uint64": "Q", "float": "f", "double": "d"}
_LENGTHS = (0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 12, 36, 100)
_MANY = 100_000
"""Vehicles, or points, of the largest messages."""
DIFFERENT = 2000
"""Different messages of a type, which are then repeated in another order.

Making one takes as long as receiving it.
"""
_DISTINCT = 12
"""Odd messages in a list of messages; the rest of a longer list is sensible."""


class OddMessages:
    """Makes messages, the same for the same generator of random numbers.

    `sensible` holds what makes a message of a type that a receiver can use; of other types those
    whose quaternions are of unit length and whose frames are world frames count as sensible.
    """

    def __init__(
        self, rng: random.Random, sensible: dict[str, Callable[[], Any]] | None = None
    ) -> None:
        self._rng = rng
        self._sensible = sensible or {}
        self._packed: dict[type, list[bytes]] = {}

    def sensible(self, kind: type) -> Any:
        """Return a message that a receiver can use."""
        name = f"{kind.__module__.split('.')[0]}/{kind.__name__}"
        message = self._sensible[name]() if name in self._sensible else kind()
        if name not in self._sensible:
            _make_usable(message)
        return message

    def odd(self, kind: type) -> Any:
        """Return an unusable message: odd everywhere, or a sensible one with some odd fields."""
        if self._rng.random() < 0.3:
            message = kind()
            share = 1.0
        else:
            message = self.sensible(kind)
            share = self._rng.choice((0.02, 0.1, 0.3))
        self._spoil(message, share, self._length())
        return message

    def packed(self, kind: type) -> bytes:
        """Return a serialized odd message (CDR), one of a fixed number of each type."""
        from rclpy.serialization import serialize_message

        packed = self._packed.setdefault(kind, [])
        if len(packed) < DIFFERENT:
            packed.append(bytes(serialize_message(self.odd(kind))))
            return packed[-1]
        return self._rng.choice(packed)

    def damaged(self, kind: type) -> bytes:
        """Return a serialized message that is cut or damaged, so that its type cannot hold it."""
        from fuzz.fuzz_terrain import mutate_bytes

        data = self.packed(kind)[:MEGABYTE]
        return data[:4] + mutate_bytes(self._rng, data[4:]) if len(data) > 4 else data

    def _length(self) -> int:
        """Return the lengths of one message's lists; rarely huge."""
        return _MANY if self._rng.random() < 0.002 else self._rng.choice(_LENGTHS)

    def _spoil(self, message: Any, share: float, length: int) -> None:
        """Make some fields of a message odd."""
        fields = list(
            zip(message.get_fields_and_field_types(), type(message).SLOT_TYPES, strict=True)
        )
        chosen = [field for field in fields if self._rng.random() < share]
        for name, slot in chosen or [self._rng.choice(fields)] if fields else ():
            if isinstance(slot, NamespacedType):
                self._spoil(getattr(message, name), share, length)
            else:
                setattr(message, name, self._value(name, slot, share, length))

    def _value(self, name: str, slot: Any, share: float, length: int) -> Any:
        """Return an odd value for a field of this name and type."""
        if isinstance(slot, BasicType):
            return self._number(name, slot.typename)
        if isinstance(slot, AbstractString | AbstractWString):
            text = "x" * MEGABYTE if self._rng.random() < 0.001 else self._rng.choice(_TEXTS)
            limit = getattr(slot, "maximum_size", None)
            return text if limit is None else text[:limit]
        if isinstance(slot, Array):
            return list(self._list(name, slot.value_type, slot.size, share))

        # lists, some of another length than the others
        times = self._rng.choice((1, 1, 1, 3, 4, self._rng.choice((0, 2, 5))))
        size = length * times + self._rng.choice((0, 0, 0, 0, 1))
        if isinstance(slot, BoundedSequence):
            size = min(size, slot.maximum_size)
        return self._list(name, slot.value_type, size, share)

    def _list(self, name: str, value: Any, size: int, share: float) -> Any:
        """Return a list of odd values, which goes on with sensible or repeated ones."""
        if isinstance(value, NamespacedType):
            kind = _message_type(value)
            size = min(size, 20_000 if size >= _MANY else 200)
            odd = [self.sensible(kind) for _ in range(min(size, _DISTINCT))]
            for message in odd:
                self._spoil(message, share, 2)
            return odd + [self.sensible(kind)] * (size - len(odd))

        if isinstance(value, AbstractString | AbstractWString):
            return [self._value(name, value, share, 1) for _ in range(min(size, 1000))]
        if value.typename in ("boolean", "octet"):
            return [self._number(name, value.typename) for _ in range(min(size, 1000))]

        # a few odd numbers, then many alike or in a row
        few = [self._number(name, value.typename) for _ in range(min(size, 40))]
        if size > len(few):
            few += (
                few[-1:] * (size - len(few))
                if self._rng.random() < 0.3
                else self._row(value.typename, size - len(few))
            )

        return array.array(_CODES[value.typename], few)

    def _row(self, typename: str, size: int) -> list[Any]:
        """Return numbers in a row."""
        first = self._rng.randrange(100)
        numbers = range(first, first + size)
        if typename in ("float", "double"):
            return [number * 0.5 for number in numbers]
        bits = int(typename.strip("uint"))
        return [number % 2 ** (bits - 1) for number in numbers]

    def _number(self, name: str, typename: str) -> Any:
        """Return an odd number for a field of this name and type."""
        if typename == "boolean":
            return self._rng.random() < 0.5
        if typename == "octet":
            return bytes([self._rng.randrange(256)])
        if typename in ("float", "double"):
            odd: Sequence[Any] = _FLOATS if typename == "float" else _DOUBLES
            return (
                self._rng.choice(odd)
                if self._rng.random() < 0.7
                else self._rng.uniform(-200.0, 200.0)
            )

        if name == "sec":
            return self._rng.choice(_STAMPS)
        if name == "nanosec":
            return self._rng.choice(_NANOSECONDS)
        bits = int(typename.strip("uint"))
        if typename.startswith("u"):
            low = 0
            high = 2**bits - 1
        else:
            low = -(2 ** (bits - 1))
            high = 2 ** (bits - 1) - 1

        return self._rng.choice(
            (0, 1, 2, 3, 4, 7, 8, 12, 16, 100, high, high - 1, low, max(low, -1), high // 2)
        )


def _message_type(named: NamespacedType) -> Any:
    """Return the class of a message by its name in an interface."""
    return _class_of(*named.namespaced_name())


@cache
def _class_of(package: str, folder: str, name: str) -> Any:
    return getattr(importlib.import_module(f"{package}.{folder}"), name)


def _make_usable(message: Any) -> None:
    """Give unit quaternions, world frames, and one element to each list of messages."""
    kind = type(message)
    if kind.__name__ == "Quaternion":
        message.w = 1.0
    for name, slot in zip(message.get_fields_and_field_types(), kind.SLOT_TYPES, strict=True):
        if isinstance(slot, NamespacedType):
            _make_usable(getattr(message, name))
        elif name == "frame_id":
            message.frame_id = "map"
        elif isinstance(getattr(slot, "value_type", None), NamespacedType) and not isinstance(
            slot, Array
        ):
            inner = _message_type(slot.value_type)()
            _make_usable(inner)
            setattr(message, name, [inner])

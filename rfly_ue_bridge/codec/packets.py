# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Packet declarations: one table of fields each, for packing, unpacking and recognition.

Bytes in, packets out: there is no socket here. Two rules hold for every packet:

1. Little-endian, and the fields follow each other without a gap. RflySim's own structures have C
   alignment. It puts four padding bytes before a double in two of them: VehicleApi's packet of 104
   bytes and CopterSim's old truth of 200 bytes; `padding` declares it. In all others both readings
   are the same bytes (the declared size is checked on import).
2. A datagram is recognised by its length *and* its checksum. Neither is enough: there are two
   packets of 112 bytes, and 1234567890 begins most of them. Both directions reuse lengths, so each
   direction has its own `PacketTable`. CopterSim's frames have no checksum; the length of their
   contents takes its place (`mark`).

The codec packs what it is given, as RflySim's SDK does: NaN and infinities go out as they are, and
a number too large for a float becomes infinity. `ned_states` keeps such values from the wire.

The declarations are in `to_rflysim3d` and `from_rflysim3d`. To add a packet write its declaration
there and name it in the table at the module's end.
"""

from __future__ import annotations

import codecs
import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rfly_common.errors import PacketError

if TYPE_CHECKING:
    import numpy as np

_INTEGER_RANGES = {
    "B": (0, 2**8 - 1),
    "H": (0, 2**16 - 1),
    "I": (0, 2**32 - 1),
    "i": (-(2**31), 2**31 - 1),
    "q": (-(2**63), 2**63 - 1),
}


@dataclass(frozen=True)
class Field:
    """One field of a packet.

    `format` is a count (or none) and one of B H I i q f d s, as in `struct`.
    """

    name: str
    format: str
    unit: str = ""
    code: str = dataclasses.field(init=False, repr=False)
    count: int = dataclasses.field(init=False, repr=False)
    """Number of numbers, or bytes of text."""

    def __post_init__(self) -> None:
        match = re.fullmatch(r"(\d*)([BHIiqfds])", self.format)
        if match is None:
            raise ValueError(
                f"{self.name}: {self.format!r} is no field format, "
                "expected such as 'i', '3f' or '52s'"
            )
        object.__setattr__(self, "code", match[2])
        object.__setattr__(self, "count", int(match[1] or 1))

    @property
    def is_text(self) -> bool:
        """True if the field holds characters (struct code `s`) and not numbers."""
        return self.code == "s"


@dataclass(frozen=True)
class PacketType:
    """Declaration of one packet: wire name, size in bytes, checksums, fields.

    The usual checksum comes first; a second one asks RflySim3D to keep the vehicles on the ground.
    """

    name: str
    size: int
    checksums: tuple[int, ...]
    fields: tuple[Field, ...] = dataclasses.field(repr=False)
    padding: Mapping[str, int] = dataclasses.field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )
    """Bytes of C alignment behind a field, by its name."""
    mark: str = "checksum"
    """Name of the field that holds one of `checksums`."""

    def __post_init__(self) -> None:
        if self.struct.size != self.size:
            raise ValueError(
                f"{self.name}: the fields make {self.struct.size} bytes, declared are {self.size}"
            )

    @functools.cached_property
    def kind(self) -> str:
        """Wire name without the mark of an old layout."""
        return self.name.removesuffix(" (old)")

    @functools.cached_property
    def struct(self) -> Struct:
        """The fields as one `struct.Struct`; its `pack` is the quick way for a single packet."""
        return Struct(
            "<"
            + "".join(
                f"{field.count}{field.code}{self.padding.get(field.name, 0)}x"
                for field in self.fields
            )
        )

    @functools.cached_property
    def checksum_struct(self) -> Struct:
        """The checksum, with what precedes it as padding."""
        before = itertools.takewhile(lambda field: field.name != self.mark, self.fields)
        skipped = Struct("<" + "".join(field.format for field in before)).size
        checksum = next(field for field in self.fields if field.name == self.mark)
        return Struct(f"<{skipped}x{checksum.format}")

    @functools.cached_property
    def dtype(self) -> np.dtype[Any]:
        """The packet as a packed NumPy dtype: an array of n records is n consecutive datagrams."""
        import numpy as np

        def shape(field: Field) -> tuple[Any, ...]:
            if field.is_text:
                return (field.name, f"S{field.count}")
            return (field.name, f"<{field.code}", (field.count,) if field.count > 1 else ())

        packed = [np.dtype([shape(field)]) for field in self.fields]
        sizes = [
            each.itemsize + self.padding.get(field.name, 0)
            for field, each in zip(self.fields, packed, strict=True)
        ]
        offsets = [0, *itertools.accumulate(sizes[:-1])]
        dtype = np.dtype(
            {
                "names": [field.name for field in self.fields],
                "formats": [each[0] for each in packed],
                "offsets": offsets,
                "itemsize": sum(sizes),
            }
        )
        assert dtype.itemsize == self.size  # the declaration above gives both
        return dtype

    def make(self, checksum: int | None = None, **values: Any) -> Packet:
        """Return a packet of this type; without `checksum` it bears the usual one.

        Every field must be given.
        """
        values[self.mark] = self.checksums[0] if checksum is None else checksum
        return Packet(self, MappingProxyType(values))

    def pack(self, values: Mapping[str, Any]) -> bytes:
        """Return the datagram of field name -> value.

        ValueError names a field that is missing, unknown, of a wrong length or out of its range.
        """
        names = [field.name for field in self.fields]
        if set(values) != set(names):
            wrong = sorted(set(values).symmetric_difference(names))
            raise ValueError(
                f"{self.name}: missing or unknown fields {', '.join(wrong)}; "
                f"it has {', '.join(names)}"
            )
        if values[self.mark] not in self.checksums:
            raise ValueError(
                f"{self.name}: {self.mark} {values[self.mark]}, allowed are {self.checksums}"
            )

        flat: list[Any] = []
        for field in self.fields:
            flat.extend(_flatten(self.name, field, values[field.name]))
        return self.struct.pack(*flat)

    def pack_flat(self, *values: Any, ground: bool = False) -> bytes:
        """Return the datagram of all values behind the checksum, as `struct.pack` takes them.

        This is the quick way. `ground`: use the checksum that asks RflySim3D to keep the vehicles
        on the ground.
        """
        return self.struct.pack(self.checksums[1 if ground else 0], *values)

    def read(self, datagram: bytes | bytearray | memoryview) -> Packet:
        """Return the packet in a datagram of this type's size; errors as `unpack`."""
        return Packet(self, MappingProxyType(self.unpack(datagram)))

    def unpack(self, datagram: bytes | bytearray | memoryview) -> dict[str, Any]:
        """Return field name -> number, tuple of numbers or text.

        Expects a datagram of this type's size; `decode` finds the type. PacketError (`text`) where
        a text is not UTF-8.
        """
        numbers = self.struct.unpack(datagram)
        values: dict[str, Any] = {}
        start = 0
        for field in self.fields:
            if field.is_text:
                values[field.name] = _decode_text(self.name, field, numbers[start])
                start += 1
            elif field.count == 1:
                values[field.name] = numbers[start]
                start += 1
            else:
                values[field.name] = numbers[start : start + field.count]
                start += field.count
        return values


@dataclass(frozen=True)
class Packet:
    """One packet: its type and its values by field name (`packet["PosE"]`)."""

    type: PacketType
    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the packet's type, such as `SOut2SimulatorSimpleTime`."""
        return self.type.name

    @property
    def keep_on_ground(self) -> bool:
        """True for the ground variant of a packet that has one."""
        return self.values[self.type.mark] in self.type.checksums[1:]

    def __getitem__(self, field: str) -> Any:
        return self.values[field]

    def encode(self) -> bytes:
        """Return the datagram; ValueError as `PacketType.pack`."""
        return self.type.pack(self.values)


class PacketTable:
    """The packets of one direction, recognised by length and checksum."""

    def __init__(self, types: Iterable[PacketType]) -> None:
        self.types = tuple(types)
        self._by_size: dict[int, list[PacketType]] = {}
        for packet_type in self.types:
            same_size = self._by_size.setdefault(packet_type.size, [])
            for other in same_size:
                if set(other.checksums) & set(packet_type.checksums):
                    names = f"{other.name} and {packet_type.name}"
                    raise ValueError(
                        f"{names} have the same size and checksum, so they cannot be distinguished"
                    )
            same_size.append(packet_type)

    def __iter__(self) -> Iterator[PacketType]:
        return iter(self.types)

    def find(self, datagram: bytes | bytearray | memoryview) -> PacketType:
        """Return the type of a datagram.

        PacketError: `length` if no packet has that size, else `checksum`.
        """
        candidates = self._by_size.get(len(datagram))
        if candidates is None:
            raise PacketError("length", f"no packet has {len(datagram)} bytes")
        for candidate in candidates:
            if candidate.checksum_struct.unpack_from(datagram)[0] in candidate.checksums:
                return candidate

        checksum = candidates[0].checksum_struct.unpack_from(datagram)[0]
        names = " or ".join(candidate.name for candidate in candidates)
        raise PacketError(
            "checksum", f"checksum {checksum} in {len(datagram)} bytes, the size of {names}"
        )

    def decode(self, datagram: bytes | bytearray | memoryview) -> Packet:
        """Return the packet in a datagram.

        PacketError with reason `length`, `checksum` or `text`, and no other error.
        """
        return self.find(datagram).read(datagram)


def _flatten(packet: str, field: Field, value: Any) -> list[Any]:
    where = f"{packet}.{field.name}"
    if field.is_text:
        text = value.encode() if isinstance(value, str) else bytes(value)
        if len(text) > field.count:
            raise ValueError(f"{where}: {len(text)} bytes of text, at most {field.count} fit")
        return [text]

    numbers = [value] if field.count == 1 else list(value)
    if len(numbers) != field.count:
        raise ValueError(f"{where}: {len(numbers)} numbers, expected {field.count}")

    if field.code == "f":
        return [_float32(float(number)) for number in numbers]
    if field.code in _INTEGER_RANGES:
        low, high = _INTEGER_RANGES[field.code]
        for number in numbers:
            if not low <= number.__index__() <= high:
                raise ValueError(f"{where}: {number} is out of range, allowed are {low} to {high}")
    return numbers


_FLOAT = Struct("<f")


def _float32(number: float) -> float:
    """Return the number, or infinity where the nearest float is infinite.

    `struct` refuses such numbers.
    """
    try:
        _FLOAT.pack(number)
    except OverflowError:
        return math.copysign(math.inf, number)
    return number


def _decode_text(packet: str, field: Field, raw: bytes) -> str:
    # without a zero at its end the sender may have cut it, even within its last character
    whole = raw.endswith(b"\0")
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(raw, final=whole)
        return text.strip("\0")  # at both ends, as the SDK does
    except UnicodeDecodeError as error:
        raise PacketError("text", f"{packet}.{field.name}: not UTF-8 ({error})") from error

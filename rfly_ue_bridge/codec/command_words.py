# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Words of console commands: checked arguments as text, and the limits of a command's length."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from rfly_common.errors import CommandError
from rfly_ue_bridge.codec.arguments import FLOAT_MAX, INT32, check_flag, number_within, whole_number

MAX_SHORT_BYTES = 51
"""Longest text of a short command, bytes."""
MAX_LONG_BYTES = 249
"""Longest text of a long command, bytes: RflySim's own limit, although the field holds 252."""
MAX_LAN_BYTES = 91
"""Longest text of a command to a whole network, bytes."""

_COLOUR = re.compile(r"#?([0-9A-Fa-f]{6})", re.ASCII)


def command_text(*words: str) -> str:
    """Return a command of these words, which a datagram can hold."""
    text = " ".join(words)
    checked_bytes(text, MAX_LONG_BYTES)
    return text


def pose_words(
    x: float, y: float, z: float, roll_deg: float, pitch_deg: float, yaw_deg: float
) -> list[str]:
    """Return a pose, m and degrees, as words."""
    names = ("x", "y", "z", "roll_deg", "pitch_deg", "yaw_deg")
    numbers = (x, y, z, roll_deg, pitch_deg, yaw_deg)
    return [number_word(name, number) for name, number in zip(names, numbers, strict=True)]


def single_word(argument: str, value: Any) -> str:
    """Return a text that is one word."""
    if (
        not isinstance(value, str)
        or not value
        or len(value.split()) != 1
        or value.split()[0] != value
    ):
        raise CommandError(f"{argument}: {value!r}, expected one word, without a blank")
    if not value.isprintable():
        raise CommandError(f"{argument}: {value!r} holds a character that cannot be printed")
    return value


def quoted_text(argument: str, value: Any) -> str:
    """Return a text, in double quotes if it has blanks."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise CommandError(f"{argument}: {value!r}, expected a text on one line")
    if '"' in value:
        raise CommandError(f"{argument}: {value!r} has a double quote, which ends it in a command")
    return f'"{value}"' if " " in value else value


def colour_word(value: Any) -> str:
    """Return a colour with #, as public scripts send those of labels."""
    match = _COLOUR.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise CommandError(f"colour: {value!r}, expected #RRGGBB or RRGGBB, such as #0080FF")
    return f"#{match[1]}"


def id_word(value: Any) -> str:
    """Return a vehicle's id as a word."""
    return integer_word("copter_id", value)


def ids_word(values: Iterable[Any]) -> str:
    """Return the ids of vehicles as one word, with commas."""
    text = ",".join(integer_word("copter_ids", value) for value in values)
    if not text:
        raise CommandError("copter_ids: none, expected one id or more")
    return text


def integer_word(argument: str, value: Any, low: int = INT32[0], high: int = INT32[1]) -> str:
    """Return a whole number within its limits as a word."""
    return str(whole_number(argument, value, low, high, CommandError))


def flag_word(argument: str, value: Any) -> str:
    """Return 1 for True and 0 for False."""
    return "1" if check_flag(argument, value, CommandError) else "0"


def number_word(argument: str, value: Any, low: float = -FLOAT_MAX, high: float = FLOAT_MAX) -> str:
    """Return the shortest text that is this number, without an exponent."""
    number = number_within(argument, value, low, high, CommandError)
    if number == int(number):
        return str(int(number))
    return format(Decimal(repr(number)), "f")


def checked_bytes(text: str, max_bytes: int) -> bytes:
    """Return a command in UTF-8. CommandError if it is empty, too long, or holds a zero."""
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise CommandError(f"the command is not valid Unicode text: {error}") from error

    if not raw.strip():
        raise CommandError(
            "the command is empty; expected a text such as 'RflyChangeMapbyName Grasslands'"
        )

    if len(raw) > max_bytes:
        raise CommandError(
            f"the command has {len(raw)} bytes, at most {max_bytes} are possible: {text[:40]!r}…"
        )

    if b"\0" in raw:
        raise CommandError(
            f"the command holds a zero character, where RflySim3D would cut it: {text[:60]!r}"
        )
    return raw

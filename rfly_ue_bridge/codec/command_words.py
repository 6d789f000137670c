# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Words of console commands: checked arguments as text, and texts as values.

A command is declared once, by a function: its parameters are the words in their order, and the
`Word` of each parameter's type writes and reads it. The function's body holds only what concerns
several words; its docstring is the documentation.

    @console_command("RflyChangeVehicleSize", usage="copterID size")
    def change_vehicle_size(copter_id: Integer, size: Size = 0.0) -> None: ...

    change_vehicle_size(7, 2.0)                                # "RflyChangeVehicleSize 7 2"
    DECLARED["RflyChangeVehicleSize"].read(["7", "2"])         # [7, 2.0]
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ParamSpec, get_args, get_type_hints

from rfly_common.errors import CommandError

MakeError = Callable[[str], Exception]

INT32 = (-(2**31), 2**31 - 1)
FLOAT_MAX = 3.4028234663852886e38
"""Largest number that the packets' floats and Unreal's numbers hold."""


def whole_number(
    name: str, value: Any, low: int = INT32[0], high: int = INT32[1], error: MakeError = ValueError
) -> int:
    """Return the value as an int.

    Raises `error` if it is a bool, or no whole number from low to high.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None

    if number is None or isinstance(value, bool) or not low <= number <= high:
        raise error(f"{name}: {value!r}, expected a whole number from {low} to {high}")
    return number


def number_within(
    name: str,
    value: Any,
    low: float = -FLOAT_MAX,
    high: float = FLOAT_MAX,
    error: MakeError = ValueError,
) -> float:
    """Return the value as a float.

    Raises `error` if it is a text, a bool, or no number from low to high.
    """
    try:
        number = math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan

    if not low <= number <= high:
        raise error(f"{name}: {value!r}, expected a number from {low:g} to {high:g}")
    return number


def check_flag(name: str, value: Any, error: MakeError = ValueError) -> bool:
    """Return 0, 1, False or True as a bool. Raises `error` for anything else."""
    if value not in (0, 1):
        raise error(f"{name}: {value!r}, expected True or False")
    return bool(value)


MAX_SHORT_BYTES = 51
"""Longest text of a short command, bytes."""
MAX_LONG_BYTES = 249
"""Longest text of a long command, bytes: RflySim's own limit, although the field holds 252."""
MAX_LAN_BYTES = 91
"""Longest text of a command to a whole network, bytes."""

_COLOUR = re.compile(r"#?([0-9A-Fa-f]{6})", re.ASCII)

Parameters = ParamSpec("Parameters")


def present_word(words: Sequence[str], index: int) -> str:
    """Return a word that must not be missing."""
    if index >= len(words):
        raise ValueError(f"argument {index + 1} is missing")
    return words[index]


@dataclass(frozen=True)
class Word:
    """One kind of argument: how it is written and read.

    `write` takes the argument's name and value, and raises CommandError. `read` takes the words
    and an index, and raises ValueError or IndexError.
    """

    write: Callable[[str, Any], str]
    read: Callable[[Sequence[str], int], Any] = present_word
    may_miss: bool = False
    """True if a reader takes the function's default where the word is missing."""
    takes_all: bool = False
    """True if a text without quotes takes all words but those that follow it."""


@dataclass(frozen=True)
class CommandType:
    """Declaration of a console command."""

    head: tuple[str, ...]
    """First word, and words that are always the same."""
    tail: tuple[str, ...]
    usage: str
    """Its arguments, for people."""
    signature: inspect.Signature
    words: dict[str, Word]
    """Words by parameter, in the order of the text."""
    check: Callable[..., None]

    def text(self, *args: Any, **kwargs: Any) -> str:
        """Return the command with these arguments. Raises CommandError."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = bound.arguments
        written = [
            word.write(name, values[name])
            for name, word in self.words.items()
            if values[name] is not None or self.signature.parameters[name].default is not None
        ]
        self.check(*bound.args, **bound.kwargs)
        return command_text(*self.head, *written, *self.tail)

    def read(self, words: Sequence[str]) -> list[Any]:
        """Return the values in the words that follow the first one.

        Raises ValueError or IndexError for words that are missing or wrong.
        """
        values: list[Any] = []
        following = len(self.words)
        index = 0
        for name, word in self.words.items():
            following -= 1
            if word.may_miss and index >= len(words):
                values.append(self.signature.parameters[name].default)
            elif word.takes_all:
                end = len(words) - following
                values.append(word.read(words[:end], index))
                index = end
                continue
            else:
                values.append(word.read(words, index))
            index += 1
        return values


DECLARED: dict[str, CommandType] = {}
"""Declared commands by their first word; of several the one declared first."""


def console_command(
    *head: str, usage: str = "", tail: tuple[str, ...] = (), order: Sequence[str] = ()
) -> Callable[[Callable[Parameters, None]], Callable[Parameters, str]]:
    """Declare a command by a function of its arguments.

    `order` names the parameters in the order of the text, where that is not theirs.
    """

    def declare(check: Callable[Parameters, None]) -> Callable[Parameters, str]:
        signature = inspect.signature(check)
        hints = get_type_hints(check, include_extras=True)
        words = {name: _word_in(hints[name]) for name in order or signature.parameters}
        declared = CommandType(head, tail, usage, signature, words, check)
        DECLARED.setdefault(head[0], declared)

        @functools.wraps(check)
        def write(*args: Parameters.args, **kwargs: Parameters.kwargs) -> str:
            return declared.text(*args, **kwargs)

        write.__annotations__["return"] = "str"
        write.__signature__ = signature.replace(return_annotation="str")  # type: ignore[attr-defined]
        return write

    return declare


def _word_in(hint: Any) -> Any:
    """Return the word of an Annotated type, which Python 3.10 makes Optional if None is allowed."""
    annotated = hint if hasattr(hint, "__metadata__") else get_args(hint)[0]
    return annotated.__metadata__[0]


def command_text(*words: str) -> str:
    """Return a command of these words, which a datagram can hold."""
    text = " ".join(words)
    checked_bytes(text, MAX_LONG_BYTES)
    return text


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


def colour_word(argument: str, value: Any) -> str:
    """Return a colour with #, as public scripts send those of labels."""
    match = _COLOUR.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise CommandError(f"{argument}: {value!r}, expected #RRGGBB or RRGGBB, such as #0080FF")
    return f"#{match[1]}"


def ids_word(argument: str, values: Iterable[Any]) -> str:
    """Return the ids of vehicles as one word, with commas."""
    text = ",".join(integer_word(argument, value) for value in values)
    if not text:
        raise CommandError(f"{argument}: none, expected one id or more")
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


def read_number(words: Sequence[str], index: int) -> float:
    """Return a finite number."""
    value = float(present_word(words, index))
    if not math.isfinite(value):
        raise ValueError(f"argument {index + 1} is {words[index]}")
    return value


def read_integer(words: Sequence[str], index: int) -> int:
    """Return a whole number of 32 bits."""
    value = read_number(words, index)
    if value != int(value) or abs(value) >= 2**31:
        raise ValueError(f"argument {index + 1} is {words[index]}, no whole number of 32 bits")
    return int(value)


def read_flag(words: Sequence[str], index: int) -> bool:
    """Return whether a number is not 0."""
    return read_integer(words, index) != 0


def read_text(words: Sequence[str], index: int) -> str:
    """Return all words as one text."""
    if not words[index:]:
        raise ValueError("the text is missing")
    return " ".join(words[index:])


def read_ids(words: Sequence[str], index: int) -> tuple[int, ...]:
    """Return ids with commas between them."""
    parts = [part for part in present_word(words, index).split(",") if part]
    if not parts:
        raise ValueError(f"argument {index + 1} is {words[index]}, expected ids with commas")
    return tuple(read_integer(parts, i) for i in range(len(parts)))


def read_colour(words: Sequence[str], index: int) -> tuple[int, int, int]:
    """Return red, green and blue of a colour."""
    match = _COLOUR.fullmatch(present_word(words, index))
    if match is None:
        raise ValueError(
            f"argument {index + 1} is {words[index]}, expected a colour as #RRGGBB or RRGGBB"
        )
    red, green, blue = bytes.fromhex(match[1])
    return red, green, blue

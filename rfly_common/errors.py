# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Exception types of the libraries.

::

    RflyError
    ├── ConfigError (ValueError)            a file or parameter that cannot be used
    │   ├── TooLargeError                   a file or list above its limit
    │   ├── MissionFileError                a mission file that cannot be read or written
    │   └── VehicleXmlError                 a vehicle description of RflySim3D
    ├── FrameError (ValueError)             a frame id that nothing connects to the map
    │   └── TransformTreeError              transforms that form a loop or an endless chain
    ├── VehicleStatesError (ValueError)     arrays of states that contradict each other
    ├── ShapeError (ValueError)             a collision shape without volume or not finite
    ├── BodiesError (ValueError)            bodies of a scene that contradict each other
    │   └── CrowdError                      too many bodies in one place
    ├── DynamicsError (ArithmeticError)     a simulated state that is no longer finite
    ├── TerrainError
    │   ├── TerrainFileNotFound (FileNotFoundError)
    │   ├── TerrainFormatError (ValueError) a map file whose content cannot be used
    │   └── TerrainNotLoaded (RuntimeError) a look-up before any map was loaded
    ├── CommandError (ValueError)           a console command that no packet can carry
    ├── SensorMessageError (ValueError)     a sensor's message whose numbers cannot be used
    ├── PlacementError (ValueError)         an object that cannot be placed, moved or removed
    ├── FeedbackError (OSError)             the port for RflySim3D's answers cannot be opened
    ├── PacketError (ValueError)            bytes that are not a RflySim3D packet
    ├── LinkError (OSError)                 the port for an external controller cannot be opened
    ├── LinkFrameError (ValueError)         bytes that are no frame of that link
    ├── PlanError (ValueError)              a path that cannot be planned
    ├── WorkError                           work in a thread broke off
    └── CaptureError (ValueError)           a recording of datagrams that cannot be read
        └── TruncatedCaptureError           the recording ends within a record
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Key = str | int
"""Key of a mapping, or index of a list."""


def key_path(path: Iterable[Key]) -> str:
    """Return a path as text, such as `vehicles[2].shape.radius`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += f".{key}" if text else key
    return text


LONGEST_TEXT = 1000
"""Characters of an error's text, an answer's or a warning's: all may quote a peer or a file."""
_SHOWN_END = 300
"""Characters of the end that are kept: it says what would be right."""


def shortened(text: str) -> str:
    """Return a text, without its middle if it is longer than LONGEST_TEXT."""
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[: LONGEST_TEXT - _SHOWN_END - 3]} … {text[-_SHOWN_END:]}"


class RflyError(Exception):
    """Base of every error that this project raises on purpose; its text is `shortened`."""

    def __str__(self) -> str:
        return shortened(self.whole_text())

    def whole_text(self) -> str:
        """Return the text, however long."""
        return super().__str__()


class WorkError(RflyError):
    """Work in a thread that an unexpected error ended; the log has its trace."""


_Config = TypeVar("_Config", bound="ConfigError")


class ConfigError(RflyError, ValueError):
    """A file, key or parameter that cannot be used; the text says what would be right.

    Its message is `key: text`, or the text alone for an error that concerns no key.
    """

    def __init__(self, text: str, *, key: str | tuple[Key, ...] = ()) -> None:
        super().__init__(text)
        self.text = text
        """What is wrong, without the key."""
        self.key: tuple[Key, ...] = (key,) if isinstance(key, str) else key
        """Path of the wrong value inside the value that was checked, such as ("points", 3)."""

    def whole_text(self) -> str:
        """Return `key: text`, or the text alone."""
        return f"{key_path(self.key)}: {self.text}" if self.key else self.text

    def inside(self: _Config, *path: Key) -> _Config:
        """Return the error of a larger value, in which the checked one is at `path`."""
        return type(self)(self.text, key=(*path, *self.key))


class TooLargeError(ConfigError):
    """A file or list that is above its limit; the text names the limit."""


class MissionFileError(ConfigError):
    """A mission file that cannot be read or written; the text names file, item, field and value."""


class FrameError(RflyError, ValueError):
    """A frame id that is neither a world frame nor connected to one."""


class TransformTreeError(FrameError):
    """Transforms that are no tree of usable depth: a loop, or a chain above the limit."""


class VehicleStatesError(RflyError, ValueError):
    """Vehicle states that contradict themselves.

    Their arrays differ in length, an id is repeated, or no vehicle can have a value.
    """


class ShapeError(RflyError, ValueError):
    """A collision shape that is not finite or encloses no volume; the text names the field."""


class BodiesError(RflyError, ValueError):
    """Bodies of a collision scene whose arrays differ in length or hold impossible values."""


class CrowdError(BodiesError):
    """More bodies in one place than can be tested pair by pair; the text says how many."""


class DynamicsError(RflyError, ArithmeticError):
    """A simulated vehicle whose state is no longer finite, or far off.

    The text names the state and the time.
    """


class TerrainError(RflyError):
    """Base of the errors of a terrain."""


class TerrainFileNotFound(TerrainError, FileNotFoundError):
    """A map whose png and txt are in no folder on the search path."""


class TerrainFormatError(TerrainError, ValueError):
    """A map file whose content cannot be used.

    The text names file, line or field, and the value.
    """


class TerrainNotLoaded(TerrainError, RuntimeError):
    """A look-up on a terrain object that has no map yet."""


class CommandError(RflyError, ValueError):
    """A console command for RflySim3D that is empty, too long or has an unsendable character."""


class SensorMessageError(RflyError, ValueError):
    """A sensor's message whose numbers cannot be used; names the field and its value."""


class PlacementError(RflyError, ValueError):
    """An object that cannot be placed, moved or removed; names the field or the id."""


class VehicleXmlError(ConfigError):
    """A vehicle description (XML) of RflySim3D that cannot be read or corrected.

    The text names file, line and element.
    """


class FeedbackError(RflyError, OSError):
    """A port for RflySim3D's answers that cannot be opened.

    Another program holds it, or the address is not this machine's.
    """

    def whole_text(self) -> str:
        """Return the text without the number of the system's error."""
        return str(self.args[-1])


class _ReasonedError(RflyError, ValueError):
    """An error whose `reason` is a short key that programs can count."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class PacketError(_ReasonedError):
    """Bytes that are not a known RflySim3D packet. `reason` is a counter key such as ``length``."""


class LinkError(RflyError, OSError):
    """A port for an external controller that cannot be opened.

    Another program holds it, or the address is not this machine's.
    """


class LinkFrameError(_ReasonedError):
    """Bytes that are no frame of the link to an external controller.

    `reason` is a counter key such as ``crc``.
    """


class PlanError(_ReasonedError):
    """A path that cannot be planned. `reason` is a key such as ``unreachable``."""


class CaptureError(RflyError, ValueError):
    """A recording (pcap or pcapng) that cannot be read; names the byte where it goes wrong."""


class TruncatedCaptureError(CaptureError):
    """A recording that ends within a record, because its writer was stopped.

    Everything before that record has been returned.
    """

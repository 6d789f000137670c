"""Exception types of the libraries.

RflyError ├── ConfigError (ValueError)            a configuration file or parameter that cannot be
used │   ├── MissionFileError                a mission file that cannot be read or written │   └──
VehicleXmlError                 a vehicle description of RflySim3D that cannot be used ├──
FrameError (ValueError)             a frame id that nothing connects to the map ├──
VehicleStatesError (ValueError)     arrays of vehicle states that contradict each other ├──
TerrainError │   ├── TerrainFileNotFound (FileNotFoundError) │   ├── TerrainFormatError (ValueError)
a map file whose content cannot be used │   └── TerrainNotLoaded (RuntimeError) a look-up before any
map was loaded ├── PlacementError (ValueError)         an object that cannot be placed, moved or
removed ├── CommandError (ValueError)           a console command that no packet can carry ├──
PacketError (ValueError)            a datagram that is not a RflySim3D packet (theirs, not ours) ├──
ShapeError (ValueError)             a collision shape that has no volume or is not finite ├──
BodiesError (ValueError)            bodies of a collision scene that contradict each other │   └──
CrowdError                      so many in one place that they are not tested pair by pair ├──
DynamicsError (ArithmeticError)     a simulated vehicle whose state is no longer a number ├──
AutopilotError (OSError)            an autopilot's program that is not there, does not start or has
ended ├── LinkError (OSError)                 a port for a controller outside that cannot be opened
├── LinkFrameError (ValueError)         bytes that are no frame of the link to controllers outside
├── PlanError (ValueError)              a path that cannot be planned, and why ├── WorkError
work in a thread broke off; the log tells why └── CaptureError (ValueError)           a recording of
datagrams that cannot be read
    └── TruncatedCaptureError           it ends within a record; what comes before is whole
"""

from __future__ import annotations


class RflyError(Exception):
    """Base of every error that this project raises on purpose."""


class WorkError(RflyError):
    """Work in a thread broke off by an error that nobody foresaw; the log has its trace."""


class ConfigError(RflyError, ValueError):
    """A configuration file, key or parameter that cannot be used; the text names it and what would
    be right.
    """


class MissionFileError(ConfigError):
    """A mission file that cannot be read or written; names file, item, field and value."""


class FrameError(RflyError, ValueError):
    """A frame id that is neither a world frame nor connected to one."""


class VehicleStatesError(RflyError, ValueError):
    """Vehicle states whose arrays disagree in length, repeat an id or hold values that no vehicle
    can have.
    """


class ShapeError(RflyError, ValueError):
    """A collision shape that is not finite, has a size of 0 or less, or encloses no volume; names
    the field.
    """


class BodiesError(RflyError, ValueError):
    """Bodies of a collision scene whose arrays disagree in length or hold values that no body can
    have.
    """


class CrowdError(BodiesError):
    """More bodies in one place than can be tested pair by pair; says how many pairs."""


class DynamicsError(RflyError, ArithmeticError):
    """A simulated vehicle whose state is no longer finite, or is far off; names the state and the
    time.
    """


class TerrainError(RflyError):
    """Base of what can be wrong with a terrain."""


class TerrainFileNotFound(TerrainError, FileNotFoundError):
    """No place on the search path holds both the png and the txt of the map."""


class TerrainFormatError(TerrainError, ValueError):
    """A map file that exists but whose content cannot be used; names file, line or field, and the
    value.
    """


class TerrainNotLoaded(TerrainError, RuntimeError):
    """A look-up on a terrain object that has no map yet."""


class CommandError(RflyError, ValueError):
    """A console command for RflySim3D that is empty, too long or holds a character that cannot be
    sent.
    """


class SensorMessageError(RflyError, ValueError):
    """A sensor's message whose numbers cannot be used; names the field and its value."""


class PlacementError(RflyError, ValueError):
    """An object that cannot be placed, moved or removed; names the field or the id."""


class VehicleXmlError(ConfigError):
    """A vehicle description (XML) of RflySim3D that cannot be read or corrected; names file, line
    and element.
    """


class FeedbackError(RflyError, OSError):
    """The port for RflySim3D's answers cannot be opened: another program holds it, or the address
    is not ours.
    """

    def __str__(self) -> str:
        return str(self.args[-1])


class _ErrorOfKind(RflyError, ValueError):
    """An error whose `reason` is a short key, to be counted by."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class PacketError(_ErrorOfKind):
    """Bytes that are not a known RflySim3D packet. `reason` is a short counter key, such as
    ``length``.
    """


class AutopilotError(RflyError, OSError):
    """The program of an autopilot that is not installed, does not start, does not answer or has
    ended.
    """

    def __str__(self) -> str:
        return str(self.args[-1])


class LinkError(RflyError, OSError):
    """The port for a controller outside cannot be opened: another program holds it, or the address
    is not ours.
    """


class LinkFrameError(_ErrorOfKind):
    """Bytes that are no frame of the link to a controller outside. `reason` is a short counter key,
    such as ``crc``.
    """


class PlanError(_ErrorOfKind):
    """A path that cannot be planned. `reason` is a short key, such as ``unreachable``; the text
    says what is where.
    """


class CaptureError(RflyError, ValueError):
    """A recording (pcap or pcapng) that cannot be read; names the byte where it goes wrong."""


class TruncatedCaptureError(CaptureError):
    """A recording that ends within a record: its writer was stopped. Everything before has been
    handed out.
    """

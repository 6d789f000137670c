# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mission items, their modes, and the commands that interrupt a mission.

NED metres, angles in radians; a positive turn is clockwise seen from above. The modes, parameters
and their numbers are those of the Path Manager block of UAV Toolbox (reference page
uav/ref/pathmanager).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Floats
from rfly_common.config.checks import check_choice, finite_array

_MATLAB_NAME = re.compile("[A-Za-z][A-Za-z0-9_]{0,62}", re.ASCII)
Ned = tuple[float, float, float]
"""Position, m, or velocity, m/s: north, east, down."""
Placing = Callable[[Floats], Floats]
"""Turns places (…, 3), NED, m, into others, such as those of the same places about another origin.
"""
MAX_COMMAND = 65_535
"""The largest number of a MAVLink command."""


class MissionMode(IntEnum):
    """The kind of an item; ARMED and HOLD are the manager's, and may not stand in a mission."""

    ARMED = 0
    TAKEOFF = 1
    WAYPOINT = 2
    ORBIT = 3
    LAND = 4
    RTL = 5
    CUSTOM = 6
    HOLD = 7


class MissionCommand(IntEnum):
    """A command for the mission, which acts as long as it is present."""

    DEFAULT = 0
    HOLD = 1
    REPEAT = 2
    RTL = 3


@dataclass(frozen=True, eq=False)
class MissionItem:
    """An item: `mode`, `position` (3,) NED, m, and `params` (4,), copied and read-only.

    WAYPOINT: params yaw (rad), transition radius (m), p3, p4. ORBIT: `position` is the centre;
    radius (m), turn direction (1 clockwise, -1 counter-clockwise, 0 the follower chooses), number
    of turns, p4. Other parameters are the user's and pass through, NaN included. CUSTOM: all four
    are the user's, unless `command` is that of a MAVLink command. ValueError for an unknown mode,
    wrong lengths, a position that is not finite (that of RTL is never read and may be NaN), and a
    command of another mode. Equal by value, NaN being equal to NaN.
    """

    mode: MissionMode
    position: Floats
    params: Floats = (0.0, 0.0, 0.0, 0.0)  # type: ignore[assignment]
    command: int = 0
    """Number of the MAVLink command (MAV_CMD) that a CUSTOM item carries, its first four parameters
    in `params`; 0: the item is the user's own.
    """
    here: bool = False
    """True for a TAKEOFF straight up from where the vehicle is then; `position` has its height and
    the place where the mission expects the vehicle.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", _member(MissionMode, self.mode, "mode"))
        position = _numbers(self.position, 3, f"{self.mode.name} position")
        params = _numbers(self.params, 4, f"{self.mode.name} params")
        object.__setattr__(self, "position", position)
        object.__setattr__(self, "params", params)
        if self.mode is not MissionMode.RTL:
            finite_array(f"{self.mode.name} position", self.position, error=ValueError)

        command = self.command
        if not isinstance(command, (int, np.integer)) or not 0 <= command <= MAX_COMMAND:
            raise ValueError(f"command: {command!r}, expected a whole number, 0 to {MAX_COMMAND:,}")
        if command and self.mode is not MissionMode.CUSTOM:
            raise ValueError(f"command: {command} in {self.mode.name}, expected one in CUSTOM only")
        object.__setattr__(self, "command", int(command))
        if self.here and self.mode is not MissionMode.TAKEOFF:
            raise ValueError(f"here: True in {self.mode.name}, expected in TAKEOFF only")

    @classmethod
    def takeoff(
        cls,
        position: ArrayLike,
        params: ArrayLike = (0.0, 0.0, 0.0, 0.0),
        *,
        here: bool = False,
    ) -> MissionItem:
        """Return an item to leave the ground and go to `position`, or straight up from `here`."""
        return cls(MissionMode.TAKEOFF, position, params, here=here)  # type: ignore[arg-type]

    @classmethod
    def waypoint(
        cls,
        position: ArrayLike,
        yaw: float = 0.0,
        radius: float = 0.0,
        p3: float = 0.0,
        p4: float = 0.0,
    ) -> MissionItem:
        """Return an item to go to `position` at `yaw` (rad); it is reached within `radius` (m)."""
        return cls(MissionMode.WAYPOINT, position, (yaw, radius, p3, p4))  # type: ignore[arg-type]

    @classmethod
    def orbit(
        cls,
        center: ArrayLike,
        radius: float,
        turn_direction: float = 0,
        turns: float = 1.0,
        p4: float = 0.0,
    ) -> MissionItem:
        """Return `turns` circles of `radius` (m) around `center`; infinite turns never end."""
        return cls(MissionMode.ORBIT, center, (radius, turn_direction, turns, p4))  # type: ignore[arg-type]

    @classmethod
    def land(cls, position: ArrayLike, params: ArrayLike = (0.0, 0.0, 0.0, 0.0)) -> MissionItem:
        """Return an item to land at `position`."""
        return cls(MissionMode.LAND, position, params)  # type: ignore[arg-type]

    @classmethod
    def return_to_launch(cls, params: ArrayLike = (0.0, 0.0, 0.0, 0.0)) -> MissionItem:
        """Return an item to return to the launch position, which the manager knows."""
        return cls(MissionMode.RTL, (0.0, 0.0, 0.0), params)  # type: ignore[arg-type]

    @classmethod
    def custom(cls, position: ArrayLike, params: ArrayLike = (0.0, 0.0, 0.0, 0.0)) -> MissionItem:
        """Return an item of the user's own, which passes through."""
        return cls(MissionMode.CUSTOM, position, params)  # type: ignore[arg-type]

    @classmethod
    def mavlink(
        cls, command: int, position: ArrayLike, params: ArrayLike = (0.0, 0.0, 0.0, 0.0)
    ) -> MissionItem:
        """Return a MAVLink command (MAV_CMD) with its first four parameters, as a CUSTOM item."""
        return cls(MissionMode.CUSTOM, position, params, command)  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MissionItem):
            return NotImplemented
        return self is other or (
            self.mode is other.mode
            and self.command == other.command
            and self.here == other.here
            and np.array_equal(self.position, other.position, equal_nan=True)
            and np.array_equal(self.params, other.params, equal_nan=True)
        )

    def __hash__(self) -> int:
        numbers = (*self.position.tolist(), *self.params.tolist())
        return hash(
            (
                self.mode,
                self.command,
                self.here,
                *("nan" if math.isnan(number) else number for number in numbers),
            )
        )

    def __repr__(self) -> str:
        numbers = (
            "({})".format(", ".join(f"{v:g}" for v in array))
            for array in (self.position, self.params)
        )
        command = f", command={self.command}" if self.command else ""
        here = ", here=True" if self.here else ""
        return "MissionItem({}, position={}, params={}{}{})".format(
            self.mode.name, *numbers, command, here
        )


DataType = Literal["double", "single"]
"""Data types of the Path Manager block."""
BUS_NAME = "UAVPathManagerBus"
"""Name of the Path Manager block's bus, unless the block has another."""


def bus_type(data_type: DataType = "double", name: str = BUS_NAME) -> np.dtype[np.void]:
    """Return the element type of UAV Toolbox's `UAVPathManagerBus`, or of a bus of another name.

    Its fields are mode uint8, position (3,) and params (4,) of a data type; it has no field for a
    MAVLink command. Another name is in the type's metadata. Source: reference page
    uav/ref/pathmanager. ValueError for any other data type, and for a name that MATLAB does not
    allow.
    """
    check_choice("data_type", data_type, get_args(DataType), error=ValueError)
    if not (isinstance(name, str) and _MATLAB_NAME.fullmatch(name)):
        raise ValueError(
            f"mission_bus_name: {name!r}, expected letters, digits and _, the first a letter"
        )
    real = np.float64 if data_type == "double" else np.float32
    fields = [("mode", np.uint8), ("position", real, 3), ("params", real, 4)]
    metadata = {} if name == BUS_NAME else {"metadata": {"name": name}}
    return np.dtype(fields, **metadata)  # type: ignore[call-overload]


def bus_name(array: Any) -> str:
    """Return the name of an array's bus if it is not UAVPathManagerBus; "" for anything else."""
    metadata = array.dtype.metadata if isinstance(array, np.ndarray) else None
    return str((metadata or {}).get("name", ""))


UAVPathManagerBus = bus_type()
"""MATLAB's bus of a mission's items, in double."""


def item_of(value: Any, name: str) -> MissionItem:
    """Return a MissionItem as it is, or the one that a bus's element or a structure holds.

    ValueError that begins with `name` for anything else.
    """
    if isinstance(value, MissionItem):
        return value

    try:
        mode, position, params = (
            np.asarray(value[field]) for field in ("mode", "position", "params")
        )
        return MissionItem(mode.item(), position.reshape(-1), params.reshape(-1))
    except (TypeError, KeyError, IndexError):
        pass
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None

    raise ValueError(
        f"{name}: {value!r}, expected a MissionItem, or a structure of mode, position and params"
    )


def in_single(item: MissionItem) -> MissionItem:
    """Return the item with its numbers rounded to single precision, in arrays of float32."""
    single = replace(item)
    for name in ("position", "params"):
        array = getattr(item, name).astype(np.float32)
        array.flags.writeable = False
        object.__setattr__(single, name, array)
    return single


class MissionParams(NamedTuple):
    """The output of a step: the item to fly now, and the one current before the last switch."""

    current: MissionItem
    previous: MissionItem

    def to_bus(self, bus: DataType | np.dtype[np.void] | None = None) -> NDArray[np.void]:
        """Return current and previous as (2,) of a bus, like the Path Manager block.

        `bus`: a data type, or `PathManager.bus`. None: `UAVPathManagerBus` in the data type of the
        path manager that made them.
        """
        if bus is None:
            bus = "single" if self.current.position.dtype == np.float32 else "double"
        rows = [(item.mode.value, item.position, item.params) for item in self]
        return np.array(rows, bus_type(bus) if isinstance(bus, str) else bus)


def placed_items(items: Sequence[MissionItem], place: Placing) -> tuple[MissionItem, ...]:
    """Return the same items at other places.

    A return has no place of its own, and stays as it is.
    """
    places = place(np.array([item.position for item in items]).reshape(-1, 3))
    return tuple(
        item if item.mode is MissionMode.RTL else replace(item, position=position)
        for item, position in zip(items, places, strict=True)
    )


def _member(enum: type[Any], value: Any, name: str) -> Any:
    try:
        return enum(value)
    except ValueError:
        allowed = ", ".join(f"{member.value} {member.name}" for member in enum)
        raise ValueError(f"{name}: {value!r}, expected one of {allowed}") from None


def command_of(value: int) -> MissionCommand:
    """Return a MissionCommand by its number; ValueError for an unknown one."""
    return _member(MissionCommand, value, "command")


def check_uav_type(uav_type: str) -> None:
    """Raise ValueError for any kind but multirotor and fixed-wing aircraft."""
    check_choice("uav_type", uav_type, ("multirotor", "fixed-wing"), error=ValueError)


def finite_numbers(values: ArrayLike, count: int, name: str) -> Floats:
    """Return a read-only copy (count,) float64, also of a column or a row of a matrix.

    ValueError names what is wrong with it.
    """
    return finite_array(name, _numbers(values, count, name), error=ValueError)


def _numbers(values: ArrayLike | Sequence[float], count: int, name: str) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: {values!r}, expected {count} numbers") from None
    if array.shape in ((count, 1), (1, count)):  # a vector of MATLAB's
        array = array.reshape(count)
    if array.shape != (count,):
        raise ValueError(f"{name}: {values!r}, expected {count} numbers")
    array.flags.writeable = False
    return array


class FlownMission(NamedTuple):
    """A mission that has been loaded, by whichever client."""

    items: tuple[MissionItem, ...] = ()
    """NED about the map's origin, m; jumps name the items 1, 2, 3, etc."""
    home: Ned = (0.0, 0.0, 0.0)
    repeat: bool = False
    """True if it begins again after its last item."""
    hold_at_waypoints: bool = False
    """True if the third parameter of a way-point is a time to stay there, s."""

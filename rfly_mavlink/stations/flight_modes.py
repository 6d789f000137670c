# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flight modes of ground stations, as PX4 and MAVLink number them.

HEARTBEAT.custom_mode has PX4's main mode in bits 16 to 23, and its sub mode in bits 24 to 31 (PX4,
`px4_custom_mode.h`). AVAILABLE_MODES lists the modes that a vehicle really has, by MAVLink's
standard modes (https://mavlink.io/en/services/standard_modes.html).
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from rfly_mavlink.dialect.wire import newer_message
from rfly_missions.mission.items import MissionMode

_AUTO = 4
_OFFBOARD = 6


class FlightMode(Enum):
    """A mode by its main and sub mode in PX4."""

    TAKEOFF = (_AUTO, 2)
    HOLD = (_AUTO, 3)
    MISSION = (_AUTO, 4)
    RETURN = (_AUTO, 5)
    LAND = (_AUTO, 6)
    OFFBOARD = (_OFFBOARD, 0)

    @property
    def custom_mode(self) -> int:
        """Number of the mode in HEARTBEAT."""
        main, sub = self.value
        return main << 16 | sub << 24


def find_mode(main: float, sub: float) -> FlightMode | None:
    """Return the mode with these numbers of PX4; None if there is none."""
    return next((mode for mode in FlightMode if mode.value == (main, sub)), None)


def find_custom_mode(custom_mode: int) -> FlightMode | None:
    """Return the mode of a number in HEARTBEAT or SET_MODE; None if there is none."""
    return find_mode(custom_mode >> 16 & 0xFF, custom_mode >> 24 & 0xFF)


SHOWN_AS = {
    MissionMode.ARMED: FlightMode.HOLD,
    MissionMode.TAKEOFF: FlightMode.TAKEOFF,
    MissionMode.WAYPOINT: FlightMode.MISSION,
    MissionMode.ORBIT: FlightMode.MISSION,
    MissionMode.LAND: FlightMode.LAND,
    MissionMode.RTL: FlightMode.RETURN,
    MissionMode.CUSTOM: FlightMode.MISSION,
    MissionMode.HOLD: FlightMode.HOLD,
}
"""Mode of an externally controlled vehicle, by its current item."""


STANDARD_MODES = {
    FlightMode.RETURN: 5,
    FlightMode.MISSION: 6,
    FlightMode.LAND: 7,
    FlightMode.TAKEOFF: 8,
}
"""MAV_STANDARD_MODE by mode; a mode that is missing has a name instead."""
SET_STANDARD_MODE = 262
"""MAV_CMD_DO_SET_STANDARD_MODE."""
ADVANCED = 1
"""MAV_MODE_PROPERTY_ADVANCED."""
AUTO = 4
"""MAV_MODE_PROPERTY_AUTO_MODE."""
SEQUENCE = 0
"""Sequence number of AVAILABLE_MODES_MONITOR: the list never changes."""


def modes_of(uav_type: str) -> list[FlightMode]:
    """Return the modes of a kind of vehicle, in the order of the list."""
    not_on_the_ground = (FlightMode.TAKEOFF, FlightMode.LAND)
    return [mode for mode in FlightMode if uav_type != "ground" or mode not in not_on_the_ground]


def find_standard_mode(standard_mode: float) -> FlightMode | None:
    """Return the mode of a MAV_STANDARD_MODE; None if there is none."""
    found = (mode for mode, standard in STANDARD_MODES.items() if standard == standard_mode)
    return next(found, None)


def available_modes(uav_type: str, index: float) -> list[Any]:
    """Return AVAILABLE_MODES for all modes (index 0), or for one, counted from 1."""
    modes = modes_of(uav_type)
    return [
        _available_mode(mode, number, len(modes))
        for number, mode in enumerate(modes, 1)
        if index in (0.0, number)
    ]


def _available_mode(mode: FlightMode, number: int, count: int) -> Any:
    standard = STANDARD_MODES.get(mode, 0)
    properties = AUTO | ADVANCED if mode is FlightMode.OFFBOARD else AUTO
    name = b"" if standard else mode.name.capitalize().encode()
    return newer_message(
        "AVAILABLE_MODES", mode.custom_mode, properties, count, number, standard, name
    )


def current_mode(shown: FlightMode, requested: FlightMode) -> Any:
    """Return CURRENT_MODE of a vehicle that shows one mode, and was asked for another perhaps."""
    standard = STANDARD_MODES.get(shown, 0)
    return newer_message("CURRENT_MODE", shown.custom_mode, requested.custom_mode, standard)


def modes_monitor() -> Any:
    """Return AVAILABLE_MODES_MONITOR."""
    return newer_message("AVAILABLE_MODES_MONITOR", SEQUENCE)

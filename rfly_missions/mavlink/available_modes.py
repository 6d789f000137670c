# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink's standard modes: the flight modes that a vehicle really has, and the present one.

https://mavlink.io/en/services/standard_modes.html
"""

from __future__ import annotations

from typing import Any

from rfly_missions.mavlink.flight_modes import FlightMode
from rfly_missions.mavlink.newer_messages import newer_message

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

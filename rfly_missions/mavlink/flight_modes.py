# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flight modes of ground stations, as PX4 numbers them in HEARTBEAT.custom_mode.

Main mode in bits 16 to 23, sub mode in bits 24 to 31 (PX4, `px4_custom_mode.h`).
"""

from __future__ import annotations

from enum import Enum

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

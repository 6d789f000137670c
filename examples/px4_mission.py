# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Let PX4 fly a square of 20 m at a height of 10 m, by MAVSDK-Python 4 (`pip install mavsdk`).

    python examples/px4_mission.py

PX4 runs beside `rfly up amphibious --autopilot px4`, as docs/howto/px4.md says.
"""

from __future__ import annotations

import asyncio
import math

from mavsdk.asyncio import ComponentType, Configuration, Mavsdk
from mavsdk.asyncio.plugins.action import ActionAsync
from mavsdk.asyncio.plugins.mission_raw import MissionRawAsync
from mavsdk.asyncio.plugins.telemetry import TelemetryAsync
from mavsdk.plugins.mission_raw import MissionItem

TAKEOFF, WAYPOINT, LAND = 22, 16, 21
ABOVE_HOME = 6  # MAV_FRAME_GLOBAL_RELATIVE_ALT_INT
METRES_PER_DEGREE = 111_195
HEIGHT = 10.0  # m
CORNERS = [(0, 0), (20, 0), (20, 20), (0, 20), (0, 0)]  # m north, m east of home


def square(latitude: float, longitude: float) -> list[MissionItem]:
    """Return the items of the mission about a home in degrees."""

    def item(command: int, north: float, east: float, height: float) -> MissionItem:
        x = latitude + north / METRES_PER_DEGREE
        y = longitude + east / METRES_PER_DEGREE / math.cos(math.radians(latitude))
        place = (round(x * 1e7), round(y * 1e7), height)
        first = int(not items)
        return MissionItem(len(items), ABOVE_HOME, command, first, 1, 0, 0, 0, math.nan, *place, 0)

    items: list[MissionItem] = []
    items.append(item(TAKEOFF, 0, 0, HEIGHT))
    for north, east in CORNERS:
        items.append(item(WAYPOINT, north, east, HEIGHT))
    items.append(item(LAND, 0, 0, 0))
    return items


async def first(stream, wanted):
    """Return the first value of a stream that is wanted."""
    async for value in stream:
        if wanted(value):
            return value


async def main() -> None:
    """Wait until PX4 can be armed, fly the mission, and wait for the landing."""
    mavsdk = Mavsdk(Configuration.create_with_component_type(ComponentType.GROUND_STATION))
    await mavsdk.add_any_connection("udpin://127.0.0.1:14540")
    system = await mavsdk.first_autopilot(60.0)
    telemetry = TelemetryAsync(system)
    await first(telemetry.subscribe_health(), lambda health: health.is_armable)
    home = await first(telemetry.subscribe_home(), lambda _: True)

    mission = MissionRawAsync(system)
    await mission.upload_mission(square(home.latitude_deg, home.longitude_deg))
    await ActionAsync(system).arm()
    await mission.start_mission()

    await first(telemetry.subscribe_armed(), lambda armed: armed)
    await first(telemetry.subscribe_armed(), lambda armed: not armed)
    place = await first(telemetry.subscribe_position(), lambda _: True)
    print(f"landed {place.relative_altitude_m:.1f} m above home")


if __name__ == "__main__":
    asyncio.run(main())

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A process that reads a mission and writes fences by MAVSDK, and prints what it saw as JSON.

python mavsdk_plan_client.py PORT SYSTEM_ID
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mavsdk_client import connect, first


async def exchange(system: Any) -> dict[str, Any]:
    """Read the mission that is flown; write and read fence and rally points."""
    from mavsdk.asyncio.plugins.geofence import GeofenceAsync
    from mavsdk.asyncio.plugins.mission_raw import MissionRawAsync
    from mavsdk.plugins.geofence import Circle, FenceType, GeofenceData, Point, Polygon
    from mavsdk.plugins.mission_raw import MissionItem

    # the mission of another client, once the node has heard of it
    missions = MissionRawAsync(system)
    while not (mission := await missions.download_mission()):
        await asyncio.sleep(0.2)
    progress = await first(missions.subscribe_mission_progress(), lambda p: p.current == 1)
    seen: dict[str, Any] = {
        "mission": [[item.frame, item.command, item.x, item.y, item.z] for item in mission],
        "total": progress.total,
    }

    # a fence
    geofence = GeofenceAsync(system)
    corners = [(46.999, 7.999), (47.001, 7.999), (47.001, 8.001)]
    triangle = Polygon([Point(*corner) for corner in corners], FenceType.INCLUSION)
    hole = Circle(Point(46.9995, 8.0), 12.5, FenceType.EXCLUSION)
    await geofence.upload_geofence(GeofenceData([triangle], [hole]))
    fence = await geofence.download_geofence()
    seen["polygons"] = [
        [FenceType(each.fence_type).name, [[p.latitude_deg, p.longitude_deg] for p in each.points]]
        for each in fence.polygons
    ]
    seen["circles"] = [
        [FenceType(c.fence_type).name, c.point.latitude_deg, c.point.longitude_deg, c.radius]
        for c in fence.circles
    ]
    await geofence.clear_geofence()
    cleared = await geofence.download_geofence()
    seen["cleared"] = [len(cleared.polygons), len(cleared.circles)]

    # rally points
    nothing = (0.0, 0.0, 0.0, 0.0)
    point = MissionItem(0, 6, 5100, 0, 1, *nothing, 470001000, 80001000, 20.0, 2)
    await missions.upload_rally_points([point])
    rally = await missions.download_rallypoints()
    seen["rally"] = [[item.command, item.x, item.y, item.z] for item in rally]
    return seen


async def main(port: int, system_id: int) -> None:
    async with connect(port, system_id) as system:
        print(json.dumps(await exchange(system)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A process that flies a vehicle by MAVSDK alone, and prints what it saw as one line of JSON.

python mavsdk_client.py PORT SYSTEM_ID LOG

LOG: a file that the vehicle's newest log is downloaded to.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

STEP_S = 30.0
"""Wall time to wait for each event, s."""
WAYPOINTS = ((47.0003, 8.0, 12.0), (47.0003, 8.0004, 14.0))
"""Latitude, longitude, metres above home."""


async def first(stream: Any, wanted: Any) -> Any:
    """Return the first value of a stream that is wanted; close its generator."""

    async def take() -> Any:
        async for value in stream:
            if wanted(value):
                return value
        raise RuntimeError("the stream ended")

    try:
        return await asyncio.wait_for(take(), STEP_S)
    finally:
        await stream.aclose()


def raw_items() -> list[Any]:
    """Return a mission: take-off, two way-points, a speed between them, and home again."""
    from mavsdk.plugins.mission_raw import MissionItem

    def item(seq, command, place, *params):
        latitude, longitude, height = place
        x = round(latitude * 1e7)
        y = round(longitude * 1e7)
        return MissionItem(seq, 6, command, int(seq == 0), 1, *params, x, y, height, 0)

    nan = float("nan")
    return [
        item(0, 22, (47.0, 8.0, 10.0), 0.0, 0.0, 0.0, nan),
        item(1, 16, WAYPOINTS[0], 0.0, 3.0, 0.0, nan),
        MissionItem(2, 2, 178, 0, 1, 1.0, 12.0, -1.0, 0.0, 0, 0, 0.0, 0),
        item(3, 16, WAYPOINTS[1], 1.0, 3.0, 0.0, nan),
        item(4, 20, (0.0, 0.0, 0.0), 0.0, 0.0, 0.0, 0.0),
    ]


def plain(items: Any) -> list[list[Any]]:
    """Return raw items as text, which makes NaN equal to NaN."""
    fields = (
        "seq",
        "frame",
        "command",
        "autocontinue",
        *(f"param{k}" for k in range(1, 5)),
        "x",
        "y",
        "z",
    )
    return [[str(getattr(item, name)) for name in fields] for item in items]


async def download(system: Any, path: str) -> list[int]:
    """Return the number of logs, the size of the newest, and the percent of its download."""
    from mavsdk.asyncio.plugins.log_files import LogFilesAsync

    logs = LogFilesAsync(system)
    entries = await logs.get_entries()
    progress = 0.0

    async def load() -> None:
        nonlocal progress
        async for _, data in logs.download_log_file(entries[-1], path):
            progress = max(progress, data.progress)

    await asyncio.wait_for(load(), STEP_S)
    return [
        len(entries),
        entries[-1].size_bytes,
        round(100.0 * progress),
    ]


async def turn(system: Any) -> None:
    """Fly by an attitude for a short time.

    OFFBOARD is denied where no set-point came for a second: on a busy machine, MAVSDK may be late.
    """
    from mavsdk.asyncio.plugins.offboard import OffboardAsync, OffboardError
    from mavsdk.plugins.offboard import Attitude

    offboard = OffboardAsync(system)

    async def start() -> None:
        while True:
            await offboard.set_attitude(Attitude(10.0, 0.0, 90.0, 0.5))
            with contextlib.suppress(OffboardError):
                return await offboard.start()

    await asyncio.wait_for(start(), STEP_S)
    await asyncio.sleep(0.5)
    await offboard.stop()


async def fly(system: Any, log: str) -> dict[str, Any]:
    """Fly a take-off, a way and a mission; return what came of it."""
    from mavsdk.asyncio.plugins.action import ActionAsync, ActionError
    from mavsdk.asyncio.plugins.mission_raw import MissionRawAsync
    from mavsdk.asyncio.plugins.param import ParamAsync
    from mavsdk.asyncio.plugins.telemetry import TelemetryAsync

    action = ActionAsync(system)
    mission = MissionRawAsync(system)
    param = ParamAsync(system)
    telemetry = TelemetryAsync(system)

    seen: dict[str, Any] = {"log": await download(system, log)}
    health = await first(
        telemetry.subscribe_health(), lambda h: h.is_global_position_ok and h.is_home_position_ok
    )
    seen["armable"] = health.is_armable

    home = await first(telemetry.subscribe_home(), lambda _: True)
    seen["home"] = [home.latitude_deg, home.longitude_deg, home.absolute_altitude_m]
    seen["battery"] = (await first(telemetry.subscribe_battery(), lambda _: True)).remaining_percent

    try:
        await action.return_to_launch()
    except ActionError as error:
        seen["return_disarmed"] = str(error)

    await param.set_param_float("MIS_TAKEOFF_ALT", 6.0)
    seen["takeoff_altitude"] = await action.get_takeoff_altitude()
    items = raw_items()
    await mission.upload_mission(items)
    seen["equal"] = plain(await mission.download_mission()) == plain(items)

    await action.arm()
    await action.takeoff()
    up = await first(telemetry.subscribe_position(), lambda p: p.relative_altitude_m > 5.5)
    seen["height"] = up.relative_altitude_m
    seen["flight_mode_up"] = (
        await first(telemetry.subscribe_flight_mode(), lambda m: m.name == "HOLD")
    ).name
    await action.goto_location(47.0001, 8.0001, home.absolute_altitude_m + 8.0, float("nan"))
    await first(
        telemetry.subscribe_position(),
        lambda p: abs(p.latitude_deg - 47.0001) < 2e-5 and abs(p.longitude_deg - 8.0001) < 3e-5,
    )

    await turn(system)
    await mission.start_mission()
    progress = []
    stream = mission.subscribe_mission_progress()
    await first(stream, lambda p: progress.append([p.current, p.total]) or p.current >= 4)
    seen["progress"] = progress

    await first(telemetry.subscribe_in_air(), lambda in_air: not in_air)
    await first(telemetry.subscribe_armed(), lambda armed: not armed)
    landed = await first(telemetry.subscribe_position(), lambda _: True)
    seen["landed"] = [landed.latitude_deg, landed.longitude_deg, landed.relative_altitude_m]
    seen["charge"] = (await first(telemetry.subscribe_battery(), lambda _: True)).remaining_percent

    return seen


@contextlib.asynccontextmanager
async def connect(port: int, system_id: int) -> AsyncIterator[Any]:
    """The system of a vehicle that sends to a port; it lives as long as its Mavsdk."""
    from mavsdk.asyncio import ComponentType, Configuration, Mavsdk

    mavsdk = Mavsdk(Configuration.create_with_component_type(ComponentType.GROUND_STATION))
    await mavsdk.add_any_connection(f"udpin://127.0.0.1:{port}")

    async def found() -> Any:
        while True:
            for system in await mavsdk.get_systems():
                if await system.get_system_id() == system_id and await system.has_autopilot():
                    return system
            await asyncio.sleep(0.05)

    yield await asyncio.wait_for(found(), STEP_S)


async def main(port: int, system_id: int, log: str) -> None:
    async with connect(port, system_id) as system:
        print(json.dumps(await fly(system, log)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))

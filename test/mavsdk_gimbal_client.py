# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A process that turns a gimbal by MAVSDK's plugin, and prints what it saw as JSON.

python mavsdk_gimbal_client.py PORT SYSTEM_ID
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mavsdk_client import connect, first


async def turn(system: Any) -> dict[str, Any]:
    """Turn the gimbal in each way, and return what came of it."""
    from mavsdk.asyncio.plugins.gimbal import GimbalAsync
    from mavsdk.plugins.gimbal import ControlMode, GimbalError, GimbalMode, SendMode

    gimbal = GimbalAsync(system)
    follow = GimbalMode.YAW_FOLLOW

    async def pitch(wanted: float) -> float:
        """Return the reported pitch once it is near to the wanted one."""

        def is_near(status: Any) -> bool:
            return abs(status.euler_angle_forward.pitch_deg - wanted) < 0.5

        return float(
            (await first(gimbal.subscribe_attitude(), is_near)).euler_angle_forward.pitch_deg
        )

    listed = await first(gimbal.subscribe_gimbal_list(), lambda status: status.gimbals)
    gimbals = listed.gimbals
    number = gimbals[0].gimbal_id
    seen: dict[str, Any] = {
        "gimbals": [
            [each.gimbal_device_id, each.gimbal_manager_component_id, each.model_name]
            for each in gimbals
        ]
    }

    await gimbal.take_control(number, ControlMode.PRIMARY)
    taken = await first(
        gimbal.subscribe_control_status(), lambda status: status.sysid_primary_control
    )
    seen["control"] = ControlMode(taken.control_mode).name

    await gimbal.set_angles(number, 0.0, -45.0, 0.0, follow, SendMode.ONCE)
    seen["once"] = await pitch(-45.0)
    await gimbal.set_angles(number, 0.0, 20.0, 0.0, follow, SendMode.STREAM)
    seen["streamed"] = await pitch(20.0)
    await gimbal.set_angular_rates(number, 0.0, -200.0, 0.0, follow, SendMode.ONCE)
    seen["lowest"] = await pitch(-60.0)

    try:
        await gimbal.set_angles(number, 0.0, -45.0, 30.0, follow, SendMode.ONCE)
    except GimbalError as error:
        seen["yaw"] = str(error)

    await gimbal.release_control(number)
    released = await first(
        gimbal.subscribe_control_status(), lambda status: not status.sysid_primary_control
    )
    seen["released"] = ControlMode(released.control_mode).name

    return seen


async def main(port: int, system_id: int) -> None:
    async with connect(port, system_id) as system:
        print(json.dumps(await turn(system)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))

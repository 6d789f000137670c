# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""mission_node and mavlink_node for one vehicle on level ground, and a ground station."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from mavlink_station import NAN, ORIGIN, StationSocket

from rfly_terrain.height_map.height_map import HeightMap

FASTER = 5
"""Simulated seconds in a second."""
NORTH_M = 111_170.9
"""Metres in a degree of latitude at 47° (WGS 84)."""
EAST_M = 76_056.1
"""Metres in a degree of longitude at 47° (WGS 84)."""


@contextmanager
def level_world(peer: Any) -> Iterator[None]:
    """Simulated time, and level ground 500 m above the sea."""
    from rclpy.clock import Clock as RclpyClock
    from rclpy.clock import ClockType
    from rfly_suite.msg import TerrainMap
    from rosgraph_msgs.msg import Clock

    from rfly_common.ros.qos import LATCHED, STATE_OUT
    from rfly_common.ros.stamps import ns_to_stamp
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    level = HeightMap(
        np.zeros((41, 41)), origin_x=-200.0, origin_y=-200.0, step_x=10.0, step_y=10.0, name="level"
    )
    peer.node.create_publisher(TerrainMap, "terrain_map", LATCHED).publish(
        height_map_to_msg(level, ORIGIN, 1, 10**9)
    )

    publisher = peer.node.create_publisher(Clock, "/clock", STATE_OUT)
    begun = time.monotonic_ns()

    def publish_time() -> None:
        now = 1_000_000_000_000 + FASTER * (time.monotonic_ns() - begun)
        publisher.publish(Clock(clock=ns_to_stamp(now)))

    steady = RclpyClock(clock_type=ClockType.STEADY_TIME)
    timer = peer.node.create_timer(0.005, publish_time, clock=steady)
    yield
    peer.node.destroy_timer(timer)


class Hawk:
    """The multirotor hawk, flown from one ground station; waits for conditions."""

    def __init__(self, peer: Any, domain_id: int, stack: ExitStack, **parameters: str) -> None:
        from node_harness import NodeProcess

        self._peer = peer
        self.station = stack.enter_context(StationSocket(peer))
        both = {"vehicles": "[hawk]", "use_sim_time": "true"}
        target = f"['127.0.0.1:{self.station.port}']"
        mavlink = {**both, "port": "0", "targets": target, **parameters}
        self.nodes = [
            stack.enter_context(NodeProcess(name, domain_id, of_node))
            for name, of_node in (("mission_node", both), ("mavlink_node", mavlink))
        ]
        self.until(lambda: self.last("GLOBAL_POSITION_INT"))

    def last(self, kind: str) -> Any:
        """Return the newest message of a kind, None before the first."""
        return self.station.last(kind)

    def until(self, ready: Any) -> Any:
        """Wait until `ready()` is true."""
        return self._peer.spin_until(ready)

    def command(self, number: int, *params: float, component: int = 1) -> int:
        """Send COMMAND_LONG; return its result."""
        return self.station.command(number, *params, component=component)

    @property
    def place(self) -> tuple[float, float, float]:
        """North, east, up of the map's origin, m."""
        position = self.last("LOCAL_POSITION_NED")
        return position.x, position.y, -position.z

    @property
    def heading(self) -> float:
        """Degrees."""
        return math.degrees(self.last("ATTITUDE").yaw)

    @property
    def rests(self) -> bool:
        """True if it neither moves nor turns."""
        motion = self.last("LOCAL_POSITION_NED")
        speed = math.hypot(motion.vx, motion.vy, motion.vz)
        return speed < 0.02 and abs(self.last("ATTITUDE").yawspeed) < 0.002

    def fly_up(self, height: float) -> None:
        """Take off as QGroundControl does for PX4: the altitude first, then arming."""
        self.until(lambda: self.command(22, -1.0, 0, 0, NAN, NAN, NAN, ORIGIN[2] + height) == 0)
        self.until(lambda: self.command(400, 1.0) == 0)
        self.until(lambda: abs(self.place[2] - height) < 0.05 and self.rests)

    def stop(self) -> None:
        """End the nodes, and look for faults."""
        assert [node.stop() for node in self.nodes] == [0, 0]
        assert not any("Traceback" in node.output for node in self.nodes)

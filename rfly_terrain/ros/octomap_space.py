"""`octomap` as a planner takes it. Part of planner_node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from octomap_msgs.msg import Octomap
from rclpy.node import Node

from rfly_common.errors import PlanError, RflyError
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.qos import LATCHED
from rfly_common.ros.stamps import stamp_to_ns
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.occupancy.octree import read_octree
from rfly_terrain.planning.seen_space import SeenSpace, seen_space
from rfly_terrain.ros.node_parameters import PlannerParameters


class OctomapSpace:
    """The newest map; it is read when somebody plans, once, in that one's thread."""

    def __init__(self, node: Node, given: PlannerParameters, frames: Frames, on_octomap: Callable[[], Any]) -> None:
        self._given, self._frames, self._on_octomap = given, frames, on_octomap
        self._newest: Octomap | None = None
        self._read: tuple[Octomap, HeightMap, SeenSpace] | None = None
        subscription(node, Octomap, "octomap", self._take, LATCHED)

    async def _take(self, message: Octomap) -> None:
        self._newest = message
        await self._on_octomap()

    def seen(self, terrain: HeightMap) -> SeenSpace:
        """What the newest map says. Raises PlanError where there is none, or none that can be read."""
        message = self._newest
        if message is None:
            raise PlanError("no_octomap", "no octomap has come yet, and the parameter space is octomap")
        if self._read is None or self._read[0] is not message or self._read[1] is not terrain:
            try:
                frame = self._frames.resolve(message.header.frame_id or "map", stamp_to_ns(message.header.stamp))
                if frame.axes != "enu" or not frame.is_world:
                    raise PlanError("bad_octomap", f"its frame {message.header.frame_id!r} is not the ENU world frame")
                if not message.binary or message.id != "OcTree":
                    kind = "binary" if message.binary else "full"
                    raise PlanError("bad_octomap", f"a {kind} {message.id!r}, expected a binary 'OcTree'")
                leaves = read_octree(np.asarray(message.data, np.int8), message.resolution)
            except RflyError as error:
                raise PlanError("bad_octomap", f"octomap: {error}") from None
            given = self._given
            self._read = (
                message,
                terrain,
                seen_space(leaves, terrain, ground_margin=given.ground_margin, unknown_height=given.unknown_height),
            )
        return self._read[2]

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The demo's observer node: subscriber of the latched terrain, client of the altitude service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rfly_suite.msg import TerrainMap
from rfly_suite.srv import GetTerrainAltitudes
from sensor_msgs.msg import PointCloud2

from rfly_bringup.ros.command_client import CommandClient
from rfly_common.errors import ConfigError
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.qos import LATCHED
from rfly_terrain.files.terrain_message import msg_to_height_map
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.terrain_msgs import msg_to_cloud


@dataclass(frozen=True)
class CloudFacts:
    """Facts of the terrain in the received cloud; metres."""

    frame_id: str
    rows: int
    columns: int
    lowest: float
    highest: float


class TerrainObserver(CommandClient):
    """Node that knows the terrain only by topic and service."""

    def __init__(self) -> None:
        super().__init__("rfly_demo", "", "terrain_node", ConfigError)
        self.cloud: CloudFacts | None = None
        self.terrain: HeightMap | None = None
        subscription(self.node, PointCloud2, "outTerrainPoint", self._on_terrain_cloud, LATCHED)
        subscription(self.node, TerrainMap, "terrain_map", self._on_terrain_map, LATCHED)
        self._client = self.node.create_client(GetTerrainAltitudes, "get_terrain_altitudes")

    def ground_z_ned(
        self, north_east: np.ndarray[Any, Any], timeout_s: float = 3.0
    ) -> np.ndarray[Any, Any] | None:
        """Return z (down) of the ground at (n, 2) points from the service.

        Return None if no answer comes in time.
        """
        if not self.spin(self._client.service_is_ready, timeout_s):
            return None

        points = np.asarray(north_east, dtype=float).reshape(-1, 2)
        request = GetTerrainAltitudes.Request(
            frame_id="map_ned", x=flat("d", points[:, 0]), y=flat("d", points[:, 1])
        )

        future = self._client.call_async(request)
        if not self.spin(future.done, timeout_s):
            self._client.remove_pending_request(future)
            return None

        answer = future.result()
        return np.asarray(answer.altitude) if answer.success else None

    def _on_terrain_cloud(self, message: PointCloud2) -> None:
        z = msg_to_cloud(message)[..., 2]
        self.cloud = CloudFacts(
            message.header.frame_id,
            message.height,
            message.width,
            lowest=float(z.min()),
            highest=float(z.max()),
        )

    def _on_terrain_map(self, message: TerrainMap) -> None:
        self.terrain = msg_to_height_map(message)

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Subscription of `terrain_map` as a HeightMap, part of every node that needs the ground."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future
from rfly_suite.msg import TerrainMap

from rfly_common.diagnostic_reasons import Notice, Reason
from rfly_common.errors import RflyError
from rfly_common.geodesy import geo_point
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import LATCHED
from rfly_terrain.files.terrain_message import msg_to_height_map
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.node_parameters import LatestTerrainParameters

MOST_WAITING = 100
"""Calls that wait for the first map at the same time, at most; a further one does not wait."""
NOT_YET = "no terrain_map has come yet: is terrain_node running?"
NO_MAP_YET = Notice(NOT_YET, Reason.NO_TERRAIN_MAP)
"""NOT_YET for the diagnostics."""


class LatestTerrain:
    """The newest usable map of the latched topic `terrain_map`.

    It has the parameter `map_search_path`. `changed(terrain, geo_origin)` is called for each new
    map (geo_origin: latitude and longitude in degrees, altitude in m). After an unusable map the
    previous one stays, and `error` says why until a usable map comes.
    """

    def __init__(
        self, node: Node, changed: Callable[[HeightMap, tuple[float, float, float]], None]
    ) -> None:
        self.terrain: HeightMap | None = None
        self.error = ""
        self._node = node
        self._changed = changed
        self._diagnostics: Diagnostics | None = None
        self._seen: tuple[Any, ...] | None = None
        self._waiting: list[Future] = []
        self.search_path = tuple(declare_parameters(node, LatestTerrainParameters).map_search_path)

    def start(self, diagnostics: Diagnostics | None = None) -> None:
        """Subscribe, when the node is ready for maps; `diagnostics` counts the unusable ones."""
        self._diagnostics = diagnostics
        subscription(self._node, TerrainMap, "terrain_map", self._on_terrain_map, LATCHED)

    async def known(self, patience_s: float) -> None:
        """Wait for the first map, or until one is refused, but no longer than that (s).

        For `async` services.
        """
        if self.terrain is not None or self.error or len(self._waiting) >= MOST_WAITING:
            return
        first_map: Future = Future(executor=self._node.executor)
        self._waiting.append(first_map)

        clock = Clock(clock_type=ClockType.STEADY_TIME)
        timer = self._node.create_timer(
            patience_s, lambda: first_map.done() or first_map.set_result(None), clock=clock
        )
        try:
            await first_map
        finally:
            self._waiting.remove(first_map)
            self._node.destroy_timer(timer)

    def _wake(self) -> None:
        """Release the waiting calls."""
        for first_map in self._waiting:
            if not first_map.done():
                first_map.set_result(None)

    @property
    def problem(self) -> str:
        """Error of the newest map, "" if it is usable."""
        if self.error and self.terrain is not None:
            return f"the previous ground stays: {self.error}"
        return self.error

    def _on_terrain_map(self, message: TerrainMap) -> None:
        """Take a new map; the same one again changes nothing."""
        latitude, longitude, altitude = (float(value) for value in message.geo_origin)
        grid = (
            message.origin_x,
            message.origin_y,
            message.step_x,
            message.step_y,
            message.rows,
            message.columns,
        )
        seen = (message.sha256, message.name, *grid, latitude, longitude, altitude)
        if message.sha256 and seen == self._seen and not self.error:
            return

        try:
            terrain = msg_to_height_map(message, self.search_path)
            geo_origin = geo_point(
                (latitude, longitude, altitude), f"terrain_map {message.name!r}: geo_origin"
            )
        except (RflyError, OSError) as error:
            self.error = " ".join(str(error).split())
            self._node.get_logger().error(self.error)
            if self._diagnostics is not None:
                self._diagnostics.count("refused_terrains")
                self._diagnostics.publish()
            self._wake()
            return

        self.terrain = terrain
        self.error = ""
        self._seen = seen
        self._changed(terrain, geo_origin)
        self._wake()

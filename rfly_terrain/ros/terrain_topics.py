# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Subscription of `terrain_map` as a HeightMap, part of every node that needs the ground."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future
from rclpy.timer import Timer
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

RETRY_S = 5.0
"""Time after which a map that could not be read is read again, s; each further wait is twice it."""
LONGEST_WAIT_S = 300.0
MOST_WAITING = 100
"""Calls that wait for the first map at the same time, at most; a further one does not wait."""
NOT_YET = "no terrain_map has come yet: is terrain_node running?"
NO_MAP_YET = Notice(NOT_YET, Reason.NO_TERRAIN_MAP)
"""NOT_YET for the diagnostics."""


class LatestTerrain:
    """The newest usable map of the latched topic `terrain_map`.

    It has the parameter `map_search_path`. `changed(terrain, geo_origin)` is called for each new
    map (geo_origin: latitude and longitude in degrees, altitude in m). After an unusable map the
    previous one stays, and `error` says why until a usable map comes. A map that is read from files
    of this host is tried again, because they may come later.
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
        self._retry: Timer | None = None
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
        self._take(message, RETRY_S)

    def _take(self, message: TerrainMap, wait_s: float) -> None:
        """Take a map; if its files cannot be read here, try again after `wait_s`."""
        if self._retry is not None:
            self._node.destroy_timer(self._retry)
            self._retry = None
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
            if len(message.height) == 0:
                self._retry = self._node.create_timer(
                    wait_s,
                    lambda: self._take(message, min(2.0 * wait_s, LONGEST_WAIT_S)),
                    clock=Clock(clock_type=ClockType.STEADY_TIME),
                )
            text = " ".join(str(error).split())
            if wait_s > RETRY_S and text == self.error:  # told already
                return
            self.error = text
            self._node.get_logger().error(text)
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

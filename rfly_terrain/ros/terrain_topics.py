# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Subscription of `terrain_map` as a HeightMap, part of every node that needs the ground."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from rclpy.node import Node
from rclpy.task import Future
from rclpy.timer import Timer
from rfly_suite.msg import TerrainMap

from rfly_common.diagnostic_reasons import Notice, Reason
from rfly_common.errors import RflyError, WorkError
from rfly_common.geodesy import GeoPoint, geo_point
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import steady_timer, subscription
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import LATCHED
from rfly_common.ros.run_loop import in_thread
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


class _Wanted(NamedTuple):
    """A map that has been announced."""

    message: TerrainMap
    wait_s: float
    """Time after which its files are read again, s."""

    @property
    def is_in_files(self) -> bool:
        """True if its heights are in files of this host."""
        return len(self.message.height) == 0

    @property
    def geo_origin(self) -> GeoPoint:
        """Latitude and longitude in degrees and altitude in m of the origin."""
        latitude, longitude, altitude = (float(value) for value in self.message.geo_origin)
        return latitude, longitude, altitude

    @property
    def key(self) -> tuple[Any, ...]:
        """Properties that distinguish it from other maps."""
        message = self.message
        grid = (message.origin_x, message.origin_y, message.step_x, message.step_y)
        size = (message.rows, message.columns)
        return message.sha256, message.name, *grid, *size, *self.geo_origin


class _Found(NamedTuple):
    """A map that has been read."""

    terrain: HeightMap
    geo_origin: GeoPoint


class LatestTerrain:
    """The newest usable map of the latched topic `terrain_map`.

    It has the parameter `map_search_path`. `changed(terrain, geo_origin)` is called for each new
    map (geo_origin: latitude and longitude in degrees, altitude in m). After an unusable map the
    previous one stays, and `error` says why until a usable map comes. Files of this host are read
    in a thread, and tried again, because they may come later.
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
        self._wanted: _Wanted | None = None
        """The map that was announced last."""
        self._is_reading = False
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

        timer = steady_timer(
            self._node, patience_s, lambda: first_map.done() or first_map.set_result(None)
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
        self._take(_Wanted(message, RETRY_S))

    def _take(self, wanted: _Wanted) -> None:
        """Use a map at once, or when it has been read from files of this host."""
        if self._retry is not None:
            self._node.destroy_timer(self._retry)
            self._retry = None
        self._wanted = wanted
        if self._is_known(wanted):
            return
        executor = self._node.executor
        if not wanted.is_in_files or executor is None:
            self._use(wanted, _read(wanted, self.search_path))
        elif not self._is_reading:
            self._is_reading = True
            executor.create_task(self._read_files, wanted)

    async def _read_files(self, wanted: _Wanted) -> None:
        """Read a map in a thread, and then another that has taken its place meanwhile."""
        found: _Found | Exception
        try:
            found = await in_thread(self._node, partial(_read, wanted, self.search_path))
        except WorkError as error:
            found = error
        self._is_reading = False
        newest = self._wanted
        if newest is None or not newest.is_in_files:
            return
        if newest is wanted or newest.key == wanted.key:  # announced again
            self._use(newest, found)
        else:
            self._take(newest)

    def _is_known(self, wanted: _Wanted) -> bool:
        """Return whether a map is in use already."""
        return bool(wanted.message.sha256) and wanted.key == self._seen and not self.error

    def _use(self, wanted: _Wanted, found: _Found | Exception) -> None:
        """Use what was read; where files were at fault, try again after the map's wait."""
        if not isinstance(found, Exception):
            self.terrain = found.terrain
            self.error = ""
            self._seen = wanted.key
            self._changed(*found)
            self._wake()
            return

        if wanted.is_in_files:
            again = wanted._replace(wait_s=min(2.0 * wanted.wait_s, LONGEST_WAIT_S))
            self._retry = steady_timer(self._node, wanted.wait_s, lambda: self._take(again))
        text = " ".join(str(found).split())
        if wanted.wait_s > RETRY_S and text == self.error:  # told already
            return
        self.error = text
        self._node.get_logger().error(text)
        if self._diagnostics is not None:
            self._diagnostics.count("refused_terrains")
            self._diagnostics.publish()
        self._wake()


def _read(wanted: _Wanted, search_path: tuple[str, ...]) -> _Found | Exception:
    """Return a map, or why it cannot be used."""
    message = wanted.message
    try:
        terrain = msg_to_height_map(message, search_path)
        return _Found(
            terrain, geo_point(wanted.geo_origin, f"terrain_map {message.name!r}: geo_origin")
        )
    except (RflyError, OSError) as error:
        return error

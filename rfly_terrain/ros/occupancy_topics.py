# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`terrain_occupancy`: traversability as a latched nav_msgs/OccupancyGrid. Part of terrain_node.

The grid is computed in a separate thread when the map, the objects on it, or the limits of the
vehicle have changed. All changes meanwhile, or within a quarter of a second, lead to one more grid.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nav_msgs.msg import OccupancyGrid
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.timer import Timer
from rfly_suite.msg import PlacedObjectArray

from rfly_common.errors import ConfigError, FrameError, WorkError
from rfly_common.ros.diagnostics import ERROR, OK, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher, steady_timer, subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.node_parameters import parameters_of
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import LATCHED
from rfly_common.ros.run_loop import in_thread
from rfly_terrain.costmap.traversability import (
    TraversabilityGrid,
    TraversabilityLimits,
    traversability,
)
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.grid_map_topics import CostedTerrain, TerrainGridMap
from rfly_terrain.ros.node_parameters import OccupancyParameters
from rfly_terrain.ros.occupancy_msgs import costs_to_msg
from rfly_terrain.ros.placed_objects_msgs import placed_objects_to_solids
from rfly_terrain.world.solids import Solids

SETTLE_S = 0.25
"""Delay from a change to the new grid, s: a list of objects, or of parameters, leads to one grid.
"""
SETTLE_SHARE = 3
"""Delay over the duration of the last computation, at least."""
LARGEST_MESSAGE = 25_000_000
"""Cells of a message, at most; larger maps get larger cells unless `occupancy_resolution` is set.
"""

_PARAMETERS = frozenset(each.name for each in parameters_of(OccupancyParameters))


class TerrainOccupancy:
    """Publisher of the grid of the newest map, with the parameters of the costs.

    `on_grid` is called with each new grid.
    """

    def __init__(
        self, node: Node, frames: Frames, on_grid: Callable[[HeightMap, TraversabilityGrid], None]
    ) -> None:
        self._node = node
        self._frames = frames
        self._on_grid = on_grid
        declare_parameters(node, OccupancyParameters)
        self._limits = _limits(self._values())  # ConfigError where one makes no sense

        self._terrain: HeightMap | None = None
        self._objects = PlacedObjectArray()
        self._objects_error = ""
        self._inputs: tuple[Any, ...] = ()
        self._error = ""
        self._grid: TraversabilityGrid | None = None
        self._took_s = 0.0
        self._working = self._again = False

        self._settling: Timer | None = None
        self._publisher = publisher(node, OccupancyGrid, "terrain_occupancy", LATCHED)
        self._diagnostics = Diagnostics(
            node, "occupancy", "", self._update_diagnostics, check_peers=False
        )
        self._grid_map = TerrainGridMap(node, frames, self._diagnostics)

        subscription(node, PlacedObjectArray, "placed_objects", self._on_placed_objects, LATCHED)
        node.add_on_set_parameters_callback(self._check_parameters)
        node.add_post_set_parameters_callback(self._on_parameters_set)

    def take(self, terrain: HeightMap) -> None:
        """Use a new map; its grid comes when the executor has nothing more urgent to do."""
        self._terrain = terrain
        self._diagnostics.hardware_id = terrain.name
        self._note_change()

    def forget(self) -> None:
        """Compute and publish nothing more, until a map is taken."""
        self._terrain = self._grid = None
        self._inputs = ()
        self._grid_map.take(None)

    def _on_placed_objects(self, message: PlacedObjectArray) -> None:
        """Compute a new grid for the objects."""
        self._objects = message
        self._note_change()

    def _values(self) -> dict[str, float]:
        """Return the present values of the parameters."""
        return {name: self._node.get_parameter(name).value for name in _PARAMETERS}

    def _check_parameters(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        """Refuse values that are out of range."""
        changed = {p.name: p.value for p in parameters if p.name in _PARAMETERS}
        try:
            if changed:
                _limits({**self._values(), **changed})
        except ConfigError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _on_parameters_set(self, parameters: Sequence[Parameter]) -> None:
        """Compute a new grid for the new limits."""
        if any(p.name in _PARAMETERS for p in parameters):
            self._limits = _limits(self._values())
            self._note_change()

    def _note_change(self) -> None:
        """Start the delay to a new grid, or remember the change during a computation."""
        if self._working:
            self._again = True
        elif self._settling is None and self._terrain is not None:
            wait = SETTLE_S if self._grid is not None else 0.0
            self._settling = steady_timer(
                self._node, max(wait, SETTLE_SHARE * self._took_s), self._begin
            )

    def _begin(self) -> None:
        """Start a computation, unless nothing has changed."""
        if self._settling is not None:
            self._node.destroy_timer(self._settling)
            self._settling = None
        terrain = self._terrain
        executor = self._node.executor
        if terrain is None or executor is None:
            return

        solids = self._solids()
        parameter = self._node.get_parameter("occupancy_resolution")
        resolution = float(parameter.value) or default_resolution(terrain)
        inputs = (terrain.sha256, terrain.ground[1:], self._limits, resolution, *_contents(solids))
        if inputs == self._inputs:
            if self._error:
                self._error = ""
                self._update_diagnostics()
            return
        self._working = True
        executor.create_task(self._work, terrain, self._limits, solids, inputs)

    async def _work(
        self,
        terrain: HeightMap,
        limits: TraversabilityLimits,
        solids: Solids | None,
        inputs: tuple[Any, ...],
    ) -> None:
        """Compute and publish a grid, then the grid map."""
        start = time.monotonic()

        def work() -> TraversabilityGrid:
            """Compute the grid in a thread; all errors become ConfigError."""
            try:
                return traversability(
                    terrain, limits, solids, inputs[3], stop=lambda: not self._node.context.ok()
                )
            except InterruptedError:
                raise ConfigError("the node ends") from None
            except MemoryError as reason:
                raise ConfigError(str(reason) or "not enough memory") from None

        grid = None
        error = ""
        try:
            grid = await in_thread(self._node, work)
        except (ConfigError, WorkError) as reason:
            error = str(reason)

        if self._terrain is None:  # forgotten meanwhile
            self._working = self._again = False
            return
        world = None if grid is None else CostedTerrain(terrain, grid, limits)
        if world is not None:
            self._grid_map.take(world)
        self._working = False
        self._took_s = time.monotonic() - start
        self._error = error

        if grid is None:
            self._node.get_logger().error(f"terrain_occupancy: {error}; the previous grid stays")
        else:
            self._grid = grid
            self._inputs = inputs
            stamp = self._node.get_clock().now().nanoseconds
            self._publisher.publish(
                costs_to_msg(grid.cost, grid.resolution, grid.origin, "map", stamp)
            )
            self._on_grid(terrain, grid)
            self._diagnostics.count("published")

        self._update_diagnostics()
        if self._again:
            self._again = False
            self._note_change()

        if world is not None:
            await self._grid_map.publish(world)

    def _solids(self) -> Solids | None:
        """Return the objects in `map`; None without any, or with an error for the diagnostics."""
        self._objects_error = ""
        if not self._objects.id:
            return None
        try:
            return placed_objects_to_solids(
                self._objects, self._frames.resolve(self._objects.header.frame_id)
            )
        except (FrameError, ValueError) as error:
            self._objects_error = f"placed_objects is ignored: {error}"
            return None

    def _update_diagnostics(self) -> None:
        """Update, once a second too: a frame may have become connected to the map."""
        if self._objects_error:
            self._note_change()
        grid = self._grid
        values: dict[str, Any] = {
            "objects": len(self._objects.id),
            "worked_out_in_s": f"{self._took_s:.3f}",
        }
        if grid is not None:
            values |= {
                "cell_m": f"{grid.resolution:g}",
                "free_share": f"{grid.share_free:.4f}",
                "forbidden_share": f"{grid.share_lethal:.4f}",
                "unknown_share": f"{grid.share_unknown:.4f}",
            }

        self._diagnostics.set_first(
            [
                (self._error, ERROR, self._error),
                (self._objects_error, WARN, self._objects_error),
                (grid is not None, OK, "serving"),
                (True, OK, "no map yet"),
            ],
            **values,
        )


def default_resolution(terrain: HeightMap) -> float:
    """Return the side of a cell, m: the smaller step of the map, or an odd multiple of it.

    The multiple is the smallest with at most LARGEST_MESSAGE cells.
    """
    side = min(abs(terrain.step_x), abs(terrain.step_y))
    x_min, x_max, y_min, y_max = terrain.bounds
    cells = ((x_max - x_min) / side + 1) * ((y_max - y_min) / side + 1)
    factor = math.ceil(math.sqrt(cells / LARGEST_MESSAGE))
    return side * (factor + 1 - factor % 2)


def _contents(solids: Solids | None) -> tuple[bytes, ...]:
    """Return what identifies the objects."""
    return () if solids is None else (solids.vertices.tobytes(), solids.first.tobytes())


def _limits(values: Mapping[str, float]) -> TraversabilityLimits:
    """Return the limits with these values. Raises ConfigError for a value out of range."""
    for name, value in values.items():
        if not math.isfinite(value):
            raise ConfigError(f"{name}: {value} is not a finite number")
    roughness = values["max_roughness"] or None
    step = values["max_step"] or None
    return TraversabilityLimits(
        max_slope_deg=values["max_slope_deg"],
        max_roughness=roughness,
        max_step=step,
        water_level=values["water_level"],
        vehicle_radius=values["vehicle_radius"],
        half_wheelbase=values["half_wheelbase"],
    )

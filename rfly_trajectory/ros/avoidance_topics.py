# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles that keep clear of each other and of `placed_objects`. Part of trajectory_node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rclpy.node import Node
from rfly_suite.msg import PlacedObjectArray

from rfly_common.arrays import Floats, Ints
from rfly_common.errors import PlacementError
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.qos import LATCHED
from rfly_common.transform_buffer import FrameToWorld
from rfly_common.vehicle_states import VehicleStates
from rfly_terrain.ros.placed_objects_msgs import placed_objects_to_solids
from rfly_trajectory.fleet.fleet import Fleet

if TYPE_CHECKING:
    from rfly_terrain.world.solids import Solids
    from rfly_trajectory.avoidance.fleet_avoidance import FleetAvoidance
    from rfly_trajectory.ros.area_topics import AreaTopics
    from rfly_trajectory.ros.off_plan_topics import OffPlanTopics
    from rfly_trajectory.ros.run_control_topics import RunControl

AXES = {"map": "enu", "": "enu", "map_ned": "ned"}


class PlacedSolids:
    """Objects of `placed_objects`. `on_changed()` is called when they change or are refused."""

    def __init__(self, node: Node, on_changed: Callable[[], None]) -> None:
        self._on_changed = on_changed
        self.solids: Solids | None = None
        """The newest usable objects; None before any."""
        self.problem = ""
        """Reason why the last `placed_objects` are not used."""
        subscription(node, PlacedObjectArray, "placed_objects", self._on_placed_objects, LATCHED)

    def _on_placed_objects(self, message: PlacedObjectArray) -> None:
        self.problem = ""
        axes = AXES.get(message.header.frame_id)
        try:
            if axes is None:
                raise PlacementError(
                    f"placed_objects: frame {message.header.frame_id!r}, expected map or map_ned"
                )
            self.solids = placed_objects_to_solids(message, FrameToWorld(axes))
        except ValueError as error:
            self.problem = f"placed_objects is ignored: {error}"
        self._on_changed()


class KeptClear:
    """States of a fleet whose vehicles leave their tracks to keep clear.

    `on_changed()` is called when the objects change.
    """

    def __init__(self, node: Node, on_changed: Callable[[], None]) -> None:
        self._node = node
        self._objects = PlacedSolids(node, on_changed)
        self._avoidance: FleetAvoidance | None = None
        self._placed: set[str] = set()
        self._shared: OffPlanTopics | None = None

    def share(self, areas: AreaTopics, run: RunControl, diagnostics: Diagnostics) -> None:
        """Share the fleet with nodes of other areas."""
        from rfly_trajectory.ros.off_plan_topics import OffPlanTopics

        self._shared = OffPlanTopics(self._node, areas, run, diagnostics)

    @property
    def problem(self) -> str:
        """Reason why the last `placed_objects` are not used."""
        return self._objects.problem

    def forget(self) -> None:
        """Put all vehicles back on their tracks."""
        self._avoidance = None
        if self._shared is not None:
            self._shared.avoidance = None

    def states(
        self, fleet: Fleet, time: float, source: str, stamp_ns: int, rows: Ints | None = None
    ) -> VehicleStates:
        """Return the states of a fleet at a fleet time, s; `rows` are those that are wanted."""
        from rfly_trajectory.avoidance.fleet_avoidance import FleetAvoidance

        if self._avoidance is None:
            begin = FleetAvoidance if self._shared is None else self._shared.begin
            self._avoidance = begin(fleet, time, self._objects.solids)
        elif (
            fleet is not self._avoidance.fleet or self._objects.solids is not self._avoidance.solids
        ):
            self._avoidance.use(fleet, self._objects.solids, self._placed)
        self._placed.clear()
        states = self._avoidance.sample(time, source=source, stamp_ns=stamp_ns, rows=rows)
        if self._shared is not None:
            self._shared.tell()
        return states

    def place(self, name: str) -> None:
        """Take a vehicle to where its new path has it at the next change.

        It may be a new one with the name of one that was here.
        """
        self._placed.add(name)

    @property
    def acceleration(self) -> Floats:
        """Accelerations, (n, 3), m/s², of the last `states`."""
        assert self._avoidance is not None
        return self._avoidance.acceleration

    def values(self) -> dict[str, Any]:
        """Return what the diagnostics say."""
        avoidance = self._avoidance
        if avoidance is None:
            return {}
        return {
            "off_track": ", ".join(avoidance.off_track[:20]),
            "late_s": f"{avoidance.late:.1f}",
            "braking": avoidance.fallen_back,
        }

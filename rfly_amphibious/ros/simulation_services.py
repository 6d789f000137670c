"""The vehicle as an entity of simulation_interfaces, under the node's name. Part of amphibious_sim_node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from rclpy.node import Node

from rfly_amphibious.ros.amphibious_msgs import WORLD
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle import state_layout as at
from rfly_collision.shapes.shape_file import load_shapes
from rfly_common.errors import ConfigError
from rfly_common.frames import rotation_matrix
from rfly_common.ros.entity_services import ROBOT, Entity, EntityServices, Motion, Pose, Twist
from rfly_trajectory.fleet.entities import check_place

MOST = 10_000.0, 200.0, 50.0
"""m up, m/s along an axis, rad/s about one, to which the vehicle may be set: far beyond, no step is small enough"""


class VehicleEntity:
    """The only entity of a simulation (None: there is none yet), of a vehicleType. `moved()`: it was put elsewhere."""

    def __init__(
        self,
        node: Node,
        name: str,
        vehicle_type: int,
        simulation: Callable[[], Simulation | None],
        moved: Callable[[], None],
    ) -> None:
        self._simulation, self._moved = simulation, moved
        shapes = load_shapes()
        shape = shapes[int(shapes.index_of([vehicle_type])[0])]
        text = "land-air vehicle with its dynamics"
        self._entity = Entity(name, ROBOT, text, ("land-air",), shape.low, shape.high)
        EntityServices(node, self, {WORLD: "enu", f"{WORLD}_ned": "ned"}.get)

    def entities(self) -> Sequence[Entity] | None:
        """As `Entities`, and so are the others."""
        return None if self._simulation() is None else (self._entity,)

    def motions(self, indices: Sequence[int]) -> tuple[int, Sequence[Motion]]:
        """All in the axes of the world."""
        simulation = self._simulation()
        assert simulation is not None
        now, derivative = simulation.state, simulation.derivative()
        rotation = rotation_matrix(now.orientation)
        motion = Motion(
            now.position,
            now.orientation,
            now.velocity,
            rotation @ now.rates,
            derivative[at.VELOCITY : at.VELOCITY + 3],
            rotation @ derivative[at.RATES : at.RATES + 3],
        )
        return simulation.time_ns, [motion for _ in indices]

    def put(self, index: int, pose: Pose | None, twist: Twist | None) -> None:
        """Raises PlacementError for a place off the map or below the ground."""
        simulation = self._simulation()
        assert simulation is not None
        now = simulation.state
        position, orientation = pose or (now.position, now.orientation)
        if pose is not None:
            check_place(simulation.model.terrain, *position.tolist())
        to_body = rotation_matrix(orientation).T
        if twist is None:
            twist = Twist(now.velocity, rotation_matrix(now.orientation) @ now.rates)
        parts = {"pose.position.z": position[2], "twist.linear": twist.linear, "twist.angular": twist.angular}
        for (name, value), most in zip(parts.items(), MOST, strict=True):
            if np.max(np.abs(value)) > most:
                raise ConfigError(f"{name}: {np.max(np.abs(value)):g}, expected at most {most:g}")
        simulation.set_pose(position, orientation, twist.linear, to_body @ twist.angular)
        self._moved()

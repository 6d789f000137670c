# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""mission_node: missions of several vehicles. A thin shell around MissionRunner."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rfly_suite.msg import VehicleStateArray
from tf2_msgs.msg import TFMessage

from rfly_common.errors import ConfigError
from rfly_common.frames import enu_to_ned, pose_ned_euler_to_enu, vector_ned_to_enu, yaw_ned_to_enu
from rfly_common.ros.diagnostics import ERROR, OK, STALE, WARN, ClockWatch, Diagnostics
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.frame_lookup import Frames, frame_prefix
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import FLEET_OUT, STATE_OUT, TF
from rfly_common.ros.vehicle_msgs import states_to_msg
from rfly_common.threads.loop_thread import LoopThread
from rfly_common.vehicle_states import VehicleStates
from rfly_missions.followers.ground import Ground
from rfly_missions.ros.mission_topics import SILENCE_S, MissionVehicle, VehicleSettings
from rfly_missions.ros.node_parameters import (
    MissionParameters,
    MissionVehicleParameters,
    check_mission_vehicles,
)
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.terrain_topics import NO_MAP_YET, LatestTerrain
from rfly_trajectory.fleet.fleet import check_unique, states_in_ned
from rfly_trajectory.ros.fleet_marker_topics import FleetMarkers, ShownVehicle
from rfly_trajectory.ros.node_parameters import FIRST_ID
from rfly_trajectory.ros.vehicle_topics import states_to_poses, states_to_transforms

TYPES = {"multirotor": 3, "fixed-wing": 100, "ground": 50, "land-air": 3}
"""RflySim3D's vehicle types, by kind of vehicle."""
START_SPACING = 10.0
"""Distance along east between vehicles without a start, m."""


class MissionNode(Node):
    """The missions of several vehicles; simulated ones appear as soon as a terrain is known."""

    def __init__(self) -> None:
        super().__init__("mission_node")
        params = declare_parameters(self, MissionParameters)
        names = params.vehicles
        self._params = params
        self._ground = LatestTerrain(self, self._on_terrain_map)
        self._source = self.get_fully_qualified_name()
        self._diagnostics = Diagnostics(self, "missions", "", self._update_diagnostics)
        frames = Frames(self)

        self._last_ns: int | None = None
        self._clock_watch = ClockWatch(self)

        # vehicles
        check_mission_vehicles("parameter vehicles", names)
        settings = [self._vehicle_settings(name, index) for index, name in enumerate(names)]
        check_unique("parameter <name>.id", [each.params.id for each in settings])
        self._vehicles = [
            MissionVehicle(self, each, self._params, frames, self._diagnostics) for each in settings
        ]

        # outputs of simulated vehicles
        self._states = (
            publisher(self, VehicleStateArray, "vehicle_states", FLEET_OUT)
            if params.simulate
            else None
        )
        self._poses = (
            [publisher(self, PoseStamped, f"{n}/pose", STATE_OUT) for n in names]
            if params.simulate
            else []
        )
        self._tf = publisher(self, TFMessage, "/tf", TF) if params.simulate else None
        self._markers = FleetMarkers(self, params.marker_scale) if params.simulate else None

        self._ground.start(self._diagnostics)
        self._update_diagnostics()
        self._timer = self.create_timer(1.0 / params.rate, self._tick)

        listed = [f"{each.name} ({each.params.uav_type})" for each in settings]
        if not listed:
            listed = ["no vehicles (parameter vehicles)"]
        waits = "; waiting for terrain_map" if params.simulate else ""
        self.get_logger().info(f"{', '.join(listed)} at {params.rate:g} Hz{waits}")
        if names and params.simulate:
            # in a thread, as the pose of a standing vehicle needs no kernels
            LoopThread(_warm_up, "rfly-missions-kernels").start()

    def _vehicle_settings(self, name: str, index: int) -> VehicleSettings:
        defaults = {"id": FIRST_ID + index, "type": lambda earlier: TYPES[earlier["uav_type"]]}
        params = declare_parameters(
            self, MissionVehicleParameters, prefix=f"{name}.", defaults=defaults
        )

        # start and home, as they are given
        start = params.start
        home = params.home
        enu = self._params.axes == "enu"
        if not start:
            start = [START_SPACING * index, 0.0, 0.0] if enu else [0.0, START_SPACING * index, 0.0]
        for key, numbers, expected in (
            ("start", start, "x, y, yaw"),
            ("home", home or [0.0] * 3, "x, y, z"),
        ):
            if len(numbers) != 3 or not np.isfinite(numbers).all():
                raise ConfigError(f"parameter {name}.{key}: {list(numbers)}, expected {expected}")

        x, y, yaw = start
        start_ned = (y, x, float(yaw_ned_to_enu(yaw))) if enu else (x, y, yaw)
        home_ned: Any = None
        if home:
            home_ned = tuple((enu_to_ned(home) if enu else np.array(home)).tolist())
        return VehicleSettings(name, params, start_ned, home_ned)

    def destroy_node(self) -> None:
        """Take the actions off the graph first."""
        for vehicle in self._vehicles:
            vehicle.destroy()
        super().destroy_node()

    def _on_terrain_map(self, terrain: HeightMap, geo_origin: tuple[float, float, float]) -> None:
        self._diagnostics.hardware_id = terrain.name
        ground = Ground(terrain, self._params.min_height)  # shared, with its surfaces

        for vehicle in self._vehicles:
            vehicle.take_terrain(terrain, ground, geo_origin)

        if self._markers is not None:
            shown = [
                ShownVehicle(v.settings.name, v.settings.params.id, v.settings.params.type)
                for v in self._vehicles
            ]
            self._markers.show(lambda: (shown, ()))

        self.get_logger().info(f"flying over map {terrain.name!r}")
        self._update_diagnostics()

    def _tick(self) -> None:
        now = self.get_clock().now().nanoseconds
        last = self._last_ns
        self._last_ns = now
        if last is not None and now < last:
            self.get_logger().warning("the clock went back: missions go on from where they are")
            self._diagnostics.count("clock_jumps_back")
            for vehicle in self._vehicles:
                vehicle.forget_time()
        if last is None or now <= last:
            return

        for vehicle in self._vehicles:
            vehicle.tick((now - last) * 1e-9, now)
        if self._states is not None:
            self._publish_states(now)

    def _publish_states(self, now: int) -> None:
        flying = [(v.settings, v.follower) for v in self._vehicles if v.follower is not None]
        if not flying or self._states is None or self._tf is None:
            return

        poses = [pose_ned_euler_to_enu(follower.position, follower.euler) for _, follower in flying]
        states = VehicleStates(
            id=np.array([settings.params.id for settings, _ in flying]),
            vehicle_type=np.array([settings.params.type for settings, _ in flying]),
            position=np.array([position for position, _ in poses]),
            orientation=np.array([quat for _, quat in poses]),
            velocity=np.array(
                [vector_ned_to_enu(follower.velocity) for _, follower in flying], np.float32
            ),
            source=self._source,
            stamp_ns=now,
        )

        if self._params.axes == "ned":
            states = states_in_ned(states, self._params.frame_id)
        self._states.publish(states_to_msg(states))
        names = [settings.name for settings, _ in flying]
        self._tf.publish(states_to_transforms(states, names, frame_prefix(self)))
        for pose_publisher, pose in zip(self._poses, states_to_poses(states), strict=True):
            pose_publisher.publish(pose)

    def _update_diagnostics(self) -> None:
        terrain = "" if self._ground.terrain is None else self._ground.terrain.name
        values: dict[str, Any] = {"vehicles": len(self._vehicles), "terrain": terrain}
        breached = []
        unseen = []
        silent = []
        unreported = []
        disarmed = []

        for vehicle in self._vehicles:
            name = vehicle.settings.name
            state = vehicle.state
            if vehicle.missing:
                unseen.append(f"{vehicle.missing} of {name}")
            elif vehicle.silence_s > SILENCE_S:
                silent.append(f"{name} for {vehicle.silence_s:.0f} s")
            if vehicle.unreported:
                unreported.append(vehicle.unreported)
            if vehicle.waits_for_arming:
                disarmed.append(f"{name} was disarmed: it goes on once it is armed")
            if state is None:
                continue
            values[name] = state.params.current.mode.name
            if state.item_count:
                values[name] += f", item {state.item_index} of 0 … {state.item_count - 1}"

            if state.breach:
                breached.append(f"{name}: {state.breach} was breached")

        clock_problem = self._clock_watch.problem
        no_terrain = self._params.simulate and self._ground.terrain is None
        self._diagnostics.set_first(
            [
                (self._ground.problem, ERROR, self._ground.problem),
                (not self._vehicles, OK, "no vehicles: parameter vehicles is empty"),
                (no_terrain, STALE, NO_MAP_YET),
                (clock_problem, WARN, clock_problem),
                (breached, WARN, "; ".join(breached)),
                (unseen, STALE, f"not known yet: {', '.join(unseen)}"),
                (silent, STALE, f"no pose of {', '.join(silent)}"),
                (unreported, WARN, "; ".join(unreported)),
                (disarmed, WARN, "; ".join(disarmed)),
                (True, OK, "running"),
            ],
            **values,
        )


def _warm_up() -> bool:
    """Look once ahead over ground: kernels are loaded now, not in the middle of a flight.

    Return False: once is enough.
    """
    flat = HeightMap(
        np.zeros((2, 2), np.float32), origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=1.0
    )
    Ground(flat).clear_ahead(0.0, 0.0, 0.0, 1.0)
    return False

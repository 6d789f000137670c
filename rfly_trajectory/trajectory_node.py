"""trajectory_node: a fleet that drives and flies over the terrain of `terrain_map`. A thin shell around Fleet."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from rfly_suite.msg import VehicleStateArray
from tf2_msgs.msg import TFMessage

from rfly_common.errors import ConfigError
from rfly_common.frames import enu_to_ned
from rfly_common.ros import (
    ERROR,
    FLEET_OUT,
    LATCHED,
    OK,
    STALE,
    STATE_OUT,
    TF,
    WARN,
    ClockWatch,
    Diagnostics,
    declare,
    publisher,
    run,
)
from rfly_common.vehicle_msgs import states_to_msg
from rfly_terrain.height_map import HeightMap
from rfly_terrain.latest_terrain_node import NOT_YET, LatestTerrain
from rfly_trajectory.fleet import Fleet, orientation_in_ned, states_in_ned
from rfly_trajectory.fleet_file import load_fleet
from rfly_trajectory.track_check import Finding, check_tracks
from rfly_trajectory.track_msgs import states_to_poses, states_to_transforms, track_to_path
from rfly_trajectory.warm_up import warm_up

DEFAULT_FLEET = "demo_convoy"
PER_VEHICLE_LIMIT = 20
"""vehicles up to which `publish_per_vehicle: auto` publishes poses, paths and transforms"""
LOGGED_FINDINGS = 5


class TrajectoryNode(Node):
    """Publishes the states of a fleet as soon as a terrain is known; its time starts then."""

    def __init__(self) -> None:
        super().__init__("trajectory_node")
        fleet = declare(self, "fleet", DEFAULT_FLEET, "fleet file: a path, or the name of a shipped one")
        rate = declare(self, "rate", 50.0, "states per second, Hz", low=0.1, high=1000.0)
        self._frame_id: str = declare(
            self,
            "frame_id",
            "map",
            "frame of all that is published: map (ENU) or map_ned (RflySim's axes)",
            choices=("map", "map_ned"),
        )
        per_vehicle = declare(
            self,
            "publish_per_vehicle",
            "auto",
            f"<name>/pose, <name>/path and /tf of each vehicle; auto: for fleets of up to {PER_VEHICLE_LIMIT}",
            choices=("auto", "always", "never"),
        )
        self._ground = LatestTerrain(self, self._take_terrain, self._refuse_terrain)
        self._source = self.get_fully_qualified_name()
        self._diagnostics = Diagnostics(self, "fleet", fleet, self._say)
        self._fleet: Fleet | None = None
        self._fleet_error = ""
        self._findings: list[Finding] = []
        self._start_ns: int | None = None
        self._last_ns = 0
        self._clock_watch = ClockWatch(self)
        try:
            self._fleet = load_fleet(fleet)
        except ConfigError as error:
            self._fleet_error = " ".join(str(error).split())
            self.get_logger().error(self._fleet_error)
        vehicles = self._fleet.vehicles if self._fleet is not None else ()
        self._names = [vehicle.name for vehicle in vehicles]
        self._states = publisher(self, VehicleStateArray, "vehicle_states", FLEET_OUT)
        self._per_vehicle = per_vehicle == "always" or (per_vehicle == "auto" and len(vehicles) <= PER_VEHICLE_LIMIT)
        one_by_one = self._names if self._per_vehicle else []
        self._poses = [publisher(self, PoseStamped, f"{name}/pose", STATE_OUT) for name in one_by_one]
        self._paths = [publisher(self, Path, f"{name}/path", LATCHED) for name in one_by_one]
        self._tf = publisher(self, TFMessage, "/tf", TF) if one_by_one else None
        self._ground.start()
        self._say()
        self._period_ns = int(1e9 / rate)
        self._timer = self.create_timer(1.0 / rate, self._tick)
        self.get_logger().info(f"fleet {fleet!r}: {len(vehicles)} vehicles at {rate:g} Hz; waiting for terrain_map")
        if self._fleet is not None:
            warm_up()  # last: the node is seen by others meanwhile

    def _take_terrain(self, terrain: HeightMap, _geo_origin: tuple[float, float, float]) -> None:
        if self._fleet is None:
            return
        self._fleet = self._fleet.on_terrain(terrain)
        self._findings = check_tracks(self._fleet)
        self.get_logger().info(f"driving over map {terrain.name!r}, {terrain.rows} x {terrain.columns} cells")
        for finding in self._findings[:LOGGED_FINDINGS]:
            self.get_logger().warning(f"vehicle {finding.vehicle!r}: {finding.text}")
        self._publish_paths(self._fleet)
        self._say()

    def _refuse_terrain(self) -> None:
        self._diagnostics.count("refused_terrains")
        self._say()

    def _publish_paths(self, fleet: Fleet) -> None:
        """Copies on the same track share one message."""
        made: dict[tuple[Any, ...], Path] = {}
        now = self.get_clock().now().nanoseconds
        for index, path_publisher in enumerate(self._paths):
            vehicle = fleet.vehicles[index]
            place = (id(vehicle.path), vehicle.shift, vehicle.offset, vehicle.height, vehicle.absolute)
            key = (*place, vehicle.kind, vehicle.profile, vehicle.wheelbase, vehicle.track)
            if key not in made:
                position, orientation = fleet.track(index)
                if self._frame_id == "map_ned":
                    position, orientation = np.asarray(enu_to_ned(position)), orientation_in_ned(orientation)
                made[key] = track_to_path(position, orientation, self._frame_id, now)
            path_publisher.publish(made[key])

    def _tick(self) -> None:
        fleet = self._fleet
        if fleet is None or fleet.terrain is None:
            return
        now = self.get_clock().now().nanoseconds
        if self._start_ns is None:
            self._start_ns = now
        elif now < self._last_ns:
            self.get_logger().warning("the clock went back: the fleet starts anew")
            self._diagnostics.count("clock_jumps_back")
            self._start_ns = now
        elif now - self._last_ns > 1.5 * self._period_ns:
            self._diagnostics.count("late_states")
        self._last_ns = now
        states = fleet.sample((now - self._start_ns) * 1e-9, source=self._source, stamp_ns=now)
        if self._frame_id == "map_ned":
            states = states_in_ned(states, self._frame_id)
        self._states.publish(states_to_msg(states))
        self._diagnostics.count("published_states")
        if self._tf is not None:
            self._tf.publish(states_to_transforms(states, self._names))
            for pose_publisher, pose in zip(self._poses, states_to_poses(states), strict=True):
                pose_publisher.publish(pose)

    def _say(self) -> None:
        terrain = self._fleet.terrain if self._fleet is not None else None
        values: dict[str, Any] = {
            "vehicles": len(self._names),
            "terrain": "" if terrain is None else terrain.name,
            "fleet_time_s": "" if self._start_ns is None else f"{(self._last_ns - self._start_ns) * 1e-9:.2f}",
        }
        if self._fleet_error:
            level, text = ERROR, self._fleet_error
        elif self._ground.trouble:
            level, text = ERROR, self._ground.trouble
        elif terrain is None:
            level, text = STALE, NOT_YET
        elif self._clock_watch.trouble:
            level, text = WARN, self._clock_watch.trouble
        elif self._findings:
            more = f" (and {len(self._findings) - 1} more)" if len(self._findings) > 1 else ""
            level, text = WARN, f"vehicle {self._findings[0].vehicle!r}: {self._findings[0].text}{more}"
        else:
            level, text = OK, "publishing"
        self._diagnostics.set(level, text, **values)


def main() -> None:
    """Entry point of the executable `trajectory_node`."""
    run(TrajectoryNode)

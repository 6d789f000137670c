# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""avoidance_node: robots of any make keep clear of each other, by poses and velocities.

A thin shell around GuardedRobots.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from rclpy.node import Node

from rfly_common.arrays import Bools, Floats
from rfly_common.diagnostic_reasons import Notice, listed
from rfly_common.errors import ConfigError
from rfly_common.ros.diagnostics import ERROR, OK, STALE, WARN, ClockWatch, Diagnostics
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_common.state_sources import StampFilter
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.terrain_topics import LatestTerrain
from rfly_trajectory.avoidance.avoidance import AvoidanceAction, abilities
from rfly_trajectory.avoidance.guarded_robots import GuardedRobots
from rfly_trajectory.avoidance.pose_tracks import PoseTracks
from rfly_trajectory.fleet.fleet import KINDS
from rfly_trajectory.kernels.tables import AbilityTable
from rfly_trajectory.ros.avoidance_topics import PlacedSolids
from rfly_trajectory.ros.guarded_robot_topics import (
    CommandTopics,
    PoseTopics,
    SeenVehicles,
    others_of,
)
from rfly_trajectory.ros.node_parameters import (
    AvoidanceParameters,
    GuardedRobotParameters,
    OtherVehicleParameters,
    RobotBodyParameters,
    RobotDefaultParameters,
    check_robots,
)
from rfly_trajectory.warm_up import warm_up_avoidance

HELD_UP = 3.0
"""Time without progress after which a robot counts as held up, s."""


class AvoidanceNode(Node):
    """Node that turns the wished velocities of robots into safe ones."""

    def __init__(self) -> None:
        super().__init__("avoidance_node")
        params = declare_parameters(self, AvoidanceParameters)
        self._params = params
        check_robots("parameters robots and others", [*params.robots, *params.others])
        defaults = asdict(
            declare_parameters(self, RobotDefaultParameters, prefix=RobotDefaultParameters.PREFIX)
        )
        self._robots = [_declared_robot(self, name, defaults) for name in params.robots]
        self._others = [_declared_other(self, name) for name in params.others]
        _check_topics(self, [*params.robots, *params.others], self._robots, self._others)
        self.guarded = GuardedRobots(
            _abilities_of(params.robots, self._robots),
            np.array([robot.latency for robot in self._robots]),
            step=1.0 / params.rate,
            pose_timeout=params.pose_timeout,
            command_timeout=params.command_timeout,
        )
        self._other_tracks = PoseTracks(len(self._others))

        # inputs
        self._frames = Frames(self)
        self._stamps = StampFilter(on_set_back=self._on_set_back)
        self._ground = LatestTerrain(self, self._on_terrain_map)
        self._clock_watch = ClockWatch(self)
        self._diagnostics = Diagnostics(self, "avoidance", "", self._update_diagnostics)
        parts = (self._frames, self._stamps, self._diagnostics)
        self._poses = (
            PoseTopics(self, self._robots, self.guarded.tracks, *parts),
            PoseTopics(self, self._others, self._other_tracks, *parts),
        )
        own = [robot.id for robot in self._robots if robot.id]
        self._seen = SeenVehicles(self, params, own, *parts)
        self._objects = PlacedSolids(self, self._surround)
        self._ground.start(self._diagnostics)
        self._commands = CommandTopics(
            self, params, self._robots, self.guarded, self._frames, self._diagnostics
        )

        # a clock that is set back
        back = JumpThreshold(
            min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=False
        )
        self._jumps = self.get_clock().create_jump_callback(back, post_callback=self._on_clock_jump)

        self._step_ms = 0.0
        self._update_diagnostics()
        self.get_logger().info(
            f"{len(self._robots)} robots at {params.rate:g} Hz; waiting for poses"
        )
        warm_up_avoidance()  # before the first command: robots wait for it, not for a compiler
        self._timer = self.create_timer(1.0 / params.rate, self._tick)

    def _tick(self) -> None:
        """Publish safe velocities."""
        now_ns = self.get_clock().now().nanoseconds
        if not self._robots or now_ns == 0:  # 0: /clock has not come yet
            return
        begin = time.perf_counter()
        for poses in self._poses:
            poses.look_up()
        others = self._seen.vehicles(now_ns, self._altitude).concatenate(
            others_of(self._others, self._other_tracks, now_ns)
        )
        safe = self.guarded.step(now_ns, others if len(others) else None, self._is_held)
        self._commands.publish(safe, now_ns)
        self._step_ms = 1e3 * (time.perf_counter() - begin)

    @property
    def _missing(self) -> list[str]:
        """Names of robots and others whose pose has not come."""
        return [
            *_named(self._params.robots, ~self.guarded.tracks.heard),
            *_named(self._params.others, ~self._other_tracks.heard),
        ]

    @property
    def _is_held(self) -> bool:
        """True while robots stand because others are missing."""
        return self._params.wait_for_all and bool(self._missing)

    # --- ground and objects

    def _altitude(self, x: Floats, y: Floats) -> Floats:
        terrain = self._ground.terrain
        return np.zeros(len(x)) if terrain is None else np.asarray(terrain.altitude(x, y))

    def _on_terrain_map(self, terrain: HeightMap, _geo_origin: tuple[float, float, float]) -> None:
        self._diagnostics.hardware_id = terrain.name
        self._surround()

    def _surround(self) -> None:
        self.guarded.surround(self._ground.terrain, self._objects.solids)
        self._update_diagnostics()

    # --- what is to be told

    def _on_set_back(self, source: str, seconds: float) -> None:
        self._diagnostics.set_back(source, seconds)

    def _on_clock_jump(self, _jump: Any) -> None:
        self._stamps.reset()
        self._frames.clear()
        self.guarded.clear()
        self._other_tracks.clear()
        self._seen.clear()

    def _update_diagnostics(self) -> None:
        now_ns = self.get_clock().now().nanoseconds
        names = self._params.robots
        tracks = self.guarded.tracks
        age = tracks.age(now_ns)
        lost = _named(names, tracks.heard & ~self.guarded.fresh(now_ns), age)
        other_age = self._other_tracks.age(now_ns)
        old = self._other_tracks.heard & (other_age > self._params.pose_timeout)
        old_others = _named(self._params.others, old, other_age)
        old_others += map(str, self._seen.silent(now_ns, self._params.pose_timeout).tolist())
        held_up = _named(names, self.guarded.waited >= HELD_UP, self.guarded.waited)
        braking = self.guarded.action == AvoidanceAction.FELL_BACK
        missing = self._missing

        stand = "; robots stand until it comes" if self._is_held else "; it is not avoided"
        warnings: list[str | Notice] = [
            *([f"no pose yet of {listed(missing)}{stand}"] if missing else []),
            *([f"stopped, as its pose is old: {listed(lost)}"] if lost else []),
            *([f"old poses of others: {listed(old_others)}"] if old_others else []),
            *([f"held up: {listed(held_up)}"] if held_up else []),
            *([self._objects.problem] if self._objects.problem else []),
            *([self._clock_watch.problem] if self._clock_watch.problem else []),
        ]
        self._diagnostics.set_first(
            [
                (self._ground.problem, ERROR, self._ground.problem),
                (not names, STALE, "no robots: name them in the parameter robots"),
                (warnings, WARN, warnings),
                (True, OK, "commanding"),
            ],
            missing=listed(missing),
            old_pose=listed(lost),
            old_others=listed(old_others),
            no_wish=listed(_named(names, ~self.guarded.commanded(now_ns))),
            held_up=listed(held_up),
            avoiding=listed(_named(names, self.guarded.action == AvoidanceAction.AVOIDED)),
            braking=listed(_named(names, braking)),
            others=len(self._seen) + len(self._others),
            terrain="" if self._ground.terrain is None else self._ground.terrain.name,
            step_ms=f"{self._step_ms:.2f}",
        )


def _topic_defaults(name: str) -> dict[str, Any]:
    """Return the defaults of a vehicle's topics and frame."""
    topics = {"odometry": f"{name}/odom", "pose": f"{name}/pose", "tf": ""}
    return {
        "topic": lambda earlier: topics[earlier["message"]],
        "base_frame": f"{name}/base_link",
    }


def _declared_robot(node: Node, name: str, defaults: dict[str, Any]) -> GuardedRobotParameters:
    own = {"wish_topic": f"{name}/cmd_vel_wish", "cmd_vel_topic": f"{name}/cmd_vel"}
    return declare_parameters(
        node,
        GuardedRobotParameters,
        prefix=f"{name}.",
        defaults=defaults | _topic_defaults(name) | own,
    )


def _declared_other(node: Node, name: str) -> OtherVehicleParameters:
    return declare_parameters(
        node, OtherVehicleParameters, prefix=f"{name}.", defaults=_topic_defaults(name)
    )


def _check_topics(
    node: Node,
    names: Sequence[str],
    robots: Sequence[GuardedRobotParameters],
    others: Sequence[OtherVehicleParameters],
) -> None:
    """Raise ConfigError for two vehicles of one pose, and for a cmd_vel that is another topic too.

    `names` are those of the robots and of the others. A wish may be for several robots.
    """
    pose_of: dict[str, str] = {}
    for name, vehicle in zip(names, [*robots, *others], strict=True):
        parameter = "base_frame" if vehicle.message == "tf" else "topic"
        source = getattr(vehicle, parameter)
        resolved = source if parameter == "base_frame" else node.resolve_topic_name(source)
        first = pose_of.setdefault(f"{parameter} {resolved}", f"{name}.{parameter}")
        if first != f"{name}.{parameter}":
            raise ConfigError(f"parameters {first}, {name}.{parameter}: both are {source!r}")

    wishes = {
        node.resolve_topic_name(robot.wish_topic): f"{name}.wish_topic"
        for name, robot in zip(names, robots, strict=False)
    }
    outputs: dict[str, str] = {}
    for name, robot in zip(names, robots, strict=False):
        resolved = node.resolve_topic_name(robot.cmd_vel_topic)
        taken = wishes.get(resolved) or outputs.get(resolved)
        if taken is not None:
            raise ConfigError(
                f"parameters {taken}, {name}.cmd_vel_topic: both are {robot.cmd_vel_topic!r}"
            )
        outputs[resolved] = f"{name}.cmd_vel_topic"


def _abilities_of(names: Sequence[str], robots: Sequence[RobotBodyParameters]) -> AbilityTable:
    """Return the robots' bodies, with their margins, and abilities. Raises ConfigError."""
    for name, robot in zip(names, robots, strict=True):
        is_wing = robot.kind == "fixed_wing"
        if is_wing != (robot.min_speed > 0.0):
            expected = "more than 0 for a fixed wing" if is_wing else "0 for what can stop"
            raise ConfigError(
                f"parameter {name}.min_speed: {robot.min_speed:g}, expected {expected}"
            )
        if robot.min_speed > robot.max_speed:
            raise ConfigError(
                f"parameter {name}.min_speed: {robot.min_speed:g}, more than max_speed"
            )

    def column(name: str) -> Floats:
        return np.array([getattr(robot, name) for robot in robots], float)

    margin = column("margin")
    return abilities(
        np.array([KINDS[robot.kind] for robot in robots], np.uint8),
        radius=column("radius") + margin,
        below=column("below"),
        height=column("height"),
        most=column("max_speed"),
        least=column("min_speed"),
        gain=column("acceleration"),
        brake=column("braking"),
        lateral=column("lateral_acceleration"),
        turn_radius=column("turn_radius"),
        turn_rate=column("turn_rate"),
        climb=column("climb_speed"),
    )


def _named(names: Sequence[str], chosen: Bools, seconds: Floats | None = None) -> list[str]:
    """Return the chosen names, with a time each if times (n,), s, are given."""
    rows = np.flatnonzero(chosen).tolist()
    if seconds is None:
        return [names[row] for row in rows]
    return [f"{names[row]} ({seconds[row]:.1f} s)" for row in rows]

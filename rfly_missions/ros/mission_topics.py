# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""One vehicle of mission_node: its topics and service around a MissionRunner."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rfly_suite.msg import Fence, MissionParams, VehicleMode
from rfly_suite.msg import Mission as MissionMsg
from rfly_suite.srv import SetMissionCommand
from std_msgs.msg import Bool, String, UInt8

from rfly_common.errors import ConfigError, FrameError
from rfly_common.geodesy import GeoPoint
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.qos import COMMANDS, LATCHED, STATE_IN
from rfly_common.ros.run_loop import NewestWork
from rfly_common.ros.stamps import ns_to_stamp, stamp_to_ns
from rfly_common.state_sources import StampFilter
from rfly_missions.execution.path_manager import MissionPhase
from rfly_missions.execution.runner import MissionRunner, RunnerState
from rfly_missions.followers.ground import Ground
from rfly_missions.followers.land_air import DISARMED, ModeRequests, mode_request
from rfly_missions.followers.multirotor import Follower
from rfly_missions.followers.vehicle_kinds import AIRBORNE_HEIGHT, GROUND_MODES, make_follower
from rfly_missions.mission.checks import check_returns, ends_the_flight
from rfly_missions.mission.files import Mission
from rfly_missions.mission.geofence import FlightAreaPlan, Geofence
from rfly_missions.mission.items import FlownMission, MissionCommand, MissionItem, command_of
from rfly_missions.ros.mission_action import MissionAction
from rfly_missions.ros.mission_msgs import (
    NO_GOAL,
    NO_POSE,
    follower_to_pose,
    mission_to_msg,
    msg_to_area,
    params_to_msg,
    pose_to_ned,
)
from rfly_missions.ros.node_parameters import MissionParameters, MissionVehicleParameters
from rfly_terrain.height_map.height_map import HeightMap

MAX_STEP_S = 0.1
"""Longest step of a runner, s; a longer time is made in several steps."""
MAX_STEPS = 20
"""Number of steps in one tick."""
SILENCE_S = 2.0
"""Time without a pose, s, that is worth a diagnostic."""
REPORT_SILENCE_S = 5.0
"""Time, s, for which an item waits for is_mode_done before a diagnostic names its publishers."""
NedYaw = tuple[float, float, float, float]
"""x, y, z (NED, m), heading (rad)."""


def _current_text(runner: MissionRunner, state: RunnerState) -> str:
    """Return what the vehicle does now, for the log: an item of its mission, or none of them."""
    shown = runner.manager.state.phase
    if shown is not MissionPhase.FLYING:
        return f"{shown.name.lower()} ({state.items_done} items done)"
    mode = state.params.current.mode.name
    return f"item {state.item_index} of 0 … {state.item_count - 1}: {mode}"


@dataclass(frozen=True)
class VehicleSettings:
    """Settings of one vehicle; positions are NED."""

    name: str
    params: MissionVehicleParameters
    start: tuple[float, float, float]
    """North, east, heading at which a simulated vehicle stands at first."""
    home: tuple[float, float, float] | None
    """NED, m; None: not set."""


class MissionVehicle:
    """One vehicle: it takes goals and commands, and carries on at each `tick`."""

    def __init__(
        self,
        node: Node,
        vehicle: VehicleSettings,
        shared: MissionParameters,
        frames: Frames,
        diagnostics: Diagnostics,
    ) -> None:
        self._node = node
        self.settings = vehicle
        self._shared = shared
        self._frames = frames
        self._diagnostics = diagnostics
        self._log = node.get_logger()

        self.terrain: HeightMap | None = None
        self._ground = Ground(None, shared.min_height)
        self.geo_origin: GeoPoint | None = None
        self.follower: Follower | None = None
        self._runner: MissionRunner | None = None

        self._pose: NedYaw | None = None
        self._stamps = StampFilter(on_set_back=diagnostics.set_back)
        self._heard_at = math.inf
        self._mode: str | None = None
        self._mode_requests = ModeRequests()
        self._was_armed = False
        """True if the vehicle has been armed since the mission began."""
        self.waits_for_arming = False
        """True if somebody has disarmed the vehicle on its mission, which does not undo it."""
        self._mode_done = False
        self._reported_at = time.monotonic()
        self._switches = -1
        self._repeat = False
        self.state: RunnerState | None = None

        # the loaded mission, and the area in which all missions are flown
        self._goal_id: Any = NO_GOAL
        self._loaded = Mission((), (0.0, 0.0, 0.0))
        self._shown = FlownMission()
        self._area = FlightAreaPlan()
        self._area_ns = 0
        """Stamp of the message of the area."""
        self._publishing = NewestWork(node)

        # topics
        name = vehicle.name
        self.done_topic = node.resolve_topic_name(f"{name}/is_mode_done")
        """Name in the graph, which may be another than the node's own."""
        self._params = publisher(node, MissionParams, f"{name}/mission_params", LATCHED)
        self._missions = publisher(node, MissionMsg, f"{name}/mission", LATCHED)
        subscription(node, Fence, f"{name}/fence", self._on_fence, LATCHED)
        subscription(node, UInt8, f"{name}/mission_command", self._on_mission_command, COMMANDS)
        subscription(node, Bool, f"{name}/is_mode_done", self._on_is_mode_done, COMMANDS)
        node.create_service(SetMissionCommand, f"{name}/set_mission_command", self._serve_command)

        self._mode_topic = node.resolve_topic_name(f"{name}/mode")
        self._published_mode: str | None = None
        self._modes = self._targets = self._requests = None
        land_air = vehicle.params.uav_type == "land-air"
        if shared.simulate and land_air:
            self._modes = publisher(node, VehicleMode, f"{name}/mode", LATCHED)
        else:
            subscription(node, VehicleMode, f"{name}/mode", self._on_mode, LATCHED)

        if not shared.simulate:
            subscription(node, PoseStamped, f"{name}/pose", self._on_pose, STATE_IN)
            self._targets = publisher(node, PoseStamped, f"{name}/cmd/pose", COMMANDS)
            self._requests = (
                publisher(node, String, f"{name}/cmd/mode", COMMANDS) if land_air else None
            )
        self._action = MissionAction(node, self, shared, frames, diagnostics)

    def destroy(self) -> None:
        """Take the action off the graph."""
        self._action.destroy()

    @property
    def pose(self) -> NedYaw | None:
        """x, y, z, heading; None as long as it is unknown."""
        return self.follower.pose if self.follower is not None else self._pose

    @property
    def missing(self) -> str:
        """Name of what has to be known before a decision: pose, or mode of a land-air vehicle.

        "" if nothing is missing.
        """
        if self.pose is None:
            return "pose"
        return "mode" if self._requests is not None and self._mode is None else ""

    @property
    def silence_s(self) -> float:
        """Wall time without a pose of an external vehicle, s.

        0 for a simulated one, and before the first pose.
        """
        return max(0.0, time.monotonic() - self._heard_at)

    @property
    def unreported(self) -> str:
        """Publishers of is_mode_done that are silent while an item waits for them; "" for none."""
        silence = time.monotonic() - self._reported_at
        if self._runner is None or not self._runner.awaits_report or silence <= REPORT_SILENCE_S:
            return ""
        publishers = self._node.get_publishers_info_by_topic(self.done_topic)
        names = {
            f"{publisher.node_namespace.rstrip('/')}/{publisher.node_name}"
            for publisher in publishers
        }
        if not names:
            return ""
        item = self._runner.manager.index
        return (
            f"item {item} of {self.settings.name} waits for {self.done_topic}, which "
            f"{', '.join(sorted(names))} has not published for {silence:.0f} s"
        )

    # --- the world

    def take_terrain(self, terrain: HeightMap, ground: Ground, geo_origin: GeoPoint | None) -> None:
        """Go on over another ground; a simulated vehicle appears on the first."""
        self.terrain = terrain
        self._ground = ground
        self.geo_origin = geo_origin

        if self._shared.simulate and self.follower is None:
            north, east, heading = self.settings.start
            position = (north, east, ground.down(north, east))
            radius = self.settings.params.loiter_radius
            self.follower = make_follower(
                self.settings.params.uav_type,
                position,
                heading,
                ground=ground,
                loiter_radius=radius,
            )
        if self.follower is not None:
            # it learns now what it needs to know of the ground
            self.follower.ground = ground
            self.follower.flown(MissionItem.takeoff(self.follower.position))
        if self._runner is not None:
            if self._runner.guide is not None:
                self._runner.guide.ground = ground
            self._runner.ground = ground

    def _on_pose(self, message: PoseStamped) -> None:
        stamp = stamp_to_ns(message.header.stamp)
        topic = f"{self.settings.name}/pose"
        try:
            frame = self._frames.resolve(message.header.frame_id or self._shared.frame_id, stamp)
        except FrameError as error:
            text = f"{topic}: {error}"
            self._diagnostics.refuse("poses_without_a_frame", text, subject=topic)
            return

        pose = pose_to_ned(message.pose, frame)
        if pose is None:
            self._diagnostics.refuse("refused_poses", f"{topic} refused: {NO_POSE}", subject=topic)
            return

        now_ns = self._node.get_clock().now().nanoseconds
        if self._stamps.rejection_reason(topic, stamp, now_ns, time.monotonic_ns()):
            text = f"{topic}: its stamp is not newer than the last, or far from the clock"
            self._diagnostics.refuse("poses_out_of_order", text, subject=topic)
            return
        self._pose = pose
        self._heard_at = time.monotonic()

    def forget_time(self) -> None:
        """Forget times: the clock jumped back."""
        self._stamps.reset()
        self._mode_requests.forget()
        self._action.feedback_due()

    def _on_is_mode_done(self, message: Bool) -> None:
        self._mode_done = bool(message.data)
        self._reported_at = time.monotonic()

    def _on_mode(self, message: VehicleMode) -> None:
        self._mode = message.mode.strip().upper()
        self._was_armed = self._was_armed or self._mode != DISARMED

    # --- commands

    def _on_mission_command(self, message: UInt8) -> None:
        wrong = self._obey(int(message.data))
        if wrong:
            self._diagnostics.count("refused_commands")
            self._log.error(f"{self.settings.name}/mission_command: {wrong}")

    def _serve_command(self, request: Any, response: Any) -> Any:
        response.message = self._obey(int(request.command))
        response.success = not response.message
        return response

    def _obey(self, number: int) -> str:
        """Carry out a command; return what was wrong, or ""."""
        try:
            command = command_of(number)
        except ValueError as error:
            return str(error)
        if self._runner is None:
            return f"no {self.missing or 'pose'} of {self.settings.name} is known yet"

        if command is MissionCommand.DEFAULT and self._repeat:
            command = MissionCommand.REPEAT
        self._runner.command = command
        return ""

    # --- missions

    @property
    def ready(self) -> bool:
        """True if a mission can be loaded: nothing is missing."""
        return self._runner is not None and not self.missing

    def hold(self) -> None:
        """Hold immediately, and stop repeating."""
        if self._runner is not None:
            self._repeat = False
            self._runner.command = MissionCommand.HOLD

    def load(self, mission: Mission, home: Any, goal: Any, goal_id: Any) -> None:
        """Begin a goal's mission with a home (NED); raise ConfigError if the fence is breached."""
        assert self._runner is not None
        area = self._combined(mission)
        if area.fence and self.pose is not None and not ends_the_flight(mission.items):
            breach = area.fence.breach(self.pose[0], self.pose[1])
            if breach:
                raise ConfigError(f"the vehicle breaches {breach}")

        # a file's home has the plan's altitude; a return ends on the map's ground
        north, east, down = home
        floor = self._ground.down(north, east)
        lands_at = floor if goal.file and math.isfinite(floor) else down

        self._runner.load(
            mission.items,
            (north, east, lands_at),
            fence=area.fence,
            numbers=mission.numbers,
            repeat=goal.repeat,
            start_index=goal.start_index,
            hold_at_waypoints=bool(goal.file),
            rally=area.rally,
        )
        self._was_armed = self._mode not in (None, DISARMED)
        self._repeat = bool(goal.repeat)
        self._goal_id = goal_id
        self._loaded = mission
        self._shown = FlownMission(
            mission.with_plain_jumps().items, tuple(home), self._repeat, bool(goal.file)
        )
        self._publish_mission()

        if self.follower is None and self.pose is not None:
            self._place_guide(self._runner, self.pose)

    # --- the fence

    def _combined(self, mission: Mission) -> FlightAreaPlan:
        """Return the area of a mission within that of all missions."""
        fence = Geofence(
            (*self._area.fence.areas, *mission.fence.areas),
            mission.fence.breach_return or self._area.fence.breach_return,
        )
        usable = [point for point in self._area.rally if not fence.breach(point[0], point[1])]
        return FlightAreaPlan(fence, (*usable, *mission.rally))

    def _on_fence(self, message: Fence) -> None:
        """Take the area of all missions; it replaces that of the loaded mission as well."""
        try:
            frame_id = message.header.frame_id or self._shared.frame_id
            axes = self._frames.axes(frame_id)
            if axes is None:
                raise ValueError(f"header.frame_id: {frame_id!r} is no world frame")
            area = msg_to_area(message, axes)
            check_returns((), area.fence)
        except ValueError as error:  # ConfigError is a ValueError
            self._diagnostics.count("refused_fences")
            self._log.error(f"{self.settings.name}/fence: {error}")
            return

        self._area = area
        self._area_ns = stamp_to_ns(message.header.stamp)
        self._loaded = replace(self._loaded, fence=Geofence(), rally=())
        if self._runner is not None and self._is_under_way():
            combined = self._combined(self._loaded)
            self._runner.replace_area(combined.fence, combined.rally)
        self._publish_mission()

    def _is_under_way(self) -> bool:
        """Return whether the vehicle is in the air or has a mission to fly."""
        if self._runner is None or self.pose is None or self.state is None:
            return False
        below = self._runner.ground.down(self.pose[0], self.pose[1])
        height = (below if math.isfinite(below) else self._runner.home[2]) - self.pose[2]
        return height > AIRBORNE_HEIGHT or not self.state.finished

    def _publish_mission(self) -> None:
        area = self._combined(self._loaded)
        now_ns = self._node.get_clock().now().nanoseconds
        frame = self._shared.axes, self._shared.frame_id
        shown = self._shown
        goal_id = self._goal_id
        area_ns = self._area_ns
        self._publishing.start(
            len(shown.items),
            lambda: mission_to_msg(shown, area, goal_id, *frame, now_ns, area_ns),
            self._missions.publish,
        )

    def _place_guide(self, runner: MissionRunner, pose: NedYaw) -> None:
        """Let a guide ahead of the vehicle begin at the vehicle, unless it is near already."""
        position = pose[:3]
        if (
            runner.guide is not None
            and math.dist(runner.guide.position, position) <= runner.guide.lead
        ):
            return

        ground = runner.ground
        below = ground.down(position[0], position[1])
        height = (below if math.isfinite(below) else runner.home[2]) - position[2]
        flies = height > AIRBORNE_HEIGHT if self._mode is None else self._mode not in GROUND_MODES
        runner.guide = make_follower(
            self.settings.params.uav_type,
            position,
            pose[3],
            ground=ground,
            loiter_radius=self.settings.params.loiter_radius,
            airborne=flies,
        )

    # --- time

    def tick(self, dt: float, now_ns: int) -> None:
        """Carry on for dt seconds."""
        if self._mode is not None and not self._node.count_publishers(self._mode_topic):
            self._mode = None  # no node reports it any more
        if self.missing:
            self._action.update(now_ns)
            return

        pose = self.pose
        if pose is not None and self._runner is None:
            self._make_runner(pose)
        self._action.start_waiting()
        if self._runner is not None:
            self._step(self._runner, dt, now_ns)
        self._action.update(now_ns)

    def _make_runner(self, pose: NedYaw) -> None:
        vehicle = self.settings
        self._runner = MissionRunner(
            vehicle.params.uav_type,
            follower=self.follower,
            ground=self._ground,
            loiter_radius=vehicle.params.loiter_radius,
            hold_turn_direction=vehicle.params.hold_turn_direction,
            too_low=vehicle.params.too_low,
            log=lambda text: self._log.info(f"{vehicle.name}: {text}"),
        )
        self._runner.load((), vehicle.home or pose[:3], fence=Geofence())
        self._publish_mission()

    def _step(self, runner: MissionRunner, dt: float, now_ns: int) -> None:
        """Step the runner, and publish its state."""
        steps = min(MAX_STEPS, max(1, math.ceil(dt / MAX_STEP_S)))
        done = bool(self._mode_done) if self._node.count_publishers(self.done_topic) else None
        for _ in range(steps):
            pose = None if self.follower else self._pose
            self.state = runner.step(min(dt / steps, MAX_STEP_S), pose, done, self._mode)
            if runner.manager.state.switches != self._switches:
                # a report of is_mode_done belongs to the item before
                self._switches = runner.manager.state.switches
                self._mode_done = False
                self._reported_at = time.monotonic()
                done = None if done is None else False
                self._action.feedback_due()
                self._log.info(f"{self.settings.name}: {_current_text(runner, self.state)}")

        assert self.state is not None
        self._params.publish(
            params_to_msg(
                self.state,
                self._shared.axes,
                self._shared.frame_id,
                now_ns,
                self._goal_id,
            )
        )

        # what a simulated land-air vehicle reports
        if (
            self._modes is not None
            and self.follower is not None
            and self.follower.mode != self._published_mode
        ):
            self._published_mode = self.follower.mode
            mode_message = VehicleMode(mode=self._published_mode or "")
            mode_message.header.stamp = ns_to_stamp(now_ns)
            self._modes.publish(mode_message)

        # what an external vehicle is to do
        if self._targets is not None and runner.guide is not None:
            self._targets.publish(
                follower_to_pose(runner.guide, self._shared.axes, self._shared.frame_id, now_ns)
            )
        if self._requests is not None and runner.guide is not None and self._mode is not None:
            self._request_mode(self.state, self._mode, now_ns)

    def _request_mode(self, state: RunnerState, mode: str, now_ns: int) -> None:
        """Request the mode that the item needs, until the vehicle takes it."""
        assert self._requests is not None
        assert self._pose is not None

        mode_needed = mode_request(state.flown, mode, self._pose[:3], state.driven)
        self.waits_for_arming = mode_needed == "arm" and self._was_armed
        if self.waits_for_arming:
            return
        if self._mode_requests.is_due(mode_needed, now_ns * 1e-9):
            self._requests.publish(String(data=mode_needed))

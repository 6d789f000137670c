"""One vehicle of mission_node: its action, topics and service around a MissionRunner."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from geometry_msgs.msg import PoseStamped
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.task import Future
from rfly_suite.action import ExecuteMission
from rfly_suite.msg import MissionParams
from rfly_suite.srv import SetMissionCommand
from std_msgs.msg import Bool, UInt8

from rfly_common.errors import ConfigError, FrameError
from rfly_common.geodesy import GeoPoint, geodetic_to_ned
from rfly_common.ros import (
    COMMANDS,
    LATCHED,
    STATE_IN,
    Diagnostics,
    Frames,
    publisher,
    stamp_to_ns,
    subscription,
)
from rfly_terrain.height_map import HeightMap
from rfly_trajectory.mission_fence import Geofence
from rfly_trajectory.mission_files import Mission, read_mission
from rfly_trajectory.mission_fixed_wing import FixedWing
from rfly_trajectory.mission_followers import Follower, Multirotor
from rfly_trajectory.mission_ground import Ground
from rfly_trajectory.mission_items import MissionCommand, MissionItem, command_of
from rfly_trajectory.mission_mavlink import LAST_NAVIGATION, TIMED_COMMANDS, mavlink_command
from rfly_trajectory.mission_msgs import item_to_msg, msg_to_item, params_to_msg, point_to_ned, pose_to_ned
from rfly_trajectory.mission_runner import MissionRunner, RunnerState

FEEDBACK_PERIOD_S = 0.1
MAX_STEP_S = 0.1
"""a longer time is made in several steps"""
MAX_STEPS = 20
FARTHEST_HOME_M = 100_000.0
"""a mission file whose home lies farther from the map's origin belongs to another map"""

Pose = tuple[float, float, float, float]


@dataclass(frozen=True)
class VehicleSettings:
    """The parameters of one vehicle; positions NED."""

    name: str
    uav_type: str
    id: int
    vehicle_type: int
    loiter_radius: float
    hold_turn_direction: int
    start: tuple[float, float, float]
    """north, east, heading: where a simulated one stands at first"""
    home: tuple[float, float, float] | None


@dataclass(frozen=True)
class NodeSettings:
    """What all vehicles share."""

    frame_id: str
    axes: str
    simulate: bool
    min_height: float
    default_radius: float


class MissionVehicle:
    """Takes goals and commands, and carries on at each `tick`."""

    def __init__(
        self, node: Node, vehicle: VehicleSettings, shared: NodeSettings, frames: Frames, diagnostics: Diagnostics
    ) -> None:
        self._node, self.settings, self._shared, self._frames = node, vehicle, shared, frames
        self._diagnostics = diagnostics
        self._log = node.get_logger()
        self._terrain: HeightMap | None = None
        self._geo_origin: GeoPoint | None = None
        self.follower: Follower | None = None
        self._runner: MissionRunner | None = None
        self._pose: Pose | None = None
        self._pose_stamp_ns = 0
        self._said = False
        self._switches = -1
        self._goal: Any = None
        self._ended: Future | None = None
        self._start: Callable[[], None] | None = None
        self._repeat = False
        self._replaced_after = 0
        self._next_feedback_ns = 0
        self.state: RunnerState | None = None
        name = vehicle.name
        self._done_topic = f"{name}/is_mode_done"
        self._params = publisher(node, MissionParams, f"{name}/mission_params", LATCHED)
        subscription(node, UInt8, f"{name}/mission_command", self._take_command, COMMANDS)
        subscription(node, Bool, self._done_topic, self._take_done, COMMANDS)
        node.create_service(SetMissionCommand, f"{name}/set_mission_command", self._serve_command)
        if not shared.simulate:
            subscription(node, PoseStamped, f"{name}/pose", self._take_pose, STATE_IN)
        self._server = ActionServer(
            node,
            ExecuteMission,
            f"{name}/execute_mission",
            self._execute,
            goal_callback=lambda _goal: GoalResponse.ACCEPT,  # a refused goal carries no reason: it is aborted with one
            cancel_callback=self._cancel,
        )

    def destroy(self) -> None:
        """Take the action off the graph."""
        self._server.destroy()

    @property
    def pose(self) -> Pose | None:
        """x, y, z, heading; None as long as nobody knows."""
        return self.follower.pose if self.follower is not None else self._pose

    # --- the world

    def take_terrain(self, terrain: HeightMap, geo_origin: GeoPoint | None) -> None:
        """Go on over this ground; a simulated vehicle appears on the first."""
        self._terrain, self._geo_origin = terrain, geo_origin
        ground = Ground(terrain, self._shared.min_height)
        if self._shared.simulate and self.follower is None:
            north, east, heading = self.settings.start
            position = (north, east, ground.down(north, east))
            if self.settings.uav_type == "fixed-wing":
                radius = self.settings.loiter_radius
                self.follower = FixedWing(position, heading, ground=ground, loiter_radius=radius)
            else:
                self.follower = Multirotor(position, heading, ground=ground)
        if self.follower is not None:
            self.follower.ground = ground
        if self._runner is not None:
            self._runner.ground = ground

    def _take_pose(self, message: PoseStamped) -> None:
        stamp = stamp_to_ns(message.header.stamp)
        try:
            frame = self._frames.resolve(message.header.frame_id or self._shared.frame_id, stamp)
        except FrameError as error:
            self._diagnostics.count("poses_without_a_frame")
            self._log.warning(f"{self.settings.name}/pose: {error}", throttle_duration_sec=5.0)
            return
        pose = pose_to_ned(message.pose, frame)
        if pose is None:
            self._diagnostics.count("poses_not_finite")
        elif stamp and stamp < self._pose_stamp_ns:
            self._diagnostics.count("poses_out_of_order")
        else:
            self._pose, self._pose_stamp_ns = pose, stamp

    def forget_time(self) -> None:
        """The clock jumped back."""
        self._pose_stamp_ns = self._next_feedback_ns = 0

    def _take_done(self, message: Bool) -> None:
        self._said = bool(message.data)

    # --- commands

    def _take_command(self, message: UInt8) -> None:
        wrong = self._obey(int(message.data))
        if wrong:
            self._diagnostics.count("refused_commands")
            self._log.error(f"{self.settings.name}/mission_command: {wrong}")

    def _serve_command(self, request: Any, response: Any) -> Any:
        response.message = self._obey(int(request.command))
        response.success = not response.message
        return response

    def _obey(self, number: int) -> str:
        """What was wrong, or ""."""
        try:
            command = command_of(number)
        except ValueError as error:
            return str(error)
        if self._runner is None:
            return f"no pose of {self.settings.name} is known yet"
        if command is MissionCommand.DEFAULT and self._repeat:
            command = MissionCommand.REPEAT
        self._runner.command = command
        return ""

    # --- goals

    async def _execute(self, handle: Any) -> Any:
        """Until the mission is finished, cancelled or replaced."""
        done = self._items_done()
        try:
            begin = self._prepared(handle.request)
            start = None if self._ready else begin
            if start is None:
                begin()
        except (ConfigError, ValueError, OSError) as error:
            return self._aborted(handle, error)  # the mission that is being flown goes on
        self._end("replaced by a new goal")
        self._replaced_after, self._start = done, start
        ended = Future(executor=self._node.executor)
        self._goal, self._ended, self._next_feedback_ns = handle, ended, 0
        message = await ended
        result = ExecuteMission.Result(message=message)
        if self._ended is ended:
            result.items_done = self._items_done()
            self._goal, self._ended, self._start = None, None, None
        else:
            result.items_done = self._replaced_after
        if handle.is_cancel_requested:
            handle.canceled()
        elif message:
            self._log.warning(f"{self.settings.name}: mission aborted: {message}")
            handle.abort()
        else:
            result.success, result.message = True, f"{result.items_done} items done"
            handle.succeed()
        return result

    def _aborted(self, handle: Any, error: Exception) -> Any:
        message = " ".join(str(error).split())
        self._log.warning(f"{self.settings.name}: mission refused: {message}")
        self._diagnostics.count("refused_missions")
        handle.abort()
        return ExecuteMission.Result(message=message)

    def _items_done(self) -> int:
        """Of the goal that has begun."""
        return self.state.items_done if self.state is not None and self._goal is not None and self._start is None else 0

    @property
    def _ready(self) -> bool:
        return self._runner is not None and self.pose is not None

    def _cancel(self, handle: Any) -> Any:
        """HOLD at once; the next tick ends the goal."""
        if handle is self._goal and self._runner is not None:
            self._repeat = False
            self._runner.command = MissionCommand.HOLD
        return CancelResponse.ACCEPT

    def _end(self, message: str) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(message)

    def _prepared(self, goal: Any) -> Callable[[], None]:
        """What is to be done as soon as a pose is known; what can be checked before is checked now."""
        if goal.file:
            if len(goal.items):
                raise ConfigError("items: expected none where file is given")
            return lambda: self._load_file(goal)
        frame_id = goal.header.frame_id or self._shared.frame_id
        axes = self._frames.axes(frame_id)
        if axes is None:
            raise ConfigError(f"header.frame_id: {frame_id!r} is no world frame (parameters enu_frames, ned_frames)")
        items = []
        for index, message in enumerate(goal.items):
            try:
                items.append(msg_to_item(message, axes))
            except ValueError as error:
                raise ConfigError(f"mission item {index}: {error}") from error
        if goal.home_source > ExecuteMission.Goal.HOME_FROM_POSE:
            raise ConfigError(f"home_source: {goal.home_source}, expected 0 goal, 1 parameter, 2 pose at start")
        if goal.home_source == ExecuteMission.Goal.HOME_FROM_PARAMETER and self.settings.home is None:
            raise ConfigError(f"home_source: 1, but the parameter {self.settings.name}.home is not set")
        MissionRunner(self.settings.uav_type).load(items, start_index=goal.start_index)  # type: ignore[arg-type]
        return lambda: self._load_items(goal, items, axes)

    def _load_items(self, goal: Any, items: list[MissionItem], axes: str) -> None:
        sources = {
            ExecuteMission.Goal.HOME_FROM_GOAL: lambda: point_to_ned(goal.home, axes),
            ExecuteMission.Goal.HOME_FROM_PARAMETER: lambda: self.settings.home,
            ExecuteMission.Goal.HOME_FROM_POSE: lambda: (self.pose or (0.0,) * 4)[:3],
        }
        self._load(Mission(tuple(items), (0.0, 0.0, 0.0)), sources[goal.home_source](), goal)

    def _load_file(self, goal: Any) -> None:
        vehicle = self.settings
        mission = read_mission(
            goal.file,
            default_radius=self._shared.default_radius,
            loiter_radius=vehicle.loiter_radius,
            terrain=self._altitude_above_sea if self._terrain is not None and self._geo_origin is not None else None,
        )
        home: Any
        if self._geo_origin is not None:
            home = geodetic_to_ned(mission.home, self._geo_origin).tolist()
            away = math.hypot(home[0], home[1])
            if away > FARTHEST_HOME_M:
                raise ConfigError(
                    f"{goal.file}: home {mission.home} lies {away / 1000:.0f} km from the map's origin "
                    f"{self._geo_origin}; set geo_origin of terrain_node to the mission's place"
                )
            mission = mission.about(self._geo_origin)
        else:
            home = vehicle.home or (self.pose or (0.0,) * 4)[:3]
            self._log.info(f"{vehicle.name}: no map origin is known: home of {goal.file} is placed at {list(home)} NED")
            mission = mission.moved(home)
        for text in mission.lost:
            self._log.warning(f"{vehicle.name}: {goal.file}: {text}")
        if mission.custom:
            listed = ", ".join(f"{index} ({command})" for index, command in mission.custom)
            self._log.info(f"{vehicle.name}: {goal.file}: CUSTOM items (MAVLink command): {listed}")
        self._load(mission, home, goal)

    def _load(self, mission: Mission, home: Any, goal: Any) -> None:
        assert self._runner is not None
        if mission.fence and self.pose is not None:
            breach = mission.fence.breach(self.pose[0], self.pose[1])
            if breach:
                raise ConfigError(f"the vehicle breaches {breach}")
        self._runner.load(
            mission.items,
            home,
            fence=mission.fence,
            numbers=mission.numbers,
            repeat=goal.repeat,
            start_index=goal.start_index,
            hold_at_waypoints=bool(goal.file),
        )
        self._repeat = bool(goal.repeat)
        for index, item in enumerate(mission.items):
            command = mavlink_command(item)
            if command is not None and command <= LAST_NAVIGATION and command not in TIMED_COMMANDS:
                self._log.warning(
                    f"{self.settings.name}: mission item {index}: command {command} is not carried out here; "
                    f"it ends when {self._done_topic} says so"
                )

    def _altitude_above_sea(self, latitude: float, longitude: float) -> float:
        assert self._terrain is not None
        assert self._geo_origin is not None
        north, east, _ = geodetic_to_ned((latitude, longitude, 0.0), self._geo_origin).tolist()
        return self._geo_origin[2] - float(self._terrain.altitude_ned(north, east))

    # --- time

    def tick(self, dt: float, now_ns: int) -> None:
        """Carry on for dt seconds."""
        pose = self.pose
        if pose is not None and self._runner is None:
            self._make_runner(pose)
        if self._start is not None and self._ready:
            start, self._start = self._start, None
            try:
                start()
            except (ConfigError, ValueError, OSError) as error:
                self._end(" ".join(str(error).split()))
        if self._runner is not None:
            self._step(self._runner, dt, now_ns)
        if self._goal is not None:
            self._tell(now_ns)

    def _make_runner(self, pose: Pose) -> None:
        vehicle = self.settings
        self._runner = MissionRunner(
            vehicle.uav_type,  # type: ignore[arg-type]
            follower=self.follower,
            ground=Ground(self._terrain, self._shared.min_height),
            loiter_radius=vehicle.loiter_radius,
            hold_turn_direction=vehicle.hold_turn_direction,
            log=lambda text: self._log.info(f"{vehicle.name}: {text}"),
        )
        self._runner.load((), vehicle.home or pose[:3], fence=Geofence())

    def _step(self, runner: MissionRunner, dt: float, now_ns: int) -> None:
        steps = min(MAX_STEPS, max(1, math.ceil(dt / MAX_STEP_S)))
        said = bool(self._said) if self._node.count_publishers(self._done_topic) else None
        for _ in range(steps):
            self.state = runner.step(min(dt / steps, MAX_STEP_S), None if self.follower else self._pose, said)
            if runner.manager.switches != self._switches:
                # what was said belongs to the item before
                self._switches, self._said, said = runner.manager.switches, False, None if said is None else False
                self._next_feedback_ns = 0
        assert self.state is not None
        self._params.publish(params_to_msg(self.state.params, self._shared.axes, self._shared.frame_id, now_ns))

    def _tell(self, now_ns: int) -> None:
        """Feedback, and the end of the goal."""
        state, waiting = self.state, self._start is not None
        if self._goal.is_cancel_requested:
            self._end("cancelled: holding")
        elif state is not None and not waiting and state.breach:
            self._end(f"{state.breach} was breached: holding, then returning")
        elif state is not None and not waiting and state.finished:
            self._feedback(state)
            self._end("")
        elif now_ns >= self._next_feedback_ns:
            self._next_feedback_ns = now_ns + int(FEEDBACK_PERIOD_S * 1e9)
            self._feedback(None if waiting else state)

    def _feedback(self, state: RunnerState | None) -> None:
        """Without a state nothing has begun: no pose is known yet, the distance is NaN."""
        if not self._goal.is_active:
            return
        message = ExecuteMission.Feedback(distance=math.nan)
        if state is None:
            message.index, message.count = self._goal.request.start_index, len(self._goal.request.items)
            self._log.info(f"{self.settings.name}: no pose is known yet", throttle_duration_sec=5.0)
        else:
            message.index, message.count = state.item_index, state.item_count
            message.current = item_to_msg(state.params.current, self._shared.axes)
            message.previous = params_to_msg(state.params, self._shared.axes, "", 0).previous
            message.distance = state.distance
            done = state.item_count if state.finished else state.item_index
            message.progress = done / state.item_count if state.item_count else 1.0
        self._goal.publish_feedback(message)

"""One vehicle of mission_node: its action, topics and service around a MissionRunner."""

from __future__ import annotations

import math
import time
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
from std_msgs.msg import Bool, String, UInt8

from rfly_common.errors import ConfigError, FrameError
from rfly_common.frames import pose_ned_euler_to_enu, pose_ned_euler_to_ned
from rfly_common.geodesy import GeoPoint, geodetic_to_ned
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.qos import COMMANDS, LATCHED, STATE_IN
from rfly_common.ros.stamps import ns_to_stamp, stamp_to_ns
from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.missions.files import Mission, read_mission
from rfly_trajectory.missions.geofence import Geofence
from rfly_trajectory.missions.ground import Ground
from rfly_trajectory.missions.items import MissionCommand, MissionItem, command_of
from rfly_trajectory.missions.land_air import mode_request
from rfly_trajectory.missions.mavlink import LAST_NAVIGATION, TIMED_COMMANDS, mavlink_command
from rfly_trajectory.missions.multirotor import Follower
from rfly_trajectory.missions.runner import GROUND_MODES, MissionRunner, RunnerState
from rfly_trajectory.missions.vehicles import AIRBORNE_HEIGHT, make_follower
from rfly_trajectory.ros.mission_msgs import item_to_msg, msg_to_item, params_to_msg, point_to_ned, pose_to_ned

FEEDBACK_PERIOD_S = 0.1
MAX_STEP_S = 0.1
"""a longer time is made in several steps"""
MAX_STEPS = 20
MODE_PERIOD_S = 1.0
"""a mode that a vehicle does not take is asked for again"""
SILENCE_S = 2.0
"""without a pose: worth a diagnostic"""
MAX_HOME_M = 100_000.0
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
        self._ground = Ground(None, shared.min_height)
        self._geo_origin: GeoPoint | None = None
        self.follower: Follower | None = None
        self._runner: MissionRunner | None = None
        self._pose: Pose | None = None
        self._pose_stamp_ns = 0
        self._heard_at = math.inf
        self._mode: str | None = None
        self._asked, self._ask_again_ns = "", 0
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
        self._mode_topic = f"{name}/mode"
        self._told_mode: str | None = None
        self._modes = self._targets = self._requests = None
        land_air = vehicle.uav_type == "land-air"
        if shared.simulate and land_air:
            self._modes = publisher(node, String, self._mode_topic, LATCHED)
        else:
            subscription(node, String, self._mode_topic, self._take_mode, LATCHED)
        if not shared.simulate:
            subscription(node, PoseStamped, f"{name}/pose", self._take_pose, STATE_IN)
            self._targets = publisher(node, PoseStamped, f"{name}/cmd/pose", COMMANDS)
            self._requests = publisher(node, String, f"{name}/cmd/mode", COMMANDS) if land_air else None
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

    @property
    def missing(self) -> str:
        """What has to be known before anything is decided: pose, or mode of a land-air vehicle; "" for nothing."""
        if self.pose is None:
            return "pose"
        return "mode" if self._requests is not None and self._mode is None else ""

    @property
    def silence_s(self) -> float:
        """How long a vehicle of somebody else has been silent; 0 for a simulated one, and before its first pose."""
        return max(0.0, time.monotonic() - self._heard_at)

    # --- the world

    def take_terrain(self, terrain: HeightMap, ground: Ground, geo_origin: GeoPoint | None) -> None:
        """Go on over this ground; a simulated vehicle appears on the first."""
        self._terrain, self._ground, self._geo_origin = terrain, ground, geo_origin
        if self._shared.simulate and self.follower is None:
            north, east, heading = self.settings.start
            position = (north, east, ground.down(north, east))
            radius = self.settings.loiter_radius
            self.follower = make_follower(
                self.settings.uav_type, position, heading, ground=ground, loiter_radius=radius
            )
        if self.follower is not None:
            self.follower.ground = ground
            self.follower.flown(MissionItem.takeoff(self.follower.position))  # what it needs to know of it: now
        if self._runner is not None:
            self._runner.ground = ground
            if self._runner.guide is not None:
                self._runner.guide.ground = ground

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
            self._heard_at = time.monotonic()

    def forget_time(self) -> None:
        """The clock jumped back."""
        self._pose_stamp_ns = self._next_feedback_ns = self._ask_again_ns = 0

    def _take_done(self, message: Bool) -> None:
        self._said = bool(message.data)

    def _take_mode(self, message: String) -> None:
        self._mode = message.data.strip().upper()

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
            return f"no {self.missing or 'pose'} of {self.settings.name} is known yet"
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
        message = _reason(error)
        self._log.warning(f"{self.settings.name}: mission refused: {message}")
        self._diagnostics.count("refused_missions")
        handle.abort()
        return ExecuteMission.Result(message=message)

    def _items_done(self) -> int:
        """Of the goal that has begun."""
        return self.state.items_done if self.state is not None and self._goal is not None and self._start is None else 0

    @property
    def _ready(self) -> bool:
        return self._runner is not None and not self.missing

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
            if away > MAX_HOME_M:
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
        if self.follower is None and self.pose is not None:
            self._lead_on(self._runner, self.pose)
        for index, item in enumerate(mission.items):
            command = mavlink_command(item)
            if command is not None and command <= LAST_NAVIGATION and command not in TIMED_COMMANDS:
                self._log.warning(
                    f"{self.settings.name}: mission item {index}: command {command} is not carried out here; "
                    f"it ends when {self._done_topic} says so"
                )

    def _lead_on(self, runner: MissionRunner, pose: Pose) -> None:
        """Let what flies ahead of the vehicle begin where the vehicle is, unless it is near by already."""
        at = pose[:3]
        if runner.guide is not None and math.dist(runner.guide.position, at) <= runner.guide.lead:
            return
        ground = runner.ground
        below = ground.down(at[0], at[1])
        height = (below if math.isfinite(below) else runner.home[2]) - at[2]
        flies = height > AIRBORNE_HEIGHT if self._mode is None else self._mode not in GROUND_MODES
        runner.guide = make_follower(
            self.settings.uav_type,
            at,
            pose[3],
            ground=ground,
            loiter_radius=self.settings.loiter_radius,
            airborne=flies,
        )

    def _altitude_above_sea(self, latitude: float, longitude: float) -> float:
        assert self._terrain is not None
        assert self._geo_origin is not None
        north, east, _ = geodetic_to_ned((latitude, longitude, 0.0), self._geo_origin).tolist()
        return self._geo_origin[2] - float(self._terrain.altitude_ned(north, east))

    # --- time

    def tick(self, dt: float, now_ns: int) -> None:
        """Carry on for dt seconds."""
        if self._mode is not None and not self._node.count_publishers(self._mode_topic):
            self._mode = None  # nobody tells it any more
        if self.missing:
            self._tell(now_ns)
            return
        pose = self.pose
        if pose is not None and self._runner is None:
            self._make_runner(pose)
        if self._start is not None and self._ready:
            start, self._start = self._start, None
            try:
                start()
            except (ConfigError, ValueError, OSError) as error:
                self._end(_reason(error))
        if self._runner is not None:
            self._step(self._runner, dt, now_ns)
        self._tell(now_ns)

    def _make_runner(self, pose: Pose) -> None:
        vehicle = self.settings
        self._runner = MissionRunner(
            vehicle.uav_type,  # type: ignore[arg-type]
            follower=self.follower,
            ground=self._ground,
            loiter_radius=vehicle.loiter_radius,
            hold_turn_direction=vehicle.hold_turn_direction,
            log=lambda text: self._log.info(f"{vehicle.name}: {text}"),
        )
        self._runner.load((), vehicle.home or pose[:3], fence=Geofence())

    def _step(self, runner: MissionRunner, dt: float, now_ns: int) -> None:
        steps = min(MAX_STEPS, max(1, math.ceil(dt / MAX_STEP_S)))
        said = bool(self._said) if self._node.count_publishers(self._done_topic) else None
        for _ in range(steps):
            own = None if self.follower else self._pose
            self.state = runner.step(min(dt / steps, MAX_STEP_S), own, said, self._mode)
            if runner.manager.state.switches != self._switches:
                # what was said belongs to the item before
                self._switches, self._said, said = runner.manager.state.switches, False, None if said is None else False
                self._next_feedback_ns = 0
        assert self.state is not None
        self._params.publish(params_to_msg(self.state.params, self._shared.axes, self._shared.frame_id, now_ns))
        if self._modes is not None and self.follower is not None and self.follower.mode != self._told_mode:
            self._told_mode = self.follower.mode
            self._modes.publish(String(data=self._told_mode or ""))
        if self._targets is not None and runner.guide is not None:
            self._targets.publish(self._target(runner.guide, now_ns))
        if self._requests is not None and runner.guide is not None and self._mode is not None:
            self._ask(self.state, self._mode, now_ns)

    def _target(self, guide: Follower, now_ns: int) -> PoseStamped:
        """Where the vehicle of somebody else is to be now."""
        convert = pose_ned_euler_to_enu if self._shared.axes == "enu" else pose_ned_euler_to_ned
        (x, y, z), (qx, qy, qz, qw) = convert(guide.position, guide.euler)
        message = PoseStamped()
        message.header.frame_id, message.header.stamp = self._shared.frame_id, ns_to_stamp(now_ns)
        message.pose.position.x, message.pose.position.y, message.pose.position.z = x, y, z
        orientation = message.pose.orientation
        orientation.x, orientation.y, orientation.z, orientation.w = qx, qy, qz, qw
        return message

    def _ask(self, state: RunnerState, mode: str, now_ns: int) -> None:
        """For the mode that the item needs, until the vehicle takes it."""
        assert self._requests is not None
        assert self._pose is not None
        wanted = mode_request(state.flown, mode, self._pose[:3], state.driven)
        if wanted and (wanted != self._asked or now_ns >= self._ask_again_ns):
            self._requests.publish(String(data=wanted))
            self._ask_again_ns = now_ns + int(MODE_PERIOD_S * 1e9)
        self._asked = wanted

    def _tell(self, now_ns: int) -> None:
        """Feedback, and the end of the goal."""
        if self._goal is None:
            return
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
            self._log.info(f"{self.settings.name}: no {self.missing} is known yet", throttle_duration_sec=5.0)
        else:
            message.index, message.count = state.item_index, state.item_count
            message.current = item_to_msg(state.params.current, self._shared.axes)
            message.previous = params_to_msg(state.params, self._shared.axes, "", 0).previous
            message.distance = state.distance
            done = state.item_count if state.finished else state.item_index
            message.progress = done / state.item_count if state.item_count else 1.0
        self._goal.publish_feedback(message)


def _reason(error: Exception) -> str:
    """In one line why a mission is not flown; of a file that can't be read its name first, as of one that is wrong."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())

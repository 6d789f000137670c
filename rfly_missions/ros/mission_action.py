"""The action `<name>/execute_mission` of one vehicle: goals, missions, feedback, ends. Part of
mission_node.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.task import Future
from rfly_suite.action import ExecuteMission

from rfly_common.errors import ConfigError, MissionFileError, WorkError
from rfly_common.geodesy import geodetic_to_ned, place_problem
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.run_loop import in_thread
from rfly_common.untrusted_files.asked_files import resolve_below, without_content
from rfly_missions.execution.runner import MissionRunner, RunnerState
from rfly_missions.mission.files import Mission, read_mission
from rfly_missions.mission.items import MissionItem
from rfly_missions.mission.mavlink_items import (
    is_carried_out,
    mavlink_command,
    terrain_altitude,
)
from rfly_missions.ros.mission_msgs import item_to_msg, msg_to_item, params_to_msg, point_to_ned
from rfly_missions.ros.node_parameters import MissionParameters

if TYPE_CHECKING:
    from rfly_missions.ros.mission_topics import MissionVehicle

FEEDBACK_PERIOD_S = 0.1
_REFUSALS = (ConfigError, ValueError, OSError, WorkError)
MAX_HOME_M = 100_000.0
"""a mission file whose home lies farther from the map's origin belongs to another map"""


class MissionAction:
    """Takes goals, one at a time: `start_waiting` and `update` carry it on at each tick of its
    vehicle.
    """

    def __init__(
        self,
        node: Node,
        vehicle: MissionVehicle,
        shared: MissionParameters,
        frames: Frames,
        diagnostics: Diagnostics,
    ) -> None:
        self._node = node
        self._vehicle = vehicle
        self._shared = shared
        self._frames = frames
        self._diagnostics = diagnostics
        self._log = node.get_logger()
        self._goal: Any = None
        self._ended: Future | None = None
        self._start: Callable[[], Awaitable[None]] | None = None
        """loads the goal's mission as soon as the vehicle is ready"""
        self._starting: Callable[[], Awaitable[None]] | None = None
        """that of them which has begun"""
        self._newest: Any = None
        self._reads = False
        self._replaced_after = 0
        self._next_feedback_ns = 0
        self._server = ActionServer(
            node,
            ExecuteMission,
            f"{vehicle.settings.name}/execute_mission",
            self._execute,
            goal_callback=lambda _goal: (
                GoalResponse.ACCEPT
            ),  # a refused goal carries no reason: it is aborted with one
            cancel_callback=self._cancel,
        )

    def destroy(self) -> None:
        """Take the action off the graph."""
        self._server.destroy()

    def feedback_due(self) -> None:
        """Feedback at the next update: another item is current, or the clock jumped back."""
        self._next_feedback_ns = 0

    def start_waiting(self) -> None:
        """Load the mission of a goal that came before the vehicle was ready."""
        executor = self._node.executor
        if (
            self._start is not None
            and self._start is not self._starting
            and self._vehicle.ready
            and executor
        ):
            self._starting = self._start
            executor.create_task(self._start_now, self._start)

    async def _start_now(self, start: Callable[[], Awaitable[None]]) -> None:
        if self._start is not start:
            return  # replaced meanwhile
        try:
            await start()
        except _REFUSALS as error:
            if self._start is start:
                self._end(_reason(error))
        if self._start is start:
            self._start = None

    def update(self, now_ns: int) -> None:
        """Feedback, and the end of the goal."""
        if self._goal is None:
            return
        state = self._vehicle.state if self._start is None else None
        if self._goal.is_cancel_requested:
            self._end("cancelled: holding")
        elif state is not None and state.breach:
            self._end(f"{state.breach} was breached: holding, then returning")
        elif state is not None and state.problem:
            self._end(f"{state.problem}: holding")
        elif state is not None and (state.returned or state.finished):
            self._publish_feedback(state)
            self._end("returned by command" if state.returned else "")
        elif now_ns >= self._next_feedback_ns:
            self._next_feedback_ns = now_ns + int(FEEDBACK_PERIOD_S * 1e9)
            self._publish_feedback(state)

    # --- goals

    async def _execute(self, handle: Any) -> Any:
        """Until the mission is finished, cancelled or replaced."""
        done = self._items_done()
        try:
            begin = self._prepared(handle.request)
            if not (handle.request.file and self._reads):
                self._newest = handle.request
            start = None if self._vehicle.ready else begin
            if start is None:
                await begin()
        except _REFUSALS as error:
            return self._aborted(handle, error)  # the mission that is being flown goes on
        self._end("replaced by a new goal")
        self._replaced_after = done
        self._start = start
        ended = Future(executor=self._node.executor)
        self._goal = handle
        self._ended = ended
        self._next_feedback_ns = 0
        message = await ended
        result = ExecuteMission.Result(message=message)
        if self._ended is ended:
            result.items_done = self._items_done()
            self._goal = None
            self._ended = None
            self._start = None
        else:
            result.items_done = self._replaced_after
        if handle.is_cancel_requested:
            handle.canceled()
        elif message:
            self._log.warning(f"{self._vehicle.settings.name}: mission aborted: {message}")
            handle.abort()
        else:
            result.success = True
            result.message = f"{result.items_done} items done"
            handle.succeed()
        return result

    def _aborted(self, handle: Any, error: Exception) -> Any:
        message = _reason(error)
        self._log.warning(f"{self._vehicle.settings.name}: mission refused: {message}")
        self._diagnostics.count("refused_missions")
        handle.abort()
        return ExecuteMission.Result(message=message)

    def _items_done(self) -> int:
        """Of the goal that has begun."""
        state = self._vehicle.state
        has_begun = self._goal is not None and self._start is None
        return state.items_done if state is not None and has_begun else 0

    def _cancel(self, handle: Any) -> Any:
        """HOLD at once; the next tick ends the goal."""
        if handle is self._goal:
            self._vehicle.hold()
        return CancelResponse.ACCEPT

    def _end(self, message: str) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(message)

    def _prepared(self, goal: Any) -> Callable[[], Awaitable[None]]:
        """What is to be done as soon as a pose is known; what can be checked before is checked now."""
        if goal.file:
            if len(goal.items):
                raise ConfigError("items: expected none where file is given")
            return lambda: self._load_file(goal)
        frame_id = goal.header.frame_id or self._shared.frame_id
        axes = self._frames.axes(frame_id)
        if axes is None:
            raise ConfigError(
                f"header.frame_id: {frame_id!r} is no world frame (parameters enu_frames, ned_frames)"
            )
        items = []
        for index, message in enumerate(goal.items):
            try:
                items.append(msg_to_item(message, axes))
            except ValueError as error:
                raise ConfigError(f"mission item {index}: {error}") from error
        if goal.home_source > ExecuteMission.Goal.HOME_FROM_POSE:
            raise ConfigError(
                f"home_source: {goal.home_source}, expected 0 goal, 1 parameter, 2 pose at start"
            )
        if (
            goal.home_source == ExecuteMission.Goal.HOME_FROM_PARAMETER
            and self._vehicle.settings.home is None
        ):
            raise ConfigError(
                f"home_source: 1, but the parameter {self._vehicle.settings.name}.home is not set"
            )
        MissionRunner(self._vehicle.settings.given.uav_type).load(
            items, start_index=goal.start_index
        )
        return lambda: self._load_items(goal, items, axes)

    async def _load_items(self, goal: Any, items: list[MissionItem], axes: str) -> None:
        sources = {
            ExecuteMission.Goal.HOME_FROM_GOAL: lambda: point_to_ned(goal.home, axes),
            ExecuteMission.Goal.HOME_FROM_PARAMETER: lambda: self._vehicle.settings.home,
            ExecuteMission.Goal.HOME_FROM_POSE: lambda: (self._vehicle.pose or (0.0,) * 4)[:3],
        }
        self._load(Mission(tuple(items), (0.0, 0.0, 0.0)), sources[goal.home_source](), goal)

    async def _load_file(self, goal: Any) -> None:
        vehicle = self._vehicle.settings
        if self._reads:
            raise ConfigError(
                f"{goal.file}: another mission file is being read: ask again when it is done"
            )
        self._reads = True
        try:  # a large file takes seconds; all vehicles go on meanwhile
            mission = await in_thread(
                self._node, lambda: self._read(goal.file, vehicle.given.loiter_radius)
            )
        finally:
            self._reads = False
        if isinstance(mission, ConfigError):
            raise mission
        if goal is not self._newest:
            raise ConfigError("replaced by a new goal")
        home: Any
        if self._vehicle.geo_origin is not None:
            home = geodetic_to_ned(mission.home, self._vehicle.geo_origin).tolist()
            away = math.hypot(home[0], home[1])
            unset = place_problem(self._vehicle.geo_origin)
            if unset:
                self._log.warning(f"{vehicle.name}: {goal.file}: {unset}")
            if away > MAX_HOME_M:
                raise ConfigError(
                    f"{goal.file}: home {mission.home} lies {away / 1000:.0f} km from the map's origin "
                    f"{self._vehicle.geo_origin}; {unset or 'set geo_origin of terrain_node to where the mission is'}"
                )
            mission = mission.about(self._vehicle.geo_origin)
        else:
            home = vehicle.home or (self._vehicle.pose or (0.0,) * 4)[:3]
            self._log.info(
                f"{vehicle.name}: no map origin is known: home of {goal.file} is placed at {list(home)} NED"
            )
            mission = mission.moved(home)
        for text in mission.lost:
            self._log.warning(f"{vehicle.name}: {goal.file}: {text}")
        if mission.custom:
            listed = ", ".join(f"{index} ({command})" for index, command in mission.custom)
            self._log.info(f"{vehicle.name}: {goal.file}: CUSTOM items (MAVLink command): {listed}")
        self._load(mission, home, goal)

    def _read(self, name: str, loiter_radius: float) -> Mission | ConfigError:
        """The mission file that a peer names, or what is wrong, without a word of its content. In a
        thread.
        """
        terrain = self._vehicle.terrain
        origin = self._vehicle.geo_origin
        try:
            path = resolve_below(name, self._shared.file_folders, "file_folders")
        except ConfigError as error:
            return error
        try:
            return read_mission(
                path,
                default_radius=self._shared.default_radius,
                loiter_radius=loiter_radius,
                terrain=None
                if terrain is None or origin is None
                else terrain_altitude(terrain, origin),
            )
        except (MissionFileError, OSError) as error:
            return ConfigError(without_content(name, error, path, f"rfly mission check {path}"))

    def _load(self, mission: Mission, home: Any, goal: Any) -> None:
        self._vehicle.load(mission, home, goal)
        for index, item in enumerate(mission.items):
            command = mavlink_command(item)
            if command is not None and not is_carried_out(command):
                self._log.warning(
                    f"{self._vehicle.settings.name}: mission item {index}: command {command} is not carried out here; "
                    f"it ends when {self._vehicle.done_topic} says so"
                )

    def _publish_feedback(self, state: RunnerState | None) -> None:
        """Without a state nothing has begun: no pose is known yet, the distance is NaN."""
        if not self._goal.is_active:
            return
        message = ExecuteMission.Feedback(distance=math.nan)
        if state is None:
            message.index = self._goal.request.start_index
            message.count = len(self._goal.request.items)
            self._log.info(
                f"{self._vehicle.settings.name}: no {self._vehicle.missing} is known yet",
                throttle_duration_sec=5.0,
            )
        else:
            message.index = state.item_index
            message.count = state.item_count
            message.current = item_to_msg(state.params.current, self._shared.axes)
            message.previous = params_to_msg(state.params, self._shared.axes, "", 0).previous
            message.distance = state.distance
            done = state.item_count if state.finished else state.item_index + state.item_share
            message.progress = done / state.item_count if state.item_count else 1.0
        self._goal.publish_feedback(message)


def _reason(error: Exception) -> str:
    """In one line why a mission is not flown; of a file that can't be read its name first, as of
    one that is wrong.
    """
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The action `<name>/execute_mission` of one vehicle of mission_node: goals and feedback."""

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
from rfly_common.untrusted_files.allowed_folders import resolve_below, without_content
from rfly_missions.execution.runner import MissionRunner, RunnerState
from rfly_missions.mission.files import Mission, read_mission
from rfly_missions.mission.items import MissionItem
from rfly_missions.mission.mavlink_items import (
    ends_by_report,
    terrain_altitude,
)
from rfly_missions.ros.mission_msgs import item_to_msg, msg_to_item, params_to_msg, point_to_ned
from rfly_missions.ros.node_parameters import MissionParameters

if TYPE_CHECKING:
    from rfly_missions.ros.mission_topics import MissionVehicle

FEEDBACK_PERIOD_S = 0.1
"""Time between two feedback messages, s."""
MAX_HOME_M = 100_000.0
"""Distance of home from the map's origin, m, beyond which a mission file belongs to another map."""
_REFUSALS = (ConfigError, ValueError, OSError, WorkError)


class MissionAction:
    """The action server of one vehicle, for one goal at a time.

    `start_waiting` and `update` carry the goal on at each tick of the vehicle.
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
        """Loads the goal's mission as soon as the vehicle is ready."""
        self._starting: Callable[[], Awaitable[None]] | None = None
        """The start that is being carried out."""
        self._newest: Any = None
        """The newest goal; a file that is still being read for an older one is dropped."""
        self._reads_file = False
        self._replaced_after = 0
        """Number of items that the replaced goal had done."""
        self._next_feedback_ns = 0

        self._server = ActionServer(
            node,
            ExecuteMission,
            f"{vehicle.settings.name}/execute_mission",
            self._execute,
            # a refused goal carries no reason: it is accepted, and aborted with one
            goal_callback=lambda _goal: GoalResponse.ACCEPT,
            cancel_callback=self._cancel,
        )

    def destroy(self) -> None:
        """Take the action off the graph."""
        self._server.destroy()

    def feedback_due(self) -> None:
        """Send feedback at the next update: another item is current, or the clock jumped back."""
        self._next_feedback_ns = 0

    def start_waiting(self) -> None:
        """Load the mission of a goal that came before the vehicle was ready."""
        executor = self._node.executor
        waits = self._start is not None and self._start is not self._starting
        if self._start is not None and waits and self._vehicle.ready and executor:
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
        """Send feedback, and end the goal."""
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
        """Carry out a goal until the mission is finished, cancelled or replaced."""
        done = self._items_done()
        try:
            begin = self._prepared(handle)
            if not (handle.request.file and self._reads_file):
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

        # the end
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
            items = "1 item" if result.items_done == 1 else f"{result.items_done} items"
            result.message = f"{items} done"
            handle.succeed()
        return result

    def _aborted(self, handle: Any, error: Exception) -> Any:
        message = _reason(error)
        self._log.warning(f"{self._vehicle.settings.name}: mission refused: {message}")
        self._diagnostics.count("refused_missions")
        handle.abort()
        return ExecuteMission.Result(message=message)

    def _items_done(self) -> int:
        """Return the number of items done by the goal that has begun."""
        state = self._vehicle.state
        has_begun = self._goal is not None and self._start is None
        return state.items_done if state is not None and has_begun else 0

    def _cancel(self, handle: Any) -> Any:
        """Hold immediately; the next tick ends the goal."""
        if handle is self._goal:
            self._vehicle.hold()
        return CancelResponse.ACCEPT

    def _end(self, message: str) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(message)

    def _prepared(self, handle: Any) -> Callable[[], Awaitable[None]]:
        """Check a goal as far as possible, and return the rest, for as soon as a pose is known."""
        goal = handle.request
        if goal.file:
            if len(goal.items):
                raise ConfigError("items: expected none where file is given")
            return lambda: self._load_file(handle)

        frame_id = goal.header.frame_id or self._shared.frame_id
        axes = self._frames.axes(frame_id)
        if axes is None:
            raise ConfigError(
                f"header.frame_id: {frame_id!r} is no world frame "
                "(parameters enu_frames, ned_frames)"
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
        needs_home = goal.home_source == ExecuteMission.Goal.HOME_FROM_PARAMETER
        if needs_home and self._vehicle.settings.home is None:
            raise ConfigError(
                f"home_source: 1, but the parameter {self._vehicle.settings.name}.home is not set"
            )

        checked = MissionRunner(self._vehicle.settings.params.uav_type)
        checked.load(items, start_index=goal.start_index)
        return lambda: self._load_items(handle, items, axes)

    async def _load_items(self, handle: Any, items: list[MissionItem], axes: str) -> None:
        goal = handle.request
        sources = {
            ExecuteMission.Goal.HOME_FROM_GOAL: lambda: point_to_ned(goal.home, axes),
            ExecuteMission.Goal.HOME_FROM_PARAMETER: lambda: self._vehicle.settings.home,
            ExecuteMission.Goal.HOME_FROM_POSE: lambda: (self._vehicle.pose or (0.0,) * 4)[:3],
        }
        self._load(Mission(tuple(items), (0.0, 0.0, 0.0)), sources[goal.home_source](), handle)

    async def _load_file(self, handle: Any) -> None:
        """Read the goal's file in a thread, and load its mission."""
        goal = handle.request
        vehicle = self._vehicle.settings
        if self._reads_file:
            raise ConfigError(
                f"{goal.file}: another mission file is being read: ask again when it is done"
            )
        self._reads_file = True
        try:  # a large file takes seconds; all vehicles go on meanwhile
            mission = await in_thread(
                self._node, lambda: self._read(goal.file, vehicle.params.loiter_radius)
            )
        finally:
            self._reads_file = False

        if isinstance(mission, ConfigError):
            raise mission
        if goal is not self._newest:
            raise ConfigError("replaced by a new goal")

        # home
        home: Any
        if self._vehicle.geo_origin is not None:
            home = geodetic_to_ned(mission.home, self._vehicle.geo_origin).tolist()
            away = math.hypot(home[0], home[1])
            unset = place_problem(self._vehicle.geo_origin)
            if unset:
                self._log.warning(f"{vehicle.name}: {goal.file}: {unset}")
            if away > MAX_HOME_M:
                place = f"home {mission.home} lies {away / 1000:.0f} km from the map's origin"
                advice = unset or "set geo_origin of terrain_node to where the mission is"
                raise ConfigError(f"{goal.file}: {place} {self._vehicle.geo_origin}; {advice}")
            mission = mission.about(self._vehicle.geo_origin)
        else:
            home = vehicle.home or (self._vehicle.pose or (0.0,) * 4)[:3]
            self._log.info(
                f"{vehicle.name}: no map origin is known: "
                f"home of {goal.file} is placed at {list(home)} NED"
            )
            mission = mission.moved(home)

        for text in mission.lost:
            self._log.warning(f"{vehicle.name}: {goal.file}: {text}")
        if mission.custom:
            listed = ", ".join(f"{index} ({command})" for index, command in mission.custom)
            self._log.info(f"{vehicle.name}: {goal.file}: CUSTOM items (MAVLink command): {listed}")
        self._load(mission, home, handle)

    def _read(self, name: str, loiter_radius: float) -> Mission | ConfigError:
        """Return the mission of a peer's file, or an error without its content. In a thread."""
        terrain = self._vehicle.terrain
        origin = self._vehicle.geo_origin
        try:
            path = resolve_below(name, self._shared.file_folders, "file_folders")
        except ConfigError as error:
            return error

        altitude = None
        if terrain is not None and origin is not None:
            altitude = terrain_altitude(terrain, origin)
        try:
            return read_mission(
                path,
                default_radius=self._shared.default_radius,
                loiter_radius=loiter_radius,
                terrain=altitude,
            )
        except (MissionFileError, OSError) as error:
            return ConfigError(without_content(name, error, path, f"rfly mission check {path}"))

    def _load(self, mission: Mission, home: Any, handle: Any) -> None:
        self._vehicle.load(mission, home, handle.request, handle.goal_id.uuid)

        for index, item in enumerate(mission.items):
            text = ends_by_report(item)
            if text:
                self._log.warning(
                    f"{self._vehicle.settings.name}: mission item {index}: {text}; "
                    f"it ends when {self._vehicle.done_topic} says so"
                )

    def _publish_feedback(self, state: RunnerState | None) -> None:
        """Publish feedback; without a state no pose is known yet, and the distance is NaN."""
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
            message.previous = params_to_msg(state, self._shared.axes, "", 0).previous
            message.distance = state.distance
            done = state.item_count if state.finished else state.item_index + state.item_share
            message.progress = done / state.item_count if state.item_count else 1.0

        self._goal.publish_feedback(message)


def _reason(error: Exception) -> str:
    """Return in one line why a mission is not flown.

    It begins with the name of a file that can't be read.
    """
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())

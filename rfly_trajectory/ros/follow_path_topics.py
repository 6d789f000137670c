# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`<name>/follow_path`: paths for single vehicles. Part of trajectory_node."""

from __future__ import annotations

import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from nav_msgs.msg import Path as PathMessage
from rclpy.node import Node

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError, FrameError, WorkError
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.qos import LATCHED
from rfly_common.ros.run_loop import in_thread
from rfly_common.ros.stamps import stamp_to_ns
from rfly_terrain.ros.plan_msgs import path_to_points
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.fleet.follow_path import (
    MAX_POSES,
    Reference,
    TakeOver,
    brake_to_stop,
    follow,
    reference_paths,
    replace_vehicles,
)

FRAME_TIMEOUT_S = 2.0
"""Time after which a path without a transform of its frame causes a warning, s."""


class _NextTask(NamedTuple):
    """Next task of a vehicle."""

    paths: tuple[Reference, ...]
    """Paths, one after the other with a stop between them; none: stop."""
    not_before: float = 0.0
    """Earliest fleet time, s."""


class FollowPaths:
    """Paths that the vehicles are to follow, until a tick of the node takes them (`take_over`).

    `on_refused()` is called when something is refused. Long paths are computed in a thread, for
    each vehicle one at a time and the newest first; the fleet drives on meanwhile.
    """

    def __init__(self, node: Node, frame_id: str, on_refused: Callable[[], None]) -> None:
        self._node = node
        self._frame_id = frame_id
        self._on_refused = on_refused
        self.frames = Frames(node, listen=False)
        self._subscriptions: dict[str, Any] = {}
        self._vehicles: dict[str, Vehicle] = {}
        self._numbers = itertools.count()
        self._newest: dict[str, int] = {}
        """Number of the last message, by name."""
        self._unplaced: dict[str, tuple[PathMessage, float]] = {}
        """Messages whose frame is not connected yet, with the time of the warning.

        It is inf after the warning.
        """
        self._points: dict[str, tuple[Floats, Floats | None]] = {}
        """Points of the next path, by name: (k, 3) ENU and headings (k,) or None."""
        self._making: set[str] = set()
        self._made: deque[tuple[str, int, tuple[Reference, ...], str]] = deque()
        """Name, number, paths or None, and the problem."""
        self._wanted: dict[str, _NextTask] = {}
        self.refused: dict[str, str] = {}
        """Reason why the last path of a vehicle is not followed, by name."""
        told = (self._unplaced, self._points, self._wanted, self.refused, self._newest)
        self._memories: tuple[dict[str, Any], ...] = told
        self.following: list[str] = []
        """Names of the vehicles that have left their fleet's path."""

    def use(self, vehicles: Sequence[Vehicle]) -> None:
        """Let these vehicles of a fleet take paths from now on, and no others."""
        self._vehicles = {vehicle.name: vehicle for vehicle in vehicles}
        for name in self._subscriptions.keys() - self._vehicles.keys():
            self._node.destroy_subscription(self._subscriptions.pop(name))
            self.release(name)
            self.following = [each for each in self.following if each != name]
        for name in self._vehicles.keys() - self._subscriptions.keys():
            self._subscriptions[name] = self._subscribe(name)

    def release(self, name: str) -> None:
        """Forget the path of a vehicle that was moved off it by hand."""
        for memory in self._memories:
            memory.pop(name, None)
        self.following = sorted({*self.following, name})

    def forget(self) -> None:
        """Forget all paths: the fleet restarts."""
        for memory in self._memories:
            memory.clear()
        self.following = []

    def take_over(self, fleet: Fleet, fleet_time: float) -> tuple[Fleet, list[int]] | None:
        """Return the fleet from now on, and the indices of the vehicles that changed.

        Return None if none did.
        """
        for name in list(self._unplaced):
            message, deadline = self._unplaced[name]
            self._add_path(name, message, deadline)

        while self._made:
            self._accept(*self._made.popleft())

        # vehicles whose turn has come
        due = [name for name, wanted in self._wanted.items() if fleet_time >= wanted.not_before]
        if not due:
            return None
        index = {vehicle.name: i for i, vehicle in enumerate(fleet.vehicles)}
        changed = {}
        for name in due:
            wanted = self._wanted.pop(name)
            try:
                taken = self._change(fleet, index[name], fleet_time, wanted, name)
            except ConfigError as error:
                self._refuse(name, str(error))
                continue
            changed[index[name]] = taken.vehicle
            self.following = sorted({*self.following, name})

        return replace_vehicles(fleet, changed), sorted(changed)

    def _change(
        self, fleet: Fleet, index: int, fleet_time: float, wanted: _NextTask, name: str
    ) -> TakeOver:
        if not wanted.paths:
            return brake_to_stop(fleet, index, fleet_time)
        reference, *later = wanted.paths
        taken = follow(fleet, index, fleet_time, reference)
        if taken is None:  # it drives the other way
            taken = brake_to_stop(fleet, index, fleet_time)
            later = [*wanted.paths]
        if later:
            self._wanted[name] = _NextTask(tuple(later), taken.stop_time)
        return taken

    def _subscribe(self, name: str) -> Any:
        return subscription(
            self._node,
            PathMessage,
            f"{name}/follow_path",
            lambda message: self._on_follow_path(name, message),
            LATCHED,
        )

    def _on_follow_path(self, name: str, message: Any) -> None:
        self._newest[name] = next(self._numbers)
        self._unplaced.pop(name, None)
        if len(message.poses) > MAX_POSES:
            self._refuse(
                name, f"poses: {len(message.poses)} of them, at most {MAX_POSES} are taken"
            )
        elif not message.poses:
            self._made.append((name, self._newest[name], (), ""))
        else:
            self._add_path(name, message, time.monotonic() + FRAME_TIMEOUT_S)

    def _add_path(self, name: str, message: Any, deadline: float) -> None:
        """Convert a message's poses to ENU and have its path computed.

        A message waits for the transform of its frame.
        """
        frame = message.header.frame_id or self._frame_id
        try:
            to_world = self.frames.resolve(frame, stamp_to_ns(message.header.stamp))
        except FrameError as error:
            self.frames.listen()
            late = time.monotonic() > deadline
            self._unplaced[name] = (message, math.inf if late else deadline)
            if late:
                self._refuse(name, str(error))
            return

        self._unplaced.pop(name, None)
        self._points[name] = path_to_points(message, to_world)
        executor = self._node.executor
        if name not in self._making and executor is not None:
            self._making.add(name)
            executor.create_task(self._make, name)

    async def _make(self, name: str) -> None:
        while (points := self._points.pop(name, None)) is not None and name in self._vehicles:
            number = self._newest[name]
            vehicle = self._vehicles[name]
            try:
                paths, error = await in_thread(
                    self._node, partial(_paths_or_error, vehicle, *points)
                )
            except WorkError as reason:
                paths = ()
                error = str(reason)
            self._made.append((name, number, paths, error))
        self._making.discard(name)

    def _accept(self, name: str, number: int, paths: tuple[Reference, ...], error: str) -> None:
        if number != self._newest.get(name):
            return  # a newer message has come, or the fleet was restarted
        if error:
            self._refuse(name, error)
            return
        self.refused.pop(name, None)
        self._wanted[name] = _NextTask(paths)
        what = (
            f"follows a path of {sum(each.path.length for each in paths):.1f} m"
            if paths
            else "stops"
        )
        self._node.get_logger().info(f"vehicle {name!r} {what}")

    def _refuse(self, name: str, reason: str) -> None:
        self.refused[name] = " ".join(reason.split())
        self._node.get_logger().warning(
            f"vehicle {name!r} does not follow the path: {self.refused[name]}"
        )
        self._on_refused()


def _paths_or_error(
    vehicle: Vehicle, points: Floats, heading: Floats | None
) -> tuple[tuple[Reference, ...], str]:
    try:
        return reference_paths(vehicle, points, heading), ""
    except ConfigError as error:
        return (), str(error)

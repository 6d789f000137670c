# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Services of placed objects, and the latched `placed_objects`. Part of ue_bridge_node.

RflySim3D keeps objects, but a window that was restarted or has changed its map has lost them: all
objects are sent again in turn, each once in `objects_resend_period`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.timer import Timer
from rfly_suite.msg import PlacedObjectArray, VehicleStateArray
from rfly_suite.srv import ListObjects, MoveObject, PlaceObject, RemoveObject

from rfly_common.errors import ConfigError, FrameError, PlacementError
from rfly_common.ros.diagnostics import ERROR, OK, Diagnostics
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import LATCHED, STATE_OUT
from rfly_common.ros.vehicle_msgs import states_to_msg
from rfly_common.state_sources import IdOwners
from rfly_common.transform_buffer import FrameToWorld
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.terrain_topics import NO_MAP_YET, NOT_YET, LatestTerrain
from rfly_terrain.world.world_file import load_world
from rfly_ue_bridge.codec.ned_states import NedStates
from rfly_ue_bridge.objects.placement import (
    ObjectRegistry,
    PlacedObject,
    Placement,
    place,
    place_in_enu,
    world_to_placed,
)
from rfly_ue_bridge.ros.node_parameters import ObjectParameters
from rfly_ue_bridge.ros.placement_msgs import (
    moving_to_states,
    placement_to_msg,
    placement_to_pose,
    request_to_object,
)
from rfly_ue_bridge.ros.state_topics import REMOVALS_SENT

OWNER = "place_object"
"""Source of objects, as the bridge names it."""
TURNS_PER_PERIOD = 10
"""Portions in which the objects are sent again, not all at once."""
LEAST_PERIOD_S = 0.1
"""Shortest `objects_resend_period` above 0, s."""
SETTLE_S = 0.02
"""Time from a change to its message on `placed_objects`, s.

A list of thousands makes few messages, not thousands.
"""
SETTLE_SHARE = 10
"""Least ratio of the time between two messages to the time that one takes."""
MOVING_PERIOD_S = 0.05
"""Time between two poses of a moving object, s of the node's clock."""


class PlacedObjects:
    """Services and topics of placed objects; they own the registry.

    `send` shows states in RflySim3D, and `take_away` removes them there. `owners` keeps the ids of
    vehicles and objects apart. `terrain_changed` is called with the name of each new map.
    """

    def __init__(
        self,
        node: Node,
        frames: Frames,
        own_frame: str,
        owners: IdOwners,
        send: Callable[[NedStates], None],
        take_away: Callable[[NedStates], None],
        terrain_changed: Callable[[str], None],
    ) -> None:
        self._node = node
        self._frames = frames
        self._own_frame = own_frame
        self._owners = owners
        self._send = send
        self._take_away = take_away
        self._terrain_changed = terrain_changed
        self._registry = ObjectRegistry(
            lambda object_id: owners.owner_of(object_id, time.monotonic_ns())
        )

        self._ground = LatestTerrain(node, self._on_terrain_map)
        self._placement = place([], None)
        self._shown = self._placement.to_ned_states()
        self._leaving: dict[int, tuple[NedStates, int]] = {}
        self._turn = 0

        params = declare_parameters(node, ObjectParameters)
        self._period_s = params.objects_resend_period
        self._version = 0
        self._of_world = (
            world_to_placed(load_world(params.world), params.level_ground) if params.world else []
        )

        if 0.0 < self._period_s < LEAST_PERIOD_S:
            raise ConfigError(
                f"parameter objects_resend_period: {self._period_s} s, "
                f"expected 0 or {LEAST_PERIOD_S} and more"
            )

        self._moving = self._placement
        self._states = publisher(node, VehicleStateArray, "moving_objects", STATE_OUT)
        if any(each.path for each in self._of_world):
            node.create_timer(MOVING_PERIOD_S, self._send_moving)

        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._turns: Timer | None = None  # made with the first object, as is the next
        self._settling: Timer | None = None
        self._changed = False
        self._diagnostics = Diagnostics(node, "objects", "", self._update_diagnostics)
        self._array = publisher(node, PlacedObjectArray, "placed_objects", LATCHED)
        self._ground.start(self._diagnostics)

        node.create_service(PlaceObject, "place_object", self._serve_place)
        node.create_service(MoveObject, "move_object", self._serve_move)
        node.create_service(RemoveObject, "remove_object", self._serve_remove)
        node.create_service(ListObjects, "list_objects", self._serve_list)

        if not any(each.needs_terrain for each in self._of_world):
            self._take_world()
        self._array.publish(self._message())

    def _take_world(self) -> None:
        """Register the objects of the world, once there is ground for them to stand on."""
        for each in self._of_world:
            wanted = self._registry.checked(each)
            self._registry.keep(wanted)
            self._owners.reserve(wanted.id, OWNER)
        if self._of_world:
            self._of_world = []
            self._note_change()

    # --- services

    def _serve_place(self, request: Any, response: Any) -> Any:
        with self._answering(response):
            frame, pose = self._requested_place(request)
            self._put(self._registry.checked(request_to_object(request, pose)), frame, response)
        return response

    def _serve_move(self, request: Any, response: Any) -> Any:
        with self._answering(response):
            frame, pose = self._requested_place(request)
            self._put(self._registry.get(request.id).moved(**pose), frame, response)
        return response

    def _serve_remove(self, request: Any, response: Any) -> Any:
        with self._answering(response):
            removed = self._registry.remove(request.id)
            self._owners.release(removed.id)
            leaving = self._placed(removed).to_ned_states()
            self._leaving[removed.id] = (leaving, REMOVALS_SENT - 1)
            self._take_away(leaving)
            self._note_change()
        return response

    def _serve_list(self, _request: Any, response: Any) -> Any:
        if self._changed:
            self._settle()
        response.success = True
        response.objects = self._message()
        return response

    @contextlib.contextmanager
    def _answering(self, response: Any) -> Iterator[None]:
        """Set the response to success, or to the error that is raised within."""
        try:
            yield
            response.success = True
        except (PlacementError, FrameError) as error:
            self._diagnostics.count("refused")
            response.message = str(error)

    def _requested_place(self, request: Any) -> tuple[FrameToWorld, dict[str, Any]]:
        frame = self._frames.resolve(request.frame_id or self._own_frame)
        return frame, place_in_enu(request.x, request.y, request.yaw, frame, request.frame_id)

    def _put(self, wanted: PlacedObject, frame: FrameToWorld, response: Any) -> None:
        """Keep and show an object that has its id, and set its pose in the response."""
        placed = self._placed(wanted)
        self._registry.keep(wanted)
        self._owners.reserve(wanted.id, OWNER)
        self._leaving.pop(wanted.id, None)
        self._send(placed.to_ned_states())
        self._note_change()

        if hasattr(response, "id"):
            response.id = wanted.id
        response.pose = placement_to_pose(placed, frame)
        if self._ground.terrain is not None and not placed.inside[0]:
            response.message = (
                f"off the map {self._ground.terrain.name!r}: the altitude is that of its edge"
            )

    def _placed(self, wanted: PlacedObject) -> Placement:
        if self._ground.terrain is None and wanted.needs_terrain:
            reason = self._ground.error or NOT_YET
            raise PlacementError(
                f"{reason} (with use_ground_packet RflySim3D finds the ground itself)"
            )
        return place([wanted], self._ground.terrain)

    # --- the ground beneath

    def _on_terrain_map(self, terrain: HeightMap, _geo_origin: tuple[float, float, float]) -> None:
        """Put every object on the new terrain."""
        self._diagnostics.hardware_id = terrain.name
        self._terrain_changed(terrain.name)
        self._take_world()
        if len(self._registry):
            self._note_change()
            self._settle()
            self._send(self._shown)
        self._update_diagnostics()

    # --- shown objects

    def _note_change(self) -> None:
        self._changed = True
        if self._settling is None:
            self._settling = self._node.create_timer(SETTLE_S, self._settle, clock=self._steady)
            if self._period_s > 0:
                self._turns = self._node.create_timer(
                    self._period_s / TURNS_PER_PERIOD, self._send_portion, clock=self._steady
                )
        elif self._settling.is_canceled():
            self._settling.reset()

    def _settle(self) -> None:
        """Apply all changes, and publish them."""
        assert self._settling is not None
        self._settling.cancel()
        if not self._changed:
            return
        start_ns = time.monotonic_ns()
        self._changed = False
        self._version += 1

        self._placement = place(self._registry.objects, self._ground.terrain)
        moves = self._placement.moves
        self._moving = self._placement.select(moves)
        self._shown = self._placement.to_ned_states().select(~moves)
        self._array.publish(self._message())

        # with very many objects less often, so that the poses keep most of the time
        took_ns = time.monotonic_ns() - start_ns
        self._settling.timer_period_ns = max(round(SETTLE_S * 1e9), SETTLE_SHARE * took_ns)

    def _send_portion(self) -> None:
        """Send the next portion again: in turn k of a period the k-th tenth of the objects."""
        if self._changed:
            self._settle()
        n = len(self._shown)
        first, last = (n * turn // TURNS_PER_PERIOD for turn in (self._turn, self._turn + 1))
        if last > first:
            self._send(self._shown.select(slice(first, last)))

        self._turn = (self._turn + 1) % TURNS_PER_PERIOD
        if self._turn == 0:
            self._send_removals_again()

    def _send_moving(self) -> None:
        """Show the moving objects at their present places, and publish their states."""
        if self._changed:
            self._settle()
        if not len(self._moving):
            return
        now_ns = self._node.get_clock().now().nanoseconds
        moving = self._moving.at(now_ns * 1e-9)
        self._send(moving.to_ned_states())

        axes = self._frames.axes(self._own_frame) or "enu"
        source = self._node.get_fully_qualified_name()
        states = moving_to_states(moving, self._own_frame, axes, now_ns, source)
        self._states.publish(states_to_msg(states))

    def _send_removals_again(self) -> None:
        now_ns = time.monotonic_ns()
        for object_id, (states, left) in list(self._leaving.items()):
            # a vehicle may have taken the id over
            if left == 0 or self._owners.owner_of(object_id, now_ns):
                del self._leaving[object_id]
                continue
            self._leaving[object_id] = (states, left - 1)
            self._take_away(states)

    def _message(self) -> PlacedObjectArray:
        axes = self._frames.axes(self._own_frame) or "enu"
        now_ns = self._node.get_clock().now().nanoseconds
        placement = self._placement.at(now_ns * 1e-9)
        return placement_to_msg(placement, self._own_frame, axes, now_ns, self._version)

    def _update_diagnostics(self) -> None:
        terrain = "" if self._ground.terrain is None else self._ground.terrain.name
        off_map = int((~self._placement.inside).sum())
        problem = self._ground.problem
        self._diagnostics.set_first(
            [
                (problem, ERROR, problem),
                (self._ground.terrain is None, OK, NO_MAP_YET),
                (True, OK, "placing"),
            ],
            objects=len(self._registry),
            off_map=off_map,
            terrain=terrain,
        )

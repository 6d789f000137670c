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

import numpy as np
from geometry_msgs.msg import Pose
from rclpy.node import Node
from rclpy.timer import Timer
from rfly_suite.msg import PlacedObjectArray, VehicleStateArray
from rfly_suite.srv import ListObjects, MoveObject, PlaceObject, RemoveObject

from rfly_common.config.vehicle_models import type_number
from rfly_common.errors import ConfigError, FrameError, PlacementError
from rfly_common.frames import enu_to_ned
from rfly_common.ros.diagnostics import ERROR, OK, Diagnostics
from rfly_common.ros.endpoints import publisher, steady_timer
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import LATCHED, STATE_OUT
from rfly_common.ros.stamps import fill_header
from rfly_common.ros.vehicle_msgs import states_to_msg
from rfly_common.state_sources import IdOwners
from rfly_common.transform_buffer import FrameToWorld
from rfly_common.vehicle_states import VehicleStates
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
    poses_in_frame,
    world_to_placed,
)
from rfly_ue_bridge.ros.node_parameters import ObjectParameters
from rfly_ue_bridge.ros.state_topics import REMOVALS_SENT


def request_to_object(request: Any, place: dict[str, Any]) -> PlacedObject:
    """Return the object of a PlaceObject request whose place is given in ENU.

    A scale of 0 0 0 means 1. Raises PlacementError.
    """
    scale = (request.scale.x, request.scale.y, request.scale.z)
    if not any(scale):
        scale = (1.0, 1.0, 1.0)

    vehicle_type = request.vehicle_type
    if request.model:
        try:
            vehicle_type = type_number(request.model)
        except ConfigError as error:
            raise PlacementError(f"model: {error}") from None

    size = request.size
    return PlacedObject(
        id=request.id,
        vehicle_type=vehicle_type,
        offset=request.offset,
        use_ground_packet=request.use_ground_packet,
        size=(size.x, size.y, size.z),
        scale=scale,
        **place,
    )


def placement_to_pose(placement: Placement, frame: FrameToWorld) -> Pose:
    """Return the pose of the only object, in a frame."""
    position, orientation = poses_in_frame(placement.position, placement.yaw, frame)
    pose = Pose()
    p = pose.position
    q = pose.orientation
    p.x, p.y, p.z = position[0].tolist()
    q.x, q.y, q.z, q.w = orientation[0].tolist()
    return pose


def placement_to_msg(
    placement: Placement, frame_id: str, axes: str, stamp_ns: int, version: int = 0
) -> PlacedObjectArray:
    """Return the message of all objects in a world frame whose axes are enu or ned.

    Each different model is in it once.
    """
    objects = placement.objects
    models = [o.model for o in objects]
    paths = placement.paths or (None,) * len(objects)

    # models that a receiver cannot draw as a box, by identity
    solids = {
        id(model): model
        for model, path in zip(models, paths, strict=True)
        if model is not None and not (path is None and model.is_box)
    }
    row = {key: index for index, key in enumerate(solids)}
    parts = [part for model in solids.values() for part in model.parts]
    part_colors = [color for model in solids.values() for color in model.colors]
    surfaces = [
        np.empty((0, 3, 3)) if model.surface is None else model.surface for model in solids.values()
    ]

    position, orientation = poses_in_frame(placement.position, placement.yaw, FrameToWorld(axes))
    box = placement.box_origin
    message = PlacedObjectArray(
        id=flat("i", [o.id for o in objects]),
        vehicle_type=flat("i", [o.vehicle_type for o in objects]),
        position=flat("d", position),
        orientation=flat("d", orientation),
        box_origin=flat("d", np.asarray(enu_to_ned(box)) + 0.0 if axes == "ned" else box),
        box_half_extent=flat("d", placement.box_half_extent),
        offset=flat("d", [o.offset for o in objects]),
        scale=flat("f", [o.scale for o in objects]),
        use_ground_packet=flat("B", [o.use_ground_packet for o in objects]),
        class_id=flat("B", [0 if model is None else model.class_id for model in models]),
        color=flat("B", [(0, 0, 0) if model is None else model.color for model in models]),
        solid=flat("i", [row.get(id(model), -1) for model in models]),
        solid_parts=flat("i", [len(model.parts) for model in solids.values()]),
        part_vertices=flat("i", [len(part) for part in parts]),
        vertices=flat("d", np.concatenate(parts) if parts else ()),
        part_color=flat(
            "B", part_colors if any(model.part_colors for model in solids.values()) else ()
        ),
        solid_triangles=flat("i", [len(surface) for surface in surfaces]),
        triangles=flat("f", np.concatenate(surfaces) if surfaces else ()),
        version=version % 2**32,
    )

    if placement.paths:
        corners = np.concatenate([path.corners for path in paths if path is not None])
        message.path_corners = flat("i", [len(path.corners) if path else 0 for path in paths])
        message.path = flat(
            "d", np.asarray(enu_to_ned(corners)) + 0.0 if axes == "ned" else corners
        )
        message.path_speed = flat("d", [path.speed if path else 0.0 for path in paths])
        message.path_start = flat("d", [path.start if path else 0.0 for path in paths])
        message.path_loops = flat("B", [bool(path and path.loop) for path in paths])

    return fill_header(message, stamp_ns, frame_id)


def moving_to_states(
    moving: Placement, frame_id: str, axes: str, stamp_ns: int, source: str
) -> VehicleStates:
    """Return the states of moving objects, in a world frame whose axes are enu or ned."""
    position, orientation = poses_in_frame(moving.position, moving.yaw, FrameToWorld(axes))
    velocity = np.asarray(moving.velocity, np.float32)
    return VehicleStates(
        id=np.array([o.id for o in moving.objects]),
        vehicle_type=np.array([o.vehicle_type for o in moving.objects]),
        position=position,
        orientation=orientation,
        velocity=np.asarray(enu_to_ned(velocity)) if axes == "ned" else velocity,
        scale=np.array([o.scale for o in moving.objects], np.float32),
        frame_id=frame_id,
        source=source,
        stamp_ns=stamp_ns,
    )


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

        self._turns: Timer | None = None  # made with the first object, as is the next
        self._settling: Timer | None = None
        self._changed = False
        self._diagnostics = Diagnostics(
            node, "objects", "", self._update_diagnostics, check_peers=False
        )
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
            self._settling = steady_timer(self._node, SETTLE_S, self._settle)
            if self._period_s > 0:
                self._turns = steady_timer(
                    self._node, self._period_s / TURNS_PER_PERIOD, self._send_portion
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

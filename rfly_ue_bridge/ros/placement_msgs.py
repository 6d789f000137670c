# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Placed objects <-> rfly_suite/PlacedObjectArray, and single poses."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Pose
from rfly_suite.msg import PlacedObjectArray

from rfly_common.config.vehicle_models import type_number
from rfly_common.errors import ConfigError, PlacementError
from rfly_common.frames import enu_to_ned
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.stamps import ns_to_stamp
from rfly_common.transform_buffer import FrameToWorld
from rfly_common.vehicle_states import VehicleStates
from rfly_ue_bridge.objects.placement import PlacedObject, Placement, poses_in_frame


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

    message.header.frame_id = frame_id
    message.header.stamp = ns_to_stamp(stamp_ns)
    return message


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

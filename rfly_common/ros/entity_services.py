# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Entities of a simulation by simulation_interfaces, under the node's name.

They are listed, described, read and set. Part of amphibious_sim_node and trajectory_node. Names
that differ between versions 1 and 2.1 of the interfaces are both read. Codes are those that the
comments of the interfaces define.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from rclpy.node import Node
from simulation_interfaces.msg import (
    Bounds,
    EntityCategory,
    EntityState,
    Result,
    SimulatorFeatures,
    TagsFilter,
)
from simulation_interfaces.srv import (
    GetEntities,
    GetEntitiesStates,
    GetEntityInfo,
    GetEntityState,
    SetEntityState,
)

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_array, unit_quaternion
from rfly_common.errors import ConfigError, PlacementError
from rfly_common.frames import (
    ned_to_enu,
    quat_ned_flu_to_ned_frd,
    quat_ned_frd_to_enu_flu,
    quat_rotate,
)
from rfly_common.ros.simulation_services import NO_GROUND, result
from rfly_common.ros.stamps import fill_header
from rfly_common.transform_buffer import WORLD
from rfly_common.vehicle_states import FARTHEST

# <regex.h> of glibc
_REG_EXTENDED = 1
_REG_NOSUB = 8
_REGEX_BYTES = 256
"""More than sizeof(regex_t)."""
_ERROR_BYTES = 100


class PosixRegex:
    """A compiled expression. Raises ValueError with the C library's reason for an invalid one."""

    def __init__(self, pattern: str) -> None:
        self._libc = ctypes.CDLL(None)
        compiled = ctypes.create_string_buffer(_REGEX_BYTES)
        code = self._libc.regcomp(compiled, pattern.encode(), _REG_EXTENDED | _REG_NOSUB)
        if code:
            reason = ctypes.create_string_buffer(_ERROR_BYTES)
            self._libc.regerror(code, compiled, reason, len(reason))
            raise ValueError(reason.value.decode())
        self._compiled = compiled

    def __del__(self) -> None:
        if hasattr(self, "_compiled"):
            self._libc.regfree(self._compiled)

    def found_in(self, text: str) -> bool:
        """Return whether some part of the text matches."""
        return bool(self._libc.regexec(self._compiled, text.encode(), 0, None, 0) == 0)


ROBOT = EntityCategory.CATEGORY_ROBOT
HUMAN = EntityCategory.CATEGORY_HUMAN
FEATURES = (
    SimulatorFeatures.ENTITY_TAGS,
    SimulatorFeatures.ENTITY_BOUNDS_BOX,
    SimulatorFeatures.ENTITY_CATEGORIES,
    SimulatorFeatures.ENTITY_STATE_GETTING,
    SimulatorFeatures.ENTITY_STATE_SETTING,
    SimulatorFeatures.ENTITY_INFO_GETTING,
)
MAX_FILTER = 200
"""Characters of a regular expression."""


class EntityMotion(NamedTuple):
    """Motion of one entity, ENU, in SI units; vectors (3,), orientation (4,) xyzw.

    Velocities and accelerations are in the axes of the world.
    """

    position: Floats
    orientation: Floats
    velocity: Floats
    angular_velocity: Floats
    acceleration: Floats
    angular_acceleration: Floats


class Entity(NamedTuple):
    """Description of an entity."""

    name: str
    category: int
    description: str
    tags: Sequence[str]
    low: Floats
    """Lowest corner of its box in its own axes (FLU), (3,), m."""
    high: Floats
    """Highest corner of its box, (3,), m."""


class Pose(NamedTuple):
    """Pose of base_link (FLU) in the world (ENU): m, and xyzw of length 1."""

    position: Floats
    orientation: Floats


class Twist(NamedTuple):
    """Velocities in the axes of the world, m/s and rad/s."""

    linear: Floats
    angular: Floats


class Entities(Protocol):
    """Interface of the simulation whose entities the services handle."""

    def entities(self) -> Sequence[Entity] | None:
        """Return all entities; None while there is no ground."""

    def motions(self, indices: Sequence[int]) -> tuple[int, Sequence[EntityMotion]]:
        """Return the time, ns, and the motions of the entities with these indices."""

    def put(self, index: int, pose: Pose | None, twist: Twist | None) -> None:
        """Set an entity's pose and velocity; None leaves it as it is.

        Raises PlacementError for an impossible pose, and ConfigError.
        """


class EntityServices:
    """Services for entities.

    `axes` returns "enu" or "ned" for a world frame, None for any other frame.
    """

    def __init__(self, node: Node, entities: Entities, axes: Callable[[str], str | None]) -> None:
        self._entities = entities
        self._axes = axes
        node.create_service(GetEntities, "~/get_entities", self._get_entities)
        node.create_service(GetEntitiesStates, "~/get_entities_states", self._get_states)
        node.create_service(GetEntityInfo, "~/get_entity_info", self._get_info)
        node.create_service(GetEntityState, "~/get_entity_state", self._get_state)
        node.create_service(SetEntityState, "~/set_entity_state", self._set_state)

    def _get_entities(self, request: Any, response: Any) -> Any:
        response.result, chosen = self._chosen(request.filters)
        response.entities = [entity.name for _, entity in chosen]
        return response

    def _get_states(self, request: Any, response: Any) -> Any:
        response.result, chosen = self._chosen(request.filters)
        response.entities = [entity.name for _, entity in chosen]
        response.states = self._states([index for index, _ in chosen]) if chosen else []
        return response

    def _get_info(self, request: Any, response: Any) -> Any:
        response.result, _, entity = self._found(request.entity)
        if entity is not None:
            response.info.category.category = entity.category
            response.info.description = entity.description
            response.info.tags = list(entity.tags)
        return response

    def _get_state(self, request: Any, response: Any) -> Any:
        response.result, index, entity = self._found(request.entity)
        if entity is not None:
            (response.state,) = self._states([index])
        return response

    def _set_state(self, request: Any, response: Any) -> Any:
        response.result, index, entity = self._found(request.entity)
        if entity is None:
            return response

        # since version 2.1 of the interfaces
        with_pose = getattr(request, "set_pose", True)
        with_twist = getattr(request, "set_twist", True)
        try:
            axes = axes_of(request.state.header.frame_id, self._axes)
            pose = msg_to_pose(request.state.pose, axes) if with_pose else None
            twist = _msg_to_twist(request.state.twist, axes) if with_twist else None
            self._entities.put(index, pose, twist)
        except PlacementError as error:
            response.result = result(SetEntityState.Response.INVALID_POSE, str(error))
        except ConfigError as error:
            response.result = result(Result.RESULT_OPERATION_FAILED, str(error))

        return response

    def _found(self, name: str) -> tuple[Result, int, Entity | None]:
        known = self._entities.entities()
        if known is None:
            return result(Result.RESULT_INCORRECT_STATE, NO_GROUND), -1, None
        for index, entity in enumerate(known):
            if entity.name == name:
                return result(Result.RESULT_OK), index, entity
        return result(Result.RESULT_NOT_FOUND, f"entity {name!r}: {_those(known)}"), -1, None

    def _states(self, indices: Sequence[int]) -> list[EntityState]:
        stamp_ns, motions = self._entities.motions(indices)
        return [_state_msg(motion, stamp_ns) for motion in motions]

    def _chosen(self, filters: Any) -> tuple[Result, list[tuple[int, Entity]]]:
        known = self._entities.entities()
        if known is None:
            return result(Result.RESULT_INCORRECT_STATE, NO_GROUND), []
        try:
            has_name = name_filter(filters.filter)
        except ConfigError as error:
            return result(Result.RESULT_OPERATION_FAILED, str(error)), []
        categories = {each.category for each in filters.categories}
        chosen = [
            (index, entity)
            for index, entity in enumerate(known)
            if has_name(entity.name)
            and (not categories or entity.category in categories)
            and _has_tags(entity, filters.tags)
        ]

        if filters.bounds.type == Bounds.TYPE_EMPTY:
            return result(Result.RESULT_OK), chosen
        return self._within(filters.bounds, chosen)

    def _within(
        self, bounds: Any, chosen: list[tuple[int, Entity]]
    ) -> tuple[Result, list[tuple[int, Entity]]]:
        if bounds.type not in (Bounds.TYPE_BOX, Bounds.TYPE_SPHERE):
            expected = f"a box ({Bounds.TYPE_BOX}) or sphere ({Bounds.TYPE_SPHERE})"
            text = f"bounds of type {bounds.type}: expected {expected}"
            return result(Result.RESULT_FEATURE_UNSUPPORTED, text), []

        points = np.array([(p.x, p.y, p.z) for p in bounds.points])
        if points.shape != (2, 3) or not np.isfinite(points).all():
            text = f"bounds: {len(points)} points, expected two with finite numbers"
            return result(Result.RESULT_OPERATION_FAILED, text), []

        _, motions = self._entities.motions([index for index, _ in chosen])
        return result(Result.RESULT_OK), [
            each
            for each, motion in zip(chosen, motions, strict=True)
            if _overlaps(each[1], motion, bounds.type, points)
        ]


def axes_of(frame: str, axes: Callable[[str], str | None]) -> str:
    """Return the axes of a world frame, "enu" or "ned"; empty and "world" are the map's.

    Raises PlacementError for any other frame.
    """
    axes_of_frame = "enu" if frame in ("", "world", WORLD) else axes(frame)
    if axes_of_frame is None:
        raise PlacementError(f"frame {frame!r}: expected {WORLD}, map_ned or empty")
    return axes_of_frame


def msg_to_pose(message: Any, axes: str) -> Pose:
    """Return a pose in ENU.

    Raises PlacementError if numbers are not finite or too large, or the quaternion has not the
    length 1.
    """
    p = message.position
    q = message.orientation
    position = finite_array("position", (p.x, p.y, p.z), error=PlacementError)
    if np.abs(position).max() > FARTHEST:
        text = f"position: {position.tolist()}, expected numbers up to {FARTHEST:g}"
        raise PlacementError(text)
    orientation = unit_quaternion("orientation", (q.x, q.y, q.z, q.w), error=PlacementError)

    if axes == "ned":
        position = np.asarray(ned_to_enu(position))
        orientation = np.asarray(quat_ned_frd_to_enu_flu(quat_ned_flu_to_ned_frd(orientation)))
    return Pose(position, orientation)


def _msg_to_twist(message: Any, axes: str) -> Twist:
    vectors = [np.array((v.x, v.y, v.z)) for v in (message.linear, message.angular)]
    if not np.isfinite(vectors).all():
        raise ConfigError("twist: its numbers are not all finite")
    if axes == "ned":
        vectors = [np.asarray(ned_to_enu(vector), float) for vector in vectors]
    return Twist(*vectors)


def _state_msg(motion: EntityMotion, stamp_ns: int) -> EntityState:
    message = EntityState()
    fill_header(message, stamp_ns, WORLD)

    q = message.pose.orientation
    q.x, q.y, q.z, q.w = motion.orientation.tolist()
    for vector, numbers in (
        (message.pose.position, motion.position),
        (message.twist.linear, motion.velocity),
        (message.twist.angular, motion.angular_velocity),
        (message.acceleration.linear, motion.acceleration),
        (message.acceleration.angular, motion.angular_acceleration),
    ):
        vector.x, vector.y, vector.z = numbers.tolist()
    return message


def _those(known: Sequence[Entity]) -> str:
    names = ", ".join(repr(entity.name) for entity in known)
    return f"there is {names}" if len(known) <= 3 else f"there is {len(known)} others"


def _has_tags(entity: Entity, wanted: Any) -> bool:
    if not wanted.tags:
        return True
    has = [tag in entity.tags for tag in wanted.tags]
    return all(has) if wanted.filter_mode == TagsFilter.FILTER_MODE_ALL else any(has)


def _overlaps(entity: Entity, motion: EntityMotion, kind: int, points: Floats) -> bool:
    """Return whether an entity overlaps with the bounds (2, 3), world.

    The entity counts as the upright box about its turned box.
    """
    corners = np.array(np.meshgrid(*zip(entity.low, entity.high, strict=True))).reshape(3, -1).T
    corners = motion.position + quat_rotate(motion.orientation, corners)
    low = corners.min(axis=0)
    high = corners.max(axis=0)

    if kind == Bounds.TYPE_BOX:
        return bool((low <= points.max(axis=0)).all() and (high >= points.min(axis=0)).all())
    return bool(np.linalg.norm(np.clip(points[0], low, high) - points[0]) <= points[1, 0])


def name_filter(pattern: str) -> Callable[[str], bool]:
    """Return a function that finds a POSIX extended regular expression in a name.

    Raises ConfigError for an invalid or long one, for back-references and for large repetitions: no
    name may take the C library long.
    """
    if not pattern:
        return lambda _: True

    counts = [int(number) for number in re.findall(r"[{,](\d+)", pattern)]
    if (
        len(pattern) > MAX_FILTER
        or pattern.count("+") > 8
        or len(counts) > 2
        or max(counts, default=0) > 255
    ):
        raise ConfigError(
            f"filter: expected at most {MAX_FILTER} characters, eight + and one {{}} up to 255"
        )

    if re.search(r"\\\d|\0", pattern):
        raise ConfigError(f"filter {pattern!r}: back-references and zeros are not taken")

    try:
        return PosixRegex(pattern).found_in
    except ValueError as error:
        raise ConfigError(f"filter {pattern!r}: {error}") from None

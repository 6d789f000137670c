# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Other vehicles, placed objects and worlds as bodies in a vehicle's sensor scene and in its way.

This module knows neither clocks nor ROS.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rfly_collision.shapes.shape import ConvexHull, Shape, TriangleMesh, core_of, radius_of
from rfly_collision.shapes.vehicle_meshes import ball
from rfly_collision.shapes.vehicle_shapes import NO_SHAPES, VehicleShape, VehicleShapes
from rfly_collision.world.collision_world import within_limits
from rfly_collision.world.fleet_table import FleetTable
from rfly_collision.world.ground_fit import stand_on_ground
from rfly_collision.world.placed_bodies import PlacedBodies, no_objects
from rfly_common.arrays import Floats, Ints
from rfly_common.frames import euler_to_quat, quat_multiply, rotation_matrix
from rfly_common.vehicle_states import VehicleStates
from rfly_sensing.scene_rays import SceneBodies, joined
from rfly_terrain.world.models import CLASSES
from rfly_terrain.world.moving import MAX_SPEED, MovingPart

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.world.moving import MovingObject
    from rfly_terrain.world.world import World, WorldObject

MOST_NEAR = 16
"""Most other vehicles that can be run into at a time."""
OLD_S = 0.5
"""Time for which a vehicle is carried on from its last state, s."""
SILENT_S = 1.0
"""Time without a newer state after which a vehicle can't be run into any more, s."""
MAX_YAW_RATE = 20.0
"""Largest yaw rate with which attitudes are carried on, rad/s."""


class Neighbours:
    """The newest state of each other vehicle, and the placed objects.

    `own_id` is the vehicle that looks: it does not see itself. A vehicle that is silent for
    `stale_after_s` is dropped.
    """

    def __init__(self, shapes: VehicleShapes, own_id: int, stale_after_s: float = 1.0) -> None:
        self._shapes = shapes
        self._own_id = own_id
        self._seen = seen_shapes(shapes)
        self._stale_after_ns = round(stale_after_s * 1e9)

        self._table = FleetTable()
        self._layout = -1
        self._kind: Ints = np.empty(0, np.int64)
        self._forms = NO_SHAPES
        """Bodies of the vehicles."""
        self._sizes: Floats = np.empty(0)
        self._old: Ints = np.empty(0, np.int64)

        self.solid: set[int] = set()
        """Ids of the vehicles nearby that can be run into."""
        self.passed = 0
        """Number of vehicles nearby that can be passed through, as they were inside this one."""
        self.left_out = 0
        """Number of vehicles nearby beyond the nearest MOST_NEAR, which can be passed through."""
        self.set_objects(no_objects())

    def __len__(self) -> int:
        return len(self._table) + len(self._objects)

    def take(
        self, states: VehicleStates, time: float, steady_ns: int, age: float = 0.0
    ) -> dict[str, int]:
        """Take in states in `map`, all usable (`states_to_enu`); count those left out, by reason.

        They arrived at `time`, which is the simulation's, and are `age` old, both in s. If they are
        more than OLD_S old, or ahead, the stamps are another clock's, or late: they count as those
        of that time, are seen, and can't be run into.
        """
        self._table.drop_stale(steady_ns, self._stale_after_ns)
        good, dropped = within_limits(states)
        others = good & (states.id != self._own_id)
        if not others.all():
            states = states.select(others)
        if not len(states):
            return dropped

        is_old = not abs(age) <= OLD_S
        if is_old:
            self._old = np.union1d(self._old, states.id)
            age = 0.0
            dropped = dropped | {"old_states": len(states)}
        elif len(self._old):
            self._old = np.setdiff1d(self._old, states.id)
        self._table.update(states, round((time - age) * 1e9), steady_ns)
        return dropped

    def set_objects(self, objects: PlacedBodies) -> None:
        """Replace all placed objects."""
        self._objects = objects
        self._moving = objects.select(objects.moves)
        self._placed = self._seen_bodies(objects.select(~objects.moves))

    def _seen_bodies(self, objects: PlacedBodies, time: float = 0.0) -> SceneBodies:
        """Return placed objects as bodies at a time, s."""
        shapes, index, row = objects.shapes(self._seen)
        places = np.asarray(objects.places, float)[row]
        return SceneBodies(
            shapes,
            index,
            places,
            np.asarray(objects.orientation, float)[row],
            np.zeros_like(places) if objects.velocity is None else objects.velocity[row],
            np.full(len(row), time),
            objects.id[row],
            None if objects.color is None else objects.color[row],
            None if objects.class_id is None else objects.class_id[row],
        )

    def bodies(
        self, terrain: HeightMap | None, steady_ns: int, time: float = 0.0, clock_ahead: float = 0.0
    ) -> SceneBodies:
        """Return all that can be seen besides the ground at the simulation's `time`, s.

        Vehicles on the ground are put there. `clock_ahead`: lead of the moving objects' clock, s.
        """
        parts = [self._vehicles(terrain, steady_ns)]
        if len(self._moving):
            parts.append(self._seen_bodies(self._moving.at(time + clock_ahead), time))
        parts = [part for part in (*parts, self._placed) if len(part)]
        if len(parts) > 1:
            return joined(parts)
        return parts[0] if parts else self._placed

    def _vehicles(self, terrain: HeightMap | None, steady_ns: int) -> SceneBodies:
        table = self._table
        table.drop_stale(steady_ns, self._stale_after_ns)
        self._know_shapes()
        position, orientation = self._fitted(
            terrain, np.arange(len(table)), table["position"].copy()
        )
        row = self._forms.row
        return SceneBodies(
            self._forms.shapes,
            self._forms.shape_index,
            position[row],
            orientation[row],
            table["velocity"][row],
            table["stamp_ns"][row] * 1e-9,
            table.id[row],
            class_id=np.full(len(row), CLASSES.index("vehicle")),
        )

    def _know_shapes(self) -> None:
        if self._layout == self._table.layout:
            return
        self._layout = self._table.layout
        self._kind = self._shapes.index_of(self._table["vehicle_type"])
        self._forms = self._seen.touching(self._kind, self._table["scale"])
        low = self._shapes.column("low")
        high = self._shapes.column("high")
        reach = np.linalg.norm(np.maximum(-low, high), axis=1)
        self._sizes = reach[self._kind] * np.abs(self._table["scale"]).max(axis=1)

    def _fitted(
        self, terrain: HeightMap | None, rows: Ints, position: Floats
    ) -> tuple[Floats, Floats]:
        """Return positions and orientations of some vehicles.

        Those that ask for it are put on the ground.
        """
        orientation = self._table["orientation"][rows]
        fit = np.flatnonzero(self._table["fit_ground"][rows])
        if terrain is not None and len(fit):
            kinds = self._kind[rows[fit]]
            scale = self._table["scale"][rows[fit]]
            position[fit], orientation[fit] = stand_on_ground(
                terrain,
                position[fit],
                orientation[fit],
                self._shapes.column("centre_height")[kinds] * scale[:, 2],
                self._shapes.footprint[kinds] * scale[:, :2],
                self._shapes.column("upright")[kinds] > 0,
            )
        return position, orientation

    def near(
        self, terrain: HeightMap | None, place: Floats, reach: float, more: float, time: float
    ) -> list[MovingPart]:
        """Return the other vehicles that a vehicle at a place (3,) may touch at `time`, s.

        The vehicle reaches `reach` m far. Others up to `more` m beyond that are returned, too: they
        may touch it soon. `time` is the simulation's. Only the nearest MOST_NEAR are returned, each
        carried on from its state by velocity and yaw rate. A silent vehicle is carried on for
        OLD_S, and stands there until SILENT_S.

        Left out are vehicles that are silent for longer, or faster than all that moves (MAX_SPEED),
        or within half the reach when they come up: two that were put at one place don't burst
        apart.
        """
        before = self.solid
        self.solid = set()
        self.passed = 0
        self.left_out = 0
        table = self._table
        if not len(table):
            return []

        self._know_shapes()
        nearest = self._nearest(place, reach + more, time)
        position, orientation = self._fitted(terrain, nearest.rows, nearest.position)
        parts: list[MovingPart] = []
        for k, row in enumerate(nearest.rows.tolist()):
            number = int(table.id[row])
            forms = [_corners(self._forms.shapes[index]) for index in self._bodies_of(row)]
            corners = np.concatenate(forms)
            yaw_rate = float(table["angular_velocity"][row, 2])
            rotation = _turned(orientation[k], yaw_rate, nearest.age[k])

            # not from inside
            distance = _distance_from_box(rotation.T @ (place - position[k]), corners)
            if distance > (0.0 if number in before else 0.5 * reach):
                self.solid.add(number)
                parts += [(each, position[k], rotation, nearest.velocity[k]) for each in forms]
            else:
                self.passed += 1
        return parts

    def _bodies_of(self, row: int) -> list[int]:
        """Return the shapes of the bodies of the vehicle in a row of the table."""
        first, last = (
            np.searchsorted(self._forms.row, row, side=side) for side in ("left", "right")
        )
        indices: list[int] = self._forms.shape_index[first:last].tolist()
        return indices

    def _nearest(self, place: Floats, reach: float, time: float) -> _CarriedOn:
        """Return the nearest usable vehicles within reach of a place; count those left out."""
        table = self._table

        # a first choice by positions alone, as a table may have thousands
        offset = np.abs(table["position"][:, :2] - place[:2]).max(axis=1)
        rows = np.flatnonzero(offset < reach + self._sizes.max() + MAX_SPEED * OLD_S)
        if len(self._old):
            rows = rows[~np.isin(table.id[rows], self._old)]

        # carried on to this time
        silent = time - table["stamp_ns"][rows] * 1e-9
        age = np.clip(silent, -OLD_S, OLD_S)
        velocity = table["velocity"][rows]
        position = table["position"][rows] + velocity * age[:, None]
        apart = np.hypot(*(position - place)[:, :2].T) - self._sizes[rows]
        usable = (np.abs(velocity) <= MAX_SPEED).all(axis=1) & (apart < reach)
        usable &= np.abs(silent) <= SILENT_S + 1e-9
        velocity = np.where(np.abs(silent)[:, None] <= OLD_S + 1e-9, velocity, 0.0)

        # the nearest of them
        self.left_out = max(0, int(np.count_nonzero(usable)) - MOST_NEAR)
        nearest = np.flatnonzero(usable)[np.argsort(apart[usable], kind="stable")[:MOST_NEAR]]
        return _CarriedOn(rows[nearest], age[nearest], position[nearest], velocity[nearest])


class _CarriedOn(NamedTuple):
    """Vehicles carried on from their states, n of them."""

    rows: Ints
    """Rows of the table, (n,)."""
    age: Floats
    """Times for which they are carried on, s, (n,)."""
    position: Floats
    """Positions then, m, (n, 3)."""
    velocity: Floats
    """Velocities then, m/s, (n, 3)."""


def _turned(orientation: Floats, yaw_rate: float, age: float) -> Floats:
    """Return the rotation (3, 3) of an attitude (4,) that has turned for `age` s.

    A yaw rate beyond MAX_YAW_RATE, or NaN, does not count.
    """
    angle = yaw_rate * age if abs(yaw_rate) <= MAX_YAW_RATE else 0.0
    turn = euler_to_quat((0.0, 0.0, angle))
    return rotation_matrix(quat_multiply(orientation, turn))


def _distance_from_box(point: Floats, corners: Floats) -> float:
    """Return the distance of a point from the box around corners (v, 3), m; 0 inside."""
    beyond = np.maximum(corners.min(axis=0) - point, point - corners.max(axis=0))
    return float(np.linalg.norm(np.maximum(beyond, 0.0)))


@functools.lru_cache(maxsize=256)
def _corners(shape: Shape) -> Floats:
    """Return the corners (v, 3) of the convex part that stands for a shape, body axes.

    A round shape has 98 of them.
    """
    core = core_of(shape).vertices
    radius = radius_of(shape)
    if not radius:
        return core
    return (core[:, None] + np.asarray(ball(radius).vertices, float)).reshape(-1, 3)


def world_bodies(world: World, time: float | None = None) -> SceneBodies:
    """Return a world's objects on its terrain, and with a `time` (s) its moving objects then.

    Ids count the objects from 1, then the moving ones. Each convex part, or mesh, is a body.
    """
    moving = world.moving_solids if time is not None else None
    poses = [] if moving is None or time is None else [path.at(time) for path in moving.paths]
    bodies: list[WorldObject | MovingObject] = [*world.objects, *(world.moving if poses else ())]

    # parts of all bodies, and each different part once
    models = [body.scaled_model for body in bodies]
    parts = [
        (body, part, color)
        for body, model in enumerate(models)
        for part, color in zip(model.seen, model.seen_colors, strict=True)
    ]
    row = np.array([body for body, _, _ in parts], np.int64)
    different = {id(part): part for _, part, _ in parts}
    shape_index = {key: index for index, key in enumerate(different)}

    # poses
    turns = np.zeros((len(bodies), 3))
    turns[:, 2] = [*(body.yaw for body in world.objects), *(yaw for _, yaw, _ in poses)]
    velocity = np.zeros((len(bodies), 3))
    velocity[len(world.objects) :] = np.reshape([velocity for _, _, velocity in poses], (-1, 3))
    shapes = [
        ConvexHull(part) if part.ndim == 2 else TriangleMesh(part) for part in different.values()
    ]
    moving_positions = np.reshape([place for place, _, _ in poses], (-1, 3))
    position = np.concatenate([world.positions, moving_positions])
    return SceneBodies(
        tuple(shapes),
        np.array([shape_index[id(part)] for _, part, _ in parts], np.int64),
        position[row],
        np.asarray(euler_to_quat(turns), float)[row],
        velocity[row],
        np.full(len(row), time or 0.0),
        row + 1,
        np.array([color for _, _, color in parts], float).reshape(-1, 3) / 255.0,
        np.array([model.class_id for model in models], np.int64)[row],
    )


def seen_shapes(shapes: VehicleShapes) -> VehicleShapes:
    """Return shapes whose bodies are all that can be seen of a vehicle."""
    return dataclasses.replace(
        shapes, shapes=tuple(map(_whole, shapes.shapes)), default=_whole(shapes.default)
    )


def _whole(shape: VehicleShape) -> VehicleShape:
    """Return a shape with wheels and legs, which a lidar sees though they touch nothing."""
    return dataclasses.replace(shape, ground_clearance=0.0)

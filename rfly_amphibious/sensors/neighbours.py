"""Other vehicles, placed objects and worlds as bodies in a vehicle's sensor scene. No clock, no ROS."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from rfly_amphibious.sensors.scene_rays import SceneBodies, joined
from rfly_collision.shapes.shape import ConvexHull, Shape
from rfly_collision.shapes.triangle_mesh import TriangleMesh
from rfly_collision.shapes.vehicle_shapes import VehicleShape, VehicleShapes
from rfly_collision.world.collision_world import within_limits
from rfly_collision.world.fleet_table import FleetTable
from rfly_collision.world.ground_fit import stand_on_ground
from rfly_collision.world.placed_bodies import PlacedBodies, no_objects
from rfly_common.arrays import Ints
from rfly_common.frames import euler_to_quat
from rfly_common.vehicle_states import VehicleStates
from rfly_terrain.world.models import CLASSES

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.world.moving import MovingObject
    from rfly_terrain.world.world import World, WorldObject


class Neighbours:
    """The newest state of each other vehicle, and the placed objects.

    `own_id` is the vehicle that looks: it does not see itself. Who is silent for `stale_after_s` is gone.
    """

    def __init__(self, shapes: VehicleShapes, own_id: int, stale_after_s: float = 1.0) -> None:
        self._shapes, self._own_id = shapes, own_id
        self._seen = dataclasses.replace(
            shapes, shapes=tuple(map(_whole, shapes.shapes)), default=_whole(shapes.default)
        )
        self._stale_after_ns = round(stale_after_s * 1e9)
        self._table = FleetTable()
        self._layout = -1
        self._kind: Ints = np.empty(0, np.int64)
        self._forms: tuple[tuple[Shape, ...], Ints] = ((), np.empty(0, np.int64))
        self.set_objects(no_objects())

    def __len__(self) -> int:
        return len(self._table) + len(self._objects)

    def take(self, states: VehicleStates, time: float, steady_ns: int) -> dict[str, int]:
        """States in `map`, all usable (`states_to_enu`), that came at the simulation's `time` (s).

        They count as those of that time, since stamps may be another clock's. Returns how many were left out, by
        reason.
        """
        good, dropped = within_limits(states)
        others = good & (states.id != self._own_id)
        if not others.all():
            states = states.select(others)
        if len(states):
            self._table.update(states, round(time * 1e9), steady_ns)
        return dropped

    def set_objects(self, objects: PlacedBodies) -> None:
        """All placed objects."""
        self._objects = objects
        self._moving = objects.select(objects.moves)
        self._placed = self._seen_bodies(objects.select(~objects.moves))

    def _seen_bodies(self, objects: PlacedBodies, time: float = 0.0) -> SceneBodies:
        """Placed objects, which are there at a time, s."""
        places = np.asarray(objects.places, float)
        return SceneBodies(
            *objects.shapes(self._seen),
            places,
            np.asarray(objects.orientation, float),
            np.zeros_like(places) if objects.velocity is None else objects.velocity,
            np.full(len(objects), time),
            objects.id,
            objects.color,
            objects.class_id,
        )

    def bodies(
        self, terrain: HeightMap | None, steady_ns: int, time: float = 0.0, clock_ahead: float = 0.0
    ) -> SceneBodies:
        """All that can be seen beside the ground at the simulation's `time` (s); vehicles on the ground are put there.

        `clock_ahead` (s): by which the clock of what moves is ahead of it.
        """
        parts = [self._vehicles(terrain, steady_ns)]
        if len(self._moving):
            parts.append(self._seen_bodies(self._moving.at(time + clock_ahead), time))
        there = [part for part in (*parts, self._placed) if len(part)]
        return joined(there) if len(there) > 1 else (there or [self._placed])[0]

    def _vehicles(self, terrain: HeightMap | None, steady_ns: int) -> SceneBodies:
        table = self._table
        table.drop_stale(steady_ns, self._stale_after_ns)
        if self._layout != table.layout:
            self._layout = table.layout
            self._kind = self._shapes.index_of(table["vehicle_type"])
            self._forms = self._seen.touching(self._kind, table["scale"])
        position, orientation = table["position"].copy(), table["orientation"].copy()
        fit = np.flatnonzero(table["fit_ground"])
        if terrain is not None and len(fit):
            kinds, scale = self._kind[fit], table["scale"][fit]
            position[fit], orientation[fit] = stand_on_ground(
                terrain,
                position[fit],
                orientation[fit],
                self._shapes.column("centre_height")[kinds] * scale[:, 2],
                self._shapes.footprint[kinds] * scale[:, :2],
                self._shapes.column("upright")[kinds] > 0,
            )
        return SceneBodies(
            *self._forms,
            position,
            orientation,
            table["velocity"].copy(),
            table["stamp_ns"] * 1e-9,
            table.id.copy(),
            class_id=np.full(len(table), CLASSES.index("vehicle")),
        )


def world_bodies(world: World, time: float | None = None) -> SceneBodies:
    """What stands in a world, on its terrain, and, where a `time` (s) is given, what moves, as it does then.

    Ids count its objects from 1, then what moves; each convex part, or mesh, is a body.
    """
    moving = world.moving_solids if time is not None else None
    poses = [] if moving is None or time is None else [path.at(time) for path in moving.paths]
    bodies: list[WorldObject | MovingObject] = [*world.objects, *(world.moving if poses else ())]
    parts = [(row, part) for row, o in enumerate(bodies) for part in o.scaled_model.seen]
    row = np.array([at for at, _ in parts], np.int64)
    different = {id(part): part for _, part in parts}
    which = {key: index for index, key in enumerate(different)}
    turns = np.zeros((len(bodies), 3))
    turns[:, 2] = [*(o.yaw for o in world.objects), *(yaw for _, yaw, _ in poses)]
    velocity = np.zeros((len(bodies), 3))
    velocity[len(world.objects) :] = np.reshape([velocity for _, _, velocity in poses], (-1, 3))
    models = [o.model for o in bodies]
    return SceneBodies(
        tuple(ConvexHull(part) if part.ndim == 2 else TriangleMesh(part) for part in different.values()),
        np.array([which[id(part)] for _, part in parts], np.int64),
        np.concatenate([world.positions, np.reshape([place for place, _, _ in poses], (-1, 3))])[row],
        np.asarray(euler_to_quat(turns), float)[row],
        velocity[row],
        np.full(len(row), time or 0.0),
        row + 1,
        np.array([model.color for model in models], float).reshape(-1, 3)[row] / 255.0,
        np.array([model.class_id for model in models], np.int64)[row],
    )


def _whole(shape: VehicleShape) -> VehicleShape:
    """With wheels and legs, which a lidar sees though they never count as touching."""
    return dataclasses.replace(shape, ground_clearance=0.0)

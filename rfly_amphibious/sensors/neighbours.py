"""Other vehicles, placed objects and worlds as bodies in a vehicle's sensor scene and in its way.
No clock, no ROS.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

import numpy as np

from rfly_amphibious.sensors.scene_rays import SceneBodies, joined
from rfly_collision.shapes.shape import ConvexHull, Shape, TriangleMesh, core_of, radius_of
from rfly_collision.shapes.vehicle_shapes import VehicleShape, VehicleShapes
from rfly_collision.world.collision_world import within_limits
from rfly_collision.world.fleet_table import FleetTable
from rfly_collision.world.ground_fit import stand_on_ground
from rfly_collision.world.placed_bodies import PlacedBodies, no_objects
from rfly_common.arrays import Floats, Ints
from rfly_common.frames import euler_to_quat, quat_multiply, rotation_matrix
from rfly_common.vehicle_states import VehicleStates
from rfly_terrain.world.models import CLASSES
from rfly_terrain.world.moving import MAX_SPEED, MovingPart
from rfly_viewer.models.vehicle_models import ball

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.world.moving import MovingObject
    from rfly_terrain.world.world import World, WorldObject

MOST_NEAR = 16
"""other vehicles that can be run into at a time"""
OLD_S = 0.5
"""so long a vehicle is carried on from its state"""
SILENT_S = 1.0
"""without a newer state a vehicle can't be run into any more"""
MAX_YAW_RATE = 20.0
"""rad/s: with more nothing is carried on"""


class Neighbours:
    """The newest state of each other vehicle, and the placed objects.

    `own_id` is the vehicle that looks: it does not see itself. Who is silent for `stale_after_s` is
    gone.
    """

    def __init__(self, shapes: VehicleShapes, own_id: int, stale_after_s: float = 1.0) -> None:
        self._shapes = shapes
        self._own_id = own_id
        self._seen = dataclasses.replace(
            shapes, shapes=tuple(map(_whole, shapes.shapes)), default=_whole(shapes.default)
        )
        self._stale_after_ns = round(stale_after_s * 1e9)
        self._table = FleetTable()
        self._layout = -1
        self._kind: Ints = np.empty(0, np.int64)
        self._forms: tuple[tuple[Shape, ...], Ints] = ((), np.empty(0, np.int64))
        self._sizes: Floats = np.empty(0)
        self._old: Ints = np.empty(0, np.int64)
        self.solid: set[int] = set()
        """ids of the vehicles near by that can be run into"""
        self.passed = self.left_out = 0
        """vehicles near by that can't be: they were inside this one; they are more than MOST_NEAR
        """
        self.set_objects(no_objects())

    def __len__(self) -> int:
        return len(self._table) + len(self._objects)

    def take(
        self, states: VehicleStates, time: float, steady_ns: int, age: float = 0.0
    ) -> dict[str, int]:
        """States in `map`, all usable (`states_to_enu`), that came at the simulation's `time` (s),
        `age` s old.

        Where that is more than OLD_S either way the stamps are another clock's, or late: they count
        as those of that time, are seen, and can't be run into. Returns how many were left out, by
        reason.
        """
        self._table.drop_stale(steady_ns, self._stale_after_ns)
        good, dropped = within_limits(states)
        others = good & (states.id != self._own_id)
        if not others.all():
            states = states.select(others)
        if len(states):
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
        """All that can be seen beside the ground at the simulation's `time` (s); vehicles on the
        ground are put there.

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
        self._know_shapes()
        position, orientation = self._fitted(
            terrain, np.arange(len(table)), table["position"].copy()
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

    def _know_shapes(self) -> None:
        if self._layout == self._table.layout:
            return
        self._layout = self._table.layout
        self._kind = self._shapes.index_of(self._table["vehicle_type"])
        self._forms = self._seen.touching(self._kind, self._table["scale"])
        reach = np.linalg.norm(
            np.maximum(-self._shapes.column("low"), self._shapes.column("high")), axis=1
        )
        self._sizes = reach[self._kind] * np.abs(self._table["scale"]).max(axis=1)

    def _fitted(
        self, terrain: HeightMap | None, rows: Ints, position: Floats
    ) -> tuple[Floats, Floats]:
        """(position, orientation) of some vehicles, of which those that ask for it are put on the
        ground.
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
        """Other vehicles that one at a place (3,), which reaches so far (m), may touch at the
        simulation's `time` (s), or `more` m later: the nearest MOST_NEAR, each carried on from its
        state by velocity and yaw rate.

        One that is silent is carried on for OLD_S and stands there until SILENT_S. Not those silent
        for longer, nor faster than all that moves (MAX_SPEED), nor those within half the reach when
        they come up: two that were put at one place don't burst apart.
        """
        table = self._table
        before = self.solid
        self.solid = set()
        self.passed = 0
        self.left_out = 0
        if not len(table):
            return []
        self._know_shapes()
        # a table of thousands is looked through for places alone
        offset = np.abs(table["position"][:, :2] - place[:2]).max(axis=1)
        rows = np.flatnonzero(offset < reach + more + self._sizes.max() + MAX_SPEED * OLD_S)
        rows = rows[~np.isin(table.id[rows], self._old)] if len(self._old) else rows
        if not len(rows):
            return []
        silent = time - table["stamp_ns"][rows] * 1e-9
        velocity = table["velocity"][rows]
        age = np.clip(silent, -OLD_S, OLD_S)
        position = table["position"][rows] + velocity * age[:, None]
        apart = np.hypot(*(position - place)[:, :2].T) - self._sizes[rows]
        usable = (np.abs(velocity) <= MAX_SPEED).all(axis=1) & (apart < reach + more)
        usable &= np.abs(silent) <= SILENT_S + 1e-9
        velocity = np.where(np.abs(silent)[:, None] <= OLD_S + 1e-9, velocity, 0.0)
        self.left_out = max(0, int(np.count_nonzero(usable)) - MOST_NEAR)
        nearest = np.flatnonzero(usable)[np.argsort(apart[usable], kind="stable")[:MOST_NEAR]]
        rows = rows[nearest]
        age = age[nearest]
        position = position[nearest]
        velocity = velocity[nearest]
        position, orientation = self._fitted(terrain, rows, position)
        found: list[MovingPart] = []
        for k, row in enumerate(rows.tolist()):
            number = int(table.id[row])
            corners = _corners(self._forms[0][self._forms[1][row]])
            yaw_rate = float(table["angular_velocity"][row, 2])
            turned = (
                yaw_rate * age[k] if abs(yaw_rate) <= MAX_YAW_RATE else 0.0
            )  # false for NaN, too
            rotation = rotation_matrix(
                quat_multiply(orientation[k], euler_to_quat((0.0, 0.0, turned)))
            )
            local = rotation.T @ (place - position[k])
            outside = np.maximum(
                np.maximum(corners.min(axis=0) - local, local - corners.max(axis=0)), 0.0
            )
            if np.linalg.norm(outside) > (0.0 if number in before else 0.5 * reach):
                self.solid.add(number)
                found.append((corners, position[k], rotation, velocity[k]))
            else:
                self.passed += 1
        return found


@functools.lru_cache(maxsize=256)
def _corners(shape: Shape) -> Floats:
    """(v, 3) of a convex part that a shape is taken for, body axes; what is round has 98 of them."""
    core = core_of(shape).vertices
    radius = radius_of(shape)
    return (
        (core[:, None] + np.asarray(ball(radius).vertices, float)).reshape(-1, 3)
        if radius
        else core
    )


def world_bodies(world: World, time: float | None = None) -> SceneBodies:
    """What stands in a world, on its terrain, and, where a `time` (s) is given, what moves, as it
    does then.

    Ids count its objects from 1, then what moves; each convex part, or mesh, is a body.
    """
    moving = world.moving_solids if time is not None else None
    poses = [] if moving is None or time is None else [path.at(time) for path in moving.paths]
    bodies: list[WorldObject | MovingObject] = [*world.objects, *(world.moving if poses else ())]
    models = [o.scaled_model for o in bodies]
    parts = [
        (row, *each)
        for row, m in enumerate(models)
        for each in zip(m.seen, m.seen_colors, strict=True)
    ]
    row = np.array([at for at, _, _ in parts], np.int64)
    different = {id(part): part for _, part, _ in parts}
    which = {key: index for index, key in enumerate(different)}
    turns = np.zeros((len(bodies), 3))
    turns[:, 2] = [*(o.yaw for o in world.objects), *(yaw for _, yaw, _ in poses)]
    velocity = np.zeros((len(bodies), 3))
    velocity[len(world.objects) :] = np.reshape([velocity for _, _, velocity in poses], (-1, 3))
    return SceneBodies(
        tuple(
            ConvexHull(part) if part.ndim == 2 else TriangleMesh(part)
            for part in different.values()
        ),
        np.array([which[id(part)] for _, part, _ in parts], np.int64),
        np.concatenate([world.positions, np.reshape([place for place, _, _ in poses], (-1, 3))])[
            row
        ],
        np.asarray(euler_to_quat(turns), float)[row],
        velocity[row],
        np.full(len(row), time or 0.0),
        row + 1,
        np.array([color for _, _, color in parts], float).reshape(-1, 3) / 255.0,
        np.array([model.class_id for model in models], np.int64)[row],
    )


def _whole(shape: VehicleShape) -> VehicleShape:
    """With wheels and legs, which a lidar sees though they never count as touching."""
    return dataclasses.replace(shape, ground_clearance=0.0)

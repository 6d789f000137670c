# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""CollisionWorld: vehicles, placed objects and terrain, stepped over time. No clock and no ROS.

Each step takes the newest state of every vehicle, puts those on the ground that want to be there,
and sweeps each one from where the step before has tested it to where it is now, so that nothing is
jumped over, however the states come.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_collision.narrow_phase.bodies import TERRAIN, Bodies, Contacts
from rfly_collision.shapes.vehicle_shapes import NO_SHAPES, TypeShapes, VehicleShapes
from rfly_collision.world.contact_tracker import (
    GROUND,
    HOLD_CLEARANCE,
    STATIC,
    ContactEvents,
    ContactTracker,
    PairContacts,
)
from rfly_collision.world.fleet_table import FleetTable
from rfly_collision.world.ground_fit import stand_on_ground
from rfly_collision.world.ignore_rules import IgnoreRules
from rfly_collision.world.placed_bodies import PlacedBodies, no_objects
from rfly_collision.world.scene import (
    Scene,
    contacts_or_ground,
    not_ended_within_step,
    touch_when_moved,
)
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.errors import CrowdError, PlacementError
from rfly_common.frames import quat_conjugate, quat_multiply, rotation_vectors
from rfly_common.vehicle_states import VehicleStates
from rfly_terrain.height_map.height_map import HeightMap

MAX_DISTANCE = 1e7
"""Largest coordinate, m; beyond it a position is a mistake."""
SCALES = (1e-3, 1e3)
MAX_OBJECTS = 20_000
MAX_SHAPES = 2000
"""Largest number of different shapes, by type and scale or by size of a box.

Making one takes half a millisecond.
"""


class BodyPoses(NamedTuple):
    """Vehicles, in the table's order, and then placed objects, as they are tested."""

    shapes: TypeShapes
    """Bodies of all; a row counts the vehicles and then the objects."""
    position: Floats
    """Positions of vehicles and objects, (n, 3), m."""
    orientation: Floats
    """Orientations, (n, 4)."""


class Step(NamedTuple):
    """Contacts of one step."""

    stamp_ns: int
    """Stamp of the newest states."""
    events: ContactEvents


class _LastPoses(NamedTuple):
    """Poses at which the last step tested the vehicles, sorted by id."""

    id: Ints
    position: Floats
    orientation: Floats
    stamp_ns: Ints


class CollisionWorld:
    """World of vehicles, placed objects and terrain.

    `update` takes states, `step` returns changes, and `check` returns the contacts of hypothetical
    poses. `outside`: beyond the map its edge goes on (extend) or there is no ground (void).
    `max_speed`, m/s: a vehicle that moved faster between two of its states was moved by hand, and
    the way between is not tested. If the boxes of more than `max_pairs` pairs overlap, only the
    ground is tested (`crowd`). Of more than `max_vehicles` vehicles only the first ones are tested.
    """

    def __init__(
        self,
        shapes: VehicleShapes,
        ignore: IgnoreRules | None = None,
        *,
        outside: Literal["extend", "void"] = "extend",
        max_speed: float = 1000.0,
        stale_after_s: float = 1.0,
        max_pairs: int = 50_000,
        max_vehicles: int = 100_000,
    ) -> None:
        self.terrain: HeightMap | None = None
        self.default_types: set[int] = set()
        """Types that no list has: the default shape serves."""
        self.crowd = ""
        """Warning about the last step, if a crowd was so dense that only the ground was tested."""
        self.unscaled = 0
        """Number of vehicles that are tested at a scale of 1, because there are MAX_SHAPES shapes
        already.
        """

        # settings
        self._shapes = shapes
        self._ignore = ignore or IgnoreRules()
        self._outside: Literal["extend", "void"] = outside
        self._max_pairs = max_pairs
        self._max_vehicles = max_vehicles
        self._max_speed = max_speed
        self._stale_after_ns = round(stale_after_s * 1e9)

        # vehicles, objects and contacts
        self._table = FleetTable()
        self._objects = no_objects()
        self._object_shapes = NO_SHAPES
        self._scene = Scene(None, outside, max_pairs)
        self._tracker = ContactTracker()

        # what the kept arrays were computed for
        self._layout = -1
        self._kind: Ints = np.empty(0, np.int64)
        self._vehicle_shapes = NO_SHAPES
        self._changed = False
        self._stamp_ns = 0
        self._clear_last_poses()

    @property
    def vehicles(self) -> int:
        """Number of vehicles."""
        return len(self._table)

    @property
    def objects(self) -> int:
        """Number of placed objects."""
        return len(np.unique(self._objects.id))

    @property
    def active(self) -> PairContacts:
        """Contacts that have begun and not ended."""
        return self._tracker.active

    def set_terrain(self, terrain: HeightMap | None) -> None:
        """Another ground from the next step on."""
        self.terrain = terrain
        self._scene = Scene(terrain, self._outside, self._max_pairs)
        self._changed = True

    def set_objects(self, objects: PlacedBodies) -> None:
        """Use other placed objects from the next step on.

        Raises PlacementError for more than MAX_OBJECTS or MAX_SHAPES.
        """
        looks = [objects.vehicle_type, objects.scale, objects.box_half_extent, objects.hull_index]
        sizes = len(np.unique(np.column_stack(looks), axis=0))
        for what, number, most in (
            ("objects", len(objects), MAX_OBJECTS),
            ("different sizes", sizes, MAX_SHAPES),
        ):
            if number > most:
                raise PlacementError(
                    f"placed_objects: {number:,} {what}, at most {most:,} are tested"
                )
        self._objects = objects
        self._object_shapes = objects.shapes(self._shapes)
        self._note_default_types(objects.vehicle_type[~objects.has_shape])
        self._changed = True

    def update(self, states: VehicleStates, stamp_ns: int, steady_ns: int) -> int:
        """Take over states in `map` that arrived at `steady_ns`.

        All of them must be usable (`states_to_enu`). Return the number of vehicles that are left
        out, because there are `max_vehicles` others already.
        """
        new = np.flatnonzero(~np.isin(states.id, self._table.id))
        surplus = new[max(self._max_vehicles - len(self._table), 0) :]
        if len(surplus):
            states = states.select(np.delete(np.arange(len(states)), surplus))
        self._table.update(states, stamp_ns, steady_ns)
        self._stamp_ns = int(self._table["stamp_ns"].max(initial=0))
        self._changed = True
        return len(surplus)

    def drop_stale(self, steady_ns: int) -> None:
        """Drop vehicles without a state for `stale_after_s`; contacts end in the next step."""
        if self._table.drop_stale(steady_ns, self._stale_after_ns):
            self._changed = True

    def reset(self) -> Step:
        """End all contacts after the clock went back; nothing is swept from its former pose."""
        step = Step(self._stamp_ns, self._tracker.end_all())
        self._clear_last_poses()
        self._stamp_ns = 0
        return step

    def step(self) -> Step | None:
        """Return the changes since the last step.

        Return None if no state has come and nothing else has changed.
        """
        if not self._changed:
            return None
        self._changed = False

        # shapes of the vehicles, if the set of vehicles has changed
        if self._layout != self._table.layout:
            self._layout = self._table.layout
            self._kind, self._vehicle_shapes = self._shapes_of(self._table)
            self.unscaled = int(np.count_nonzero(_surplus_shapes(self._kind, self._table["scale"])))

        # poses and contacts of this moment
        if self._objects.moves.any():
            self._objects = self._objects.at(self._stamp_ns * 1e-9)
        poses = self._poses(self._table, self._kind, self._vehicle_shapes)
        bodies, dt = self._with_velocities(poses)
        contacts, self.crowd = contacts_or_ground(self._scene, bodies, dt)

        # contacts as pairs of ids
        pairs = self._pairs(contacts, self._table, poses).select(
            not_ended_within_step(self._scene, bodies, dt, contacts)
        )
        pairs = deepest_of_each_pair(pairs)
        pairs = self._ignore.kept(pairs, self._table.types_of)

        # contacts that have ended, or that a small clearance holds
        lost = self._tracker.lost(pairs, self._stamp_ns)
        near = lost.key[self._near(lost, poses)] if len(lost) else None

        # for the next step
        self._table.clear_fresh()
        n = len(self._table)
        self._last_poses = _LastPoses(
            self._table.id,
            poses.position[:n],
            poses.orientation[:n],
            self._table["stamp_ns"].copy(),
        )

        return Step(self._stamp_ns, self._tracker.update(self._stamp_ns, pairs, near))

    def check(self, states: VehicleStates, stamp_ns: int | None = None) -> PairContacts:
        """Return the contacts that vehicles would have at these poses (usable, in `map`).

        Partners are the terrain, the placed objects, each other, and the other vehicles at their
        last poses. `stamp_ns` is the time for objects that move; None: their poses at the last
        step. Raises CrowdError for too many.
        """
        if len(states) > self._max_vehicles:
            raise CrowdError(f"{len(states):,} vehicles, at most {self._max_vehicles:,} are tested")

        # objects where they are then; the next step moves them anyway
        if stamp_ns is not None and self._objects.moves.any():
            self._objects = self._objects.at(stamp_ns * 1e-9)

        # a copy of the vehicles, with the hypothetical ones
        table = self._table.copy()
        table.update(states, 0, 0)
        hypothetical = np.isin(table.id, states.id)
        poses = self._poses(table, *self._shapes_of(table))
        bodies = self._bodies(poses, static=~hypothetical)
        contacts = self._scene.contacts(bodies)
        pairs = deepest_of_each_pair(self._pairs(contacts, table, poses))
        pairs = self._ignore.kept(pairs, table.types_of)
        return pairs.select(np.argsort(pairs.key))

    def _shapes_of(self, table: FleetTable) -> tuple[Ints, TypeShapes]:
        """(n,) which kind each vehicle is, and the bodies."""
        kind = self._shapes.index_of(table["vehicle_type"])
        self._note_default_types(table["vehicle_type"])
        surplus = _surplus_shapes(kind, table["scale"])
        return kind, self._shapes.touching(kind, np.where(surplus[:, None], 1.0, table["scale"]))

    def _note_default_types(self, types: Ints) -> None:
        different = np.unique(types)
        unknown = self._shapes.index_of(different) == len(self._shapes.shapes)
        self.default_types.update(different[unknown].tolist())

    def _poses(self, table: FleetTable, kind: Ints, shapes: TypeShapes) -> BodyPoses:
        position = table["position"]
        orientation = table["orientation"]
        fit = np.empty(0, np.int64)
        if self.terrain is not None:
            fit = np.flatnonzero(table["fit_ground"])

        # vehicles that are put on the ground
        if len(fit) and self.terrain is not None:
            position = position.copy()
            orientation = orientation.copy()
            kinds = kind[fit]
            scale = table["scale"][fit]
            centre_height = self._shapes.column("centre_height")[kinds] * scale[:, 2]
            size = self._shapes.footprint[kinds] * scale[:, :2]
            upright = self._shapes.column("upright")[kinds] > 0
            position[fit], orientation[fit] = stand_on_ground(
                self.terrain, position[fit], orientation[fit], centre_height, size, upright
            )

        # vehicles first, then objects
        objects = self._object_shapes
        bodies = TypeShapes(
            (*shapes.shapes, *objects.shapes),
            np.concatenate((shapes.shape_index, len(shapes.shapes) + objects.shape_index)),
            np.concatenate((shapes.row, len(table) + objects.row)),
        )
        return BodyPoses(
            bodies,
            np.concatenate((position, self._objects.places)),
            np.concatenate((orientation, self._objects.orientation)),
        )

    def _bodies(
        self,
        poses: BodyPoses,
        velocity: Floats | None = None,
        angular_velocity: Floats | None = None,
        static: Bools | None = None,
    ) -> Bodies:
        """`velocity`, `angular_velocity` and `static` are the vehicles'; objects stand still."""
        objects = len(self._objects)
        n = len(poses.position) - objects
        still = np.zeros((objects, 3))
        shapes, index, row = poses.shapes
        is_static = np.concatenate(
            (np.zeros(n, np.bool_) if static is None else static, np.ones(objects, np.bool_))
        )
        return Bodies(
            shapes,
            index,
            poses.position[row],
            poses.orientation[row],
            np.empty(0) if velocity is None else np.concatenate((velocity, still))[row],
            np.empty(0)
            if angular_velocity is None
            else np.concatenate((angular_velocity, still))[row],
            static=is_static[row],
            group=row,  # parts of one vehicle never touch each other
        )

    def _with_velocities(self, poses: BodyPoses) -> tuple[Bodies, float]:
        """Return the bodies with the velocities from tested to present poses, and dt."""
        table = self._table
        last = self._last_poses
        if not len(last.id):
            return self._bodies(poses), 0.0

        # displacements since the last test
        before, known = _find(last.id, table.id)
        elapsed_ns = table["stamp_ns"] - last.stamp_ns[before]
        n = len(table)
        displacement = poses.position[:n] - last.position[before]

        # vehicles that moved by themselves; others were put elsewhere
        swept = known & table["fresh"] & (elapsed_ns > 0)
        swept &= np.einsum("ij,ij->i", displacement, displacement) <= np.square(
            self._max_speed * 1e-9 * elapsed_ns
        )
        if not swept.any():
            return self._bodies(poses), 0.0

        # one dt for all, the longest
        dt = float(elapsed_ns[swept].max()) * 1e-9
        turned = quat_multiply(quat_conjugate(last.orientation[before]), poses.orientation[:n])
        velocity = np.where(swept[:, None], displacement / dt, 0.0)
        angular_velocity = np.where(swept[:, None], rotation_vectors(turned) / dt, 0.0)
        return self._bodies(poses, velocity, angular_velocity), dt

    def _pairs(self, contacts: Contacts, table: FleetTable, poses: BodyPoses) -> PairContacts:
        """Return the contacts by id; a is always a vehicle, as vehicles precede objects."""
        n = len(table)
        vehicle = poses.shapes.row[contacts.a]
        on_ground = contacts.b == TERRAIN
        partner = poses.shapes.row[contacts.b]  # for the ground: of any body
        placed = ~on_ground & (partner >= n)

        # partner: ground, object or vehicle
        row = np.where(on_ground | placed, 0, partner)
        other = np.where(on_ground, GROUND, np.where(placed, STATIC, table.id[row] if n else 0))
        object_id = np.zeros(len(contacts), np.int64)
        object_id[placed] = self._objects.id[partner[placed] - n]

        return PairContacts(
            table.id[vehicle],
            other,
            object_id,
            contacts.position,
            contacts.normal,
            contacts.depth,
            contacts.time,
        )

    def _near(self, lost: PairContacts, poses: BodyPoses) -> Bools:
        """(m,) which of these contacts lie HOLD_CLEARANCE apart or less, along their normals."""
        vehicle, known = _find(self._table.id, lost.vehicle)
        row = poses.shapes.row
        n = len(self._table)

        # bodies of objects by id
        bodies = np.searchsorted(row, n)
        object_id = self._objects.id[row[bodies:] - n]
        order = np.argsort(object_id, kind="stable")
        ids = object_id[order]
        on_ground = lost.other == GROUND
        first, last = (
            np.searchsorted(ids, lost.object_id, side=side) for side in ("left", "right")
        )

        # one entry for each body of the vehicle, and for each body that the contact may be with
        own_first, own_last = (
            np.searchsorted(row, vehicle, side=side) for side in ("left", "right")
        )
        partners = np.where(on_ground, 1, last - first)
        entries = np.where(known, partners * (own_last - own_first), 0)
        which = np.repeat(np.arange(len(lost)), entries)
        number = np.arange(len(which)) - np.repeat(np.cumsum(entries) - entries, entries)
        body = own_first[which] + number // np.maximum(partners[which], 1)
        part = number % np.maximum(partners[which], 1)
        partner = np.full(len(which), TERRAIN)
        placed = ~on_ground[which]
        partner[placed] = bodies + order[(first[which] + part)[placed]]

        # does the vehicle touch if it moves by the clearance towards its partner?
        touch = touch_when_moved(
            self._scene,
            self._bodies(poses),
            body,
            partner,
            -HOLD_CLEARANCE * lost.normal[which],
        )

        near = np.zeros(len(lost), np.bool_)
        near[which[touch]] = True
        return near

    def _clear_last_poses(self) -> None:
        self._last_poses = _LastPoses(
            np.empty(0, np.int64), np.empty((0, 3)), np.empty((0, 4)), np.empty(0, np.int64)
        )


def deepest_of_each_pair(found: PairContacts) -> PairContacts:
    """Return one contact for each pair, the deepest, then the first.

    An object of several parts may touch with many of them.
    """
    order = np.lexsort((found.time, -found.depth, found.key))
    key = found.key[order]
    return (
        found.select(np.sort(order[np.concatenate([[True], key[1:] != key[:-1]])]))
        if len(key)
        else found
    )


def _surplus_shapes(kind: Ints, scale: Floats) -> Bools:
    """(n,) whose shapes are more than MAX_SHAPES."""
    _, which = np.unique(np.column_stack([kind, scale]), axis=0, return_inverse=True)
    return which.reshape(-1) >= MAX_SHAPES


def _find(ids: Ints, wanted: Ints) -> tuple[NDArray[np.intp], Bools]:
    """Return (rows, known): the rows of wanted ids in sorted ids, and whether they are there.

    An unknown id has an arbitrary row.
    """
    if not len(ids):
        return np.zeros(len(wanted), np.intp), np.zeros(len(wanted), np.bool_)
    rows = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return rows, ids[rows] == wanted


def within_limits(states: VehicleStates) -> tuple[Bools, dict[str, int]]:
    """(n,) which usable vehicles in `map` can be tested, and how many can't be, by reason.

    Not so are ids below 1, which contacts have other meanings for, scales that leave no size, and
    what is MAX_DISTANCE or more from the origin.
    """
    size = np.abs(states.scale)
    tests: dict[str, Bools] = {
        "bad_id": states.id >= 1,
        "bad_scale": np.all((size >= SCALES[0]) & (size <= SCALES[1]), axis=1),
        "too_far": np.all(np.abs(states.position) < MAX_DISTANCE, axis=1),
    }
    good = np.logical_and.reduce(list(tests.values()))
    if good.all():
        return good, {}
    counts = {
        reason: int(len(passed) - np.count_nonzero(passed)) for reason, passed in tests.items()
    }
    return good, {reason: count for reason, count in counts.items() if count}

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Scene: terrain and bodies, the pairs whose boxes overlap (broad phase), and their contacts.

Variants of the query: with a limit for crowds, without what ended within the step, by clearance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rfly_collision.narrow_phase import pair_kernels
from rfly_collision.narrow_phase.bodies import (
    TERRAIN,
    Bodies,
    Contacts,
    PlacedShapes,
    SweptMotion,
    Touches,
    no_contacts,
)
from rfly_collision.shapes.shape import Shape, ShapeTable, table_of
from rfly_collision.world import overlap_kernels as kernels
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.config.checks import finite_number
from rfly_common.errors import BodiesError, CrowdError
from rfly_common.kernels.parallel import in_chunks

if TYPE_CHECKING:
    from rfly_collision.narrow_phase.ground_kernels import TerrainArrays
    from rfly_terrain.height_map.height_map import HeightMap


Outside = Literal["extend", "void"]

PAIRS_AT_ONCE = 512
"""Pairs that a thread takes at once, about 0.3 ms of work."""
MAX_PAIRS = 5_000_000
"""Largest number of overlapping boxes: 3,200 bodies in one place.

Each takes some 100 bytes and microseconds.
"""
BODIES_AT_ONCE = 512
"""Bodies that a thread takes at once against the terrain."""

ROOM = 4
"""Pairs for each body that fit at the first attempt."""
MOST_NEIGHBOURS = 50_000_000
"""Largest number of pairs whose boxes are compared, including filtered ones: about 0.1 s of work.
"""


def place(table: ShapeTable, motion: SweptMotion, dt: float) -> PlacedShapes:
    """Rotation matrices and boxes of all bodies."""
    n = len(motion.position)
    placed = PlacedShapes(np.empty((n, 3, 3)), np.empty((n, 3)), np.empty((n, 3)))
    kernels.swept_boxes(table, motion, dt, placed)
    return placed


def pairs_of(bodies: Bodies, placed: PlacedShapes, most: int) -> Ints:
    """(m, 2) pairs a < b whose boxes overlap and that no filter drops, sorted by a, then b.

    Raises CrowdError where they are more than `most`, before all of them are found, and where so
    many bodies lie in one place that MOST_NEIGHBOURS would be compared.
    """
    n = len(bodies)
    ignore = np.sort(bodies.ignore[bodies.ignore.min(axis=1, initial=0) >= 0], axis=1)
    ignored = np.unique(ignore[:, 0] * n + ignore[:, 1])

    # repeat with room for all pairs until they fit
    keys = np.empty(ROOM * n + 1024, np.int64)
    limits = np.array([most, MOST_NEIGHBOURS])
    while True:
        count = kernels.overlaps(
            placed.low, placed.high, bodies.static, bodies.group, ignored, limits, keys
        )
        if count > most:
            raise CrowdError(
                f"the boxes of more than {most:,} pairs of bodies overlap, no more are tested"
            )
        if count <= len(keys):
            break
        keys = np.empty(count, np.int64)

    # keys a·n + b as pairs
    keys = np.sort(keys[:count])
    pairs = np.empty((count, 2), np.int64)
    np.floor_divide(keys, n, out=pairs[:, 0])
    pairs[:, 1] = keys - pairs[:, 0] * n
    return pairs


class Scene:
    """The terrain, if any, and the rules. Holds no bodies: each call of `contacts` brings its own.

    `outside`: "extend": beyond the map's edge the ground goes on at the edge's height, as the
    altitude does; "void": there is none, and only what is over the map can touch it. `max_pairs`:
    how many pairs are tested at most.
    """

    def __init__(
        self,
        terrain: HeightMap | None = None,
        outside: Outside = "extend",
        max_pairs: int = MAX_PAIRS,
    ) -> None:
        """Raise ValueError for an unknown word for `outside`."""
        if outside not in ("extend", "void"):
            raise ValueError(f"outside is {outside!r}, expected 'extend' or 'void'")
        self.terrain = terrain
        self.outside: Outside = outside
        self.max_pairs = max_pairs
        self._last: tuple[tuple[Shape, ...], ShapeTable] | None = None

    def contacts(self, bodies: Bodies, dt: float = 0.0, pairs: Ints | None = None) -> Contacts:
        """Return all contacts of bodies that moved for `dt` seconds to their poses.

        A dt of 0 means the contacts of this moment. With a dt, contacts on the way count too, so
        that nothing passes through anything, and they have the time of the first touch. `pairs` (m,
        2), each a < b: only these are tested, whatever their groups. Raise BodiesError for a dt
        that is negative or not finite, and CrowdError if the boxes of more than `max_pairs` pairs
        overlap and no pairs are given.
        """
        finite_number("dt", dt, "s", at_least=0.0, error=BodiesError)
        if not len(bodies):
            return no_contacts()
        table = self._table(bodies.shapes)  # type: ignore[arg-type]
        motion = motion_of(bodies)
        placed = place(table, motion, float(dt))
        if pairs is None:
            pairs = pairs_of(bodies, placed, self.max_pairs)
        arguments = (table, motion, placed, float(dt))
        touching, columns = touches_of(pair_kernels.pair_contacts, arguments, pairs, PAIRS_AT_ONCE)
        between = Contacts(*touching.T.copy(), *columns)
        if self.terrain is None:
            return between
        return merged(self._with_terrain(self.terrain, bodies, placed, arguments), between)

    def _with_terrain(
        self, terrain: HeightMap, bodies: Bodies, placed: PlacedShapes, arguments: tuple[Any, ...]
    ) -> Contacts:
        from rfly_collision.narrow_phase import terrain_contact

        counts = ~bodies.static
        ignore = bodies.ignore
        counts[ignore.max(axis=1, initial=TERRAIN)[ignore.min(axis=1, initial=0) == TERRAIN]] = (
            False
        )
        chosen = np.flatnonzero(counts & (placed.low[:, 2] <= terrain.z_max))
        arguments = (self._terrain(terrain), *arguments)
        a, columns = touches_of(terrain_contact.terrain_contacts, arguments, chosen, BODIES_AT_ONCE)
        return Contacts(a, np.full(len(a), TERRAIN, np.int64), *columns)

    def _table(self, shapes: tuple[Shape, ...]) -> ShapeTable:
        """Return the table of the shapes, which the last call may have made."""
        if self._last is None or (self._last[0] is not shapes and self._last[0] != shapes):
            self._last = (shapes, table_of(shapes))
        return self._last[1]

    def _terrain(self, terrain: HeightMap) -> TerrainArrays:
        from rfly_collision.narrow_phase.ground_kernels import TerrainArrays
        from rfly_terrain.height_map.ray_pyramid import BLOCK_BITS, pyramid_of

        pyramid = pyramid_of(terrain)
        return TerrainArrays(
            terrain.ground, self.outside == "void", pyramid.maxima, pyramid.levels, BLOCK_BITS
        )


def motion_of(bodies: Bodies) -> SweptMotion:
    """Return the motion of bodies for the kernels."""
    return SweptMotion(
        bodies.shape_index,
        bodies.position,
        bodies.orientation,
        bodies.velocity,
        bodies.angular_velocity,
    )


def touches_of(
    kernel: Any, arguments: tuple[Any, ...], rows: Ints, at_once: int
) -> tuple[Ints, tuple[Any, ...]]:
    """Return the bodies or pairs `rows` that touch, and the further columns of `Contacts`."""
    m = len(rows)
    touches = Touches(
        np.empty(m, np.bool_), np.empty((m, 3)), np.empty((m, 3)), np.empty(m), np.empty(m)
    )

    def work(start: int, stop: int) -> None:
        kernel(
            *arguments, rows[start:stop], Touches._make(column[start:stop] for column in touches)
        )

    in_chunks(work, m, at_once)
    return rows[touches.touching], tuple(column[touches.touching] for column in touches[1:])


def merged(one: Contacts, other: Contacts) -> Contacts:
    """Return both together, sorted by a, then b."""
    if not len(one):
        return other
    both = one.concatenate(other)
    return both.select(np.lexsort((both.b, both.a)))


def warm_up() -> None:
    """Run every kernel once with the types of argument that a scene passes.

    This loads SciPy and other libraries in any case.
    """
    from rfly_collision.shapes.shape import Box, Sphere
    from rfly_terrain.height_map.height_map import HeightMap

    flat = HeightMap(
        np.zeros((2, 2), np.float32), origin_x=-1.0, origin_y=-1.0, step_x=2.0, step_y=2.0
    )
    level = np.array([(0.0, 0.0, 0.0, 1.0)] * 2)
    bodies = Bodies((Sphere(1.0), Box((1.0, 1.0, 1.0))), np.arange(2), np.zeros((2, 3)), level)
    Scene(flat).contacts(bodies, 0.1)


NO_PAIRS = np.empty((0, 2), np.int64)


def contacts_or_ground(scene: Scene, bodies: Bodies, dt: float = 0.0) -> tuple[Contacts, str]:
    """Return all contacts and an empty warning.

    For a crowd that is too large, return the contacts with the ground and a warning.
    """
    try:
        return scene.contacts(bodies, dt), ""
    except CrowdError as error:
        return scene.contacts(bodies, dt, NO_PAIRS), f"only the ground is tested: {error}"


def not_ended_within_step(scene: Scene, bodies: Bodies, dt: float, contacts: Contacts) -> Bools:
    """Return False (m,) for contacts that were there at the step's begin and are gone at its end.

    Those are the end of an old contact, not a new one. A contact with a depth touches at the end;
    one with a time has begun on the way; the rest is tested again in the present pose.
    """
    kept = np.ones(len(contacts), np.bool_)
    unsure = (
        np.flatnonzero((contacts.depth == 0) & (contacts.time == 0))
        if dt > 0
        else np.empty(0, np.int64)
    )
    if not len(unsure):
        return kept

    # the bodies of these contacts alone, where they are now
    a = contacts.a[unsure]
    b = contacts.b[unsure]
    with_body = b != TERRAIN
    involved, place = np.unique(np.concatenate((a, b[with_body])), return_inverse=True)
    pairs = np.column_stack((place[: len(a)][with_body], place[len(a) :]))
    now = scene.contacts(
        Bodies(
            bodies.shapes,
            bodies.shape_index[involved],
            bodies.position[involved],
            bodies.orientation[involved],
            static=bodies.static[involved],
        ),
        pairs=pairs,
    )

    # contacts that are found again
    n = len(bodies)
    partner = np.where(now.b == TERRAIN, n, involved[now.b] if len(involved) else 0)
    kept[unsure] = np.isin(
        a * (n + 1) + np.where(b == TERRAIN, n, b), involved[now.a] * (n + 1) + partner
    )
    return kept


def touch_when_moved(
    scene: Scene,
    bodies: Bodies,
    which: Ints,
    partner: Ints,
    displacement: Floats,
) -> Bools:
    """Return whether bodies would touch their partners, (m,), if moved by `displacement` (m, 3), m.

    Partners are bodies or TERRAIN. Each pair is tested by itself, however often it is named.
    """
    m = len(which)
    touch = np.zeros(m, np.bool_)
    if not m:
        return touch

    # the moved bodies, then their partners, which stand still
    with_body = partner != TERRAIN
    others, place = np.unique(partner[with_body], return_inverse=True)
    rows = np.concatenate((which, others))
    position = bodies.position[rows]
    position[:m] += displacement
    contacts = scene.contacts(
        Bodies(
            bodies.shapes,
            bodies.shape_index[rows],
            position,
            bodies.orientation[rows],
            static=np.repeat([False, True], [m, len(others)]),
        ),
        pairs=np.column_stack((np.flatnonzero(with_body), m + place.reshape(-1))),
    )

    # a body touches if its contact is with its own partner
    expected = np.full(m, TERRAIN)
    expected[with_body] = m + place.reshape(-1)
    touch[contacts.a[contacts.b == expected[contacts.a]]] = True
    return touch

"""Variants of a scene's contact query: crowd limit, overlap at the start, clearance."""

from __future__ import annotations

import numpy as np

from rfly_collision.narrow_phase.bodies import TERRAIN, Bodies, Contacts
from rfly_collision.world.scene import Scene
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.errors import CrowdError

NO_PAIRS = np.empty((0, 2), np.int64)


def contacts_or_ground(scene: Scene, bodies: Bodies, dt: float = 0.0) -> tuple[Contacts, str]:
    """All contacts and "", or where a crowd is too large those with the ground alone, and what is to be said of it."""
    try:
        return scene.contacts(bodies, dt), ""
    except CrowdError as error:
        return scene.contacts(bodies, dt, NO_PAIRS), f"only the ground is tested: {error}"


def not_ended_within_step(scene: Scene, bodies: Bodies, dt: float, contacts: Contacts) -> Bools:
    """(m,) False for contacts of a step that were there at its begin and are not any more at its end.

    Those are the end of an old contact, not a new one. What has a depth touches at the end; what has a time has begun
    on the way; the rest is tested again where it is now.
    """
    kept = np.ones(len(contacts), np.bool_)
    unsure = np.flatnonzero((contacts.depth == 0) & (contacts.time == 0)) if dt > 0 else np.empty(0, np.int64)
    if not len(unsure):
        return kept
    a, b = contacts.a[unsure], contacts.b[unsure]
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
    n = len(bodies)
    partner = np.where(now.b == TERRAIN, n, involved[now.b] if len(involved) else 0)
    kept[unsure] = np.isin(a * (n + 1) + np.where(b == TERRAIN, n, b), involved[now.a] * (n + 1) + partner)
    return kept


def touch_when_moved(
    scene: Scene,
    bodies: Bodies,
    which: Ints,
    partner: Ints,
    displacement: Floats,
) -> Bools:
    """(m,) whether bodies would touch their partners (bodies, or TERRAIN) if moved by `displacement` (m, 3) m.

    Each is tested by itself, however often it is named.
    """
    m = len(which)
    touch = np.zeros(m, np.bool_)
    if not m:
        return touch
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
    expected = np.full(m, TERRAIN)
    expected[with_body] = m + place.reshape(-1)
    touch[contacts.a[contacts.b == expected[contacts.a]]] = True
    return touch

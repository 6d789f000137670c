"""World: a terrain and what stands on it. Immutable: a change makes another one, of the next
version.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rfly_common.arrays import Floats
from rfly_terrain.world.models import Model, placed_part, scaled
from rfly_terrain.world.moving import MovingObject, MovingSolids
from rfly_terrain.world.solids import Solids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rfly_terrain.height_map.height_map import HeightMap


@dataclass(frozen=True)
class WorldObject:
    """A model at a place, upright. ENU, m."""

    model: Model
    x: float
    y: float
    yaw: float = 0.0
    """rad, counter-clockwise from east"""
    z: float | None = None
    """where the model's z = 0 is; None: on the ground at x, y"""
    scale: float = 1.0

    @property
    def scaled_model(self) -> Model:
        """The model in its size here."""
        return scaled(self.model, self.scale)


@dataclass(frozen=True, eq=False)
class World:
    """A snapshot: readers keep it as long as they like, a change is another one.

    Without a terrain the ground is level at z = 0.
    """

    name: str = ""
    objects: tuple[WorldObject, ...] = ()
    map: str = ""
    """the map that the objects were placed for, by its name or path; "": any"""
    folder: str = ""
    """of the file that it was read from, where its map may lie too; "": none"""
    terrain: HeightMap | None = None
    version: int = 0
    moving: tuple[MovingObject, ...] = ()
    """what moves among the objects, which stand still"""

    def on(self, terrain: HeightMap | None) -> World:
        """The same objects on another ground."""
        return dataclasses.replace(self, terrain=terrain, version=self.version + 1)

    def with_objects(self, objects: Iterable[WorldObject]) -> World:
        """Other objects on the same ground."""
        return dataclasses.replace(self, objects=tuple(objects), version=self.version + 1)

    @functools.cached_property
    def positions(self) -> Floats:
        """(n, 3) where each object's model has z = 0."""
        at = np.array(
            [(o.x, o.y, 0.0 if o.z is None else o.z) for o in self.objects], float
        ).reshape(-1, 3)
        if self.terrain is not None and len(at):
            on_ground = np.array([o.z is None for o in self.objects])
            altitude = np.asarray(self.terrain.altitude(at[:, 0], at[:, 1]), float)
            at[:, 2] = np.where(on_ground, altitude, at[:, 2])
        at.flags.writeable = False
        return at

    @functools.cached_property
    def solids(self) -> Solids:
        """The convex parts of all objects that stand still, where they are."""
        parts = [
            placed_part(part, at, o.yaw)
            for o, at in zip(self.objects, self.positions, strict=True)
            for part in o.scaled_model.parts
        ]
        first = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        return Solids(np.concatenate([np.empty((0, 3)), *parts]), first)

    @functools.cached_property
    def moving_solids(self) -> MovingSolids | None:
        """The convex parts of what moves, on paths over the ground; None: nothing does."""
        if not self.moving:
            return None
        return MovingSolids(
            tuple(each.path.on(self.terrain) for each in self.moving),
            tuple(each.scaled_model.parts for each in self.moving),
        )

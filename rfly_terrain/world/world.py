# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""World: a terrain and its objects. Immutable: a change makes one of the next version."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rfly_common.arrays import Floats
from rfly_terrain.world.ground_friction import TYRES_OWN, GroundFriction
from rfly_terrain.world.models import CLASSES, Model, placed_part, scaled
from rfly_terrain.world.moving import MovingObject, MovingSolids
from rfly_terrain.world.solids import Solids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rfly_terrain.height_map.height_map import HeightMap


@dataclass(frozen=True)
class WorldObject:
    """A model at a place, upright. ENU, m."""

    model: Model
    """Model."""
    x: float
    """Position east, m."""
    y: float
    """Position north, m."""
    yaw: float = 0.0
    """Yaw, rad, counter-clockwise from east."""
    z: float | None = None
    """Height of the model's z = 0, m; None: on the ground at x, y."""
    scale: float = 1.0
    """Factor on the model's size."""

    @property
    def scaled_model(self) -> Model:
        """Model in its size here."""
        return scaled(self.model, self.scale)


@dataclass(frozen=True, eq=False)
class World:
    """A snapshot of a terrain and its objects; a change makes another one.

    Without a terrain the ground is level at z = 0.
    """

    name: str = ""
    objects: tuple[WorldObject, ...] = ()
    """Objects that stand still."""
    map: str = ""
    """Name or path of the map for which the objects were placed; "": any."""
    folder: str = ""
    """Folder of the file that it was read from, where its map may be too; "": none."""
    terrain: HeightMap | None = None
    """Ground; None: level at z = 0."""
    version: int = 0
    """Number of changes so far."""
    moving: tuple[MovingObject, ...] = ()
    """Objects that move."""
    fleet: str = ""
    """Name or path of the fleet that drives here by default; "": none."""
    friction: GroundFriction = TYRES_OWN
    """Friction of the ground."""

    def on(self, terrain: HeightMap | None) -> World:
        """Return the same objects on another ground."""
        return dataclasses.replace(self, terrain=terrain, version=self.version + 1)

    def off_map(self, terrain: HeightMap) -> tuple[int, ...]:
        """Return the indices of the objects that stand off the map."""
        inside = [terrain.inside(each.x, each.y) for each in self.objects]
        return tuple(index for index, is_inside in enumerate(inside) if not is_inside)

    def with_objects(self, objects: Iterable[WorldObject]) -> World:
        """Return other objects on the same ground."""
        return dataclasses.replace(self, objects=tuple(objects), version=self.version + 1)

    @functools.cached_property
    def positions(self) -> Floats:
        """Position of each object's model, z = 0, (n, 3)."""
        places = [(o.x, o.y, 0.0 if o.z is None else o.z) for o in self.objects]
        positions = np.array(places, float).reshape(-1, 3)
        if self.terrain is not None and len(positions):
            on_ground = np.array([o.z is None for o in self.objects])
            altitude = np.asarray(self.terrain.altitude(positions[:, 0], positions[:, 1]), float)
            positions[:, 2] = np.where(on_ground, altitude, positions[:, 2])
        positions.flags.writeable = False
        return positions

    @functools.cached_property
    def solids(self) -> Solids:
        """Convex parts of all objects that stand still, at their places."""
        parts = [
            placed_part(part, position, placed.yaw)
            for placed, position in zip(self.objects, self.positions, strict=True)
            for part in placed.scaled_model.parts
        ]
        first = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        return Solids(np.concatenate([np.empty((0, 3)), *parts]), first)

    def nearest(self, point: Floats, reach: float, time: float = 0.0) -> str:
        """Return name, class and place of the object nearest to a point (3,) at a time (s).

        Distances are those to the boxes around objects. "" if none is within `reach` (m).
        """
        placed = [
            (each.scaled_model, position, each.yaw)
            for each, position in zip(self.objects, self.positions, strict=True)
        ]
        for body in self.moving:
            position, yaw, _ = body.path.on(self.terrain).at(time)
            placed.append((body.scaled_model, position, yaw))

        nearest = ""
        for model, position, yaw in placed:
            corners = placed_part(np.concatenate(model.parts), position, yaw)
            outside = np.maximum(corners.min(axis=0) - point, point - corners.max(axis=0))
            distance = float(np.linalg.norm(np.maximum(outside, 0.0)))
            if distance <= reach:
                reach = distance
                kind = f" ({CLASSES[model.class_id]})" if model.class_id else ""
                nearest = f"{model.name}{kind} at x {position[0]:.1f}, y {position[1]:.1f} m"
        return nearest

    @functools.cached_property
    def moving_solids(self) -> MovingSolids | None:
        """Convex parts of moving objects, on paths over the ground; None without any."""
        if not self.moving:
            return None
        return MovingSolids(
            tuple(body.path.on(self.terrain) for body in self.moving),
            tuple(body.scaled_model.parts for body in self.moving),
        )

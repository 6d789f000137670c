"""Ray casting in a scene: ground, other vehicles, placed objects."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rfly_amphibious.sensors import scene_ray_kernels as kernels
from rfly_amphibious.sensors.scene_ray_kernels import Hits
from rfly_collision.shapes.shape import Shape
from rfly_collision.shapes.shape_table import ShapeTable, table_of
from rfly_common.arrays import Floats, Ints
from rfly_common.frames import quat_rotate, rotation_matrix

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap


GROUND = -1
"""in `Hits.body`"""
NOTHING = -2


@dataclass(frozen=True, eq=False)
class SceneBodies:
    """b convex bodies, each with one shape and in even motion. ENU, SI."""

    shapes: tuple[Shape, ...]
    shape_index: Ints
    """(b,) which of the shapes each has"""
    position: Floats
    """(b, 3) of the origins"""
    orientation: Floats
    """(b, 4) xyzw, body (FLU) -> ENU"""
    velocity: Floats
    """(b, 3) m/s"""
    time: Floats
    """(b,) s at which they are there"""
    id: Ints
    """(b,) of vehicles and objects, whatever the caller tells them apart by"""
    color: Floats | None = None
    """(b, 3) red, green, blue, 0 … 1; NaN, or None for all: one of the id"""
    class_id: Ints | None = None
    """(b,) what each is, a place in `rfly_terrain.world.models.CLASSES`; None: unknown"""

    def __len__(self) -> int:
        return len(self.position)


def joined(parts: Sequence[SceneBodies]) -> SceneBodies:
    """All bodies of several scenes."""
    shapes = tuple(shape for part in parts for shape in part.shapes)
    starts = np.cumsum([0, *(len(part.shapes) for part in parts)])
    index = [part.shape_index + start for part, start in zip(parts, starts, strict=False)]
    position, orientation, velocity, time, number = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("position", "orientation", "velocity", "time", "id")
    )
    color = None
    if any(part.color is not None for part in parts):
        color = np.concatenate([np.full((len(p), 3), np.nan) if p.color is None else p.color for p in parts])
    class_id = np.concatenate([np.zeros(len(p), np.int64) if p.class_id is None else p.class_id for p in parts])
    return SceneBodies(shapes, np.concatenate(index), position, orientation, velocity, time, number, color, class_id)


@dataclass(frozen=True, eq=False)
class SceneRays:
    """The ground (None: level at z = 0) and the bodies at one time."""

    terrain: HeightMap | None = None
    bodies: SceneBodies | None = None

    def cast(self, origins: Floats, directions: Floats, max_range: float, times: Floats | float = 0.0) -> Hits:
        """The nearest thing that each ray meets within `max_range` (m).

        `origins` (n, 3) m and unit `directions` (n, 3), ENU; `times` (n,) s or one for all: when each ray is sent, for
        bodies that move. A ray that begins in something meets it at 0.
        """
        if self.terrain is not None:
            ranges, normals = self.terrain.cast(origins, directions, max_range, normals=True)
        else:
            ranges, normals = _level_ground(origins, directions, max_range)
        body = np.where(np.isfinite(ranges), GROUND, NOTHING)
        if self.bodies is not None and len(self.bodies):
            _cast_at_bodies(self.bodies, origins, directions, max_range, times, Hits(ranges, normals, body))
        return Hits(ranges, normals, body)


def _level_ground(origins: Floats, directions: Floats, max_range: float) -> tuple[Floats, Floats]:
    height, down = origins[:, 2], -directions[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        ranges = np.where(down > 0.0, height / down, np.inf)
    ranges[height <= 0.0] = 0.0
    ranges[ranges > max_range] = np.inf
    normals = np.zeros((len(ranges), 3))
    normals[:, 2] = 1.0
    normals[np.isinf(ranges)] = np.nan
    return ranges, normals


@functools.lru_cache(maxsize=8)
def _table(shapes: tuple[Shape, ...]) -> ShapeTable:
    return table_of(shapes)


def _cast_at_bodies(
    bodies: SceneBodies, origins: Floats, directions: Floats, max_range: float, times: Floats | float, hits: Hits
) -> None:
    """Puts the nearer hits of bodies into `hits`."""
    table = _table(bodies.shapes)
    origins = np.ascontiguousarray(origins)
    when = np.empty(len(origins))
    when[:] = times
    limits = np.empty((2, 4))
    kernels.limits(origins, when, limits)
    middle_time, span = 0.5 * (limits[0, 3] + limits[1, 3]), 0.5 * (limits[1, 3] - limits[0, 3])
    low, high = limits[0, :3], limits[1, :3]
    eye, spread = 0.5 * (low + high), 0.5 * float(np.linalg.norm(high - low))
    # where they are in the middle of the sweep, and how far bodies and sensor are from there at most
    position = bodies.position + bodies.velocity * (middle_time - bodies.time)[:, None]
    reach = (table.extent + table.radius)[bodies.shape_index] * (1.0 + 1e-9)
    slack = reach + spread + span * np.linalg.norm(bodies.velocity, axis=1)
    centre = position + quat_rotate(bodies.orientation, table.centre[bodies.shape_index]) - eye
    near = np.linalg.norm(centre, axis=1) - slack
    there = np.flatnonzero(near <= max_range)
    if not len(there):
        return
    sectors = _sectors(centre[there], slack[there], near[there])
    in_range = kernels.BodiesInRange(
        time=middle_time,
        scene_index=there,
        shape=bodies.shape_index[there],
        position=position[there],
        rotation=np.ascontiguousarray(rotation_matrix(bodies.orientation[there])),
        velocity=np.ascontiguousarray(bodies.velocity[there], np.float64),
        middle=centre[there] + eye,
        reach=reach[there],
        near=near[there],
    )
    rays = kernels.Rays(origins, np.ascontiguousarray(directions), when, float(max_range))
    kernels.nearest_bodies(rays, sectors, in_range, table, hits)


def _sectors(centre: Floats, radius: Floats, near: Floats) -> kernels.Sectors:
    """What may be seen in each sector, the nearest first."""
    distance = np.hypot(centre[:, 0], centre[:, 1])
    around = distance <= radius
    half = np.arcsin(np.minimum(radius / np.maximum(distance, 1e-300), 1.0)) + 1e-9
    azimuth = np.arctan2(centre[:, 1], centre[:, 0])
    first, last = np.empty(len(centre), np.int64), np.empty(len(centre), np.int64)
    for angle, out in ((azimuth - half, first), (azimuth + half, last)):
        kernels.sectors(np.cos(angle), np.sin(angle), out)
    count = np.where(around, kernels.BINS, (last - first) % kernels.BINS + 1)
    which = np.repeat(np.arange(len(centre)), count)
    step = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    bins = (np.repeat(np.where(around, 0, first), count) + step) % kernels.BINS
    order = np.lexsort((near[which], bins))
    begins = np.searchsorted(bins[order], np.arange(kernels.BINS + 1))
    return kernels.Sectors(begins, which[order])

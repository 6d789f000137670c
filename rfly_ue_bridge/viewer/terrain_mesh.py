"""A HeightMap as a mesh with a picture on it: height colours, shaded by the slopes of the full map."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from rfly_terrain.height_map import HeightMap

MAX_TRIANGLES = 400_000
MAX_PICTURE = 2048
"""pixels of the longer side of the picture"""
_FINEST = 3
"""A cell becomes 3 x 3 quads at most."""

_TINTS = np.array(
    [(112, 140, 92), (138, 162, 104), (172, 180, 122), (206, 198, 148), (208, 182, 142), (184, 156, 130),
     (172, 160, 150), (216, 214, 212), (248, 249, 250)], np.float32)  # fmt: skip
"""valley to snow, sRGB"""
_LEVEL = (150, 160, 148)
"""colour of ground without heights"""
_SUN = np.array([-0.55, 0.55, 0.63]) / np.sqrt(0.55**2 + 0.55**2 + 0.63**2)
"""ENU: from the north-west, as on maps"""


@dataclass(frozen=True, eq=False)
class TerrainMesh:
    """Vertices ENU in m, triangles with their fronts up, and the picture that `uv` points into."""

    vertices: NDArray[np.float32]
    normals: NDArray[np.float32]
    uv: NDArray[np.float32]
    """(v, 2); (0, 0) is the picture's lower left corner"""
    faces: NDArray[np.uint32]
    picture: NDArray[np.uint8]
    """(height, width, 3) RGB, north up"""


def terrain_mesh(terrain: HeightMap, max_triangles: int = MAX_TRIANGLES) -> TerrainMesh:
    """At most `max_triangles` (4 at least): a large map is thinned, a small one refined, all vertices on the ground.

    Each quad is four triangles around its middle: in a cell, whose ground is bilinear, they are off by a 16th of its
    twist at most, where two triangles would be off by a quarter.
    """
    x_min, x_max, y_min, y_max = terrain.bounds
    columns, rows = _grid(terrain.rows - 1, terrain.columns - 1, max_triangles // 4)
    share_x, share_y = np.linspace(0, 1, columns + 1), np.linspace(0, 1, rows + 1)
    corners = np.stack(np.meshgrid(share_x, share_y), axis=-1).reshape(-1, 2)
    middles = np.stack(np.meshgrid(_between(share_x), _between(share_y)), axis=-1).reshape(-1, 2)
    uv = np.concatenate([corners, middles])
    east, north = x_min + uv[:, 0] * (x_max - x_min), y_min + uv[:, 1] * (y_max - y_min)
    ground = terrain.query(east, north, want_normals=True, smooth=True)
    return TerrainMesh(
        np.column_stack([east, north, ground.altitude]).astype(np.float32),
        ground.normal.astype(np.float32),
        uv.astype(np.float32),
        _faces(rows, columns),
        terrain_picture(terrain),
    )


def _between(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return (values[:-1] + values[1:]) / 2


def _grid(cells_x: int, cells_y: int, quads: int) -> tuple[int, int]:
    """Quads along x and y: several for each cell, or one, or fewer where the budget does not allow that."""
    if max(cells_x, cells_y) == 1:
        return 1, 1
    for finer in range(_FINEST, 0, -1):
        if cells_x * finer * cells_y * finer <= quads:
            return cells_x * finer, cells_y * finer
    quads = max(1, quads)
    along_x = int(np.clip(cells_x * np.sqrt(quads / (cells_x * cells_y)), 1, quads))
    return along_x, int(np.clip(cells_y * along_x / cells_x, 1, max(1, quads // along_x)))


def _faces(rows: int, columns: int) -> NDArray[np.uint32]:
    """Four triangles, counter-clockwise from above, for each quad; the middles follow the corners."""
    corner = np.arange((rows + 1) * (columns + 1), dtype=np.uint32).reshape(rows + 1, columns + 1)
    ring = [corner[:-1, :-1].ravel(), corner[:-1, 1:].ravel(), corner[1:, 1:].ravel(), corner[1:, :-1].ravel()]
    middle = np.arange(rows * columns, dtype=np.uint32) + corner.size
    sides = zip(ring, ring[1:] + ring[:1], strict=True)
    return np.concatenate([np.column_stack([here, there, middle]) for here, there in sides]).astype(np.uint32)


def terrain_picture(terrain: HeightMap) -> NDArray[np.uint8]:
    """(height, width, 3) RGB, north up, east right: tinted by height, rock where it is steep, shaded."""
    x_min, x_max, y_min, y_max = terrain.bounds
    size = min(MAX_PICTURE, 4 * max(terrain.rows, terrain.columns))
    longest = max(x_max - x_min, y_max - y_min)
    width = max(2, round(size * (x_max - x_min) / longest))
    height = max(2, round(size * (y_max - y_min) / longest))
    low, high = terrain.z_min, terrain.z_max
    if high <= low:
        return _level_picture()
    z = terrain.heights.T[:: 1 if terrain.step_y < 0 else -1, :: 1 if terrain.step_x > 0 else -1]
    shrinks = z.shape[0] > height or z.shape[1] > width
    how = cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC
    z = np.asarray(cv2.resize(np.ascontiguousarray(z), (width, height), interpolation=how), np.float32)
    share = np.clip((z - low) / (high - low), 0, 1)
    tint = np.stack([np.interp(share, np.linspace(0, 1, len(_TINTS)), _TINTS[:, i]) for i in range(3)], axis=-1)
    slope_y, slope_x = np.gradient(z, -(y_max - y_min) / height, (x_max - x_min) / width)
    steep = np.hypot(slope_x, slope_y)
    facing = (_SUN[2] - slope_x * _SUN[0] - slope_y * _SUN[1]) / np.sqrt(1 + steep**2)
    rock = np.clip((steep - 0.45) / 0.5, 0, 0.75)[..., None]
    tint = tint * (1 - rock) + np.array([128, 116, 106]) * rock
    light = np.clip(1.0 + 0.55 * (facing - _SUN[2]), 0.4, 1.3) * _grain(height, width)
    return np.clip(tint * light[..., None], 0, 255).astype(np.uint8)


def _grain(height: int, width: int) -> NDArray[np.float32]:
    """(height, width) about 1: spots of several sizes, the same each time, that the eye can hold on to."""
    noise = np.random.default_rng(7).normal(0.0, 1.0, (512, 512)).astype(np.float32)
    grain = 0.05 * noise
    for size, strength in ((1.5, 0.05), (5.0, 0.05), (16.0, 0.05)):
        soft = cv2.GaussianBlur(noise, (0, 0), size)
        grain += strength * soft / soft.std()
    return np.tile(1 + grain, (-(-height // 512), -(-width // 512)))[:height, :width]


def _level_picture() -> NDArray[np.uint8]:
    """Plain ground with a grid of 40 x 40 squares."""
    picture = np.full((1600, 1600, 3), _LEVEL, np.uint8)
    for start in range(0, 1600, 40):
        picture[start : start + 2] = picture[:, start : start + 2] = (128, 138, 128)
    return picture

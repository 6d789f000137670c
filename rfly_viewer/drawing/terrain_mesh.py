"""Textured mesh of a HeightMap: height colours, shaded by the slopes of the full map.

Tiles without seams keep the ground sharp near a camera, where its picture has metres for a pixel.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_terrain.height_map.height_map import HeightMap

TILE_M = {"normalTexture": 9.0, "occlusionTexture": 83.0}
"""side of the tile of each of glTF's textures on the ground, m: no multiple of each other, so that
nothing repeats
"""
_PIXELS = 512
_BUMPS = 0.55
"""steepness of the normals' bumps"""


def waves(seed: int, sizes: tuple[float, ...], pixels: int = _PIXELS) -> NDArray[np.float32]:
    """(pixels, pixels) noise of these sizes in pixels, each as strong as the others; mean 0,
    deviation 1, seamless.
    """
    noise = np.random.default_rng(seed).normal(0.0, 1.0, (pixels, pixels)).astype(np.float32)
    reach = pixels // 4
    around = cv2.copyMakeBorder(noise, reach, reach, reach, reach, cv2.BORDER_WRAP)
    total = np.zeros((pixels, pixels), np.float32)
    for size in sizes:
        soft = cv2.GaussianBlur(around, (0, 0), size)[reach:-reach, reach:-reach]
        total += soft / soft.std()
    return np.asarray((total - total.mean()) / total.std(), np.float32)


@functools.cache
def detail_tiles() -> dict[str, NDArray[np.uint8]]:
    """RGB pictures by glTF's names: small bumps that the sun lights, and larger spots that the
    skylight darkens.
    """
    heights = waves(7, (1.2, 3.0, 9.0))
    across, up = (np.roll(heights, 1, axis) - np.roll(heights, -1, axis) for axis in (1, 0))
    normal = np.dstack([_BUMPS * across, -_BUMPS * up, np.ones_like(heights)])
    normal /= np.linalg.norm(normal, axis=2, keepdims=True)
    spots = np.clip(180 + 62 * waves(11, (1.0, 3.0, 8.0, 20.0)), 30, 255).astype(np.uint8)
    return {
        "normalTexture": np.round(127.5 * (normal + 1)).astype(np.uint8),
        "occlusionTexture": np.dstack([spots] * 3),
    }


MAX_TRIANGLES = 400_000
MAX_PICTURE = 2048
"""pixels of the longer side of the picture"""
_PIXELS_PER_SAMPLE = 16
_ROWS_AT_ONCE = 512
_GRAIN = 512
_ROCK = (148, 136, 124)
_FINEST = 3
"""A cell becomes 3 x 3 quads at most."""

_TINTS = np.array(
    [(112, 140, 92), (138, 162, 104), (172, 180, 122), (206, 198, 148), (208, 182, 142), (184, 156, 130),
     (172, 160, 150), (216, 214, 212), (248, 249, 250)], np.float32)  # fmt: skip
"""valley to snow, sRGB"""
_LEVEL = (150, 160, 148)
"""colour of ground without heights"""
_SUN = (-0.55, 0.55, 0.63)
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


def terrain_mesh(
    terrain: HeightMap, max_triangles: int = MAX_TRIANGLES, max_picture: int = MAX_PICTURE
) -> TerrainMesh:
    """At most `max_triangles` (4 at least): a large map is thinned, a small one refined, all
    vertices on the ground.

    Each quad is four triangles around its middle: in a cell, whose ground is bilinear, they are off
    by a 16th of its twist at most, where two triangles would be off by a quarter.
    """
    x_min, x_max, y_min, y_max = terrain.bounds
    columns, rows = _grid(terrain.rows - 1, terrain.columns - 1, max_triangles // 4)
    share_x = np.linspace(0, 1, columns + 1)
    share_y = np.linspace(0, 1, rows + 1)
    corners = np.stack(np.meshgrid(share_x, share_y), axis=-1).reshape(-1, 2)
    middles = np.stack(np.meshgrid(_between(share_x), _between(share_y)), axis=-1).reshape(-1, 2)
    uv = np.concatenate([corners, middles])
    east = x_min + uv[:, 0] * (x_max - x_min)
    north = y_min + uv[:, 1] * (y_max - y_min)
    ground = terrain.query(east, north, want_normals=True, smooth=True)
    return TerrainMesh(
        np.column_stack([east, north, ground.altitude]).astype(np.float32),
        ground.normal.astype(np.float32),
        uv.astype(np.float32),
        _faces(rows, columns),
        terrain_picture(terrain, max_picture),
    )


def _between(values: Floats) -> Floats:
    return (values[:-1] + values[1:]) / 2


def _grid(cells_x: int, cells_y: int, quads: int) -> tuple[int, int]:
    """Quads along x and y: several for each cell, or one, or fewer where the budget does not allow
    that.
    """
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
    ring = [
        corner[:-1, :-1].ravel(),
        corner[:-1, 1:].ravel(),
        corner[1:, 1:].ravel(),
        corner[1:, :-1].ravel(),
    ]
    middle = np.arange(rows * columns, dtype=np.uint32) + corner.size
    sides = zip(ring, ring[1:] + ring[:1], strict=True)
    return np.concatenate([np.column_stack([here, there, middle]) for here, there in sides]).astype(
        np.uint32
    )


def terrain_picture(terrain: HeightMap, max_pixels: int = MAX_PICTURE) -> NDArray[np.uint8]:
    """(height, width, 3) RGB, north up, east right: tinted by height, rock where it is steep,
    shaded.
    """
    x_min, x_max, y_min, y_max = terrain.bounds
    if terrain.z_max <= terrain.z_min:
        picture = _level_picture()
        side = min(max_pixels, len(picture))
        return np.asarray(cv2.resize(picture, (side, side), interpolation=cv2.INTER_AREA), np.uint8)
    size = min(max_pixels, _PIXELS_PER_SAMPLE * max(terrain.rows, terrain.columns))
    longest = max(x_max - x_min, y_max - y_min)
    width = max(2, round(size * (x_max - x_min) / longest))
    height = max(2, round(size * (y_max - y_min) / longest))
    z = terrain.heights.T[:: 1 if terrain.step_y < 0 else -1, :: 1 if terrain.step_x > 0 else -1]
    how = cv2.INTER_AREA if z.shape[0] > height or z.shape[1] > width else cv2.INTER_CUBIC
    z = np.asarray(
        cv2.resize(np.ascontiguousarray(z), (width, height), interpolation=how), np.float32
    )
    picture = np.empty((height, width, 3), np.uint8)
    scale = (x_max - x_min) / width, (y_max - y_min) / height
    grain = _grain()
    for start in range(0, height, _ROWS_AT_ONCE):
        rows = slice(
            max(0, start - 1), min(height, start + _ROWS_AT_ONCE + 1)
        )  # a row more on each side, for slopes
        drawn = slice(start, min(height, start + _ROWS_AT_ONCE))
        shown = _shaded(z[rows], scale, (terrain.z_min, terrain.z_max))[drawn.start - rows.start :]
        shown = shown[: drawn.stop - drawn.start]
        texture = np.tile(np.roll(grain, -start, axis=0)[: len(shown)], (1, -(-width // _GRAIN)))[
            :, :width
        ]
        picture[drawn] = np.clip(shown * texture[..., None], 0, 255)
    return picture


def _shaded(
    z: NDArray[np.float32], scale: tuple[float, float], limits: tuple[float, float]
) -> NDArray[np.float32]:
    """Colours (0 … 255, floats) of heights whose pixels are `scale` metres wide and high."""
    low, high = limits
    levels = np.linspace(0, len(_TINTS) - 1, 256)
    table = np.column_stack(
        [np.interp(levels, np.arange(len(_TINTS)), _TINTS[:, i]) for i in range(3)]
    )
    level = np.clip((z - low) * (255 / (high - low)), 0, 255).astype(np.uint8)
    tint = cv2.LUT(cv2.merge([level] * 3), table.astype(np.uint8)[None])
    slope_x = cv2.Sobel(z, cv2.CV_32F, 1, 0, ksize=1, scale=0.5 / scale[0])
    slope_y = cv2.Sobel(z, cv2.CV_32F, 0, 1, ksize=1, scale=-0.5 / scale[1])
    steep = cv2.magnitude(slope_x, slope_y)
    facing = (_SUN[2] - slope_x * _SUN[0] - slope_y * _SUN[1]) / np.sqrt(1 + steep * steep)
    light = np.clip((1.0 - 0.55 * _SUN[2]) + 0.55 * facing, 0.4, 1.3)
    rock = np.clip((steep - 0.45) / 0.5, 0, 0.75)
    shown: NDArray[np.float32] = tint * (light * (1 - rock))[..., None]
    for channel, value in enumerate(_ROCK):
        shown[..., channel] += (value * light) * rock
    return shown


def _grain() -> NDArray[np.float32]:
    """A tile about 1 without seams: spots of several sizes, the same each time, that the eye can
    hold on to.
    """
    return np.asarray(1 + 0.08 * waves(7, (0.5, 1.5, 5.0, 16.0), _GRAIN), np.float32)


def _level_picture() -> NDArray[np.uint8]:
    """Plain ground with a grid of 100 x 100 squares."""
    picture = np.full((2000, 2000, 3), _LEVEL, np.uint8)
    for start in range(0, 2000, 20):
        picture[start : start + 1] = picture[:, start : start + 1] = (122, 134, 122)
    return picture

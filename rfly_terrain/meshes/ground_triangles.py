"""The ground as coloured triangles, for viewers that draw triangles and neither light nor textures.

The samples of a map, or as many points between its edges as a limit allows, are the corners of
quads of two triangles each: without gaps, every corner on the ground. Heights and costs lie on the
same corners, so that a layer of costs follows the ground wherever the map is thinned.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_terrain.costmap.traversability import LETHAL, WORST_FREE, TraversabilityGrid
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.plots.relief import hillshade, lit

HEIGHT_TINTS = (
    "#243e62",
    "#2b5a6f",
    "#4a756c",
    "#748e66",
    "#aaa266",
    "#d9b67f",
    "#f3d2aa",
    "#f9efe1",
)
"""lowest to highest: CIE lightness 26, 36, … 86, 95, so that brighter is higher also without hues
"""
COST_TINTS = ("#fff3b0", "#fdc070", "#f07a4a", "#c22d4f", "#7a1660")
"""cost 0 to 99: the darker the harder"""
FORBIDDEN_TINT = "#2a0a2e"
UNKNOWN_TINT = "#8c8c8c"
FREE_ALPHA = 0.25
FORBIDDEN_ALPHA = 0.85
UNKNOWN_ALPHA = 0.5
"""of cost 0, rising to that of forbidden ground: the relief below stays visible"""
LIFT = 0.5
"""m of the costs above the ground"""


class ColouredTriangles(NamedTuple):
    """Triangles, counter-clockwise seen from above."""

    points: Floats
    """(t, 3, 3): x east, y north, z up of the three corners, m"""
    colours: NDArray[np.float32]
    """(t, 3, 4): red, green, blue, opacity of the three corners, 0 … 1"""


def terrain_triangles(terrain: HeightMap, max_triangles: int) -> ColouredTriangles:
    """The ground, dark where it is low and light where it is high, shaded by its slopes."""
    corners = _corners(terrain, max_triangles)
    x = corners[0, :, 0]
    y = corners[:, 0, 1]
    z = corners[..., 2]
    colours = _between(HEIGHT_TINTS, _height_shares(z))
    light = hillshade(z, float(x[1] - x[0]), float(y[1] - y[0]))
    opaque = np.ones((*z.shape, 1))
    return _triangles(corners, np.concatenate([lit(colours, light[..., None]), opaque], axis=-1))


def traversability_triangles(
    terrain: HeightMap, grid: TraversabilityGrid, max_triangles: int
) -> ColouredTriangles:
    """The costs of a terrain, LIFT above it: a corner shows the worst of the cells nearest to it."""
    corners = _corners(terrain, max_triangles)
    rows = _first_cells(corners[:, 0, 1], grid.origin[1], grid.resolution, grid.cost.shape[0])
    columns = _first_cells(corners[0, :, 0], grid.origin[0], grid.resolution, grid.cost.shape[1])
    cost = np.maximum.reduceat(np.maximum.reduceat(grid.cost, rows, axis=0), columns, axis=1)
    share = np.clip(cost / WORST_FREE, 0.0, 1.0)
    alpha = FREE_ALPHA + (FORBIDDEN_ALPHA - FREE_ALPHA) * share
    colours = np.concatenate([_between(COST_TINTS, share), alpha[..., None]], axis=-1)
    colours[cost == LETHAL] = (*_rgb(FORBIDDEN_TINT), FORBIDDEN_ALPHA)
    colours[cost < 0] = (*_rgb(UNKNOWN_TINT), UNKNOWN_ALPHA)
    corners[..., 2] += LIFT
    return _triangles(corners, colours)


def _corners(terrain: HeightMap, max_triangles: int) -> Floats:
    """(rows, columns, 3) points of the ground from edge to edge, south-west first: the samples, or
    evenly fewer.
    """
    cells_x = terrain.rows - 1
    cells_y = terrain.columns - 1
    quads = max(1, max_triangles // 2)
    share = min(1.0, math.sqrt(quads / (cells_x * cells_y)))
    along_x = min(max(1, math.floor(cells_x * share)), quads)
    along_y = min(cells_y, quads // along_x)
    x_min, x_max, y_min, y_max = terrain.bounds
    x, y = np.meshgrid(
        np.linspace(x_min, x_max, along_x + 1), np.linspace(y_min, y_max, along_y + 1)
    )
    return np.stack([x, y, terrain.altitude(x, y)], axis=-1)


def _height_shares(z: Floats) -> Floats:
    """0 (lowest) … 1 (highest), half by height and half by how much ground is lower: plains have
    colours, too.
    """
    levels = np.linspace(0.0, 1.0, 65)
    heights = np.quantile(z, levels)
    span = heights[-1] - heights[0]
    return (
        ((z - heights[0]) / span + np.interp(z, heights, levels)) / 2
        if span > 0
        else np.zeros_like(z)
    )


def _first_cells(places: Floats, edge: float, side: float, count: int) -> NDArray[np.int64]:
    """For points along an axis: the first of the cells that are nearer to each than to the point
    before it.
    """
    before = np.concatenate([places[:1], (places[:-1] + places[1:]) / 2])
    return np.clip(np.floor((before - edge) / side + 1e-6), 0, count - 1).astype(np.int64)


def _triangles(corners: Floats, colours: Floats) -> ColouredTriangles:
    """Two triangles for each quad of a grid of points (rows, columns, 3) and their colours (rows,
    columns, 4).

    A quad is parted along its lower diagonal: bilinear ground between the corners, and what stands
    on it, is nowhere below the triangles.
    """
    number = np.arange(corners.shape[0] * corners.shape[1]).reshape(corners.shape[:2])
    south_west = number[:-1, :-1]
    south_east = number[:-1, 1:]
    north_west = number[1:, :-1]
    north_east = number[1:, 1:]
    rising = np.stack(
        [south_west, south_east, north_east, south_west, north_east, north_west], axis=-1
    )
    falling = np.stack(
        [south_west, south_east, north_west, south_east, north_east, north_west], axis=-1
    )
    z = corners[..., 2]
    is_falling = z[:-1, 1:] + z[1:, :-1] < z[:-1, :-1] + z[1:, 1:]
    index = np.where(is_falling[..., None], falling, rising).reshape(-1, 3)
    return ColouredTriangles(
        corners.reshape(-1, 3)[index],
        colours.reshape(-1, 4).astype(np.float32)[index],
    )


def _between(tints: tuple[str, ...], share: Floats) -> Floats:
    """(…, 3) RGB 0 … 1 at a share 0 … 1 of the way through the tints."""
    table = np.array([_rgb(tint) for tint in tints])
    place = np.linspace(0.0, 1.0, len(tints))
    return np.stack([np.interp(share, place, channel) for channel in table.T], axis=-1)


def _rgb(tint: str) -> tuple[float, float, float]:
    red, green, blue = bytes.fromhex(tint.removeprefix("#"))
    return red / 255, green / 255, blue / 255

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The ground as coloured triangles, for viewers that draw triangles and neither light nor textures.

The samples of a map, or fewer points between its edges if there is a limit, are the corners of
quads of two triangles each. There are no gaps, and every corner lies on the ground. Heights and
costs use the same corners, so that a layer of costs follows the ground on a thinned map too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_terrain.costmap.traversability import LETHAL, WORST_FREE, TraversabilityGrid
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.plots.relief import hillshade, lit

if TYPE_CHECKING:
    from rfly_terrain.imagery.imagery import Imagery

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
"""Colours from lowest to highest: CIE lightness 26, 36, … 86, 95, so that brighter is higher
without hues too.
"""
COST_TINTS = ("#fff3b0", "#fdc070", "#f07a4a", "#c22d4f", "#7a1660")
"""Colours of cost 0 to 99: the darker the harder."""
FORBIDDEN_TINT = "#2a0a2e"
UNKNOWN_TINT = "#8c8c8c"
FREE_ALPHA = 0.25
"""Opacity of cost 0, rising to that of forbidden ground: the relief below stays visible."""
FORBIDDEN_ALPHA = 0.85
UNKNOWN_ALPHA = 0.5
LIFT = 0.5
"""Height of the costs above the ground, m."""


class ColouredTriangles(NamedTuple):
    """Triangles, counter-clockwise seen from above."""

    points: Floats
    """Corners, (t, 3, 3): x east, y north, z up, m."""
    colours: NDArray[np.float32]
    """Colours of the corners, (t, 3, 4): red, green, blue, opacity, 0 … 1."""


def terrain_triangles(
    terrain: HeightMap, max_triangles: int, imagery: Imagery | None = None
) -> ColouredTriangles:
    """Return the ground, dark where it is low and light where it is high, shaded by its slopes.

    Where there is a picture of it, corners have its mean colours around them.
    """
    corners = _corners(terrain, max_triangles)
    x = corners[0, :, 0]
    y = corners[:, 0, 1]
    z = corners[..., 2]

    colours = _between(HEIGHT_TINTS, _height_shares(z))
    light = hillshade(z, float(x[1] - x[0]), float(y[1] - y[0]))
    colours = lit(colours, light[..., None])
    if imagery is not None:
        # a pixel around each corner
        half_x = (x[1] - x[0]) / 2
        half_y = (y[1] - y[0]) / 2
        region = (x[0] - half_x, x[-1] + half_x, y[0] - half_y, y[-1] + half_y)
        picture = imagery.texture(region, len(x), len(y))[::-1] / 255.0
        colours += (picture[..., :3] - colours) * picture[..., 3:]
    return _triangles(corners, np.concatenate([colours, np.ones((*z.shape, 1))], axis=-1))


def traversability_triangles(
    terrain: HeightMap, grid: TraversabilityGrid, max_triangles: int
) -> ColouredTriangles:
    """Return the costs of a terrain, LIFT above it.

    A corner shows the worst of the cells nearest to it.
    """
    corners = _corners(terrain, max_triangles)
    rows = _first_cells(corners[:, 0, 1], grid.origin[1], grid.resolution, grid.cost.shape[0])
    columns = _first_cells(corners[0, :, 0], grid.origin[0], grid.resolution, grid.cost.shape[1])
    cost = np.maximum.reduceat(np.maximum.reduceat(grid.cost, rows, axis=0), columns, axis=1)

    # tinted, and the more opaque the harder
    share = np.clip(cost / WORST_FREE, 0.0, 1.0)
    alpha = FREE_ALPHA + (FORBIDDEN_ALPHA - FREE_ALPHA) * share
    colours = np.concatenate([_between(COST_TINTS, share), alpha[..., None]], axis=-1)
    colours[cost == LETHAL] = (*_rgb(FORBIDDEN_TINT), FORBIDDEN_ALPHA)
    colours[cost < 0] = (*_rgb(UNKNOWN_TINT), UNKNOWN_ALPHA)

    corners[..., 2] += LIFT
    return _triangles(corners, colours)


def _corners(terrain: HeightMap, max_triangles: int) -> Floats:
    """Return points of the ground from edge to edge, south-west first, (rows, columns, 3).

    They are the samples, or evenly fewer.
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
    """Return 0 (lowest) … 1 (highest) for each height.

    Half of it is the height and half the share of the ground that is lower, so that plains have
    colours too.
    """
    levels = np.linspace(0.0, 1.0, 65)
    heights = np.quantile(z, levels)
    span = heights[-1] - heights[0]
    if span == 0:
        return np.zeros_like(z)
    return ((z - heights[0]) / span + np.interp(z, heights, levels)) / 2


def _first_cells(places: Floats, edge: float, side: float, count: int) -> NDArray[np.int64]:
    """Return, for points along an axis, the first of the cells that each point shows.

    A point shows the cells that are nearer to it than to the previous point.
    """
    middles = np.concatenate([places[:1], (places[:-1] + places[1:]) / 2])
    return np.clip(np.floor((middles - edge) / side + 1e-6), 0, count - 1).astype(np.int64)


def _triangles(corners: Floats, colours: Floats) -> ColouredTriangles:
    """Return two triangles for each quad of a grid of points.

    `corners` are the points (rows, columns, 3), `colours` theirs (rows, columns, 4). A quad is
    divided along its lower diagonal: bilinear ground between the corners, and objects on it, are
    nowhere below the triangles.
    """
    number = np.arange(corners.shape[0] * corners.shape[1]).reshape(corners.shape[:2])
    south_west = number[:-1, :-1]
    south_east = number[:-1, 1:]
    north_west = number[1:, :-1]
    north_east = number[1:, 1:]

    # both ways to divide each quad
    rising = np.stack(
        [south_west, south_east, north_east, south_west, north_east, north_west], axis=-1
    )
    falling = np.stack(
        [south_west, south_east, north_west, south_east, north_east, north_west], axis=-1
    )

    # the lower diagonal
    z = corners[..., 2]
    is_falling = z[:-1, 1:] + z[1:, :-1] < z[:-1, :-1] + z[1:, 1:]
    index = np.where(is_falling[..., None], falling, rising).reshape(-1, 3)
    return ColouredTriangles(
        corners.reshape(-1, 3)[index],
        colours.reshape(-1, 4).astype(np.float32)[index],
    )


def _between(tints: tuple[str, ...], share: Floats) -> Floats:
    """Return RGB 0 … 1, (…, 3), at a share 0 … 1 of the way through the tints."""
    table = np.array([_rgb(tint) for tint in tints])
    place = np.linspace(0.0, 1.0, len(tints))
    return np.stack([np.interp(share, place, channel) for channel in table.T], axis=-1)


def _rgb(tint: str) -> tuple[float, float, float]:
    """Return RGB 0 … 1 of a tint #rrggbb."""
    red, green, blue = bytes.fromhex(tint.removeprefix("#"))
    return red / 255, green / 255, blue / 255

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pictures over shaded relief: costs in colours, and what is out of sight in the shade."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools
from rfly_common.files import StrPath
from rfly_terrain.costmap.traversability import LETHAL, TraversabilityGrid
from rfly_terrain.files.arrays import north_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

    from rfly_terrain.height_map.height_map import HeightMap

_EASY_TO_HARD = ("#1a9850", "#a6d96a", "#fee08b", "#fdae61")
_FORBIDDEN = "#a50026"
_UNKNOWN = "#404040"
_GREY = ("#e0e0e0", "#e0e0e0")
"""One colour for all heights: only costs have colours."""
_OPACITY = 0.55
_PIXELS = 2000
"""Longer side, at most, pixels; a larger grid is drawn by the worst of its cells, of a larger
viewshed every n-th sample."""


def draw_traversability(axes: Axes, terrain: HeightMap, grid: TraversabilityGrid) -> ScalarMappable:
    """Draw relief and costs into matplotlib axes.

    Green is easy, orange hard, red forbidden, dark unknown. Returns the mappable of a colour bar of
    the costs.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgba

    from rfly_terrain.plots.relief import draw_relief

    draw_relief(axes, terrain, contours=False, colour_bar=False, colours=_GREY)
    colours = LinearSegmentedColormap.from_list("rfly_costs", _EASY_TO_HARD)
    scale = Normalize(0, LETHAL - 1)

    cost, (height, width) = _thinned(grid.cost)
    picture: NDArray[Any] = np.asarray(colours(scale(cost.astype(np.float64))))
    picture[cost == LETHAL] = to_rgba(_FORBIDDEN)
    picture[cost < 0] = to_rgba(_UNKNOWN)

    x, y = grid.origin
    extent = (x, x + width * grid.resolution, y, y + height * grid.resolution)
    axes.imshow(
        picture, extent=extent, origin="lower", interpolation="nearest", alpha=_OPACITY, zorder=1
    )
    # whole cells: half a one lies beyond the outermost samples
    rows, columns = grid.cost.shape
    x_to = x + columns * grid.resolution
    y_to = y + rows * grid.resolution
    axes.set(xlim=(x, x_to), ylim=(y, y_to))

    return ScalarMappable(scale, colours)


def write_traversability(
    terrain: HeightMap, grid: TraversabilityGrid, path: StrPath, *, title: str | None = None
) -> None:
    """Write the picture; needs no display.

    The ending of `path` is its format (png, pdf, svg, jpg …).
    """
    from rfly_terrain.plots.relief import picture

    rows, columns = grid.cost.shape
    with picture(path, (10.0, 8.0 * min(max(rows / columns, 0.3), 1.6) + 1.2), dpi=120) as figure:
        from matplotlib.patches import Patch

        axes = figure.add_subplot()
        costs = draw_traversability(axes, terrain, grid)
        figure.colorbar(
            costs, ax=axes, label="cost", shrink=0.85, pad=0.02, aspect=30, alpha=_OPACITY
        )

        legend = [
            Patch(color=_FORBIDDEN, alpha=_OPACITY, label=f"forbidden, {grid.share_lethal:.1%}"),
            Patch(color=_UNKNOWN, alpha=_OPACITY, label=f"unknown, {grid.share_unknown:.1%}"),
        ]
        axes.legend(handles=legend, loc="upper right", framealpha=0.85)
        axes.set_title(title or f"{terrain.name}: {grid.share_free:.1%} can be driven")


def _thinned(cost: NDArray[np.int8]) -> tuple[NDArray[np.int8], tuple[int, int]]:
    """Return the worst of blocks of cells, and the rows and columns that they cover.

    There are at most _PIXELS blocks to a side.
    """
    factor = -(-max(cost.shape) // _PIXELS)
    rows, columns = (-(-n // factor) * factor for n in cost.shape)
    missing = ((0, rows - cost.shape[0]), (0, columns - cost.shape[1]))
    whole = np.pad(cost, missing, mode="edge")
    blocks = whole.reshape(rows // factor, factor, columns // factor, factor)
    return blocks.max(axis=(1, 3)), (rows, columns)


_OUT_OF_SIGHT = (0.10, 0.10, 0.22, 0.62)
"""Red, green, blue and opacity."""
_OBSERVER = "#d7301f"


def draw_viewshed(
    axes: Axes, height_map: HeightMap, seen: Bools, observer: tuple[float, float]
) -> None:
    """Draw relief and what is out of sight into matplotlib axes.

    `seen`: (rows, columns) of the map, as `viewshed` gives it; `observer`: x, y, ENU, m.
    """
    from rfly_terrain.plots.relief import draw_relief

    draw_relief(axes, height_map, contours=False, colour_bar=False)
    stride = -(-max(seen.shape) // _PIXELS)
    x_min, x_max, y_min, y_max = height_map.bounds
    half_x = 0.5 * abs(height_map.step_x)
    half_y = 0.5 * abs(height_map.step_y)

    shown = north_up(height_map, seen)[::stride, ::stride]
    shade = np.zeros((*shown.shape, 4))
    shade[~shown] = _OUT_OF_SIGHT
    extent = (x_min - half_x, x_max + half_x, y_min - half_y, y_max + half_y)
    axes.imshow(shade, extent=extent, interpolation="nearest", zorder=2)
    axes.plot(*observer, marker="^", color=_OBSERVER, markeredgecolor="white", ms=10, zorder=3)
    axes.set(xlim=(x_min, x_max), ylim=(y_min, y_max))


def write_viewshed(
    height_map: HeightMap,
    seen: Bools,
    observer: tuple[float, float],
    path: StrPath,
    *,
    title: str = "",
) -> None:
    """Write the picture; needs no display.

    The ending of `path` is its format (png, pdf, svg, jpg …).
    """
    from rfly_terrain.plots.relief import picture

    x_min, x_max, y_min, y_max = height_map.bounds
    high = 8.0 * min(max((y_max - y_min) / (x_max - x_min), 0.3), 1.6) + 1.2
    with picture(path, (9.0, high), dpi=120) as figure:
        axes = figure.add_subplot()
        draw_viewshed(axes, height_map, seen, observer)
        axes.set_title(title)

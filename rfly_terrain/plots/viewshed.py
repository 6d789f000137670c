# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Picture of a viewshed: what is out of sight lies in the shade of the relief."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rfly_common.arrays import Bools
from rfly_common.files import StrPath
from rfly_terrain.files.arrays import north_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rfly_terrain.height_map.height_map import HeightMap

_OUT_OF_SIGHT = (0.10, 0.10, 0.22, 0.62)
"""Red, green, blue and opacity."""
_OBSERVER = "#d7301f"
_PIXELS = 2000
"""Longer side, at most, pixels; of a larger map only every n-th sample is drawn."""


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

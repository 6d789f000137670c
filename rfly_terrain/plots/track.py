# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parts of pictures of a track: the ground around it, its line, and axes of what it does.

The picture of the ground along a line is whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.files import StrPath
from rfly_terrain.height_map.places import Profile
from rfly_terrain.plots.relief import draw_relief, region_about

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rfly_common.arrays import Floats
    from rfly_terrain.height_map.height_map import HeightMap

_LEAST_CELLS = 4.0
"""Least half width of a relief, cells of its map."""


def draw_ground(
    axes: Axes, terrain: HeightMap | None, middle: ArrayLike, half: ArrayLike
) -> Floats:
    """Draw the relief within `half` (m, of x and y) of `middle`, or a grid without a terrain.

    Return the half widths (2,), which are some cells of the map at least.
    """
    widths = np.broadcast_to(np.asarray(half, float), 2)
    if terrain is not None:
        widths = np.maximum(widths, _LEAST_CELLS * np.abs([terrain.step_x, terrain.step_y]))
        draw_relief(axes, terrain, region=region_about(terrain, middle, widths))
        return widths

    (left, bottom), (right, top) = np.subtract(middle, widths), np.add(middle, widths)
    axes.set(
        aspect="equal",
        xlim=(left, right),
        ylim=(bottom, top),
        xlabel="x east (m)",
        ylabel="y north (m)",
    )
    axes.grid(alpha=0.3)
    return widths


def draw_series_grid(axes: Axes, label: str, **ticks: Any) -> None:
    """Name the values of axes of time or distance, and draw their grid."""
    axes.set_ylabel(label)
    axes.grid(alpha=0.3)
    axes.margins(x=0.01, y=0.12)
    axes.tick_params(**ticks)


_GROUND = "#8c6d46"
_OFF_MAP = "#b0b0b0"


def write_profile(profile: Profile, path: StrPath, *, title: str = "") -> None:
    """Write the picture of a profile; needs no display.

    The ending of `path` is its format (png, pdf, svg, jpg …). Grey parts are off the map.
    """
    from rfly_terrain.plots.relief import picture

    with picture(path, (11.0, 4.5), dpi=120) as figure:
        axes = figure.add_subplot()
        altitude = profile.altitude
        base = altitude.min() - 0.05 * max(float(np.ptp(altitude)), 1.0)
        for where, colour in ((profile.inside, _GROUND), (~profile.inside, _OFF_MAP)):
            axes.fill_between(profile.distance, base, altitude, where, color=colour, alpha=0.5)

        axes.plot(profile.distance, altitude, color=_GROUND)
        axes.set(
            xlim=(0.0, profile.distance[-1]),
            xlabel="distance along the line, m",
            ylabel="z of the ground, m up",
            title=title,
        )
        axes.margins(y=0.1)
        axes.set_ylim(bottom=base)
        axes.grid(alpha=0.3)

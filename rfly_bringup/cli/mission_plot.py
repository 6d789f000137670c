"""Plot of a flown mission: the track over shaded relief; altitude and speed over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.imports import require
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.plots.relief import check_picture_format, draw_relief

_MARGIN = 0.15
"""of the track's larger side"""
_LEAST_M = 20.0


def draw_flight(track: ArrayLike, terrain: HeightMap | None, path: Path, title: str) -> None:
    """Write the picture of a track, (k, 5): time s, x east, y north, z up m, yaw rad.

    The ending of `path` is its format. A dot marks the start, a cross the end; dotted is the ground below. Needs no
    display. Raises ConfigError for an ending that is no picture's.
    """
    require("matplotlib", "drawing")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    check_picture_format(path)
    time, x, y, z = np.asarray(track, float).reshape(-1, 5).T[:4]
    figure = Figure(figsize=(13.0, 6.2), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplot_mosaic([["map", "altitude"], ["map", "speed"]], width_ratios=(1.2, 1))
    _draw_track(panels["map"], terrain, x, y)
    panels["map"].set_title(title)
    panels["altitude"].plot(time, z, color="C0", linewidth=1.4, label="track")
    if terrain is not None:
        panels["altitude"].plot(time, terrain.altitude(x, y), ":", color="0.35", linewidth=1.2, label="ground")
        panels["altitude"].legend(fontsize="small")
    steps = np.diff(time)
    moving = steps > 0.0
    speed = np.linalg.norm(np.diff([x, y, z], axis=1)[:, moving], axis=0) / steps[moving]
    panels["speed"].plot(time[1:][moving], speed, color="C1", linewidth=1.2)
    for name, label in (("altitude", "z up (m)"), ("speed", "speed (m/s)")):
        panels[name].set_ylabel(label)
        panels[name].grid(alpha=0.3)
        panels[name].margins(x=0.01, y=0.12)
    panels["speed"].set_xlabel("time (s)")
    panels["speed"].sharex(panels["altitude"])
    figure.savefig(path)


def _draw_track(axes: Any, terrain: HeightMap | None, x: Any, y: Any) -> None:
    half = max((0.5 + _MARGIN) * float(max(np.ptp(x), np.ptp(y))), _LEAST_M)
    middle_x, middle_y = (x.min() + x.max()) / 2, (y.min() + y.max()) / 2
    if terrain is not None:
        x_min, x_max, y_min, y_max = terrain.bounds
        half = max(half, 4.0 * abs(terrain.step_x), 4.0 * abs(terrain.step_y))
        region = (
            max(middle_x - half, x_min), min(middle_x + half, x_max),
            max(middle_y - half, y_min), min(middle_y + half, y_max),
        )  # fmt: skip
        if region[0] < region[1] and region[2] < region[3]:  # else all of it lies beside the map
            draw_relief(axes, terrain, region=region)
    else:
        axes.set(xlabel="x east (m)", ylabel="y north (m)")
        axes.grid(alpha=0.3)
    axes.plot(x, y, color="white", linewidth=3.0, alpha=0.6, zorder=2)
    axes.plot(x, y, color="C0", linewidth=1.5, zorder=3)
    axes.plot(x[0], y[0], "o", color="C0", markeredgecolor="white", markersize=8, zorder=4)
    axes.plot(x[-1], y[-1], "X", color="C3", markeredgecolor="white", markersize=9, zorder=4)
    axes.set(xlim=(middle_x - half, middle_x + half), ylim=(middle_y - half, middle_y + half), aspect="equal")

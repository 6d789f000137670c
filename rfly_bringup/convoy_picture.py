"""The picture of a fleet's tracks over the shaded relief."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rfly_terrain.height_map import HeightMap
from rfly_terrain.relief import draw_relief

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Region = tuple[float, float, float, float]

_CLOSE_UP_IF_SMALLER_THAN = 0.4
"""share of the map's width that the tracks take up"""


def draw_convoy(terrain: HeightMap, tracks: Mapping[int, NDArray[Any]], path: Path) -> None:
    """Write a png of (n, 3) ENU tracks in metres by vehicle id; the dot is where each vehicle is last.

    Tracks that are small on the map get a panel of their own beside it.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    close_up = _close_up(terrain, tracks)
    figure = Figure(figsize=(13.0, 6.2) if close_up else (8.4, 7.2), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2) if close_up else [figure.add_subplot()]
    draw_relief(panels[0], terrain, colour_bar=not close_up)
    if close_up:
        x_min, x_max, y_min, y_max = close_up
        frame = Rectangle((x_min, y_min), x_max - x_min, y_max - y_min, fill=False, edgecolor="white", linewidth=1.6)
        panels[0].add_patch(frame)
        panels[0].set_title(terrain.name)
        draw_relief(panels[1], terrain, region=close_up)
        panels[1].set(xlim=close_up[:2], ylim=close_up[2:])
    _draw_tracks(panels[-1], tracks)
    positions = sum(map(len, tracks.values()))
    panels[-1].set_title(f"{len(tracks)} vehicles, {positions:,} positions from received datagrams")
    figure.savefig(path)


def _draw_tracks(axes: Axes, tracks: Mapping[int, NDArray[Any]]) -> None:
    for number, (vehicle, track) in enumerate(sorted(tracks.items())):
        colour = f"C{number % 10}"
        axes.plot(track[:, 0], track[:, 1], color="white", linewidth=3.0, alpha=0.6)
        axes.plot(track[:, 0], track[:, 1], color=colour, linewidth=1.6)
        axes.plot(*track[-1, :2], "o", color=colour, markeredgecolor="white", markersize=8, label=f"vehicle {vehicle}")
    if tracks:
        axes.legend(loc="upper right", framealpha=0.9)


def _close_up(terrain: HeightMap, tracks: Mapping[int, NDArray[Any]]) -> Region | None:
    """A square around the tracks, with a margin of a quarter; None where they fill the map anyway."""
    if not tracks:
        return None
    points = np.concatenate(list(tracks.values()))[:, :2]
    low, high = points.min(axis=0), points.max(axis=0)
    x_min, x_max, y_min, y_max = terrain.bounds
    half = max(0.75 * float((high - low).max()), 12 * abs(terrain.step_x), 12 * abs(terrain.step_y))
    if 2 * half > _CLOSE_UP_IF_SMALLER_THAN * (x_max - x_min):
        return None
    x, y = ((low + high) / 2).tolist()
    return max(x - half, x_min), min(x + half, x_max), max(y - half, y_min), min(y + half, y_max)

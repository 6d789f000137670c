"""Plot of a fleet: tracks over shaded relief; altitude, speed and slope along each vehicle's path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rfly_common.errors import ConfigError
from rfly_common.imports import require
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.plots.relief import check_picture_format, draw_relief
from rfly_trajectory.fleet.fleet import Fleet
from rfly_trajectory.fleet.limit_check import Drive, Finding, drive

MAX_TRACKS = 200
"""vehicles that are drawn"""
MAX_PROFILES = 10
"""vehicles with profiles, and colours of their own"""


def draw_fleet(fleet: Fleet, path: Path, *, title: str | None = None, findings: Sequence[Finding] = ()) -> None:
    """Write the picture of a fleet over its terrain; the ending of `path` is its format. Needs no display.

    Left the first MAX_TRACKS tracks, with a dot at each start; right the profiles of the first MAX_PROFILES vehicles
    over the distance covered, dotted the ground below those that fly. Vehicles after those are grey, and a red cross
    marks each place of `findings`, at the picture's edge those beside it. Raises ConfigError for a fleet without a
    terrain and for an ending that is no picture's.
    """
    require("matplotlib", "drawing")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    terrain = fleet.terrain
    if terrain is None:
        raise ConfigError("fleet: it has no terrain to be drawn over")
    check_picture_format(path)
    figure = Figure(figsize=(14.0, 7.2), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    drives = [drive(fleet, index) for index in range(min(len(fleet), MAX_TRACKS))]
    panels = figure.subplot_mosaic(
        [["map", "altitude"], ["map", "speed"], ["map", "slope"]], width_ratios=(1.35, 1), height_ratios=(1.3, 1, 1)
    )
    _draw_tracks(panels["map"], terrain, fleet, drives)
    _mark(panels["map"], findings)
    panels["map"].set_title(title if title is not None else f"{fleet.name or 'fleet'} over {terrain.name}")
    _draw_profiles(panels, fleet, drives[:MAX_PROFILES])
    if len(fleet) > 1:
        panels["altitude"].legend(fontsize="x-small", ncols=2, loc="best", handlelength=1.2)
    figure.savefig(path)


def _draw_tracks(axes: Any, terrain: HeightMap, fleet: Fleet, drives: list[Drive]) -> None:
    points = np.concatenate([done.position[:, :2] for done in drives])
    low, high = points.min(axis=0), points.max(axis=0)
    cell = np.abs([terrain.step_x, terrain.step_y])
    half = np.maximum(0.62 * float((high - low).max()), 4 * cell)
    x_min, x_max, y_min, y_max = terrain.bounds
    # tracks may lie beside the map: the middle of what is shown is on it
    middle = np.clip((low + high) / 2, (x_min, y_min), (x_max, y_max))
    (left, bottom), (right, top) = middle - half, middle + half
    region = max(left, x_min), min(right, x_max), max(bottom, y_min), min(top, y_max)
    draw_relief(axes, terrain, region=region)
    for done in drives:
        axes.plot(*done.position[:, :2].T, color="white", linewidth=3.0, alpha=0.6, zorder=2)
    labelled: list[np.ndarray[Any, Any]] = []
    for index, (vehicle, done) in enumerate(zip(fleet.vehicles, drives, strict=False)):
        colour, start = _colour(index), done.position[0, :2]
        axes.plot(*done.position[:, :2].T, color=colour, linewidth=1.5, zorder=3)
        axes.plot(*start, "o", color=colour, markeredgecolor="white", markersize=7, zorder=4)
        # where starts lie close together one name is readable, and the legend has the others
        if index < MAX_PROFILES and all(np.hypot(*(start - other)) > 0.1 * half.max() for other in labelled):
            labelled.append(start)
            text = axes.annotate(vehicle.name, start, (6, 6), textcoords="offset points", fontsize=8, zorder=5)
            text.set_bbox({"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1.0})


def _mark(axes: Any, findings: Sequence[Finding]) -> None:
    positions = [finding.position for finding in findings if finding.position is not None]
    if not positions:
        return
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    shown = np.clip(positions, (left, bottom), (right, top))
    axes.plot(
        *shown.T, "x", color="red", markersize=9, markeredgewidth=2, zorder=6, clip_on=False, scalex=False, scaley=False
    )


def _draw_profiles(panels: dict[str, Any], fleet: Fleet, drives: list[Drive]) -> None:
    for index, (vehicle, done) in enumerate(zip(fleet.vehicles, drives, strict=False)):
        colour, distance = _colour(index), done.distance
        panels["altitude"].plot(distance, done.position[:, 2], color=colour, linewidth=1.3, label=vehicle.name)
        if vehicle.kind != "ground":
            panels["altitude"].plot(distance, done.ground, ":", color=colour, linewidth=1.0)
        panels["speed"].plot(distance, done.speed, color=colour, linewidth=1.3)
        panels["slope"].plot(distance, np.degrees(np.arctan(done.slope)), color=colour, linewidth=1.0)
    for name, label in (("altitude", "z up (m)"), ("speed", "speed (m/s)"), ("slope", "slope (°)")):
        panels[name].set_ylabel(label)
        panels[name].grid(alpha=0.3)
        panels[name].margins(x=0.01, y=0.12)
        panels[name].tick_params(labelsize="small", labelbottom=name == "slope")
    panels["slope"].set_xlabel("distance covered (m)")
    panels["speed"].sharex(panels["altitude"])
    panels["slope"].sharex(panels["altitude"])


def _colour(index: int) -> str:
    return f"C{index}" if index < MAX_PROFILES else "0.35"

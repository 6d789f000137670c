"""Plot of a fleet: tracks over shaded relief; altitude, speed and slope along each vehicle's path."""

from __future__ import annotations

import re
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
MAX_OWN_COLOURS = 10
"""vehicles up to which each has a colour and an entry in the legend; of more, each group has"""


def draw_fleet(fleet: Fleet, path: Path, *, title: str | None = None, findings: Sequence[Finding] = ()) -> None:
    """Write the picture of a fleet over its terrain; the ending of `path` is its format. Needs no display.

    Left the first MAX_TRACKS tracks, with a dot at each start; right their profiles over the distance covered, dotted
    the ground below those that fly. With more than MAX_OWN_COLOURS vehicles a colour stands for a group (`groups_of`),
    and the ground is that of the group's first. A red cross marks each place of `findings`, at the picture's edge those
    beside it. Raises ConfigError for a fleet without a
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
    groups = groups_of([vehicle.name for vehicle in fleet.vehicles[: len(drives)]])
    _draw_tracks(panels["map"], terrain, drives, groups)
    _mark(panels["map"], findings)
    panels["map"].set_title(title if title is not None else f"{fleet.name or 'fleet'} over {terrain.name}")
    _draw_profiles(panels, fleet, drives, groups)
    if len(fleet) > 1:
        panels["altitude"].legend(fontsize="x-small", ncols=2, loc="best", handlelength=1.2)
    figure.savefig(path)


def groups_of(names: Sequence[str]) -> dict[str, list[int]]:
    """Which of the vehicles belong together, by what the legend calls them: up to MAX_OWN_COLOURS each by itself, of
    more those whose names differ by a number at their end, as truck_1 and truck_2 do."""
    if len(names) <= MAX_OWN_COLOURS:
        return {name: [index] for index, name in enumerate(names)}
    members: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        members.setdefault(re.sub(r"[-_ ]*\d+$", "", name) or name, []).append(index)
    return {f"{name} ({len(each)})" if len(each) > 1 else name: each for name, each in members.items()}


def _draw_tracks(axes: Any, terrain: HeightMap, drives: list[Drive], groups: dict[str, list[int]]) -> None:
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
    for number, (name, members) in enumerate(groups.items()):
        for index in members:
            colour, start = _colour(number), drives[index].position[0, :2]
            axes.plot(*drives[index].position[:, :2].T, color=colour, linewidth=1.5, zorder=3)
            axes.plot(*start, "o", color=colour, markeredgecolor="white", markersize=7, zorder=4)
        # where starts lie close together one name is readable, and the legend has the others
        start = drives[members[0]].position[0, :2]
        if all(np.hypot(*(start - other)) > 0.1 * half.max() for other in labelled):
            labelled.append(start)
            text = axes.annotate(name, start, (6, 6), textcoords="offset points", fontsize=8, zorder=5)
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


def _draw_profiles(panels: dict[str, Any], fleet: Fleet, drives: list[Drive], groups: dict[str, list[int]]) -> None:
    for number, (name, members) in enumerate(groups.items()):
        style = {"color": _colour(number), "linewidth": 1.3 if len(members) == 1 else 0.8}
        for index in members:
            done = drives[index]
            label = name if index == members[0] else None
            panels["altitude"].plot(done.distance, done.position[:, 2], label=label, **style)
            panels["speed"].plot(done.distance, done.speed, **style)
            panels["slope"].plot(done.distance, np.degrees(np.arctan(done.slope)), **style)
        first = drives[members[0]]
        if fleet.vehicles[members[0]].kind != "ground":
            panels["altitude"].plot(first.distance, first.ground, ":", color=_colour(number), linewidth=1.0)
    for name, label in (("altitude", "z up (m)"), ("speed", "speed (m/s)"), ("slope", "slope (°)")):
        panels[name].set_ylabel(label)
        panels[name].grid(alpha=0.3)
        panels[name].margins(x=0.01, y=0.12)
        panels[name].tick_params(labelsize="small", labelbottom=name == "slope")
    panels["slope"].set_xlabel("distance covered (m)")
    panels["speed"].sharex(panels["altitude"])
    panels["slope"].sharex(panels["altitude"])


def _colour(number: int) -> str:
    """matplotlib's own ten; groups beyond are grey."""
    return f"C{number}" if number < MAX_OWN_COLOURS else "0.35"

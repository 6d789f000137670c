"""The picture of a fleet's tracks over the shaded relief."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_terrain.height_map import HeightMap
from rfly_terrain.relief import draw_relief


def draw_convoy(terrain: HeightMap, tracks: Mapping[int, NDArray[Any]], path: Path) -> None:
    """Write a png of (n, 3) ENU tracks in metres by vehicle id; the dot is where each vehicle is last."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 7.2), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    draw_relief(axes, terrain)
    for number, (vehicle, track) in enumerate(sorted(tracks.items())):
        colour = f"C{number % 10}"
        axes.plot(track[:, 0], track[:, 1], color="white", linewidth=2.6, alpha=0.7)
        axes.plot(track[:, 0], track[:, 1], color=colour, linewidth=1.4)
        axes.plot(*track[-1, :2], "o", color=colour, markeredgecolor="white", markersize=8, label=f"vehicle {vehicle}")
    if tracks:
        axes.legend(loc="upper right", framealpha=0.9)
    every = np.concatenate(list(tracks.values())) if tracks else np.zeros((0, 3))
    axes.set_title(f"{terrain.name}: {len(tracks)} vehicles, {len(every)} positions from received datagrams")
    figure.savefig(path)

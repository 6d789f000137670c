"""Picture of suspension modes: each shape as the body's plane over its four wheels, and the poles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rfly_amphibious.analysis.suspension_modes import SuspensionMode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.imports import require
from rfly_terrain.plots.relief import check_picture_format

_AROUND = (0, 1, 3, 2, 0)
"""the wheels, once around"""


def draw_modes(params: VehicleParameters, modes: Sequence[SuspensionMode], path: Path) -> None:
    """Writes the picture; the ending of `path` is its format. Needs no display."""
    require("matplotlib", "drawing")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    check_picture_format(path)
    figure = Figure(figsize=(14.0, 7.0), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"modes of the suspension, {params.name}: red the body, blue the wheels, grey at rest")
    for index, mode in enumerate(modes):
        _draw_shape(figure.add_subplot(2, 4, index + 1, projection="3d"), params, mode)
    _draw_poles(figure.add_subplot(2, 4, 8), modes)
    figure.savefig(path)


def _draw_shape(axes: Any, p: VehicleParameters, mode: SuspensionMode) -> None:
    x, y, _ = p.hub_position.T
    size = 0.3 * p.wheelbase
    heave, roll, pitch = mode.shape[:3]
    body = heave + roll * y - pitch * x
    order = list(_AROUND)
    for height, moved, colour in ((2.2, body, "#c8322b"), (0.0, mode.shape[3:], "#2f6db3")):
        rest = np.full(4, height * size)
        axes.plot(x[order], y[order], rest[order], color="0.75", linewidth=1.0)
        axes.plot(
            x[order], y[order], (rest + size * moved)[order], color=colour, linewidth=1.6, marker="o", markersize=4
        )
    axes.text(x[0], p.track, 0.0, "front", fontsize="x-small", color="0.4")
    axes.set(xticks=(), yticks=(), zticks=(), zlim=(-1.2 * size, 3.4 * size))
    axes.set_box_aspect((p.wheelbase, p.track, 1.1 * p.wheelbase))
    axes.view_init(elev=18, azim=-60)
    axes.set_title(f"{mode.name}\n{mode.frequency:.3g} Hz, ζ = {mode.damping_ratio:.2f}", fontsize="small")


def _draw_poles(axes: Any, modes: Sequence[SuspensionMode]) -> None:
    for mode in modes:
        damped, ratio = math.tau * mode.damped_frequency, mode.damping_ratio
        size = math.tau * mode.frequency if damped == 0.0 else damped / math.sqrt(max(1.0 - ratio**2, 1e-12))
        axes.plot(-ratio * size, damped, "x", color="#c8322b" if "hop" not in mode.name else "#2f6db3")
    axes.axvline(0.0, color="0.5", linewidth=1.0)
    axes.set_xlabel("real part (1/s)")
    axes.set_ylabel("imaginary part (rad/s)")
    axes.set_title("poles, the upper ones", fontsize="small")
    axes.grid(alpha=0.3)

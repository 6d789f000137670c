"""Picture of a vehicle fit: what was found against what was given, tyre curves, and what is left over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rfly_amphibious.identification.tyre_fit import TyreFit, tyre_forces
from rfly_amphibious.identification.vehicle_fit import VehicleFit
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.imports import require
from rfly_terrain.plots.relief import check_picture_format

SLIPS = np.linspace(-0.35, 0.35, 141)


def draw_fit(fit: VehicleFit, path: Path) -> None:
    """Writes the picture; the ending of `path` is its format. Needs no display."""
    require("matplotlib", "drawing")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    check_picture_format(path)
    figure = Figure(figsize=(14.0, 8.5), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplot_mosaic([["shares", "x", "y"], ["shares", "motion", "motion"]], width_ratios=(1.1, 1, 1))
    figure.suptitle(f"parameters found, beside those of {fit.given.name}")
    _draw_shares(panels["shares"], fit)
    for axis in "xy":
        _draw_tyre(panels[axis], fit.given, fit.tyres, axis)
    _draw_motion(panels["motion"], fit)
    figure.savefig(path)


def _draw_shares(axes: Any, fit: VehicleFit) -> None:
    shown = [e for e in fit.estimated if e.given > 0.0 and e.excited]
    rows = np.arange(len(shown))[::-1]
    shares = np.array([e.value / e.given for e in shown])
    spreads = np.array([1.96 * e.sigma / e.given for e in shown])
    axes.errorbar(shares, rows, xerr=spreads, fmt="o", markersize=4, capsize=3, color="#2f6db3")
    axes.axvline(1.0, color="0.5", linewidth=1.0)
    axes.set_yticks(rows, [e.name for e in shown], fontsize="small")
    axes.set_xlabel("found / given, with 95 % intervals")
    axes.grid(alpha=0.3)


def tyre_curve(p: VehicleParameters, axis: str, slips: Floats = SLIPS) -> Floats:
    """(k,) N of a rear tyre under its nominal load, at slips κ (axis x) or tan α (y) alone."""
    none, load = np.zeros_like(slips), np.full_like(slips, p.nominal_load)
    pair = (slips, none) if axis == "x" else (none, slips)
    return tyre_forces(p, load, *pair, np.full_like(slips, p.cornering_factor_rear))[axis == "y"]


def _draw_tyre(axes: Any, given: VehicleParameters, tyres: TyreFit | None, axis: str) -> None:
    axes.plot(SLIPS, tyre_curve(given, axis), color="0.6", linestyle="--", linewidth=1.2, label="given")
    if tyres is not None:
        axes.plot(SLIPS, tyre_curve(tyres.params, axis), color="#c8322b", linewidth=1.6, label="found")
        slips = tyres.slips[axis == "y"].ravel()
        slips = slips[np.abs(slips) <= SLIPS[-1]]
        floor = axes.get_ylim()[0]
        axes.plot(
            slips, np.full_like(slips, floor), "|", color="#2f6db3", markersize=9, alpha=0.4, label="slips in the log"
        )
    axes.set_xlabel("slip κ" if axis == "x" else "slip tan α")
    axes.set_ylabel("F_x (N)" if axis == "x" else "F_y (N)")
    axes.set_title(f"tyre {'along' if axis == 'x' else 'across'}, nominal load", fontsize="medium")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="x-small")


def _draw_motion(axes: Any, fit: VehicleFit) -> None:
    m = fit.motion
    axes.plot(m.time, m.velocity[:, 0], linewidth=0.9, label="forward m/s")
    axes.plot(m.time, 10.0 * m.rates[:, 2], linewidth=0.7, label="yaw rate, 0.1 rad/s")
    axes.plot(m.time, m.height, linewidth=1.2, color="black", label="height m")
    axes.plot(m.time, 100.0 * m.strut.mean(axis=1), linewidth=0.7, label="struts, mean, cm")
    axes.set_xlabel("time (s)")
    axes.set_title("the log", fontsize="medium")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="x-small", ncols=4)

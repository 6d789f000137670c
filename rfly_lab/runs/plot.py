# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plots of a run (track over shaded relief, heights, attitude, forces, power) and of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle import state_layout
from rfly_common.frames import quat_to_euler
from rfly_lab.runs.recorder import ScenarioRun
from rfly_lab.runs.sweep import Result, Sweep
from rfly_terrain.plots.overlays import draw_ground, draw_objects
from rfly_terrain.plots.relief import picture

_COLOURS = {
    Mode.DISARMED: "#9a9a9a",
    Mode.DRIVE: "#2f6db3",
    Mode.TAKEOFF: "#e39b1d",
    Mode.FLIGHT: "#c8322b",
    Mode.LAND: "#8e3fa8",
    Mode.SPOOL_DOWN: "#3d9970",
    Mode.ABORT: "#111111",
    Mode.ROLLING_TAKEOFF: "#b58a00",
    Mode.ROLLING_LAND: "#b877c9",
    Mode.ROLL_OUT: "#7cc4a0",
}


def draw_run(run: ScenarioRun, path: Path) -> None:
    """Write a picture of a run; the ending of `path` is its format. No display is needed.

    Raise ConfigError for an ending that is no picture's.
    """
    with picture(path, (15.0, 9.5)) as figure:
        engine: Any = figure.get_layout_engine()
        engine.set(w_pad=0.15, h_pad=0.1)
        panels = figure.subplot_mosaic(
            [["map", "attitude"], ["map", "tyres"], ["map", "rotors"], ["height", "power"]],
            width_ratios=(1.05, 1),
        )

        _draw_track(panels["map"], run)
        figure.suptitle(f"{run.scenario.name}: {run.ending}")
        _draw_height(panels["height"], run)
        _draw_attitude(panels["attitude"], run)
        _draw_tyres(panels["tyres"], run)
        _draw_rotors(panels["rotors"], run)
        _draw_power(panels["power"], run)

        # axes of time
        times = [panels[name] for name in ("height", "attitude", "tyres", "rotors", "power")]
        for axes in times:
            axes.grid(alpha=0.3)
            axes.tick_params(labelsize="small")
            axes.set_xlim(0.0, max(run.duration, 0.1))
            _shade_modes(axes, run)
        for axes in (panels["height"], panels["power"]):
            axes.set_xlabel("time (s)")
        for name in ("attitude", "tyres", "rotors"):
            panels[name].tick_params(labelbottom=False)


def draw_sweep(sweep: Sweep, results: Sequence[Result], path: Path) -> None:
    """Write a picture of results over each varied value; green runs reached their end.

    Raise ConfigError for an ending of `path` that is no picture's.
    """
    combinations = list(sweep.combinations())
    varied = {key: [values[key] for values in combinations] for key in combinations[0]}
    varied = varied or {"run": list(range(len(results)))}
    shown = ["duration_s", "battery_energy_j", "largest_tilt_deg"]
    if sweep.estimate:
        shown.append("estimate_error_m")
    colours = ["#3d9970" if result.reached else "#c8322b" for result in results]
    reached = sum(result.reached for result in results)

    with picture(path, (4.0 * len(shown), 0.8 + 2.8 * len(varied))) as figure:
        figure.suptitle(f"{sweep.source}: {reached} of {len(results)} runs reached their end")
        panels = figure.subplots(len(varied), len(shown), squeeze=False)
        for row, (key, values) in zip(panels, varied.items(), strict=True):
            is_numbers = all(isinstance(value, int | float) for value in values)
            for axes, name in zip(row, shown, strict=True):
                numbers = [getattr(result, name) for result in results]
                axes.scatter(values if is_numbers else list(map(str, values)), numbers, c=colours)
                axes.grid(alpha=0.3)
                axes.tick_params(labelsize="small")
                axes.set_xlabel(key)
                axes.set_ylabel(name)


def _spans(run: ScenarioRun) -> list[tuple[float, float, Mode]]:
    """Return begin, end (s) and mode of each mode that lasted."""
    ends = [time for time, _ in run.modes[1:]] + [run.duration]
    return [
        (begin, end, mode)
        for (begin, mode), end in zip(run.modes, ends, strict=True)
        if end > begin
    ]


def _shade_modes(axes: Any, run: ScenarioRun) -> None:
    """Colour the background of an axis of time by the modes."""
    for begin, end, mode in _spans(run):
        axes.axvspan(begin, end, color=_COLOURS[mode], alpha=0.08, linewidth=0)


def _draw_track(axes: Any, run: ScenarioRun) -> None:
    """Draw the track over the map, in the colours of the modes."""
    places = run.position[:, :2]
    low = places.min(axis=0)
    high = places.max(axis=0)
    half = max(0.62 * float((high - low).max()), 5.0)

    draw_ground(axes, run.scenario.terrain, (low + high) / 2, half)
    if run.scenario.world is not None:
        draw_objects(axes, run.scenario.world)

    # track
    axes.plot(*places.T, color="white", linewidth=4.0, alpha=0.7, zorder=2)
    shown: set[Mode] = set()
    for begin, end, mode in _spans(run):
        part = places[(run.time >= begin - 0.03) & (run.time <= end + 0.03)]
        label = None if mode in shown else mode.value
        axes.plot(*part.T, color=_COLOURS[mode], linewidth=2.0, zorder=3, label=label)
        shown.add(mode)

    # marks
    edge = {"markeredgecolor": "black", "markersize": 8, "zorder": 4}
    axes.plot(*places[0], "o", color="white", label="start", **edge)
    axes.plot(*places[-1], "s", color="white", label="end", **edge)
    for touchdown in run.touchdowns:
        axes.plot(*touchdown.position[:2], "v", color="yellow", **edge)
    axes.legend(fontsize="x-small", loc="best")


def _draw_height(axes: Any, run: ScenarioRun) -> None:
    """Draw the heights of vehicle and ground, with the names of the modes."""
    terrain = run.scenario.terrain
    x, y, z = run.position.T
    ground = np.zeros_like(x) if terrain is None else terrain.altitude(x, y)
    axes.fill_between(
        run.time, ground, min(ground.min(), z.min()) - 1.0, color="#b59f7b", alpha=0.7, linewidth=0
    )
    axes.plot(run.time, z, color="black", linewidth=1.4, label="vehicle")
    axes.plot(run.time, ground, color="#7a6440", linewidth=1.0, label="ground below")
    axes.set_ylabel("z up (m)")
    axes.legend(fontsize="x-small", loc="best")

    top = axes.get_ylim()[1]
    for begin, end, mode in _spans(run):
        if end - begin > 0.05 * run.duration:
            axes.text(
                (begin + end) / 2,
                top,
                mode.value,
                ha="center",
                va="bottom",
                fontsize=7,
                color=_COLOURS[mode],
                clip_on=False,
            )


def _draw_attitude(axes: Any, run: ScenarioRun) -> None:
    """Draw roll and pitch, and the yaw on an axis of its own."""
    roll, pitch, yaw = np.degrees(quat_to_euler(run.x[:, state_layout.QUATERNION_XYZW])).T
    axes.plot(run.time, roll, linewidth=1.0, label="roll")
    axes.plot(run.time, pitch, linewidth=1.0, label="pitch, nose down +")
    axes.set_ylabel("roll, pitch (°)")

    # yaw
    right = axes.twinx()
    unwrapped = np.degrees(np.unwrap(np.radians(yaw)))
    right.plot(run.time, unwrapped, color="0.35", linewidth=1.0, linestyle="--", label="yaw")
    right.set_ylabel("yaw (°)", color="0.35")
    right.tick_params(labelsize="small")

    lines = [*axes.get_lines(), *right.get_lines()]
    axes.legend(
        lines, [line.get_label() for line in lines], fontsize="x-small", loc="best", ncols=3
    )


def _scaled(values: Any, unit: str) -> tuple[float, str]:
    """Return a factor and the unit for values: in thousands if they are large."""
    largest = float(np.abs(values).max(initial=0.0))
    return (1e-3, f"k{unit}") if largest > 2000.0 else (1.0, unit)


def _draw_tyres(axes: Any, run: ScenarioRun) -> None:
    """Draw the loads of the wheels, and the sums of the tyres' forces."""
    out = run.outputs
    scale, unit = _scaled(out.wheel_load, "N")
    for wheel, name in enumerate(run.scenario.params.wheels):
        load = scale * out.wheel_load[:, wheel]
        axes.plot(run.time, load, linewidth=0.8, alpha=0.8, label=f"load {name}")
    along = scale * out.tyre_force_x.sum(axis=1)
    left = scale * out.tyre_force_y.sum(axis=1)
    axes.plot(run.time, along, color="black", linewidth=1.0, label="along, sum")
    axes.plot(run.time, left, color="0.5", linewidth=1.0, label="to the left, sum")
    axes.set_ylabel(f"tyre forces ({unit})")
    axes.legend(fontsize="x-small", loc="best", ncols=3)


def _draw_rotors(axes: Any, run: ScenarioRun) -> None:
    """Draw the thrust of each rotor."""
    thrust = run.outputs.thrust
    scale, unit = _scaled(thrust, "N")
    for rotor in range(thrust.shape[1]):
        force = scale * thrust[:, rotor]
        axes.plot(run.time, force, linewidth=0.8, alpha=0.8, label=f"{rotor + 1}")
    axes.set_ylabel(f"rotor thrust ({unit})")
    axes.legend(fontsize="x-small", loc="best", ncols=4, title="rotor", title_fontsize="x-small")


def _draw_power(axes: Any, run: ScenarioRun) -> None:
    """Draw the power of rotors and wheels, with their energies."""
    rotors = np.asarray(run.outputs.rotor_power)
    wheels = run.wheel_power
    scale, unit = _scaled(np.concatenate([rotors, wheels]), "W")
    rotor_label = f"rotors, {run.rotor_energy / 1000:.1f} kJ"
    wheel_label = f"wheels, {run.wheel_energy / 1000:.1f} kJ"
    axes.plot(run.time, scale * rotors, linewidth=1.0, label=rotor_label)
    axes.plot(run.time, scale * wheels, linewidth=1.0, label=wheel_label)
    axes.set_ylabel(f"shaft power ({unit})")
    axes.legend(fontsize="x-small", loc="best")

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Figures of a replay, for tables and for programs, and its picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rfly_common.arrays import Floats
from rfly_lab.replay.model_check import WINDOW, Prediction
from rfly_lab.replay.replay import Errors, Innovations, Replay
from rfly_terrain.plots.relief import picture


def summary(
    result: Replay, predictions: Mapping[str, Prediction], notes: Sequence[str]
) -> dict[str, Any]:
    """Return the figures of a replay, as numbers, strings, lists and dicts; None for unknown.

    `predictions` and `notes`: of `check_model`.
    """
    recording = result.recording
    return {
        "log": recording.name,
        "duration_s": result.duration,
        "topics": recording.topics,
        "geo_origin": list(recording.geo_origin),
        "alignments": result.alignments,
        "estimates": int(result.track.time.size),
        "final_position_m": result.track.position[-1].tolist(),
        "innovations": {name: _of_sensor(each) for name, each in result.innovations.items()},
        "errors": None if result.errors is None else _of_errors(result.errors),
        "model": {name: _of_model(each) for name, each in predictions.items()},
        "notes": [*recording.notes, *notes],
    }


def _of_sensor(each: Innovations) -> dict[str, Any]:
    degrees = each.value.shape[1]
    return {
        "readings": int(each.nis.size),
        "rejected": each.rejected,
        "rms": rms(each.value).tolist(),
        "mean_normalised_square": float(each.nis.mean()) / degrees,
        "outside_95": each.outside,
    }


def _of_model(each: Prediction) -> dict[str, Any]:
    return {
        "window_s": WINDOW,
        "windows": int(each.change.shape[0]),
        "change_rms_mps": rms(each.change).tolist(),
        "velocity_rms_mps": rms(each.velocity).tolist(),
        "rates_rms_radps": rms(each.rates).tolist(),
    }


def _of_errors(errors: Errors) -> dict[str, Any]:
    return {
        "compared": int(errors.time.size),
        "alignment": errors.aligned,
        "position_rms_m": rms(errors.position).tolist(),
        "position_largest_m": float(np.linalg.norm(errors.position, axis=1).max()),
        "position_sigma_m": rms(errors.sigma).tolist(),
        "position_outside_95": errors.outside,
        "velocity_rms_mps": _known(rms(errors.velocity)),
        "attitude_rms_rad": _known(rms(errors.attitude)),
    }


def _known(values: Floats) -> list[float] | None:
    """Return values as a list; None for those that the reference does not have."""
    return values.tolist() if np.isfinite(values).all() else None


def rms(values: Floats) -> Floats:
    """Return the root mean squares of the columns."""
    return np.asarray(np.sqrt((values**2).mean(axis=0)))


TWO_SIDED = 1.96
"""Standard deviations that bound 95 % of a normal error."""
AXES = ("east", "north", "up")


def draw_replay(result: Replay, path: Path) -> None:
    """Write a picture of a replay; the ending of `path` is its format. No display is needed.

    Raise ConfigError for an ending that is no picture's.
    """
    with picture(path, (15.0, 9.5)) as figure:
        panels = figure.subplot_mosaic(
            [["track", "east"], ["track", "north"], ["nis", "up"], ["nis", "shares"]],
            width_ratios=(1.05, 1),
        )
        figure.suptitle(f"{result.recording.name}: {result.duration:.1f} s")
        begin = float(result.track.time[0])
        _draw_track(panels["track"], result)
        for axis, name in enumerate(AXES):
            _draw_error(panels[name], result, axis, begin)
        _draw_normalised(panels["nis"], result, begin)
        _draw_shares(panels["shares"], result)


def _draw_track(axes: Any, result: Replay) -> None:
    """Draw the estimated track, and the reference."""
    x, y, _ = result.track.position.T
    axes.plot(x, y, color="#2f6db3", linewidth=1.6, label="estimate")
    if result.errors is not None:
        x, y, _ = result.errors.reference.position.T
        axes.plot(x, y, color="black", linewidth=1.0, linestyle="--", label="reference")
    axes.set(aspect="equal", xlabel="x east (m)", ylabel="y north (m)")
    axes.set_adjustable("datalim")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="x-small", loc="best")


def _draw_error(axes: Any, result: Replay, axis: int, begin: float) -> None:
    """Draw the position's error along an axis, and the bounds that the estimator gives."""
    track = result.track
    bound = TWO_SIDED * np.sqrt(track.covariance[:, axis, axis])
    time = track.time - begin
    axes.fill_between(time, -bound, bound, color="#2f6db3", alpha=0.2, linewidth=0, label="95 %")
    if result.errors is not None:
        errors = result.errors
        error = errors.position[:, axis]
        axes.plot(errors.time - begin, error, color="black", linewidth=1.0, label="error")
    axes.set_ylabel(f"{AXES[axis]} (m)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="x-small", loc="best", ncols=2)


def _draw_normalised(axes: Any, result: Replay, begin: float) -> None:
    """Draw each normalised innovation squared as a share of its 95 % bound."""
    for name, each in result.innovations.items():
        share = np.maximum(each.nis / each.bound, 1e-4)
        axes.plot(each.time - begin, share, ".", markersize=2, label=name.replace("_", " "))
    axes.axhline(1.0, color="black", linewidth=1.0)
    axes.set(yscale="log", xlabel="time (s)", ylabel="normalised innovation² / 95 % bound")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="x-small", loc="lower left", ncols=3, markerscale=4)


def _draw_shares(axes: Any, result: Replay) -> None:
    """Draw the share of each sensor's innovations outside the 95 % bound."""
    names = list(result.innovations)
    shares = [100.0 * result.innovations[name].outside for name in names]
    axes.barh([name.replace("_", " ") for name in names], shares, color="#2f6db3")
    axes.axvline(5.0, color="black", linewidth=1.0)
    axes.set_xlabel("outside the 95 % bound (%); 5 % are expected")
    axes.invert_yaxis()
    axes.tick_params(labelsize="small")

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Figures of a replay, for tables and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rfly_common.arrays import Floats
from rfly_lab.replay.model_check import WINDOW, Prediction
from rfly_lab.replay.replay import Errors, Innovations, Replay


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

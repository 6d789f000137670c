# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Replay of a recording through the state estimator: estimates, innovations, errors."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.estimator import Innovation, StateEstimator
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters, chi_square
from rfly_autonomy.estimation.filter_records import SENSORS
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.errors import ConfigError
from rfly_common.frames import (
    euler_to_quat,
    quat_conjugate,
    quat_multiply,
    quat_rotate,
    quat_slerp,
    rotation_vectors,
)
from rfly_lab.replay.recording import Recording, ReferenceTrack

ESTIMATE_PERIOD = 0.01
"""Time between the estimates that are kept, s."""
PROGRESS_READINGS = 2000
"""Readings between two reports of the progress."""
INSIDE = 0.95
"""Probability of the bound that normalised squares are compared with."""
LONGEST_INTERPOLATION = 0.2
"""Longest time between two rows between which there are values, s."""


@dataclass(frozen=True)
class Innovations:
    """Innovations of a sensor: reading less expectation."""

    time: Floats
    """Times at which they were taken in, s, (k,)."""
    value: Floats
    """Innovations, SI units, (k, m)."""
    nis: Floats
    """Normalised innovations squared, (k,): chi-square of m degrees of freedom if all is right."""
    rejected: int
    """Number of measurements outside the estimator's gate."""

    @property
    def bound(self) -> float:
        """Bound below which 95 % of the normalised squares are expected."""
        return chi_square(self.value.shape[1], INSIDE)

    @property
    def outside(self) -> float:
        """Share of the normalised squares above `bound`; 5 % are expected."""
        return float((self.nis > self.bound).mean())


class EstimatedTrack(NamedTuple):
    """Estimates of a replay. World axes ENU, body axes FLU."""

    time: Floats
    position: Floats
    """Positions of base_link, m, (k, 3)."""
    orientation: Floats
    """Quaternions x y z w, (k, 4)."""
    velocity: Floats
    """Velocities in the world, m/s, (k, 3)."""
    rates: Floats
    """Rates in body axes, rad/s, (k, 3)."""
    covariance: Floats
    """Covariances of position, velocity and attitude error, (k, 9, 9)."""

    def at(self, time: Floats) -> tuple[EstimatedTrack, Bools]:
        """Return the estimates at other times, and at which of them there are estimates near."""
        pairs = _Neighbours.of(self.time, time)
        found = EstimatedTrack(
            time,
            pairs.between(self.position),
            pairs.turned(self.orientation),
            pairs.between(self.velocity),
            pairs.between(self.rates),
            self.covariance[np.where(pairs.share > 0.5, pairs.after, pairs.before)],
        )
        return found, pairs.near


class _Neighbours(NamedTuple):
    """Rows of a series between which each of some times lies."""

    before: Ints
    after: Ints
    share: Floats
    """Share of the way from the row before to the row after, (k,)."""
    near: Bools
    """True where the series has no gap at that time, (k,)."""

    @classmethod
    def of(cls, series: Floats, time: Floats) -> _Neighbours:
        after = np.searchsorted(series, time).clip(1, series.size - 1)
        span = series[after] - series[after - 1]
        share = (time - series[after - 1]) / span
        near = (share >= 0.0) & (share <= 1.0) & (span <= LONGEST_INTERPOLATION)
        return cls(after - 1, after, share, near)

    def between(self, values: Floats) -> Floats:
        """Interpolate rows linearly."""
        share = self.share[:, None]
        return np.asarray(values[self.before] * (1.0 - share) + values[self.after] * share)

    def turned(self, quat_xyzw: Floats) -> Floats:
        """Interpolate orientations (n, 4)."""
        return quat_slerp(quat_xyzw[self.before], quat_xyzw[self.after], self.share[:, None])


@dataclass(frozen=True)
class Errors:
    """Estimates less the reference, at the times of the estimates."""

    time: Floats
    position: Floats
    """Errors, m, east, north, up, (k, 3)."""
    attitude: Floats
    """Errors as rotation vectors, rad, world axes, (k, 3)."""
    velocity: Floats
    """Errors, m/s, world axes, (k, 3); NaN if the reference has no velocity."""
    sigma: Floats
    """Standard deviations of the position by the estimator, m, (k, 3)."""
    nees: Floats
    """Normalised squared errors of the position, (k,): chi-square of 3 degrees of freedom."""
    aligned: str
    """How the reference was moved into the world of the estimates: a sentence."""
    reference: ReferenceTrack
    """The reference, moved."""

    @property
    def outside(self) -> float:
        """Share of the normalised squared errors above their 95 % bound."""
        return float((self.nees > chi_square(3, INSIDE)).mean())


@dataclass(frozen=True)
class Replay:
    """Result of a replay."""

    recording: Recording
    track: EstimatedTrack
    innovations: dict[str, Innovations]
    """By measurement."""
    errors: Errors | None
    alignments: int
    """Number of times that the filter began; more than 1 after a leap of the time."""
    duration: float
    """Length of the IMU's recording, s."""
    seconds: float
    """Time that the estimator took, s."""


def replay_recording(
    recording: Recording,
    params: VehicleParameters,
    parameters: EstimatorParameters,
    progress: Callable[[float], None] | None = None,
) -> Replay:
    """Run a recording through the state estimator as fast as it can.

    Readings are taken in the order in which they arrived, so that each estimate is the one that the
    estimator would have given aboard. `progress` gets the share that is done. Raise ConfigError if
    the estimator cannot be aligned.
    """
    estimator = StateEstimator(
        parameters, recording.sensors, params, recording.geo_origin, recording.terrain
    )
    total = sum(arrival.size for arrival in recording.arrivals.values())
    watch = _InnovationWatch()
    kept: list[Estimate] = []
    alignments = 0
    was_aligned = False
    begin = clock.perf_counter()
    for k, (kind, reading) in enumerate(recording.in_order()):
        getattr(estimator, kind)(reading)
        if progress is not None and k % PROGRESS_READINGS == 0:
            progress(k / total)
        if kind != "imu":
            continue
        estimate = estimator.estimate
        alignments += estimate is not None and not was_aligned
        was_aligned = estimate is not None
        if estimate is None:
            continue
        watch.look(estimator, float(reading.time[0]))
        if not kept or estimate.time >= kept[-1].time + ESTIMATE_PERIOD - 1e-6:
            kept.append(estimate)

    if len(kept) < 2:
        raise ConfigError(f"{recording.name}: {_why_not_aligned(recording, parameters)}")
    seconds = clock.perf_counter() - begin
    track = EstimatedTrack(*(np.array(column) for column in zip(*kept, strict=True)))
    imu = recording.readings["imu"].time
    errors = None
    if recording.reference is not None:
        errors = compare(track, recording.reference, _alignment_of(recording))
    return Replay(
        recording,
        track,
        watch.innovations(),
        errors,
        alignments,
        float(imu[-1] - imu[0]),
        seconds,
    )


def _why_not_aligned(recording: Recording, parameters: EstimatorParameters) -> str:
    """Return why there was no estimate."""
    imu = recording.readings["imu"].time
    if imu[-1] - imu[0] < parameters.align_time:
        return f"{imu[-1] - imu[0]:.2f} s, expected more than {parameters.align_time:g} s to align"
    return (
        "the filter was never aligned; expected an IMU with finite numbers, and fixes in its time"
    )


class _InnovationWatch:
    """Collects each new innovation of an estimator."""

    def __init__(self) -> None:
        self._last: dict[str, Innovation] = {}
        self._rows: dict[str, list[tuple[float, float, Floats]]] = {}
        self._rejected = dict.fromkeys(SENSORS, 0)

    def look(self, estimator: StateEstimator, time: float) -> None:
        """Keep the innovations since the last look."""
        now = estimator.last_innovations
        for name, last in now.items():
            before = self._last.get(name)
            # a filter that began anew counts from 0
            if before is None or before[:2] != last[:2]:
                self._rows.setdefault(name, []).append((time, last.nis, last.value))
                seen = 0 if before is None else before.rejected
                self._rejected[name] += last.rejected > seen
        self._last = now

    def innovations(self) -> dict[str, Innovations]:
        """Return them by measurement."""
        result = {}
        for name in SENSORS:
            if name in self._rows:
                time, nis, value = map(np.array, zip(*self._rows[name], strict=True))
                result[name] = Innovations(time, value, nis, self._rejected[name])
        return result


def _alignment_of(recording: Recording) -> str:
    """Return how the reference's world is brought to that of the estimates."""
    if recording.origin_known:
        return "none"
    return "position" if "gps" in recording.readings else "heading"


def compare(track: EstimatedTrack, reference: ReferenceTrack, alignment: str) -> Errors:
    """Return the errors of estimates against a reference.

    `alignment`: `none`; `position`, by the mean difference; or `heading`, by mean difference and
    yaw of the best fit (the four degrees of freedom that an inertial filter without GPS cannot
    know; Zhang and Scaramuzza 2018). Raise ConfigError if they have no time in common.
    """
    near = np.zeros(track.time.size, bool)
    if reference.time.size > 1:
        pairs = _Neighbours.of(reference.time, track.time)
        near = pairs.near
    if near.sum() < 2:
        raise ConfigError(
            f"the reference has stamps of {reference.time[0]:.1f} … {reference.time[-1]:.1f} s, "
            f"estimates {track.time[0]:.1f} … {track.time[-1]:.1f} s; expected common times"
        )
    found = EstimatedTrack(*(column[near] for column in track))
    reference = ReferenceTrack(
        found.time,
        pairs.between(reference.position)[near],
        pairs.turned(reference.orientation)[near],
        pairs.between(reference.velocity)[near],
    )
    moved, aligned = _moved(found, reference, alignment)

    error = found.position - moved.position
    covariance = found.covariance[:, :3, :3]
    nees = np.einsum("ki,kij,kj->k", error, np.linalg.inv(covariance), error)
    turn = quat_multiply(found.orientation, quat_conjugate(moved.orientation))
    return Errors(
        moved.time,
        error,
        rotation_vectors(np.asarray(turn, float)),
        found.velocity - moved.velocity,
        np.sqrt(np.einsum("kii->ki", covariance)),
        nees,
        aligned,
        moved,
    )


def _moved(
    found: EstimatedTrack, reference: ReferenceTrack, alignment: str
) -> tuple[ReferenceTrack, str]:
    """Return the reference in the world of the estimates, and how it got there."""
    if alignment == "none":
        return reference, "as recorded"
    here = found.position.mean(axis=0)
    there = reference.position.mean(axis=0)

    # turn that fits best (Umeyama, 1991, in the plane)
    yaw = 0.0
    if alignment == "heading":
        a = (reference.position - there)[:, :2]
        b = (found.position - here)[:, :2]
        cross = float((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum())
        yaw = math.atan2(cross, float((a * b).sum()))

    turn = np.asarray(euler_to_quat((0.0, 0.0, yaw)), float)
    shift = here - np.asarray(quat_rotate(turn, there), float)
    moved = ReferenceTrack(
        reference.time,
        np.asarray(quat_rotate(turn, reference.position), float) + shift,
        np.asarray(quat_multiply(turn, reference.orientation), float),
        np.asarray(quat_rotate(turn, reference.velocity), float),
    )

    # how it got there
    east, north, up = shift.tolist()
    text = f"moved by its mean difference of {east:.2f}, {north:.2f}, {up:.2f} m"
    if alignment == "heading":
        text += f" after a turn by {math.degrees(yaw):.2f}°"
    return moved, text

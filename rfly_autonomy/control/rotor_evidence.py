# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""What a vehicle's motion and its wheels show of its rotors, whatever their encoders show.

Theory of operation. A rotor that is slower or faster than expected adds a moment that the flight
law's observer finds, and thrust that the accelerometer finds. `MomentEvidence` compares this moment
with the one by a measured speed: does the rotor turn as its encoder shows? `ThrustByMotion` finds
the one rotor whose thrust alone explains moments and force, where no encoder shows anything. On the
ground the wheels take these moments up: `LoadEvidence` finds the rotors that do not push there.
"""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.rotor_wrench import rotor_matrix
from rfly_autonomy.control.attitude_controller import MomentObserver
from rfly_common.arrays import Bools, Floats

EVIDENCE_TIME = 0.5
"""Time over which moments by the speeds are compared with those that the body shows, s."""

LEAST_MOMENT_SHARE = 0.05
"""Standard deviation of a rotor's moment by its speed that shows whether it works, as a share of
its moment in hover.
"""

ROTOR_SHARE = 0.5
"""Share of this moment that the body has to show if it is the rotor that fails."""


class MomentEvidence:
    """Moments of the body that show whether rotors turn as measured, or as expected."""

    def __init__(self, params: VehicleParameters) -> None:
        self._levers = rotor_matrix(params)[1:3].T
        """Moments of roll and pitch by the squares of the speeds, (rotors, 2), N m s²."""

        hover = np.linalg.norm(self._levers, axis=1) * params.hover_speed**2
        self._least = (LEAST_MOMENT_SHARE * hover) ** 2
        self.reset()

    def reset(self) -> None:
        """Forget what the body has shown."""
        shape = self._levers.shape
        self._due = np.zeros(shape)
        """Moments by the measured speeds beyond the expected ones, as late as observed ones."""

        self._due_mean = np.zeros(shape)
        self._mean: Floats | None = None
        """Mean of the observed moments, (2,), N m."""

        self._variance = np.zeros(shape[0])
        self._covariance = np.zeros(shape[0])

    def update(
        self, speeds: Floats, expected: Floats, observer: MomentObserver, period: float
    ) -> None:
        """Take in measured and expected speeds, (rotors,), rad/s, `period` seconds later."""
        moment = observer.moment[:2]
        if self._mean is None:
            self._mean = moment.copy()
        beyond = np.nan_to_num(np.square(speeds) - np.square(expected))
        late = -np.expm1(-observer.gain[:2] * period)
        self._due = self._due + late * (beyond[:, None] * self._levers - self._due)

        share = -math.expm1(-period / EVIDENCE_TIME)
        due = self._due - self._due_mean
        seen = moment - self._mean
        self._due_mean = self._due_mean + share * due
        self._mean = self._mean + share * seen
        keep = 1.0 - share
        self._variance = keep * (self._variance + share * np.square(due).sum(axis=1))
        self._covariance = keep * (self._covariance + share * (due * seen).sum(axis=1))

    @property
    def is_clear(self) -> Bools:
        """Rotors, (rotors,), about which the body shows something."""
        return np.asarray(self._variance > self._least)

    @property
    def lies(self) -> Bools:
        """Rotors, (rotors,), that do not turn as their encoders show."""
        return self.is_clear & (self._covariance < ROTOR_SHARE * self._variance)


SWIFT_TIME = 0.06
"""Time over which moments and force are averaged, s."""

BASE_TIME = 5.0
"""Time over which moments and force are learned that were there before, s.

A shifted centre of mass, steady wind and the inflow of a climb are such.
"""

FAILS_SHARE = 0.4
"""Change of a rotor's thrust, as a share of that in hover, by which it fails."""

FAILS_TIME = 0.2
"""Time for which it has to last, s."""

KNOWN_TIME = 0.5
"""Time in the air after which the motion shows a speed, s: wheels that bounce show none."""

REST_SHARE = 0.5
"""Share of moments and force that a rotor may leave unexplained."""

FORCE_WEIGHT = 0.5
"""Weight of the force against moments: the inflow changes it, too."""


class ThrustByMotion:
    """Thrust of the rotor that does not follow its command, by the body's motion alone."""

    def __init__(self, params: VehicleParameters) -> None:
        matrix = rotor_matrix(params)[:3]
        arm = float(np.hypot(*params.rotor_position[:, :2].T).mean())
        self._mass = params.mass
        self._weights = np.array((FORCE_WEIGHT * arm, 1.0, 1.0))
        """Weights of force, N, and moments of roll and pitch, N m."""

        self._matrix = matrix
        self._rows = (self._weights[:, None] * matrix).T
        """Weighted force and moments by the squares of the speeds, (rotors, 3)."""

        self._lengths = np.square(self._rows).sum(axis=1)
        self._hover = params.hover_speed**2
        self.reset()

    def reset(self) -> None:
        """Forget what the body has shown."""
        rotors = len(self._lengths)
        self._airborne_for = 0.0
        """Time since the ground last acted on the vehicle, s."""

        self._moment: Floats | None = None
        """Observed moments at the last time, (2,), N m."""

        self._unknown = np.zeros(3)
        """Weighted force and moments that the expected speeds leave open, (3,), averaged."""

        self._base = np.zeros(3)
        """The same before anything failed."""

        self._expected = np.zeros(rotors)
        """Squares of the expected speeds, (rotors,), averaged alike."""

        self._fails_for = np.zeros(rotors)
        """Times for which each rotor alone explains what is left, (rotors,), s."""

        self._squares = np.zeros(rotors)
        """Squares of the speeds if it does, (rotors,), rad²/s²."""

    def skip(self) -> None:
        """Go on with an observer that begins anew."""
        self._moment = None

    def update(
        self, expected: Floats, force: float, observer: MomentObserver, period: float
    ) -> None:
        """Take in expected speeds, (rotors,), rad/s, `period` seconds later.

        `force`: specific force along the body's z axis, m/s².
        """
        if not period > 0.0:
            return
        self._airborne_for += period
        squares = np.square(expected)
        moment = observer.moment[:2].copy()
        if self._moment is None:
            self._moment = moment

        # the observer's moment is late; undo that
        keep = np.exp(-observer.gain[:2] * period)
        seen = (moment - keep * self._moment) / (1.0 - keep)
        self._moment = moment

        lack = self._mass * force - float(self._matrix[0] @ squares)
        unknown = self._weights * (lack, *seen)
        share = -math.expm1(-period / SWIFT_TIME)
        self._unknown = self._unknown + share * (unknown - self._unknown)
        self._expected = self._expected + share * (squares - self._expected)
        self._base = self._base - math.expm1(-period / BASE_TIME) * (self._unknown - self._base)
        self._judge(self._unknown - self._base, period)

    def _judge(self, change: Floats, period: float) -> None:
        """Find the rotor that alone explains a change of weighted force and moments, (3,), best.

        Of two on one axis, whose force and moments are the same, that is the first.
        """
        more = self._rows @ change / self._lengths
        rest = np.linalg.norm(change - more[:, None] * self._rows, axis=1)
        explained = rest < REST_SHARE * np.abs(more) * np.sqrt(self._lengths)
        fails = explained & (np.abs(more) > FAILS_SHARE * self._hover)
        fails &= np.arange(len(rest)) == np.argmin(rest)
        self._fails_for = np.where(fails, self._fails_for + period, 0.0)
        self._squares = np.maximum(self._expected + more, 0.0)

    @property
    def is_known(self) -> bool:
        """True once the vehicle has been in the air for long enough to show a rotor's speed."""
        return self._airborne_for >= KNOWN_TIME

    @property
    def fails(self) -> Bools:
        """Rotors, (rotors,), that do not follow their commands."""
        return np.asarray(self._fails_for >= FAILS_TIME - 1e-9)

    @property
    def speeds(self) -> Floats:
        """Speeds of the rotors if they fail, (rotors,), rad/s."""
        return np.sqrt(self._squares)


RESTS_TIME = 0.3
"""Time for which the loads of the wheels have to show that a rotor rests, or pushes, s."""


class LoadEvidence:
    """Rotors that rest on the ground, though they seem to turn, by the loads of the wheels."""

    def __init__(self, params: VehicleParameters) -> None:
        self._levers = rotor_matrix(params)[1:3].T
        """Moments of roll and pitch by the squares of the speeds, (rotors, 2), N m s²."""

        x, y, _ = params.hub_position.T
        self._arms = np.stack([y, -x])
        """Moments of roll and pitch by the loads of the wheels, (2, wheels), m."""

        self._static = params.static_load / params.static_load.sum()
        self.reset()

    def reset(self) -> None:
        """Forget what the wheels have shown."""
        self.rests = np.zeros(len(self._levers), bool)
        """Rotors that rest, (rotors,)."""

        self._otherwise_for = np.zeros(len(self._levers))
        """Times for which the wheels have shown the contrary, (rotors,), s."""

    def _moments(self, loads: Floats) -> Floats:
        """Return the moments of roll and pitch that loads, (wheels,), N, take up, (2,), N m."""
        return np.asarray(-self._arms @ (loads - loads.sum() * self._static))

    def shows(self, loads: Floats, speeds: Floats, expected: Floats) -> Bools:
        """Return which rotors, (rotors,), turn rather at these speeds than at those expected.

        Speeds, (rotors,), are in rad/s, and loads, (wheels,), of wheels that stand, in N.
        """
        beyond = self._moments(loads) - np.square(expected) @ self._levers
        more = (np.square(speeds) - np.square(expected))[:, None] * self._levers
        return np.linalg.norm(beyond - more, axis=1) < np.linalg.norm(beyond)

    def update(self, loads: Floats, speeds: Floats, failed: list[int], period: float) -> None:
        """Take in the loads of wheels that stand, (wheels,), N, `period` seconds later.

        `speeds`: that the rotors seem to have, (rotors,), rad/s. `failed`: those that may rest.
        """
        seen = self._moments(loads)
        each = np.square(speeds)[:, None] * self._levers
        due = each.sum(axis=0) - each[self.rests].sum(axis=0)

        # the moments without a rotor that seems to push, or with one that seems to rest
        otherwise = due + np.where(self.rests[:, None], each, -each)
        nearer = np.zeros(len(speeds), bool)
        off = np.linalg.norm(seen - otherwise[failed], axis=1)
        nearer[failed] = off < np.linalg.norm(seen - due)
        self._otherwise_for = np.where(nearer, self._otherwise_for + period, 0.0)
        turned = self._otherwise_for >= RESTS_TIME - 1e-9
        self.rests = self.rests ^ turned
        self._otherwise_for[turned] = 0.0

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Geometric attitude controller, its attitude laws, and mixer: attitude setpoints to rotor speeds.

docs/model, section 10.1, after T. Lee, M. Leok and N. H. McClamroch (2010). World axes ENU, body
axes FLU, SI. Laws say how fast the body has to turn towards an attitude; one from outside is an
entry point of the group `rfly_suite.attitude_laws`.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from importlib.metadata import entry_points
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.rotor_wrench import rotor_matrix
from rfly_autonomy.control.command_age import CommandAge
from rfly_autonomy.control.flight_laws import (
    TOLERANCE,
    attitude_of,
    squares_within,
    turn_towards,
)
from rfly_autonomy.estimation.estimate import EstimatedMotion
from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_common.physics import GRAVITY

GROUP = "rfly_suite.attitude_laws"
"""Group of the entry points."""

GEOMETRIC = "geometric"
"""Name of the law that is used by default."""


@runtime_checkable
class AttitudeLaw(Protocol):
    """Interface of a law, which an entry point makes without arguments."""

    def set_gains(self, frequency: Floats, damping: float) -> None:
        """Use these frequencies of roll, pitch and yaw, (3,), rad/s, and this damping ratio.

        It is called before the first turn, and for new gains in flight.
        """

    def turn(self, wanted: Floats, rotation: Floats, rates: Floats) -> Floats:
        """Return the angular acceleration that the body needs, (3,), body axes, rad/s².

        `wanted`, `rotation`: wanted and present attitude, (3, 3), body -> world. `rates`: present
        body rates less the wanted ones, (3,), rad/s.
        """


class GeometricLaw:
    """Proportional and derivative law on SO(3). Eq. 10.4, after Lee, Leok and McClamroch (2010)."""

    def set_gains(self, frequency: Floats, damping: float) -> None:
        """Use these frequencies, (3,), rad/s, and this damping ratio."""
        self._frequency = frequency.tolist()
        self._damping = damping

    def turn(self, wanted: Floats, rotation: Floats, rates: Floats) -> Floats:
        """Return the angular acceleration, (3,), body axes, rad/s²."""
        turn = turn_towards(
            wanted.ravel().tolist(),
            rotation.ravel().tolist(),
            rates.tolist(),
            self._frequency,
            self._damping,
        )
        return np.array(turn)


def load_attitude_law(name: str) -> AttitudeLaw:
    """Return a new law of this name. Raise ConfigError for one that can't be had."""
    if name == GEOMETRIC:
        return GeometricLaw()
    points = {each.name: each for each in entry_points(group=GROUP)}
    if name not in points:
        raise ConfigError(
            f"attitude_law {name!r}: no installed package has it; known are "
            f"{', '.join((GEOMETRIC, *sorted(points)))}"
        )

    try:
        law = points[name].load()()
    except Exception as error:  # another package's code may raise anything
        raise ConfigError(f"attitude_law {name!r}: {points[name].value}: {error!r}") from error
    if not isinstance(law, AttitudeLaw):
        raise ConfigError(
            f"attitude_law {name!r}: {points[name].value} lacks a method set_gains or turn"
        )
    return law


YAW_FREQUENCY_SHARE = 0.4
"""Frequency of the yaw loop, as a share of that of roll and pitch."""

OBSERVER_SHARE = 0.4
"""Frequency of the observer of unknown moments, as a share of that of its loop."""

MOST_UNKNOWN = 0.25
"""Largest moment that the observer holds, as a share of the weight at the mean arm of a rotor.

A rotor without thrust is 1/6 with six rotors, and 1/4 with four.
"""

MOST_SPIN = 2.0
"""Yaw rate without a rotor up to which unknown moments are learned, rad/s."""

HOVER_RESERVE = 0.05
"""Thrust that a vehicle needs for control in addition to its weight, as a share of that."""

TURNS_SHARE = 0.3
"""Share of the speed of all rotors alike above which a failed rotor still turns."""

_TILT_FIRST = np.array((1.0, 10.0, 10.0))
"""Weights of thrust, roll and pitch moment where they cannot all be had."""


class Mixer:
    """Allocation of thrust and moments to the rotors.

    Thrust in N, moments in N m, body axes, about the centre of mass. docs/model, section 4.5.
    `failed`: indices of rotors that no longer turn. The others carry the weight and the tilting
    moments first, and cancel the remaining yaw moment as far as their limits let them.
    """

    def __init__(self, params: VehicleParameters, failed: Collection[int] = ()) -> None:
        self.matrix: Floats = rotor_matrix(params)
        """Matrix B, (4, rotors): (T, τ) = B ϖ²."""

        self.matrix[:, list(failed)] = 0.0
        self.inverse = np.asarray(np.linalg.pinv(self.matrix), np.float64)
        self._failed = bool(failed)

        # weight and tilt first, yaw only with a rotor to spare
        if failed:
            rows = np.abs(self.matrix).max(axis=1, keepdims=True)
            spare = (
                rows.all()
                and np.linalg.matrix_rank(self.matrix / np.where(rows, rows, 1.0), tol=1e-9) == 4
            )
            self.inverse[:, 3] *= spare
            self.inverse[list(failed)] = 0.0
        self._largest = params.max_rotor_speed**2

    def wrench(self, rotor_speed: ArrayLike) -> Floats:
        """Return thrust and moments, (4,), of rotors (rotors,), rad/s, that stand in still air."""
        return self.matrix @ np.square(np.asarray(rotor_speed, float))

    def rotor_speeds(self, wrench: ArrayLike) -> Floats:
        """Return the rotor speeds, (rotors,), rad/s, for thrust and moments, (4,).

        What the rotors cannot do is given up in this order: yaw moment, thrust, then roll and pitch
        together.
        """
        thrust, roll, pitch, yaw = np.asarray(wrench, float)
        for_thrust = self.inverse[:, 0]
        tilting = self.inverse[:, 1] * roll + self.inverse[:, 2] * pitch
        squares = thrust * for_thrust + tilting

        if self._failed:
            squares = self._redistributed(np.array((thrust, roll, pitch)))
            yaw = yaw - float(self.matrix[3] @ squares)
        turning = self.inverse[:, 3] * yaw

        complete = squares + turning
        each = complete.tolist()
        if min(each) >= 0.0 and max(each) <= self._largest:
            return np.sqrt(complete)

        largest = self._largest
        return np.sqrt(squares_within(squares, turning, tilting, for_thrust, thrust, largest))

    def _redistributed(self, wanted: Floats) -> Floats:
        """Return squares within their limits for thrust, roll and pitch moment, (3,).

        The square that is most beyond its limit is set to it, and the others make up for that, one
        after another (Bordignon 1996: cascaded generalised inverse). What they cannot do is missing
        in the thrust rather than in the moments.
        """
        rows = _TILT_FIRST[:, None] * self.matrix[:3]
        rest = _TILT_FIRST * wanted
        squares = np.zeros(rows.shape[1])
        free = rows[0] > 0.0
        while free.any():
            squares[free] = np.linalg.pinv(rows[:, free]) @ rest
            beyond = np.where(free, np.maximum(-squares, squares - self._largest), 0.0)
            worst = int(np.argmax(beyond))
            if beyond[worst] <= TOLERANCE * self._largest:
                break
            squares[worst] = min(max(squares[worst], 0.0), self._largest)
            rest = rest - rows[:, worst] * squares[worst]
            free[worst] = False
        return np.clip(squares, 0.0, self._largest)


class AttitudeSetpoint(NamedTuple):
    """Direction and strength of the thrust."""

    thrust: float
    """Thrust along the body's z axis, N."""

    acceleration: Floats | None
    """Specific thrust, (3,), world axes, m/s²; None: hold `attitude`.

    Its direction is that of the body's z axis.
    """

    yaw: float = 0.0
    """Heading, with an acceleration, rad."""

    yaw_rate: float = 0.0
    """Rate at which the heading turns, rad/s."""

    attitude: Floats | None = None
    """Attitude without an acceleration, (3, 3), body -> world."""

    moment_share: float = 1.0
    """Share of the moments that turn the body, 0 … 1: less while the wheels carry it."""

    wrench: Floats | None = None
    """Thrust, N, and moments, N m, body axes, (4,), to have instead of any attitude."""


class MomentObserver:
    """Observer of the moments that the model does not know, by the angular momentum. Eq. 10.20.

    A weak rotor, a shifted centre of mass and steady wind are such. Like the observer of the force
    on the wheels it learns nothing wrong while rotors are at their limits, because it knows the
    speeds that they can have.
    """

    def __init__(self, params: VehicleParameters, gain: Floats) -> None:
        """Begin with none; `gain`: of the loops about the body's axes, (3,), 1/s."""
        self._inertia = params.total_inertia
        lever = float(np.hypot(*params.rotor_position[:, :2].T).mean())
        self._most = MOST_UNKNOWN * params.mass * GRAVITY * lever
        self.gain = gain
        self.reset()

    def reset(self) -> None:
        """Forget what was learned."""
        self.moment = np.zeros(3)
        """Unknown moment, (3,), body axes, N m."""

        self._momentum: Floats | None = None
        """Angular momentum at the last update, (3,), N m s."""

    def update(self, rates: Floats, known: Floats, dt: float) -> None:
        """Go on by dt seconds with body rates, (3,), rad/s, and the known moments, (3,), N m."""
        momentum = self._inertia @ rates
        if self._momentum is not None:
            due = self._momentum + dt * (known + self.moment - _cross(rates, momentum))
            learned = self.moment + self.gain * (momentum - due)
            self.moment = np.clip(learned, -self._most, self._most)
        self._momentum = momentum

    @property
    def learns(self) -> bool:
        """True if it has learned at the last time."""
        return self._momentum is not None

    def skip(self) -> None:
        """Learn nothing until the next update, as the ground acts on the vehicle."""
        self._momentum = None


class AttitudeController:
    """Attitude loop: it answers an attitude setpoint with rotor speeds.

    A `frequency` (rad/s) other than that of the parameters is for loops with delay: (τ_m + delay) ·
    frequency ≤ 0.45. `law`: by default the geometric one.
    """

    def __init__(
        self,
        params: VehicleParameters,
        frequency: float | None = None,
        law: AttitudeLaw | None = None,
    ) -> None:
        self._law = law or GeometricLaw()
        self.mixer = Mixer(params)
        self._whole = self.mixer
        """Mixer of all rotors."""

        self.observer = MomentObserver(params, np.ones(3))
        self.set_gains(params, params.attitude_frequency if frequency is None else frequency)
        self._inertia = params.total_inertia
        self.command_age = CommandAge(params.rotors, params.hover_speed)
        """Age of the commands that the rotors obey."""

        self.reset()

    def reset(self) -> None:
        """Return to the initial state: all rotors stand still and can turn."""
        self.set_failed_rotors(())
        self.command_age.reset()
        self.commanded = np.zeros(self.params.rotors)
        """Last rotor speeds, (rotors,), rad/s."""

        self.expected = np.zeros(self.params.rotors)
        """Rotor speeds by the lag after the commands that they obey, (rotors,), rad/s."""

        self._prompt = self.expected
        """The same if commands acted at once."""

    def set_gains(self, params: VehicleParameters, frequency: float) -> None:
        """Use these parameters' gains and this frequency (rad/s) in roll and pitch."""
        self.params = params
        self.frequency = frequency * np.array((1.0, 1.0, YAW_FREQUENCY_SHARE))
        """Frequencies of roll, pitch and yaw, (3,), rad/s."""

        self.observer.gain = OBSERVER_SHARE * self.frequency
        self._law.set_gains(self.frequency, params.attitude_damping)

    def set_failed_rotors(self, failed: Collection[int]) -> None:
        """Let the other rotors do what they can without these ones (from 0)."""
        self.mixer = Mixer(self.params, failed)
        self._failed = list(failed)
        self.learns_on = False
        """True to learn on without these rotors: the others can carry the vehicle level."""

        self.note_speeds(np.zeros(self.params.rotors))
        self.observer.reset()

    def note_speeds(self, measured: Floats) -> None:
        """Take note of measured speeds, (rotors,), rad/s: those of failed rotors count.

        An unmeasured speed, NaN, counts as 0.
        """
        self._turning = np.zeros(self.params.rotors)
        """Speeds of failed rotors that turn nevertheless, (rotors,), rad/s."""

        if self._failed:
            self._turning[self._failed] = np.nan_to_num(measured[self._failed])

    def advance(self, motion: EstimatedMotion, dt: float, airborne: bool) -> None:
        """Go on by dt seconds to a motion, and learn from it if the vehicle is in the air.

        Without a rotor nothing is learned, but with `learns_on`, and not while it spins.
        """
        spins = bool(self._failed) and not abs(motion.rates[2]) < MOST_SPIN
        if airborne and not spins and (not self._failed or self.learns_on):
            known = self._whole.wrench(self.expected)[1:]
            self.observer.update(np.asarray(motion.rates, float), known, dt)
        else:
            self.observer.skip()
        keep = math.exp(-dt / self.params.rotor_lag)
        self._prompt = self.commanded + keep * (self._prompt - self.commanded)
        self.expected = self.command_age.go_on(self._prompt, dt)
        if self._failed:
            self._prompt[self._failed] = self._turning[self._failed]
            self.expected = self.expected.copy()
            self.expected[self._failed] = self._turning[self._failed]

    def rotor_speeds(self, setpoint: AttitudeSetpoint | None, motion: EstimatedMotion) -> Floats:
        """Return the rotor speeds, (rotors,), rad/s, for a setpoint in a motion.

        Without a setpoint the rotors stand still.
        """
        if setpoint is None:
            self.commanded = np.zeros(self.params.rotors)
            return self.commanded
        if setpoint.wrench is not None:
            wrench = setpoint.wrench
        elif setpoint.acceleration is not None:
            turned = attitude_of(setpoint.acceleration.tolist(), setpoint.yaw)
            wanted = np.array(turned).reshape(3, 3)
            wrench = self.wrench(wanted, motion, setpoint.thrust, setpoint.yaw_rate)
        elif setpoint.moment_share == 0.0:
            wrench = np.array((setpoint.thrust, 0.0, 0.0, 0.0))
        else:
            assert setpoint.attitude is not None
            wrench = self.wrench(setpoint.attitude, motion, setpoint.thrust)
            wrench[1:] *= setpoint.moment_share
        self.commanded = self._allocated(wrench)
        return self.commanded

    def _allocated(self, wrench: Floats) -> Floats:
        """Return the rotor speeds, (rotors,), rad/s, for thrust and moments, (4,).

        A failed rotor that turns nevertheless gets the speed that all would have alike. The others
        make up for it.
        """
        if not self._failed:
            return self.mixer.rotor_speeds(wrench)
        p = self.params
        speeds = self.mixer.rotor_speeds(wrench - self._whole.wrench(self._turning))
        alike = math.sqrt(max(float(wrench[0]), 0.0) / (p.rotors * p.thrust_coefficient))
        speeds[self._failed] = np.where(
            self._turning[self._failed] > TURNS_SHARE * p.hover_speed, alike, 0.0
        )
        return speeds

    def can_hover(self) -> bool:
        """Return whether the rotors that have not failed can carry the vehicle level.

        HOVER_RESERVE of the weight has to be left for control.
        """
        weight = self.params.mass * GRAVITY
        wanted = np.array(((1.0 + HOVER_RESERVE) * weight, 0.0, 0.0, 0.0))
        wanted -= self._whole.wrench(self._turning)
        done = self.mixer.wrench(self.mixer.rotor_speeds(wanted))
        return bool(np.allclose(done[:3], wanted[:3], atol=1e-3 * weight))

    def wrench(
        self, wanted: Floats, motion: EstimatedMotion, thrust: float, yaw_rate: float = 0.0
    ) -> Floats:
        """Return the thrust (N) and the moments (N m) that turn the body to an attitude, (4,).

        `wanted`: (3, 3), body -> world. `yaw_rate`: about the world's z axis, rad/s.
        """
        rotation = motion.rotation
        error_rates = np.asarray(motion.rates, float)
        if yaw_rate:
            error_rates = error_rates - yaw_rate * rotation[2]

        turn = self._law.turn(wanted, rotation, error_rates)
        moment = self._inertia @ turn - self.observer.moment
        if self._failed:
            moment = self._spinning(moment, np.asarray(motion.rates, float))
        return np.array((thrust, *moment))

    def _spinning(self, moment: Floats, rates: Floats) -> Floats:
        """Return the moment to command for a moment, (3,), N m, of a vehicle that may spin.

        `rates`: of the body, (3,), rad/s. It turns on while the rotors follow with their lag, and
        its angular momentum turns with it.
        """
        moment = moment + _cross(rates, self._inertia @ rates)
        ahead = math.atan(float(rates[2]) * self.params.rotor_lag)
        roll, pitch, yaw = moment.tolist()
        c = math.cos(ahead)
        s = math.sin(ahead)
        return np.array((c * roll + s * pitch, c * pitch - s * roll, yaw))


def _cross(a: ArrayLike, b: ArrayLike) -> Floats:
    """Return the cross product of two (3,); NumPy's own takes ten times as long."""
    x, y, z = np.asarray(a).tolist()
    i, j, k = np.asarray(b).tolist()
    return np.array((y * k - z * j, z * i - x * k, x * j - y * i))

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Steady flight: the attitude and the rotor speeds at which nothing accelerates. Eq. 4.18."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, ModelState
from rfly_amphibious.vehicle import state_layout
from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_number
from rfly_common.errors import DynamicsError
from rfly_common.frames import euler_to_quat
from rfly_common.physics import GRAVITY

TOLERANCE = 1e-6
"""Acceleration that may remain, relative to g (and to g over the rotors' arm where it turns)."""


@dataclasses.dataclass(frozen=True)
class SteadyFlight:
    """A flight at constant velocity, in which forces and moments balance."""

    state: ModelState
    """State, heading east."""
    roll: float
    """Roll, rad."""
    pitch: float
    """Pitch, rad; positive lowers the nose."""
    rotor_speed: Floats
    """Speeds of the rotors, (rotors,), rad/s."""
    rotor_power: float
    """Power at all shafts together, W."""

    @property
    def height(self) -> float:
        """Height of the flight, m, world: in the standard atmosphere the air's density is there."""
        return float(self.state.position[2])

    @property
    def orientation(self) -> Floats:
        """Attitude, (4,), quaternion x y z w, body -> world."""
        return self.state.orientation


def steady_flight(
    model: AmphibiousModel,
    speed: float = 0.0,
    *,
    climb: float = 0.0,
    position: ArrayLike = (0.0, 0.0, 1000.0),
) -> SteadyFlight:
    """Return the steady flight east at `speed` that climbs at `climb`, m/s. Eq. 4.18.

    `position` (m, world) is where the flight passes, for the ground's effect and the air's density:
    by default 1000 m up, where the standard atmosphere is 9 % thinner than at 0. There is no wind.
    Raise DynamicsError if the rotors can't hold such a flight.
    """
    from scipy.optimize import root

    p = model.params
    finite_number("speed", speed, "m/s")
    finite_number("climb", climb, "m/s")
    columns = state_layout.state_columns(p.rotors, len(p.wheels))
    begin = model.flying(position, velocity=(speed, 0.0, climb))
    arm = max(p.rotor_arm)

    # thrust, roll, pitch and yaw as changes of the squares of the rotors' speeds
    lever = p.rotor_position - (p.center_x, 0.0, 0.0)
    one = np.ones(p.rotors)
    effect = np.stack([one, lever[:, 1] / arm, -lever[:, 0] / arm, -np.array(p.rotor_spin)])
    share = np.linalg.pinv(effect) * p.rotors

    def unpacked(unknown: Floats) -> tuple[Floats, Floats]:
        """Return (state, speeds of the rotors) for the unknowns."""
        squares = p.hover_speed**2 * (share @ unknown[2:6])
        speeds = np.sqrt(np.maximum(squares, 0.0))
        x = begin.x.copy()
        x[state_layout.QUATERNION_XYZW] = euler_to_quat((*unknown[:2], 0.0))
        x[columns["strut"]] = begin.x[columns["strut"]] + unknown[6:]
        x[columns["rotor_speed"]] = speeds
        return x, speeds

    def accelerations(unknown: Floats) -> Floats:
        """Return all accelerations relative to g."""
        x, speeds = unpacked(unknown)
        rate = model.derivative(x, rotor_speed=speeds)
        turning = rate[state_layout.RATES : state_layout.RATES + 3] * arm
        moved = rate[state_layout.VELOCITY : state_layout.VELOCITY + 3]
        return np.concatenate([moved, turning, rate[columns["strut_rate"]]]) / GRAVITY

    guess = np.zeros(6 + len(p.wheels))
    guess[2] = 1.0
    solution = root(accelerations, guess, tol=1e-12)
    x, speeds = unpacked(solution.x)
    flight = f"steady flight at {speed:g} m/s that climbs at {climb:g} m/s"
    flight += f", at a height of {begin.position[2]:g} m"
    if not np.abs(accelerations(solution.x)).max() < TOLERANCE or speeds.min() <= 0.0:
        raise DynamicsError(f"{p.name}: there is no {flight}")
    if speeds.max() > p.max_rotor_speed:
        raise DynamicsError(
            f"{p.name}: {flight}, takes rotors of {speeds.max():.4g} rad/s, "
            f"and they turn at {p.max_rotor_speed:g} at most"
        )

    # the rotors' command is their speed, so no power accelerates them
    state = dataclasses.replace(begin, x=x)
    outputs = model.outputs(state, Controls(rotor_speed=speeds))
    roll, pitch = solution.x[:2].tolist()
    return SteadyFlight(state, roll, pitch, speeds, float(outputs.rotor_power))

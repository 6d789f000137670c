# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Thrust and moments of a vehicle's rotors by their speeds, in still air.

docs/model, section 4.5.
"""

from __future__ import annotations

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats


def rotor_matrix(params: VehicleParameters) -> Floats:
    """Return the matrix B, (4, rotors), of (T, τ) = B ϖ².

    T is the thrust, N, and τ the moments about the centre of mass, N m, body axes.
    """
    x, y, _ = params.rotor_position.T
    thrust = params.thrust_coefficient
    torque = params.torque_coefficient
    spin = np.array(params.rotor_spin, float)
    return np.array(
        (
            np.full(params.rotors, thrust),
            thrust * y,
            -thrust * (x - params.center_x),
            -torque * spin,
        )
    )

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""How RflySim3D shows a vehicle: id, model, and eight motor channels for rotors and wheels."""

from __future__ import annotations

import numpy as np

from rfly_amphibious.vehicle import state_layout
from rfly_common.arrays import Floats

CHANNELS = 8
"""Channels of a vehicle in RflySim3D."""
FIRST_ID = 601
"""Id of the first vehicle."""
_MULTIROTOR = 3
"""RflySim's vehicle class; the number of rotors in front of it selects a look of that class."""


def model_type(rotors: int) -> int:
    """Return the vehicleType that shows a vehicle with this many rotors."""
    return 100_000 * rotors + _MULTIROTOR


def motor_channels(x: Floats, rotors: int, wheels: int = state_layout.OUTER_WHEELS) -> Floats:
    """Return the channels of states (…, states): rotors, then wheels relative to the body, rad/s.

    As many wheels follow as there is room for: all four (front left, front right, rear left, rear
    right), else the means of left and right, else none. Six wheels never have room next to three
    rotors, so they are shown by their means.
    """
    rotor = x[..., state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + rotors]
    wheel = x[..., state_layout.state_columns(rotors, wheels)["wheel_speed"]]
    wheel = wheel - x[..., state_layout.RATES + 1, None]

    room = CHANNELS - rotors
    if room >= wheels:
        shown = wheel
    elif room >= 2:
        shown = wheel.reshape(*wheel.shape[:-1], -1, 2).mean(axis=-2)
    else:
        shown = wheel[..., :0]
    return np.concatenate([rotor, shown], axis=-1)

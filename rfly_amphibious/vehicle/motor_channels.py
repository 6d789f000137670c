"""Mapping of rotor and wheel speeds to the eight motor channels of RflySim3D."""

from __future__ import annotations

import numpy as np

from rfly_amphibious.vehicle import state_layout as at
from rfly_common.arrays import Floats

CHANNELS = 8


def motor_channels(x: Floats, rotors: int) -> Floats:
    """(channels,) rad/s of a state (states,): rotors, and behind them the wheels against the body as far as there is
    room: all four (front left, front right, rear left, rear right), else the means of left and right, else none.
    """
    rotor = x[at.ROTOR_SPEED : at.ROTOR_SPEED + rotors]
    wheel = x[at.WHEEL_SPEED : at.WHEEL_SPEED + 4] - x[at.RATES + 1]
    room = CHANNELS - rotors
    if room >= 4:
        shown = wheel
    elif room >= 2:
        shown = 0.5 * (wheel[:2] + wheel[2:])
    else:
        shown = wheel[:0]
    both: Floats = np.concatenate([rotor, shown])
    return both

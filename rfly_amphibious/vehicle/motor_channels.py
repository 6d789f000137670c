"""Mapping of rotor and wheel speeds to the eight motor channels of RflySim3D."""

from __future__ import annotations

import numpy as np

from rfly_amphibious.vehicle import state_layout as at
from rfly_common.arrays import Floats

CHANNELS = 8


def motor_channels(x: Floats, rotors: int, wheels: int = at.OUTER_WHEELS) -> Floats:
    """(channels,) rad/s of a state (states,): rotors, and behind them the wheels against the body
    as far as there is room: all four (front left, front right, rear left, rear right), else the
    means of left and right, else none. Six wheels never have room beside three rotors: theirs are
    the means.
    """
    rotor = x[at.ROTOR_SPEED : at.ROTOR_SPEED + rotors]
    wheel = x[at.state_columns(rotors, wheels)["wheel_speed"]] - x[at.RATES + 1]
    room = CHANNELS - rotors
    if room >= wheels:
        shown = wheel
    elif room >= 2:
        shown = wheel.reshape(-1, 2).mean(axis=0)
    else:
        shown = wheel[:0]
    return np.concatenate([rotor, shown])

"""Arguments of the dynamics' kernels, in groups."""

from __future__ import annotations

from typing import Any, NamedTuple

from rfly_common.arrays import Bools, Floats, Ints

RK4 = 0
SEMI_IMPLICIT_EULER = 1


class Inputs(NamedTuple):
    """Commands and wind that act on one vehicle; for many rows, arrays of public rows."""

    controls: Any
    """Record of the controls; (n, controls) as in `state_layout`."""
    torques: bool
    """True if rotors are commanded by torque, not by speed."""
    brake_acting: Any
    """Torques of the brakes, (wheels,) or (n, wheels), N m, signed."""
    wind: Any
    """Wind, a vector or (n, 3), m/s, world."""


class Vehicles(NamedTuple):
    """n vehicles, changed in place."""

    x: Floats
    """(n, states)"""
    memory: Floats
    """(n, memory)"""
    status: Ints
    """(n, 2): 0 or what is wrong, and the step"""


class HeldControls(NamedTuple):
    """Commands of n vehicles."""

    rows: Floats
    """(n, rows, controls)"""
    torques: bool
    """whether rotors are commanded by torque"""
    hold: int
    """steps for which each row is held"""


class WindSeries(NamedTuple):
    """Wind at n vehicles, world, m/s: a mean and gusts. Eq. 3.5."""

    mean: Floats
    """(n, 3)"""
    noise: Floats
    """(n, gusts, 3): unit normal numbers, a set for each step at which a gust begins"""
    gust_begins: Bools
    """(steps,)"""
    keep: Floats
    """(3,)"""
    add: Floats
    """(3,)"""
    turbulence: float
    """m/s: of the mean wind at 6 m, which tells Dryden's turbulence; 0: gusts by keep and add"""
    period: float
    """s: of the gusts"""


class Samples(NamedTuple):
    """What is kept of n vehicles after every `every`-th step."""

    every: int
    states: Floats
    """(n, samples, states)"""
    memories: Floats
    """(n, samples, memory)"""
    outputs: Floats
    """(n, samples, outputs): met at the beginning of that step"""


class Integrator(NamedTuple):
    """How steps are made."""

    dt: float
    """s"""
    method: int
    """RK4 or SEMI_IMPLICIT_EULER"""

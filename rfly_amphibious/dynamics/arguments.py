# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Arguments of the dynamics' kernels, in groups."""

from __future__ import annotations

from typing import Any, NamedTuple

from rfly_common.arrays import Bools, Floats, Ints

RK4 = 0
"""Method: classical Runge–Kutta."""
SEMI_IMPLICIT_EULER = 1
"""Method: semi-implicit Euler."""
METHODS = {"rk4": RK4, "semi_implicit_euler": SEMI_IMPLICIT_EULER}
"""Methods by their public names."""


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
    """n vehicles, which a kernel changes in place."""

    x: Floats
    """States, (n, states)."""
    memory: Floats
    """Memories, (n, memory)."""
    status: Ints
    """Status of each vehicle, 0 or an error, and the step in which it came, (n, 2)."""


class HeldControls(NamedTuple):
    """Commands of n vehicles."""

    rows: Floats
    """Rows of commands in the order of `state_layout`, (n, rows, controls)."""
    torques: bool
    """True if rotors are commanded by torque."""
    hold: int
    """Number of steps for which each row is held."""


class WindSeries(NamedTuple):
    """Wind at n vehicles, world, m/s: a mean and gusts. Eq. 3.5."""

    mean: Floats
    """Mean wind, (n, 3)."""
    noise: Floats
    """Unit normal numbers, three for each step in which a gust begins, (n, gusts, 3)."""
    gust_begins: Bools
    """True in each step in which a gust begins, (steps,)."""
    keep: Floats
    """Factor of the last gust in the next one, (3,)."""
    add: Floats
    """Factor of the unit normal numbers in the next gust, (3,), m/s."""
    turbulence: float
    """Mean wind at 6 m for Dryden's turbulence, m/s; 0: gusts by `keep` and `add`."""
    period: float
    """Period of the gusts, s."""


class Samples(NamedTuple):
    """Room for samples of n vehicles, one after every `every`-th step."""

    every: int
    """Number of steps from sample to sample."""
    states: Floats
    """States, (n, samples, states)."""
    memories: Floats
    """Memories, (n, samples, memory)."""
    outputs: Floats
    """Outputs at the beginning of the step, (n, samples, outputs)."""


class Integrator(NamedTuple):
    """Method and size of the steps."""

    dt: float
    """Step, s."""
    method: int
    """RK4 or SEMI_IMPLICIT_EULER."""

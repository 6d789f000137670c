"""Weight and aerodynamic drag of the body."""

from __future__ import annotations

import math
from typing import Any

from rfly_amphibious.dynamics.body_motion import BodyMotion
from rfly_amphibious.dynamics.vectors import Vector, dot
from rfly_common.kernels.jit import inlined_kernel


@inlined_kernel
def weight_and_drag(motion: BodyMotion, p: Any) -> tuple[Vector, Vector]:
    """(force, moment) on the sprung body, N and N m, body axes: the first terms of Eq. 7.1 and 7.2."""
    gravity, air, rates = motion.gravity, motion.air_velocity, motion.rates
    quadratic = motion.density_ratio * math.sqrt(dot(air, air))
    force = (
        p.mass_sprung * gravity[0] - (p.linear_drag[0] + quadratic * p.drag_area[0]) * air[0],
        p.mass_sprung * gravity[1] - (p.linear_drag[1] + quadratic * p.drag_area[1]) * air[1],
        p.mass_sprung * gravity[2] - (p.linear_drag[2] + quadratic * p.drag_area[2]) * air[2],
    )
    moment = (
        -p.rotational_drag[0] * rates[0],
        -p.rotational_drag[1] * rates[1],
        -p.rotational_drag[2] * rates[2],
    )
    return force, moment

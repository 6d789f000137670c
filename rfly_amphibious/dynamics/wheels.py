"""How many wheels a vehicle has, for the kernels."""

from __future__ import annotations

from typing import Any

from rfly_amphibious.vehicle import state_layout as at
from rfly_common.kernels.jit import inlined_kernel


@inlined_kernel
def wheel_count(p: Any) -> int:
    """4 or 6. The size of an array in a record is part of its type: loops over wheels are compiled
    for their number.
    """
    return p.spring.size


@inlined_kernel
def state_count(p: Any) -> int:
    """Numbers in the state, as `state_layout.state_size` has it."""
    return at.FIXED_STATES + p.rotors + 6 * (wheel_count(p) - at.OUTER_WHEELS)


@inlined_kernel
def first_corner(p: Any) -> int:
    """The first of the points that belongs to the body box; before it there are the hubs."""
    return wheel_count(p)


@inlined_kernel
def first_rotor(p: Any) -> int:
    """The first of the points that is a rotor hub."""
    return wheel_count(p) + at.CORNERS

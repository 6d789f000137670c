# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Order of the points of a vehicle's body: hubs, corners of the body box, rotor hubs."""

from __future__ import annotations

from typing import Any

from rfly_amphibious.vehicle.state_layout import CORNERS
from rfly_common.kernels.jit import inlined_kernel


@inlined_kernel
def first_corner(p: Any) -> int:
    """Return the first point of the body box; the hubs come before it."""
    return p.wheels


@inlined_kernel
def first_rotor(p: Any) -> int:
    """Return the first point that is a rotor hub."""
    return p.wheels + CORNERS

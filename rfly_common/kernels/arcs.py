# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Arc tangent, sine and tangent without a branch or a call, for vector instructions.

libm's functions are called for one number after the other. Arc tangent and sine here are right to 3
units in the last place, the tangent to 8, as the tests show.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.lanes import where

_TAN_3_8 = 1.0 + math.sqrt(2.0)
"""tan(3 π/8), above which arctan x is computed as π/2 - arctan(1/x)."""

_MIDDLE = 0.66
"""Number above which arctan x is computed as π/4 + arctan((x - 1)/(x + 1))."""


@inlined_kernel
def atan(x: Any) -> Any:
    """Return arctan x for x ≥ 0.

    Reductions and rational function of Moshier's Cephes library, 2.8, `atan.c`.
    """
    # an argument between -0.66 and 0.66
    far = x > _TAN_3_8
    middle = x > _MIDDLE
    over = where(far, -1.0, where(middle, x - 1.0, x))
    under = where(far, x, where(middle, x + 1.0, 1.0))
    reduced = over / under

    # numerator and denominator, by Horner's scheme
    z = reduced * reduced
    numerator = -8.750608600031904122785e-1
    for c in (
        -1.615753718733365076637e1,
        -7.500855792314704667340e1,
        -1.228866684490136173410e2,
        -6.485021904942025371773e1,
    ):
        numerator = numerator * z + c
    denominator = z + 2.485846490142306297962e1
    for c in (
        1.650270098316988542046e2,
        4.328810604912902668951e2,
        4.853903996359136964868e2,
        1.945506571482613964425e2,
    ):
        denominator = denominator * z + c

    angle = reduced * (z * numerator / denominator) + reduced
    return where(far, 0.5 * math.pi, where(middle, 0.25 * math.pi, 0.0)) + angle


@inlined_kernel
def sin(x: Any) -> Any:
    """Return sin x for 0 ≤ x ≤ π, by the Taylor series about the nearer of 0 and π to x²¹."""
    a = min(x, math.pi - x)
    z = a * a
    series = 1.0 / 51090942171709440000.0
    for factorial in (
        -121645100408832000.0,
        355687428096000.0,
        -1307674368000.0,
        6227020800.0,
        -39916800.0,
        362880.0,
        -5040.0,
        120.0,
        -6.0,
    ):
        series = series * z + 1.0 / factorial
    return a + a * z * series


@inlined_kernel
def tan(x: Any) -> Any:
    """Return tan x for |x| ≤ 1.4, from the tangent of half the angle, as one fraction.

    Rational function of Moshier's Cephes library, 2.8, `tan.c`.
    """
    half = 0.5 * x
    z = half * half
    numerator = -1.30936939181383734205e4
    for c in (1.15351664838587416140e6, -1.79565251976484877988e7):
        numerator = numerator * z + c
    below = z + 1.36812963470692954678e4
    for c in (
        -1.32089234440210967447e6,
        2.50083801823357915839e7,
        -5.38695755929454629881e7,
    ):
        below = below * z + c
    above = half * (below + z * numerator)
    return 2.0 * above * below / ((below - above) * (below + above))

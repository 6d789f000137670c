"""Arc tangent and sine without a branch or a call, so that loops over them become vector
instructions.

libm's are called for one number after the other. Both are right to 3 units in the last place, as
the tests show.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.lanes import where

_TAN_3_8 = 1.0 + math.sqrt(2.0)
"""tan(3 π/8): beyond it arctan x is π/2 - arctan(1/x)"""
_NEAR = 0.66
"""beyond it, π/4 + arctan((x - 1)/(x + 1))"""


@inlined_kernel
def atan(x: Any) -> Any:
    """arctan x for x ≥ 0: the reductions and the rational function of Moshier's Cephes library,
    2.8, `atan.c`.
    """
    far = x > _TAN_3_8
    middle = x > _NEAR
    over = where(far, -1.0, where(middle, x - 1.0, x))
    under = where(far, x, where(middle, x + 1.0, 1.0))
    reduced = over / under
    z = reduced * reduced
    above = -8.750608600031904122785e-1
    for c in (
        -1.615753718733365076637e1,
        -7.500855792314704667340e1,
        -1.228866684490136173410e2,
        -6.485021904942025371773e1,
    ):
        above = above * z + c
    below = z + 2.485846490142306297962e1
    for c in (
        1.650270098316988542046e2,
        4.328810604912902668951e2,
        4.853903996359136964868e2,
        1.945506571482613964425e2,
    ):
        below = below * z + c
    return where(far, 0.5 * math.pi, where(middle, 0.25 * math.pi, 0.0)) + (
        reduced * (z * above / below) + reduced
    )


@inlined_kernel
def sin(x: Any) -> Any:
    """sin x for 0 ≤ x ≤ π: the Taylor series about the nearer of 0 and π, to the 21st power."""
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

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The frame base_footprint: straight below on the ground, level, with only the heading."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_amphibious.description.footprint import footprint
from rfly_common.frames import euler_to_quat
from rfly_terrain import HeightMap


def test_below_a_tilted_vehicle_over_a_slope():
    slope = HeightMap(
        np.fromfunction(lambda i, j: 0.5 * i, (5, 5)),
        origin_x=0.0,
        origin_y=0.0,
        step_x=1.0,
        step_y=1.0,
    )
    turned = euler_to_quat((0.3, -0.2, math.pi / 2))
    place, quat_xyzw = footprint((1.5, 2.0, 9.0), turned, slope)

    assert place == pytest.approx((1.5, 2.0, 0.75))
    expected = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))
    assert quat_xyzw == pytest.approx(expected)
    assert footprint((1.5, 2.0, 9.0), turned, None)[0] == (1.5, 2.0, 0.0)

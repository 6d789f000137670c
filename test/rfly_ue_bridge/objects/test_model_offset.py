# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The sign of the offset, with the numbers of RflySim's experiments worked out by hand."""

from __future__ import annotations

import math

import pytest

from rfly_ue_bridge.objects.placement import measure_offset


def test_experiment_2_a_target_one_metre_above_the_ground():
    """An origin above the ground has a positive offset.

     Click z -10.465, object z -11.465: z is down, so the origin is 1 m above the ground and the XML
    wants +100.
    """
    offset = measure_offset((43.943, 1.620, -10.465), (43.943, 1.620, -11.465))
    assert offset.vector_ned == pytest.approx((0.0, 0.0, -1.0))
    assert offset.height == pytest.approx(1.0)
    assert offset.height_cm == pytest.approx(100.0)
    assert offset.distance == 0.0


def test_experiment_3_the_offset_puts_a_person_on_the_mountain():
    """The same person on ground of z = -176.181: sent with z = ground - height = -177.181."""
    offset = measure_offset((0.0, 0.0, -10.465), (0.0, 0.0, -11.465))
    assert -176.181 - offset.height == pytest.approx(-177.181)


def test_an_origin_below_the_ground_is_negative_and_the_horizontal_distance_is_told():
    offset = measure_offset((10.0, 20.0, -5.0), (13.0, 24.0, -4.75))
    assert (offset.height, offset.height_cm, offset.distance) == (-0.25, -25.0, 5.0)


def test_no_offset_is_no_negative_zero():
    assert math.copysign(1.0, measure_offset((0, 0, -5.0), (0, 0, -5.0)).height) == 1.0


@pytest.mark.parametrize(
    "point",
    [
        (1.0, 2.0),
        (1.0, 2.0, math.nan),
        (1.0, math.inf, 0.0),
        (1, 2, 3, 4),
    ],
)
def test_a_point_is_three_finite_numbers(point):
    with pytest.raises(ValueError, match="object_position_ned"):
        measure_offset((0.0, 0.0, 0.0), point)

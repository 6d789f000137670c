# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Drives along waypoints, from where a vehicle really stands."""

import pytest

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.path_following import DrivePathFollower

SCALE = VehicleParameters.load("scale")
NEAREST = 2.0 * SCALE.wheelbase


def commands(start, points):
    """Return speed and steering from `start` eastwards, and three metres on."""
    follower = DrivePathFollower(start, points, [1.0] * len(points), SCALE)
    return [follower.command(place, 0.0, 0.5) for place in (start, (start[0] + 3.0, start[1]))]


@pytest.mark.parametrize(
    ("points", "passed"),
    [
        ([(-0.18, 0.0), (-0.06, 0.0), (20.0, 0.0)], 2),  # it has landed beyond two
        ([(-0.18, 0.05), (20.0, 0.0)], 1),
        ([(-0.18, 0.0), (-5.0, 0.0), (20.0, 0.0)], 0),  # it has to go back anyway
        ([(0.18, 0.0), (20.0, 0.0)], 0),  # ahead
        ([(-NEAREST - 0.01, 0.0), (20.0, 0.0)], 0),  # far away
        ([(-0.18, 0.0)], 0),  # the end is never left out
    ],
)
def test_first_waypoints_that_are_just_passed_are_left_out(points, passed):
    assert commands((0.0, 0.0), points) == commands((0.0, 0.0), points[passed:])

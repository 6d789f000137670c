# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Properties in either spelling, checked at every assignment."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rfly_common.config.checks import finite_number
from rfly_common.config.matlab_properties import matlab_properties


def _positive(name, value):
    return finite_number(name, value, above=0.0, error=ValueError)


@matlab_properties({"air_speed": _positive}, {"uav_type": "UAVType"})
@dataclass
class Block:
    air_speed: float = 10.0
    uav_type: str = "fixed-wing"


def test_both_spellings_name_one_property():
    block = Block(AirSpeed=3, uavtype="multirotor")
    assert (block.air_speed, block.AirSpeed, block.UAVType) == (3.0, 3.0, "multirotor")
    block.AirSpeed = 4
    assert block.air_speed == 4.0
    assert Block(5.0).AirSpeed == 5.0


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"AirSpeed": 0}, ValueError, "air_speed: 0, expected a finite number above 0"),
        (
            {"air_speed": 1, "AirSpeed": 2},
            TypeError,
            "air_speed and AirSpeed are the same option, given twice",
        ),
        ({"Airspace": 1}, TypeError, "no option Airspace, expected one of AirSpeed, UAVType"),
    ],
)
def test_bad_properties_are_refused(options, error, text):
    with pytest.raises(error, match=text):
        Block(**options)


def test_a_bad_assignment_changes_nothing():
    block = Block()
    with pytest.raises(ValueError, match="air_speed: -1"):
        block.AirSpeed = -1
    assert block.air_speed == 10.0

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motors that push and brakes that drag are told from wheels that slip by their own torque."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.wheel_watch import WheelWatch

PARAMS = VehicleParameters.load("scale")


@pytest.mark.parametrize(
    ("slip", "torque", "speed", "fault"),
    [
        ((0.05, 0.0, 0.0, 0.0), 0.3, 3.0, "drive_fl"),
        ((0.05, -0.02, -0.03, -0.02), -2.4, 2.0, "drive_fl"),
        ((0.02, 0.02, -0.04, 0.02), 1.3, 2.7, "brake_rl"),
        ((-0.05, 0.0, 0.0, 0.0), -0.3, -2.0, "drive_fl"),
        ((0.05, 0.0, 0.0, 0.0), -0.3, -2.0, "brake_fl"),
        ((0.3, 0.02, 0.02, 0.02), 4.0, 2.0, None),
        ((-0.3, -0.02, -0.02, -0.02), -4.0, 2.0, None),
        ((0.008, 0.003, 0.002, 0.003), 0.3, 3.0, None),
        ((0.05, 0.05, 0.05, 0.05), 0.0, 3.0, None),
        ((0.05, 0.0, 0.0, 0.0), 0.3, 0.5, None),
    ],
    ids=[
        "pushes",
        "pushes against the brakes",
        "drags",
        "pushes backwards",
        "drags backwards",
        "spins on ice",
        "slides on ice",
        "sound",
        "speed is wrong",
        "slow",
    ],
)
def test_a_wheel_that_slips_against_its_torque_is_at_fault_after_half_a_second(
    slip, torque, speed, fault
):
    """5 N m are 5/0.11 N on 75 N of load with a stiffness of 14: 4.3 % of slip."""
    watch = WheelWatch(PARAMS)
    found = {}
    for k in range(100):
        watch.update(np.array(slip), np.full(4, torque), speed, 0.01)
        for part in watch.faults:
            found.setdefault(part, 0.01 * (k + 1))
    assert found == ({} if fault is None else {fault: pytest.approx(0.5, abs=0.011)})

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Reports to an external controller, of samples made by hand."""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious import VehicleParameters
from rfly_amphibious.sensors.samples import (
    BarometerSamples,
    ImuSamples,
    JointSamples,
    MagnetometerSamples,
    SensorSamples,
    WheelLoadSamples,
)
from rfly_autonomy.estimation.estimate import Estimate
from rfly_mavlink.links.perception import Perception

SCALE = VehicleParameters.load("scale")


def imu(time):
    return ImuSamples(
        np.array([time]),
        np.array([[1.0, 2, 3]]),
        np.array([[4.0, 5, 6]]),
        np.array([[0, 0, 0, 1.0]]),
    )


def with_imu_and_pose(time):
    perception = Perception(SCALE)
    perception.sense(SensorSamples(imu=imu(time)))
    parts = map(
        np.array,
        (
            (11.0, 12, 13),
            (1.0, 0, 0, 0),
            (14.0, 15, 16),
            (7.0, 8, 9),
        ),
    )
    perception.pose = Estimate(time, *parts)
    return perception


def take_the_rest(perception):
    quarter = np.array([0.25])
    four = np.array([[1.0, 2, 3, 4]])
    spins = np.array([[-100.0, 101, -102, 103, -104, 105]])
    joints = JointSamples(quarter, 0 * four, four, four / 10, 0 * four, 0 * four, 0 * spins, spins)
    perception.sense(SensorSamples(joints=joints))
    perception.sense(SensorSamples(wheel_loads=WheelLoadSamples(quarter, 10 * four)))
    perception.sense(
        SensorSamples(barometer=BarometerSamples(np.array([0.2, 0.25]), np.array([1e5, 99e3])))
    )
    perception.sense(
        SensorSamples(magnetometer=MagnetometerSamples(quarter, np.array([[1e-6, 2e-6, 3e-6]])))
    )


def test_everything_lands_in_its_field():
    perception = with_imu_and_pose(0.25)
    take_the_rest(perception)
    assert perception.ready(0.25)

    report = {
        name: np.asarray(value).tolist()
        for name, value in perception.report(0.26)._asdict().items()
    }
    assert report == {
        "time": 0.26,
        "specific_force": [1, 2, 3],
        "rates": [4, 5, 6],  # the IMU's, not the pose's
        "quat_wxyz": [0, 1, 0, 0],
        "position": [11, 12, 13],
        "velocity": [14, 15, 16],
        "wheel_rate": [1, 2, 3, 4],
        "steering": [0.1, 0.2],
        "wheel_load": [10, 20, 30, 40],
        "rotor_speed": [100, 101, 102, 103, 104, 105],
        "pressure": 99e3,
        "magnetic_field": [1e-6, 2e-6, 3e-6],
    }

    assert perception.fresh == {"imu", "barometer", "magnetometer"}


def test_the_slow_sensors_are_waited_for_and_those_that_never_come_are_not():
    perception = Perception(SCALE)
    perception.sense(SensorSamples(imu=imu(0.25)))
    assert not perception.ready(10.0)  # nothing can be controlled without a pose

    perception = with_imu_and_pose(0.25)
    assert not perception.ready(0.3)
    assert perception.ready(0.36)
    report = perception.report(0.36)
    assert math.isnan(report.pressure)
    assert np.isnan(report.wheel_load).all()

    take_the_rest(perception)
    assert perception.ready(0.26)

    perception.reset()
    assert not perception.ready(10.0)
    assert np.isnan(perception.report(0.0).rotor_speed).all()

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The sensors against truths worked out by hand; statistics, latency, ticks and repetition."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from amphibious_cases import model, parameters, plane, rotation
from optional_parts import late_module
from oracles.plain_python import ENVIRONMENT

from rfly_amphibious import AmphibiousModel, Controls, SensorParameters, SensorSuite, Wind
from rfly_amphibious.sensors.noise import NoiseModel
from rfly_amphibious.sensors.sensor_parameters import Encoders, HeightSensor, Imu, LoadCells, Sensor
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.errors import ConfigError

pyproj = late_module("pyproj")

SCALE = SensorParameters.load("scale")
SILENT = NoiseModel(9)
STANDING = model("scale").standing()


def still(m, state, seconds, sensors, controls=None, noise=False, **options):
    """Return samples of a state that is held, whatever its derivative."""
    suite = SensorSuite(m, sensors, noise=noise, **options)
    steps = round(seconds / suite.step)
    x = np.tile(state.x, (steps, 1))
    memory = np.tile(state.memory, (steps, 1))
    return suite.observe(state, x, memory, controls or Controls())


def in_vacuum(**changes):
    """Return a vehicle without air, with wheels symmetric about the centre."""
    nothing = (0.0, 0.0, 0.0)
    p = parameters("scale").replace(
        front_axle=0.33, rear_axle=0.33, linear_drag=nothing, drag_area=nothing
    )
    return AmphibiousModel(
        p.replace(**{"rotational_drag": nothing, **changes}), ground_effect=False
    )


def falling(m, rates=(0.0, 0.0, 0.0), yaw=0.0):
    state = m.flying((3.0, -2.0, 50.0), yaw)
    state.x[at.ROTOR_SPEED : at.ROTOR_SPEED + m.params.rotors] = 0.0
    state.x[at.STRUT : at.STRUT + 4] = m.params.free_strut
    state.x[at.RATES : at.RATES + 3] = rates
    return state


def imu(position=(0.0, 0.0, 0.0), rotation=(0.0, 0.0, 0.0), noise=SILENT):
    return SensorParameters(imu=Imu(rate=250, position=position, rotation=rotation, noise=noise))


# IMU


def test_imu_at_rest_reads_gravity_upward():
    got = still(model("scale"), STANDING, 0.004, SCALE).imu
    assert got.time.tolist() == [0.004]
    assert got.specific_force[0] == pytest.approx((0.0, 0.0, 9.80665), abs=1e-9)
    assert got.rates[0].tolist() == [0.0, 0.0, 0.0]
    assert got.orientation[0] == pytest.approx((0.0, 0.0, 0.0, 1.0), abs=1e-12)


def test_imu_in_free_fall_reads_nothing():
    m = in_vacuum()
    assert still(m, falling(m), 0.004, imu()).imu.specific_force[0] == pytest.approx(
        (0.0, 0.0, 0.0), abs=1e-9
    )


def test_imu_on_a_circle_reads_the_centripetal_acceleration():
    """Turning about its z axis at 3 rad/s, it reads -ω² r, which points to the axis."""
    m = in_vacuum()
    got = still(m, falling(m, (0.0, 0.0, 3.0)), 0.004, imu((0.5, -0.2, 0.1))).imu
    assert got.specific_force[0] == pytest.approx((-4.5, 1.8, 0.0), abs=1e-9)
    assert got.rates[0].tolist() == [0.0, 0.0, 3.0]


def test_imu_feels_angular_acceleration_by_its_lever():
    """Angular acceleration adds ω̇ × r to -ω² r.

    The vehicle is slowed by -0.1 N m s · 3 rad/s on the inertia about z, wheels included.
    """
    m = in_vacuum(rotational_drag=(0.0, 0.0, 0.1))
    turning = -0.3 / m.params.total_inertia[2, 2]
    got = still(m, falling(m, (0.0, 0.0, 3.0)), 0.004, imu((0.5, 0.25, 0.0))).imu
    expected = (-4.5 - 0.25 * turning, -2.25 + 0.5 * turning, 0.0)
    assert got.specific_force[0] == pytest.approx(expected, abs=1e-9)


def test_imu_is_the_second_derivative_of_its_place():
    """The reading is compared with central differences of the IMU's positions in a drive and a
    flight.

    These need no formula for moving frames.
    """
    lever = np.array((0.4, -0.3, 0.2))
    for begin, controls in (
        (model("scale").standing(speed=2.0), Controls(steering=0.2, drive_torque=2.0)),
        (
            model("scale").flying((0, 0, 5.0), velocity=(2.0, 0, 0)),
            Controls(rotor_speed=[250, 255, 260, 265, 255, 250]),
        ),
    ):
        suite = SensorSuite(model("scale"), imu(tuple(lever)), noise=False)
        run = model("scale").run(begin, controls, 0.4, sample_period=0.001)
        got = suite.observe(begin, run.x, run.memory, controls).imu
        places = np.array([x[:3] + rotation(x) @ lever for x in run.x])
        moved = np.array(
            [
                rotation(x).T @ a
                for x, a in zip(
                    run.x[1:-1], np.diff(places, 2, axis=0) / 1e-6 + (0, 0, 9.80665), strict=True
                )
            ]
        )

        for k, t in enumerate(got.time[20:-1], 20):
            expected = moved[round(t * 1000) - 2]
            assert got.specific_force[k] == pytest.approx(expected, abs=0.02)
        assert np.ptp(got.specific_force, axis=0).max() > 0.3


def test_imu_mounted_askew():
    """Turned by 90° about z, the IMU's x axis is the vehicle's y axis."""
    m = in_vacuum()
    got = still(
        m, falling(m, (0.0, 0.0, 3.0)), 0.004, imu((0.5, 0.0, 0.0), (0.0, 0.0, math.pi / 2))
    ).imu
    assert got.specific_force[0] == pytest.approx((0.0, 4.5, 0.0), abs=1e-9)
    expected = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))
    assert got.orientation[0] == pytest.approx(expected, abs=1e-12)


def test_imu_range():
    m = in_vacuum()
    got = still(
        m,
        falling(m, (0.0, 0.0, 25.0)),
        0.004,
        SCALE.replace(imu=Imu(rate=250, position=(0.5, 0.0, 0.0), noise=SCALE.imu.noise)),
    ).imu
    assert got.rates[0].tolist() == [0.0, 0.0, 20.0]
    assert got.specific_force[0, 0] == pytest.approx(-18.0 * 9.80665)  # of 312.5


def test_crashed_vehicles_ignore_commands():
    """A latched vehicle's rotors slow down in spite of commands: the reaction turns it."""
    m = in_vacuum()
    state = m.flying((0.0, 0.0, 9.0))
    state.memory[at.CRASHED] = 1.0
    sensors = imu((0.5, 0.0, 0.0))
    dead = still(
        m, state, 0.004, sensors, Controls(rotor_speed=[300.0, 0.0] * 3)
    ).imu.specific_force

    assert dead.tolist() == still(m, state, 0.004, sensors, Controls()).imu.specific_force.tolist()

    state.memory[at.CRASHED] = 0.0
    alive = still(
        m, state, 0.004, sensors, Controls(rotor_speed=[300.0, 0.0] * 3)
    ).imu.specific_force
    assert abs(alive - dead).max() > 0.5


# magnetometer, GPS, barometer, height, wind, loads


def test_magnetometer_turns_with_the_vehicle():
    for yaw, field in ((0.0, (0.0, 21.5, -42.5)), (math.pi / 2, (21.5, 0.0, -42.5))):
        got = still(model("scale"), model("scale").flying((0, 0, 5), yaw), 0.02, SCALE).magnetometer
        assert got.field[0] * 1e6 == pytest.approx(field, abs=1e-9)


@pytest.mark.needs("pyproj")
def test_gps_reads_its_antenna():
    """The antenna is 0.15 m behind and 0.22 m above, and the vehicle faces north.

    Turning left at 2 rad/s, the antenna moves to the east.
    """
    state = model("scale").flying((1000.0, 2000.0, 50.0), math.pi / 2)
    state.x[at.RATES + 2] = 2.0
    origin = (40.0, 116.0, 30.0)
    got = still(model("scale"), state, 0.2, SCALE, geo_origin=origin).gps
    east = 1000.0
    north = 2000.0 - 0.15
    up = 50.22
    to_plane = pyproj.Proj("+proj=tmerc +lat_0=40 +lon_0=116 +datum=WGS84")
    longitude, latitude = to_plane(east, north, inverse=True)

    assert got.geodetic[0, :2] == pytest.approx((latitude, longitude), abs=1e-9)
    assert got.geodetic[0, 2] == pytest.approx(30.0 + up, abs=1e-9)
    assert got.velocity[0] == pytest.approx((0.3, 0.0, 0.0), abs=1e-12)


def test_gps_comes_late_with_the_time_and_place_of_its_measurement():
    m = model("scale")
    suite = SensorSuite(m, SCALE, noise=False, geo_origin=(0.0, 0.0, 0.0))
    state = m.flying((0.0, 0.0, 100.0), velocity=(10.0, 0.0, 0.0))
    arrived = {}
    for _ in range(100):
        state, got = suite.advance(state, Controls(rotor_speed=m.params.hover_speed), 0.004)
        if got.gps is not None:
            for time, place in zip(got.gps.time, got.gps.geodetic, strict=True):
                arrived[round(state.time, 6)] = (time, place)

    assert list(arrived) == [0.2, 0.3, 0.4]

    for end, (time, place) in arrived.items():
        assert time == pytest.approx(end - 0.1, abs=1e-12)
        east = math.radians(place[1]) * 6378137.0 + 0.15
        assert east == pytest.approx(
            10.0 * time, abs=0.1
        )  # drag has slowed it a little; not 1 m farther


def test_barometer_is_the_standard_atmosphere():
    """The pressure is 89,874.6 Pa at 1000 m: 200 m above an origin at 800 m."""
    got = still(
        model("scale"),
        model("scale").flying((0, 0, 199.98)),
        0.04,
        SCALE,
        geo_origin=(47.0, 8.0, 800.0),
    )
    assert got.barometer.pressure[0] == pytest.approx(89_874.6, abs=0.5)


def test_height_above_sloping_ground():
    """Over z = 0.1 x + 2 y the sensor at x = 10, y = -1, z = 7 - 0.08 is 7.92 m above ground."""
    m = AmphibiousModel(parameters("scale"), plane(0.1, slope_y=2.0))
    got = still(m, m.flying((10.0, -1.0, 7.0)), 0.04, SCALE).height
    assert got.distance == pytest.approx([7.92, 7.92], abs=1e-3)  # the map has float32 heights
    short = HeightSensor(rate=50, noise=NoiseModel(1), min_range=0.5, max_range=5.0)
    for z, reading in ((5.2, math.inf), (0.4, -math.inf), (3.0, 3.0)):
        sample = still(
            model("scale"), model("scale").flying((0, 0, z)), 0.02, SensorParameters(height=short)
        )
        assert sample.height.distance[0] == reading


def test_wind_with_its_gusts_and_wheel_loads():
    m = model("scale")
    suite = SensorSuite(m, SCALE)
    state, got = suite.advance(
        m.standing(), Controls(), 0.1, wind=Wind((3.0, -1.0, 0.0), (1.0, 1.0, 0.5), seed=3)
    )
    expected = np.array((3.0, -1.0, 0.0)) + state.memory[at.GUST : at.GUST + 3]
    assert got.wind.velocity[0] == pytest.approx(expected)
    loads = still(m, STANDING, 0.01, SCALE).wheel_loads.load[0]
    assert loads == pytest.approx((75.422, 75.422, 71.678, 71.678), rel=1e-3)  # table 16, V02a


# joints and odometry


def joints(state, seconds, counts, m=None, controls=None):
    sensors = SensorParameters(
        encoders=Encoders(rate=100, wheel_counts=counts, steering_counts=counts)
    )
    return still(m or model("scale"), state, seconds, sensors, controls, noise=True).joints


def test_encoders_turn_relative_to_the_body():
    """The vehicle somersaults at 2 rad/s with wheels that spin at 12 rad/s in space.

    Against the body they spin at 10 rad/s.
    """
    m = model("scale")
    state = m.flying((0.0, 0.0, 50.0))
    state.x[at.RATES : at.RATES + 3] = (0.0, 2.0, 0.0)
    state.x[at.WHEEL_SPEED : at.WHEEL_SPEED + 4] = (12.0, 2.0, 12.0, -8.0)
    got = joints(state, 0.5, 0)
    assert got.wheel_rate[-1] == pytest.approx((10.0, 0.0, 10.0, -10.0), abs=1e-12)
    assert got.wheel_angle[-1] == pytest.approx((5.0, 0.0, 5.0, -5.0), abs=1e-9)


def test_a_steered_axle_takes_part_of_the_roll_rate():
    """The part of the roll rate is Eq. 5.16: a·ω with a = (-sin δ, cos δ, 0)."""
    state = model("scale").flying((0.0, 0.0, 50.0))
    state.x[at.ROTOR_SPEED + 6] = 0.3
    state.x[at.RATES : at.RATES + 3] = (1.5, 0.0, 0.0)
    got = joints(state, 0.01, 0)
    ackermann = [
        math.atan(math.tan(0.3) / (1.0 - side * 0.56 / (2 * 0.66) * math.tan(0.3)))
        for side in (1, -1)
    ]

    assert got.steering[0] == pytest.approx((*ackermann, 0.0, 0.0), abs=1e-12)
    expected = (1.5 * math.sin(ackermann[0]), 1.5 * math.sin(ackermann[1]), 0, 0)
    assert got.wheel_rate[0] == pytest.approx(expected)


def test_encoders_count():
    """Angles are whole counts, 2048 a turn, never ahead, and rates follow from counts of 10 ms."""
    state = model("scale").flying((0.0, 0.0, 50.0))
    state.x[at.WHEEL_SPEED : at.WHEEL_SPEED + 4] = (10.0, 0.05, -10.0, 0.0)
    state.x[at.ROTOR_SPEED + 6] = 0.1
    got = joints(state, 1.0, 2048)
    count = 2.0 * math.pi / 2048
    truth = np.outer(got.time, (10.0, 0.05, -10.0, 0.0))

    expected = np.round(got.wheel_angle / count)
    assert got.wheel_angle / count == pytest.approx(expected, abs=1e-9)

    behind = truth - got.wheel_angle
    assert (behind > -1e-9).all()
    assert (behind < count + 1e-9).all()
    assert got.wheel_angle[-1, 1] == pytest.approx(16 * count)  # 0.05 rad are 16.3 counts
    assert set(np.round(got.wheel_rate[:, 0] * 0.01 / count)) == {32.0, 33.0}  # 32.6 a sample
    expected = np.round(got.steering[0] / count)
    assert got.steering[0] / count == pytest.approx(expected, abs=1e-9)


def test_rotors_turn_each_its_way():
    m = model("scale")
    got = joints(m.flying((0, 0, 9)), 0.1, 0)
    turned = 0.1 * m.params.hover_speed
    expected = np.array((-1, 1, -1, 1, -1, 1)) * turned
    assert got.rotor_angle[-1] == pytest.approx(expected)
    expected = np.array((-1, 1, -1, 1, -1, 1)) * m.params.hover_speed
    assert got.rotor_rate[-1] == pytest.approx(expected)

    suite = SensorSuite(m, SCALE)
    assert suite.joint_names[:6] == [
        "wheel_fl_joint",
        "wheel_fr_joint",
        "wheel_rl_joint",
        "wheel_rr_joint",
        "steer_fl_joint",
        "steer_fr_joint",
    ]
    assert (
        got.columns(suite.model.params.steering_sign != 0.0, 0.0)[0].shape
        == (10, len(suite.joint_names))
        == (10, 16)
    )


def test_wheel_odometry_follows_the_vehicle_from_encoders_alone():
    """It stands still where it was set down, then drives five seconds of curves.

    Slip makes an error of some percent.
    """
    m = model("scale")
    suite = SensorSuite(m, SCALE, seed=2)
    state = m.standing(5.0, 3.0, 0.5)
    for steering in (0.0, 0.3, -0.2):
        state, got = suite.advance(state, Controls(steering=steering, drive_torque=1.2), 1.6)
    begin = np.array((5.0, 3.0))
    c = math.cos(0.5)
    s = math.sin(0.5)
    told = begin + np.array(((c, -s), (s, c))) @ got.wheel_odometry.position[-1, :2]
    truth = got.ground_truth
    way = np.linalg.norm(truth.position[-1, :2] - begin)

    assert way > 3.0
    assert np.linalg.norm(told - truth.position[-1, :2]) < 0.03 * way

    yaw = 0.5 + 2.0 * math.atan2(*got.wheel_odometry.orientation[-1, 2:])
    heading = rotation(state.x)
    expected = math.atan2(heading[1, 0], heading[0, 0])
    assert yaw == pytest.approx(expected, abs=0.03)

    speeds = got.wheel_odometry.velocity[-20:, 0].mean(), truth.velocity[-20:, 0].mean()
    assert speeds[0] == pytest.approx(speeds[1], rel=0.03)


def test_ground_truth_has_its_twist_in_body_axes():
    """Facing north and flying east is a velocity to the right."""
    state = model("scale").flying(
        (1.0, 2.0, 3.0),
        math.pi / 2,
        (4.0, 0.0, 0.5),
    )
    got = still(model("scale"), state, 0.01, SCALE).ground_truth
    assert got.position[0].tolist() == [1.0, 2.0, 3.0]
    assert got.velocity[0] == pytest.approx((0.0, -4.0, 0.5), abs=1e-12)


# the suite


def test_statistics_of_the_shipped_sensors():
    """A minute at rest has the deviations of docs/model, section 11, at the sensors' own rates."""
    got = still(model("scale"), STANDING, 60.0, SCALE, noise=True, seed=11)
    assert [len(part.time) for part in (got.imu, got.gps, got.magnetometer, got.barometer)] == [
        15000,
        599,
        3000,
        1500,
    ]

    gyro = np.diff(got.imu.rates, axis=0)
    force = np.diff(got.imu.specific_force, axis=0)
    expected = np.full(3, 3.4e-4 * math.sqrt(250.0))
    assert gyro.std(axis=0) / math.sqrt(2.0) == pytest.approx(expected, rel=0.03)
    expected = np.full(3, 4e-3 * math.sqrt(250.0))
    assert force.std(axis=0) / math.sqrt(2.0) == pytest.approx(expected, rel=0.03)
    assert np.diff(got.magnetometer.field, axis=0).std() / math.sqrt(2.0) == pytest.approx(
        0.4e-6, rel=0.04
    )
    assert np.diff(got.barometer.pressure).std() / math.sqrt(2.0) == pytest.approx(5.0, rel=0.08)
    assert got.height.distance.std() == pytest.approx(0.02, rel=0.06)
    assert got.height.distance.mean() == pytest.approx(0.14, abs=0.002)

    metres = np.diff(got.gps.geodetic[:, 2])
    expected = math.sqrt(2 * 0.6**2 + 2 * 3.0**2 * (1 - math.exp(-0.1 / 60.0)))
    assert metres.std() == pytest.approx(expected, rel=0.12)
    assert got.gps.velocity.std() == pytest.approx(0.1, rel=0.06)

    suite = SensorSuite(model("scale"), SCALE)
    expected = (4e-3**2 * 250.0, 3.4e-4**2 * 250.0)
    assert suite.variance("imu")[[0, 3]] == pytest.approx(expected)
    expected = (0.3**2 + 1.5**2,) * 2 + (0.6**2 + 3.0**2,)
    assert suite.variance("gps")[:3] == pytest.approx(expected)


def drive(ticks, seed=5, noise=True, suite=None):
    """Return all samples of half a second, joined, and the suite."""
    m = model("scale")
    suite = suite or SensorSuite(m, SCALE, seed=seed, noise=noise)
    state = m.standing(speed=1.0)
    controls = Controls(steering=0.1, drive_torque=1.0)
    wind = Wind((1.0, 0.0, 0.0), (0.5, 0.5, 0.2), seed=2)
    found = []
    for tick in ticks:
        state, got = suite.advance(state, controls, tick, wind=wind)
        found.append(got)
    return joined(found), state, suite


def joined(found):
    names = [
        name for name in vars(found[0]) if any(getattr(got, name) is not None for got in found)
    ]
    parts = {
        name: [getattr(got, name) for got in found if getattr(got, name) is not None]
        for name in names
    }
    return {
        f"{name}.{field}": np.concatenate([getattr(part, field) for part in group])
        for name, group in parts.items()
        for field in group[0]._fields
    }


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


def test_readings_do_not_depend_on_the_ticks():
    by_imu, *_ = drive([0.004] * 100)
    assert {key.split(".")[0] for key in by_imu} == {
        *SCALE.sensors(),
        "joints",
        "wheel_odometry",
    } - {"encoders"}
    assert same(by_imu, drive([0.02] * 20)[0])
    assert same(by_imu, drive([0.007, 0.001, 0.092, 0.3])[0])
    assert not same(by_imu, drive([0.02] * 20, seed=6)[0])
    assert by_imu["gps.time"] == pytest.approx([0.1, 0.2, 0.3])
    assert (np.diff(by_imu["imu.time"]) > 0.0039).all()


def test_a_reset_suite_reads_the_same_again_with_all_sensors_on():
    first, *_ = drive([0.05] * 8)
    *_, suite = drive([0.05] * 3)
    suite.switch("gps", False)
    suite.reset()
    assert same(first, drive([0.05] * 8, suite=suite)[0])


def everything_once(evaluate_rows):
    """Return the numbers of all sensors over 0.2 s of a state that is held.

    `evaluate_rows` stands for the model's method.
    """
    m = model("scale")
    state = m.flying((1.0, 2.0, 9.0), 0.3, (2.0, 0.0, 0.1))
    state.x[at.RATES : at.RATES + 3] = (0.3, -0.2, 0.5)
    state.x[at.WHEEL_SPEED : at.WHEEL_SPEED + 4] = (3.0, -2.0, 5.0, 1.0)
    m.evaluate_rows = functools.partial(evaluate_rows, m)
    got = joined([still(m, state, 0.2, SCALE, noise=True, seed=3)])
    return {key: values.tolist() for key, values in got.items()}


def evaluations_of(file):
    """Return a stand-in for `evaluate_rows` that gives the evaluations of a file in their order."""
    arrays = np.load(file)
    pairs = iter([(arrays[f"dx{n}"], arrays[f"numbers{n}"]) for n in range(len(arrays) // 2)])
    return lambda *_: next(pairs)


@pytest.mark.exhaustive
def test_the_same_readings_as_plain_python(tmp_path):
    """The sensors' kernels as plain Python read the same from the same evaluations of the model."""
    evaluations = {}

    def evaluate_rows(m, *arguments):
        dx, numbers = AmphibiousModel.evaluate_rows(m, *arguments)
        n = len(evaluations) // 2
        evaluations[f"dx{n}"] = dx.copy()
        evaluations[f"numbers{n}"] = numbers.copy()
        return dx, numbers

    compiled = everything_once(evaluate_rows)
    file = tmp_path / "evaluations.npz"
    np.savez(file, **evaluations)

    # the same in a process without compiled kernels
    program = (
        "import json, sys\n"
        f"sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[2])]!r}\n"
        "import oracles.plain_python\n"
        "from test_sensor_suite import evaluations_of, everything_once\n"
        f"print(json.dumps(everything_once(evaluations_of({str(file)!r}))))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, **ENVIRONMENT},
    )
    assert run.returncode == 0, run.stderr

    plain = json.loads(run.stdout.splitlines()[-1])
    assert plain.keys() == compiled.keys()
    for key, values in compiled.items():
        assert np.array(plain[key]) == pytest.approx(np.array(values), rel=1e-12, abs=1e-12)


def test_loads_struts_and_rotor_speeds_have_the_white_noise_of_their_parameters():
    cells = LoadCells(rate=100, load_noise=2.0)
    encoders = Encoders(rate=100, strut_noise=1e-3, strut_rate_noise=0.02, rotor_noise=0.5)
    noisy = SCALE.replace(wheel_loads=cells, encoders=encoders)
    quiet = still(model("scale"), STANDING, 10.0, SCALE, noise=True)
    got = still(model("scale"), STANDING, 10.0, noisy, noise=True)
    for kind, field, sigma in (
        ("wheel_loads", "load", 2.0),
        ("joints", "strut", 1e-3),
        ("joints", "strut_rate", 0.02),
        ("joints", "rotor_rate", 0.5),
    ):
        error = getattr(getattr(got, kind), field) - getattr(getattr(quiet, kind), field)
        # of 4000 or 6000 numbers σ is known to 1 / √8000 = 1.1 %, the mean to σ / √4000
        assert error.std() == pytest.approx(sigma, rel=0.05)
        assert abs(error.mean()) < 5.0 * sigma / math.sqrt(4000)
    assert np.array_equal(got.joints.wheel_angle, quiet.joints.wheel_angle)
    assert np.array_equal(got.imu.rates, quiet.imu.rates)
    exact = still(model("scale"), STANDING, 0.1, noisy)
    assert np.ptp(exact.wheel_loads.load, axis=0) == pytest.approx(np.zeros(4), abs=1e-12)


def test_switched_off_a_sensor_is_silent_and_others_do_not_change():
    everything, *_ = drive([0.05] * 6)
    m = model("scale")
    suite = SensorSuite(m, SCALE, seed=5)
    state = m.standing(speed=1.0)
    controls = Controls(steering=0.1, drive_torque=1.0)
    wind = Wind((1.0, 0.0, 0.0), (0.5, 0.5, 0.2), seed=2)
    suite.switch("gps", False)
    suite.switch("encoders", False)
    found = []
    for _ in range(6):
        state, got = suite.advance(state, controls, 0.05, wind=wind)
        found.append(got)
    quiet = joined(found)

    assert not any(key.startswith(("gps", "joints", "wheel_odometry")) for key in quiet)
    assert same(quiet, {key: everything[key] for key in quiet})

    suite.switch("encoders", True)
    _, got = suite.advance(state, controls, 0.02, wind=wind)
    assert got.joints is not None

    with pytest.raises(ConfigError, match="sensor 'radar': there are imu, gps"):
        suite.switch("radar", False)


def test_ticks_must_follow_each_other():
    m = model("scale")
    suite = SensorSuite(m, SensorParameters(wind=Sensor(rate=10)))
    state, _ = suite.advance(m.standing(), Controls(), 0.01)
    suite.advance(state, Controls(), 0.01)
    with pytest.raises(ConfigError, match=r"begins at 0\.01 s, but the sensors are at 0\.02 s"):
        suite.advance(state, Controls(), 0.01)
    with pytest.raises(ValueError, match="of one vehicle"):
        suite.observe(state, np.zeros((2, 3, 44)), np.zeros((2, 3, 9)), Controls())


def test_only_the_sensors_of_the_file_are_there():
    got = still(model("scale"), STANDING, 0.1, SensorParameters(wind=Sensor(rate=10)))
    assert {name for name, value in vars(got).items() if value is not None} == {"wind"}


@pytest.mark.parametrize(
    ("place", "field_nt"),
    [
        ((47.397742, 8.545594, 488.0), (1406, 21532, -43372)),  # 3.7° east
        ((39.9, 116.4, 50.0), (-3694, 27746, -47309)),
        ((-33.87, 151.21, 0.0), (5472, 24000, 51371)),  # in the south it points up
    ],
)
def test_without_a_field_of_its_own_the_file_has_that_of_the_place(place, field_nt):
    """The field is that at sea level in 2027.5 by NOAA's own wmm-calculator 1.4.

    pygeomag 1.1 agrees. Components are east, north, up.
    """
    own = SCALE.magnetometer
    anywhere = SCALE.replace(magnetometer=dataclasses.replace(own, earth_field=None))
    got = still(model("scale"), STANDING, 0.02, anywhere, geo_origin=place).magnetometer
    assert got.field[0] * 1e9 == pytest.approx(field_nt, abs=230)
    assert SCALE.at_place(place) is SCALE

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Samples and commands as messages and back, through their serialized form."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from optional_parts import late_module

from rfly_amphibious.dynamics.model import AmphibiousModel, Controls
from rfly_amphibious.sensors.sample_messages import (
    SAMPLE_TOPICS,
    JointReader,
    SampleReader,
    numbers_of,
    time_of,
)
from rfly_amphibious.sensors.samples import OdometrySamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.sensors.sensor_suite import SensorSuite, joint_names
from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.vehicle.motor_channels import motor_channels
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import CommandError, SensorMessageError

pytestmark = pytest.mark.ros

msgs = late_module("rfly_amphibious.ros.command_msgs")
topics = late_module("rfly_amphibious.ros.sensor_topics")
geometry_msgs = late_module("geometry_msgs.msg")
nav_msgs = late_module("nav_msgs.msg")
sensor_msgs = late_module("sensor_msgs.msg")
rfly_msgs = late_module("rfly_suite.msg")
serialization = late_module("rclpy.serialization")

PARAMS = VehicleParameters.load("scale")


def through_the_wire(message):
    return serialization.deserialize_message(
        serialization.serialize_message(message), type(message)
    )


@pytest.fixture(scope="module")
def sensed():
    """A suite, and all samples of 0.22 s of a turning drive."""
    model = AmphibiousModel(PARAMS)
    suite = SensorSuite(model, SensorParameters.load("scale"), seed=4)
    _, samples = suite.advance(
        model.standing(3.0, 4.0, 0.7, 5.0), Controls(30.0, None, 0.2, 5.0), 0.22
    )
    return suite, samples


def odometry_samples(message):
    pose = message.pose.pose
    twist = message.twist.twist
    parts = [
        [getattr(part, axis) for axis in "xyz"]
        for part in (pose.position, twist.linear, twist.angular)
    ]
    position, velocity, rates = (np.array([part]) for part in parts)
    turn = np.array([[getattr(pose.orientation, axis) for axis in "xyzw"]])
    return OdometrySamples(np.array([time_of(message)]), position, turn, velocity, rates)


SINGLE_TOPICS = [topic for topic in SAMPLE_TOPICS if topic not in ("gps/fix", "gps/vel")]


def read(topic, message):
    if SAMPLE_TOPICS[topic].type == "nav_msgs/Odometry":
        return odometry_samples(message)
    return SampleReader(PARAMS)(topic, message)


@pytest.mark.parametrize("topic", SINGLE_TOPICS)
def test_samples_come_back_from_their_messages_in_their_order(sensed, topic: str) -> None:
    suite, samples = sensed
    given = getattr(samples, SAMPLE_TOPICS[topic].kind)
    messages = topics.sample_messages(suite, "car")(topic, given)
    assert len(messages) == len(given.time) > 0
    back = [read(topic, through_the_wire(message)) for message in messages]
    exact = {"distance": 1e-6}  # Range has single precision
    for name in given._fields:
        values = np.concatenate([getattr(one, name) for one in back])
        assert values == pytest.approx(
            getattr(given, name), abs=exact.get(name, 1e-12), rel=1e-6
        ), name


@pytest.mark.parametrize("topic", ["imu/data", "gps/vel", "baro", "wheel_loads", "wheel/odom"])
def test_numbers_of_a_message_are_those_of_its_sample_in_order(sensed, topic: str) -> None:
    suite, samples = sensed
    given = getattr(samples, SAMPLE_TOPICS[topic].kind)
    message = topics.sample_messages(suite, "car")(topic, given)[0]
    columns = [getattr(given, name)[0] for name in SAMPLE_TOPICS[topic].fields]
    assert numbers_of(topic)(message) == np.hstack(columns).tolist()


def test_gps_comes_in_two_messages_that_find_each_other_by_their_time(sensed) -> None:
    suite, samples = sensed
    make = topics.sample_messages(suite, "car")
    fix, velocity = (
        through_the_wire(make(topic, samples.gps)[0]) for topic in ("gps/fix", "gps/vel")
    )
    assert (fix.header.frame_id, velocity.header.frame_id) == ("car/gps_link", "map")
    # 0.3 m white and 1.5 m drift across, 0.6 m and 3 m up: variances add
    assert np.diag(fix.position_covariance.reshape(3, 3)) == pytest.approx((2.34, 2.34, 9.36))
    for first, second in (("gps/fix", "gps/vel"), ("gps/vel", "gps/fix")):
        pairs = SampleReader(PARAMS)
        halves = {"gps/fix": fix, "gps/vel": velocity}
        assert pairs(first, halves[first]) is None
        old = geometry_msgs.TwistStamped() if second == "gps/vel" else sensor_msgs.NavSatFix()
        assert pairs(second, old) is None  # of another time
        found = pairs(second, halves[second])
        assert found.geodetic == pytest.approx(samples.gps.geodetic[:1], abs=1e-12)
        assert found.velocity == pytest.approx(samples.gps.velocity[:1])
        assert found.time == pytest.approx(samples.gps.time[:1])
    fix.status.status = -1
    pairs = SampleReader(PARAMS)
    assert pairs("gps/fix", fix) is None
    with pytest.raises(SensorMessageError, match="no fix"):
        pairs("gps/vel", velocity)


def test_messages_say_where_they_are_from_and_how_good_they_are(sensed) -> None:
    suite, samples = sensed
    make = topics.sample_messages(suite, "car")
    imu = make("imu/data", samples.imu)[3]
    assert (imu.header.frame_id, imu.header.stamp.sec, imu.header.stamp.nanosec) == (
        "car/imu_link",
        0,
        16_000_000,
    )
    # densities of the file, at 250 Hz
    assert imu.angular_velocity_covariance[0] == pytest.approx(3.4e-4**2 * 250)
    assert imu.linear_acceleration_covariance[8] == pytest.approx(4e-3**2 * 250)
    assert imu.orientation_covariance[8] == pytest.approx(0.002**2 + 0.017**2)
    joints = make("joint_states", samples.joints)[0]
    assert joints.name[:7] == [
        "wheel_fl_joint",
        "wheel_fr_joint",
        "wheel_rl_joint",
        "wheel_rr_joint",
        "steer_fl_joint",
        "steer_fr_joint",
        "strut_fl_joint",
    ]
    assert joints.name[-1] == "rotor_6_joint"
    assert all(math.isnan(rate) for rate in joints.velocity[4:6])
    truth = make("ground_truth/odom", samples.ground_truth)[0]
    wheels = make("wheel/odom", samples.wheel_odometry)[0]
    assert (truth.header.frame_id, truth.child_frame_id) == ("map", "car/base_link")
    assert (wheels.header.frame_id, wheels.child_frame_id) == ("car/wheel_odom", "car/base_link")
    assert not truth.pose.covariance.any()
    assert wheels.twist.covariance[0] < 0.03**2 < 1.0 < wheels.twist.covariance[7]
    height = make("height_above_ground", samples.height)[0]
    assert (height.header.frame_id, height.max_range) == ("car/height_link", 100.0)
    # noise_m 0.02; a beam of 2 degrees
    assert height.variance == pytest.approx(0.02**2)
    assert height.field_of_view == pytest.approx(math.radians(2.0))
    load = make("wheel_loads", samples.wheel_loads)[2]
    # at 100 Hz the third one is of 30 ms
    stamp = load.header.stamp
    assert (load.header.frame_id, stamp.sec, stamp.nanosec) == ("car/base_link", 0, 30_000_000)


def test_stamps_are_simulation_time_after_the_epoch(sensed) -> None:
    """All kinds of messages carry 2026-11-28 00:00:00.02 UTC, to the nanosecond."""
    suite, samples = sensed
    epoch_ns = 1_795_824_000_020_000_000
    for topic in SINGLE_TOPICS:
        given = getattr(samples, SAMPLE_TOPICS[topic].kind)
        for start in (0, epoch_ns):
            made = topics.sample_messages(suite, "car", start)(topic, given)
            stamps = [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in made]
            assert stamps == [start + round(time * 1e9) for time in given.time], topic

    command = msgs.rotor_command_to_msg(RotorCommand(0.0, np.zeros(6)))
    assert msgs.msg_to_rotor_command(command, 9.0, epoch_ns).time == 9.0
    command.header.stamp.sec, command.header.stamp.nanosec = 1_795_824_001, 520_000_000
    assert msgs.msg_to_rotor_command(command, 9.0, epoch_ns).time == pytest.approx(1.5, abs=1e-12)


def test_magnetic_field_is_in_tesla_and_of_the_imus_frame(sensed) -> None:
    """21.5 µT towards north and 42.5 µT down, whichever way the vehicle looks; the field's noise is
    0.2 µT or so.
    """
    suite, samples = sensed
    message = through_the_wire(
        topics.sample_messages(suite, "car")("imu/mag", samples.magnetometer)[0]
    )
    assert message.header.frame_id == "car/imu_link"
    field = message.magnetic_field
    assert math.hypot(field.x, field.y, field.z) == pytest.approx(
        math.hypot(21.5e-6, 42.5e-6), abs=3e-6
    )
    assert 0.0 < message.magnetic_field_covariance[0] < 1e-11


def test_what_sensors_cannot_have_said_is_refused() -> None:
    bad = sensor_msgs.Imu()
    bad.orientation.w = 1.0
    bad.angular_velocity.y = math.nan
    with pytest.raises(SensorMessageError, match=r"angular_velocity\[1\]: nan"):
        read("imu/data", bad)

    bad.angular_velocity.y = 0.0
    bad.orientation.w = 3.0
    with pytest.raises(SensorMessageError, match="length 3"):
        read("imu/data", bad)

    reader = JointReader(PARAMS)
    with pytest.raises(SensorMessageError, match="wheel_fl_joint"):
        reader(sensor_msgs.JointState(name=["arm"], position=[0.0], velocity=[0.0]))
    with pytest.raises(SensorMessageError, match="3 numbers, expected 4"):
        read("wheel_loads", rfly_msgs.WheelLoads(load=[1.0, 2.0, 3.0]))
    with pytest.raises(SensorMessageError, match="nan"):
        read("height_above_ground", sensor_msgs.Range(range=math.nan))
    assert read("height_above_ground", sensor_msgs.Range(range=math.inf)).distance[0] == math.inf


def test_joints_are_read_by_name(sensed) -> None:
    suite, samples = sensed
    message = topics.sample_messages(suite, "car")("joint_states", samples.joints)[4]
    order = np.random.default_rng(1).permutation(len(message.name))
    mixed = sensor_msgs.JointState(header=message.header)
    mixed.name = ["arm", *(message.name[k] for k in order)]
    mixed.position = [9.0, *(message.position[k] for k in order)]
    mixed.velocity = [9.0, *(message.velocity[k] for k in order)]
    straight = JointReader(PARAMS)(message)
    turned = JointReader(PARAMS)(mixed)
    for a, b in zip(straight, turned, strict=True):
        assert np.array_equal(a, b)
    assert straight.steering[0, 0] > straight.steering[0, 1] > 0.0 == straight.steering[0, 2]


@pytest.mark.parametrize("angles", [None, np.array((0.1, 0.2, 0.0, 0.0))])
def test_commands_there_and_back(angles) -> None:
    rotors = RotorCommand(1.004, np.arange(6.0), torques=True)
    back = msgs.msg_to_rotor_command(through_the_wire(msgs.rotor_command_to_msg(rotors)), 9.0)
    expected = (1.004, [0, 1, 2, 3, 4, 5], True)
    assert (back.time, back.value.tolist(), back.torques) == expected

    wheels = WheelCommand(
        2.5, -0.1, np.array((1.0, -2.0, 3.0, 4.0)), np.array((0.0, 5.0, 6.0, 7.0)), angles
    )
    read = msgs.msg_to_wheel_command(through_the_wire(msgs.wheel_command_to_msg(wheels)), 9.0)
    for name in (field.name for field in dataclasses.fields(wheels)):
        assert np.array_equal(getattr(read, name), getattr(wheels, name))
    message = msgs.rotor_command_to_msg(RotorCommand(0.0, np.zeros(6)))
    assert msgs.msg_to_rotor_command(message, 7.25).time == 7.25  # without a stamp: now

    message.mode = 2
    with pytest.raises(CommandError, match="mode 2"):
        msgs.msg_to_rotor_command(message, 0.0)


def test_sensor_topics_are_reliable_with_lock_step_only() -> None:
    from rclpy.qos import ReliabilityPolicy

    from rfly_common.ros.qos import sensor_qos

    assert sensor_qos(True).reliability == ReliabilityPolicy.RELIABLE
    assert sensor_qos(True).depth == 10
    assert sensor_qos(False).reliability == ReliabilityPolicy.BEST_EFFORT


@pytest.mark.parametrize(
    ("rotors", "wheels"),
    [
        (4, [8.0, 9.0, 10.0, 11.0]),
        (6, [9.0, 10.0]),
        (5, [9.0, 10.0]),
        (7, []),
        (8, []),
    ],
)
def test_eight_channels_show_rotors_and_as_many_wheels_as_fit(
    rotors: int, wheels: list[float]
) -> None:
    x = np.zeros(38 + rotors)
    x[33 : 33 + rotors] = 100.0 + np.arange(rotors)
    # spins; the body pitches by 2 rad/s
    x[21:25] = (10.0, 11.0, 12.0, 13.0)
    x[11] = 2.0
    assert motor_channels(x, rotors).tolist() == [*(100.0 + np.arange(rotors)), *wheels]


def test_joint_states_without_names_are_refused_before_and_after_a_good_one():
    """No names are as many as a reader knows before its first message."""
    from sensor_msgs.msg import JointState

    params = VehicleParameters.load("scale")
    reader = JointReader(params)
    names = joint_names(params)
    good = JointState(name=names, position=[0.0] * len(names), velocity=[0.0] * len(names))
    for _ in range(2):
        with pytest.raises(SensorMessageError, match="joint_states: there is no "):
            reader(JointState())
        assert reader(good).wheel_angle.shape == (1, 4)
        with pytest.raises(SensorMessageError, match="expected as many of each"):
            reader(JointState(name=names))

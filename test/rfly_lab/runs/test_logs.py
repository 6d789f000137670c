# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MCAP files of runs, read back by the libraries (and by ROS itself) and compared with the run."""

from __future__ import annotations

import importlib
import re
import sys

import numpy as np
import pytest
from optional_parts import late_module

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.vehicle import state_layout
from rfly_common.errors import ConfigError
from rfly_common.imports import how_to_install
from rfly_lab.runs.mcap_log import TOPICS, joint_samples, message_definition, write_mcap
from rfly_lab.runs.run import run_scenario

pytestmark = pytest.mark.needs("mcap", "mcap_ros2")

mcap_reader = late_module("mcap.reader")
mcap_ros2 = late_module("mcap_ros2.decoder")

TEXT = """version: 1
vehicle: scale
start: {heading_deg: 0}
seed: 4
method: semi_implicit_euler
wind: {mean_mps: [1, -2, 0], gust_sigma_mps: [0.5, 0.5, 0.1]}
mission:
  items:
    - {mode: waypoint, position_m: [2, 1]}
    - {mode: takeoff, height_m: 2}
    - {mode: land}
end: {when: time, time_s: 9.009}
"""


@pytest.fixture(scope="module")
def run():
    return run_scenario(Scenario.parse(TEXT.encode(), "s.yaml", "short"))


@pytest.fixture(scope="module")
def log(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "run.mcap"
    write_mcap(run, path)
    return path


@pytest.fixture(scope="module")
def messages(log):
    """Return the messages by topic: [(time in ns, message)]."""
    read: dict[str, list] = {}
    with log.open("rb") as file:
        reader = mcap_reader.make_reader(file, decoder_factories=[mcap_ros2.DecoderFactory()])
        for _, channel, record, message in reader.iter_decoded_messages():
            assert record.log_time == record.publish_time
            read.setdefault(channel.topic, []).append((record.log_time, message))
    return read


def numbers(message, *names):
    return [getattr(message, name) for name in names]


def test_an_mcap_file_holds_every_sample_on_every_topic(run, messages):
    times = np.round(run.time * 1e9).astype(int).tolist()
    assert set(messages) == set(TOPICS)
    for topic, records in messages.items():
        if topic != "/mode":
            assert [time for time, _ in records] == times, topic
    for time_ns, message in messages["/imu/data"]:
        assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == time_ns


def test_the_messages_of_an_mcap_file_are_the_run(run, messages):
    odometry = [message for _, message in messages["/ground_truth/odom"]]
    assert {(message.header.frame_id, message.child_frame_id) for message in odometry} == {
        ("map", "amphibious/base_link")
    }

    assert np.array_equal([numbers(m.pose.pose.position, *"xyz") for m in odometry], run.position)
    wxyz = np.array([numbers(m.pose.pose.orientation, *"wxyz") for m in odometry])
    assert np.array_equal(wxyz, run.x[:, state_layout.QUATERNION : state_layout.QUATERNION + 4])
    # the twist is in body axes: turned back by the rotation matrix of the quaternion it is the
    # world's
    w, x, y, z = wxyz.T
    ahead = np.array(
        [
            1 - 2 * (y * y + z * z),
            2 * (x * y + w * z),
            2 * (x * z - w * y),
        ]
    ).T
    forward = np.array([m.twist.twist.linear.x for m in odometry])
    expected = (ahead * run.x[:, state_layout.VELOCITY : state_layout.VELOCITY + 3]).sum(axis=1)
    assert forward == pytest.approx(expected, abs=1e-12)

    # sensors
    imu = [message for _, message in messages["/imu/data"]]
    assert np.array_equal(
        [numbers(m.linear_acceleration, *"xyz") for m in imu], run.outputs.specific_force
    )
    assert np.array_equal(
        [numbers(m.angular_velocity, *"xyz") for m in imu],
        run.x[:, state_layout.RATES : state_layout.RATES + 3],
    )

    loads = [message.load for _, message in messages["/wheel_loads"]]
    assert np.array_equal(loads, run.outputs.wheel_load)
    speeds = [message.data for _, message in messages["/rotor_speeds"]]
    assert np.array_equal(speeds, run.x[:, state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + 6])
    assert np.array_equal(
        [numbers(m.vector, *"xyz") for _, m in messages["/environment/wind"]], run.wind
    )

    transforms = [message.transforms[0] for _, message in messages["/tf"]]
    assert np.array_equal(
        [numbers(t.transform.translation, *"xyz") for t in transforms], run.position
    )


def test_what_a_window_shows_of_a_run_is_in_its_log(run, messages):
    """Six rotors take six of the eight channels, the wheels of each side the other two."""
    states = [message for _, message in messages["/vehicle_states"]]
    assert {(m.id[0], m.vehicle_type[0], m.motors) for m in states} == {(601, 600_003, 8)}
    assert np.array_equal([m.position for m in states], run.position)
    xyzw = [
        [getattr(m.pose.pose.orientation, k) for k in "xyzw"]
        for _, m in messages["/ground_truth/odom"]
    ]
    assert np.array_equal([m.orientation for m in states], xyzw)
    rotors = [message.data for _, message in messages["/rotor_speeds"]]
    assert np.array_equal([m.motor_speed[:6] for m in states], np.float32(rotors))
    # relative to the body; an encoder also sees the strut turn
    joints = [dict(zip(m.name, m.velocity, strict=True)) for _, m in messages["/joint_states"]]
    left = [(each["wheel_fl_joint"] + each["wheel_rl_joint"]) / 2 for each in joints]
    assert [m.motor_speed[6] for m in states] == pytest.approx(left, abs=0.01)


def test_the_joints_of_an_mcap_file_turn_as_the_vehicle_moves(run, messages):
    joints = [message for _, message in messages["/joint_states"]]
    names = joints[0].name
    kinds = ["wheel_fl", "wheel_fr", "wheel_rl", "wheel_rr", "steer_fl", "steer_fr"]
    assert names[:6] == [f"{kind}_joint" for kind in kinds]
    place, rate = (np.array([getattr(m, key) for m in joints]) for key in ("position", "velocity"))
    column = dict(zip(names, place.T, strict=True))
    # wheels of 0.11 m roll as far as the vehicle goes, and as fast
    drive = run.time < 2.0
    way = np.hypot(*np.diff(run.position[drive][:, :2], axis=0).T).sum()
    assert place[drive][-1, :4].mean() * 0.11 == pytest.approx(way, rel=0.05)
    speed = np.hypot(*run.x[:, state_layout.VELOCITY : state_layout.VELOCITY + 2].T)
    assert (rate[:, :4].mean(axis=1) * 0.11)[drive].max() == pytest.approx(
        speed[drive].max(), rel=0.05
    )
    # both front wheels of Ackermann steering: cot δ_right − cot δ_left = track / wheelbase, turning
    # left
    k = int(np.argmax(np.abs(column["steer_fl_joint"])))
    left = column["steer_fl_joint"][k]
    right = column["steer_fr_joint"][k]
    assert left > 0.01
    assert 1 / np.tan(right) - 1 / np.tan(left) == pytest.approx(0.56 / 0.66, rel=1e-6)
    spin = run.scenario.params.rotor_spin
    rotors = rate[:, names.index("rotor_1_joint") :]
    assert np.array_equal(
        rotors, run.x[:, state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + 6] * spin
    )
    assert np.array_equal(column["strut_fr_joint"], run.x[:, state_layout.STRUT + 1])


def test_modes_in_an_mcap_file_come_when_they_change_and_twice_a_second(run, messages):
    logged = [(time, message.mode) for time, message in messages["/mode"]]
    assert logged[0] == (0, "DRIVE")
    changes = [(round(time * 1e9), mode.value) for time, mode in run.modes]
    assert set(changes) <= set(logged)
    assert max(np.diff([time for time, _ in logged])) == 500_000_000
    stamps = [message.header.stamp for _, message in messages["/mode"]]
    began = [stamp.sec * 10**9 + stamp.nanosec for stamp in stamps]
    assert sorted(set(began)) == [time for time, _ in changes]
    assert [mode for k, (_, mode) in enumerate(logged) if not k or mode != logged[k - 1][1]] == [
        m for _, m in changes
    ]


def test_what_an_mcap_file_says_of_itself(run, log):
    with log.open("rb") as file:
        reader = mcap_reader.make_reader(file)
        assert reader.get_header().profile == "ros2"
        (record,) = reader.iter_metadata()
        assert record.metadata == {
            "name": "short",
            "vehicle": "scale",
            "map": "",
            "seed": "4",
            "geo_origin": "47.397742 8.545594 488.0",
            "ending": run.ending,
        }
        schemas = {schema.name: schema.encoding for schema in reader.get_summary().schemas.values()}
        assert schemas["nav_msgs/msg/Odometry"] == "ros2msg"


@pytest.mark.ros
def test_ros_itself_reads_what_an_mcap_file_holds(run, log):
    """Read the serialised bytes by rclpy, into the message classes of ROS."""
    from rclpy.serialization import deserialize_message

    last = {}
    with log.open("rb") as file:
        for schema, channel, record in mcap_reader.make_reader(file).iter_messages():
            package, _, name = schema.name.split("/")
            kind = getattr(importlib.import_module(f"{package}.msg"), name)
            last[channel.topic] = deserialize_message(record.data, kind)

    assert set(last) == set(TOPICS)
    place = last["/ground_truth/odom"].pose.pose.position
    expected = tuple(run.position[-1].tolist())
    assert (place.x, place.y, place.z) == expected
    expected = run.outputs.specific_force[-1, 2]
    assert last["/imu/data"].linear_acceleration.z == expected

    expected = run.outputs.wheel_load[-1].tolist()
    assert list(last["/wheel_loads"].load) == expected
    assert last["/rotor_speeds"].layout.dim[0].label == "rotor"
    assert last["/joint_states"].name[-1] == "rotor_6_joint"
    assert last["/mode"].mode == run.modes[-1][1].value
    assert last["/tf"].transforms[0].child_frame_id == "amphibious/base_link"


@pytest.mark.ros
@pytest.mark.parametrize("kind", sorted(set(TOPICS.values())))
def test_definitions_are_those_of_ros(kind):
    """Names, types and order of all fields agree with the installed interfaces, at all levels."""

    def fields(name):
        package, message = name.split("/")
        of_ros = getattr(
            importlib.import_module(f"{package}.msg"), message
        ).get_fields_and_field_types()
        inner = [
            entry.removeprefix("sequence<").split(">")[0].split("[")[0] for entry in of_ros.values()
        ]
        return {name: dict(of_ros)} | {
            k: v for part in inner if "/" in part for k, v in fields(part).items()
        }

    ours: dict[str, dict[str, str]] = {}
    for section in message_definition(kind).split("=" * 80 + "\n"):
        head, _, rest = section.partition("\n")
        name, lines = (
            (head.removeprefix("MSG: "), rest) if head.startswith("MSG: ") else (kind, section)
        )

        parts = [line.split()[:2] for line in lines.strip().splitlines()]
        ours[name] = {
            field: f"sequence<{spelt[:-2]}>"
            if (
                spelt := ros_type.replace("float64", "double").replace("float32", "float")
            ).endswith("[]")
            else spelt
            for ros_type, field in parts
        }

    assert ours == fields(kind)
    assert [list(part) for part in ours.values()] == [list(fields(kind)[name]) for name in ours]


def test_a_missing_library_is_named_with_what_to_install(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcap_ros2", None)
    with pytest.raises(
        ConfigError, match=f"needs mcap-ros2-support; {re.escape(how_to_install('log'))}"
    ):
        write_mcap(run, tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_a_run_that_ends_between_two_samples_is_written_to_its_end(run):
    assert run.time[-1] == pytest.approx(9.009)
    assert run.time[-2] == pytest.approx(9.0)
    joints = joint_samples(run)
    angle = joints.wheel_angle
    rate = joints.wheel_rate
    turned = 0.5 * (rate[-1] + rate[-2]) * 0.009  # the trapezoidal rule over what is left
    assert angle[-1] - angle[-2] == pytest.approx(turned, rel=1e-9, abs=1e-15)
    turned = 0.5 * (rate[20] + rate[19]) * 0.02
    assert angle[20] - angle[19] == pytest.approx(turned, rel=1e-9)

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Replays of logs: the estimates that the estimator gave aboard, and foreign robots whose motion
is known in closed form.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from optional_parts import late_module

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.samples import joint_names
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters, chi_square
from rfly_common.errors import CaptureError, ConfigError
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, ned_to_geodetic
from rfly_common.physics import standard_pressure
from rfly_lab.replay.model_check import check_model
from rfly_lab.replay.recording import read_recording
from rfly_lab.replay.replay import compare, replay_recording
from rfly_lab.replay.report import summary
from rfly_lab.replay.topic_map import TopicMap
from rfly_lab.runs.closed_loop import run_closed_loop
from rfly_lab.runs.mcap_log import message_definition, write_mcap

pytestmark = pytest.mark.needs("mcap", "mcap_ros2")

mcap_writer = late_module("mcap_ros2.writer")

VEHICLE = VehicleParameters.load("scale")
SENSORS = SensorParameters.load("scale")
ESTIMATOR = EstimatorParameters.load("scale")

DRIVE = """version: 1
vehicle: scale
seed: 4
mission:
  items:
    - {mode: waypoint, position_m: [6, 2]}
end: {when: time, time_s: 5}
"""


def read(path, topic_map=None, **options):
    return read_recording(path, VEHICLE, SENSORS, ESTIMATOR, topic_map, **options)


def topics_of(text):
    return TopicMap.parse(text.encode(), "topics.yaml")


@pytest.fixture(scope="module")
def closed():
    return run_closed_loop(Scenario.parse(DRIVE.encode(), "s.yaml", "drive"), keep_ticks=True)


@pytest.fixture(scope="module")
def log(closed, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "run.mcap"
    write_mcap(closed, path)
    return path


@pytest.fixture(scope="module")
def replayed(log):
    return replay_recording(read(log), VEHICLE, ESTIMATOR)


def test_a_replay_gives_the_estimates_that_the_vehicle_had_aboard(closed, replayed):
    aboard = {
        round(tick.estimate.time, 6): tick.estimate
        for tick in closed.ticks
        if tick.estimate is not None
    }
    track = replayed.track
    assert track.time.size > 300
    same = [aboard[round(time, 6)] for time in track.time.tolist()]
    assert track.position == pytest.approx(np.array([e.position for e in same]), abs=1e-6)
    assert track.velocity == pytest.approx(np.array([e.velocity for e in same]), abs=1e-6)
    covariance = np.array([e.covariance for e in same])
    assert track.covariance == pytest.approx(covariance, rel=1e-5, abs=1e-12)


def test_errors_against_the_recorded_truth_are_those_of_the_run(closed, replayed):
    errors = replayed.errors
    assert errors.aligned == "as recorded"
    # times that both have: every 12 ms here, every 20 ms there
    sampled = {round(time, 6): k for k, time in enumerate(closed.run.time.tolist())}
    rows = [k for k, time in enumerate(errors.time.tolist()) if round(time, 6) in sampled]
    assert len(rows) > 60
    expected = closed.position_error[[sampled[round(errors.time[k], 6)] for k in rows]]
    assert errors.position[rows] == pytest.approx(expected, abs=1e-6)
    assert np.linalg.norm(errors.attitude, axis=1).max() < 0.05
    assert np.linalg.norm(errors.velocity, axis=1).max() < 0.3
    # a credible covariance: the error of a GPS's drift stays within its bound all the time
    assert (errors.nees < chi_square(3, 0.9999)).all()


def test_innovations_are_counted_for_each_sensor(closed, replayed):
    fixes = sum(tick.samples.gps is not None for tick in closed.ticks)
    found = replayed.innovations
    # those of the first second are used up by the alignment
    assert fixes - 11 <= found["gps_position"].nis.size <= fixes
    for name in ("gps_velocity", "magnetometer", "barometer", "height"):
        assert 0.1 < found[name].nis.mean() / found[name].value.shape[1] < 2.0, name
        assert found[name].outside < 0.2, name
    figures = summary(replayed, {}, ())
    assert figures["errors"]["position_largest_m"] < 6.0
    assert figures["alignments"] == 1
    assert figures["notes"] == []


def test_the_model_predicts_a_run_of_the_model(replayed):
    """The log is of this very model, so what is left comes from the state at each begin."""
    predictions, notes = check_model(replayed, VEHICLE)
    assert notes == []
    driven = predictions["on wheels"]
    assert "in the air" not in predictions
    assert np.abs(driven.change[:, 0]).max() > 0.3
    assert np.sqrt((driven.velocity[:, :2] ** 2).mean()) < 0.05
    assert np.sqrt((driven.rates[:, 2] ** 2).mean()) < 0.05


def test_a_model_of_another_vehicle_does_not_predict_the_run(replayed):
    """The same torques give two thirds of the acceleration with half the mass in addition."""
    heavy = VEHICLE.replace(mass_body=VEHICLE.mass_body + 0.5 * VEHICLE.mass)
    right, _ = check_model(replayed, VEHICLE)
    wrong, _ = check_model(replayed, heavy)
    change = right["on wheels"].change[:, 0]
    speeds_up = np.argmax(change)
    off = wrong["on wheels"].velocity[speeds_up, 0]
    assert off == pytest.approx(-change[speeds_up] / 3.0, rel=0.2)


def test_a_topic_can_be_left_out(log, replayed):
    without = topics_of("version: 1\ntopics: {gps: none, magnetometer: none}\n")
    recording = read(log, without)
    assert "gps" not in recording.readings
    assert recording.sensors.gps is None
    result = replay_recording(recording, VEHICLE, ESTIMATOR)
    assert set(replayed.innovations) - set(result.innovations) == {
        "gps_position",
        "gps_velocity",
        "magnetometer",
    }


# foreign robots

SPEED = 2.0
HEADING = math.radians(30.0)


def header(time, frame):
    sec, nanosec = divmod(round(time * 1e9), 10**9)
    return {"stamp": {"sec": sec, "nanosec": nanosec}, "frame_id": frame}


def xyz(values):
    return dict(zip("xyz", map(float, values), strict=True))


def imu(time, frd):
    """Return the IMU of a robot that drives straight at SPEED; it gives its orientation."""
    if frd:  # FRD -> NED: a heading clockwise from north
        frame = "robot/base_link_frd"
        force = (0.0, 0.0, -9.80665)
        half = 0.5 * (math.pi / 2 - HEADING)
    else:
        frame = "robot/base_link"
        force = (0.0, 0.0, 9.80665)
        half = 0.5 * HEADING
    return {
        "header": header(time, frame),
        "orientation": {"x": 0.0, "y": 0.0, "z": math.sin(half), "w": math.cos(half)},
        "orientation_covariance": [0.0] * 9,
        "angular_velocity": xyz((0.0, 0.0, 0.0)),
        "angular_velocity_covariance": [0.0] * 9,
        "linear_acceleration": xyz(force),
        "linear_acceleration_covariance": [0.0] * 9,
    }


def place(time):
    return SPEED * time * np.array((math.cos(HEADING), math.sin(HEADING), 0.0))


def fix(time):
    """Return the fix of an antenna where the set of the scale vehicle has it."""
    lever = SENSORS.gps.position
    turned = (lever[0] * math.cos(HEADING), lever[0] * math.sin(HEADING), lever[2])
    east, north, up = place(time) + turned
    latitude, longitude, altitude = ned_to_geodetic((north, east, -up), DEFAULT_GEO_ORIGIN)
    return {
        "header": header(time, "robot/gps"),
        "status": {"status": 0, "service": 1},
        "latitude": float(latitude),
        "longitude": float(longitude),
        "altitude": float(altitude),
        "position_covariance": [0.0] * 9,
        "position_covariance_type": 0,
    }


def odometry(time):
    pose = {"position": xyz((0, 0, 0)), "orientation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}}
    twist = {"linear": xyz((SPEED, 0, 0)), "angular": xyz((0, 0, 0))}
    return {
        "header": header(time, "robot/odom"),
        "child_frame_id": "robot/base_link",
        "pose": {"pose": pose, "covariance": [0.0] * 36},
        "twist": {"twist": twist, "covariance": [0.0] * 36},
    }


def truth(time):
    """Return a pose of motion capture, whose world is turned by 90° and shifted."""
    east, north, _ = place(time)
    half = 0.5 * (HEADING + math.pi / 2)
    turn = {"x": 0.0, "y": 0.0, "z": math.sin(half), "w": math.cos(half)}
    pose = {"position": xyz((100.0 - north, 50.0 + east, 3.0)), "orientation": turn}
    return {"header": header(time, "mocap"), "pose": pose}


def definition(kind):
    """Return a message's definition; that of a PoseStamped holds all parts of an Odometry's."""
    if kind != "geometry_msgs/PoseStamped":
        return message_definition(kind)
    _, parts = message_definition("nav_msgs/Odometry").split("=\n", 1)
    return f"std_msgs/Header header\ngeometry_msgs/Pose pose\n{80 * '='}\n{parts}"


def write(path, messages, shift=0.0):
    """Write messages (time, topic, type, message); `shift` is of the time of logging, s."""
    with path.open("wb") as file, mcap_writer.Writer(file) as writer:
        schemas = {}
        for time, topic, kind, message in sorted(messages, key=lambda row: row[0]):
            if kind not in schemas:
                name = kind.replace("/", "/msg/")
                schemas[kind] = writer.register_msgdef(name, definition(kind))
            writer.write_message(topic, schemas[kind], message, round((time + shift) * 1e9))


def robot(frd=False, seconds=8.0, begin=0.0):
    times = begin + np.arange(0.0, seconds, 0.01)
    rows = [(t, "/robot/imu", "sensor_msgs/Imu", imu(t, frd)) for t in times.tolist()]
    slow = times[::10].tolist()
    rows += [(t, "/robot/fix", "sensor_msgs/NavSatFix", fix(t)) for t in slow]
    rows += [(t, "/robot/odom", "nav_msgs/Odometry", odometry(t)) for t in times[::2].tolist()]
    return rows + [
        (t, "/mocap/pose", "geometry_msgs/PoseStamped", truth(t)) for t in times[::5].tolist()
    ]


FOREIGN = """version: 1
topics: {reference: /mocap/pose}
on_wheels: true
geo_origin: [47.397742, 8.545594, 488.0]
"""


@pytest.mark.parametrize("frd", [False, True])
def test_a_foreign_robot_is_found_where_it_drove(tmp_path, frd):
    """It moves at the beginning, its GPS has no velocity, its wheels give an odometry."""
    path = tmp_path / "robot.mcap"
    write(path, robot(frd), shift=1.7e9)
    recording = read(path, topics_of(FOREIGN))
    assert recording.topics["imu"] == "/robot/imu"
    assert recording.notes == ("gps: 80 of 80 fixes without a velocity",)
    assert recording.sensors.imu.rate == pytest.approx(100.0)
    track = replay_recording(recording, VEHICLE, ESTIMATOR).track
    late = track.time > 4.0
    expected = np.array([place(time) for time in track.time[late].tolist()])
    assert track.position[late, :2] == pytest.approx(expected[:, :2], abs=0.3)
    velocity = SPEED * np.array((math.cos(HEADING), math.sin(HEADING), 0.0))
    assert track.velocity[late] == pytest.approx(np.tile(velocity, (late.sum(), 1)), abs=0.05)
    half = 0.5 * HEADING
    assert abs(track.orientation[-1] @ (0.0, 0.0, math.sin(half), math.cos(half))) > 0.9999


def test_messages_that_are_not_used_are_counted_with_the_first_reason(tmp_path):
    """Two fixes of none, a reference of NaN, joints of another robot: each topic in one line."""
    rows = robot()
    for row in [row for row in rows if row[1] == "/robot/fix"][:2]:
        row[3]["status"]["status"] = -1
    lost = next(row[3] for row in rows if row[1] == "/mocap/pose")
    lost["pose"]["position"]["x"] = math.nan
    arm = {"header": header(0.5, ""), "name": ["arm"], "position": [0.0], "velocity": [0.0]}
    rows.append((0.5, "/robot/joints", "sensor_msgs/JointState", arm | {"effort": []}))
    path = tmp_path / "robot.mcap"
    write(path, rows)
    assert read(path, topics_of(FOREIGN)).notes[-1] == (
        "left out: /robot/fix (2; the first: without a fix), /robot/joints (1; the first: "
        "there is no wheel_fl_joint), /mocap/pose (1; the first: NaN in its pose)"
    )


def test_a_reference_of_another_world_is_turned_and_moved(tmp_path):
    path = tmp_path / "robot.mcap"
    write(path, robot())
    recording = read(path, topics_of(FOREIGN))
    track = replay_recording(recording, VEHICLE, ESTIMATOR).track
    errors = compare(track, recording.reference, "heading")
    assert "after a turn by -9" in errors.aligned or "after a turn by -8" in errors.aligned
    assert np.abs(errors.position[errors.time > 4.0]).max() < 0.5
    assert np.isnan(errors.velocity).all()
    assert np.abs(errors.attitude[errors.time > 4.0, 2]).max() < 0.05


def test_a_reference_without_orientation_gives_positions_alone(tmp_path):
    rows = robot()
    for k, (time, topic, kind, message) in enumerate(rows):
        if topic == "/mocap/pose":
            turn = {"x": 0.0, "y": 0.0, "z": 0.0, "w": 0.0}
            pose = {"position": xyz(place(time)), "orientation": turn}
            rows[k] = (time, topic, kind, {**message, "pose": pose})
    path = tmp_path / "points.mcap"
    write(path, rows)
    result = replay_recording(read(path, topics_of(FOREIGN)), VEHICLE, ESTIMATOR)
    figures = summary(result, {}, ())["errors"]
    assert figures["attitude_rms_rad"] is None
    assert figures["velocity_rms_mps"] is None
    assert max(figures["position_rms_m"][:2]) < 0.5


def test_without_an_origin_the_world_begins_at_the_first_fix(tmp_path):
    path = tmp_path / "robot.mcap"
    write(path, robot())
    text = FOREIGN.replace("geo_origin: [47.397742, 8.545594, 488.0]\n", "")
    recording = read(path, topics_of(text))
    assert not recording.origin_known
    first = fix(0.0)
    expected = (first["latitude"], first["longitude"], first["altitude"])
    assert recording.geo_origin == pytest.approx(expected, abs=1e-9)
    errors = replay_recording(recording, VEHICLE, ESTIMATOR).errors
    assert errors.aligned.startswith("moved by its mean difference")
    assert errors.position.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-9)


def test_wheels_without_loads_are_left_out_unless_the_file_says_that_they_roll(tmp_path):
    path = tmp_path / "robot.mcap"
    write(path, robot())
    recording = read(path)
    assert "joints" not in recording.readings
    assert any("on_wheels: true" in note for note in recording.notes)


def test_weather_does_not_spoil_a_barometer_whose_set_allows_for_it(tmp_path):
    """The pressure is 1500 Pa above the standard atmosphere's. Without a bias it is rejected."""
    pressure = standard_pressure(DEFAULT_GEO_ORIGIN[2]) + 1500.0
    rows = robot()
    for t in np.arange(0.0, 8.0, 0.1).tolist():
        message = {"header": header(t, "baro"), "fluid_pressure": pressure, "variance": 0.0}
        rows.append((t, "/robot/baro", "sensor_msgs/FluidPressure", message))
    path = tmp_path / "weather.mcap"
    write(path, rows)

    assert SENSORS.barometer is not None
    weather = dataclasses.replace(SENSORS.barometer.noise, turn_on_bias=2000.0)
    allowing = SENSORS.replace(barometer=dataclasses.replace(SENSORS.barometer, noise=weather))
    counts = []
    for sensors in (allowing, SENSORS):
        recording = read_recording(path, VEHICLE, sensors, ESTIMATOR, topics_of(FOREIGN))
        barometer = replay_recording(recording, VEHICLE, ESTIMATOR).innovations["barometer"]
        counts.append((barometer.rejected, barometer.nis.size))
    assert counts[0][0] == 0
    assert counts[0][1] > 60
    assert counts[1][0] == counts[1][1]


# a vehicle in the air


def hovering(factor, stamped):
    """Return the log of a vehicle that stays in the air, whatever its rotors are commanded.

    They turn at the speed of hovering, and are told `factor` times this. Loads without stamps are
    those of older recordings.
    """
    names = joint_names(VEHICLE)
    speeds = [
        VEHICLE.hover_speed * VEHICLE.rotor_spin[int(name.split("_")[1]) - 1]
        if name.startswith("rotor")
        else 0.0
        for name in names
    ]
    command = {"mode": 0, "value": [factor * VEHICLE.hover_speed] * VEHICLE.rotors}
    old_loads = {"layout": {"dim": [], "data_offset": 0}, "data": [0.0] * 4}
    rows = []
    for t in np.arange(0.0, 6.0, 0.01).tolist():
        body = header(t, "car/base_link")
        joints = {"name": names, "position": [0.0] * len(names), "velocity": speeds, "effort": []}
        still = odometry(t)
        still["pose"]["pose"]["position"] = xyz((0.0, 0.0, 50.0))
        still["twist"]["twist"]["linear"] = xyz((0.0, 0.0, 0.0))
        rows += [
            (t, "/car/imu/data", "sensor_msgs/Imu", imu(t, False)),
            (t, "/car/joint_states", "sensor_msgs/JointState", {"header": body, **joints}),
            (t, "/car/wheel_loads", "rfly_suite/WheelLoads", {"header": body, "load": [0.0] * 4})
            if stamped
            else (t, "/car/wheel_loads", "std_msgs/Float64MultiArray", old_loads),
            (t, "/car/cmd/rotors", "rfly_suite/RotorCommand", {"header": body, **command}),
            (t, "/car/ground_truth/odom", "nav_msgs/Odometry", still),
        ]
    return rows


@pytest.mark.parametrize(("factor", "stamped"), [(1.0, True), (1.05, False)])
def test_the_model_climbs_as_its_rotors_are_told(tmp_path, factor, stamped):
    """The speed after half a second, from the lag of the rotors and T = c_T ϖ², without inflow.

    The inflow of the climb takes off about a tenth.
    """
    path = tmp_path / "hover.mcap"
    write(path, hovering(factor, stamped))
    recording = read(path, topics_of("version: 1\ngeo_origin: [47.4, 8.5, 488.0]\n"))
    predictions, notes = check_model(replay_recording(recording, VEHICLE, ESTIMATOR), VEHICLE)
    assert notes == []
    assert set(predictions) == {"in the air"}

    time = np.linspace(0.0, 0.5, 5001)
    speed = factor - (factor - 1.0) * np.exp(-time / VEHICLE.rotor_lag)
    climb = 9.80665 * 0.5 * float(np.mean(speed**2 - 1.0))
    found = predictions["in the air"].velocity
    assert found[:, 2] == pytest.approx(np.full(len(found), 0.93 * climb), abs=0.07 * climb + 2e-3)
    assert np.abs(found[:, :2]).max() < 0.02


# bad logs


def stamped_again(rows, topic, change):
    """Return the rows with other stamps on a topic; they are logged in the old order."""
    out = []
    for time, name, kind, message in rows:
        new = message
        if name == topic:
            stamp = header(change(time), message["header"]["frame_id"])
            new = {**message, "header": stamp}
        out.append((time, name, kind, new))
    return out


@pytest.mark.parametrize(
    ("rows", "error", "told"),
    [
        (
            stamped_again(robot(begin=20.0), "/robot/imu", lambda t: t if t < 24.0 else t - 3.0),
            CaptureError,
            r"/robot/imu: its time goes back by 2\.990 s after 23\.990 s",
        ),
        (
            stamped_again(robot(), "/robot/fix", lambda t: t + 1e6),
            CaptureError,
            r"/robot/fix: its stamps are about 100000\d\.\d s, those of the IMU 0\.0 … 8\.0 s",
        ),
        (
            [row for row in robot() if row[1] != "/robot/imu"],
            ConfigError,
            "no topic of sensor_msgs",
        ),
        (
            [*robot(), (0.0, "/other/imu", "sensor_msgs/Imu", imu(0.0, False))],
            ConfigError,
            "imu: /other/imu, /robot/imu: choose one with --topics or --namespace",
        ),
        (
            # a nanosecond apart, the smallest step that a stamp has
            stamped_again(robot(), "/robot/imu", lambda t: 3.0 + round(100.0 * t) * 1e-9),
            CaptureError,
            r"imu: its stamps are 1e-09 s apart; expected at least 0\.0001 s",
        ),
        (robot(seconds=0.5), ConfigError, r"0\.49 s, expected more than 1 s to align"),
    ],
)
def test_a_bad_log_is_refused_with_its_reason(tmp_path, rows, error, told):
    path = tmp_path / "bad.mcap"
    write(path, rows)
    with pytest.raises(error, match=told):
        replay_recording(read(path), VEHICLE, ESTIMATOR)


def test_gaps_are_told(tmp_path):
    rows = [row for row in robot() if row[1] != "/robot/imu" or not 3.0 < row[0] < 3.505]
    path = tmp_path / "gap.mcap"
    write(path, rows)
    assert "/robot/imu: a gap of 0.51 s, 3.00 s after its first message" in read(path).notes


def test_stamps_of_zero_are_replaced_by_the_time_of_logging(tmp_path):
    rows = stamped_again(robot(), "/robot/imu", lambda _: 0.0)
    rows = stamped_again(rows, "/robot/fix", lambda _: 0.0)
    path = tmp_path / "unstamped.mcap"
    write(path, rows)
    recording = read(path)
    assert recording.readings["imu"].time == pytest.approx(np.arange(0.0, 8.0, 0.01), abs=1e-6)
    assert recording.readings["gps"].time == pytest.approx(np.arange(0.0, 8.0, 0.1), abs=0.011)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("version: 1\ntopics: {imu: /nothing}\n", "no messages on /nothing, the topic for imu; of"),
        ("version: 1\ntopics: {imu: /robot/fix}\n", "/robot/fix has messages of sensor_msgs/Nav"),
    ],
)
def test_a_topic_of_the_file_has_to_be_in_the_log(tmp_path, text, told):
    path = tmp_path / "robot.mcap"
    write(path, robot(seconds=0.1))
    with pytest.raises(ConfigError, match=told):
        read(path, topics_of(text))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("version: 1\ntopics: {radar: /x}\n", r"topics\.yaml:2: .*radar"),
        ("version: 1\naxes: ned\n", r"topics\.yaml:2: .*axes.*flu"),
        ("version: 1\ngeo_origin: [1, 2]\n", r"topics\.yaml:2: .*geo_origin"),
    ],
)
def test_a_wrong_file_of_topics_is_refused_with_line_and_key(text, told):
    with pytest.raises(ConfigError, match=told):
        topics_of(text)


def test_a_sensor_that_the_set_lacks_is_told(log):
    bare = dataclasses.replace(SENSORS, barometer=None, name="bare")
    recording = read_recording(log, VEHICLE, bare, ESTIMATOR)
    assert "barometer" not in recording.readings
    assert "barometer: sensors 'bare' have none; it is not used" in recording.notes


def test_impossible_numbers_are_left_out(tmp_path):
    """One fix of 1e300 m and one sample of NaN do not move the estimate."""
    rows = robot()
    for topic, key, value in (("/robot/fix", "altitude", 1e300), ("/robot/imu", "x", math.nan)):
        k = next(k for k, row in enumerate(rows) if row[1] == topic and row[0] >= 5.0)
        time, _, kind, message = rows[k]
        odd = {**message, key: value} if key == "altitude" else message
        if key == "x":
            odd = {**message, "angular_velocity": {"x": value, "y": 0.0, "z": 0.0}}
        rows[k] = (time, topic, kind, odd)
    path = tmp_path / "odd.mcap"
    write(path, rows)
    track = replay_recording(read(path, topics_of(FOREIGN)), VEHICLE, ESTIMATOR).track
    assert track.position[-1, :2] == pytest.approx(place(track.time[-1])[:2], abs=0.3)


def test_commands_for_another_vehicle_are_refused(tmp_path):
    command = {"header": header(1.0, ""), "mode": 0, "value": [100.0] * 4}
    rows = [*robot(seconds=1.0), (1.0, "/cmd/rotors", "rfly_suite/RotorCommand", command)]
    path = tmp_path / "quad.mcap"
    write(path, rows)
    with pytest.raises(ConfigError, match="/cmd/rotors: commands for another number of motors"):
        read(path)

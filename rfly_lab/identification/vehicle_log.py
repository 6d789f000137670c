# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Logs of a vehicle for identification: its topics, and its motion on one time base."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.sensors.sample_messages import numbers_of
from rfly_amphibious.sensors.samples import joint_names
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.errors import CaptureError, ConfigError
from rfly_common.frames import quat_conjugate, quat_rotate, rotation_matrix
from rfly_common.physics import GRAVITY
from rfly_common.transform_buffer import IDENTITY
from rfly_common.untrusted_files.message_log import (
    LARGEST,
    LONGEST,
    Columns,
    LoggedTables,
    check_forward,
    open_log,
    read_tables,
)

RATE = 100.0
"""Rate of `LoggedMotion`, Hz."""
SENSOR_BAND = 20.0
"""Band above which the IMU's noise is cut off, Hz."""
ENCODER_BAND = 30.0
"""Band above which the noise of the wheels' encoders is cut off, Hz."""
BIAS_BAND = 0.2
"""Band below which odometry corrects the accelerometer, Hz."""
SHORTEST = 10.0
"""Shortest log, s."""
LEAST_QUATERNION = 0.5
"""Norm of a quaternion below which it is no attitude."""
LEAST_STEP = 1e-4
"""Distance of stamps below which the second message does not count, s: no sensor is so fast."""
LONGEST_GAP = 0.5
"""Longest time without messages over which values are interpolated, s."""
ODOMETRY = ("ground_truth/odom", "odometry/global", "odometry/filtered")
"""Topics of odometry, of which the first that was recorded is used."""
NEEDED = ("imu/data", "joint_states")
"""Topics without which there is no fit."""


class Series(NamedTuple):
    """Rows of numbers at times."""

    time: Floats
    """Times of the stamps, s, (k,)."""
    value: Floats
    """Values, (k, n)."""


@dataclass(frozen=True)
class VehicleLog:
    """A vehicle's log, with one `Series` for each topic (without the vehicle's namespace)."""

    name: str
    series: dict[str, Series]
    """Series by topic.

    imu/data: specific force 3, rates 3; joint_states: positions, then velocities of
    `joint_names` (0 for the steering); wheel_loads 4; odometry: position 3, x y z w, velocity and
    rates 3 (body); environment/wind 3; cmd/rotors: speeds
    """
    imu_position: Floats
    """Position of the IMU in the body, m, (3,)."""
    imu_orientation: Floats
    """Quaternion x y z w, IMU -> body, (4,)."""
    notes: tuple[str, ...] = ()
    """Topics and messages that are not used, and what is used instead."""


def read_log(path: Path, params: VehicleParameters, namespace: str | None = None) -> VehicleLog:
    """Read a recording of the simulation or of nodes (`open_bag`).

    `namespace`: of the vehicle, if more than one was recorded. Raises ConfigError if a needed topic
    is missing, CaptureError for a file that can't be read.
    """
    columns = _columns(params)
    with open_log(path) as log:
        prefix = _prefix(path, list(log.topics), namespace)
        topics = {topic: prefix + topic for topic in columns}
        statics = ("/tf_static", prefix + "tf_static")
        logged = read_tables(path.name, log, topics, columns, statics)
        notes = [
            f"{topic} is not used: {reason}"
            for topic, reason in log.left_out.items()
            if topic in topics.values()
        ]
    return _log(path.name, logged, notes)


def _log(name: str, logged: LoggedTables, notes: list[str]) -> VehicleLog:
    """Return a log of the needed topics. Raise ConfigError if one is missing, CaptureError.

    `notes`: of topics that cannot be read.
    """
    if logged.left_out:
        notes = [*notes, logged.left_out.text()]
    tables = logged.tables
    missing = [topic for topic in NEEDED if topic not in tables]
    if not any(topic in tables for topic in ODOMETRY):
        missing.append(" or ".join(ODOMETRY))
    if missing:
        reasons = f" ({'; '.join(notes)})" if notes else ""
        raise ConfigError(
            f"{name}: no messages on {', '.join(missing)}{reasons}; "
            "expected them, in the vehicle's namespace"
        )

    # series of each topic
    joints = tables["joint_states"]
    series = {}
    for topic, table in tables.items():
        # messages without a stamp get the time of the joint states that arrived with them
        stamped = np.isfinite(table.time)
        time = np.where(stamped, table.time, np.interp(table.arrival, joints.arrival, joints.time))
        series[topic] = _series(f"{name}: {topic}", time, table.value)
        lost = time.size - series[topic].time.size
        if lost:
            notes.append(
                f"{topic}: {lost} of {time.size} messages are not used: NaN, numbers beyond "
                f"{LARGEST:g}, or stamps that were there already"
            )
    notes += _crop_to_longest_stretch(series)

    # mounting of the IMU
    imu_frame = tables["imu/data"].frame
    mount = IDENTITY
    if imu_frame in logged.links:
        _, mount = logged.links[imu_frame]
    elif imu_frame.split("/")[-1] != "base_link":
        notes.append(
            f"/tf_static does not say where {imu_frame} is: it is taken to be in base_link"
        )

    if ODOMETRY[0] not in series:
        notes.append(f"no {ODOMETRY[0]}: velocities are those of the estimator")
    place = np.asarray(mount.translation, float)
    turned = np.asarray(mount.quat_xyzw, float)
    return VehicleLog(name, series, place, turned, tuple(notes))


def _series(where: str, time: Floats, rows: Floats) -> Series:
    """Return the rows with possible numbers, each time once. Raise CaptureError."""
    check_forward(where, time)
    possible = (np.abs(rows) <= LARGEST).all(axis=1)
    if not possible.any():
        raise CaptureError(f"{where}: NaN, or numbers beyond {LARGEST:g}, in all messages")
    time = time[possible]
    _, first = np.unique(np.round(time / LEAST_STEP), return_index=True)
    return Series(time[first], rows[possible][first])


def _crop_to_longest_stretch(series: dict[str, Series]) -> list[str]:
    """Cut the needed topics to the longest time without a gap, and return notes on it."""
    needed = [topic for topic in series if topic in (*NEEDED, *ODOMETRY)]
    begin = max(series[topic].time[0] for topic in needed)
    end = min(series[topic].time[-1] for topic in needed)

    gaps = []
    for topic in needed:
        time = series[topic].time
        before = np.flatnonzero(np.diff(time) > LONGEST_GAP)
        gaps += [(time[k], time[k + 1]) for k in before]
    if not gaps:
        return []

    stretches = []
    for gap_begin, gap_end in sorted(gaps):
        stretches.append((begin, min(gap_begin, end)))
        begin = max(begin, gap_end)
    stretches.append((begin, end))
    begin, end = max(stretches, key=lambda stretch: stretch[1] - stretch[0])
    for topic in needed:
        inside = (series[topic].time >= begin) & (series[topic].time <= end)
        series[topic] = Series(series[topic].time[inside], series[topic].value[inside])
    return [
        f"{len(gaps)} gaps of more than {LONGEST_GAP:g} s: the longest stretch without one is used,"
        f" {max(end - begin, 0.0):.1f} s"
    ]


def _prefix(path: Path, topics: list[str], namespace: str | None) -> str:
    """Return the prefix of the vehicle's topics."""
    prefixes = sorted(
        topic.removesuffix("imu/data") for topic in topics if topic.endswith("/imu/data")
    )
    if namespace is not None:
        return f"/{namespace.strip('/')}/".replace("//", "/")
    if len(prefixes) > 1:
        names = ", ".join(prefix.strip("/") for prefix in prefixes)
        raise ConfigError(f"{path}: more than one vehicle: {names}; choose one with --namespace")
    return prefixes[0] if prefixes else "/"


def _columns(params: VehicleParameters) -> dict[str, Columns]:
    """Return, by topic, functions from a message to its numbers."""
    names = joint_names(params)

    def joints(message: Any) -> list[float]:
        where = {name: k for k, name in enumerate(message.name)}
        missing = [name for name in names if name not in where]
        if missing:
            raise ConfigError(
                f"joint_states: there is no {missing[0]}; expected the joints of {params.name}"
            )
        positions = [message.position[where[name]] for name in names]
        # no sensor measures the steering's rates: they are NaN in a recording of nodes
        rates = [
            0.0 if name.startswith("steer") else message.velocity[where[name]] for name in names
        ]
        return positions + rates

    def odometry(message: Any) -> list[float] | str:
        if not message.pose.covariance[0] >= 0.0:
            return "its covariance says that the pose is unknown"
        numbers = numbers_of(ODOMETRY[0])(message)
        if math.hypot(*numbers[3:7]) < LEAST_QUATERNION:
            numbers[3:7] = [math.nan] * 4
        return numbers

    return {
        "imu/data": lambda m: numbers_of("imu/data")(m)[:6],
        "joint_states": joints,
        "wheel_loads": numbers_of("wheel_loads"),
        "environment/wind": numbers_of("environment/wind"),
        "cmd/rotors": lambda m: list(m.value) if m.mode == 0 else "no speeds of rotors",
        **dict.fromkeys(ODOMETRY, odometry),
    }


@dataclass(frozen=True)
class LoggedMotion:
    """A log at RATE: motion of the sprung centre of mass, in body axes; SI units."""

    time: Floats
    up: Floats
    """The world's z, (k, 3)."""
    height: Floats
    """Height of the centre above where it stood, m, (k,)."""
    velocity: Floats
    """Velocity over ground, m/s, (k, 3)."""
    air_velocity: Floats
    """Velocity against the air, m/s, (k, 3)."""
    rates: Floats
    rate_change: Floats
    """Change of the rates, rad/s², (k, 3)."""
    force: Floats
    """Specific force, m/s², (k, 3)."""
    steering: Floats
    """Steering angles of the wheels, rad, (k, 4)."""
    wheel_speed: Floats
    """Speeds of the wheels against the body, rad/s, (k, 4)."""
    wheel_speed_change: Floats
    strut: Floats
    strut_rate: Floats
    strut_acceleration: Floats
    rotor_speed: Floats
    """Speeds of the rotors, rad/s, ≥ 0, (k, rotors)."""
    rotor_speed_change: Floats
    load: Floats
    """Loads of the wheels, N, (k, 4); NaN if they were not recorded."""
    hub: Floats
    """Positions of the hubs, m, (k, 4, 3)."""
    hub_force: Floats
    """Specific force of the unsprung masses, m/s², (k, 4, 3)."""

    def part(self, first: int, last: int) -> LoggedMotion:
        """Return the rows from the first up to the last."""
        return LoggedMotion(*(getattr(self, field.name)[first:last] for field in fields(self)))


def motion(log: VehicleLog, params: VehicleParameters) -> LoggedMotion:
    """Return the log's motion while all topics were recorded.

    Raises ConfigError for one that is too short.
    """
    series = log.series
    imu = series["imu/data"]
    joints = series["joint_states"]
    odometry = next(series[topic] for topic in ODOMETRY if topic in series)
    begin = max(each.time[0] for each in (imu, joints, odometry))
    end = min(each.time[-1] for each in (imu, joints, odometry))
    if not SHORTEST <= end - begin <= LONGEST:
        lasts = f"{max(end - begin, 0.0):.1f} s in which all was recorded"
        raise ConfigError(f"{log.name}: {lasts}, expected {SHORTEST:g} … {LONGEST:g} s")
    time = np.arange(begin, end, 1.0 / RATE)

    # IMU
    raw_imu, imu_change = _on(time, imu, SENSOR_BAND)
    turned = _rotated(log.imu_orientation, raw_imu[:, 3:])
    rates_change = _rotated(log.imu_orientation, imu_change[:, 3:])
    lever = log.imu_position
    force = quat_rotate(log.imu_orientation, raw_imu[:, :3])
    force = force - np.cross(rates_change, lever) - np.cross(turned, np.cross(turned, lever))

    # odometry; a quaternion and its negative are the same attitude
    turn = odometry.value[:, 3:7]
    same = np.where(np.sum(turn[1:] * turn[:-1], axis=1, keepdims=True) < 0.0, -1.0, 1.0)
    rows = odometry.value.copy()
    rows[1:, 3:7] *= np.cumprod(same, axis=0)
    state = _on(time, odometry._replace(value=rows))[0]
    orientation = state[:, 3:7] / np.linalg.norm(state[:, 3:7], axis=1, keepdims=True)
    world = quat_rotate(orientation, state[:, 7:10])
    back = quat_conjugate(orientation)

    # bias of the accelerometer
    gravity = np.array((0.0, 0.0, GRAVITY))
    acceleration = quat_rotate(orientation, force) - gravity
    wrong = low_pass(acceleration - np.gradient(world, time, axis=0), BIAS_BAND)
    force = force - quat_rotate(back, wrong)

    wind = np.zeros_like(world)
    if "environment/wind" in series:
        blows = series["environment/wind"]
        wind = np.stack([np.interp(time, blows.time, column) for column in blows.value.T], axis=1)

    # hubs
    place, change = _joints(time, joints, params)
    strut = place["strut"]
    strut_rate = change["strut"]
    strut_acceleration = change["strut_rate"]
    hub = params.hub_position + strut[..., None] * np.array((0.0, 0.0, 1.0))
    up = np.array((0.0, 0.0, 1.0))
    w = turned[:, None, :]
    turning = np.cross(rates_change[:, None, :], hub) + np.cross(w, np.cross(w, hub))
    hub_force = force[:, None] + turning + 2.0 * strut_rate[..., None] * np.cross(w, up)
    hub_force = hub_force + strut_acceleration[..., None] * up

    load = np.full((time.size, 4), np.nan)
    if "wheel_loads" in series:
        loads = series["wheel_loads"]
        load = np.stack([np.interp(time, loads.time, column) for column in loads.value.T], axis=1)
    return LoggedMotion(
        time,
        rotation_matrix(orientation)[:, 2, :],
        state[:, 2] - np.median(state[: int(RATE), 2]),
        state[:, 7:10],
        _rotated(back, world - wind),
        turned,
        rates_change,
        force,
        place["steer"],
        change["wheel"],
        change["wheel_rate"],
        strut,
        strut_rate,
        strut_acceleration,
        np.abs(place["rotor_rate"]),
        change["rotor_rate"] * np.sign(params.rotor_spin),
        load,
        hub,
        hub_force,
    )


def _rotated(quat_xyzw: Any, vectors: Floats) -> Floats:
    return quat_rotate(quat_xyzw, vectors).astype(np.float64)


def _joints(
    time: Floats, joints: Series, params: VehicleParameters
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return values of wheel angles, steering, struts and rotor rates, and their changes a second.

    Both are by kind of joint.
    """
    names = joint_names(params)
    kinds = np.array([name.split("_")[0] for name in names])
    angles = joints.value[:, : len(names)]
    rates = joints.value[:, len(names) :]
    place: dict[str, Floats] = {}
    change: dict[str, Floats] = {}
    parts: tuple[tuple[str, Floats, float | None], ...] = (
        ("wheel", angles[:, kinds == "wheel"], ENCODER_BAND),
        ("strut", angles[:, kinds == "strut"], None),
        ("strut_rate", rates[:, kinds == "strut"], None),
        ("rotor_rate", rates[:, kinds == "rotor"], None),
    )

    for kind, values, band in parts:
        place[kind], change[kind] = _on(time, Series(joints.time, values), band)
    change["strut"] = place["strut_rate"]
    change["wheel_rate"] = _on(time, Series(time, change["wheel"]))[1]
    place["steer"] = np.zeros((time.size, 4))
    steered = np.flatnonzero(params.steering_sign)
    for wheel, column in zip(steered, np.flatnonzero(kinds == "steer"), strict=True):
        place["steer"][:, wheel] = np.interp(time, joints.time, angles[:, column])
    return place, change


def _on(time: Floats, series: Series, band: float | None = None) -> tuple[Floats, Floats]:
    """Return values at `time`, and their changes a second, by cubic splines.

    What is faster than `band` (Hz) is left out.
    """
    from scipy.interpolate import CubicSpline

    values = series.value
    if band is not None:
        values = low_pass(values, band, (series.time.size - 1) / (series.time[-1] - series.time[0]))
    spline = CubicSpline(series.time, values)
    return spline(time), spline(time, 1)


def low_pass(values: Floats, band: float, rate: float = RATE) -> Floats:
    """Return values along the first axis without what is faster than `band`, Hz, and without delay.

    With a `rate` that is too low for the band they stay as they are.
    """
    from scipy.signal import butter, sosfiltfilt

    if band >= 0.45 * rate:
        return values
    return sosfiltfilt(butter(4, band, fs=rate, output="sos"), values, axis=0)

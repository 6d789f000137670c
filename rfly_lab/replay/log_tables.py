# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Numbers of the parts that a replay needs of a log, with their stamps checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from rfly_amphibious.sensors.sample_messages import numbers_of
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.errors import CaptureError, ConfigError
from rfly_common.transform_buffer import IDENTITY, Transform
from rfly_common.untrusted_files.message_log import (
    LARGEST,
    LONGEST,
    Columns,
    Links,
    LoggedTables,
    MessageLog,
    Table,
    check_forward,
    header_frame,
    read_tables,
    xyz_of,
)
from rfly_lab.replay.topic_map import TopicMap

OTHER_CLOCK_S = 10.0
"""Distance from the IMU's time beyond which stamps are of another clock, s."""
INPUTS = ("rotor_commands", "wheel_commands", "wind")
"""Parts whose numbers go into the model."""


def read_parts(
    name: str, log: MessageLog, topics: dict[str, str], columns: dict[str, Columns]
) -> LoggedTables:
    """Read the topics of all parts. Raise CaptureError for lists of different lengths.

    A command with impossible numbers is left out.
    """
    statics = [topic for topic in log.topics if topic.endswith("tf_static")]
    raw = read_tables(name, log, topics, columns, statics, _frame)
    tables = {part: _possible(part, table) for part, table in raw.tables.items()}
    for part, table in raw.tables.items():
        lost = table.time.size - tables[part].time.size
        if lost:
            raw.left_out.add(topics[part], f"NaN, or numbers beyond {LARGEST:g}", lost)
    return raw._replace(tables={part: table for part, table in tables.items() if table.time.size})


def _frame(part: str, message: Any) -> str:
    """Return the frame of a message's numbers; a twist of an odometry is in its child's."""
    if part == "wheel_odometry" and hasattr(message, "child_frame_id"):
        return str(message.child_frame_id)
    return header_frame(part, message)


def _possible(part: str, table: Table) -> Table:
    """Return a table whose impossible numbers are NaN, without the commands that have some.

    Infinite heights stay, which mean that the sensor saw no ground.
    """
    possible = np.abs(table.value) <= LARGEST
    if part in INPUTS:
        kept = possible.all(axis=1)
        return Table(table.time[kept], table.arrival[kept], table.value[kept], table.frame)
    if part == "height":
        possible |= np.isinf(table.value)
    return table._replace(value=np.where(possible, table.value, np.nan))


def mount_of(links: Links, frame: str) -> Transform | None:
    """Return the transform of a frame's coordinates into base_link; None if there is no way."""
    transform = IDENTITY
    for _ in range(len(links) + 1):
        if frame.split("/")[-1] in ("base_link", "base_link_frd"):
            return transform
        if frame not in links:
            return None
        frame, step = links[frame]
        transform = step @ transform
    return None


def on_clock_of_imu(
    name: str, topics: dict[str, str], tables: dict[str, Table]
) -> dict[str, Table]:
    """Return the tables with times of the IMU's clock.

    Messages without a stamp, or with stamps of 0, get the time of the IMU's samples that were
    logged with them. Raise CaptureError for a time that goes back, or is of another clock.
    """
    imu = tables["imu"]
    if not imu.time.any():
        imu = imu._replace(time=imu.arrival)
    timed = {}
    for part, table in {**tables, "imu": imu}.items():
        if np.isnan(table.time).any() or not table.time.any():
            last = np.searchsorted(imu.arrival, table.arrival, side="right") - 1
            timed[part] = table._replace(time=imu.time[last.clip(0)])
        else:
            timed[part] = table
        _check_times(f"{name}: {topics[part]}", timed[part].time, imu.time)
    return timed


def _check_times(where: str, time: Floats, imu_time: Floats) -> None:
    """Raise CaptureError unless the times belong to one run of the IMU's clock."""
    check_forward(where, time)
    begin = imu_time.min()
    end = imu_time.max()
    if not end - begin <= LONGEST:
        raise CaptureError(f"{where}: {end - begin:.0f} s, expected at most {LONGEST:.0f} s")
    middle = float(np.median(time))
    if not begin - OTHER_CLOCK_S <= middle <= end + OTHER_CLOCK_S:
        raise CaptureError(
            f"{where}: its stamps are about {middle:.1f} s, those of the IMU {begin:.1f} … "
            f"{end:.1f} s; expected one clock"
        )


def gap_note(topic: str, time: Floats, longest: float) -> list[str]:
    """Return a note on the gaps of a topic: steps of its time of more than `longest`, s."""
    steps = np.diff(time)
    gaps = np.flatnonzero(steps > longest)
    if not gaps.size:
        return []
    worst = gaps[np.argmax(steps[gaps])]
    count = "a gap" if gaps.size == 1 else f"{gaps.size} gaps, the longest"
    since = time[worst] - time[0]
    return [f"{topic}: {count} of {steps[worst]:.2f} s, {since:.2f} s after its first message"]


def columns_of(params: VehicleParameters, topic_map: TopicMap) -> dict[str, Columns]:
    """Return the function of each part from a message to its numbers."""
    return {
        "imu": lambda m: _imu(m, topic_map.orientation),
        "gps": lambda m: _FIX(m) if m.status.status >= 0 else "without a fix",
        "gps_velocity": lambda m: xyz_of(m.vector if hasattr(m, "vector") else _twist(m).linear),
        "magnetometer": numbers_of("imu/mag"),
        "barometer": numbers_of("baro"),
        "height": numbers_of("height_above_ground"),
        "joints": JointColumns(params, topic_map),
        "wheel_odometry": lambda m: [
            *xyz_of(_twist(m).linear)[:2],
            _twist(m).angular.z,
        ],
        "wheel_loads": numbers_of("wheel_loads"),
        "rotor_commands": lambda m: [float(m.mode), *m.value],
        "wheel_commands": lambda m: _wheel_command(m, len(params.wheels)),
        "wind": numbers_of("environment/wind"),
        "reference": _reference,
    }


_FIX = numbers_of("gps/fix")
_IMU = numbers_of("imu/data")


def _twist(message: Any) -> Any:
    """Return the twist in a message, with covariance or without."""
    return getattr(message.twist, "twist", message.twist)


def _imu(message: Any, oriented: bool) -> list[float]:
    """Return force, rates and orientation; zeros for an orientation that is unknown."""
    numbers = _IMU(message)
    if not oriented or message.orientation_covariance[0] == -1.0:  # as sensor_msgs/Imu says
        numbers[6:] = [0.0] * 4
    return numbers


def _wheel_command(message: Any, wheels: int) -> list[float]:
    """Return the virtual wheel's steering, drive and brake torques; an empty list is all 0."""
    torques = (message.drive_torque, message.brake_torque)
    drive, brake = (list(each) or [0.0] * wheels for each in torques)
    return [message.steering_angle, *drive, *brake]


def _reference(message: Any) -> list[float]:
    """Return position, orientation and velocity (in body axes, NaN if a pose has none)."""
    pose = getattr(message.pose, "pose", message.pose)
    q = pose.orientation
    velocity = xyz_of(message.twist.twist.linear) if hasattr(message, "twist") else [np.nan] * 3
    return [*xyz_of(pose.position), q.x, q.y, q.z, q.w, *velocity]


class JointColumns:
    """Rates, angles and steering of the wheels, struts and rotors from a JointState.

    Each has one number for every wheel or rotor; NaN where a joint was not recorded.
    """

    def __init__(self, params: VehicleParameters, topic_map: TopicMap) -> None:
        self._wheels = [topic_map.wheels.get(w, f"wheel_{w}_joint") for w in params.wheels]
        self._steering = [topic_map.steering.get(w, f"steer_{w}_joint") for w in params.wheels]
        self._others = [f"strut_{w}_joint" for w in params.wheels]
        self._rotors = [f"rotor_{j + 1}_joint" for j in range(params.rotors)]
        self._explicit = {*topic_map.wheels.values(), *topic_map.steering.values()}

    def __call__(self, message: Any) -> list[float] | str:
        """Return rates, steering, angles, struts and rotor speeds, or which wheel is missing."""
        where = {name: k for k, name in enumerate(message.name)}
        absent = [name for name in self._wheels if name not in where]
        named = sorted(self._explicit - where.keys())
        if named:
            raise ConfigError(
                f"joint_states: there is no {named[0]}; it has {', '.join(message.name)}"
            )
        if absent:
            return f"there is no {absent[0]}"

        def of(values: Any, names: list[str], default: float) -> list[float]:
            return [
                float(values[where[name]])
                if name in where and where[name] < len(values)
                else default
                for name in names
            ]

        nan = float("nan")
        return [
            *of(message.velocity, self._wheels, nan),
            *of(message.position, self._steering, 0.0),
            *of(message.position, self._wheels, nan),
            *of(message.position, self._others, nan),
            *of(message.velocity, self._rotors, nan),
        ]

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Numbers of a log's messages in tables, with their stamps checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.errors import CaptureError, ConfigError
from rfly_common.transform_buffer import IDENTITY, Transform
from rfly_common.untrusted_files.message_log import MessageLog, stamp_of
from rfly_lab.replay.topic_map import TopicMap

WENT_BACK_S = 0.05
"""Step back of stamps beyond which a log is no log of one run, s."""
OTHER_CLOCK_S = 10.0
"""Distance from the IMU's time beyond which stamps are of another clock, s."""
LONGEST = 7200.0
"""Longest log, s. A stamp that is far off would need all of the memory."""

LARGEST = 1e9
"""Bound of all numbers, in SI units, which no vehicle reaches."""
INPUTS = ("rotor_commands", "wheel_commands", "wind")
"""Parts whose numbers go into the model."""

Columns = Callable[[Any], "list[float] | None"]
"""Function from a message to its numbers; None: the message does not count."""
Links = dict[str, tuple[str, Transform]]
"""Parent, and transform into it, by child frame."""


class Table(NamedTuple):
    """Messages of a topic, in the order in which they were logged."""

    time: Floats
    """Times of the stamps, s, (k,)."""
    arrival: Floats
    """Times at which they were logged, s, (k,)."""
    value: Floats
    """Numbers, (k, n)."""
    frame: str
    """Frame of the first message."""


class RawLog(NamedTuple):
    """Content of a log."""

    tables: dict[str, Table]
    """By the part that the topic plays; topics without messages are left out."""
    links: Links
    """Links of /tf_static."""
    terrain: Any
    """First message of the terrain's topic, or None."""


def read_tables(
    name: str, log: MessageLog, topics: dict[str, str], columns: dict[str, Columns]
) -> RawLog:
    """Read the topics of all parts. Raise CaptureError for lists of different lengths."""
    parts = {topic: part for part, topic in topics.items()}
    statics = [topic for topic in log.topics if topic.endswith("tf_static")]
    rows: dict[str, list[tuple[float, float, list[float]]]] = {}
    frames: dict[str, str] = {}
    links: Links = {}
    terrain = None
    for topic, arrival, message in log.messages([*parts, *statics]):
        if topic in statics:
            links.update(_links(message))
            continue
        part = parts[topic]
        if part == "terrain":
            terrain = terrain or message
            continue
        values = columns[part](message)
        if values is not None:
            rows.setdefault(part, []).append((stamp_of(message), arrival, values))
            frames.setdefault(part, _frame(part, message))

    tables = {
        part: _table(part, f"{name}: {topics[part]}", found, frames[part])
        for part, found in rows.items()
    }
    tables = {part: table for part, table in tables.items() if table.time.size}
    return RawLog(tables, links, terrain)


def _frame(part: str, message: Any) -> str:
    """Return the frame of a message's numbers; a twist of an odometry is in its child's."""
    if part == "wheel_odometry" and hasattr(message, "child_frame_id"):
        return str(message.child_frame_id)
    return str(message.header.frame_id) if hasattr(message, "header") else ""


def _table(
    part: str, where: str, rows: list[tuple[float, float, list[float]]], frame: str
) -> Table:
    """Return a topic's table. Impossible numbers are NaN; a command with such numbers is left out.

    Infinite heights stay, which mean that the sensor saw no ground.
    """
    if len({len(values) for _, _, values in rows}) > 1:
        raise CaptureError(f"{where}: messages of different lengths; expected one length")
    time, arrival = np.array([row[:2] for row in rows]).T
    value = np.array([row[2] for row in rows], float)
    possible = np.abs(value) <= LARGEST
    if part == "height":
        possible |= np.isinf(value)
    table = Table(time, arrival, np.where(possible, value, np.nan), frame)
    if part in INPUTS:
        kept = possible.all(axis=1)
        table = Table(time[kept], arrival[kept], value[kept], frame)
    return table


def _links(message: Any) -> Links:
    """Return the links of a TFMessage."""
    links = {}
    for link in message.transforms:
        t = link.transform.translation
        q = link.transform.rotation
        transform = Transform(np.array((t.x, t.y, t.z)), np.array((q.x, q.y, q.z, q.w)))
        links[link.child_frame_id] = link.header.frame_id, transform
    return links


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
    steps = np.diff(time)
    if steps.size and steps.min() < -WENT_BACK_S:
        worst = int(np.argmin(steps))
        raise CaptureError(
            f"{where}: its time goes back by {-steps[worst]:.3f} s after {time[worst]:.3f} s; "
            "expected the log of one run"
        )
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
        "gps": lambda m: [m.latitude, m.longitude, m.altitude] if m.status.status >= 0 else None,
        "gps_velocity": lambda m: _xyz(m.vector if hasattr(m, "vector") else _twist(m).linear),
        "magnetometer": lambda m: _xyz(m.magnetic_field),
        "barometer": lambda m: [m.fluid_pressure],
        "height": lambda m: [m.range],
        "joints": JointColumns(params, topic_map),
        "wheel_odometry": lambda m: [
            *_xyz(_twist(m).linear)[:2],
            _twist(m).angular.z,
        ],
        "wheel_loads": lambda m: list(m.data),
        "rotor_commands": lambda m: [float(m.mode), *m.value],
        "wheel_commands": lambda m: _wheel_command(m, len(params.wheels)),
        "wind": lambda m: _xyz(m.vector),
        "reference": _reference,
    }


def _xyz(vector: Any) -> list[float]:
    return [vector.x, vector.y, vector.z]


def _twist(message: Any) -> Any:
    """Return the twist in a message, with covariance or without."""
    return getattr(message.twist, "twist", message.twist)


def _imu(message: Any, oriented: bool) -> list[float]:
    """Return force, rates and orientation; zeros for an orientation that is unknown."""
    q = message.orientation
    turn = [q.x, q.y, q.z, q.w]
    if not oriented or message.orientation_covariance[0] == -1.0:  # as sensor_msgs/Imu says
        turn = [0.0] * 4
    return _xyz(message.linear_acceleration) + _xyz(message.angular_velocity) + turn


def _wheel_command(message: Any, wheels: int) -> list[float]:
    """Return steering, drive and brake torques; an empty list is 0 for all wheels."""
    torques = (message.drive_torque, message.brake_torque)
    drive, brake = (list(each) or [0.0] * wheels for each in torques)
    return [message.steering_angle, *drive, *brake]


def _reference(message: Any) -> list[float]:
    """Return position, orientation and velocity (in body axes, NaN if a pose has none)."""
    pose = getattr(message.pose, "pose", message.pose)
    q = pose.orientation
    velocity = _xyz(message.twist.twist.linear) if hasattr(message, "twist") else [np.nan] * 3
    return [*_xyz(pose.position), q.x, q.y, q.z, q.w, *velocity]


class JointColumns:
    """Rates, angles and steering of the wheels, struts and rotors from a JointState.

    Each has one number for every wheel or rotor; NaN where a joint was not recorded. `missing`
    holds the wheels' joints that no message had.
    """

    def __init__(self, params: VehicleParameters, topic_map: TopicMap) -> None:
        self._wheels = [topic_map.wheels.get(w, f"wheel_{w}_joint") for w in params.wheels]
        self._steering = [topic_map.steering.get(w, f"steer_{w}_joint") for w in params.wheels]
        self._others = [f"strut_{w}_joint" for w in params.wheels]
        self._rotors = [f"rotor_{j + 1}_joint" for j in range(params.rotors)]
        self._explicit = {*topic_map.wheels.values(), *topic_map.steering.values()}
        self.missing: list[str] = []

    def __call__(self, message: Any) -> list[float] | None:
        """Return rates, steering, angles, struts and rotor speeds; None without the wheels."""
        where = {name: k for k, name in enumerate(message.name)}
        absent = [name for name in self._wheels if name not in where]
        named = sorted(self._explicit - where.keys())
        if named:
            raise ConfigError(
                f"joint_states: there is no {named[0]}; it has {', '.join(message.name)}"
            )
        if absent:
            self.missing = absent
            return None

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

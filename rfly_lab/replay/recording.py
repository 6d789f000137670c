# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A recorded drive or flight as samples of sensors, in the order in which they arrived aboard."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rfly_amphibious.sensors import samples
from rfly_amphibious.sensors.sensor_parameters import Encoders, LoadCells, Sensor, SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters
from rfly_common.arrays import Floats
from rfly_common.errors import CaptureError, ConfigError
from rfly_common.frames import (
    flu_to_frd,
    ned_to_enu,
    quat_multiply,
    quat_ned_frd_to_enu_flu,
    quat_rotate,
    quat_to_euler,
)
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, GeoPoint, geo_point
from rfly_common.untrusted_files.message_log import LoggedTables, MessageLog, Table, open_log
from rfly_lab.replay.log_tables import (
    INPUTS,
    columns_of,
    gap_note,
    mount_of,
    on_clock_of_imu,
    read_parts,
)
from rfly_lab.replay.topic_map import TopicMap
from rfly_terrain.files.terrain_message import msg_to_height_map
from rfly_terrain.height_map.height_map import HeightMap

ORDER = ("wheel_loads", "joints", "gps", "magnetometer", "barometer", "height", "imu")
"""Kinds of samples, in the order in which the estimator takes those that arrive together."""
SAME_FIX_S = 1e-3
"""Largest difference between the stamps of a position and of its velocity, s."""
LONG_GAP_S = 1.0
"""Time without messages of a sensor that is a gap, s; for the IMU it is the estimator's own."""
SAME_PLACE = 1e-6
"""Difference below which a mounting in the log is that of the sensors' set, m and rad."""
MOST_RATE = 10_000.0
"""Largest rate of a sensor, Hz; the estimator's history has room for as many samples."""
OTHER_RATE = 0.1
"""Share by which a recorded rate differs from the set's before it replaces it."""
HALF_TURN_ABOUT_X = np.array((1.0, 0.0, 0.0, 0.0))
"""Rotation between FRD and FLU axes, x y z w."""


@dataclasses.dataclass(frozen=True)
class ReferenceTrack:
    """Recorded poses to compare with, in the world of their own frame."""

    time: Floats
    position: Floats
    """Positions, m, (k, 3)."""
    orientation: Floats
    """Quaternions x y z w, body -> world, (k, 4)."""
    velocity: Floats
    """Velocities in the world, m/s, (k, 3); NaN if only poses were recorded."""


@dataclasses.dataclass(frozen=True)
class Recording:
    """A log as the estimator takes it."""

    name: str
    topics: dict[str, str]
    """Topic of each part."""
    readings: dict[str, Any]
    """All samples of each kind in ORDER, such as `ImuSamples`."""
    arrivals: dict[str, Floats]
    """Times at which they were logged, s."""
    sensors: SensorParameters
    """Sensors that were recorded, at their recorded places and rates."""
    geo_origin: GeoPoint
    origin_known: bool
    """True if the log or a file gives the world's origin; else it is the first fix."""
    terrain: HeightMap | None
    reference: ReferenceTrack | None
    commands: dict[str, Table]
    """Tables `rotor_commands`, `wheel_commands` and `wind`, as far as they were recorded."""
    notes: tuple[str, ...]
    """Topics that were not used, gaps, and what was assumed."""

    def in_order(self) -> Iterator[tuple[str, Any]]:
        """Yield kind and sample, one at a time, in the order of arrival."""
        kinds = [kind for kind in ORDER if kind in self.readings]
        arrival = np.concatenate([self.arrivals[kind] for kind in kinds])
        counts = [self.arrivals[kind].size for kind in kinds]
        order = np.repeat(np.arange(len(kinds)), counts)
        row = np.concatenate([np.arange(count) for count in counts])
        for k in np.lexsort((row, order, arrival)).tolist():
            kind = kinds[order[k]]
            readings = self.readings[kind]
            one = slice(row[k], row[k] + 1)
            yield kind, type(readings)._make(part[one] for part in readings)


def read_recording(
    path: Path,
    params: VehicleParameters,
    sensors: SensorParameters,
    estimator: EstimatorParameters,
    topic_map: TopicMap | None = None,
    namespace: str | None = None,
    terrain: HeightMap | None = None,
) -> Recording:
    """Read a recording of ROS 2 messages (`open_bag`).

    `sensors`: noise of the sensors, and their places where the log lacks them. `terrain`:
    map of the ground, by default the recorded one. Raise ConfigError for a topic that is missing or
    ambiguous, CaptureError for a file that cannot be read or whose time goes back.
    """
    topic_map = topic_map or TopicMap()
    columns = columns_of(params, topic_map)
    with open_log(path) as log:
        topics, notes = topic_map.resolve(path.name, log.topics, namespace)
        notes += [f"{topic} is not used: {reason}" for topic, reason in log.left_out.items()]
        raw = read_parts(path.name, log, topics, columns)
        place = _recorded_origin(log)
    if "imu" not in raw.tables:
        raise ConfigError(f"{path.name}: no messages on {topics['imu']}; expected some of an IMU")

    tables = on_clock_of_imu(path.name, topics, raw.tables)
    notes += _gaps(topics, tables, estimator)
    reader = _Reader(path.name, params, sensors, topic_map, raw, notes)
    reader.read(tables)
    _check_commands(path.name, topics, tables, params)
    if terrain is None and "terrain" in raw.first:
        terrain = msg_to_height_map(raw.first["terrain"])

    # origin of the world
    origin = topic_map.geo_origin or (terrain.geo_origin if terrain is not None else None) or place
    known = origin is not None
    fixes = reader.readings.get("gps")
    if origin is None:
        origin = DEFAULT_GEO_ORIGIN if fixes is None else _first_fix(path.name, fixes)
    # poses to compare with
    reference, lost = _reference_of(tables)
    if lost:
        raw.left_out.add(topics["reference"], "NaN in its pose", lost)
    if raw.left_out:
        notes.append(raw.left_out.text())
    return Recording(
        name=path.name,
        topics={part: topic for part, topic in topics.items() if part in tables},
        readings=reader.readings,
        arrivals=reader.arrivals,
        sensors=reader.sensors,
        geo_origin=geo_point(origin, f"{path.name}: geo_origin"),
        origin_known=known,
        terrain=terrain,
        reference=reference,
        commands={part: tables[part] for part in INPUTS if part in tables},
        notes=tuple(notes),
    )


def _check_commands(
    name: str, topics: dict[str, str], tables: dict[str, Table], params: VehicleParameters
) -> None:
    """Raise ConfigError for commands to another number of rotors or wheels."""
    wheels = len(params.wheels)
    for part, width, motors in (
        ("rotor_commands", 1 + params.rotors, f"{params.rotors} rotors"),
        ("wheel_commands", 1 + 2 * wheels, f"{wheels} wheels"),
    ):
        if part in tables and tables[part].value.shape[1] != width:
            raise ConfigError(
                f"{name}: {topics[part]}: commands for another number of motors; "
                f"expected those for {motors} of {params.name}"
            )


def _recorded_origin(log: MessageLog) -> tuple[float, ...] | None:
    """Return the place that `rfly sim run --mcap` wrote into a log; None if there is none."""
    words = log.metadata("scenario").get("geo_origin", "").split()
    return tuple(map(float, words)) if len(words) == 3 else None


def _first_fix(name: str, fixes: samples.GpsSamples) -> tuple[float, ...]:
    finite = fixes.geodetic[np.isfinite(fixes.geodetic).all(axis=1)]
    if not len(finite):
        raise CaptureError(f"{name}: no fix with finite numbers; expected one")
    return tuple(finite[0].tolist())


def _gaps(
    topics: dict[str, str], tables: dict[str, Table], estimator: EstimatorParameters
) -> list[str]:
    """Return notes on the gaps of all sensors."""
    notes = []
    for part in ("imu", "gps", "magnetometer", "barometer", "joints", "wheel_odometry"):
        if part in tables:
            longest = estimator.silence if part == "imu" else LONG_GAP_S
            notes += gap_note(topics[part], tables[part].time, longest)
    return notes


def _reference_of(tables: dict[str, Table]) -> tuple[ReferenceTrack | None, int]:
    """Return the poses to compare with, if any, and the number of those that are NaN."""
    if "reference" not in tables:
        return None, 0
    table = tables["reference"]
    finite = np.isfinite(table.value[:, :7]).all(axis=1)
    time, first = np.unique(table.time[finite], return_index=True)
    rows = table.value[finite][first]
    turn = rows[:, 3:7]
    lengths = np.linalg.norm(turn, axis=1, keepdims=True)
    turn = turn / np.where(lengths > 0.0, lengths, np.nan)
    velocity = quat_rotate(turn, rows[:, 7:10])
    reference = ReferenceTrack(time, rows[:, :3], turn, np.asarray(velocity, float))
    return reference, int(np.count_nonzero(~finite))


class _Reader:
    """Converts tables to samples, and adapts the sensors' set to what was recorded."""

    def __init__(
        self,
        name: str,
        params: VehicleParameters,
        sensors: SensorParameters,
        topic_map: TopicMap,
        raw: LoggedTables,
        notes: list[str],
    ) -> None:
        self._name = name
        self._params = params
        self._map = topic_map
        self._raw = raw
        self._notes = notes
        self._set = sensors
        self.sensors = SensorParameters(name=sensors.name)
        self.readings: dict[str, Any] = {}
        self.arrivals: dict[str, Floats] = {}

    def read(self, tables: dict[str, Table]) -> None:
        """Convert the tables of all sensors."""
        self._read_imu(tables["imu"])
        if "gps" in tables:
            self._read_gps(tables["gps"], tables.get("gps_velocity"))
        if "magnetometer" in tables:
            table = tables["magnetometer"]
            field = self._in_flu(table.value, table.frame)
            self._keep("magnetometer", table, samples.MagnetometerSamples(table.time, field))
        if "barometer" in tables:
            table = tables["barometer"]
            readings = samples.BarometerSamples(table.time, table.value[:, 0])
            self._keep("barometer", table, readings)
        if "height" in tables:
            table = tables["height"]
            self._keep("height", table, samples.HeightSamples(table.time, table.value[:, 0]))

        # wheels
        if "joints" in tables:
            self._read_joints(tables["joints"])
        elif "wheel_odometry" in tables:
            self._read_wheel_odometry(tables["wheel_odometry"])
        if "joints" in self.readings:
            self._read_loads(tables.get("wheel_loads"))

    def _keep(self, kind: str, table: Table, readings: Any, sensor: str = "") -> None:
        """Keep samples if the sensors' set has such a sensor, whose place and rate follow."""
        sensor = sensor or kind
        known = getattr(self._set, sensor)
        if known is None:
            self._notes.append(f"{kind}: sensors {self._set.name!r} have none; it is not used")
            return
        self.readings[kind] = readings
        self.arrivals[kind] = table.arrival
        changes = self._rate(kind, known, table.time)
        if kind not in ("joints", "wheel_loads", "magnetometer"):
            changes |= self._mount(kind, known, table.frame)
        recorded = dataclasses.replace(known, **changes)
        self.sensors = self.sensors.replace(**{sensor: recorded})

    def _rate(self, kind: str, known: Sensor, time: Floats) -> dict[str, Any]:
        """Return the recorded rate if it is not that of the set. Raise CaptureError."""
        steps = np.diff(np.unique(time))
        if not steps.size:
            return {}
        step = float(np.median(steps))
        if step < 1.0 / MOST_RATE:
            raise CaptureError(
                f"{self._name}: {kind}: its stamps are {step:.3g} s apart; "
                f"expected at least {1.0 / MOST_RATE:g} s"
            )
        rate = 1.0 / step
        return {} if abs(rate / known.rate - 1.0) < OTHER_RATE else {"rate": rate}

    def _mount(self, kind: str, known: Sensor, frame: str) -> dict[str, Any]:
        """Return place, and axes of an IMU, by /tf_static if they are not those of the set."""
        mount = mount_of(self._raw.links, frame)
        if mount is None:
            if kind == "imu":
                self._notes.append(
                    f"/tf_static does not say where {frame or 'the IMU'} is: "
                    f"its place is that of sensors {self._set.name!r}"
                )
            return {}

        # place
        changes: dict[str, Any] = {}
        if np.abs(mount.translation - known.position).max() > SAME_PLACE:
            changes["position"] = tuple(float(x) for x in mount.translation)

        # axes
        if kind == "imu":
            turn = mount.quat_xyzw
            if self._is_frd(frame) and frame.split("/")[-1] != "base_link_frd":
                turn = quat_multiply(turn, HALF_TURN_ABOUT_X)
            rotation = quat_to_euler(np.asarray(turn, float))
            assert self._set.imu is not None
            if np.abs(rotation - self._set.imu.rotation).max() > SAME_PLACE:
                changes["rotation"] = tuple(float(angle) for angle in rotation)
        return changes

    def _is_frd(self, frame: str) -> bool:
        if self._map.axes is not None:
            return self._map.axes == "frd"
        return frame.endswith("frd")

    def _in_flu(self, vectors: Floats, frame: str) -> Floats:
        return np.asarray(flu_to_frd(vectors), float) if self._is_frd(frame) else vectors

    def _read_imu(self, table: Table) -> None:
        force = self._in_flu(table.value[:, :3], table.frame)
        rates = self._in_flu(table.value[:, 3:6], table.frame)
        turn = table.value[:, 6:10]
        if self._is_frd(table.frame):
            turn = np.asarray(quat_ned_frd_to_enu_flu(turn), float)
        if self._set.imu is None:
            raise ConfigError(f"sensors {self._set.name!r}: there is no imu; expected its noise")
        self._keep("imu", table, samples.ImuSamples(table.time, force, rates, turn))

    def _read_gps(self, table: Table, velocities: Table | None) -> None:
        """Pair positions with the velocities of the same time; others are without one."""
        velocity = np.full((table.time.size, 3), np.nan)
        arrival = table.arrival.copy()

        # the velocity next in time, if it is of the same fix
        if velocities is not None:
            order = np.argsort(velocities.time, kind="stable")
            after = np.searchsorted(velocities.time, table.time, sorter=order)
            for place in (after - 1, after):
                near = order[place.clip(0, order.size - 1)]
                same = np.abs(velocities.time[near] - table.time) <= SAME_FIX_S
                velocity[same] = velocities.value[near[same]]
                arrival[same] = np.maximum(table.arrival, velocities.arrival[near])[same]
            if velocities.frame.endswith("ned"):
                velocity = np.asarray(ned_to_enu(velocity), float)

        # fixes without one
        alone = int(np.isnan(velocity).any(axis=1).sum())
        if alone:
            self._notes.append(f"gps: {alone} of {table.time.size} fixes without a velocity")
        readings = samples.GpsSamples(table.time, table.value, velocity)
        self._keep("gps", table._replace(arrival=arrival), readings)

    def _read_joints(self, table: Table) -> None:
        wheels = len(self._params.wheels)
        bounds = wheels * np.arange(1, 5)
        rate, steering, angle, strut, rotor = np.split(table.value, bounds, axis=1)

        # an encoder may give only its counts, or only its speed
        step = np.diff(table.time, prepend=table.time[0])[:, None]
        if np.isnan(rate).all():
            moved = np.diff(angle, axis=0, prepend=angle[:1])
            rate = np.divide(moved, step, out=np.zeros_like(moved), where=step > 0.0)
        if np.isnan(angle).all():
            angle = np.cumsum(np.nan_to_num(rate) * step, axis=0)
        self._keep_joints(table, rate, steering, angle, strut, rotor)

    def _read_wheel_odometry(self, table: Table) -> None:
        """Take speed and yaw rate for wheels that roll and steer as these demand."""
        hubs = self._params.hub_position
        forward, left, turn = table.value.T
        if self._is_frd(table.frame):
            left = -left
            turn = -turn

        # velocities of the hubs
        along = forward[:, None] - turn[:, None] * hubs[:, 1]
        across = left[:, None] + turn[:, None] * hubs[:, 0]

        # wheels that roll along them
        back = np.where(along < 0.0, -1.0, 1.0)
        rate = back * np.hypot(along, across) / self._params.rolling_radius
        steering = np.arctan2(back * across, back * along)

        # angles add up
        step = np.diff(table.time, prepend=table.time[0])[:, None]
        angle = np.cumsum(rate * step, axis=0)
        unknown = np.full_like(rate, np.nan)
        rotors = np.full((table.time.size, self._params.rotors), np.nan)
        self._keep_joints(table, rate, steering, angle, unknown, rotors)

    def _keep_joints(self, table: Table, *parts: Floats) -> None:
        rate, steering, angle, strut, rotor = parts
        unknown = np.full_like(strut, np.nan)
        joints = samples.JointSamples(
            table.time, angle, rate, steering, strut, unknown, np.full_like(rotor, np.nan), rotor
        )
        if self._set.encoders is None:
            encoders = Encoders(rate=100.0, wheel_counts=0, steering_counts=0)
            self._set = self._set.replace(encoders=encoders)
        self._keep("joints", table, joints, "encoders")

    def _read_loads(self, table: Table | None) -> None:
        """Keep the loads of the wheels, or assume them for a vehicle that never flies."""
        joints = self.readings["joints"]
        wheels = len(self._params.wheels)
        if table is not None and table.value.shape[1] != wheels:
            raise ConfigError(
                f"{self._name}: wheel_loads: {table.value.shape[1]} numbers, expected {wheels}, "
                f"one for each wheel of {self._params.name}"
            )
        known = self._set.wheel_loads
        if self._map.on_wheels:
            load = np.tile(self._params.static_load, (joints.time.size, 1))
            arrival = self.arrivals["joints"]
            table = Table(joints.time, arrival, load, "")
            self._set = self._set.replace(wheel_loads=known or LoadCells(rate=100.0))
        elif table is None:
            del self.readings["joints"]
            self._notes.append(
                "wheels are not used: there are no wheel_loads; 'on_wheels: true' in the file of "
                "--topics says that it drives throughout"
            )
            return
        elif known is not None and np.isnan(self._raw.tables["wheel_loads"].time[0]):
            # without a stamp: time of the sensor's last sample, as the node takes it
            time = np.floor(table.time * known.rate + 1e-4) / known.rate
            table = table._replace(time=time)
        self._keep("wheel_loads", table, samples.WheelLoadSamples(table.time, table.value))

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Initial alignment of the filter.

Level comes from gravity, heading from the Earth's magnetic field, and position from the first GPS
fixes, or from the world's origin where a parameter allows it. The readings of each kind are kept in
the order of their times, and only those that may still be needed: a sample of the IMU costs the
same however long the GPS is awaited.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_autonomy.estimation.error_state import (
    ATTITUDE,
    BARO_BIAS,
    ERRORS,
    FIELD_BIAS,
    FORCE_BIAS,
    GROUND_ERROR,
    GYRO_BIAS,
    POSITION,
    VELOCITY,
)
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters, turn_on_bias
from rfly_autonomy.estimation.filter_records import (
    BOOK,
    GPS_WITHOUT_VELOCITY,
    IMU_SAMPLE,
    KIND_FIELD,
    KIND_GPS,
    KIND_HEIGHT,
    KIND_JOINTS,
    KIND_LOADS,
    KIND_ORIENTATION,
    KIND_PRESSURE,
    MAX_WHEELS,
    MEASUREMENT,
    SAME_TIME,
    STATE,
    Constants,
)
from rfly_autonomy.estimation.measurement_models import (
    expect_field,
    expect_gps_position,
    expect_height,
    expect_orientation,
    expect_pressure,
)
from rfly_autonomy.estimation.measurement_update import bend_ground, leave_map, update
from rfly_common.arrays import Floats
from rfly_common.frames import euler_to_quat, quat_to_euler
from rfly_common.physics import GRAVITY
from rfly_terrain.height_map.ground import GroundGrid

FAR = 1000.0
"""Standard deviation of an unknown position, m."""
START = 1.0
"""Standard deviation across the ground of a vehicle that begins without a GPS fix, m."""
MOVING_SPEED = 0.5
"""Standard deviation of the speed of a vehicle that does not stand, m/s."""
UNKNOWN_SPEED = 20.0
"""Standard deviation of the speed of a vehicle that moves and whose GPS measures none, m/s."""
UNSTEADY_FORCE = 0.01
"""Mean acceleration of a standing vehicle, whose springs may still settle, m/s²."""
MOST_WAITING = 10_000
"""Most readings of a kind that are held, such as those of a clock that is ahead of the IMU's."""
WAY_FACTOR = 5.0
"""Factor on the way of a standing vehicle's wheels: an alignment takes longer than a standstill."""
KINDS = 7
"""Number of kinds of measurements."""


class Motion(NamedTuple):
    """Sample of the IMU, in the order of IMU_SAMPLE."""

    time: float
    source: float
    force: Floats
    rates: Floats


class Reading(NamedTuple):
    """Measurement, in the order of MEASUREMENT."""

    time: float
    kind: int
    values: Floats


_TIME = itemgetter(0)
_ORDER = itemgetter(0, 1)


class Alignment:
    """Collects readings until there are enough for a first state.

    A vehicle that moves starts from the IMU's own orientation.
    """

    def __init__(
        self, parameters: EstimatorParameters, sensors: SensorParameters, constants: Constants
    ) -> None:
        self._p = parameters
        self._sensors = sensors
        self._c = constants
        self._gps_latency = sensors.gps.latency if sensors.gps is not None else 0.0

        self.imu: deque[Motion] = deque()
        """Samples of the last seconds."""
        self._readings: list[list[Reading]] = [[] for _ in range(KINDS)]
        """Readings that may still be needed, by kind, each in the order of their times."""
        self._waiting_since = math.inf
        """Time of the first sample, or later if the vehicle moved when it might have begun, s."""

    def add_imu(self, time: float, motion: Floats) -> None:
        """Take in force and rates (6,) of the IMU, and drop samples that are too old."""
        if self.imu and time <= self.imu[-1].time:
            return
        self.imu.append(Motion(time, 0.0, motion[:3].copy(), motion[3:].copy()))
        self._waiting_since = min(self._waiting_since, time)

        begin = time - self._p.align_time - SAME_TIME
        while self.imu[0].time < begin:
            self.imu.popleft()

        oldest = self._oldest
        for rows in self._readings:
            if rows and rows[0].time < oldest:
                del rows[: bisect_left(rows, oldest, key=_TIME)]

    def add(self, kind: int, time: float, values: Floats) -> None:
        """Take in a measurement."""
        if time < self._oldest:
            return
        padded = np.zeros(MEASUREMENT["values"].shape)
        padded[: len(values)] = values
        rows = self._readings[kind]
        insort(rows, Reading(time, kind, padded), key=_TIME)
        if len(rows) > MOST_WAITING:
            del rows[0]

    @property
    def _oldest(self) -> float:
        """Time of the oldest readings that are used, which may be late fixes, s."""
        return self.imu[0].time - self._gps_latency if self.imu else -math.inf

    def ahead(self, most: float) -> list[Reading]:
        """Return the readings after the IMU's last sample, up to `most` s, in order of time."""
        begin = self.imu[-1].time + SAME_TIME
        later = []
        for rows in self._readings:
            first = bisect_right(rows, begin, key=_TIME)
            later += rows[first : bisect_right(rows, begin + most, key=_TIME)]
        return sorted(later, key=_ORDER)

    def is_ready(self) -> bool:
        """Return whether there are enough readings to begin."""
        if not self.imu:
            return False
        duration = self.imu[-1].time - self.imu[0].time
        if duration < self._p.align_time - 2 * SAME_TIME:
            return False
        return not self.waits_for or self._may_begin_without_gps()

    @property
    def waits_for(self) -> str:
        """Sensor without whose readings it cannot begin, `imu` or `gps`; "" if both have come."""
        if not self.imu:
            return "imu"
        fixes = self._readings[KIND_GPS]
        heard = bool(fixes) and fixes[0].time <= self.imu[-1].time + SAME_TIME
        return "gps" if self._sensors.gps is not None and not heard else ""

    def _may_begin_without_gps(self) -> bool:
        """Return whether it has waited long enough for the GPS, and the vehicle stands.

        A vehicle that moves is asked again after as much time as an alignment takes.
        """
        wait = self._p.align_without_gps
        now = self.imu[-1].time
        if wait == 0.0 or now - self._waiting_since < wait - SAME_TIME:
            return False
        self._waiting_since = now - wait + self._p.align_time
        (force, _), (rates, _) = self._means()
        return self._standing(force, rates)

    def _means(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Return the settled forces and rates of the samples; see `_settled`."""
        samples = np.array(list(self.imu), IMU_SAMPLE)
        return _settled(samples["force"]), _settled(samples["rates"])

    def _rows(self, kind: int) -> list[Reading]:
        """Return the measurements of a kind within the IMU's samples, allowing for late fixes."""
        rows = self._readings[kind]
        return rows[: bisect_right(rows, self.imu[-1].time + SAME_TIME, key=_TIME)]

    def _standing(self, force: Floats, rates: Floats) -> bool:
        """Return whether the vehicle has stood, by mean force and rates, wheels, loads and GPS."""
        if np.linalg.norm(rates) > self._p.align_rate:
            return False
        if abs(np.linalg.norm(force) - GRAVITY) > self._p.align_force:
            return False

        # wheels
        wheels = self._c.radius.size
        joints = self._rows(KIND_JOINTS)
        if joints:
            angles = np.array([row.values[2 * wheels : 3 * wheels] for row in joints])
            ways = np.ptp(angles, axis=0) * self._c.radius
            if ways.max() > WAY_FACTOR * self._p.still_way:
                return False
        loads = self._rows(KIND_LOADS)
        if loads:
            return bool(loads[-1].values[:wheels].sum() >= self._c.still_load)

        # a vehicle without wheel loads might hover
        speeds = [row.values[3:6] for row in self._rows(KIND_GPS) if _has_velocity(row)]
        return not speeds or bool(np.linalg.norm(np.mean(speeds, axis=0)) < MOVING_SPEED)

    def begin(self, ground: GroundGrid) -> tuple[Any, Any, Floats]:
        """Return the first state, book (records, (1,)) and covariance, at the IMU's last sample.

        The alignment has to be ready.
        """
        (force, force_spread), (rates, rates_spread) = self._means()
        standing = self._standing(force, rates)
        oriented = self._rows(KIND_ORIENTATION)
        fields = self._rows(KIND_FIELD)
        fixes = self._rows(KIND_GPS)
        field = np.mean([row.values[:3] for row in fields], axis=0) if fields else None

        # attitude, position and velocity
        states = np.zeros(1, STATE)
        x = states[0]
        if standing or not oriented:
            x.quaternion = self._levelled(force, field, oriented)
        else:
            x.quaternion = oriented[-1].values[:4]
        if fixes:
            used = fixes if standing else fixes[-1:]
            fix = np.mean([row.values[:6] for row in used], axis=0)
            x.position = fix[:3]
            if not standing:
                x.velocity = fix[3:]

        books = self._first_book()
        book = books[0]
        p = np.diag(self._uncertainty(standing, bool(fixes)) ** 2)

        # every reading corrects the state, and lowers the covariance
        if standing:
            self._use_rest(x, book, p, (force, force_spread), (rates, rates_spread))
            if field is not None:
                self._use_field(x, book, p, field, len(fields))
        if oriented:
            h = np.zeros((3, ERRORS))
            residual = np.empty(3)
            expect_orientation(x, oriented[-1].values, h, residual)
            variance = np.full(3, self._c.ahrs_white**2)
            update(x, book, p, h, residual, variance, math.inf, False)
        if fixes:
            variance = self._c.gps_white**2 / len(used)
            if not standing:
                variance = variance + (self._speed_spread() * self._p.align_time) ** 2
            self._use_fix(x, book, p, fix[:3], variance)
        pressures = self._rows(KIND_PRESSURE)
        if pressures and standing:
            self._use_pressure(x, book, p, [row.values[0] for row in pressures])
        heights = self._rows(KIND_HEIGHT)
        if heights:
            self._use_height(x, book, p, heights[-1].values[:1], ground)
        book.usual_pressure_bias = x.baro_bias
        book.free_altitude = x.position[2]
        book.free_velocity = x.velocity[:2]
        book.free_variance = max(p[VELOCITY, VELOCITY], p[VELOCITY + 1, VELOCITY + 1])
        return states, books, p

    def _first_book(self) -> Any:
        """Return the book (1,) at the IMU's last sample; what has not happened yet is at -inf."""
        books = np.zeros(1, BOOK)
        book = books[0]
        last = self.imu[-1]
        book.time = last.time
        book.rates = last.rates
        book.force = last.force

        loads = self._rows(KIND_LOADS)
        book.wheel_load_time = -math.inf
        if loads:
            book.wheel_load_time = loads[-1].time
            book.wheel_load = loads[-1].values[:MAX_WHEELS]
        book.still_since = book.time
        book.still_angle = -math.inf
        book.last_standstill = -math.inf
        book.last_side_slip = -math.inf
        book.last_lifted = -math.inf
        book.last_accepted = book.time
        book.doubted_since = book.time
        book.last_measured = -math.inf
        book.gps_back_at = -math.inf
        book.height_time = -math.inf
        book.wheels_time = -math.inf
        book.fix_time = -math.inf
        book.realigned_at = -math.inf
        book.free_p = (1.0, 0.0, 0.01)
        return books

    def _levelled(self, force: Floats, field: Floats | None, oriented: list[Reading]) -> Floats:
        """Return the attitude (4,) w x y z of a vehicle that stands.

        Gravity gives roll and pitch. The field, or else the IMU's own attitude, gives the yaw.
        """
        roll = math.atan2(force[1], force[2])
        pitch = math.atan2(-force[0], math.hypot(force[1], force[2]))
        yaw = 0.0
        if field is not None:
            sr = math.sin(roll)
            cr = math.cos(roll)
            sp = math.sin(pitch)
            cp = math.cos(pitch)
            forward = cp * field[0] + sp * sr * field[1] + sp * cr * field[2]
            left = cr * field[1] - sr * field[2]
            yaw = math.atan2(self._c.field[1], self._c.field[0]) - math.atan2(left, forward)
        elif oriented:
            yaw = quat_to_euler(np.roll(oriented[-1].values[:4], -1))[2]
        return np.asarray(np.roll(euler_to_quat((roll, pitch, yaw)), 1), np.float64)

    def _speed_spread(self) -> float:
        """Return the standard deviation of the speed of a vehicle that does not stand, m/s."""
        fixes = self._rows(KIND_GPS)
        return MOVING_SPEED if not fixes or _has_velocity(fixes[-1]) else UNKNOWN_SPEED

    def _uncertainty(self, standing: bool, fixed: bool) -> Floats:
        """Return the standard deviations (27,) before the first readings are used.

        `fixed`: there is a GPS fix. Without one the vehicle begins at the world's origin.
        """
        p = self._p
        sensors = self._sensors
        sigma: Floats = self._c.markov_sigma.copy()
        sigma[POSITION : POSITION + 3] = FAR if fixed else (START, START, FAR)
        sigma[VELOCITY : VELOCITY + 3] = 2.0 * UNSTEADY_FORCE if standing else self._speed_spread()
        sigma[ATTITUDE : ATTITUDE + 3] = 0.1, 0.1, 1.0

        turn_on = turn_on_bias(sensors.imu, 9)
        sigma[GYRO_BIAS : GYRO_BIAS + 3] = np.hypot(turn_on[3:6], p.gyro_bias)
        sigma[FORCE_BIAS : FORCE_BIAS + 3] = np.hypot(turn_on[:3], p.force_bias)
        sigma[BARO_BIAS] = turn_on_bias(sensors.barometer, 1)[0]
        sigma[FIELD_BIAS : FIELD_BIAS + 3] = turn_on_bias(sensors.magnetometer, 3)
        if not self._c.ground_known:
            sigma[GROUND_ERROR] = FAR
        return sigma

    def _use_rest(
        self,
        x: Any,
        book: Any,
        p: Floats,
        force: tuple[Floats, Floats],
        rates: tuple[Floats, Floats],
    ) -> None:
        """Take the mean force for gravity's, and the mean rates for the gyroscope's bias.

        Each comes with its change during the alignment, which is a part of its uncertainty.
        """
        c = self._c
        duration = 0.5 * self._p.align_time

        # gravity
        h = np.zeros((3, ERRORS))
        expected = np.empty(3)
        expect_field(x, np.array((0.0, 0.0, GRAVITY)), h, expected)
        h[:, FIELD_BIAS : FIELD_BIAS + 3] = 0.0
        h[:, FORCE_BIAS : FORCE_BIAS + 3] = np.eye(3)
        variance = c.force_noise**2 / duration + UNSTEADY_FORCE**2 + force[1] ** 2
        update(x, book, p, h, force[0] - expected, variance, math.inf, False)

        # gyroscope
        h = np.zeros((3, ERRORS))
        h[:, GYRO_BIAS : GYRO_BIAS + 3] = np.eye(3)
        variance = c.gyro_noise**2 / duration + rates[1] ** 2
        update(x, book, p, h, rates[0] - x.gyro_bias, variance, math.inf, False)

    def _use_field(self, x: Any, book: Any, p: Floats, field: Floats, count: int) -> None:
        """Correct by the mean (3,) of `count` readings of the magnetic field."""
        h = np.zeros((3, ERRORS))
        expected = np.empty(3)
        expect_field(x, self._c.field, h, expected)
        variance = np.full(3, self._c.field_white**2 / count)
        update(x, book, p, h, field - expected, variance, math.inf, False)

    def _use_fix(self, x: Any, book: Any, p: Floats, position: Floats, variance: Floats) -> None:
        """Correct by a position (3,) of the GPS antenna."""
        h = np.zeros((3, ERRORS))
        expected = np.empty(3)
        expect_gps_position(x, self._c.lever_gps, h, expected)
        update(x, book, p, h, position - expected, variance, math.inf, False)

    def _use_pressure(self, x: Any, book: Any, p: Floats, pressures: list[float]) -> None:
        """Correct by the mean of several pressures, Pa."""
        c = self._c
        h = np.zeros((1, ERRORS))
        expected = np.empty(1)
        expect_pressure(x, c.lever_baro, c.altitude, h, expected)
        variance = np.array([c.pressure_white**2 / len(pressures)])
        update(x, book, p, h, np.mean(pressures) - expected, variance, math.inf, False)

    def _use_height(self, x: Any, book: Any, p: Floats, height: Floats, ground: GroundGrid) -> None:
        """Correct by a height above ground (1,), or leave the map if it contradicts the map."""
        c = self._c
        h = np.zeros((1, ERRORS))
        expected = np.empty(1)
        spread_x, spread_y = np.sqrt(np.diag(p)[POSITION : POSITION + 2]).tolist()
        bend_variance = expect_height(x, ground, c.lever_height, spread_x, spread_y, h, expected)
        bend_ground(book, p, bend_variance)

        gate = c.gates[1]
        variance = np.array([c.height_white**2])
        residual = height - expected
        if update(x, book, p, h, residual, variance, gate, c.ground_known) > gate:
            leave_map(book, p, residual[0], c)


def _has_velocity(row: Reading) -> bool:
    """Return whether a fix comes with a velocity."""
    return bool(row.values[GPS_WITHOUT_VELOCITY] == 0.0)


def _settled(rows: Floats) -> tuple[Floats, Floats]:
    """Return the mean (3,) of the second half, when springs have settled, and how much it changed.

    The change (3,) is the difference between the means of the last two quarters.
    """
    _, _, third, fourth = (part.mean(axis=0) for part in np.array_split(rows, 4))
    return 0.5 * (third + fourth), np.abs(fourth - third)

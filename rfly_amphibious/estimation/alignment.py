"""Initial alignment: level from gravity, heading from the Earth's magnetic field, position from the
first GPS fixes.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from rfly_amphibious.estimation import filter_layout as at
from rfly_amphibious.estimation.estimator_parameters import EstimatorParameters, turn_on_bias
from rfly_amphibious.estimation.measurement_models import (
    expect_field,
    expect_gps_position,
    expect_height,
    expect_orientation,
    expect_pressure,
)
from rfly_amphibious.estimation.measurement_update import bend_ground, leave_map, update
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_common.arrays import Floats
from rfly_common.frames import euler_to_quat, quat_to_euler
from rfly_common.physics import GRAVITY
from rfly_terrain.height_map.ground import GroundGrid

FAR = 1000.0
"""m, standard deviation of what is not known at all"""
MOVING_SPEED = 0.5
"""m/s, standard deviation of the speed of a vehicle that does not stand"""
UNSTEADY_FORCE = 0.01
"""m/s², of a standing vehicle's mean acceleration: springs may still settle"""
MOST_WAITING = 10_000
"""readings that are held while the GPS is waited for"""
WAY_FACTOR = 5.0
"""in the longer time of an alignment wheels may creep farther than in a stand-still's"""


class Alignment:
    """Collects readings until a first state can be told. A vehicle that moves starts from the IMU's
    own orientation.
    """

    def __init__(
        self, parameters: EstimatorParameters, sensors: SensorParameters, constants: at.Constants
    ) -> None:
        self._p = parameters
        self._sensors = sensors
        self._c = constants
        self.imu: deque[Floats] = deque()
        self.log: list[Floats] = []

    def add_imu(self, row: Floats) -> None:
        """Of the IMU's log; readings older than the time of an alignment are forgotten."""
        if self.imu and row[at.IMU_TIME] <= self.imu[-1][at.IMU_TIME]:
            return
        self.imu.append(row.copy())
        begin = row[at.IMU_TIME] - self._p.align_time - at.SAME_TIME
        while self.imu[0][at.IMU_TIME] < begin:
            self.imu.popleft()
        if len(self.log) > MOST_WAITING:
            late = begin - (self._sensors.gps.latency if self._sensors.gps is not None else 0.0)
            self.log = [entry for entry in self.log if entry[at.LOG_TIME] >= late][-MOST_WAITING:]

    def add(self, row: Floats) -> None:
        """Of the measurements' log."""
        self.log.append(row.copy())

    @property
    def ready(self) -> bool:
        """Whether there is enough to begin with."""
        if (
            not self.imu
            or self.imu[-1][at.IMU_TIME] - self.imu[0][at.IMU_TIME]
            < self._p.align_time - 2 * at.SAME_TIME
        ):
            return False
        return self._sensors.gps is None or bool(self._rows(at.KIND_GPS))

    def _rows(self, kind: int) -> list[Floats]:
        """In time up to the last sample of the IMU."""
        end = self.imu[-1][at.IMU_TIME] + at.SAME_TIME
        begin = self.imu[0][at.IMU_TIME] - (
            self._sensors.gps.latency if self._sensors.gps is not None else 0.0
        )
        return [
            row for row in self.log if row[at.LOG_KIND] == kind and begin <= row[at.LOG_TIME] <= end
        ]

    def _standing(self, force: Floats, rates: Floats) -> bool:
        if (
            np.linalg.norm(rates) > self._p.align_rate
            or abs(np.linalg.norm(force) - GRAVITY) > self._p.align_force
        ):
            return False
        loads = self._rows(at.KIND_LOADS)
        joints = self._rows(at.KIND_JOINTS)
        fixes = self._rows(at.KIND_GPS)
        wheels = self._c.radius.size
        if joints:
            angles = np.array(
                [row[at.LOG_VALUES + 2 * wheels : at.LOG_VALUES + 3 * wheels] for row in joints]
            )
            if (np.ptp(angles, axis=0) * self._c.radius).max() > WAY_FACTOR * self._p.still_way:
                return False
        if loads:
            return bool(
                loads[-1][at.LOG_VALUES : at.LOG_VALUES + wheels].sum() >= self._c.still_load
            )
        speeds = [row[at.LOG_VALUES + 3 : at.LOG_VALUES + 6] for row in fixes]
        return not speeds or bool(np.linalg.norm(np.mean(speeds, axis=0)) < MOVING_SPEED)

    def begin(self, ground: GroundGrid) -> tuple[Floats, Floats]:
        """(state, covariance) at the last sample of the IMU. Only where `ready`."""
        self.log.sort(key=lambda entry: (entry[at.LOG_TIME], entry[at.LOG_KIND]))
        c = self._c
        rows = np.array(self.imu)
        force, force_spread = _settled(rows[:, at.IMU_FORCE : at.IMU_FORCE + 3])
        rates, rates_spread = _settled(rows[:, at.IMU_RATES : at.IMU_RATES + 3])
        standing = self._standing(force, rates)
        oriented = self._rows(at.KIND_ORIENTATION)
        fields = self._rows(at.KIND_FIELD)
        fixes = self._rows(at.KIND_GPS)
        loads = self._rows(at.KIND_LOADS)
        field = (
            np.mean([row[at.LOG_VALUES : at.LOG_VALUES + 3] for row in fields], axis=0)
            if fields
            else None
        )

        x = np.zeros(at.SIZE)
        x[at.TIME] = rows[-1, at.IMU_TIME]
        x[at.RATES : at.RATES + 3] = rows[-1, at.IMU_RATES :]
        x[at.FORCE : at.FORCE + 3] = rows[-1, at.IMU_FORCE : 5]
        x[at.LOAD_TIME] = loads[-1][at.LOG_TIME] if loads else -math.inf
        if loads:
            x[at.LOADS : at.LOADS + at.WHEELS] = loads[-1][
                at.LOG_VALUES : at.LOG_VALUES + at.WHEELS
            ]
        x[at.STILL_SINCE] = x[at.TIME]
        x[at.STILL_ANGLE : at.STILL_ANGLE + at.WHEELS] = -math.inf
        x[at.LAST_STILL] = x[at.LAST_SIDE] = -math.inf
        x[at.CONTACT : at.CONTACT + at.WHEELS] = -math.inf
        x[at.LAST_ACCEPTED : at.LAST_ACCEPTED + len(at.SENSORS)] = x[at.TIME]
        if standing or not oriented:
            x[at.QUATERNION : at.QUATERNION + 4] = self._levelled(force, field, oriented)
        else:
            x[at.QUATERNION : at.QUATERNION + 4] = oriented[-1][at.LOG_VALUES : at.LOG_VALUES + 4]
        sigma = self._uncertainty(standing)
        if fixes:
            used = fixes if standing else fixes[-1:]
            values = np.mean([row[at.LOG_VALUES : at.LOG_VALUES + 6] for row in used], axis=0)
            x[at.POSITION : at.POSITION + 3] = values[:3]
            if not standing:
                x[at.VELOCITY : at.VELOCITY + 3] = values[3:]
        p = np.diag(sigma**2)
        if standing:
            self._use_rest(x, p, (force, force_spread), (rates, rates_spread))
        if field is not None and standing:
            h = np.zeros((3, at.ERRORS))
            expected = np.empty(3)
            expect_field(x, c.field, h, expected)
            variance = np.full(3, c.field_white**2 / len(fields))
            update(x, p, h, field - expected, variance, math.inf, False)
        if oriented:
            h = np.zeros((3, at.ERRORS))
            residual = np.empty(3)
            expect_orientation(x, oriented[-1][at.LOG_VALUES : at.LOG_VALUES + 4], h, residual)
            update(x, p, h, residual, np.full(3, c.ahrs_white**2), math.inf, False)
        if fixes:
            h = np.zeros((3, at.ERRORS))
            expected = np.empty(3)
            expect_gps_position(x, c.lever_gps, h, expected)
            variance = c.gps_white**2 / len(used) + (
                0.0 if standing else (MOVING_SPEED * self._p.align_time) ** 2
            )
            update(x, p, h, values[:3] - expected, variance, math.inf, False)
        pressures = self._rows(at.KIND_PRESSURE)
        if pressures and standing:
            h = np.zeros((1, at.ERRORS))
            expected = np.empty(1)
            expect_pressure(x, c.lever_baro, c.altitude, h, expected)
            read = np.mean([row[at.LOG_VALUES] for row in pressures])
            variance = np.array([c.pressure_white**2 / len(pressures)])
            update(x, p, h, read - expected, variance, math.inf, False)
        heights = self._rows(at.KIND_HEIGHT)
        if heights:
            h = np.zeros((1, at.ERRORS))
            expected = np.empty(1)
            spread_x, spread_y = np.sqrt(np.diag(p)[at.E_POSITION : at.E_POSITION + 2]).tolist()
            bent = expect_height(x, ground, c.lever_height, spread_x, spread_y, h, expected)
            bend_ground(x, p, bent)
            variance = np.array([c.height_white**2])
            residual = heights[-1][2:3] - expected
            if update(x, p, h, residual, variance, c.gates[1], c.ground_known) > c.gates[1]:
                leave_map(x, p, residual[0], c)
        return x, p

    def _levelled(self, force: Floats, field: Floats | None, oriented: list[Floats]) -> Floats:
        """(4,) w x y z as in the state: roll and pitch by gravity, yaw by the field, else by the
        IMU's own attitude.
        """
        roll = math.atan2(force[1], force[2])
        pitch = math.atan2(-force[0], math.hypot(force[1], force[2]))
        if field is not None:
            sr = math.sin(roll)
            cr = math.cos(roll)
            sp = math.sin(pitch)
            cp = math.cos(pitch)
            forward = cp * field[0] + sp * sr * field[1] + sp * cr * field[2]
            left = cr * field[1] - sr * field[2]
            yaw = math.atan2(self._c.field[1], self._c.field[0]) - math.atan2(left, forward)
        elif oriented:
            yaw = quat_to_euler(np.roll(oriented[-1][at.LOG_VALUES : at.LOG_VALUES + 4], -1))[2]
        else:
            yaw = 0.0
        return np.asarray(np.roll(euler_to_quat((roll, pitch, yaw)), 1), np.float64)

    def _uncertainty(self, standing: bool) -> Floats:
        """(27,) standard deviations before the first readings are used."""
        p = self._p
        c = self._c
        sensors = self._sensors
        sigma = c.markov_sigma.copy()
        sigma[at.E_POSITION : at.E_POSITION + 3] = (
            FAR if sensors.gps is not None else (1.0, 1.0, FAR)
        )
        sigma[at.E_VELOCITY : at.E_VELOCITY + 3] = (
            2.0 * UNSTEADY_FORCE if standing else MOVING_SPEED
        )
        sigma[at.E_ATTITUDE : at.E_ATTITUDE + 3] = 0.1, 0.1, 1.0
        turn_on = turn_on_bias(sensors.imu, 9)
        sigma[at.E_GYRO : at.E_GYRO + 3] = np.hypot(turn_on[3:6], p.gyro_bias)
        sigma[at.E_FORCE : at.E_FORCE + 3] = np.hypot(turn_on[:3], p.force_bias)
        sigma[at.E_BARO] = turn_on_bias(sensors.barometer, 1)[0]
        sigma[at.E_FIELD : at.E_FIELD + 3] = turn_on_bias(sensors.magnetometer, 3)
        if not c.ground_known:
            sigma[at.E_GROUND] = FAR
        return sigma

    def _use_rest(
        self, x: Floats, p: Floats, force: tuple[Floats, Floats], rates: tuple[Floats, Floats]
    ) -> None:
        """The mean force is gravity's, the mean rates are the gyroscope's bias; each with what it
        has changed.
        """
        c = self._c
        duration = 0.5 * self._p.align_time
        h = np.zeros((3, at.ERRORS))
        expected = np.empty(3)
        expect_field(x, np.array((0.0, 0.0, GRAVITY)), h, expected)
        h[:, at.E_FIELD : at.E_FIELD + 3] = 0.0
        h[:, at.E_FORCE : at.E_FORCE + 3] = np.eye(3)
        variance = c.force_noise**2 / duration + UNSTEADY_FORCE**2 + force[1] ** 2
        update(x, p, h, force[0] - expected, variance, math.inf, False)
        h = np.zeros((3, at.ERRORS))
        h[:, at.E_GYRO : at.E_GYRO + 3] = np.eye(3)
        variance = c.gyro_noise**2 / duration + rates[1] ** 2
        update(x, p, h, rates[0] - x[at.GYRO_BIAS : at.GYRO_BIAS + 3], variance, math.inf, False)


def _settled(rows: Floats) -> tuple[Floats, Floats]:
    """(3,) the mean of the second half, when springs have settled, and how far its own halves lie
    apart.
    """
    _, _, third, fourth = (part.mean(axis=0) for part in np.array_split(rows, 4))
    return 0.5 * (third + fourth), np.abs(fourth - third)

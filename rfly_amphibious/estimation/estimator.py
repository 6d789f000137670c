"""StateEstimator: an error-state Kalman filter over the vehicle's sensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rfly_amphibious.dynamics.ground import ground_of
from rfly_amphibious.estimation import filter_layout as at
from rfly_amphibious.estimation.alignment import Alignment
from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.estimation.estimator_parameters import EstimatorParameters, constants_of
from rfly_amphibious.estimation.filter_kernels import advance, report
from rfly_amphibious.sensors import samples
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_common.frames import (
    euler_to_quat,
    ned_to_enu,
    quat_conjugate,
    quat_multiply,
    rotation_matrix,
)
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, geo_point, geodetic_to_ned
from rfly_common.physics import GRAVITY, standard_pressure
from rfly_terrain.height_map.height_map import HeightMap

COAST_PERIOD = 0.02
"""s between steps without the IMU"""
LARGEST = 1e9
"""m, m/s, rad/s: an estimate beyond it comes of readings that cannot be"""
MOST_AHEAD = 10.0
"""s after the last sample of the IMU, or what stands for it: what is later is of another clock"""
KINDS = ("wheel_loads", "joints", "gps", "magnetometer", "barometer", "orientation", "height")
"""what measurements of the log are called, in the order of their kinds"""


class StateEstimator:
    """An error-state Kalman filter over IMU, GPS, magnetometer, barometer, wheels and height above
    ground.

    Readings are taken in by their own times, however late they come within the parameters'
    `history`: the filter goes back to the reading's time and on again, so that the result depends
    on what was read, not on the order in which it came. What comes later than that is dropped and
    counted. Where the IMU's time leaps ahead, it is reset. `terrain`: the map the vehicle carries,
    with which height above ground tells altitude; without it the ground below is estimated along.
    `geo_origin`: latitude, longitude (deg) and altitude (m) of the world's origin; by default the
    map's.
    """

    def __init__(
        self,
        parameters: EstimatorParameters,
        sensors: SensorParameters,
        vehicle: VehicleParameters,
        geo_origin: Sequence[float] | None = None,
        terrain: HeightMap | None = None,
    ) -> None:
        if sensors.imu is None:
            raise ConfigError(
                f"sensors {sensors.name!r}: there is no imu, without which nothing can be estimated"
            )
        of_map = terrain.geo_origin if terrain is not None else None
        self.geo_origin = geo_point(geo_origin or of_map or DEFAULT_GEO_ORIGIN, "geo_origin")
        self.parameters, self.sensors, self.vehicle = (
            parameters,
            sensors.at_place(self.geo_origin),
            vehicle,
        )
        mounting = euler_to_quat(sensors.imu.rotation)
        self._mounting = rotation_matrix(mounting)
        self._unmount = quat_conjugate(mounting)
        self._turned = any(sensors.imu.rotation)
        self._lever = np.array(sensors.imu.position, float)
        self._orientation_period = (
            1.0 / parameters.orientation_rate if parameters.orientation_rate > 0.0 else math.inf
        )
        self._keep = max(4, math.ceil(parameters.history * sensors.imu.rate) + 2)
        rows = 2 * self._keep
        self._imu = np.zeros((rows, at.IMU_WIDTH))
        self._log = np.zeros((4 * rows, at.LOG_WIDTH))
        self._kept_x = np.zeros((rows, at.SIZE))
        self._kept_p = np.zeros((rows, at.ERRORS, at.ERRORS))
        self._cursor = np.zeros(rows, np.int64)
        self._x = np.zeros(at.SIZE)
        self._p = np.zeros((at.ERRORS, at.ERRORS))
        self._use(terrain)
        self.diverged = 0
        """how often an estimate was nonsense"""
        self.reset()

    def _use(self, terrain: HeightMap | None) -> None:
        self.terrain = terrain
        self._ground = ground_of(terrain)
        self._constants = constants_of(
            self.parameters, self.sensors, self.vehicle, self.geo_origin[2], terrain is not None
        )

    def reset(self) -> None:
        """To the initial state: it has to be aligned again."""
        self._alignment: Alignment | None = Alignment(
            self.parameters, self.sensors, self._constants
        )
        self._rows = self._count = 0
        self._dirty = 1
        self._real = -1
        self._oriented = -math.inf
        self._estimate: Estimate | None = None
        self.late = dict.fromkeys((*KINDS, "imu"), 0)
        """readings that came too late to be used, by sensor"""
        self.invalid = dict.fromkeys((*KINDS, "imu"), 0)
        """readings with numbers that are not finite, or of a time far ahead"""

    def set_terrain(self, terrain: HeightMap | None) -> None:
        """Another map from now on; what is known of place and motion stays."""
        self._advance()
        self._use(terrain)
        if self._alignment is not None:
            self._alignment = Alignment(self.parameters, self.sensors, self._constants)
            return
        self._x[at.GROUND_ERROR] = self._x[at.OFF_MAP] = self._x[at.GROUND_BENT] = 0.0
        self._p[at.E_GROUND, :] = self._p[:, at.E_GROUND] = 0.0
        self._p[at.E_GROUND, at.E_GROUND] = (
            self.parameters.map_error**2 if terrain is not None else 1e6
        )
        last = self._rows - 1
        self._kept_x[last], self._kept_p[last] = self._x, self._p
        self._forget(last)

    # what is known

    @property
    def initialised(self) -> bool:
        """Whether it has been aligned."""
        return self._alignment is None

    @property
    def estimate(self) -> Estimate | None:
        """At the time of the last sample of the IMU; None before the alignment, which begins anew
        after nonsense.
        """
        self._advance()
        if self._estimate is None and self.initialised:
            made = self._report()
            if not all((np.abs(part) < LARGEST).all() for part in made[1:5]):  # neither for NaN
                self.diverged += 1
                self.reset()
                return None
            self._estimate = made
        return self._estimate

    @property
    def accepted(self) -> dict[str, int]:
        """Measurements used, by sensor."""
        return self._counters(at.ACCEPTED)

    @property
    def rejected(self) -> dict[str, int]:
        """Measurements that were not believed, by sensor."""
        return self._counters(at.REJECTED)

    @property
    def innovation(self) -> dict[str, float]:
        """The last normalised innovation squared of each sensor, for each of its numbers: about 1
        where all is well.
        """
        self._advance()
        last = self._x[at.INNOVATION : at.INNOVATION + len(at.SENSORS)]
        return {
            name: float(nis) / m for name, nis, m in zip(at.SENSORS, last, at.DEGREES, strict=True)
        }

    @property
    def mean_innovation(self) -> dict[str, float]:
        """The mean of all that were accepted, likewise; NaN where there was none."""
        self._advance()
        n = len(at.SENSORS)
        total = self._x[at.INNOVATION_SUM :][:n]
        count = self._x[at.ACCEPTED :][:n]
        return {
            name: float(nis / k / m) if k else math.nan
            for name, nis, k, m in zip(at.SENSORS, total, count, at.DEGREES, strict=True)
        }

    @property
    def gps_refused(self) -> bool:
        """Whether the GPS contradicts what is known, so that it goes on without, ever less certain."""
        return self.initialised and bool(self._part(at.GPS_REFUSED, 1)[0])

    @property
    def gps_off(self) -> float:
        """m between the last fix and what was expected of it."""
        return float(np.linalg.norm(self._part(at.GPS_OFF)))

    @property
    def gps_resets(self) -> int:
        """How often the position of a GPS that was refused for `gps.reset_s` was taken over."""
        return int(self._part(at.GPS_RESETS, 1)[0])

    @property
    def coasting(self) -> bool:
        """Whether it goes on without the IMU, which is silent."""
        return self.initialised and self._rows - 1 > self._real

    @property
    def gyro_bias(self) -> Floats:
        """(3,) rad/s, body axes."""
        return self._part(at.GYRO_BIAS)

    @property
    def force_bias(self) -> Floats:
        """(3,) m/s², body axes."""
        return self._part(at.FORCE_BIAS)

    @property
    def covariance(self) -> Floats:
        """(27, 27) of all errors, at the IMU; the order is that of `kernels`."""
        self._advance()
        return self._p.copy()

    def _part(self, first: int, count: int = 3) -> Floats:
        self._advance()
        return self._x[first : first + count].copy()

    def _counters(self, first: int) -> dict[str, int]:
        self._advance()
        return {name: int(self._x[first + k]) for k, name in enumerate(at.SENSORS)}

    def _report(self) -> Estimate:
        place = np.empty(3)
        velocity = np.empty(3)
        covariance = np.empty((9, 9))
        report(self._x, self._p, self._lever, place, velocity, covariance)
        orientation = self._x[at.QUATERNION + np.array((1, 2, 3, 0))]
        rates = self._x[at.RATES : at.RATES + 3].copy()
        return Estimate(float(self._x[at.TIME]), place, orientation, velocity, rates, covariance)

    # what is read

    def update(self, tick: SensorSamples) -> Estimate | None:
        """Takes in what became available in a tick; ground truth, wind and wheel odometry are not
        looked at.
        """
        if tick.wheel_loads is not None:
            self.wheel_loads(tick.wheel_loads)
        if tick.joints is not None:
            self.joints(tick.joints)
        if tick.gps is not None:
            self.gps(tick.gps)
        if tick.magnetometer is not None:
            self.magnetometer(tick.magnetometer)
        if tick.barometer is not None:
            self.barometer(tick.barometer)
        if tick.height is not None:
            self.height(tick.height)
        if tick.imu is not None:
            self.imu(tick.imu)
        return self.estimate

    def imu(self, read: samples.ImuSamples) -> None:
        """Force and rates carry the state on; the orientation is a measurement like others."""
        force = read.specific_force
        rates = read.rates
        attitude = read.orientation
        if self._turned:
            force = force @ self._mounting.T
            rates = rates @ self._mounting.T
        row = np.zeros(at.IMU_WIDTH)
        for k, time in enumerate(read.time.tolist()):
            if time - self._oriented >= self._orientation_period - at.SAME_TIME:
                length = float(np.linalg.norm(attitude[k]))
                if abs(length - 1.0) < 0.1:
                    body = (
                        quat_multiply(attitude[k], self._unmount) if self._turned else attitude[k]
                    )
                    self._add(
                        at.KIND_ORIENTATION, time, np.asarray(body / length, float)[[3, 0, 1, 2]]
                    )
                    self._oriented = time
            row[at.IMU_TIME] = time
            row[at.IMU_FORCE : at.IMU_FORCE + 3] = force[k]
            row[at.IMU_RATES : at.IMU_RATES + 3] = rates[k]
            self._add_imu(time, row)

    def gps(self, read: samples.GpsSamples) -> None:
        """Place and velocity of the antenna, whenever they come."""
        place = ned_to_enu(geodetic_to_ned(read.geodetic, self.geo_origin))
        for k, time in enumerate(read.time.tolist()):
            self._add(at.KIND_GPS, time, np.concatenate([place[k], read.velocity[k]]))

    def magnetometer(self, read: samples.MagnetometerSamples) -> None:
        """The Earth's field, in the IMU's axes."""
        field = read.field @ self._mounting.T if self._turned else read.field
        for k, time in enumerate(read.time.tolist()):
            self._add(at.KIND_FIELD, time, field[k])

    def barometer(self, read: samples.BarometerSamples) -> None:
        """Pressure of the standard atmosphere."""
        for k, time in enumerate(read.time.tolist()):
            self._add(at.KIND_PRESSURE, time, read.pressure[k : k + 1])

    def joints(self, read: samples.JointSamples) -> None:
        """Wheels: those with load on them tell speed, and whether the vehicle stands."""
        for k, time in enumerate(read.time.tolist()):
            self._add(
                at.KIND_JOINTS,
                time,
                np.concatenate([read.wheel_rate[k], read.steering[k], read.wheel_angle[k]]),
            )

    def wheel_loads(self, read: samples.WheelLoadSamples) -> None:
        """Which wheels are on the ground."""
        for k, time in enumerate(read.time.tolist()):
            self._add(at.KIND_LOADS, time, read.load[k])

    def height(self, read: samples.HeightSamples) -> None:
        """Above the ground; what is out of the sensor's range says nothing."""
        for k, time in enumerate(read.time.tolist()):
            if not math.isinf(read.distance[k]):
                self._add(at.KIND_HEIGHT, time, read.distance[k : k + 1])

    # the logs

    def _add(self, kind: int, time: float, values: Floats) -> None:
        if not (math.isfinite(time) and np.isfinite(values).all()):
            self.invalid[KINDS[kind]] += 1
            return
        if self._alignment is not None:
            row = np.zeros(at.LOG_WIDTH)
            row[at.LOG_TIME] = time
            row[at.LOG_KIND] = kind
            row[at.LOG_VALUES : at.LOG_VALUES + len(values)] = values
            self._alignment.add(row)
            return
        if time - self._imu[self._rows - 1, at.IMU_TIME] > MOST_AHEAD:
            self.invalid[KINDS[kind]] += 1
            return
        if time <= self._imu[0, at.IMU_TIME] + at.SAME_TIME:
            self.late[KINDS[kind]] += 1
            return
        log = self._log
        place = self._count
        while place and (log[place - 1, at.LOG_TIME], log[place - 1, at.LOG_KIND]) >= (time, kind):
            place -= 1
        if (
            place < self._count
            and log[place, at.LOG_TIME] == time
            and log[place, at.LOG_KIND] == kind
        ):
            return  # received twice
        if self._count == len(log):
            self._forget(self._rows - self._keep)
            if self._count == len(log):  # no samples of the IMU carry it on
                self._log = log = np.concatenate([log, np.zeros_like(log)])
            place = int(np.searchsorted(log[: self._count, at.LOG_TIME], time))
            while (
                place < self._count
                and log[place, at.LOG_TIME] == time
                and log[place, at.LOG_KIND] < kind
            ):
                place += 1
        log[place + 1 : self._count + 1] = log[place : self._count].copy()
        log[place] = 0.0
        log[place, at.LOG_TIME] = time
        log[place, at.LOG_KIND] = kind
        log[place, at.LOG_VALUES : at.LOG_VALUES + len(values)] = values
        self._count += 1
        if time <= self._imu[self._rows - 1, at.IMU_TIME] + at.SAME_TIME:
            times = self._imu[: self._rows, at.IMU_TIME]
            self._dirty = min(self._dirty, int(np.searchsorted(times, time - at.SAME_TIME)))
            self._estimate = None
        elif (
            time - self._imu[self._rows - 1, at.IMU_TIME] > self.parameters.silence or self.coasting
        ):
            self._coast(time)

    def _add_imu(self, time: float, row: Floats) -> None:
        if not (math.isfinite(time) and np.isfinite(row).all()):
            self.invalid["imu"] += 1
            return
        if self._alignment is None and time - self._imu[self._rows - 1, at.IMU_TIME] > MOST_AHEAD:
            self.reset()
        if self._alignment is not None:
            self._alignment.add_imu(row)
            if self._alignment.ready:
                self._begin(row)
            return
        if (
            self._rows - 1 > self._real >= 0 and time > self._imu[self._real, at.IMU_TIME]
        ):  # it was only late
            self._rows = self._real + 1
            self._dirty = min(self._dirty, self._rows)
        if time <= self._imu[self._rows - 1, at.IMU_TIME] + at.SAME_TIME:
            self.late["imu"] += 1
            return
        if time - self._imu[self._rows - 1, at.IMU_TIME] > self.parameters.silence:
            self._coast(time)
        if self._imu[self._rows - 1, at.IMU_TIME] < time - at.SAME_TIME:
            self._append(row)
        self._real = self._rows - 1

    def _coast(self, time: float) -> None:
        """On without the IMU."""
        row = np.zeros(at.IMU_WIDTH)
        row[at.IMU_COASTS] = 1.0
        while self._imu[self._rows - 1, at.IMU_TIME] + COAST_PERIOD <= time:
            row[at.IMU_TIME] = self._imu[self._rows - 1, at.IMU_TIME] + COAST_PERIOD
            self._append(row)

    def _append(self, row: Floats) -> None:
        if self._rows == len(self._imu):
            self._forget(self._rows - self._keep)
        self._imu[self._rows] = row
        self._rows += 1
        self._estimate = None

    def _forget(self, first: int) -> None:
        """What was before the row `first` of the IMU's log."""
        self._advance()
        if first <= 0:
            return
        kept = self._rows - first
        done = int(self._cursor[first])
        for array in (self._imu, self._kept_x, self._kept_p, self._cursor):
            array[:kept] = array[first : self._rows].copy()
        self._cursor[:kept] -= done
        self._log[: self._count - done] = self._log[done : self._count].copy()
        self._count -= done
        self._rows = self._dirty = kept
        self._real = max(self._real - first, -1)

    def _begin(self, row: Floats) -> None:
        assert self._alignment is not None
        self._x, self._p = self._alignment.begin(self._ground)
        self._imu[0], self._kept_x[0], self._kept_p[0], self._cursor[0] = row, self._x, self._p, 0
        waiting = [
            entry
            for entry in self._alignment.log
            if entry[at.LOG_TIME] > row[at.IMU_TIME] + at.SAME_TIME
        ]
        self._log[: len(waiting)] = np.reshape(waiting, (-1, at.LOG_WIDTH))
        self._rows = 1
        self._count = len(waiting)
        self._real = 0
        self._dirty = 1
        self._alignment = None
        self._estimate = None

    def _advance(self) -> None:
        """The filter over what has come in since."""
        if self._alignment is not None or self._dirty >= self._rows:
            return
        first = max(self._dirty, 1)
        self._x[:], self._p[:] = self._kept_x[first - 1], self._kept_p[first - 1]
        measurements = self._log[: self._count]
        history = at.History(self._imu, measurements, self._kept_x, self._kept_p, self._cursor)
        advance(history, first, self._rows, self._x, self._p, self._constants, self._ground)
        self._dirty = self._rows
        self._estimate = None

    # keeping

    def save(self) -> dict[str, Any]:
        """All that later estimates depend on, fit for JSON: numbers, strings, lists, dicts."""
        self._advance()
        saved: dict[str, Any] = {"late": dict(self.late), "invalid": dict(self.invalid)}
        saved["oriented"] = self._oriented if math.isfinite(self._oriented) else None
        if self._alignment is not None:
            saved["alignment"] = {
                "imu": [row.tolist() for row in self._alignment.imu],
                "log": [row.tolist() for row in self._alignment.log],
            }
            return saved
        done = int(self._cursor[0])
        saved |= {
            "imu": self._imu[: self._rows].tolist(),
            "log": self._log[done : self._count].tolist(),
            "real": self._real,
            "state": [
                None if math.isinf(number) else number for number in self._kept_x[0].tolist()
            ],
            "covariance": self._kept_p[0].tolist(),
        }
        return saved

    def restore(self, saved: dict[str, Any]) -> None:
        """Goes on from `save` of an estimator like this one, bit by bit. Raises ConfigError where
        it does not fit.
        """
        try:
            counted = [
                {name: int(saved[key][name]) for name in (*KINDS, "imu")}
                for key in ("late", "invalid")
            ]
            oriented = -math.inf if saved["oriented"] is None else float(saved["oriented"])
            begin = saved.get("alignment")
            place = begin if begin is not None else saved
            imu = np.array(place["imu"], np.float64).reshape(-1, at.IMU_WIDTH)
            log = np.array(place["log"], np.float64).reshape(-1, at.LOG_WIDTH)
            if begin is None:
                real = int(saved["real"])
                x = np.array(saved["state"], np.float64)
                p = np.array(saved["covariance"], np.float64).reshape(at.ERRORS, at.ERRORS)
                if (
                    x.shape != (at.SIZE,)
                    or not 1 <= len(imu) <= len(self._imu)
                    or not -1 <= real < len(imu)
                ):
                    raise ValueError(f"{x.size} numbers of state, {len(imu)} samples")
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"no saved state of an estimator ({error!r})") from None
        self.reset()
        self.late, self.invalid = counted
        self._oriented = oriented
        if begin is not None:
            assert self._alignment is not None
            self._alignment.imu.extend(imu)
            self._alignment.log = list(log)
            return
        self._alignment = None
        # JSON has no infinity: all that is not known yet has never been
        x[np.isnan(x)] = -math.inf
        self._imu[: len(imu)] = imu
        while len(self._log) < len(log):
            self._log = np.concatenate([self._log, np.zeros_like(self._log)])
        self._log[: len(log)] = log
        self._kept_x[0] = x
        self._kept_p[0] = p
        self._cursor[0] = 0
        self._x[:] = x
        self._p[:] = p
        self._rows = len(imu)
        self._count = len(log)
        self._real = real
        self._dirty = 1


def warm_up() -> None:
    """Compile the filter's kernels, or load them, before the first reading."""
    vehicle = VehicleParameters.load("scale")
    made = StateEstimator(
        EstimatorParameters.load("scale"), SensorParameters.load("scale"), vehicle
    )
    level = np.array((1.0, 0.0, 0.0, 0.0))
    pressure = np.full(1, standard_pressure(made.geo_origin[2]))
    readings = (
        vehicle.static_load,
        np.zeros(12),
        np.zeros(6),
        np.zeros(3),
        pressure,
        level,
        np.full(1, 0.3),
    )
    for time in (0.01 * np.arange(200)).tolist():
        for kind, values in enumerate(readings):
            made._add(kind, time, values)
        made._add_imu(time, np.array((time, 0.0, 0.0, 0.0, GRAVITY, 0.0, 0.0, 0.0)))
    assert made.estimate is not None

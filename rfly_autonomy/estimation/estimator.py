# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""StateEstimator: an error-state Kalman filter over the vehicle's sensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.sensors import samples
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import Gps, SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.alignment import Alignment
from rfly_autonomy.estimation.error_state import ERRORS, GROUND_ERROR
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters, constants_of
from rfly_autonomy.estimation.filter_kernels import advance, report
from rfly_autonomy.estimation.filter_records import (
    BAROMETER,
    BOOK,
    DEGREES,
    FIRST_NUMBERS,
    IMU,
    IMU_SAMPLE,
    KIND_FIELD,
    KIND_GPS,
    KIND_HEIGHT,
    KIND_JOINTS,
    KIND_LOADS,
    KIND_ORIENTATION,
    KIND_PRESSURE,
    MAGNETOMETER,
    MEASUREMENT,
    NOTHING,
    ROTORS,
    SAME_TIME,
    SENSORS,
    STATE,
    WHEEL_SPEED,
    History,
)
from rfly_autonomy.estimation.rotor_motion import LONGEST_GAP, RotorModel, RotorMotion
from rfly_autonomy.estimation.stuck_readings import StuckSensors
from rfly_autonomy.estimation.wheel_contact import (
    FlightLoads,
    LoadWatch,
    TurnWatch,
    loads_of_struts,
)
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
from rfly_terrain.height_map.smooth_ground import ground_of

COAST_PERIOD = 0.02
"""Time between steps without the IMU, s."""
MOST_AHEAD = 10.0
"""Longest time of a reading after the IMU's last sample, s. A later one is of another clock."""
SILENT_TIME = 1.0
"""Time without a reading after which a sensor is silent, s."""
SILENT_PERIODS = 3.0
"""The same in periods of a slow sensor."""
LATE = 0.03
"""Age of a new reading, beyond the sensor's latency, from which it is late, s."""
LATE_TIME = 0.5
"""Time for which all readings of a sensor have to be late, s."""
DOUBT_TIME = 2.0
"""Time for which the IMU is in doubt after the motion was estimated anew, s."""
MOST_MISFITS = 0.8
"""Share of readings that do not fit well above which a sensor is at fault."""
FEW_MISFITS = 0.3
"""The same below which it is sound again."""
XYZW = np.array((1, 2, 3, 0))
"""Places of x y z w in the state's quaternion, which is w x y z."""
KINDS = ("wheel_loads", "joints", "gps", "magnetometer", "barometer", "orientation", "height")
"""Names of the measurements, in the order of their kinds."""

_KINDS_OF = {
    "imu": (KIND_ORIENTATION,),
    "gps": (KIND_GPS,),
    "magnetometer": (KIND_FIELD,),
    "barometer": (KIND_PRESSURE,),
    "height": (KIND_HEIGHT,),
    "encoders": (KIND_JOINTS,),
    "wheel_loads": (KIND_LOADS,),
}
"""Kinds of the measurements of each sensor that can be stuck."""

_OUTVOTED_BY = {"magnetometer": MAGNETOMETER, "barometer": BAROMETER, "encoders": WHEEL_SPEED}
"""Measurement of each sensor that the others outvote."""


_SEVERAL = ("encoders", "wheel_loads")
"""Sensors that are more than one."""
REPEATS = ("repeats its readings: left out", "repeat their readings: left out")
SILENT = ("is silent", "are silent")
COMES_LATE = ("comes late by {:.2f} s", "come late by {:.2f} s")
MISFITS = ("does not fit the other sensors: left out", "do not fit the other sensors: left out")
"""Texts about one sensor, and about several."""


class Innovation(NamedTuple):
    """Innovation of a sensor: its reading less what was expected."""

    accepted: int
    """Number of accepted measurements so far, this one included."""
    rejected: int
    """Number of rejected measurements so far."""
    nis: float
    """Normalised innovation squared: chi-square of m degrees of freedom if all is right."""
    value: Floats
    """Innovation, SI units, (m,)."""


class StateEstimator:
    """An error-state Kalman filter over IMU, GPS, magnetometer, barometer, wheels and height.

    Readings are used at their own times, however late they come within the parameters' `history`:
    the filter goes back to the reading's time and forward again. Hence the result depends on the
    readings, not on the order of their arrival. A reading that is later is dropped and counted. If
    the IMU's time leaps ahead, the filter is reset.

    `terrain`: the map that the vehicle carries, with which height above ground gives altitude.
    Without it the filter estimates the ground below, too. `geo_origin`: latitude, longitude (deg)
    and altitude (m) of the world's origin; by default the map's.
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
        map_origin = terrain.geo_origin if terrain is not None else None
        self.geo_origin = geo_point(geo_origin or map_origin or DEFAULT_GEO_ORIGIN, "geo_origin")
        self.parameters = parameters
        self.sensors = sensors.at_place(self.geo_origin)
        self.vehicle = vehicle

        # how the IMU is fixed to the body
        mounting = euler_to_quat(sensors.imu.rotation)
        self._mounting = rotation_matrix(mounting)
        self._unmount = quat_conjugate(mounting)
        self._turned = any(sensors.imu.rotation)
        self._lever = np.array(sensors.imu.position, float)
        self._orientation_period = math.inf
        if parameters.orientation_rate > 0.0:
            self._orientation_period = 1.0 / parameters.orientation_rate

        # logs, and the filter at each row of the IMU's
        self._history_rows = max(4, math.ceil(parameters.history * sensors.imu.rate) + 2)
        rows = 2 * self._history_rows
        self._history = History(
            imu=np.zeros(rows, IMU_SAMPLE),
            x=np.zeros(rows, STATE),
            book=np.zeros(rows, BOOK),
            p=np.zeros((rows, ERRORS, ERRORS)),
            cursor=np.zeros(rows, np.int64),
        )

        self._imu_times = self._history.imu["time"]
        self._log = np.zeros(4 * rows, MEASUREMENT)

        # the filter now
        self._x = np.zeros(1, STATE)
        self._book = np.zeros(1, BOOK)
        self._p = np.zeros((ERRORS, ERRORS))
        self._use(terrain)

        self.diverged = 0
        """Number of estimates that were not credible."""
        self.reset()

    def _use(self, terrain: HeightMap | None) -> None:
        self.terrain = terrain
        self._ground = ground_of(terrain)
        self._constants = constants_of(
            self.parameters, self.sensors, self.vehicle, self.geo_origin[2], terrain is not None
        )

    def reset(self) -> None:
        """Return to the initial state, which has to be aligned again."""
        self._alignment: Alignment | None = Alignment(
            self.parameters, self.sensors, self._constants
        )
        self._rows = 0
        """Rows of the IMU's log."""
        self._count = 0
        """Rows of the measurements' log."""
        self._dirty = 1
        """First row of the IMU's log that the filter has to go over."""
        self._last_sample = -1
        """Row of the IMU's last sample; later rows stand for samples of a silent IMU."""
        self._last_orientation = -math.inf
        self._estimate: Estimate | None = None
        self._stuck = StuckSensors(self.sensors)
        self._heard: dict[str, float] = {}
        """Time of each sensor's last reading, s."""

        self._newest = -math.inf
        """Time of the newest of them, s."""

        self._late_since: dict[str, float] = {}
        """Time since when each sensor's readings come late, s."""

        self._age: dict[str, float] = {}
        """Age of each sensor's last reading when it came, s."""

        self._silent_after = {
            part: max(SILENT_TIME, SILENT_PERIODS / sensor.rate)
            for part, sensor in self.sensors.sensors().items()
        }
        """Time without a reading after which each sensor is silent, s."""

        self._late_after = {
            part: LATE + (sensor.latency if isinstance(sensor, Gps) else 0.0)
            for part, sensor in self.sensors.sensors().items()
        }
        """Age of a new reading from which each sensor is late, s."""

        self._loads = LoadWatch(self.vehicle)
        self._flight_loads = FlightLoads(self.vehicle)
        self._turns = TurnWatch()
        self._rotors = RotorModel(self.vehicle)
        self._force = 0.0
        """Newest specific force along the body's z axis, m/s²."""

        self._outvoted: set[str] = set()

        self.late = dict.fromkeys((*KINDS, "imu"), 0)
        """Readings that came too late to be used, by sensor."""
        self.invalid = dict.fromkeys((*KINDS, "imu"), 0)
        """Readings with numbers that are not finite, or of a time far ahead, by sensor."""

    def set_terrain(self, terrain: HeightMap | None) -> None:
        """Use another map from now on. Position and motion stay known."""
        self._advance()
        self._use(terrain)
        if self._alignment is not None:
            self._alignment = Alignment(self.parameters, self.sensors, self._constants)
            return

        # the ground's error begins anew
        self._x[0].ground_error = 0.0
        self._book[0].off_map = 0.0
        self._book[0].bend_variance = 0.0
        self._p[GROUND_ERROR, :] = 0.0
        self._p[:, GROUND_ERROR] = 0.0
        self._p[GROUND_ERROR, GROUND_ERROR] = 1e6
        if terrain is not None:
            self._p[GROUND_ERROR, GROUND_ERROR] = self.parameters.map_error**2

        last = self._rows - 1
        self._history.x[last] = self._x[0]
        self._history.book[last] = self._book[0]
        self._history.p[last] = self._p
        self._forget(last)

    # estimates

    @property
    def initialised(self) -> bool:
        """True once the filter has been aligned."""
        return self._alignment is None

    @property
    def waits_for(self) -> str:
        """Sensor that is silent and without which there is no first estimate: `imu` or `gps`."""
        return "" if self._alignment is None else self._alignment.waits_for

    @property
    def estimate(self) -> Estimate | None:
        """Estimate at the time of the IMU's last sample; None before the alignment.

        After an estimate that is not credible, the alignment begins anew.
        """
        self._advance()
        if self._estimate is None and self.initialised:
            self._estimate = self._report()
            if self._estimate is None:
                self.diverged += 1
                self.reset()
        return self._estimate

    @property
    def accepted(self) -> dict[str, int]:
        """Number of accepted measurements, by sensor."""
        return _counts(self._current("accepted"))

    @property
    def rejected(self) -> dict[str, int]:
        """Number of rejected measurements, by sensor."""
        return _counts(self._current("rejected"))

    @property
    def innovation(self) -> dict[str, float]:
        """Last normalised innovation squared of each sensor, per number of its measurement.

        It is about 1 if all is well.
        """
        last = self._current("innovation")
        return {name: float(nis) / m for name, nis, m in zip(SENSORS, last, DEGREES, strict=True)}

    @property
    def last_innovations(self) -> dict[str, Innovation]:
        """Last innovation of each sensor that has measured, also if it was rejected."""
        book = self._current_book()
        last = {}
        for k, name in enumerate(SENSORS):
            accepted = int(book.accepted[k])
            rejected = int(book.rejected[k])
            if accepted + rejected:
                part = slice(FIRST_NUMBERS[k], FIRST_NUMBERS[k] + DEGREES[k])
                nis = float(book.innovation[k])
                last[name] = Innovation(accepted, rejected, nis, book.residual[part].copy())
        return last

    @property
    def mean_innovation(self) -> dict[str, float]:
        """Mean normalised innovation squared of accepted measurements; NaN if there are none."""
        totals = self._current("innovation_sum")
        counts = self._current("accepted")
        return {
            name: float(total / count / m) if count else math.nan
            for name, total, count, m in zip(SENSORS, totals, counts, DEGREES, strict=True)
        }

    @property
    def gps_refused(self) -> bool:
        """True while the GPS contradicts the estimate, which gets ever less certain without it."""
        return self.initialised and bool(self._current("gps_refused"))

    @property
    def gps_off(self) -> float:
        """Distance of the last fix from the expected one, m."""
        return float(np.linalg.norm(self._current("gps_offset")))

    @property
    def gps_resets(self) -> int:
        """Number of times that the position of a GPS refused for `gps.reset_s` was taken over."""
        return int(self._current("gps_resets"))

    @property
    def coasting(self) -> bool:
        """True while the filter goes on without a silent IMU."""
        return self.initialised and self._rows - 1 > self._last_sample

    @property
    def faults(self) -> dict[str, str]:
        """Sensors that are at fault, each with what is wrong and what is done about it."""
        contradicted = {name for name in ("encoders", "wheel_loads") if self._loads.is_stuck(name)}
        if self._turns.stuck:
            contradicted.add("encoders")
        stuck = sorted(self._stuck.stuck | contradicted)
        faults = {part: _text(part, REPEATS) for part in stuck}
        if not self.initialised:
            return faults
        now = float(self._current("time"))
        for part, heard in self._heard.items():
            if now - heard > self._silent_after[part]:
                faults[part] = _text(part, SILENT)
        for part, since in self._late_since.items():
            if now - since > LATE_TIME:
                faults.setdefault(part, _text(part, COMES_LATE).format(self._age[part]))
        for part in sorted(self._stuck.noisy):
            faults.setdefault(part, "is far noisier than it should be")
        if self._flight_loads.lies:
            faults.setdefault("wheel_loads", "show load in flight: left out")
        if self._current("height_refused") and "height" not in faults:
            faults["height"] = "contradicts the climb: left out"
        for field, name in (("gyro_biased", "gyroscope"), ("force_biased", "accelerometer")):
            if self._current(field) and "imu" not in faults:
                faults["imu"] = f"has a biased {name}: corrected"
        since = self._current("time") - self._current("realigned_at")
        if since < DOUBT_TIME and "imu" not in faults:
            faults["imu"] = "does not fit the other sensors: the motion is estimated anew"

        if self.gps_refused and "gps" not in faults:
            faults["gps"] = _text("gps", MISFITS)
        for part in self._outvoted_parts():
            faults.setdefault(part, _text(part, MISFITS))
        return faults

    def _outvoted_parts(self) -> set[str]:
        """Return the sensors most of whose readings do not fit, until few of them do not."""
        misfits = self._current("misfits")
        age = self._current("time") - self._current("last_measured")
        for part, sensor in _OUTVOTED_BY.items():
            least = FEW_MISFITS if part in self._outvoted else MOST_MISFITS
            if age[sensor] < DOUBT_TIME and misfits[sensor] > least:
                self._outvoted.add(part)
            else:
                self._outvoted.discard(part)
        return self._outvoted

    @property
    def gyro_bias(self) -> Floats:
        """Bias of the gyroscope, rad/s, body axes, (3,)."""
        self._advance()
        return self._x["gyro_bias"][0].copy()

    @property
    def force_bias(self) -> Floats:
        """Bias of the accelerometer, m/s², body axes, (3,)."""
        self._advance()
        return self._x["force_bias"][0].copy()

    @property
    def covariance(self) -> Floats:
        """Covariance of all errors at the IMU, (27, 27); `error_state` has their order."""
        self._advance()
        return self._p.copy()

    def _current(self, field: str) -> Any:
        """Return a field of the filter's book."""
        return self._current_book()[field]

    def _current_book(self) -> Any:
        """Return the filter's book, a record BOOK, after all readings so far."""
        self._advance()
        return self._book[0]

    def _report(self) -> Estimate | None:
        """Return the estimate for the body's origin, or None if it is not credible."""
        time = float(self._book["time"][0])
        position = np.empty(3)
        velocity = np.empty(3)
        covariance = np.empty((9, 9))
        credible = report(self._x, self._book, self._p, self._lever, position, velocity, covariance)
        if not credible:
            return None
        orientation = self._x["quaternion"][0, XYZW]
        rates = self._book["rates"][0].copy()
        return Estimate(time, position, orientation, velocity, rates, covariance)

    # readings

    def update(self, tick: SensorSamples) -> Estimate | None:
        """Take in the readings of a tick, but neither ground truth nor wind nor wheel odometry."""
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

    def _sound(self, kind: str, readings: Any) -> Any:
        """Return the samples of a sensor that is not stuck; forget those since when it is.

        `kind`: field of `SensorSamples`.
        """
        self._hear(kind, readings)
        was_stuck = kind in self._stuck.stuck
        sound = self._stuck.sound(kind, readings)
        if kind in self._stuck.stuck and not was_stuck and self.initialised:
            since = self._stuck.since(kind)
            if kind == "imu":
                self._forget_motion(since)
            self._forget_readings(_KINDS_OF[kind], since)
        return readings.__class__(*(field[:0] for field in readings)) if sound is None else sound

    def _hear(self, part: str, readings: Any) -> None:
        """Note the time of a sensor's newest reading."""
        if part not in self._silent_after or not len(readings.time):
            return
        stamp = max(self._heard.get(part, -math.inf), float(readings.time[-1]))
        self._heard[part] = stamp

        # late against the others; one alone that is ahead does not count
        if stamp >= self._newest:
            self._newest = stamp
            self._late_since.pop(part, None)
        elif len(self._heard) > 1:
            now = sorted(self._heard.values())[-2]
            self._age[part] = now - stamp
            if now - stamp <= self._late_after[part]:
                self._late_since.pop(part, None)
            else:
                self._late_since.setdefault(part, now)

    def imu(self, readings: samples.ImuSamples) -> None:
        """Take in force and rates, which carry the state on, and orientations to measure with."""
        readings = self._sound("imu", readings)
        force = readings.specific_force
        rates = readings.rates
        if self._turned:
            force = force @ self._mounting.T
            rates = rates @ self._mounting.T
        motion = np.concatenate([force, rates], axis=1)
        if len(rates):
            self._rotors.sense_rates(rates[-1])
            self._force = float(force[-1, 2])
        for k, time in enumerate(readings.time.tolist()):
            if time - self._last_orientation >= self._orientation_period - SAME_TIME:
                self._add_orientation(time, readings.orientation[k])
            self._add_imu(time, motion[k])

    def _add_orientation(self, time: float, orientation: Floats) -> None:
        """Take in the IMU's own orientation (4,) x y z w, unless it is no rotation."""
        length = float(np.linalg.norm(orientation))
        if not abs(length - 1.0) < 0.1:
            return
        if self._turned:
            orientation = np.asarray(quat_multiply(orientation, self._unmount), float)
        self._add(KIND_ORIENTATION, time, (orientation / length)[[3, 0, 1, 2]])
        self._last_orientation = time

    def gps(self, readings: samples.GpsSamples) -> None:
        """Take in positions and velocities of the antenna; a velocity of NaN was not measured."""
        readings = self._sound("gps", readings)
        position = ned_to_enu(geodetic_to_ned(readings.geodetic, self.geo_origin))
        unmeasured = np.isnan(readings.velocity).all(axis=1, keepdims=True)
        velocity = np.where(unmeasured, 0.0, readings.velocity)
        rows = np.concatenate([position, velocity, unmeasured], axis=1)
        for k, time in enumerate(readings.time.tolist()):
            self._add(KIND_GPS, time, rows[k])

    def magnetometer(self, readings: samples.MagnetometerSamples) -> None:
        """Take in the Earth's magnetic field, in the IMU's axes."""
        readings = self._sound("magnetometer", readings)
        field = readings.field
        if self._turned:
            field = field @ self._mounting.T
        for k, time in enumerate(readings.time.tolist()):
            self._add(KIND_FIELD, time, field[k])

    def barometer(self, readings: samples.BarometerSamples) -> None:
        """Take in air pressures."""
        readings = self._sound("barometer", readings)
        for k, time in enumerate(readings.time.tolist()):
            self._add(KIND_PRESSURE, time, readings.pressure[k : k + 1])

    def joints(self, readings: samples.JointSamples) -> None:
        """Take in the wheels' rates and angles, which give speed and standstill.

        Without sound load cells the struts show which wheels are on the ground.
        """
        self._hear("encoders", readings)
        has_struts = readings.strut.shape[1] == len(self.vehicle.wheels)
        has_rotors = readings.rotor_rate.shape[1] == self.vehicle.rotors
        for k, time in enumerate(readings.time.tolist()):
            if has_struts and self._contradicted("encoders", time, readings.strut[k]):
                continue
            if self._turns_at_rest(time, readings.wheel_angle[k], readings.wheel_rate[k]):
                continue
            if has_rotors:
                self._rotors.sense(time, readings.rotor_rate[k])
                if has_struts:
                    self._flight_loads.witness(
                        time, readings.strut[k], self._force, self._rotors.force
                    )
            no_cells = self.sensors.wheel_loads is None or self._loads.is_stuck("wheel_loads")
            no_cells = no_cells or self._flight_loads.lies
            if has_struts and no_cells:
                load = loads_of_struts(self.vehicle, readings.strut[k], readings.strut_rate[k])
                self._rotors.sense_loads(time, float(load.sum()))
                self._add(KIND_LOADS, time, load)
            wheels = (readings.wheel_rate[k], readings.steering[k], readings.wheel_angle[k])
            self._add(KIND_JOINTS, time, np.concatenate(wheels))

    def wheel_loads(self, readings: samples.WheelLoadSamples) -> None:
        """Take in the wheels' loads, which show the wheels on the ground."""
        self._hear("wheel_loads", readings)
        for k, time in enumerate(readings.time.tolist()):
            contradicted = self._contradicted("wheel_loads", time, readings.load[k])
            if not contradicted and not self._lies_in_flight(time, readings.load[k]):
                self._rotors.sense_loads(time, float(readings.load[k].sum()))
                self._add(KIND_LOADS, time, readings.load[k])

    def _contradicted(self, sensor: str, time: float, values: Floats) -> bool:
        """Return whether load cells or encoders are stuck; forget their readings since when."""
        was_stuck = self._loads.is_stuck(sensor)
        stuck = self._loads.update(sensor, time, values.tolist())
        if stuck and not was_stuck and self.initialised:
            self._forget_readings(_KINDS_OF[sensor], self._loads.since(sensor))
        return stuck

    def _turns_at_rest(self, time: float, angles: Floats, rates: Floats) -> bool:
        """Return whether wheels rest that turn by their rates; forget readings since when."""
        was_stuck = self._turns.stuck
        stuck = self._turns.update(time, angles.tolist(), rates.tolist())
        if stuck and not was_stuck and self.initialised:
            self._forget_readings(_KINDS_OF["encoders"], self._turns.since)
        return stuck

    def _lies_in_flight(self, time: float, load: Floats) -> bool:
        """Return whether load cells show load in flight; forget their readings since when."""
        lied = self._flight_loads.lies
        lies = self._flight_loads.update(time, load.tolist())
        if lies and not lied and self.initialised:
            self._forget_readings(_KINDS_OF["wheel_loads"], self._flight_loads.since)
        return lies

    def height(self, readings: samples.HeightSamples) -> None:
        """Take in heights above the ground. Those out of the sensor's range are left out."""
        readings = self._sound("height", readings)
        for k, time in enumerate(readings.time.tolist()):
            if not math.isinf(readings.distance[k]):
                self._add(KIND_HEIGHT, time, readings.distance[k : k + 1])

    # logs

    @property
    def _end(self) -> float:
        """Time of the last row of the IMU's log, s."""
        return float(self._imu_times[self._rows - 1])

    def _add(self, kind: int, time: float, values: Floats) -> None:
        """Put a measurement into the log, which is in the order of times and kinds."""
        if not (math.isfinite(time) and np.isfinite(values).all()):
            self.invalid[KINDS[kind]] += 1
            return
        if self._alignment is not None:
            self._alignment.add(kind, time, values)
            return
        end = self._end
        if time - end > MOST_AHEAD:
            self.invalid[KINDS[kind]] += 1
            return
        if time <= self._imu_times[0] + SAME_TIME:
            self.late[KINDS[kind]] += 1
            return

        place = self._place(time, kind)
        log = self._log
        if place < self._count and log["time"][place] == time and log["kind"][place] == kind:
            return  # received twice
        if self._count == len(log):
            self._make_room()
            place = self._place(time, kind)
            log = self._log
        if place < self._count:
            log[place + 1 : self._count + 1] = log[place : self._count].copy()
        log[place] = (time, kind, 0.0)
        log["values"][place, : len(values)] = values
        self._count += 1

        if time <= end + SAME_TIME:
            times = self._imu_times[: self._rows]
            self._dirty = min(self._dirty, int(np.searchsorted(times, time - SAME_TIME)))
            self._estimate = None
        elif time - end > self.parameters.silence or self.coasting:
            self._coast(time)

    def _place(self, time: float, kind: int) -> int:
        """Return the first row of the log that is not before a measurement."""
        times = self._log["time"]
        kinds = self._log["kind"]
        place = self._count
        while place and (times[place - 1], kinds[place - 1]) >= (time, kind):
            place -= 1
        return place

    def _make_room(self) -> None:
        """Forget old measurements, or double the log if the IMU is silent and they are needed."""
        self._forget(self._rows - self._history_rows)
        if self._count == len(self._log):
            self._double_log()

    def _double_log(self) -> None:
        self._log = np.concatenate([self._log, np.zeros_like(self._log)])

    def _add_imu(self, time: float, motion: Floats) -> None:
        """Put force and rates (6,) of the IMU into its log, in body axes."""
        if not (math.isfinite(time) and np.isfinite(motion).all()):
            self.invalid["imu"] += 1
            return
        if self._alignment is None and time - self._end > MOST_AHEAD:
            self.reset()
        if self._alignment is not None:
            self._alignment.add_imu(time, motion)
            if self._alignment.is_ready():
                self._begin(self._alignment)
            return

        # the IMU was not silent, only late
        if self._rows - 1 > self._last_sample >= 0 and time > self._imu_times[self._last_sample]:
            self._rows = self._last_sample + 1
            self._dirty = min(self._dirty, self._rows)

        end = self._end
        if time <= end + SAME_TIME:
            self.late["imu"] += 1
            return
        if time - end > self.parameters.silence:
            self._coast(time)
            end = self._end
        if end < time - SAME_TIME:
            self._append(time, motion, IMU)
        self._last_sample = self._rows - 1

    def _coast(self, time: float) -> None:
        """Go on to a time without the IMU: by the rotors, or else by nothing."""
        for motion in self._rotors.since(self._end, time):
            self._coast_blindly(motion.time - motion.duration)
            self._turn_on(motion)
        if time - self._rotors.time > LONGEST_GAP:
            self._coast_blindly(time)

    def _coast_blindly(self, time: float) -> None:
        """Go on to a time without any knowledge of the motion."""
        while self._end + COAST_PERIOD <= time:
            self._append(self._end + COAST_PERIOD, np.zeros(6), NOTHING)

    def _turn_on(self, motion: RotorMotion) -> None:
        """Go on by the rotors from the motion so far."""
        last = self._history.imu[self._rows - 1]
        rates = last.rates
        if last.source != ROTORS:
            self._advance()
            rates = self._book[0].rates
        force = np.array((0.0, 0.0, motion.force))
        turned = rates + (motion.time - self._end) * motion.turn
        self._append(motion.time, np.concatenate([force, turned]), ROTORS)

    def _append(self, time: float, motion: Floats, source: float) -> None:
        imu = self._history.imu
        if self._rows == len(imu):
            self._forget(self._rows - self._history_rows)
        imu[self._rows] = (time, source, motion[:3], motion[3:])
        self._rows += 1
        self._estimate = None

    def _forget(self, first: int) -> None:
        """Drop the rows of the IMU's log before `first`, and the measurements before that."""
        self._advance()
        if first <= 0:
            return
        left = self._rows - first
        used = int(self._history.cursor[first])
        for array in self._history:
            array[:left] = array[first : self._rows].copy()
        self._history.cursor[:left] -= used

        self._log[: self._count - used] = self._log[used : self._count].copy()
        self._count -= used
        self._rows = left
        self._dirty = left
        self._last_sample = max(self._last_sample - first, -1)

    def _forget_motion(self, since: float) -> None:
        """Drop the samples of the IMU after a time, s, as far as the filter can go back."""
        times = self._imu_times[: self._rows]
        self._rows = max(1, int(np.searchsorted(times, since + SAME_TIME)))
        self._last_sample = min(self._last_sample, self._rows - 1)
        self._dirty = min(self._dirty, self._rows - 1)
        self._estimate = None

    def _forget_readings(self, kinds: Sequence[int], since: float) -> None:
        """Drop the measurements of some kinds after a time, s, as far as the filter can go back."""
        since = max(since, float(self._imu_times[0])) + SAME_TIME
        log = self._log[: self._count]
        kept = log[~(np.isin(log["kind"], kinds) & (log["time"] > since))]
        self._count = len(kept)
        self._log[: self._count] = kept

        times = self._imu_times[: self._rows]
        self._dirty = min(self._dirty, int(np.searchsorted(times, since)))
        self._estimate = None

    def _begin(self, alignment: Alignment) -> None:
        """Start the filter at the IMU's last sample from an alignment that is ready."""
        sample = alignment.imu[-1]
        self._x, self._book, self._p = alignment.begin(self._ground)
        self._history.imu[0] = sample
        self._history.x[0] = self._x[0]
        self._history.book[0] = self._book[0]
        self._history.p[0] = self._p
        self._history.cursor[0] = 0

        waiting = alignment.ahead(MOST_AHEAD)
        while len(self._log) < len(waiting):
            self._double_log()
        self._log[: len(waiting)] = np.array(waiting, MEASUREMENT)
        self._rows = 1
        self._count = len(waiting)
        self._last_sample = 0
        self._dirty = 1
        self._alignment = None
        self._estimate = None

    def _advance(self) -> None:
        """Carry the filter over all rows that have come in or changed since."""
        if self._alignment is not None or self._dirty >= self._rows:
            return
        first = max(self._dirty, 1)
        advance(
            self._history,
            self._log[: self._count],
            first,
            self._rows,
            self._x,
            self._book,
            self._p,
            self._constants,
            self._ground,
        )
        self._dirty = self._rows
        self._estimate = None


def _text(part: str, texts: tuple[str, str]) -> str:
    """Return the text about a sensor."""
    return texts[part in _SEVERAL]


def _counts(counters: Floats) -> dict[str, int]:
    return {name: int(count) for name, count in zip(SENSORS, counters, strict=True)}


def warm_up() -> None:
    """Compile the filter's kernels, or load them, before the first reading."""
    vehicle = VehicleParameters.load("scale")
    estimator = StateEstimator(
        EstimatorParameters.load("scale"), SensorParameters.load("scale"), vehicle
    )
    # in the order of the kinds
    readings = (
        vehicle.static_load,
        np.zeros(12),
        np.zeros(6),
        np.zeros(3),
        np.full(1, standard_pressure(estimator.geo_origin[2])),
        np.array((1.0, 0.0, 0.0, 0.0)),
        np.full(1, 0.3),
    )
    for time in (0.01 * np.arange(200)).tolist():
        for kind, values in enumerate(readings):
            estimator._add(kind, time, values)
        estimator._add_imu(time, np.array((0.0, 0.0, GRAVITY, 0.0, 0.0, 0.0)))
    assert estimator.estimate is not None

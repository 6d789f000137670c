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
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.alignment import Alignment
from rfly_autonomy.estimation.error_state import GROUND_ERROR
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters, constants_of
from rfly_autonomy.estimation.filter_kernels import report
from rfly_autonomy.estimation.filter_records import (
    BAROMETER,
    DEGREES,
    FIRST_NUMBERS,
    KIND_FIELD,
    KIND_GPS,
    KIND_HEIGHT,
    KIND_JOINTS,
    KIND_LOADS,
    KIND_ORIENTATION,
    KIND_PRESSURE,
    MAGNETOMETER,
    NOTHING,
    ROTORS,
    SAME_TIME,
    SENSORS,
    WHEEL_SPEED,
)
from rfly_autonomy.estimation.imu_noise import ImuNoise
from rfly_autonomy.estimation.reading_times import LATE, LEAP, ReadingTimes
from rfly_autonomy.estimation.rewinding_filter import RewindingFilter
from rfly_autonomy.estimation.rotor_motion import LONGEST_GAP, RotorModel, RotorMotion
from rfly_autonomy.estimation.speed_consistency import SLIDE_FLOOR, SLIDE_LIMIT
from rfly_autonomy.estimation.stuck_readings import StuckSensors
from rfly_autonomy.estimation.wheel_contact import (
    FlightLoads,
    LoadWatch,
    TurnWatch,
    loads_of_struts,
)
from rfly_common.arrays import Floats
from rfly_common.config.checks import all_finite
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
from rfly_terrain.height_map.height_map import HeightMap, ground_of

COAST_PERIOD = 0.02
"""Time between steps without the IMU, s."""
MOST_AHEAD = 10.0
"""Longest time of a reading after the IMU's last sample, s. A later one is of another clock."""
DOUBT_TIME = 2.0
"""Time for which the IMU is in doubt after the motion was estimated anew, s."""
FAST_SPIN = 3.0
"""Rate above which the antenna of a GPS swings, rad/s: its readings seem noisy."""
JOLT = 0.1
"""Rate of a strut above which a step or rough ground shakes the IMU, m/s: it seems noisy."""
MOST_MISFITS = 0.8
"""Share of readings that do not fit well above which a sensor is at fault."""
LONGEST_SLIP = 60.0
"""Time after which wheels that seem to slip have encoders at fault, s: on ice they may for long."""
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

_PARTS = ("wheel_loads", "encoders", "gps", "magnetometer", "barometer", "imu", "height")
"""Sensors of the measurements, in the order of their kinds."""

_OUTVOTED_BY = {"magnetometer": MAGNETOMETER, "barometer": BAROMETER, "encoders": WHEEL_SPEED}
"""Measurement of each sensor that the others outvote."""


_SEVERAL = ("encoders", "wheel_loads")
"""Sensors that are more than one."""
REPEATS = ("repeats its readings: left out", "repeat their readings: left out")
SILENT = ("is silent", "are silent")
LOSES = ("loses many of its readings", "lose many of their readings")
COMES_LATE = ("comes late by {:.2f} s", "come late by {:.2f} s")
IS_AHEAD = (
    "is ahead of the others by {:.2f} s: left out",
    "are ahead of the others by {:.2f} s: left out",
)
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

        self._filter = RewindingFilter(parameters.history, sensors.imu.rate)
        self._imu_noise = ImuNoise(sensors.imu.rate)
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
        self._use_noise()

    def _use_noise(self) -> None:
        """Carry the filter on with an IMU that is as noisy as it shows itself."""
        self._filter.use(self._imu_noise.constants(self._constants), self._ground)

    def reset(self) -> None:
        """Return to the initial state, which has to be aligned again."""
        self._alignment: Alignment | None = Alignment(
            self.parameters, self.sensors, self._constants
        )
        self._filter.clear()
        self._last_orientation = -math.inf
        self._estimate: Estimate | None = None
        self._revision = -1
        """The filter's revision of which the estimate is."""

        self._stuck = StuckSensors(self.sensors)
        self._imu_noise = ImuNoise(self._imu_noise.rate)
        self._use_noise()
        self._times = ReadingTimes(self.sensors)
        self._ahead: set[str] = set()
        """Sensors whose readings are ahead of the others."""
        self._loads = LoadWatch(self.vehicle)
        self._flight_loads = FlightLoads(self.vehicle)
        self._turns = TurnWatch(
            self.sensors.encoders is not None and self.sensors.encoders.wheel_counts > 0
        )
        self._rolled_at = -math.inf
        """Time at which the rates of the wheels fitted the motion, s."""

        self._rotors = RotorModel(self.vehicle)
        self._force = 0.0
        """Newest specific force along the body's z axis, m/s²."""

        self._spun_at = -math.inf
        """Time at which the vehicle last span fast, s."""

        self._jolted_at = -math.inf
        """Time at which a strut last moved fast, s."""
        encoders = self.sensors.encoders
        self._jolt = JOLT + 5.0 * (0.0 if encoders is None else encoders.strut_rate_noise)
        """Rate of a strut above which it moves fast, m/s."""

        self._outvoted: set[str] = set()
        self._coasted_at = -math.inf
        """Time at which the filter last went on without the IMU, s."""

        self.late = dict.fromkeys((*KINDS, "imu"), 0)
        """Readings that came too late to be used, by sensor."""
        self.invalid = dict.fromkeys((*KINDS, "imu"), 0)
        """Readings with numbers that are not finite, or of a time far ahead, by sensor."""

    def set_terrain(self, terrain: HeightMap | None) -> None:
        """Use another map from now on. Position and motion stay known."""
        self._filter.advance()
        self._use(terrain)
        if self._alignment is not None:
            self._alignment = Alignment(self.parameters, self.sensors, self._constants)
            return

        # the ground's error begins anew
        self._filter.x[0].ground_error = 0.0
        self._filter.book[0].off_map = 0.0
        self._filter.book[0].bend_variance = 0.0
        covariance = self._filter.p
        covariance[GROUND_ERROR, :] = 0.0
        covariance[:, GROUND_ERROR] = 0.0
        covariance[GROUND_ERROR, GROUND_ERROR] = 1e6
        if terrain is not None:
            covariance[GROUND_ERROR, GROUND_ERROR] = self.parameters.map_error**2
        self._filter.forget_past()

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
        self._filter.advance()
        if self.initialised and self._revision != self._filter.revision:
            self._revision = self._filter.revision
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
        return self.initialised and self._filter.coasting

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
        for part in self._times.silent(now):
            faults[part] = _text(part, SILENT)
        for part, age in self._times.late(now).items():
            faults.setdefault(part, _text(part, COMES_LATE).format(age))
        for part, lead in self._times.ahead.items():
            faults.setdefault(part, _text(part, IS_AHEAD).format(lead))
        if np.linalg.norm(self._current("rates")) > FAST_SPIN:
            self._spun_at = now
        shaken = {
            part
            for part, since in (("gps", self._spun_at), ("imu", self._jolted_at))
            if now - since < DOUBT_TIME
        }
        for part in sorted(self._stuck.noisy - shaken):
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
        if self._current("pressure_stepped"):
            faults.setdefault("barometer", "has a bias since a step: corrected")
        if self._current("gps_velocity_refused"):
            faults.setdefault("gps", "has a velocity that does not fit: left out")
        for part in self._outvoted_parts():
            faults.setdefault(part, _text(part, MISFITS))

        # least of all, so that it hides nothing
        for part in sorted(self._times.lossy):
            faults.setdefault(part, _text(part, LOSES))
        return faults

    def _outvoted_parts(self) -> set[str]:
        """Return the sensors most of whose readings do not fit, until few of them do not.

        Without the IMU the prediction is too coarse to outvote a sensor.
        """
        now = float(self._current("time"))
        if self.coasting:
            self._coasted_at = now
        if now - self._coasted_at < DOUBT_TIME:
            return self._outvoted
        misfits = self._current("misfits")
        age = self._current("time") - self._current("last_measured")
        for part, sensor in _OUTVOTED_BY.items():
            least = FEW_MISFITS if part in self._outvoted else MOST_MISFITS
            unfit = age[sensor] < DOUBT_TIME and misfits[sensor] > least
            if part == "encoders":
                slips = self._wheels_slip(unfit)
                unfit = unfit and not slips
            if unfit:
                self._outvoted.add(part)
            else:
                self._outvoted.discard(part)
        return self._outvoted

    def _wheels_slip(self, unfit: bool) -> bool:
        """Return whether wheels whose rates do not fit the motion slip: they turn as they say.

        No encoder makes a vehicle move across its wheels: one that slides so may do it for long.
        """
        now = float(self._current("time"))
        if not unfit or self._slides_across():
            self._rolled_at = now
        return self._turns.turn and now - self._rolled_at < LONGEST_SLIP

    def _slides_across(self) -> bool:
        """Return whether GPS and IMU show a motion across the wheels, beyond any steering angle."""
        book = self._filter.book[0]
        left = rotation_matrix(self._filter.x["quaternion"][0, XYZW])[:2, 1]
        across = abs(float(book["wheels_apart"] @ left))
        speed = float(np.linalg.norm(book["free_velocity"]))
        spread = math.hypot(math.sqrt(book["free_variance"]), SLIDE_FLOOR)
        least = SLIDE_LIMIT * spread + self.vehicle.max_steering * speed
        return bool(book["wheels_slide"]) and across > least

    @property
    def gyro_bias(self) -> Floats:
        """Bias of the gyroscope, rad/s, body axes, (3,)."""
        self._filter.advance()
        return self._filter.x["gyro_bias"][0].copy()

    @property
    def force_bias(self) -> Floats:
        """Bias of the accelerometer, m/s², body axes, (3,)."""
        self._filter.advance()
        return self._filter.x["force_bias"][0].copy()

    @property
    def covariance(self) -> Floats:
        """Covariance of all errors at the IMU, (27, 27); `error_state` has their order."""
        self._filter.advance()
        return self._filter.p.copy()

    def _current(self, field: str) -> Any:
        """Return a field of the filter's book."""
        return self._current_book()[field]

    def _current_book(self) -> Any:
        """Return the filter's book, a record BOOK, after all readings."""
        self._filter.advance()
        return self._filter.book[0]

    def _report(self) -> Estimate | None:
        """Return the estimate for the body's origin, or None if it is not credible."""
        x = self._filter.x
        book = self._filter.book
        position = np.empty(3)
        velocity = np.empty(3)
        covariance = np.empty((9, 9))
        credible = report(x, book, self._filter.p, self._lever, position, velocity, covariance)
        if not credible:
            return None
        time = float(book["time"][0])
        orientation = x["quaternion"][0, XYZW]
        rates = book["rates"][0].copy()
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
        if self._is_left_out(kind, readings):
            return readings.__class__(*(field[:0] for field in readings))
        was_stuck = kind in self._stuck.stuck
        sound = self._stuck.sound(kind, readings)
        if kind in self._stuck.stuck and not was_stuck and self.initialised:
            since = self._stuck.since(kind)
            if kind == "imu":
                self._filter.forget_motion(since)
                self._rotors.forget_rates(since)
            self._filter.forget_readings(_KINDS_OF[kind], since)
        return readings.__class__(*(field[:0] for field in readings)) if sound is None else sound

    def _is_left_out(self, part: str, readings: Any) -> bool:
        """Note the time of a sensor's newest reading; return whether it is ahead of the others."""
        if len(readings.time):
            self._times.hear(part, float(readings.time[-1]), len(readings.time))
        ahead = self._times.ahead.keys()
        if ahead > self._ahead and self.initialised:
            for each in ahead - self._ahead:
                self._filter.forget_readings(_KINDS_OF[each], self._filter.end_time)
            if "encoders" in ahead:
                self._rotors = RotorModel(self.vehicle)
        self._ahead = set(ahead)
        return part in ahead

    def imu(self, readings: samples.ImuSamples) -> None:
        """Take in force and rates, which carry the state on, and orientations to measure with."""
        readings = self._sound("imu", readings)
        is_shaken = self.initialised and self._filter.end_time - self._jolted_at < DOUBT_TIME
        if self._imu_noise.update(self._stuck, is_shaken):
            self._use_noise()
        force = readings.specific_force
        rates = readings.rates
        if self._turned:
            force = force @ self._mounting.T
            rates = rates @ self._mounting.T
        motion = np.concatenate([force, rates], axis=1)
        if len(rates) and not self._times.is_late("imu"):
            self._rotors.sense_rates(rates[-1])
        if len(rates):
            self._force = float(force[-1, 2])
        for k, time in enumerate(readings.time.tolist()):
            if time - self._last_orientation >= self._orientation_period - SAME_TIME:
                self._add_orientation(time, readings.orientation[k])
            self._add_imu(time, motion[k])
        self._catch_up()

    def _catch_up(self) -> None:
        """Go on from the last sample of an IMU that comes late to the newest of the encoders."""
        leads = self._times.leads("encoders")
        if self._alignment is None and not leads and self._is_ahead(self._rotors.time):
            self._coast(self._rotors.time)

    def _is_ahead(self, time: float) -> bool:
        """Return whether a time, s, is too far after the IMU's last sample to wait for more.

        One of another clock is not.
        """
        patience = LATE if self._times.is_late("imu") else self.parameters.silence
        return patience < time - self._filter.end_time <= MOST_AHEAD

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
        if self._is_left_out("encoders", readings):
            return
        has_struts = readings.strut.shape[1] == len(self.vehicle.wheels)
        has_rotors = readings.rotor_rate.shape[1] == self.vehicle.rotors
        if self.initialised and has_struts and (np.abs(readings.strut_rate) > self._jolt).any():
            # not by the clock of the readings, which may be another
            self._jolted_at = float(self._current("time"))
        for k, time in enumerate(readings.time.tolist()):
            if has_struts and self._contradicted("encoders", time, readings.strut[k]):
                continue
            if self._turns_at_rest(time, readings.wheel_angle[k], readings.wheel_rate[k]):
                continue
            if has_rotors and not self._times.leads("encoders"):
                speeds = readings.rotor_rate[k]
                self._rotors.sense(time, speeds)
                if has_struts:
                    strut = readings.strut[k]
                    self._flight_loads.witness(time, strut, speeds, self._force, self._rotors.force)
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
        if self._is_left_out("wheel_loads", readings):
            return
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
            self._filter.forget_readings(_KINDS_OF[sensor], self._loads.since(sensor))
        return stuck

    def _turns_at_rest(self, time: float, angles: Floats, rates: Floats) -> bool:
        """Return whether wheels rest that turn by their rates; forget readings since when."""
        was_stuck = self._turns.stuck
        stuck = self._turns.update(time, angles.tolist(), rates.tolist())
        if stuck and not was_stuck and self.initialised:
            self._filter.forget_readings(_KINDS_OF["encoders"], self._turns.since)
        return stuck

    def _lies_in_flight(self, time: float, load: Floats) -> bool:
        """Return whether load cells show load in flight; forget their readings since when."""
        lied = self._flight_loads.lies
        lies = self._flight_loads.update(time, load.tolist())
        if lies and not lied and self.initialised:
            self._filter.forget_readings(_KINDS_OF["wheel_loads"], self._flight_loads.since)
        return lies

    def height(self, readings: samples.HeightSamples) -> None:
        """Take in heights above the ground. Those out of the sensor's range are left out."""
        readings = self._sound("height", readings)
        for k, time in enumerate(readings.time.tolist()):
            if not math.isinf(readings.distance[k]):
                self._add(KIND_HEIGHT, time, readings.distance[k : k + 1])

    # measurements and samples in the order of times

    def _add(self, kind: int, time: float, values: Floats) -> None:
        """Put a measurement into the log, which is in the order of times and kinds."""
        if not (math.isfinite(time) and all_finite(values)):
            self.invalid[KINDS[kind]] += 1
            return
        if self._alignment is not None:
            self._alignment.add(kind, time, values)
            return
        end = self._filter.end_time
        if time - end > MOST_AHEAD:
            self.invalid[KINDS[kind]] += 1
            return
        if time <= self._filter.begin_time + SAME_TIME:
            self.late[KINDS[kind]] += 1
            return

        is_new = self._filter.add(kind, time, values)
        is_ahead = time > end + SAME_TIME and not self._times.leads(_PARTS[kind])
        is_ahead = is_ahead and (time - end <= LEAP or self._times.is_confirmed(time))
        if is_new and is_ahead and (self._is_ahead(time) or self.coasting):
            self._coast(time)

    def _add_imu(self, time: float, motion: Floats) -> None:
        """Put force and rates (6,) of the IMU into its log, in body axes."""
        if not (math.isfinite(time) and all_finite(motion)):
            self.invalid["imu"] += 1
            return
        if self._alignment is None and time - self._filter.end_time > MOST_AHEAD:
            self.reset()
        if self._alignment is not None:
            self._alignment.add_imu(time, motion)
            if self._alignment.is_ready():
                self._begin(self._alignment)
            return

        # the IMU was not silent, only late
        self._filter.drop_coasted(time)

        end = self._filter.end_time
        if time <= end + SAME_TIME:
            self.late["imu"] += 1
            return
        if time - end > self.parameters.silence:
            self._coast(time)
        self._filter.add_sample(time, motion)

    def _coast(self, time: float) -> None:
        """Go on to a time without the IMU: by the rotors, or else by nothing."""
        for motion in self._rotors.since(self._filter.end_time, time):
            self._coast_blindly(motion.time - motion.duration)
            self._turn_on(motion)
        if time - self._rotors.time > LONGEST_GAP:
            self._coast_blindly(time)

    def _coast_blindly(self, time: float) -> None:
        """Go on to a time without any knowledge of the motion."""
        while self._filter.end_time + COAST_PERIOD <= time:
            self._filter.append(self._filter.end_time + COAST_PERIOD, np.zeros(6), NOTHING)

    def _turn_on(self, motion: RotorMotion) -> None:
        """Go on by the rotors from the present motion."""
        last = self._filter.last_row
        rates = last.rates
        if last.source != ROTORS:
            rates = self._current("rates")
        force = np.array((0.0, 0.0, motion.force))
        turned = rates + (motion.time - self._filter.end_time) * motion.turn
        self._filter.append(motion.time, np.concatenate([force, turned]), ROTORS)

    def _begin(self, alignment: Alignment) -> None:
        """Start the filter at the IMU's last sample from an alignment that is ready."""
        first = alignment.begin(self._ground)
        self._filter.begin(alignment.imu[-1], first, alignment.ahead(MOST_AHEAD))
        self._alignment = None
        self._revision = -1


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

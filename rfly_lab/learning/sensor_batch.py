# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensors with noise of the vehicles of a batch: what they have measured last, and its age."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_amphibious.dynamics.vehicle_batch import VehicleBatch
from rfly_amphibious.sensors import sensor_kernels
from rfly_amphibious.sensors.ideal_readings import ideal_readings, mounting_of
from rfly_amphibious.sensors.noise import NoiseModel, channel_noise
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import NoisySensor, SensorParameters
from rfly_amphibious.sensors.sensor_suite import joint_geometry
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.wheel_contact import SENSOR_TIMEOUT
from rfly_common.arrays import Floats, Ints
from rfly_common.errors import ConfigError
from rfly_common.frames import ned_to_enu, quat_conjugate, quat_multiply
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, GeoPoint, geodetic_to_ned
from rfly_lab.learning import sensor_batch_kernels as kernels
from rfly_lab.learning.episodes import EpisodeLayout, Episodes
from rfly_lab.learning.tasks import Task
from rfly_lab.learning.views import NAMES, sensor_names

TURN = 2.0 * math.pi
MOST_FIXES = 64
"""Most GPS fixes on their way to a vehicle."""
IMU_TIMEOUT = 0.1
"""Age beyond its period at which an attitude no longer counts, s: it turns a vehicle over."""
SLACK = 1e-3
"""Share of a period by which an age may lack a whole period and still count as one.

Times are seconds since 1970, whose floats are 0.24 µs apart.
"""


def _noises(p: VehicleParameters, sensors: SensorParameters) -> dict[str, NoiseModel]:
    """Return the noise of each sensor that is seen, with its channels."""
    noises: dict[str, NoiseModel] = {}
    for name in NAMES:
        sensor = getattr(sensors, name)
        if isinstance(sensor, NoisySensor):
            noises[name] = sensor.noise
    if sensors.encoders is not None:
        noises["encoders"] = NoiseModel(p.rotors, white_sigma=sensors.encoders.rotor_noise)
    if sensors.wheel_loads is not None:
        cells = sensors.wheel_loads
        noises["wheel_loads"] = NoiseModel(len(p.wheels), white_sigma=cells.load_noise)
    return noises


def suite_of(
    p: VehicleParameters, sensors: SensorParameters, period: float, altitude: float
) -> kernels.Suite:
    """Return a set of sensors for kernels, observed once a period, s.

    `altitude`: of the world's origin above sea level, m. Raise ConfigError for a set without IMU or
    GPS, and if too many fixes are on their way.
    """
    if sensors.imu is None or sensors.gps is None:
        lacking = "imu" if sensors.imu is None else "gps"
        raise ConfigError(f"sensors: {sensors.name!r} has no {lacking}, expected one with both")
    sample = np.ones(len(NAMES))
    channels = np.zeros(len(NAMES), np.int64)
    noise = []
    place = []
    beginning = []
    for s, name in enumerate(NAMES):
        own = _noises(p, sensors).get(name)
        if own is None:
            continue
        sample[s] = 1.0 / getattr(sensors, name).rate
        channels[s] = own.channels
        place.append(kernels.MOST_CHANNELS * s + np.arange(own.channels))
        noise.append(channel_noise(own, sample[s], between=max(sample[s], period)))
        beginning.append(np.column_stack([own.bias, own.turn_on_bias, own.markov_sigma]))

    encoders = sensors.encoders
    counts = (0, 0) if encoders is None else (encoders.wheel_counts, encoders.steering_counts)
    wheel_count, steering_count = (TURN / count if count else 0.0 for count in counts)
    height = sensors.height
    return kernels.Suite(
        period=period,
        first=np.where(channels > 0, np.cumsum(channels) - channels, -1),
        channels=channels,
        sample=sample,
        place=np.concatenate(place),
        noise=np.concatenate(noise),
        beginning=np.concatenate(beginning),
        latency=math.ceil(sensors.gps.latency / period - 1e-9),
        mounting=mounting_of(sensors),
        altitude=altitude,
        min_height=0.0 if height is None else height.min_range,
        max_height=0.0 if height is None else height.max_range,
        wheel_count=wheel_count,
        steering_count=steering_count,
        joints=joint_geometry(p),
    )


def _memory(suite: kernels.Suite, count: int, wheels: int, fixes: int) -> kernels.SensorMemory:
    """Return the memory of vehicles whose sensors have not measured, with room for GPS fixes."""
    channels = len(suite.noise)
    return kernels.SensorMemory(
        readings=np.zeros((count, channels)),
        measured=np.zeros((count, kernels.SENSORS), np.int64),
        errors=np.zeros((count, channels), sensor_kernels.CHANNEL_ERRORS),
        attitude=np.tile((0.0, 0.0, 0.0, 1.0), (count, 1)),
        fixes=np.zeros((count, fixes, 6)),
        sent=np.full((count, fixes), -1),
        steering=np.zeros(count),
        spin=np.zeros((count, wheels)),
        turning=np.zeros((count, wheels)),
        angle=np.zeros((count, wheels)),
        counted=np.zeros((count, wheels)),
    )


class SensorBatch:
    """The sensors of the vehicles of a batch.

    All measure as an episode begins, then each at the first observation at or after every multiple
    of its period. One of a shorter period than that of the observations measures at each. A GPS fix
    comes its latency later. Raise ConfigError as `suite_of` does.
    """

    def __init__(self, vehicles: VehicleBatch, sensors: SensorParameters, period: float) -> None:
        model = vehicles.models[0]
        p = model.params
        origin = model.terrain.geo_origin if model.terrain is not None else None
        altitude = (origin or DEFAULT_GEO_ORIGIN)[2]
        self.suite = suite_of(p, sensors, period, altitude)
        self._vehicles = vehicles

        # fixes on their way: the closest follow each other by whole observations
        between = max(1, math.floor(self.suite.sample[kernels.GPS] / period + 1e-9))
        fixes = self.suite.latency // between + 1
        if fixes > MOST_FIXES:
            raise ConfigError(
                f"gps.latency: {fixes} fixes on their way, expected at most {MOST_FIXES}"
            )

        self.memory = _memory(self.suite, len(vehicles.x), len(p.wheels), fixes)
        """Last readings and errors."""

    def measure(self, which: Ints, episodes: Episodes, rows: Floats) -> None:
        """Let the sensors of vehicles (k,) measure that are due; those that have failed don't.

        `rows`: commands that act, (k, controls), as of `Controls.rows`.
        """
        vehicles = self._vehicles
        for kind in np.unique(vehicles.kind[which]).tolist():
            is_own = (vehicles.kind[which] == kind) & ~vehicles.has_failed[which]
            own = which[is_own]
            model = vehicles.models[kind]
            ideal = ideal_readings(
                model,
                self.suite.mounting,
                vehicles.x[own],
                vehicles.memory[own],
                (rows[is_own], False),
                vehicles.mean_wind[own],
            )
            heights = model.height_above_ground(ideal.truth["height_place"])
            truth = kernels.Truth(ideal.x, ideal.truth, heights, ideal.loads)
            keys = vehicles.gust_keys + np.uint64(1)
            kernels.measure(own, episodes.steps, keys, self.suite, truth, self.memory)

    def observe(
        self, task: Task, layout: EpisodeLayout, episodes: Episodes, seen: NDArray[np.float32]
    ) -> None:
        """Write what each vehicle sees to (n, numbers), named by `sensor_names`."""
        kernels.observe_by_sensors(task, self.suite, self.memory, layout, episodes, seen)

    def motion(self) -> tuple[Floats, Floats]:
        """Return rotations (n, 3, 3), body -> world, and positions and velocities (n, 2, 3).

        They are those of the IMU, and of the last GPS fixes, in m and m/s, world.
        """
        count = len(self.memory.attitude)
        rotations = np.empty((count, 3, 3))
        motion = np.empty((count, 2, 3))
        kernels.navigate(self.suite, self.memory, rotations, motion)
        return rotations, motion


class SampledSensors:
    """The sensors of one vehicle outside an environment, as it sees by them in one.

    Samples take the place of measurements. Wheels are straight and stand, as those of a policy
    without wheels do in its training. Raise ConfigError as `suite_of` does.
    """

    def __init__(self, p: VehicleParameters, sensors: SensorParameters, period: float) -> None:
        self._suite = suite_of(p, sensors, period, DEFAULT_GEO_ORIGIN[2])
        self._memory = _memory(self._suite, 1, len(p.wheels), 1)
        self._origin = DEFAULT_GEO_ORIGIN
        self._numbers = len(sensor_names(p, sensors))
        self._measured = dict.fromkeys(NAMES, -math.inf)
        """Time of the last sample of each sensor, s."""
        late = dict.fromkeys(NAMES, SENSOR_TIMEOUT)
        late["imu"] = IMU_TIMEOUT
        late["gps"] += 0.0 if sensors.gps is None else sensors.gps.latency
        self._oldest = {
            name: self._suite.sample[s] + late[name]
            for s, name in enumerate(NAMES)
            if self._suite.first[s] >= 0
        }
        """Age that a sample of each sensor that it has may reach, s."""

    def set_origin(self, origin: GeoPoint) -> None:
        """Take GPS and barometer to be in a world whose origin is there, deg and m."""
        self._origin = origin
        self._suite = self._suite._replace(altitude=origin[2])

    def sense(self, samples: SensorSamples) -> None:
        """Take the last of the samples of each sensor."""
        imu = samples.imu
        if imu is not None:
            self._put(kernels.IMU, imu.time, [*imu.specific_force[-1], *imu.rates[-1]])
            unmount = quat_conjugate(self._suite.mounting[0]["imu_quat"])
            self._memory.attitude[0] = quat_multiply(imu.orientation[-1], unmount)
        gps = samples.gps
        if gps is not None and np.isfinite(gps.velocity[-1]).all():
            place = ned_to_enu(geodetic_to_ned(gps.geodetic[-1], self._origin))
            self._put(kernels.GPS, gps.time, [*place, *gps.velocity[-1]])
        if samples.barometer is not None:
            self._put(kernels.BAROMETER, samples.barometer.time, samples.barometer.pressure[-1:])
        if samples.height is not None:
            self._put(kernels.HEIGHT, samples.height.time, samples.height.distance[-1:])
        if samples.joints is not None:
            rates = np.abs(samples.joints.rotor_rate[-1])
            self._put(kernels.ENCODERS, samples.joints.time, rates)
        if samples.wheel_loads is not None:
            self._put(kernels.WHEEL_LOADS, samples.wheel_loads.time, samples.wheel_loads.load[-1])

    def _put(self, sensor: int, time: Floats, numbers: ArrayLike) -> None:
        """Note the readings of a sensor, unless the set lacks it."""
        first = self._suite.first[sensor]
        if first >= 0:
            self._measured[NAMES[sensor]] = float(time[-1])
            values = np.asarray(numbers, float)
            self._memory.readings[0, first : first + len(values)] = values

    @property
    def fix(self) -> Floats:
        """Last GPS fix, the antenna's position, m, world, (3,)."""
        first = self._suite.first[kernels.GPS]
        return self._memory.readings[0, first : first + 3]

    def missing(self, time: float) -> list[str]:
        """Return the names of the sensors whose samples are lacking or too old at a time, s."""
        measured = self._measured
        return [name for name, most in self._oldest.items() if not time - measured[name] <= most]

    def observe(
        self, task: Task, layout: EpisodeLayout, episode: Episodes, time: float
    ) -> NDArray[np.float32]:
        """Return what it sees at a time, s, of an episode of one vehicle, (1, numbers).

        None of its sensors may be missing.
        """
        for s, name in enumerate(NAMES):
            if name in self._oldest:
                age = max(time - self._measured[name], 0.0)
                periods = math.floor(age / self._suite.period + SLACK)
                self._memory.measured[0, s] = episode.steps[0] - periods
        seen = np.empty((1, self._numbers), np.float32)
        kernels.observe_by_sensors(task, self._suite, self._memory, layout, episode, seen)
        return seen

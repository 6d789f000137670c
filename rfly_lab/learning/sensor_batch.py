# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensors with noise of the vehicles of a batch: what they have measured last, and its age."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.dynamics.vehicle_batch import VehicleBatch
from rfly_amphibious.sensors import sensor_kernels
from rfly_amphibious.sensors.ideal_readings import ideal_readings, mounting_of
from rfly_amphibious.sensors.noise import NoiseModel, channel_noise
from rfly_amphibious.sensors.sensor_parameters import NoisySensor, SensorParameters
from rfly_amphibious.sensors.sensor_suite import joint_geometry
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats, Ints
from rfly_common.errors import ConfigError
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN
from rfly_lab.learning import sensor_batch_kernels as kernels
from rfly_lab.learning.episodes import Episodes, Layout
from rfly_lab.learning.tasks import Task
from rfly_lab.learning.views import NAMES

TURN = 2.0 * math.pi
MOST_FIXES = 64
"""Most GPS fixes on their way to a vehicle."""


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

        count = len(vehicles.x)
        wheels = len(p.wheels)
        channels = len(self.suite.noise)
        self.memory = kernels.Memory(
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
        self, task: Task, layout: Layout, episodes: Episodes, seen: NDArray[np.float32]
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

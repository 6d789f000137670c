# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Planar lidar and small depth images of the vehicles of a batch, by the rays of the sensors."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.dynamics.vehicle_batch import VehicleBatch
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.errors import ConfigError
from rfly_common.frames import euler_to_quat, rotation_matrix
from rfly_lab.learning import range_batch_kernels as kernels
from rfly_sensing.cameras import Gimbal, Pinhole, camera_pose
from rfly_sensing.neighbours import world_bodies
from rfly_sensing.range_sensor_parameters import RINGS, GimbalParameters
from rfly_sensing.scan_patterns import towards
from rfly_sensing.scene_rays import SceneRays
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.world import World

LIDAR = 2
"""Stream of the lidar's random numbers; other sensors have 1."""
DEPTH = 3
"""Stream of those of the depth image."""
MOST_AT_ONCE = 262_144
"""Most rays that are cast at once, which bounds the memory."""


def scene_of(terrain: HeightMap, objects: World) -> SceneRays:
    """Return the scene of a map and what stands on it."""
    return SceneRays(terrain, world_bodies(objects))


def lidar_optics(sensors: SensorParameters, rays: int) -> kernels.Optics:
    """Return rays around the lidar, from forward to the left, in its ring of the planar scan.

    Raise ConfigError for a set without lidar.
    """
    p = sensors.lidar
    if p is None:
        raise ConfigError(f"lidar: the sensors {sensors.name!r} have none")

    # ring of the planar scan
    elevation = 0.0
    if sensors.scan is not None and p.pattern == RINGS:
        elevation = float(p.elevations[sensors.scan.ring(p)])

    # directions in body axes
    mounting = rotation_matrix(euler_to_quat(p.rotation))
    unit = towards(np.arange(rays) * (2.0 * math.pi / rays), elevation)
    return kernels.Optics(
        origin=p.position,
        directions=np.ascontiguousarray(unit @ np.asarray(mounting).T, np.float64),
        along=np.ones(rays),
        nearest=p.min_range,
        farthest=p.max_range,
        noise=p.noise,
        noise_square=0.0,
        dropout=p.dropout,
        sample=1.0 / p.rate,
    )


def depth_optics(sensors: SensorParameters, rows: int, columns: int) -> kernels.Optics:
    """Return the pixels of an image of the depth camera with these rows and columns, row by row.

    They look through the middles of larger pixels in the same field of view; the gimbal is level.
    Raise ConfigError for a set without depth camera.
    """
    p = sensors.depth_camera
    if p is None:
        raise ConfigError(f"depth: the sensors {sensors.name!r} have no depth camera")
    pinhole = Pinhole(dataclasses.replace(p, width=columns, height=rows))
    mount = sensors.gimbal or GimbalParameters()
    pose = camera_pose(np.zeros(3), np.eye(3), mount, Gimbal(mount).pitch)
    return kernels.Optics(
        origin=mount.position,
        directions=np.ascontiguousarray(pinhole.directions @ pose.rotation.T),
        along=pinhole.along,
        nearest=p.min_range,
        farthest=p.max_range,
        noise=p.noise,
        noise_square=p.noise_square,
        dropout=0.0,
        sample=1.0 / p.rate,
    )


def true_optics(optics: kernels.Optics, period: float) -> kernels.Optics:
    """Return the rays of a sensor without errors, which measures each period, s."""
    return optics._replace(noise=0.0, noise_square=0.0, dropout=0.0, sample=period)


class RangeBatch:
    """A range sensor of each vehicle of a batch.

    All its rays are cast at one instant. They measure when other sensors do (`SensorBatch`).
    `stream`: number of the sensor, which parts its random numbers from those of others.
    """

    def __init__(
        self,
        vehicles: VehicleBatch,
        scene: SceneRays,
        optics: kernels.Optics,
        period: float,
        stream: int,
    ) -> None:
        self.optics = optics
        self._vehicles = vehicles
        self._scene = scene
        self._period = period
        self._stream = np.uint64(stream)
        self._reach = optics.farthest / float(optics.along.min())
        count = len(vehicles.x)
        self.readings: NDArray[np.float32] = np.zeros((count, len(optics.along)), np.float32)
        """Last readings, m, (n, rays)."""
        self.measured: Ints = np.zeros(count, np.int64)
        """Step of the episode at which they were measured, (n,)."""

    def measure(self, which: Ints, steps: Ints) -> None:
        """Let those of the vehicles (k,) measure whose turn it is at their steps (n,)."""
        due: Bools = np.zeros(len(which), np.bool_)
        failed = self._vehicles.has_failed
        kernels.find_due(which, steps, failed, self.optics.sample, self._period, due)
        which = which[due]
        self.measured[which] = steps[which]
        rays = len(self.optics.along)
        block = max(1, MOST_AT_ONCE // rays)
        for first in range(0, len(which), block):
            self._cast(which[first : first + block], steps)

    def _cast(self, which: Ints, steps: Ints) -> None:
        """Cast the rays of the vehicles (k,), and read them."""
        shape = (len(which) * len(self.optics.along), 3)
        origins: Floats = np.empty(shape)
        directions: Floats = np.empty(shape)
        kernels.aim(which, self._vehicles.x, self.optics, origins, directions)
        hits = self._scene.cast(origins, directions, self._reach)
        keys = self._vehicles.gust_keys + self._stream
        kernels.read(which, steps, keys, hits.ranges, self.optics, self.readings)

    def ages(self, steps: Ints) -> Floats:
        """Return the ages of the readings at steps (n,), s."""
        return np.asarray((steps - self.measured) * self._period, np.float64)

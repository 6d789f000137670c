# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The scene of the window at one moment, for sensors that are mounted in it. ENU, m.

A sensor does not see the vehicle that carries it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rfly_collision.shapes.vehicle_meshes import SHAPES, colour_of
from rfly_common.arrays import Bools, Floats
from rfly_common.errors import ConfigError
from rfly_common.frames import (
    enu_to_ned,
    quat_enu_flu_to_ned_frd,
    quat_multiply,
    quat_rotate,
    quat_to_euler,
    rotation_matrix,
)
from rfly_sensing.cameras import CameraPose
from rfly_sensing.neighbours import seen_shapes
from rfly_sensing.scene_rays import SceneBodies, SceneRays, joined
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.imagery.imagery import Imagery
from rfly_terrain.world.models import CLASSES
from rfly_terrain.world.weather import Weather
from rfly_ue_bridge.codec.sensor_requests import Mount, VisionSensor
from rfly_ue_bridge.sensors.mounting import mount_pose
from rfly_viewer.scene.contacts import standing_poses
from rfly_viewer.scene.vehicle_table import WorldPoses

NO_VEHICLE = -1
"""Bearer of a sensor that is fixed on the map."""
VEHICLE_CLASS = CLASSES.index("vehicle")
MAX_MOUNTS = 4
"""Most sensors on top of each other."""


class SensorPose(NamedTuple):
    """Pose of a sensor (x forward, y left, z up) in the world."""

    position: Floats
    """Position, m, (3,)."""
    orientation: Floats
    """Rotation of the sensor's axes into the world's, xyzw, (4,)."""
    bearer: int
    """Id of the vehicle that carries it, or NO_VEHICLE."""

    @property
    def camera(self) -> CameraPose:
        """Pose of a camera that looks along x."""
        return CameraPose(self.position, rotation_matrix(self.orientation))

    @property
    def wire(self) -> Floats:
        """Pose as packets have it, (6,): NED, m, and roll, pitch, yaw of FRD, rad."""
        euler = quat_to_euler(quat_enu_flu_to_ned_frd(self.orientation))
        return np.concatenate([enu_to_ned(self.position), euler])


@dataclass(frozen=True, eq=False)
class WindowScene:
    """Ground, objects and vehicles that the window shows."""

    terrain: HeightMap
    poses: WorldPoses
    time: float
    """Time of the poses, s."""
    objects: SceneBodies | None = None
    """Objects of the world file on this ground."""
    weather: Weather = field(default_factory=Weather)
    imagery: Imagery | None = None
    """Picture of the ground."""

    @functools.cached_property
    def vehicles(self) -> SceneBodies:
        """Bodies of all vehicles, with the ids and colours that the window shows."""
        poses = self.poses
        position, orientation = self._standing
        shapes, index, row = seen_shapes(SHAPES).touching(poses.kind, poses.scale)
        return SceneBodies(
            shapes,
            index,
            position[row],
            orientation[row],
            np.zeros((len(row), 3)),
            np.zeros(len(row)),
            poses.id[row],
            np.asarray(colour_of(poses.id[row]), float) / 255.0,
            np.full(len(row), VEHICLE_CLASS),
        )

    @functools.cached_property
    def _standing(self) -> tuple[Floats, Floats]:
        return standing_poses(self.poses, np.arange(len(self.poses)), self.terrain)

    def seen_by(self, bearer: int) -> SceneRays:
        """Return the scene without the vehicle that carries the sensor."""
        vehicles = self.vehicles
        others = vehicles.id != bearer
        if not others.all():
            vehicles = _selected(vehicles, others)
        parts = [part for part in (vehicles, self.objects) if part is not None and len(part)]
        return SceneRays(self.terrain, joined(parts) if parts else None, self.imagery)

    def is_vehicle(self, scene: SceneRays, body: int) -> bool:
        """Return whether a body of `seen_by` is a vehicle; vehicles come first there."""
        objects = 0 if self.objects is None else len(self.objects)
        return scene.bodies is not None and 0 <= body < len(scene.bodies) - objects

    def sensor_pose(
        self, sensor: VisionSensor, sensors: Mapping[int, VisionSensor], depth: int = 0
    ) -> SensorPose:
        """Return the pose of a sensor; `sensors` are all, by SeqID, as one may carry another.

        Raises ConfigError that names the vehicle or sensor that is not there.
        """
        position, orientation = (np.asarray(part, float) for part in mount_pose(sensor))
        if sensor.mount == Mount.MAP:
            return SensorPose(position, orientation, NO_VEHICLE)

        if sensor.mount == Mount.SENSOR:
            carrier = sensors.get(sensor.target)
            if carrier is None or depth >= MAX_MOUNTS:
                raise ConfigError(f"sensor {sensor.seq_id}: no sensor {sensor.target} carries it")
            place, attitude, bearer = self.sensor_pose(carrier, sensors, depth + 1)
        else:
            place, attitude = self._mounting_place(sensor)
            bearer = sensor.target
            if sensor.mount == Mount.LEVEL:
                return SensorPose(place + position, orientation, bearer)

        return SensorPose(
            place + quat_rotate(attitude, position),
            np.asarray(quat_multiply(attitude, orientation), float),
            bearer,
        )

    def _mounting_place(self, sensor: VisionSensor) -> tuple[Floats, Floats]:
        """Return the place on a sensor's vehicle from which it is counted, and its attitude."""
        row = self.poses.row(sensor.target)
        if row is None:
            raise ConfigError(f"sensor {sensor.seq_id}: no vehicle {sensor.target} was seen yet")
        position, orientation = (part[row] for part in self._standing)
        if sensor.mount == Mount.BOTTOM:
            kind = self.poses.kind[row]
            bottom = SHAPES.column("low")[kind, 2] * self.poses.scale[row, 2]
            position = position + quat_rotate(orientation, (0.0, 0.0, bottom))
        return position, orientation


def _selected(bodies: SceneBodies, keep: Bools) -> SceneBodies:
    assert bodies.color is not None
    assert bodies.class_id is not None
    return dataclasses.replace(
        bodies,
        shape_index=bodies.shape_index[keep],
        position=bodies.position[keep],
        orientation=bodies.orientation[keep],
        velocity=bodies.velocity[keep],
        time=bodies.time[keep],
        id=bodies.id[keep],
        color=bodies.color[keep],
        class_id=bodies.class_id[keep],
    )

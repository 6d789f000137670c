# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lidar and cameras of one vehicle, stepped with its simulation. docs/model, section 11.

Due measurements are separate from measuring: a sweep takes milliseconds, and may be taken in
another thread, or not at all if there is no subscriber. Measurement k of a sensor depends on the
seed and k alone.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_common.arrays import Floats
from rfly_sensing.cameras import (
    CameraPose,
    ColorCamera,
    ColorImages,
    DepthCamera,
    DepthImages,
    Gimbal,
    camera_pose,
)
from rfly_sensing.lidar import Lidar, LidarSweep, VehicleTrack
from rfly_sensing.range_sensor_parameters import GimbalParameters
from rfly_sensing.scene_rays import SceneRays
from rfly_terrain.world.weather import Weather

# sensors of `RangeSensors`, by their sections in a sensor file
LIDAR = "lidar"
"""Name of the lidar."""
DEPTH_CAMERA = "depth_camera"
"""Name of the depth camera."""
COLOR_CAMERA = "color_camera"
"""Name of the colour camera."""

SLACK = 1e-9
"""Rounding error of a time, s."""


class Due(NamedTuple):
    """A measurement that can be made now."""

    sensor: str
    number: int
    time: float
    """Time of the image, or of the sweep's beginning, s."""
    track: VehicleTrack
    """Poses of base_link over the whole measurement."""
    pitch: float
    """Pitch of the gimbal, rad."""


class RangeSensors:
    """The lidar and cameras of one vehicle.

    Call `restart` when the simulation begins or jumps, and `advance` with each tick; then measure
    what is due. Sweep k of a lidar begins at k periods and is due when it ends; image k of a camera
    is taken at k periods.
    """

    def __init__(
        self, parameters: SensorParameters, *, seed: int | Sequence[int] = 0, noise: bool = True
    ) -> None:
        p = parameters
        self.parameters = p
        self.lidar = None if p.lidar is None else Lidar(p.lidar, seed=seed, noise=noise)
        self.depth_camera: DepthCamera | None = None
        if p.depth_camera is not None:
            self.depth_camera = DepthCamera(p.depth_camera, seed=seed, noise=noise)
        self.color_camera: ColorCamera | None = None
        if p.color_camera is not None:
            self.color_camera = ColorCamera(p.color_camera, seed=seed, noise=noise)
        self.gimbal = Gimbal(p.gimbal or GimbalParameters())

        sections = {LIDAR: p.lidar, DEPTH_CAMERA: p.depth_camera, COLOR_CAMERA: p.color_camera}
        self.periods = {
            name: 1.0 / section.rate for name, section in sections.items() if section is not None
        }
        """Periods of the vehicle's sensors by their names, s."""

        self._next: dict[str, int] = {}
        self._way: deque[VehicleTrack] = deque()
        self._now = math.nan

    def restart(self, time: float, position: ArrayLike, orientation: ArrayLike) -> None:
        """Begin anew at `time` (s).

        base_link is at `position` (3,) with `orientation` (4,) x y z w.
        """
        pose = VehicleTrack(
            np.array([time]),
            np.array(position, float).reshape(1, 3),
            np.array(orientation, float).reshape(1, 4),
        )
        self._way = deque([pose])
        self._next = {
            name: math.ceil((time - SLACK) / period) for name, period in self.periods.items()
        }
        self._now = time

    def advance(self, times: Floats, positions: Floats, orientations: Floats) -> list[Due]:
        """Take in poses of base_link since the last tick, and return what is due now.

        `times` (k,) s, `positions` (k, 3), `orientations` (k, 4) x y z w. Raises ValueError if
        these times do not follow those before.
        """
        if not (self._way and times[0] > self._now):
            raise ValueError(
                f"poses of {times[0]:.6g} s on come after those of {self._now:.6g} s: restart first"
            )
        now = float(times[-1])
        pitch = self.gimbal.advance(now - self._now)
        self._now = now
        self._way.append(VehicleTrack(times.copy(), positions.copy(), orientations.copy()))

        due: list[Due] = []
        track: VehicleTrack | None = None
        for name, period in self.periods.items():
            length = period if name == LIDAR else 0.0
            while self._next[name] * period + length <= now + SLACK:
                number = self._next[name]
                self._next[name] = number + 1
                if track is None:
                    track = VehicleTrack(
                        *(np.concatenate(parts) for parts in zip(*self._way, strict=True))
                    )
                due.append(Due(name, number, number * period, track, pitch))
        self._forget()
        return due

    def gimbal_at(self, time: float) -> tuple[float, float]:
        """Return pitch, rad, and rate, rad/s, of the gimbal at a time, s, since the last tick."""
        return self.gimbal.after(max(time - self._now, 0.0))

    def sweep(
        self, due: Due, scene: SceneRays, weather: Weather, rings: Sequence[int] | None = None
    ) -> LidarSweep:
        """Return the lidar's sweep."""
        assert self.lidar is not None
        return self.lidar.sweep(due.number, due.track, scene, weather, rings=rings)

    def depth_images(self, due: Due, scene: SceneRays, weather: Weather) -> DepthImages:
        """Return the depth camera's images."""
        assert self.depth_camera is not None
        return self.depth_camera.image(
            due.number, self.camera_pose(due), scene, weather, time=due.time
        )

    def color_images(self, due: Due, scene: SceneRays, weather: Weather) -> ColorImages:
        """Return the colour camera's images."""
        assert self.color_camera is not None
        return self.color_camera.image(
            due.number, self.camera_pose(due), scene, weather, time=due.time
        )

    def camera_pose(self, due: Due) -> CameraPose:
        """Return the pose of camera_link when the image is taken."""
        position, rotation = due.track.at(np.array([due.time]))
        return camera_pose(position[0], rotation[0], self.gimbal.parameters, due.pitch)

    def _forget(self) -> None:
        """Drop poses that no later measurement needs."""
        starts = (self._next[name] * period for name, period in self.periods.items())
        needed = min(starts, default=math.inf)
        while len(self._way) > 1 and self._way[1].time[0] <= needed:
            self._way.popleft()

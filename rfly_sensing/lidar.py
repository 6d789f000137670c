# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Spinning lidar on a moving vehicle: each column of a sweep has a firing time of its own.

docs/model, section 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.frames import euler_to_quat, quat_slerp, rotation_matrix
from rfly_sensing.random_generators import sensor_generator
from rfly_sensing.range_sensor_parameters import RINGS, LidarParameters
from rfly_sensing.scan_patterns import LIVOX, towards
from rfly_sensing.scene_rays import SceneRays
from rfly_terrain.world.models import CLASSES
from rfly_terrain.world.weather import Weather

POINT_WORDS = 6
"""32-bit words of a point: x, y, z, intensity, ring, time."""

REFLECTIVITY = {
    "building": 0.35,
    "vegetation": 0.5,
    "rock": 0.3,
    "wall": 0.35,
    "pole": 0.4,
    "person": 0.4,
    "barrier": 0.4,
    "bridge": 0.3,
}
"""Diffuse reflectivity by class, 0 … 1, at 0.9 µm. These are assumed round values.

Other classes have `body_reflectivity`.
"""

SLACK = 1e-6
"""Time by which a request may lie outside of a track, s."""


class VehicleTrack(NamedTuple):
    """Poses of base_link in the world, at rising times."""

    time: Floats
    """Times, s, (k,)."""
    position: Floats
    """Positions, m, (k, 3)."""
    orientation: Floats
    """Quaternions x y z w, body -> world, (k, 4)."""

    def at(self, times: Floats) -> tuple[Floats, Floats]:
        """Return positions (n, 3) and rotations (n, 3, 3) body -> world at times within the track.

        They lie on the straight line between two positions, and on the shortest turn between two
        attitudes.
        """
        if times.min() < self.time[0] - SLACK or times.max() > self.time[-1] + SLACK:
            raise ValueError(
                f"times {times.min():.6g} … {times.max():.6g} s lie outside of a track of "
                f"{self.time[0]:.6g} … {self.time[-1]:.6g} s"
            )
        if len(self.time) == 1:
            turns = np.repeat(self.orientation, len(times), 0)
            return np.repeat(self.position, len(times), 0), rotation_matrix(turns)

        after = np.clip(np.searchsorted(self.time, times), 1, len(self.time) - 1)
        before = after - 1
        share = (times - self.time[before]) / (self.time[after] - self.time[before])
        share = np.clip(share, 0.0, 1.0)[:, None]
        position = self.position[before] + share * (self.position[after] - self.position[before])
        turns = quat_slerp(self.orientation[before], self.orientation[after], share)
        return position, rotation_matrix(turns)


@dataclass(frozen=True, eq=False)
class LidarSweep:
    """Readings of one turn or frame. Columns are in the order of their firing."""

    start: float
    """Simulation time of the first column, s."""
    ranges: Floats
    """Measured ranges, m, (columns, rings). inf: no return, -inf: too near (REP 117), NaN: lost."""
    intensity: NDArray[np.float32]
    """Intensities 0 … 255, 0 without a return, (columns, rings)."""
    rings: Ints
    """Numbers of these rings, (rings,)."""
    times: NDArray[np.float32]
    """Times since `start`, s, (columns,)."""
    azimuths: Floats
    """Azimuths, rad, (columns,); NaN for patterns without rings."""
    directions: Floats
    """Unit vectors in the lidar's axes, (columns, rings, 3)."""

    def points(self) -> NDArray[np.float32]:
        """Return all returns as points (n, POINT_WORDS), in the lidar's axes at the time of each.

        A point is x, y, z (m), intensity, ring (a uint32 in these four bytes), time since `start`
        (s).
        """
        rings = self.ranges.shape[1]
        returns = np.flatnonzero(np.isfinite(self.ranges.reshape(-1)))
        column = returns // rings

        out = np.empty((len(returns), POINT_WORDS), np.float32)
        np.multiply(
            self.directions.reshape(-1, 3)[returns],
            self.ranges.reshape(-1)[returns, None],
            out=out[:, :3],
            casting="same_kind",
        )
        out[:, 3] = self.intensity.reshape(-1)[returns]
        out.view(np.uint32)[:, 4] = self.rings[returns - column * rings]
        out[:, 5] = self.times[column]
        return out


class Lidar:
    """One lidar. Sweep k depends on the seed and k alone, not on earlier sweeps."""

    def __init__(
        self, parameters: LidarParameters, *, seed: int | Sequence[int] = 0, noise: bool = True
    ) -> None:
        self.parameters = parameters
        self.noise = noise
        self._seed = seed
        self.times = np.arange(parameters.columns) / (parameters.columns * parameters.rate)

        # a spinning head has the same directions in each sweep
        self._unit: Floats | None = None
        self._azimuth = np.full(parameters.columns, np.nan)
        if parameters.pattern == RINGS:
            self._azimuth = parameters.azimuths
            self._unit = towards(self._azimuth[:, None], parameters.elevations)
        self._mounting = rotation_matrix(euler_to_quat(parameters.rotation))

    @property
    def period(self) -> float:
        """Time from one sweep to the next, s."""
        return 1.0 / self.parameters.rate

    def sweep(
        self,
        number: int,
        track: VehicleTrack,
        scene: SceneRays,
        weather: Weather | None = None,
        *,
        start: float | None = None,
        rings: Sequence[int] | None = None,
    ) -> LidarSweep:
        """Return sweep `number`, which begins at number · period unless `start` is given.

        `track` holds base_link's poses over the turn. `rings`: only these, with the same noise as
        in a whole sweep.
        """
        p = self.parameters
        weather = weather or Weather()
        start = number * self.period if start is None else start
        which = np.arange(p.beams) if rings is None else np.asarray(rings, np.int64)
        unit = self._directions(number)
        if rings is not None:
            unit = np.ascontiguousarray(unit[:, which])

        # rays
        origin, body = track.at(start + self.times)
        origin = origin + body @ np.asarray(p.position)
        columns, count = unit.shape[:2]
        directions = np.matmul(unit, np.swapaxes(body @ self._mounting, 1, 2)).reshape(-1, 3)
        origins = np.repeat(origin, count, axis=0)

        # hits
        reach = min(p.max_range, weather.reach(p.max_range))
        hits = scene.cast(origins, directions, reach, np.repeat(start + self.times, count))
        ranges = hits.ranges
        is_hit = np.isfinite(ranges)
        cosine = np.abs(np.einsum("ij,ij->i", directions, hits.normals))
        intensity = 255.0 * self._reflectivity(scene)[hits.body] * cosine
        if weather.extinction:
            intensity *= weather.transmission(2.0 * ranges)
        intensity[~is_hit] = 0.0

        # noise
        if self.noise:
            errors, lost = self._errors(number)
            ranges = ranges + errors[:, which].reshape(-1)
            ranges[is_hit & (ranges > reach)] = np.inf
        near = ranges < p.min_range
        ranges = np.where(near, -np.inf, ranges)
        if self.noise:
            ranges[lost[:, which].reshape(-1) & np.isfinite(ranges)] = np.nan
        intensity[~np.isfinite(ranges)] = 0.0

        return LidarSweep(
            start,
            ranges.reshape(columns, count),
            intensity.astype(np.float32).reshape(columns, count),
            which,
            self.times.astype(np.float32),
            self._azimuth,
            unit,
        )

    def _directions(self, number: int) -> Floats:
        """Return the unit vectors (columns, beams, 3) of a sweep in the lidar's axes."""
        p = self.parameters
        if self._unit is not None:
            return self._unit
        return LIVOX[p.pattern].directions(number, p.columns, p.rate)

    def _reflectivity(self, scene: SceneRays) -> Floats:
        """Return the reflectivity of each body, then that of GROUND and of NOTHING."""
        p = self.parameters
        bodies = scene.bodies
        by_class = np.full(256, p.body_reflectivity)
        by_class[: len(CLASSES)] = [REFLECTIVITY.get(name, p.body_reflectivity) for name in CLASSES]

        classes = np.zeros(0 if bodies is None else len(bodies), np.int64)
        if bodies is not None and bodies.class_id is not None:
            classes = bodies.class_id
        return np.append(by_class[classes], [p.ground_reflectivity] * 2)

    def _errors(self, number: int) -> tuple[NDArray[np.float32], Bools]:
        """Return the errors of the ranges (columns, beams), m, and which returns are lost."""
        generator = sensor_generator(self._seed, "lidar", number)
        shape = self.parameters.columns, self.parameters.beams
        errors = generator.standard_normal(shape, dtype=np.float32)
        errors *= np.float32(self.parameters.noise)
        return errors, generator.random(shape, dtype=np.float32) < self.parameters.dropout

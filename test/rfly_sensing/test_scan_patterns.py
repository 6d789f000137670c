# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Livox's patterns: fields of view, rates, coverage, and ranges against formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_collision.shapes.shape import Box, Sphere
from rfly_common.errors import ConfigError
from rfly_common.frames import euler_to_quat, rotation_matrix
from rfly_sensing.lidar import Lidar, VehicleTrack
from rfly_sensing.range_sensor_parameters import LidarParameters
from rfly_sensing.scan_patterns import mid40, mid360
from rfly_sensing.scene_rays import SceneBodies, SceneRays


def angles(directions):
    """Azimuth and elevation of directions (…, 3), deg."""
    x, y, z = np.moveaxis(directions, -1, 0)
    return np.degrees(np.arctan2(y, x)), np.degrees(np.arcsin(z))


def covered(directions, cell_deg):
    """Share of the cells of a Mid-360's field of view that points fall into."""
    azimuth, elevation = angles(directions.reshape(-1, 3))
    across = np.floor((azimuth + 180.0) / cell_deg).astype(int) % round(360 / cell_deg)
    up = np.clip(np.floor((elevation + 7.0) / cell_deg).astype(int), 0, round(59 / cell_deg) - 1)
    return np.unique(across * 1000 + up).size / (round(360 / cell_deg) * round(59 / cell_deg))


def test_a_mid360_has_its_makers_field_of_view_and_fills_it():
    first = mid360(0, 5000, 10.0)
    azimuth, elevation = angles(first)
    assert (elevation.min(), elevation.max()) == pytest.approx((-7.0, 52.0), abs=0.1)
    assert np.abs(np.diff(np.sort(azimuth.reshape(-1)))).max() < 0.1
    np.testing.assert_allclose(np.linalg.norm(first, axis=-1), 1.0, atol=1e-12)

    # one frame fills cells of 2 deg, a second nearly those of half a degree
    assert covered(first, 2.0) > 0.95
    one = covered(first, 0.5)
    second = covered(np.concatenate([mid360(k, 5000, 10.0) for k in range(10)]), 0.5)
    assert one < 0.4
    assert second > 0.85


def test_a_mid40_draws_the_rosette_of_two_prisms():
    """The prisms point left at time 0: 2 · 9.6 deg. They point apart after half a difference."""
    rays = mid40(0, 10_000, 10.0)[:, 0]
    angle = np.degrees(np.arccos(rays[:, 0]))
    assert angle[0] == pytest.approx(19.2)
    assert rays[0, 1] == pytest.approx(math.sin(math.radians(19.2)))
    assert angle.max() <= 19.2 + 1e-9

    # petals: the radius is 0 twice in a turn of one prism against the other
    turns = (7294.0 + 4664.0) / 60.0 * 0.1
    minima = np.flatnonzero((angle[1:-1] < angle[:-2]) & (angle[1:-1] < angle[2:]))
    assert abs(minima.size - turns) <= 1.0
    time = 0.5 / ((7294.0 + 4664.0) / 60.0)
    assert angle[round(time * 100_000)] < 0.1
    assert not np.allclose(mid40(1, 10_000, 10.0)[0, 0], rays[0], atol=1e-2)


def of_formulas(origin, directions, box, sphere):
    """Ranges of rays against z = 0, a box along the axes and a sphere, one ray at a time."""
    low, high = box
    centre, radius = sphere
    ranges = []
    for x in directions.tolist():
        found = [math.inf]
        if x[2] < 0:
            found.append(-origin[2] / x[2])
        enter = max(
            min((low[k] - origin[k]) / x[k], (high[k] - origin[k]) / x[k]) for k in range(3)
        )
        leave = min(
            max((low[k] - origin[k]) / x[k], (high[k] - origin[k]) / x[k]) for k in range(3)
        )
        if 0 < enter < leave:
            found.append(enter)
        offset = [origin[k] - centre[k] for k in range(3)]
        half = sum(offset[k] * x[k] for k in range(3))
        root = half * half - sum(k * k for k in offset) + radius * radius
        if root > 0 and half < 0:
            found.append(-half - math.sqrt(root))
        ranges.append(min(found))
    return np.array(ranges)


@pytest.mark.parametrize("pattern", ["mid40", "mid360"])
def test_points_lie_where_formulas_say(pattern):
    """The vehicle is turned and tilted; points are compared in the lidar's axes, to 1 mm."""
    box = np.array([[4.0, -3.0, 0.0], [6.0, 1.0, 3.0]])
    centre = np.array([1.0, 7.0, 1.5])
    size = tuple((box[1] - box[0]).tolist())
    scene = SceneRays(
        None,
        SceneBodies(
            (Box(size), Sphere(1.2)),
            np.array([0, 1]),
            np.array([box.mean(axis=0), centre]),
            np.tile([0.0, 0.0, 0.0, 1.0], (2, 1)),
            np.zeros((2, 3)),
            np.zeros(2),
            np.array([1, 2]),
        ),
    )
    quat = np.asarray(euler_to_quat((0.1, 0.2, 0.3)), float)
    track = VehicleTrack(np.array([0.0]), np.array([[0.3, 0.2, 1.7]]), quat[None])
    parameters = LidarParameters(
        pattern=pattern, rate=20.0, position=(0.1, 0.0, 0.2), min_range=0.1, max_range=100.0
    )
    assert parameters.beams * parameters.columns == {"mid40": 5_000, "mid360": 10_000}[pattern]
    sweep = Lidar(parameters, noise=False).sweep(3, _still(track, 0.15, 0.2), scene)

    rotation = rotation_matrix(quat)
    origin = (track.position[0] + rotation @ np.array([0.1, 0.0, 0.2])).tolist()
    own = sweep.directions.reshape(-1, 3)
    expected = of_formulas(origin, own @ rotation.T, box, (centre, 1.2))
    expected[expected > 100.0] = math.inf
    hit = np.isfinite(expected)
    assert 0.1 < hit.mean() <= 1.0
    points = sweep.points()
    assert len(points) == np.count_nonzero(hit)
    np.testing.assert_allclose(points[:, :3], own[hit] * expected[hit, None], atol=1e-3)
    rings = points.view(np.uint32)[:, 4]
    assert set(rings.tolist()) == set(range(parameters.beams))


def _still(track, start, end):
    """The same pose at two times."""
    return VehicleTrack(
        np.array([start, end]), np.repeat(track.position, 2, 0), np.repeat(track.orientation, 2, 0)
    )


def test_an_unknown_pattern_is_named():
    with pytest.raises(ConfigError, match=r"pattern.*'mid70', expected one of rings, mid40"):
        LidarParameters(pattern="mid70")

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The lidar: ranges worked out by hand and by a slow marcher, sweeps in motion, noise, fog."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.spatial import Delaunay

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_collision.shapes.shape import Box, Capsule, ConvexHull, Sphere
from rfly_common.frames import euler_to_quat, quat_rotate
from rfly_sensing.lidar import Lidar, VehicleTrack
from rfly_sensing.range_sensor_parameters import LidarParameters, ScanParameters
from rfly_sensing.scene_rays import GROUND, NOTHING, SceneBodies, SceneRays, joined
from rfly_terrain import HeightMap
from rfly_terrain.world.models import CLASSES
from rfly_terrain.world.weather import Weather

AHEAD = 900
"""Column that looks forward: a sweep of 1,800 begins to the rear."""


def standing(position, rpy=(0.0, 0.0, 0.0)):
    """Return a track of a vehicle that does not move."""
    attitude = euler_to_quat(rpy)
    return VehicleTrack(
        np.array([0.0, 0.1]), np.array([position, position], float), np.array([attitude, attitude])
    )


def bodies(shapes, position, orientation=None, velocity=None, shape_index=None):
    count = len(position)
    return SceneBodies(
        tuple(shapes),
        np.arange(count) if shape_index is None else np.asarray(shape_index),
        np.asarray(position, float),
        np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
        if orientation is None
        else np.asarray(orientation, float),
        np.zeros((count, 3)) if velocity is None else np.asarray(velocity, float),
        np.zeros(count),
        np.arange(1, count + 1),
    )


def rough_map():
    rng = np.random.default_rng(5)
    at = np.linspace(0.0, 1.0, 121)
    heights = 6.0 * np.sin(9 * at)[:, None] * np.cos(11 * at) + rng.normal(0.0, 0.4, (121, 121))
    return HeightMap(heights, origin_x=-60.0, origin_y=-60.0, step_x=1.0, step_y=1.0)


@pytest.mark.parametrize(("height", "metres"), [(1.6, 2.6841), (0.42, 0.70457)])
def test_v29d_forward_beam_on_a_slope(height, metres):
    """The lowest beam, forward, at the height of the rotors of either set, against z = 0.1 x."""
    along = np.array([-200.0, 200.0])
    slope = HeightMap(
        np.repeat(0.1 * along[:, None], 2, axis=1),
        origin_x=-200,
        origin_y=-200,
        step_x=400,
        step_y=400,
    )
    lidar = Lidar(LidarParameters(min_range=0.1), noise=False)
    sweep = lidar.sweep(0, standing((0.0, 0.0, height)), SceneRays(slope))
    epsilon = math.radians(30.67)
    exact = height / (0.1 * math.cos(epsilon) + math.sin(epsilon))

    assert sweep.azimuths[AHEAD] == pytest.approx(0.0, abs=1e-12)
    assert sweep.ranges[AHEAD, 0] == pytest.approx(exact, rel=2e-7)  # heights of maps are float32
    assert sweep.ranges[AHEAD, 0] == pytest.approx(metres, rel=2e-5)
    # the same slope, exact in float32: the ray's share of the error
    eighth = HeightMap(
        np.array([[-25.0, -25.0], [25.0, 25.0]]),
        origin_x=-200,
        origin_y=-200,
        step_x=400,
        step_y=400,
    )
    read = lidar.sweep(0, standing((0.0, 0.0, height)), SceneRays(eighth)).ranges[AHEAD, 0]
    expected = height / (0.125 * math.cos(epsilon) + math.sin(epsilon))
    assert read == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("map_of_zeros", [False, True])
def test_level_ground_is_height_by_the_sine(map_of_zeros):
    """Every ring's range is the height divided by a sine.

    Beams that look up, or would reach farther than 70 m, return nothing; 1 m away is too near.
    """
    ground = HeightMap(np.zeros((2, 2)), origin_x=-500, origin_y=-500, step_x=1000, step_y=1000)
    parameters = SensorParameters.load("scale").lidar
    lidar = Lidar(parameters, noise=False)
    height = 2.0 + parameters.position[2]
    sweep = lidar.sweep(0, standing((3.0, -4.0, 2.0)), SceneRays(ground if map_of_zeros else None))

    assert sweep.ranges.shape == (1800, 32)

    for ring, elevation in enumerate(np.radians(np.linspace(-30.67, 10.67, 32))):
        exact = height / math.sin(-elevation) if elevation < 0.0 else math.inf
        np.testing.assert_allclose(
            sweep.ranges[:, ring], exact if exact <= 70.0 else math.inf, rtol=1e-12
        )
    cosine = np.sin(np.radians(30.67))
    assert sweep.intensity[:, 0] == pytest.approx(
        255 * parameters.ground_reflectivity * cosine, rel=1e-6
    )

    low = lidar.sweep(0, standing((3.0, -4.0, 0.2)), SceneRays(None))
    assert np.isneginf(low.ranges[:, 0]).all()  # 0.45 m / sin 30.67° = 0.88 m


def test_uneven_rings_on_level_ground():
    """The angles of the Velodyne VLP-32C's lowest three rings and its 20th are its manual's."""
    elevations = np.radians([-25.0, -15.639, -11.31, -0.333])
    parameters = LidarParameters(
        beams=4, beam_elevations=tuple(elevations.tolist()), max_range=1000.0
    )
    ground = HeightMap(np.zeros((2, 2)), origin_x=-500, origin_y=-500, step_x=1000, step_y=1000)
    ranges = (
        Lidar(parameters, noise=False)
        .sweep(0, standing((3.0, -4.0, 2.0)), SceneRays(ground))
        .ranges
    )
    expected = np.tile(2.0 / np.sin(-elevations), (1800, 1))
    np.testing.assert_allclose(ranges, expected, rtol=1e-12)


def test_points_of_a_turn():
    """Points come clockwise from the rear, column by column, each with its ring and its time."""
    lidar = Lidar(LidarParameters(), noise=False)
    sweep = lidar.sweep(
        7,
        VehicleTrack(np.array([0.7, 0.8]), np.full((2, 3), 2.0), np.eye(4)[[3, 3]]),
        SceneRays(None),
    )
    assert sweep.start == pytest.approx(0.7)

    points = sweep.points()
    rings = points.view(np.uint32)[:, 4]
    times = points[:, 5]
    assert (
        len(points) == np.isfinite(sweep.ranges).sum() == 1800 * 22
    )  # two of 24 that look down see nothing within 70 m
    assert set(rings.tolist()) == set(range(22))
    assert (np.diff(times) >= 0.0).all()
    assert times[-1] == pytest.approx(0.1 * 1799 / 1800, rel=1e-6)

    azimuth = np.arctan2(points[:, 1], points[:, 0])
    quarter = (times > 0.0249) & (times < 0.0251)
    assert azimuth[quarter] == pytest.approx(
        math.pi / 2, abs=0.01
    )  # π - a quarter of a turn clockwise: to the left

    np.testing.assert_allclose(points[:, 2], -2.0, atol=1e-5)
    np.testing.assert_allclose(
        np.hypot(points[:, 0], points[:, 1]),
        2.0 / np.tan(-lidar.parameters.elevations[rings]),
        rtol=1e-5,
    )


def march(terrain, shapes, scene, origin, direction, when, limit, step=0.03):
    """Return where a ray first is below the ground or inside a shape, in steps that get smaller."""
    axes = [
        np.stack([quat_rotate(turned, axis) for axis in np.eye(3)], axis=1)
        for turned in scene.orientation
    ]

    def inside(t):
        points = origin + np.atleast_1d(t)[:, None] * direction
        found = terrain.altitude(points[:, 0], points[:, 1]) >= points[:, 2]
        for k in range(len(scene)):
            at = points - scene.position[k] - scene.velocity[k] * (when - scene.time[k])
            local = at @ axes[k]
            found |= shapes[scene.shape_index[k]](local)
        return found

    times = np.arange(0.0, limit + step, step)
    for _ in range(4):
        hit = inside(times)
        if not hit.any():
            return math.inf
        first = int(np.argmax(hit))
        times = np.linspace(times[max(first - 1, 0)], times[first], 101)
    return times[-1]


def test_like_a_slow_marcher():
    """Ranges equal the marcher's over rough ground with 40 turned and moving bodies of all shapes.

    The sensor drives, climbs and turns.
    """
    rng = np.random.default_rng(8)
    terrain = rough_map()
    corners = np.array(
        [
            (1.2, 0.0, -0.5),
            (-0.8, 1.0, -0.5),
            (-0.8, -1.0, -0.5),
            (0.1, 0.2, 1.3),
        ]
    )
    shapes = (
        Box((3.0, 1.6, 1.2), (0.3, 0.0, 0.2)),
        Sphere(0.9, (0.1, 0.0, 0.3)),
        Capsule(0.5, 1.6),
        ConvexHull(corners),
    )
    tetrahedron = Delaunay(corners)
    slow = (
        lambda p: (np.abs(p - (0.3, 0.0, 0.2)) <= (1.5, 0.8, 0.6)).all(axis=1),
        lambda p: np.linalg.norm(p - (0.1, 0.0, 0.3), axis=1) <= 0.9,
        lambda p: np.linalg.norm(p - np.clip(p[:, :1], -0.8, 0.8) * (1.0, 0.0, 0.0), axis=1) <= 0.5,
        lambda p: tetrahedron.find_simplex(p) >= 0,
    )
    place = rng.uniform(-11, 11, (40, 3))
    place[:, 2] = terrain.altitude(place[:, 0], place[:, 1]) + 1.5
    orientation = euler_to_quat(rng.uniform(-1, 1, (40, 3)))
    scene = bodies(shapes, place, orientation, rng.uniform(-8, 8, (40, 3)), rng.integers(0, 4, 40))
    parameters = LidarParameters(
        beams=12, lowest=-1.3, highest=-0.4, columns=12, min_range=0.0, max_range=25.0
    )
    time = np.linspace(0.0, 0.1, 6)
    attitude = euler_to_quat(np.stack([0.1 + time, 0.05 - time, 3.0 * time], axis=1))
    track = VehicleTrack(time, np.stack([10 * time, -5 * time, 8.0 + 3 * time], axis=1), attitude)
    lidar = Lidar(parameters, noise=False)
    sweep = lidar.sweep(0, track, SceneRays(terrain, scene))
    on_bodies = 0
    for column in range(12):
        origins, rotations = track.at(sweep.times[column : column + 1].astype(float))
        for ring in range(12):
            direction = rotations[0] @ sweep.directions[column, ring]
            told = sweep.ranges[column, ring]
            slowly = march(
                terrain, slow, scene, origins[0], direction, float(sweep.times[column]), 25.0
            )
            assert told <= slowly + 1e-4  # a step may jump over an edge, a root may not
            if told < slowly - 1e-3:
                point = origins[0] + told * direction
                assert (
                    march(
                        terrain,
                        slow,
                        scene,
                        point - 1e-4 * direction,
                        direction,
                        float(sweep.times[column]),
                        3e-4,
                        2e-5,
                    )
                    < 1e-3
                )
            bare = SceneRays(terrain).cast(origins, direction[None], 25.0).ranges[0]
            on_bodies += told < bare - 1e-6

    assert on_bodies > 20


def test_many_bodies_are_culled_without_a_difference():
    """A scene of 400 bodies gives the same hits at once and one by one."""
    rng = np.random.default_rng(2)
    place = np.column_stack([rng.uniform(-60, 60, (400, 2)), rng.uniform(-3, 8, 400)])
    shapes = (
        Box((4.0, 2.0, 1.5)),
        Sphere(0.7),
        Capsule(0.4, 2.0),
    )
    index = rng.integers(0, 3, 400)
    many = bodies(shapes, place, euler_to_quat(rng.uniform(-3, 3, (400, 3))), None, index)
    directions = rng.normal(size=(3000, 3))
    directions[:4] = [
        (0, 0, 1),
        (0, 0, -1),
        (1, 0, 0),
        (-1, 0, 0),
    ]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    origins = np.tile([1.0, 2.0, 3.0], (3000, 1))
    at_once = SceneRays(None, many).cast(origins, directions, 70.0)
    best = SceneRays(None).cast(origins, directions, 70.0).ranges
    which = np.where(np.isfinite(best), GROUND, NOTHING)
    for k in range(400):
        single = bodies(
            (shapes[index[k]],),
            place[k : k + 1],
            many.orientation[k : k + 1],
        )
        hits = SceneRays(None, single).cast(origins, directions, 70.0)
        nearer = hits.ranges < best
        best = np.where(nearer, hits.ranges, best)
        which = np.where(nearer, k, which)
    np.testing.assert_array_equal(at_once.ranges, best)
    np.testing.assert_array_equal(at_once.body, which)
    hit = at_once.body >= 0

    assert hit.sum() > 200

    facing = np.einsum("ij,ij->i", at_once.normals, directions)
    assert (facing[hit & (best > 0)] < 0.0).all()

    np.testing.assert_allclose(np.linalg.norm(at_once.normals[hit], axis=1), 1.0)


def test_scenes_join():
    one = bodies((Sphere(1.0),), [(10.0, 0.0, 0.0)])
    two = bodies((Box((2.0, 2.0, 2.0)), Sphere(2.0)), [(0.0, 10.0, 0.0), (0.0, -10.0, 0.0)])
    hits = SceneRays(None, joined([one, two])).cast(
        np.full((3, 3), (0.0, 0.0, 0.5)),
        np.array(
            [
                (1.0, 0, 0),
                (0, 1.0, 0),
                (0, -1.0, 0),
            ]
        ),
        70.0,
    )
    expected = [10 - math.sqrt(0.75), 9.0, 10 - math.sqrt(3.75)]

    np.testing.assert_allclose(hits.ranges, expected)
    assert hits.body.tolist() == [0, 1, 2]


def test_a_sweep_in_motion_undone_by_the_pose_of_each_point():
    """Points, each brought back by the pose of its own time, lie on the ground."""
    terrain = rough_map()
    parameters = LidarParameters(position=(0.3, 0.1, 0.25), rotation=(0.02, 0.05, -0.1))

    def pose(t):
        return np.stack([8.0 * t, 2.0 * t, 9.0 + t], axis=-1), np.stack(
            [0.3 * t, -0.2 + 0 * t, 2.0 * t], axis=-1
        )

    ticks = np.arange(26) * 0.004
    place, rpy = pose(ticks)
    sweep = Lidar(parameters, noise=False).sweep(
        0, VehicleTrack(ticks, place, euler_to_quat(rpy)), SceneRays(terrain)
    )
    points = sweep.points()

    def in_map(times):
        place, rpy = pose(times)
        in_body = (
            quat_rotate(euler_to_quat(parameters.rotation), points[:, :3].astype(float))
            + parameters.position
        )
        return place + quat_rotate(euler_to_quat(rpy), in_body)

    right = in_map(points[:, 5].astype(float))
    above = right[:, 2] - terrain.altitude(right[:, 0], right[:, 1])
    assert np.abs(above).max() < 2e-3

    frozen = in_map(np.zeros(len(points)))
    assert np.abs(frozen[:, 2] - terrain.altitude(frozen[:, 0], frozen[:, 1])).max() > 0.3


def test_a_vehicle_that_crosses_is_seen_where_it_is_at_the_time():
    """A box 10 m to the left at 0.025 s is seen when the beams look there.

    Its state has another clock.
    """
    crossing = SceneBodies(
        (Box((2.0, 2.0, 4.0)),),
        np.array([0]),
        np.array([(0.0, 30.0, 1.0)]),
        np.array([(0.0, 0, 0, 1)]),
        np.array([(0.0, -100.0, 0.0)]),
        np.array([-0.175]),
        np.array([9]),
    )
    lidar = Lidar(LidarParameters(), noise=False)
    ring = ScanParameters().ring(lidar.parameters)
    sweep = lidar.sweep(0, standing((0.0, 0.0, 1.0)), SceneRays(None, crossing))

    assert sweep.ranges[450, ring] == pytest.approx(9.0, abs=1e-3)


def test_noise_and_lost_returns():
    """The noise is 0.02 m, and one return of a thousand is lost.

    Both are the same for a sweep's number and for a part of its rings, and otherwise differ.
    """
    parameters = SensorParameters.load("scale").lidar
    track = standing((0.0, 0.0, 5.0))
    exact = Lidar(parameters, noise=False).sweep(0, track, SceneRays(None)).ranges[:, :18]
    lidar = Lidar(parameters, seed=(4, 1))
    read = [lidar.sweep(k, track, SceneRays(None), start=0.0).ranges[:, :18] for k in range(4)]
    error = np.array(read) - exact
    lost = np.isnan(error)

    assert lost.mean() == pytest.approx(0.001, abs=0.0004)  # ± 4 σ of 129,600 draws
    assert np.nanstd(error) == pytest.approx(0.02, rel=0.01)
    assert abs(np.nanmean(error)) < 4 * 0.02 / math.sqrt(error.size)
    assert (
        np.corrcoef(np.nan_to_num(error[0]).ravel(), np.nan_to_num(error[1]).ravel())[0, 1] < 0.03
    )

    again = Lidar(parameters, seed=(4, 1)).sweep(
        2, track, SceneRays(None), start=0.0, rings=[17, 3]
    )
    expected = read[2][:, [17, 3]]
    np.testing.assert_array_equal(again.ranges, expected)
    other = (
        Lidar(parameters, seed=(4, 2)).sweep(2, track, SceneRays(None), start=0.0).ranges[:, :18]
    )
    assert (other != read[2]).mean() > 0.99


def test_fog_shortens_the_range():
    """The weakest return in fog is as strong as that of 70 m in clear air: exp(-2 α r) / r²."""
    fog = Weather(visibility=50.0)
    alpha = 2.995732273553991 / 50.0  # ln 20
    reach = fog.reach(70.0)

    assert math.exp(-2 * alpha * reach) / reach**2 == pytest.approx(1 / 70.0**2, rel=1e-12)
    assert Weather().reach(70.0) == 70.0

    track = standing((0.0, 0.0, 1.0))
    lidar = Lidar(LidarParameters(), noise=False)
    clear, foggy = (lidar.sweep(0, track, SceneRays(None), weather) for weather in (Weather(), fog))
    seen = np.isfinite(foggy.ranges)

    assert 12 < foggy.ranges[seen].max() < reach < 30
    assert (seen == (clear.ranges <= reach)).all()

    ratio = foggy.intensity[seen] / clear.intensity[seen]
    expected = np.exp(-2 * alpha * foggy.ranges[seen])
    np.testing.assert_allclose(ratio, expected, rtol=1e-5)


def test_the_scan_is_the_ring_nearest_to_level():
    parameters = LidarParameters()
    ring = ScanParameters().ring(parameters)
    assert ring == 23
    assert math.degrees(parameters.elevations[ring]) == pytest.approx(-30.67 + 23 * 41.34 / 31)

    wall = bodies((Box((0.2, 40.0, 10.0)),), [(6.1, 0.0, 0.0)])
    sweep = Lidar(parameters, noise=False).sweep(
        0, standing((0.0, 0.0, 2.0)), SceneRays(None, wall), rings=[ring]
    )
    assert sweep.ranges.shape == (1800, 1)

    level = math.cos(parameters.elevations[ring])
    for degrees in (0, 30, -30, 60):
        column = round((180 - degrees) * 5)
        expected = 6.0 / (math.cos(math.radians(degrees)) * level)
        assert sweep.ranges[column, 0] == pytest.approx(expected, rel=1e-9)


def test_a_track_knows_its_limits():
    track = standing((0.0, 0.0, 1.0))
    with pytest.raises(ValueError, match=r"outside of a track of 0 … 0\.1 s"):
        track.at(np.array([0.2]))

    half_turn = VehicleTrack(
        np.array([0.0, 1.0]),
        np.zeros((2, 3)),
        np.array([(0, 0, 0, 1.0), (0, 0, -math.sin(0.5), -math.cos(0.5))]),
    )
    _, rotations = half_turn.at(np.array([0.25]))

    assert math.atan2(rotations[0, 1, 0], rotations[0, 0, 0]) == pytest.approx(
        0.25
    )  # the short way, at an even rate


def test_intensity_by_class_and_incidence():
    """Intensity is 255 · reflectivity · cosine (Lambert) at any range.

    Classes without a reflectivity have the sensor file's.
    """
    parameters = LidarParameters(beams=1, lowest=0.0, highest=0.0, columns=8, body_reflectivity=0.7)
    turn = math.radians(35.0)
    place = [
        (9.0 * math.cos(k * math.pi / 4), 9.0 * math.sin(k * math.pi / 4), 2.0) for k in range(8)
    ]
    yaw = np.arange(8) * math.pi / 4 + turn
    walls = bodies(
        (Box((0.2, 4.0, 4.0)),),
        place,
        euler_to_quat(np.stack([0 * yaw, 0 * yaw, yaw], 1)),
        None,
        [0] * 8,
    )
    classes = ["building", "vegetation", "rock", "person", "vehicle", "unknown", "wall"]
    walls = dataclasses.replace(walls, class_id=np.array([*map(CLASSES.index, classes), 200]))
    lidar = Lidar(parameters, noise=False)
    sweep = lidar.sweep(0, standing((0.0, 0.0, 2.0)), SceneRays(None, walls))
    column = (4 - np.arange(8)) % 8  # clockwise from the rear
    exact = 255.0 * math.cos(turn) * np.array([0.35, 0.5, 0.3, 0.4, 0.7, 0.7, 0.35, 0.7])

    np.testing.assert_allclose(sweep.intensity[column, 0], exact, rtol=1e-6)

    near = dataclasses.replace(walls, position=walls.position * (0.5, 0.5, 1.0))
    np.testing.assert_allclose(
        lidar.sweep(0, standing((0.0, 0.0, 2.0)), SceneRays(None, near)).intensity[column, 0],
        exact,
        rtol=1e-6,
    )

    unclassed = dataclasses.replace(walls, class_id=None)
    told = lidar.sweep(0, standing((0.0, 0.0, 2.0)), SceneRays(None, unclassed)).intensity
    expected = 255.0 * 0.7 * math.cos(turn)
    np.testing.assert_allclose(told, expected, rtol=1e-6)

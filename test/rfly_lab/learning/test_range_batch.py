# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lidar and depth images of a batch, against single rays and the simulation's own sensors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_collision.shapes.shape import Box
from rfly_common.errors import ConfigError
from rfly_common.frames import euler_to_quat, rotation_matrix
from rfly_common.kernels import parallel
from rfly_lab.learning import range_batch
from rfly_lab.learning.land_air_batch import LandAirBatch
from rfly_sensing.cameras import CameraPose, DepthCamera
from rfly_sensing.lidar import Lidar, VehicleTrack
from rfly_sensing.neighbours import world_bodies
from rfly_sensing.scene_rays import SceneBodies, SceneRays
from rfly_terrain.height_map.height_map import HeightMap

SCALE = SensorParameters.load("scale")
PERIOD = 0.02


def begun(task: str, count: int = 1, seed: int = 0, **options) -> LandAirBatch:
    batch = LandAirBatch(count, task, **options)
    which = np.arange(count)
    batch.seed(which, np.arange(seed, seed + count, dtype=np.uint64))
    batch.begin(which)
    return batch


def part(batch: LandAirBatch, prefix: str) -> np.ndarray:
    """Return the observations in the numbers that begin with a prefix, (n, numbers)."""
    names = batch.observation_names
    return batch.observe()[:, [k for k, name in enumerate(names) if name.startswith(prefix)]]


def stay(batch: LandAirBatch) -> None:
    """Let a period go by in which vehicles do not move at all, and measure."""
    batch.episodes.steps[:] += 1
    for ranges in batch._ranges:
        ranges.measure(np.arange(len(batch.rewards)), batch.episodes.steps)


def flat(width: float = 200.0) -> HeightMap:
    """Level ground at 0 m."""
    side = int(width) + 1
    return HeightMap(
        np.zeros((side, side)), origin_x=-0.5 * width, origin_y=-0.5 * width, step_x=1.0, step_y=1.0
    )


def single_range(batch: LandAirBatch, origin: np.ndarray, direction: np.ndarray) -> float:
    """Range of one ray of the public API to the ground or a house, one by one, m."""
    nearest = float(batch.terrain.cast(origin, direction, 100.0))
    boxes = batch.houses
    for k in range(0 if boxes is None else len(boxes)):
        body = SceneBodies(
            (Box(tuple(2.0 * boxes.half_extent[k])),),
            np.zeros(1, np.int64),
            boxes.centre[k : k + 1],
            boxes.orientation[k : k + 1],
            np.zeros((1, 3)),
            np.zeros(1),
            np.zeros(1, np.int64),
        )
        hits = SceneRays(None, body).cast(origin[None], direction[None], 100.0, ground=False)
        nearest = min(nearest, float(hits.ranges[0]))
    return nearest


# the truth


@pytest.mark.parametrize("task", ["roof", "goal"])
def test_a_lidar_sees_what_single_rays_meet(task: str) -> None:
    batch = begun(task, 6, seed=3, lidar=9)
    if task == "roof":  # beside the houses
        batch.vehicles.x[:, 2] -= 6.0
        stay(batch)
    seen = part(batch, "lidar_")
    assert seen.shape == (6, 9)

    ring = SCALE.lidar.elevations[SCALE.scan.ring(SCALE.lidar)]
    assert abs(ring) < math.radians(0.7)

    met = 0
    for v in range(6):
        x = batch.vehicles.x[v]
        rotation = rotation_matrix(x[[7, 8, 9, 6]])
        origin = x[:3] + rotation @ np.array(SCALE.lidar.position)
        for k in range(9):
            angle = 2.0 * math.pi * k / 9
            c = math.cos(ring)
            unit = np.array((c * math.cos(angle), c * math.sin(angle), math.sin(ring)))
            expected = single_range(batch, origin, rotation @ unit)
            met += expected < 70.0
            assert seen[v, k] == pytest.approx(min(max(expected, 1.0), 70.0), rel=1e-6)
    assert met > 10


def test_a_lidar_sees_the_objects_of_a_world() -> None:
    options = {"lidar": 24, "terrain": flat(), "seed": 2}
    batch = begun("goal", 20, world="random", density=150.0, **options)
    seen = part(batch, "lidar_")
    bodies = world_bodies(batch.world)
    met = 0
    ring = SCALE.lidar.elevations[SCALE.scan.ring(SCALE.lidar)]
    c = math.cos(ring)
    for v in range(20):
        x = batch.vehicles.x[v]
        rotation = rotation_matrix(x[[7, 8, 9, 6]])
        origin = x[:3] + rotation @ np.array(SCALE.lidar.position)
        for k in range(24):
            angle = 2.0 * math.pi * k / 24
            unit = np.array((c * math.cos(angle), c * math.sin(angle), math.sin(ring)))
            ray = (rotation @ unit)[None]
            hit = SceneRays(None, bodies).cast(origin[None], ray, 70.0, ground=False)
            ground = float(batch.terrain.cast(origin, ray[0], 70.0))
            met += hit.ranges[0] < ground
            expected = min(float(hit.ranges[0]), ground, 70.0)
            assert seen[v, k] == pytest.approx(max(expected, 1.0), rel=1e-6)

    assert met > 20


def test_a_depth_image_is_that_of_the_camera() -> None:
    """Each pixel, row by row, against `DepthCamera` without noise and with the same size."""
    batch = begun("roof", 4, seed=8, depth=(6, 8))
    batch.vehicles.x[:, 2] = batch.episodes.targets[:, 0, 2] + 1.5
    batch.vehicles.x[:, :2] = batch.episodes.targets[:, 0, :2]
    for v, pitch in enumerate((0.0, 0.4, 0.8, 1.2)):
        x, y, z, w = euler_to_quat((0.1, pitch, 0.5 * v))
        batch.vehicles.x[v, 6:10] = (w, x, y, z)
    stay(batch)
    seen = part(batch, "depth_").reshape(4, 6, 8)

    parameters = replace(SCALE.depth_camera, width=8, height=6)
    camera = DepthCamera(parameters, noise=False)
    scene = SceneRays(batch.terrain, world_bodies(batch.objects))
    for v in range(4):
        x = batch.vehicles.x[v]
        rotation = np.asarray(rotation_matrix(x[[7, 8, 9, 6]]))
        pose = CameraPose(x[:3] + rotation @ np.array(SCALE.gimbal.position), rotation)
        depth = camera.image(0, pose, scene).depth
        expected = np.clip(depth, parameters.min_range, parameters.max_range)
        assert seen[v] == pytest.approx(expected, rel=1e-5, abs=1e-5)
    # the roof below is seen, and the sky is not
    assert seen[3].min() < 3.0
    assert seen[0].max() == 4.5


def test_a_wall_ahead_by_hand() -> None:
    batch = begun("roof", 1, terrain=flat(), lidar=4)
    house = batch.houses
    half = house.half_extent[0, 0]
    x = batch.vehicles.x[0]
    x[:3] = house.centre[0] + (-half - 5.0, 0.0, 0.0)
    x[2] = 2.0
    x[6:10] = (1.0, 0.0, 0.0, 0.0)  # heads east, to the wall
    stay(batch)
    ring = SCALE.lidar.elevations[SCALE.scan.ring(SCALE.lidar)]
    ahead = part(batch, "lidar_")[0, 0]
    assert ahead == pytest.approx((5.0 - SCALE.lidar.position[0]) / math.cos(ring), rel=1e-6)
    x[0] += 4.5  # nearer than the least range of 1 m
    stay(batch)
    assert part(batch, "lidar_")[0, 0] == 1.0


# noise and times


def test_noise_and_lost_returns_are_those_of_the_vehicles_lidar() -> None:
    down = replace(SCALE.scan, elevation=math.radians(-15.0))
    sensors = SCALE.replace(lidar=replace(SCALE.lidar, dropout=0.1), scan=down)
    options = {"lidar": 32, "sensors": sensors, "terrain": flat(), "task": "goal"}
    true = part(begun(count=400, **options), "lidar_")
    batch = begun(count=400, observations="sensors", **options)
    names = [f"lidar_{k}_m" for k in range(32)]
    assert batch.observation_names[-33:] == [*names, "lidar_age_s"]
    seen = part(batch, "lidar_")[:, :32]
    is_hit = true < 69.0
    lost = seen[is_hit] == 70.0
    assert lost.mean() == pytest.approx(0.1, abs=0.02)
    error = (seen - true)[is_hit][~lost]
    assert error.std() == pytest.approx(0.02, rel=0.05)
    assert abs(error.mean()) < 0.001
    # what meets nothing has no noise
    assert (seen[true == 70.0] == 70.0).all()

    # the simulation's own lidar over the same ground
    pose = batch.vehicles.x[:1]
    track = VehicleTrack(
        np.array([0.0, 1.0]), pose[[0, 0], :3], np.repeat(pose[:, [7, 8, 9, 6]], 2, axis=0)
    )
    scene = SceneRays(batch.terrain)
    ring = [sensors.scan.ring(sensors.lidar)]
    noisy, still = (
        Lidar(sensors.lidar, seed=1, noise=noise).sweep(0, track, scene, rings=ring).ranges
        for noise in (True, False)
    )
    known = np.isfinite(noisy) & np.isfinite(still)
    assert (noisy - still)[known].std() == pytest.approx(error.std(), rel=0.1)
    assert np.isnan(noisy).mean() == pytest.approx(lost.mean(), abs=0.03)


def test_the_noise_of_a_depth_grows_with_its_square() -> None:
    options = {"depth": (8, 8), "terrain": flat(), "sensors": SCALE}
    true = begun("goal", 400, **options)
    batch = begun("goal", 400, observations="sensors", **options)
    for each in (true, batch):
        each.vehicles.x[:, 2] = 1.5
        x, y, z, w = euler_to_quat((0.0, 0.6, 0.0))
        each.vehicles.x[:, 6:10] = (w, x, y, z)
        each.episodes.steps[:] = 9
        stay(each)
    depth = part(true, "depth_")
    seen = part(batch, "depth_")[:, :64]
    for low, high in ((1.0, 1.8), (2.0, 2.6), (3.0, 3.6)):
        chosen = (depth > low) & (depth < high)
        sigma = 0.002 + 0.002 * depth[chosen] ** 2
        assert ((seen - depth)[chosen] / sigma).std() == pytest.approx(1.0, rel=0.05)


def test_sweeps_are_held_and_their_age_is_seen() -> None:
    batch = begun("goal", 2, observations="sensors", lidar=3, depth=(1, 2))
    names = batch.observation_names
    assert names[-7:] == [
        *("lidar_0_m", "lidar_1_m", "lidar_2_m", "lidar_age_s"),
        *("depth_0_0_m", "depth_0_1_m", "depth_age_s"),
    ]

    ages = []
    rows = []
    for _ in range(21):
        ages.append([part(batch, "lidar_age")[0, 0], part(batch, "depth_age")[0, 0]])
        rows.append(part(batch, "lidar_")[0, :3])
        stay(batch)
    lidar, depth = np.array(ages).T
    assert lidar == pytest.approx([0.02 * (k % 5) for k in range(21)], abs=1e-6)
    assert depth == pytest.approx([0.02 * (k % 10) for k in range(21)], abs=1e-6)

    for k in range(20):
        assert (rows[k] == rows[k + 1]).all() == ((k + 1) % 5 != 0)


# repeatability


def test_the_same_bits_in_any_batch_with_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(count: int, threads: int) -> list[bytes]:
        monkeypatch.setattr(parallel, "cores", lambda: threads)
        monkeypatch.setattr(range_batch, "MOST_AT_ONCE", 2000 if threads == 2 else 100_000)
        batch = begun("roof", count, 5, observations="sensors", lidar=90, depth=(5, 7), wind=2.0)
        rng = [np.random.default_rng(v) for v in range(count)]
        seen = [batch.observe()]
        for _ in range(12):
            batch.step(np.array([0.3 * each.uniform(-1.0, 1.0, 4) for each in rng]))
            seen.append(batch.observe())
        return [np.array(seen)[:, v].tobytes() for v in range(count)]

    large = run(37, 1)
    assert run(37, 2) == large
    assert run(8, 2) == large[:8]
    assert run(1, 1) == large[:1]
    assert len(set(large)) == 37


def test_the_noise_of_a_depth_image_is_the_same_beside_a_lidar() -> None:
    options = {"observations": "sensors", "depth": (4, 3)}
    alone = part(begun("goal", 3, **options), "depth_")
    assert (alone < 4.4).sum() > 3
    assert (part(begun("goal", 3, lidar=5, **options), "depth_") == alone).all()


def test_what_is_too_near_is_never_lost() -> None:
    sensors = SCALE.replace(lidar=replace(SCALE.lidar, dropout=0.5))
    batch = begun("roof", 2, observations="sensors", lidar=40, sensors=sensors)
    batch.vehicles.x[:, :3] = batch.houses.centre[0]  # inside of a house
    batch.episodes.steps[:] = 4
    stay(batch)
    assert (part(batch, "lidar_")[:, :40] == 1.0).all()


def test_a_vehicle_that_has_failed_casts_no_rays() -> None:
    batch = begun("roof", 3, lidar=8, depth=(2, 2))
    before = batch.observe()
    batch.vehicles.x[1, 0] = np.nan
    batch.step(np.zeros((3, 4)))
    seen = batch.observe()
    assert np.isfinite(seen).all()
    assert (seen[1, -12:] == before[1, -12:]).all()


# arguments


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lidar": -1}, "lidar: -1, expected a whole number of at least 0"),
        ({"lidar": 1025}, "lidar: 1025"),
        ({"lidar": 8.0}, "lidar: 8.0, expected a whole number"),
        ({"lidar": True}, "lidar: True, expected a whole number"),
        ({"depth": (4,)}, "depth: .* expected rows and columns"),
        ({"depth": 4}, "depth: 4, expected rows and columns"),
        ({"depth": ((1, 2), 3)}, "depth: .1, 2., expected a whole number"),
        ({"depth": {2, 3}}, "depth: .2, 3., expected rows and columns"),
        ({"depth": "44"}, "depth: '44', expected rows and columns"),
        ({"depth": (0, 4)}, "depth: 0, expected a whole number of at least 1"),
        ({"depth": (4, 65)}, "depth: 65"),
        ({"depth": (4, 2.5)}, "depth: 2.5, expected a whole number"),
        ({"lidar": 4, "sensors": SCALE.replace(lidar=None)}, "lidar: the sensors 'scale' have"),
        (
            {"depth": (2, 2), "sensors": SCALE.replace(depth_camera=None)},
            "depth: the sensors 'scale' have no depth camera",
        ),
    ],
)
def test_what_cannot_be_used_is_said(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LandAirBatch(1, "hover", **options)

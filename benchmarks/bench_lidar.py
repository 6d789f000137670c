"""A whole sweep of the land-air vehicle's lidar beside its budget: a quarter of a core at 10 Hz.

Processor time of all threads together, with poses, noise, intensity and the message.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.bench_rays import hills
from benchmarks.harness import DISAGREES, Row, agreement, measure
from rfly_amphibious.sensors.lidar import Lidar, Sweep, VehicleTrack
from rfly_amphibious.sensors.scene_rays import SceneBodies, SceneRays
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_collision.shapes.shape import Box
from rfly_common.frames import euler_to_quat
from rfly_terrain import HeightMap
from rfly_terrain.warm_up import warm_up

BUDGET_S = 0.025
"""a quarter of a core at 10 Hz"""
VEHICLES = 100
REPEAT = 15


def rows() -> Iterator[Row]:
    """With the ground alone, and with other vehicles within 60 m."""
    if importlib.util.find_spec("sensor_msgs") is None:
        print("lidar: no rows without ROS messages", file=sys.stderr)
        return
    from rfly_amphibious.ros.range_sensor_msgs import sweep_to_cloud

    warm_up()
    terrain = hills(1_000)
    parameters = SensorParameters.load("scale").lidar
    assert parameters is not None
    lidar, quiet = Lidar(parameters, seed=1), Lidar(parameters, seed=1, noise=False)
    track = driving(terrain)
    for name, scene in (("ground", SceneRays(terrain)), (f"{VEHICLES} vehicles", SceneRays(terrain, traffic(terrain)))):
        agree = column_by_column(quiet, quiet.sweep(0, track, scene), track, scene)
        number = iter(range(10**9))

        def ours(scene: SceneRays = scene, number: Iterator[int] = number) -> None:
            sweep = lidar.sweep(next(number), track, scene, start=0.0)
            sweep_to_cloud(sweep, "lidar_link")

        taken, _ = measure(ours, lambda: None, REPEAT, warm_ups=2, clock=time.process_time)
        note = f"{taken / (4 * BUDGET_S):.3f} of a core at 10 Hz; processor time, message included"
        yield Row(
            f"lidar 32 x 1,800, {name}",
            taken,
            BUDGET_S,
            "a quarter of a core at 10 Hz",
            1.0,
            None,
            agree,
            note,
            "at most",
        )


def driving(terrain: HeightMap) -> VehicleTrack:
    """0.1 s at 10 m/s in a turn, a pose each millisecond."""
    at = np.arange(101) * 0.001
    place = np.stack([10.0 * at, 2.0 * at, np.full(101, terrain.altitude(0.0, 0.0) + 0.4)], axis=1)
    attitude = euler_to_quat(np.stack([0.3 * at, 0.1 - at, 0.8 * at], axis=1))
    return VehicleTrack(at, place, attitude)


def traffic(terrain: HeightMap) -> SceneBodies:
    """Cars on the ground, in all directions."""
    rng = np.random.default_rng(4)
    place = rng.uniform(-60, 60, (VEHICLES, 3))
    place[:, 2] = terrain.altitude(place[:, 0], place[:, 1]) + 0.7
    heading = np.zeros((VEHICLES, 3))
    heading[:, 2] = rng.uniform(-3, 3, VEHICLES)
    return SceneBodies(
        (Box((4.3, 1.96, 1.42)),),
        np.zeros(VEHICLES, np.int64),
        place,
        np.asarray(euler_to_quat(heading), float),
        rng.uniform(-5, 5, (VEHICLES, 3)),
        np.zeros(VEHICLES),
        np.arange(VEHICLES),
    )


def column_by_column(lidar: Lidar, sweep: Sweep, track: VehicleTrack, scene: SceneRays) -> str:
    """The text for `Row.agree`: every 100th column alone, and each body in it alone."""
    p, worst = lidar.parameters, []
    parts = [SceneRays(scene.terrain)]
    if scene.bodies is not None:
        b = scene.bodies
        rows = (np.array([k]) for k in range(len(b)))
        parts += [
            SceneRays(
                scene.terrain,
                SceneBodies(
                    b.shapes, b.shape_index[k], b.position[k], b.orientation[k], b.velocity[k], b.time[k], b.id[k]
                ),
            )
            for k in rows
        ]
    for column in range(0, p.columns, 100):
        when = lidar.times[column : column + 1]
        place, rotation = track.at(when)
        directions = sweep.directions[column] @ rotation[0].T
        origins = np.repeat(place + rotation[0] @ np.asarray(p.position), p.beams, axis=0)
        found = np.min([part.cast(origins, directions, p.max_range, float(when[0])).ranges for part in parts], axis=0)
        found[found < p.min_range] = -np.inf
        told = sweep.ranges[column]
        if not np.array_equal(np.isfinite(told), np.isfinite(found)):
            return f"{DISAGREES}: column {column} returns other beams"
        hit = np.isfinite(told)
        worst.append(np.abs(told[hit] - found[hit]).max(initial=0.0))
    return agreement(worst, np.zeros(len(worst)), 1e-9) + ", every 100th column on its own"

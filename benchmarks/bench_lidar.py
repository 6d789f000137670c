# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A whole sweep of the land-air vehicle's lidar, against a quarter of a core, 0.15 for a Mid-360.

The vehicle is in a half of the village, at 10 Hz. Processor time of all threads counts, with poses,
noise, intensity and the message. A million rays have to meet the village's triangles as Embree's
do, which is optional: `make bench` installs it where possible.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.bench_rays import hills
from benchmarks.budgets import SCALED, scaled
from benchmarks.harness import DISAGREES, Row, agreement, measure
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_collision.shapes.shape import Box, TriangleMesh
from rfly_common.arrays import Floats
from rfly_common.frames import euler_to_quat
from rfly_sensing.lidar import Lidar, LidarSweep, VehicleTrack
from rfly_sensing.neighbours import world_bodies
from rfly_sensing.range_sensor_parameters import LidarParameters
from rfly_sensing.scan_patterns import LIVOX
from rfly_sensing.scene_rays import SceneBodies, SceneRays
from rfly_terrain import HeightMap
from rfly_terrain.warm_up import warm_up
from rfly_terrain.world.models import part_faces
from rfly_terrain.world.populate import Area, make_world
from rfly_terrain.world.world import World

BUDGET_S = 0.025
"""Budget of a sweep, s: a quarter of a core at 10 Hz."""
VILLAGE_BUDGET_S = 0.05
MID360_BUDGET_S = 0.015
"""Budget of a frame of a Livox Mid-360 with 20,000 points, s."""
MIDDLE = -900.0, -450.0
"""Middle of the village, x and y, m."""
VEHICLES = 100
RAYS = 1_000_000
DEEP = HeightMap(np.full((2, 2), -1e4), origin_x=-1e4, origin_y=-1e4, step_x=2e4, step_y=2e4)
"""Ground that no ray reaches."""
REPEAT = 15


def rows() -> Iterator[Row]:
    """Yield rows with the ground alone, and with other vehicles within 60 m."""
    if importlib.util.find_spec("sensor_msgs") is None:
        print("lidar: no rows without ROS messages", file=sys.stderr)
        return
    from rfly_amphibious.ros.range_sensor_topics import sweep_to_cloud

    warm_up()
    terrain = hills(1_000)
    parameters = SensorParameters.load("scale").lidar
    assert parameters is not None
    lidar = Lidar(parameters, seed=1)
    mid360 = Lidar(LidarParameters(pattern="mid360", min_range=0.1, max_range=40.0), seed=1)
    quiet = Lidar(parameters, seed=1, noise=False)
    track = driving(terrain)

    def row(
        name: str,
        scene: SceneRays,
        track: VehicleTrack,
        budget: float,
        agree: str,
        measured: Lidar = lidar,
    ) -> Row:
        number = iter(range(10**9))

        def ours() -> None:
            sweep_to_cloud(measured.sweep(next(number), track, scene, start=0.0), "lidar_link")

        seconds, _ = measure(ours, lambda: None, REPEAT, warm_ups=2, clock=time.process_time)
        note = f"{10 * seconds:.3f} of a core at 10 Hz; processor time, message included"
        peer = f"{10 * budget:g} of a core at 10 Hz, {SCALED}"
        return Row(
            f"lidar {'32 x 1,800' if measured is lidar else 'Mid-360'}, {name}",
            seconds,
            scaled(budget),
            peer,
            1.0,
            None,
            agree,
            note,
            "at most",
        )

    # the ground alone, and other vehicles
    for name, scene in (
        ("ground", SceneRays(terrain)),
        (f"{VEHICLES} vehicles", SceneRays(terrain, traffic(terrain))),
    ):
        agree = column_by_column(quiet, quiet.sweep(0, track, scene), track, scene)
        yield row(name, scene, track, BUDGET_S, agree)

    # a village as parts and as one mesh
    valley = HeightMap.load("JacksboroFault")
    world, triangles = village(valley)
    in_village = driving(valley, *MIDDLE)
    for name, bodies in (
        ("as parts", world_bodies(world)),
        ("as one mesh", one_mesh(triangles)),
    ):
        scene = SceneRays(valley, bodies)
        agree = compared_with_embree(bodies, triangles, *random_rays(triangles))
        yield row(
            f"village of {len(triangles):,} triangles {name}",
            scene,
            in_village,
            VILLAGE_BUDGET_S,
            agree,
        )
        yield row(
            f"200,000 points/s, village {name}",
            scene,
            in_village,
            MID360_BUDGET_S,
            compared_with_embree(bodies, triangles, *rays_of(mid360, in_village, 10)),
            mid360,
        )


def village(terrain: HeightMap) -> tuple[World, Floats]:
    """Return the village on 1.21 km², with the triangles (t, 3, 3) of all parts."""
    x, y = MIDDLE
    world = make_world(
        "village",
        terrain,
        1,
        area=Area(x - 550, x + 550, y - 550, y + 550),
        density=40.0,
    )
    solids = world.solids
    parts = np.split(solids.vertices, solids.first[1:-1])
    return world, np.concatenate([part_faces(part) for part in parts])


def one_mesh(triangles: Floats) -> SceneBodies:
    """Return a single body of all triangles that stands still."""
    still = np.zeros((1, 3))
    zero = np.zeros(1, np.int64)
    upright = np.array([[0.0, 0.0, 0.0, 1.0]])
    return SceneBodies((TriangleMesh(triangles),), zero, still, upright, still, np.zeros(1), zero)


def random_rays(triangles: Floats) -> tuple[Floats, Floats]:
    """Return origins and directions (RAYS, 3) of any direction, flat ones more often.

    They begin within 150 m of the middle, up to 60 m above the mean height.
    """
    rng = np.random.default_rng(5)
    low = np.array((*MIDDLE, triangles[:, :, 2].mean())) - (150, 150, 20)
    origins = low + rng.uniform(0.0, 1.0, (RAYS, 3)) * (300, 300, 80)
    directions = rng.normal(size=(RAYS, 3)) * (1.0, 1.0, 0.3)
    return origins, directions / np.linalg.norm(directions, axis=1)[:, None]


def rays_of(lidar: Lidar, track: VehicleTrack, frames: int) -> tuple[Floats, Floats]:
    """Return the rays of the first frames of a lidar, each on the same way."""
    p = lidar.parameters
    position, rotation = track.at(lidar.times)
    origins = np.repeat(position + rotation @ np.asarray(p.position), p.beams, axis=0)
    patterns = [LIVOX[p.pattern].directions(k, p.columns, p.rate) for k in range(frames)]
    turned = [(unit @ np.swapaxes(rotation, 1, 2)).reshape(-1, 3) for unit in patterns]
    return np.tile(origins, (frames, 1)), np.concatenate(turned)


def compared_with_embree(
    bodies: SceneBodies, triangles: Floats, origins: Floats, directions: Floats
) -> str:
    """Return the text for `Row.agree` from Embree's answers to rays (n, 3) of 200 m."""
    if importlib.util.find_spec("embreex") is None:
        return "not compared (pip install embreex)"
    from embreex.mesh_construction import TriangleMesh as EmbreeMesh
    from embreex.rtcore_scene import EmbreeScene

    # the same triangles in Embree
    middle = np.array((*MIDDLE, triangles[:, :, 2].mean()))  # float32 is fine to 15 µm there
    embree = EmbreeScene()
    corners = (triangles - middle).reshape(-1, 3).astype(np.float32)
    mesh = EmbreeMesh(embree, corners, np.arange(len(corners), dtype=np.int32).reshape(-1, 3))

    # the same rays, rounded alike
    origins = (origins - middle).astype(np.float32)
    directions = directions.astype(np.float32)
    theirs = embree.run(origins, directions, query="DISTANCE")
    theirs = np.where(theirs <= 200.0, theirs, np.inf)
    del mesh

    # without a ground, and rays that begin within a part left out: Embree meets its far side
    hits = SceneRays(DEEP, bodies).cast(origins + middle, directions.astype(float), 200.0)
    counted = hits.ranges > 0.0
    ours = hits.ranges[counted]
    theirs = theirs[counted]

    # nearly all ranges are the same
    with np.errstate(invalid="ignore"):
        same = (ours == theirs) | (np.abs(ours - theirs) < 1e-3)

    hits = np.isfinite(ours).mean()
    text = f"Embree: {same.mean():.4%} of {same.size:,} rays within 1 mm, hit rate {hits:.3f}"
    return text if same.mean() >= 0.9999 else f"{DISAGREES}: {text}"


def driving(terrain: HeightMap, x: float = 0.0, y: float = 0.0) -> VehicleTrack:
    """Return 0.1 s at 10 m/s in a turn, with a pose each millisecond."""
    times = np.arange(101) * 0.001
    place = np.stack(
        [x + 10.0 * times, y + 2.0 * times, np.full(101, terrain.altitude(x, y) + 0.4)],
        axis=1,
    )
    attitude = euler_to_quat(np.stack([0.3 * times, 0.1 - times, 0.8 * times], axis=1))
    return VehicleTrack(times, place, attitude)


def traffic(terrain: HeightMap) -> SceneBodies:
    """Return cars on the ground, in all directions."""
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


def column_by_column(lidar: Lidar, sweep: LidarSweep, track: VehicleTrack, scene: SceneRays) -> str:
    """Return the text for `Row.agree`: every 100th column alone, and each body in it alone."""
    p = lidar.parameters

    # the ground, and the ground with each body alone
    worst = []
    parts = [SceneRays(scene.terrain)]
    if scene.bodies is not None:
        b = scene.bodies
        rows = (np.array([k]) for k in range(len(b)))
        parts += [
            SceneRays(
                scene.terrain,
                SceneBodies(
                    b.shapes,
                    b.shape_index[k],
                    b.position[k],
                    b.orientation[k],
                    b.velocity[k],
                    b.time[k],
                    b.id[k],
                ),
            )
            for k in rows
        ]

    for column in range(0, p.columns, 100):
        when = lidar.times[column : column + 1]
        place, rotation = track.at(when)
        directions = sweep.directions[column] @ rotation[0].T
        origins = np.repeat(place + rotation[0] @ np.asarray(p.position), p.beams, axis=0)
        nearest = np.min(
            [part.cast(origins, directions, p.max_range, float(when[0])).ranges for part in parts],
            axis=0,
        )

        nearest[nearest < p.min_range] = -np.inf
        returned = sweep.ranges[column]
        if not np.array_equal(np.isfinite(returned), np.isfinite(nearest)):
            return f"{DISAGREES}: column {column} returns other beams"
        hit = np.isfinite(returned)
        worst.append(np.abs(returned[hit] - nearest[hit]).max(initial=0.0))

    return agreement(worst, np.zeros(len(worst)), 1e-9) + ", every 100th column on its own"

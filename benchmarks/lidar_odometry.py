# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Error of KISS-ICP, which knows the lidar's sweeps alone, after a trip through a shipped world.

`python -m benchmarks.lidar_odometry` plans a way through each world, and drives and flies it with
the land-air vehicle's dynamics. It gives KISS-ICP (pip install kiss-icp) the noisy sweeps, as
points with their times, with its defaults for a range. Apart from them KISS-ICP knows only the
first sweep's pose.

- `--registration`: which part of the error is due to the registration;
- `--cover 0.3`: the same trip where the lidar meets grass and herbs up to that height, m, instead
  of the bare ground.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from rfly_amphibious import Scenario, SensorParameters, state_layout
from rfly_common.arrays import Floats
from rfly_common.frames import euler_to_quat, rotation_matrix
from rfly_lab import ScenarioRun, run_scenario
from rfly_sensing import Lidar, SceneRays, VehicleTrack, world_bodies
from rfly_terrain import (
    DRIVE,
    FLY,
    HeightMap,
    Planner,
    PlanPose,
    World,
    load_vehicle_classes,
    load_world,
)

CLASSES = {DRIVE: "rover", FLY: "multirotor"}
TRIPS = {
    "forest": {DRIVE: (50.0, -50.0, -63.5, 58.5), FLY: (102.0, -82.0, -102.0, 78.0)},
    "village": {DRIVE: (-40.0, 60.0, 60.0, -50.0), FLY: (-102.0, 78.0, 102.0, -82.0)},
}
"""Trips from x, y to x, y, m.

Driven ones go between objects, flown ones between places that are level enough.
"""
SPEED_MPS = {DRIVE: 3.0, FLY: 5.0}
HEIGHT = 6.0
"""Height of flight above the ground, m."""
SEGMENT = 100.0
"""Length of the segments whose error counts, m."""
SPACING = 8.0
"""Distance between way-points, m."""
SIGMA = 0.5
"""KISS-ICP's adaptive threshold, m, if its prediction is as wrong as on these drives."""
TUFT = 0.5
"""Width of grass and herbs, m."""


def trip(world: World, mode: int) -> ScenarioRun:
    """Return a way from one place to the other around the world's objects."""
    assert world.terrain is not None
    vehicle = load_vehicle_classes()[CLASSES[mode]]
    planner = Planner(world.terrain, world.solids, resolution=0.5, margin=1.5)
    x, y, to_x, to_y = TRIPS[world.name][mode]
    plan = planner.plan(vehicle, PlanPose(x, y), PlanPose(to_x, to_y), mode)

    # way-points at even distances
    way = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(plan.position[:, :2], axis=0).T))])
    along = np.linspace(0.0, way[-1], math.ceil(way[-1] / SPACING) + 1)
    points = np.column_stack([np.interp(along, way, plan.position[:, axis]) for axis in range(3)])
    above = points[:, 2] - world.terrain.altitude(points[:, 0], points[:, 1])

    # a mission that drives or flies along them
    items = [f"    - {{mode: waypoint, position_m: [{x:.2f}, {y:.2f}]}}" for x, y, _ in points[1:]]
    if mode == FLY:
        heights = np.maximum(above, HEIGHT)
        items = ["    - {mode: takeoff, height_m: 6}"]
        items += [
            f"    - {{mode: waypoint, position_m: [{x:.2f}, {y:.2f}], height_m: {height:.1f}}}"
            for (x, y, _), height in zip(points[1:], heights[1:], strict=True)
        ]
        items.append("    - {mode: land}")

    # the scenario
    heading = math.degrees(math.atan2(points[1, 1] - points[0, 1], points[1, 0] - points[0, 0]))
    text = f"""version: 1
map: RollingHills
world: {world.name}
vehicle: scale
start: {{position_m: [{points[0, 0]:.2f}, {points[0, 1]:.2f}], heading_deg: {heading:.1f}}}
seed: 1
wind: {{mean_mps: [1, 1, 0], gust_sigma_mps: [0.4, 0.4, 0.2]}}
mission:
  drive_speed_mps: {SPEED_MPS[DRIVE]}
  fly_speed_mps: {SPEED_MPS[FLY]}
  items:
{chr(10).join(items)}
end: {{when: mission_done, time_s: 300}}
"""

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trip.yaml"
        file.write_text(text, encoding="utf-8")
        return run_scenario(Scenario.load(str(file)))


def kiss_icp(reach: float, lidar: Lidar) -> Any:
    """Return a KissICP by its defaults for a range, m."""
    from kiss_icp.config import KISSConfig
    from kiss_icp.kiss_icp import KissICP

    config = KISSConfig()
    config.data.max_range = reach
    config.data.min_range = lidar.parameters.min_range
    config.registration.max_num_threads = 1
    config.mapping.voxel_size = reach / 100.0  # its own default for a range
    return KissICP(config)


def overgrown(terrain: HeightMap, cover: float) -> HeightMap:
    """Return the ground as a lidar sees it, with grass and herbs up to `cover`, m.

    The heights on the lattice points are the squares of even random numbers, a third of `cover` on
    average, and the same at each sweep.
    """
    if cover == 0.0:
        return terrain
    x, y = (
        np.arange(low + TUFT / 2, high, TUFT)
        for low, high in (terrain.bounds[:2], terrain.bounds[2:])
    )
    height = cover * np.random.default_rng(1).random((len(x), len(y))) ** 2
    ground = np.asarray(terrain.altitude(x[:, None], y[None, :]), float)
    return HeightMap(ground + height, origin_x=x[0], origin_y=y[0], step_x=TUFT, step_y=TUFT)


def poses_of(track: VehicleTrack, lidar: Lidar, times: Floats) -> Floats:
    """Return poses (n, 4, 4) from the lidar to the world."""
    position, rotation = track.at(times)
    poses = np.tile(np.eye(4), (len(times), 1, 1))
    poses[:, :3, :3] = rotation @ rotation_matrix(
        np.asarray(euler_to_quat(lidar.parameters.rotation), float)
    )
    poses[:, :3, 3] = position + rotation @ np.asarray(lidar.parameters.position)
    return poses


def segment_error(true: Floats, estimated: Floats) -> float:
    """Return the mean error of the estimated motion (n, 4, 4), as a share of the way over SEGMENT.

    The mean is over segments from each 10th pose: the translation error of the KITTI odometry
    benchmark (Geiger, Lenz and Urtasun 2012), of its shortest segments. NaN if the way is shorter.
    """
    ways = np.concatenate(
        [[0.0], np.cumsum(np.linalg.norm(np.diff(true[:, :3, 3], axis=0), axis=1))]
    )

    # segments that begin on each tenth pose
    first = np.arange(0, len(true), 10)
    last = np.searchsorted(ways, ways[first] + SEGMENT)
    first = first[last < len(true)]
    last = last[last < len(true)]

    # errors of their motions
    motions = [np.linalg.inv(poses[first]) @ poses[last] for poses in (true, estimated)]
    off = (np.linalg.inv(motions[1]) @ motions[0])[:, :3, 3]
    return float(np.linalg.norm(off, axis=1).mean() / SEGMENT) if len(first) else math.nan


def errors(
    track: VehicleTrack, lidar: Lidar, scene: SceneRays, ranges: list[float]
) -> tuple[float, Floats, list[float]]:
    """Return the length of the way, position errors and segment errors, with n ranges for KISS-ICP.

    The length is in m, the errors of k sweeps' estimated positions are (k, n) m, the segment errors
    n.
    """
    # estimated poses after each sweep
    odometries = [kiss_icp(reach, lidar) for reach in ranges]
    numbers = np.arange(1, math.floor((track.time[-1] - 0.01) * lidar.parameters.rate))
    estimates = []
    for number in numbers:
        points = lidar.sweep(int(number), track, scene).points().astype(float)
        for odometry in odometries:
            odometry.register_frame(points[:, :3], points[:, 5])
        estimates.append([odometry.last_pose for odometry in odometries])

    # both in the frame of the first one
    # the true pose of a sweep's end
    true = poses_of(track, lidar, (numbers + 1) * lidar.period)
    poses = np.array(estimates)
    places = (true[0] @ np.linalg.inv(poses[0]) @ poses)[..., :3, 3]
    exact = true[:, :3, 3]

    way = float(np.linalg.norm(np.diff(exact, axis=0), axis=1).sum())
    segments = [segment_error(true, poses[:, each]) for each in range(len(ranges))]
    return way, np.linalg.norm(places - exact[:, None], axis=-1), segments


def registration_errors(
    track: VehicleTrack, lidar: Lidar, scene: SceneRays, reach: float
) -> tuple[Floats, Floats]:
    """Return the error that one registration adds and the distance between its sweeps, both (k,) m.

    Everything that odometry must guess is true here: the sweep, each point at its own pose; the
    map, of the 6 sweeps before; and the first guess. The rest is the registration's own error, due
    to the pattern of the points.
    """
    off = []
    steps = []
    last = math.floor((track.time[-1] - 0.01) * lidar.parameters.rate)

    for end in np.linspace(10, last - 1, 12).astype(int)[1:-1]:
        # sweeps without distortion, and a map of all except the last
        odometry = kiss_icp(reach, lidar)
        for number in range(end - 6, end + 1):
            points = lidar.sweep(number, track, scene).points().astype(float)
            times, column = np.unique(points[:, 5], return_inverse=True)
            poses = poses_of(track, lidar, number * lidar.period + times)
            pose = poses_of(track, lidar, np.array([(number + 1) * lidar.period]))[0]
            relative = (np.linalg.inv(pose) @ poses)[column]
            still = np.einsum("nij,nj->ni", relative[:, :3, :3], points[:, :3]) + relative[:, :3, 3]
            near = odometry.preprocessor.preprocess(still, np.zeros(0), np.eye(4))
            source, thinned = odometry.voxelize(near)
            if number < end:
                odometry.local_map.update(thinned, pose)
                before = pose

        # register the last one
        registered = odometry.registration.align_points_to_map(
            source, odometry.local_map, pose, 3 * SIGMA, SIGMA
        )
        off.append(np.linalg.norm((registered - pose)[:3, 3]))
        steps.append(np.linalg.norm((pose - before)[:3, 3]))

    return np.array(off), np.array(steps)


def main() -> None:
    """Print a table of the errors in each world, by driving and flying."""
    modes = {"driven": DRIVE, "flown": FLY}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--worlds",
        nargs="+",
        default=list(TRIPS),
        choices=TRIPS,
        help="default: %(default)s",
    )
    parser.add_argument(
        "--modes",
        nargs="+",
        default=list(modes),
        choices=modes,
        help="default: %(default)s",
    )
    parser.add_argument(
        "--sensors",
        default="scale",
        help="set or file whose lidar it is; default: %(default)s",
    )
    parser.add_argument(
        "--beams",
        nargs="+",
        type=int,
        help="rings, evenly apart; default: the lidar's own",
    )
    parser.add_argument(
        "--ranges",
        nargs="+",
        type=float,
        default=[100.0],
        help="KISS-ICP's max_range; default: %(default)s",
    )
    parser.add_argument(
        "--cover",
        type=float,
        default=0.0,
        help="height of grass and herbs, m; default: bare ground",
    )
    parser.add_argument(
        "--registration",
        action="store_true",
        help="how far one registration is off, all else being true",
    )
    options = parser.parse_args()

    shipped = SensorParameters.load(options.sensors).lidar
    if shipped is None:
        parser.error(f"--sensors: {options.sensors}: there is no lidar")

    even = [
        dataclasses.replace(shipped, beams=beams, beam_elevations=())
        for beams in options.beams or ()
    ]
    columns = (
        "off, median of 10, mm | a step, mm"
        if options.registration
        else "way, m | off at the end, m | at most, m | of the way | over 100 m"
    )

    # a row of each world, mode, lidar and range
    print(f"| world | | rings | range, m | {columns} |\n|{' --- |' * (5 + columns.count('|'))}")

    for name in options.worlds:
        world = load_world(name).on(HeightMap.load("RollingHills"))
        assert world.terrain is not None
        scene = SceneRays(overgrown(world.terrain, options.cover), world_bodies(world))
        for word in options.modes:
            run = trip(world, modes[word])
            if not run.reached:
                print(f"`{name}`, {word}: {run.ending}", flush=True)
                continue
            track = VehicleTrack(run.time, run.position, run.x[:, state_layout.QUATERNION_XYZW])
            for parameters in even or [shipped]:
                lidar = Lidar(parameters, seed=1)
                beams = parameters.beams
                rows = []
                if options.registration:
                    for reach in options.ranges:
                        off, step = registration_errors(track, lidar, scene, reach)
                        rows.append(f"{np.median(off) * 1e3:.0f} | {np.median(step) * 1e3:.0f}")
                else:
                    way, off, segments = errors(track, lidar, scene, options.ranges)
                    rows = [
                        f"{way:.0f} | {e[-1]:.2f} | {e.max():.2f} | {e.max() / way:.2%} | "
                        f"{segment:.2%}"
                        for e, segment in zip(off.T, segments, strict=True)
                    ]
                for reach, row in zip(options.ranges, rows, strict=True):
                    print(
                        f"| `{name}` | {word} | {beams} | {reach:.0f} | {row} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()

"""How far off is KISS-ICP, which knows the lidar's sweeps alone, after a trip through a shipped world?

`python -m benchmarks.lidar_odometry` plans a way through each world, drives and flies it with the land-air vehicle's
dynamics, and gives KISS-ICP (pip install kiss-icp) the noisy sweeps, as points with their times, by its defaults for a
sensor of 70 m. The first sweep's pose is the only thing that it is told.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path

import numpy as np

from rfly_amphibious import (
    Lidar,
    Scenario,
    ScenarioRun,
    SceneRays,
    SensorParameters,
    VehicleTrack,
    run_scenario,
    state_layout,
    world_bodies,
)
from rfly_common.arrays import Floats
from rfly_common.frames import euler_to_quat, rotation_matrix
from rfly_terrain import DRIVE, FLY, HeightMap, Planner, PlanPose, World, load_vehicle_classes, load_world

CLASSES = {DRIVE: "rover", FLY: "multirotor"}
TRIPS = {
    "forest": {DRIVE: (95.0, -95.0, -95.0, 95.0), FLY: (102.0, -82.0, -102.0, 78.0)},
    "village": {DRIVE: (-90.0, 90.0, 90.0, -90.0), FLY: (-102.0, 78.0, 102.0, -82.0)},
}
"""from x, y to x, y, m; flown between places that are level enough"""
SPEED_MPS = {DRIVE: 3.0, FLY: 5.0}
HEIGHT = 6.0
"""m above the ground, flown"""
SPACING = 8.0
"""m between way-points"""


def trip(world: World, mode: int) -> ScenarioRun:
    """From one corner to the other, around what stands there."""
    assert world.terrain is not None
    vehicle = load_vehicle_classes()[CLASSES[mode]]
    planner = Planner(world.terrain, world.solids, resolution=0.5, margin=1.5)
    x, y, to_x, to_y = TRIPS[world.name][mode]
    plan = planner.plan(vehicle, PlanPose(x, y), PlanPose(to_x, to_y), mode)
    way = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(plan.position[:, :2], axis=0).T))])
    at = np.linspace(0.0, way[-1], math.ceil(way[-1] / SPACING) + 1)
    points = np.column_stack([np.interp(at, way, plan.position[:, axis]) for axis in range(3)])
    above = points[:, 2] - world.terrain.altitude(points[:, 0], points[:, 1])
    items = [f"    - {{mode: waypoint, position_m: [{x:.2f}, {y:.2f}]}}" for x, y, _ in points[1:]]
    if mode == FLY:
        heights = np.maximum(above, HEIGHT)
        items = ["    - {mode: takeoff, height_m: 6}"]
        items += [
            f"    - {{mode: waypoint, position_m: [{x:.2f}, {y:.2f}], height_m: {height:.1f}}}"
            for (x, y, _), height in zip(points[1:], heights[1:], strict=True)
        ]
        items.append("    - {mode: land}")
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


def drift(run: ScenarioRun, scene: SceneRays) -> tuple[float, Floats]:
    """(m of the way, (k,) m by which each sweep's estimated place is off)."""
    from kiss_icp.config import KISSConfig
    from kiss_icp.kiss_icp import KissICP

    parameters = SensorParameters.load("scale").lidar
    assert parameters is not None
    track = VehicleTrack(run.time, run.position, run.x[:, state_layout.QUATERNION_XYZW])
    lidar = Lidar(parameters, seed=1)
    config = KISSConfig()
    config.data.max_range, config.data.min_range = parameters.max_range, parameters.min_range
    config.registration.max_num_threads = 1
    config.mapping.voxel_size = parameters.max_range / 100.0  # its own default for a range
    odometry = KissICP(config)
    mounting = rotation_matrix(np.asarray(euler_to_quat(parameters.rotation), float))
    true, told = [], []
    for number in range(1, math.floor((run.time[-1] - 0.01) * parameters.rate)):
        points = lidar.sweep(number, track, scene).points()
        odometry.register_frame(points[:, :3].astype(float), points[:, 5].astype(float))
        position, rotation = track.at(np.array([(number + 1) * lidar.period]))  # it tells the pose of a sweep's end
        pose = np.eye(4)
        pose[:3, :3] = rotation[0] @ mounting
        pose[:3, 3] = position[0] + rotation[0] @ np.asarray(parameters.position)
        true.append(pose)
        told.append(odometry.last_pose)
    places = np.array([true[0] @ np.linalg.inv(told[0]) @ pose for pose in told])[:, :3, 3]
    exact = np.array(true)[:, :3, 3]
    return float(np.linalg.norm(np.diff(exact, axis=0), axis=1).sum()), np.linalg.norm(places - exact, axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="+", default=list(TRIPS), choices=TRIPS, help="default: %(default)s")
    options = parser.parse_args()
    print("| world | | way, m | off at the end, m | farthest off, m | drift |\n| --- | --- | --- | --- | --- | --- |")
    for name in options.worlds:
        world = load_world(name).on(HeightMap.load("RollingHills"))
        scene = SceneRays(world.terrain, world_bodies(world))
        for mode, word in ((DRIVE, "driven"), (FLY, "flown")):
            run = trip(world, mode)
            if not run.reached:
                print(f"| `{name}` | {word} | {run.ending} | | | |", flush=True)
                continue
            way, error = drift(run, scene)
            row = f"{way:.0f} | {error[-1]:.2f} | {error.max():.2f} | {error.max() / way:.2%} of the way"
            print(f"| `{name}` | {word} | {row} |", flush=True)


if __name__ == "__main__":
    main()

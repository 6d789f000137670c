# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Draw what the land-air vehicle's lidar and cameras see, without ROS, as one picture.

The picture has a lidar sweep and three images. The vehicle flies over the valley of the shipped
map, next to parked cars: `python lidar_and_cameras.py --out seen.png`.
"""

import argparse

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rfly_amphibious import (
    COLOR_CAMERA,
    DEPTH_CAMERA,
    LIDAR,
    AmphibiousModel,
    RangeSensors,
    RotorCommand,
    SensorParameters,
    Simulation,
    VehicleParameters,
    Weather,
    state_layout,
)
from rfly_autonomy import abort_pilot
from rfly_collision import Box
from rfly_common import euler_to_quat
from rfly_sensing import SceneBodies, SceneRays
from rfly_terrain import HeightMap

CARS = 14


def parked(terrain: HeightMap, x: float, y: float) -> SceneBodies:
    """Return cars in two rows ahead of (x, y)."""
    row, place = np.divmod(np.arange(CARS), CARS // 2)
    position = np.column_stack([x + 4.0 + 7.0 * place, y - 5.0 + 9.0 * row, np.zeros(CARS)])
    position[:, 2] = terrain.altitude(position[:, 0], position[:, 1]) + 0.7
    orientation = euler_to_quat(np.column_stack([np.zeros((CARS, 2)), 1.3 + 0.1 * row]))
    velocity = np.zeros((CARS, 3))

    ids = np.arange(1, CARS + 1)
    return SceneBodies(
        (Box((4.3, 1.96, 1.42)),),
        np.zeros(CARS, np.int64),
        position,
        np.asarray(orientation),
        velocity,
        np.zeros(CARS),
        ids,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", default="lidar_and_cameras.png", help="the picture, by default %(default)s"
    )
    parser.add_argument(
        "--height", type=float, default=3.0, help="above the ground, m (default: %(default)s)"
    )
    parser.add_argument(
        "--visibility", type=float, default=np.inf, help="m in fog; by default the air is clear"
    )
    parser.add_argument("--light", type=float, default=1.0, help="0 (night) … 1 (day, the default)")
    options = parser.parse_args()

    # the vehicle, with its sensors
    terrain = HeightMap.load("JacksboroFault")
    parameters = SensorParameters.load("scale")
    model = AmphibiousModel(VehicleParameters.load("scale"), terrain)
    x = -1000.0
    y = -455.0
    start = model.flying((x, y, terrain.altitude(x, y) + options.height), velocity=(5.0, 0.0, 0.0))
    simulation = Simulation(model, parameters, start, seed=1, fail_safe=abort_pilot)
    sensors = RangeSensors(parameters, seed=1)
    simulation.command_rotors(
        RotorCommand(0.0, np.full(model.params.rotors, model.params.hover_speed))
    )
    sensors.restart(simulation.time, simulation.state.position, simulation.state.orientation)
    sensors.gimbal.look(np.radians(20.0))

    # what it sees
    scene = SceneRays(terrain, parked(terrain, x, y))
    weather = Weather(options.light, options.visibility)

    newest = {}
    while simulation.time < 0.2:
        simulation.tick()
        times, states = simulation.step_states
        position = states[:, state_layout.POSITION : state_layout.POSITION + 3]
        orientation = states[:, state_layout.QUATERNION_XYZW]
        newest |= {due.sensor: due for due in sensors.advance(times, position, orientation)}

    sweep = sensors.sweep(newest[LIDAR], scene, weather)
    depth, infrared = sensors.depth_images(newest[DEPTH_CAMERA], scene, weather)
    color = sensors.color_images(newest[COLOR_CAMERA], scene, weather).color

    points = sweep.points()
    print(f"{len(points)} points of {sweep.ranges.size} beams")
    figure = Figure(figsize=(13, 7), dpi=80, layout="constrained")
    FigureCanvasAgg(figure)

    # lidar from above
    grid = figure.add_gridspec(3, 3, width_ratios=(1.3, 1, 1))
    above = figure.add_subplot(grid[:, 0], aspect="equal", facecolor="#11141a")
    dots = above.scatter(-points[:, 1], points[:, 0], 0.6, points[:, 2], cmap="turbo", linewidths=0)
    above.set(
        title=f"lidar from above: {len(points):,} points",
        xlabel="to the right (m)",
        ylabel="ahead (m)",
    )
    above.set(xlim=(-35, 35), ylim=(-50, 70))
    figure.colorbar(dots, ax=above, label="z in lidar_link (m)", shrink=0.6)

    # color, depth and infrared images
    seen = figure.add_subplot(grid[:2, 1:], xticks=[], yticks=[], title="camera/color")
    seen.imshow(color)
    deep = figure.add_subplot(grid[2, 1], xticks=[], yticks=[], facecolor="0.6")
    deep.set_title("camera/depth, grey: out of range")
    image = deep.imshow(np.where(np.isfinite(depth), depth, np.nan), cmap="viridis")
    figure.colorbar(image, ax=deep, label="depth (m)")
    dark = figure.add_subplot(grid[2, 2], xticks=[], yticks=[], title="camera/ir")
    dark.imshow(infrared, cmap="gray")

    figure.savefig(options.out)
    print(options.out)


if __name__ == "__main__":
    main()

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The elevation map: fusion worked out by hand, a moving map, and `hills` seen by the lidar."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_amphibious import Scenario, SensorParameters, Weather
from rfly_autonomy import ElevationMap, ElevationParameters, EstimatorParameters
from rfly_autonomy.control.pilot import abort_pilot
from rfly_autonomy.guidance.on_board import OnBoard
from rfly_common import ConfigError
from rfly_common.frames import euler_to_quat
from rfly_sensing import Lidar, SceneRays, VehicleTrack
from rfly_terrain import HeightMap

PLAIN = {"range_sigma": 0.03, "angle_sigma": 0.0, "cell_sigma": 0.04, "drift": 0.0}
"""Height at which a point straight below has a standard deviation of 5 cm: 3² + 4² = 5².

The 4 cm remain for any number of points.
"""
ABOVE = (0.05, 0.05, 10.0)


def from_above(*heights):
    return [(0.05, 0.05, height) for height in heights]


def test_clouds_are_fused_by_their_variances():
    """One point has 9 + 16 cm², two of the same cloud 9 / 2 + 16 cm².

    Two clouds are fused by the Kalman update.
    """
    grid = ElevationMap(ElevationParameters(**PLAIN))
    assert grid.insert(ABOVE, from_above(1.00), 0.0) == 1

    height, variance = grid.elevation(0.05, 0.05)
    assert (float(height), float(variance)) == pytest.approx((1.00, 25e-4))
    assert grid.insert(ABOVE, from_above(1.04, 1.06), 1.0) == 2

    height, variance = grid.elevation(0.09, 0.01)
    expected = (1.00 / 25 + 1.05 / 20.5) / (1 / 25 + 1 / 20.5)
    assert float(height) == pytest.approx(expected)
    expected = 1e-4 / (1 / 25 + 1 / 20.5)
    assert float(variance) == pytest.approx(expected)
    assert np.isnan(grid.elevation(0.15, 0.05)[0]), "another cell"
    assert grid.known == 1


def test_a_point_is_as_sure_upright_as_its_ray_is_steep():
    """The error 3 m up and 4 m away is 0.6 of the range's error, and the attitude's over 4 m."""
    grid = ElevationMap(ElevationParameters(**{**PLAIN, "angle_sigma": 0.01}))
    grid.insert((4.05, 0.05, 3.0), [(0.05, 0.05, 0.0)], 0.0)
    expected = (0.6 * 0.03) ** 2 + 0.04**2 + 0.04**2
    assert float(grid.elevation(0.05, 0.05)[1]) == pytest.approx(expected)


def test_heights_get_less_certain_with_time():
    grid = ElevationMap(ElevationParameters(**{**PLAIN, "drift": 0.1}))
    grid.insert(ABOVE, from_above(0.0), 5.0)
    grid.insert(ABOVE, [(1.0, 0.05, 0.0)], 7.0)
    assert float(grid.elevation(0.05, 0.05)[1]) == pytest.approx(25e-4 + 0.01 * 2)
    grid.insert(ABOVE, [(1.0, 0.05, 0.0)], 3.0)  # the clock jumped back
    assert float(grid.elevation(0.05, 0.05)[1]) == pytest.approx(25e-4 + 0.01 * 2)


def test_a_higher_surface_counts_at_once_and_a_lower_one_when_it_stays():
    grid = ElevationMap(ElevationParameters(**PLAIN))
    for time in range(5):
        grid.insert(ABOVE, from_above(0.0), time)
    grid.insert(ABOVE, from_above(2.0), 5.0)

    assert float(grid.elevation(0.05, 0.05)[0]) == 2.0, "something stands there"

    seen = []
    for time in range(6, 14):  # it has gone
        grid.insert(ABOVE, from_above(0.0), time)
        seen.append(float(grid.elevation(0.05, 0.05)[0]))

    assert seen[:4] == [2.0] * 4, "a few clouds may be mistaken"
    assert abs(seen[4]) < 0.2
    assert abs(seen[-1]) < 0.02


def test_the_highest_surface_of_a_cell_is_its_height():
    """The foot of a wall, and its upper edge, are points of one cloud in one cell."""
    grid = ElevationMap(ElevationParameters(**PLAIN))
    grid.insert(ABOVE, from_above(0.0, 0.1, 1.0, 2.9, 3.0), 0.0)
    assert float(grid.elevation(0.05, 0.05)[0]) == pytest.approx(2.95)


def test_the_map_moves_and_forgets_cells_left_behind():
    """Each cell of 1 m has a height of its own; the way there and back wraps around."""
    grid = ElevationMap(ElevationParameters(resolution=1.0, length=7.0, **PLAIN))

    def plane(x, y):
        return 3.0 * np.floor(x) - 0.5 * np.floor(y)

    cells = np.arange(-60.0, 60.0) + 0.5
    x, y = (axis.ravel() for axis in np.meshgrid(cells, cells))
    everywhere = np.column_stack([x, y, plane(x, y)])
    for step, (east, north) in enumerate(
        [
            (0.5, 0.5),
            (2.5, -1.5),
            (9.5, -4.5),
            (-20.5, 3.5),
            (-20.5, 4.5),
        ]
    ):
        before = grid.elevation(x, y)[0]
        grid.insert((east, north, 200.0), [(east, north, plane(east, north))], step)
        near = (np.abs(x - east) < 3.6) & (np.abs(y - north) < 3.6)
        now = grid.elevation(x, y)[0]
        kept = np.isfinite(before) & near
        np.testing.assert_array_equal(now[kept], before[kept])
        assert set(np.flatnonzero(np.isfinite(now))) <= set(np.flatnonzero(near))
        assert grid.known == np.count_nonzero(kept) + (
            0 if np.isfinite(before[(x == east) & (y == north)]).any() else 1
        )
        assert grid.insert((east, north, 200.0), everywhere, step) == 49
        np.testing.assert_allclose(grid.elevation(x[near], y[near])[0], plane(x[near], y[near]))
    grid.clear()

    assert grid.known == 0


def test_points_that_are_not_finite_or_off_the_map_are_left_out():
    grid = ElevationMap(ElevationParameters(**PLAIN))
    assert grid.buffers() is None
    assert grid.insert(ABOVE, np.empty((0, 3)), 0.0) == 0
    assert grid.insert(ABOVE, [(math.nan, 0.0, 0.0), (0.0, 0.0, math.inf)], 0.0) == 0
    assert (
        grid.insert(
            ABOVE,
            [
                (10.2, 0.0, 0.0),
                (-10.1, 0.0, 0.0),
                (0.0, 1e9, 0.0),
            ],
            0.0,
        )
        == 0
    )
    assert grid.insert(ABOVE, [ABOVE], 0.0) == 1, "a ray of no length"
    assert np.isfinite(grid.elevation(0.05, 0.05)).all()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"resolution": 0.0}, "resolution is 0.0, allowed: 0.01 … 10"),
        ({"gate": math.nan}, "gate is nan"),
        ({"length": 0.05}, "length is 0.05, expected at least the resolution, 0.1"),
        (
            {"length": 500.0},
            "length 500 m and resolution 0.1 m make 25,000,000 cells, allowed: up to 4,000,000",
        ),
    ],
)
def test_parameters_that_can_not_be_are_refused(fields, expected):
    with pytest.raises(ConfigError, match=expected):
        ElevationParameters(**fields)
    grid = ElevationMap()
    for points, origins in (
        ([1.0, 2.0, 3.0], ABOVE),
        ([[1.0, 2.0]], ABOVE),
        ([[0.0] * 3] * 2, [[0.0] * 3] * 3),
    ):
        with pytest.raises(ConfigError, match="expected"):
            grid.insert(origins, points, 0.0)


# --- the ground of `hills`


def errors(grid, terrain, shift=(0.0, 0.0, 0.0)):
    """Return known heights less the ground's, m, with the map moved by a shift first."""
    n = grid.parameters.cells
    side = grid.parameters.resolution
    buffers = grid.buffers()
    rows, columns = np.indices((n, n))
    x = buffers.corner[0] - ((columns - buffers.start[0]) % n + 0.5) * side - shift[0]
    y = buffers.corner[1] - ((rows - buffers.start[1]) % n + 0.5) * side - shift[1]
    off = buffers.elevation - shift[2] - terrain.altitude(x, y)
    known = np.isfinite(off)
    return off[known], np.sqrt(buffers.variance[known])


def insert_sweep(grid, sweep, track, mount):
    """Insert a sweep with the vehicle's poses, by a track, at each point's time."""
    points = sweep.points()
    position, body = track.at(sweep.start + points[:, 5].astype(float))
    begin = position + np.einsum("nij,j->ni", body, mount)
    grid.insert(
        begin, position + np.einsum("nij,nj->ni", body, points[:, :3] + mount), sweep.start + 0.1
    )


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def test_heights_are_the_grounds_within_5_cm_from_true_poses():
    """The scale vehicle's lidar, with its noise, looks for two seconds at a slope of `hills`."""
    terrain = HeightMap.load("RollingHills")
    sensor = SensorParameters.load("scale").lidar
    time = np.arange(0.0, 2.2, 0.02)
    x = 16.0 + 3.0 * time
    y = -16.0 + 1.0 * time
    gradient = terrain.gradient(x, y)
    yaw = math.atan2(1, 3)
    pitch = -np.arctan(gradient @ (math.cos(yaw), math.sin(yaw)))
    roll = np.arctan(gradient @ (-math.sin(yaw), math.cos(yaw)))
    turns = np.array([euler_to_quat((a, b, yaw)) for a, b in zip(roll, pitch, strict=True)])
    track = VehicleTrack(time, np.column_stack([x, y, terrain.altitude(x, y) + 0.3]), turns)
    lidar = Lidar(sensor, seed=1)
    scene = SceneRays(terrain)
    grid = ElevationMap()
    for number in range(0, 20, 2):
        insert_sweep(
            grid, lidar.sweep(number, track, scene, Weather()), track, np.array(sensor.position)
        )
    off, sigma = errors(grid, terrain)

    assert len(off) > 0.3 * grid.parameters.cells**2
    assert rms(off) < 0.02, "four centimetres of the five are the estimator's"
    assert np.mean(np.abs(off) < 3 * sigma) > 0.99, "as sure as it says"


@pytest.mark.exhaustive
@pytest.mark.slow
def test_heights_around_the_vehicle_are_within_5_cm_by_its_own_estimate():
    """The scenario `hills` runs by noisy sensors, estimator and controllers until the take-off.

    The map is where the estimator believes to be; its ground next to the vehicle counts.
    """
    scenario = Scenario.load("hills")
    sensors = SensorParameters.load("scale")
    simulation = scenario.simulation(sensors.replace(ground_truth=None), fail_safe=abort_pilot)
    aboard = OnBoard(
        scenario, sensors.replace(ground_truth=None), EstimatorParameters.load("scale")
    )
    rows = []
    while simulation.time < 6.0:
        rotors, wheels = aboard.tick(simulation.time, simulation.tick(), simulation.period)
        simulation.command_rotors(rotors)
        simulation.command_wheels(wheels)
        now = aboard.estimate
        state = simulation.state
        if now is not None:
            rows.append(
                (
                    now.time,
                    *state.position,
                    *state.orientation,
                    *now.position,
                    *now.orientation,
                )
            )
    table = np.array(rows)[::5]
    truth = VehicleTrack(
        table[:, 0],
        table[:, 1:4],
        table[:, 4:8],
    )
    estimate = VehicleTrack(
        table[:, 0],
        table[:, 8:11],
        table[:, 11:15],
    )
    lidar = Lidar(sensors.lidar, seed=1)
    scene = SceneRays(scenario.terrain)
    grid = ElevationMap()
    beside = []
    for number in range(math.ceil(10 * table[0, 0]), math.floor(10 * table[-1, 0]) - 1, 2):
        sweep = lidar.sweep(number, truth, scene, Weather())
        insert_sweep(grid, sweep, estimate, np.array(sensors.lidar.position))
        when = np.array([sweep.start + 0.09])
        beside.append(
            rms(errors(grid, scenario.terrain, (estimate.at(when)[0] - truth.at(when)[0])[0])[0])
        )

    assert len(beside) > 15
    assert rms(beside) < 0.05

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RangeSensors: due measurements along a simulation, and the bodies that a vehicle sees."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from rfly_amphibious import AmphibiousModel, SensorParameters, VehicleParameters
from rfly_amphibious.sensors.range_sensors import COLOR_CAMERA, DEPTH_CAMERA, LIDAR, RangeSensors
from rfly_amphibious.simulation.commands import RotorCommand
from rfly_amphibious.simulation.simulation import Simulation
from rfly_autonomy.control.pilot import abort_pilot
from rfly_collision.shapes.shape import ConvexHull
from rfly_collision.shapes.vehicle_shapes import load_shapes
from rfly_collision.world.placed_bodies import PlacedBodies, no_objects
from rfly_common.vehicle_states import VehicleStates
from rfly_sensing.cameras import CameraPose, ColorCamera, body_color
from rfly_sensing.neighbours import Neighbours
from rfly_sensing.range_sensor_parameters import ColorCameraParameters
from rfly_sensing.scene_rays import SceneRays
from rfly_terrain import HeightMap
from rfly_terrain.world.weather import Weather

SET = SensorParameters.load("scale")
CLEAR = Weather()


def still(times):
    return (
        times,
        np.tile([0.0, 0.0, 1.0], (len(times), 1)),
        np.tile([0.0, 0.0, 0.0, 1.0], (len(times), 1)),
    )


def follow(sensors, begin, end, tick):
    """Return all due measurements, with the times of their ticks, while nothing moves."""
    steps = round((end - begin) / tick)
    edges = begin + tick * np.arange(steps + 1)
    told = []
    for low, high in itertools.pairwise(edges):
        told += [(due, high) for due in sensors.advance(*still(np.linspace(low, high, 5)[1:]))]
    return told


def test_what_is_due_when():
    """Sweeps are due when they end, at 10 Hz; images at 5 Hz, as soon as their time has come."""
    sensors = RangeSensors(SET)
    sensors.restart(0.0, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0))
    told = follow(sensors, 0.0, 1.0, 0.004)
    sweeps = [(due.number, due.time, at) for due, at in told if due.sensor == LIDAR]

    assert [number for number, _, _ in sweeps] == list(range(10))

    for number, time, at in sweeps:
        assert time == pytest.approx(0.1 * number)
        assert at == pytest.approx(time + 0.1, abs=0.0041)
    for camera in (DEPTH_CAMERA, COLOR_CAMERA):
        images = [(due.number, due.time, at) for due, at in told if due.sensor == camera]
        assert [number for number, _, _ in images] == list(range(6))
        for number, time, at in images:
            assert time == pytest.approx(0.2 * number)
            assert -1e-9 <= at - time <= 0.0041
    sensors.restart(7.33, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0))
    first = [(due.sensor, due.number) for due, _ in follow(sensors, 7.33, 7.51, 0.004)]

    expected = [(DEPTH_CAMERA, 37), (COLOR_CAMERA, 37), (LIDAR, 74)]
    assert first == expected

    with pytest.raises(ValueError, match="restart first"):
        sensors.advance(*still(np.array([7.2])))


def test_however_ticks_are_cut():
    """A sweep of a vehicle that takes off is the same with ticks of 4 ms and of 20 ms."""

    def sweep(period):
        parameters = SET.replace(imu=dataclasses.replace(SET.imu, rate=1 / period))
        model = AmphibiousModel(VehicleParameters.load("scale"))
        simulation = Simulation(
            model,
            parameters,
            model.flying((0.0, 0.0, 5.0), 0.3, (4.0, 1.0, 0.0)),
            seed=3,
            fail_safe=abort_pilot,
        )
        sensors = RangeSensors(parameters, seed=3)
        state = simulation.state
        sensors.restart(0.0, state.position, state.orientation)
        speed = np.full(model.params.rotors, 1.1 * model.params.hover_speed)
        simulation.command_rotors(RotorCommand(0.0, speed))
        found = []

        while not found:
            simulation.tick()
            times, x = simulation.step_states
            found = [
                due
                for due in sensors.advance(times, x[:, :3], x[:, [7, 8, 9, 6]])
                if due.sensor == LIDAR
            ]

        return sensors.sweep(found[0], SceneRays(None), CLEAR)

    one = sweep(0.004)
    other = sweep(0.02)
    np.testing.assert_array_equal(one.ranges, other.ranges)
    assert np.isfinite(one.ranges).sum() > 20_000


def states(ids, places, velocity=None, fit_ground=None, types=None):
    count = len(ids)
    return VehicleStates(
        id=np.array(ids, np.int32),
        vehicle_type=np.array(types or [3] * count, np.int32),
        position=np.array(places, float),
        orientation=np.tile([0.0, 0.0, 0.0, 1.0], (count, 1)),
        velocity=velocity,
        fit_ground=fit_ground,
    )


def test_whom_it_sees():
    """A vehicle sees all others until they fall silent.

    Cars have their wheels, and stand on the ground if they ask for it.
    """
    neighbours = Neighbours(load_shapes(), own_id=601)
    neighbours.take(
        states(
            [601, 7], [(0, 0, 1), (20.0, 0, 5.0)], fit_ground=np.array([False, True]), types=[3, 50]
        ),
        2.0,
        0,
    )
    slope = HeightMap(
        np.array([[-12.5, -12.5], [12.5, 12.5]]),
        origin_x=-100,
        origin_y=-100,
        step_x=200,
        step_y=200,
    )
    seen = neighbours.bodies(slope, 10**9)

    assert seen.id.tolist() == [7]
    assert seen.time.tolist() == [2.0]
    assert seen.position[0] == pytest.approx([20.0, 0.0, 2.5], abs=0.1)  # 0.125 x, not 5 m

    box = seen.shapes[seen.shape_index[0]]
    assert box.size == (4.3, 1.96, 1.42)
    assert neighbours.bodies(None, 10**9).position[0, 2] == 5.0
    assert len(neighbours.bodies(slope, 1_000_000_001)) == 0


def test_placed_objects_and_velocities():
    """A crate of known size is seen on the lidar's level.

    A vehicle drives on at its velocity after its last state.
    """
    neighbours = Neighbours(load_shapes(), own_id=601)
    one = np.array([[0.0, 0.0, 0.0, 1.0]])
    crate = PlacedBodies(
        np.array([900]),
        np.array([40]),
        np.array([[9.0, 9.0, 9.0]]),
        one,
        np.ones((1, 3)),
        np.array([[11.0, 0.0, 1.0]]),
        np.array([[1.0, 2.0, 3.0]]),
    )
    neighbours.set_objects(crate)
    neighbours.take(
        states([5], [(0.0, 10.0, 1.0)], np.array([[0.0, 20.0, 0.0]], np.float32)), 1.0, 0
    )
    scene = SceneRays(None, neighbours.bodies(None, 0))

    assert scene.bodies.id.tolist() == [5, 900]

    hits = scene.cast(
        np.full((2, 3), (0.0, 0.0, 1.1)), np.array([(1.0, 0, 0), (0, 1.0, 0)]), 70.0, 1.5
    )
    assert hits.ranges == pytest.approx([10.0, 20.0 - 0.55])  # a multirotor's box is 1.1 m wide

    neighbours.set_objects(no_objects())
    assert len(neighbours) == 1


def test_states_that_cannot_be_are_counted():
    neighbours = Neighbours(load_shapes(), own_id=1)
    dropped = neighbours.take(states([0, 4], [(0, 0, 0), (1e9, 0, 0)]), 0.0, 0)
    assert dropped == {"bad_id": 1, "too_far": 1}
    assert len(neighbours.bodies(None, 0)) == 0
    assert math.isinf(CLEAR.visibility)


def test_parts_and_colours_of_objects():
    """Two cones of one object have its own red, and rays pass between them.

    A crate has its id's colour.
    """
    ring = [(math.cos(a), math.sin(a), 0.0) for a in np.arange(16) * math.pi / 8]
    cone = np.array([*ring, (0.0, 0.0, 4.0)]) - (0.0, 2.0, 0.0)
    hulls = (ConvexHull(cone), ConvexHull(cone, (0.0, 4.0, 0.0)))
    both = PlacedBodies(
        np.array([900, 901]),
        np.array([40, 40]),
        np.array([(10.0, 0, 0), (0, 10.0, 0)]),
        np.tile([0.0, 0.0, 0.0, 1.0], (2, 1)),
        np.ones((2, 3)),
        np.array([(10.0, 0, 0), (0, 10.0, 0)]),
        np.ones((2, 3)),
        color=np.array([(1.0, 0.0, 0.0), (np.nan,) * 3]),
        class_id=np.array([7, 0]),
    )
    neighbours = Neighbours(load_shapes(), own_id=601)
    neighbours.set_objects(both.rows(np.array([0, 0, 1]), hulls, np.array([0, 1, -1])))
    scene = SceneRays(None, neighbours.bodies(None, 0))

    assert scene.bodies.id.tolist() == [900, 900, 901]

    directions = np.array(
        [
            (1.0, 0, 0),
            (1.0, 0, 0),
            (0, 1.0, 0),
        ]
    )
    hits = scene.cast(
        np.array(
            [
                (0, 0, 2.0),
                (0, 2.0, 2.0),
                (0, 0, 0.5),
            ]
        ),
        directions,
        30.0,
    )
    assert np.isinf(hits.ranges[0])
    assert hits.ranges[1:] == pytest.approx([9.5, 9.0])  # half way up the cone is half as wide
    assert scene.bodies.class_id.tolist() == [7, 7, 0]

    camera = ColorCamera(ColorCameraParameters(width=96, height=54), noise=False)
    for turn, number, color in ((0.0, 900, (1.0, 0.0, 0.0)), (math.pi / 2, 901, body_color(901))):
        c = math.cos(turn)
        s = math.sin(turn)
        images = camera.image(
            0,
            CameraPose(
                np.array((0.0, 0, 1.0)),
                np.array(
                    (
                        (c, -s, 0),
                        (s, c, 0),
                        (0, 0, 1),
                    )
                ),
            ),
            scene,
        )
        seen = images.color[images.instance == number].mean(axis=0)
        assert len(images.color[images.instance == number]) > 20
        expected = np.array(color) / max(color)
        assert seen / seen.max() == pytest.approx(expected, abs=0.01)

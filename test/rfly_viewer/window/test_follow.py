# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The following camera stays where the mouse leaves it, whatever a browser's late reports say."""

import numpy as np
import pytest

from rfly_terrain import HeightMap
from rfly_viewer.scene.viewpoint import FollowingCamera

BEHIND = np.array([-12.0, -12.0, 7.0])


def targets(count=60, speed=8.0, rate=30.0):
    """Places of a car that drives east."""
    return [np.array([k * speed / rate, 5.0, 1.0]) for k in range(count)]


def follow(report):
    """Return camera minus car, at each place.

    `report(k, cars, cameras)` is (position, look_at) that the browser reports.
    """
    camera = FollowingCamera()
    cars = targets()
    cameras = []
    for k, car in enumerate(cars):
        cameras.append(camera.place(car, *report(k, cars, cameras)))
    return np.array(cameras) - np.array(cars)


@pytest.mark.parametrize("late", [1, 5, 20])
def test_late_reports_move_nothing(late):
    def report(k, cars, cameras):
        return (
            (cameras[k - late], cars[k - late])
            if k >= late
            else (np.array([900.0, 0.0, 800.0]), np.zeros(3))
        )

    np.testing.assert_allclose(follow(report), np.tile(BEHIND, (60, 1)), atol=1e-9)


@pytest.mark.parametrize(("of_position", "of_look_at"), [(5, 1), (1, 5)])
def test_points_of_two_moments_move_nothing(of_position, of_look_at):
    """A report may have the position of one moment and the point of another.

    The camera once slipped by the car's way between them.
    """

    def report(k, cars, cameras):
        return (
            (cameras[k - of_position], cars[k - of_look_at])
            if k >= 5
            else (BEHIND, np.array([0.0, 0.0, -99.0]))
        )

    np.testing.assert_allclose(follow(report), np.tile(BEHIND, (60, 1)), atol=1e-9)


def test_the_overview_before_is_no_place_beside_the_vehicle():
    """Reports of the former view arrive for a while; the camera once ended under the ground."""
    expected = np.tile(BEHIND, (60, 1))
    np.testing.assert_allclose(
        follow(
            lambda k, cars, cameras: (np.array([0.0, -900.0, 700.0]), np.array([3.0, 4.0, 0.0]))
        ),
        expected,
        atol=1e-9,
    )


def test_the_mouse_counts():
    mouse = np.array([20.0, -3.0, 9.0])

    def report(k, cars, cameras):
        return (cars[k - 2] + mouse, cars[k - 2]) if k >= 30 else (np.zeros(3), np.full(3, -1e3))

    found = follow(report)
    np.testing.assert_allclose(found[:30], np.tile(BEHIND, (30, 1)), atol=1e-9)
    np.testing.assert_allclose(found[30:], np.tile(mouse, (30, 1)), atol=1e-9)


def test_the_camera_stays_above_the_ground_and_comes_down_again():
    """Over a wall of 50 m between x 5 and x 9, the camera, 12 m west of the car, is 53 m high.

    The browser's reports of the raised camera are no moves of the mouse.
    """
    heights = np.zeros((400, 400))
    heights[205:210] = 50.0
    terrain = HeightMap(heights, origin_x=-200.0, origin_y=-200.0, step_x=1.0, step_y=1.0)
    camera = FollowingCamera()
    places = []
    car = np.zeros(3)
    for east in np.arange(0.0, 60.0, 0.5):
        seen = (places[-1], car) if places else (np.zeros(3), np.full(3, -1e3))
        car = np.array([east, 0.0, 0.0])
        places.append(camera.place(car, *seen, terrain))
    x, _, z = np.array(places).T
    np.testing.assert_allclose(z, np.maximum(7.0, terrain.altitude(x, np.full(120, -12.0)) + 3.0))
    assert z.max() == 53.0
    assert z[-1] == 7.0


@pytest.mark.needs("viser")
def test_depths_are_fine_where_nothing_is_near():
    """Depths of 24 bits are z^2 / (near 2^24) m apart at z: 8 m or less at 10 km from 100 m up.

    Near the ground or a vehicle, things are drawn from 0.1 m on. The sky, 1 m ahead, stays in.
    """
    from types import SimpleNamespace

    from rfly_viewer.scene.scene_state import flat_ground
    from rfly_viewer.window.cameras import Cameras

    camera = SimpleNamespace(position=np.zeros(3), near=0.1)
    server = SimpleNamespace(
        get_clients=lambda: {1: SimpleNamespace(camera=camera)},
        initial_camera=SimpleNamespace(),
        on_client_connect=lambda call: None,
    )
    cameras = Cameras(server)

    class Poses:
        position_ned = np.empty((0, 3))

        def __len__(self):
            return len(self.position_ned)

    poses = Poses()
    nears = []
    for height in (-50.0, 0.0, 2.0, 12.0, 100.0, 9000.0):
        camera.position = np.array([30.0, 40.0, height])
        cameras.clip(poses, flat_ground())
        nears.append(camera.near)
    assert nears[:3] == [0.1] * 3
    assert nears[3] == pytest.approx(0.2)  # 2 % is 0.24 m
    assert 10_000.0**2 / (nears[4] * 2**24) < 8.0
    assert nears[5] == nears[4] < 1.0
    poses.position_ned = np.array([[9000.0, 0.0, -5.0], [40.0, 34.0, -9003.0]])
    cameras.clip(poses, flat_ground())
    assert camera.near == 0.1

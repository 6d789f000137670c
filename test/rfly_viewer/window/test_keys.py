# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Keys and numbers by command: panel and cameras, with a browser that only remembers."""

from __future__ import annotations

import contextlib
import types

import numpy as np
import pytest
from optional_parts import late_module

from rfly_viewer.scene.scene_commands import MoveCamera
from rfly_viewer.scene.scene_state import SceneState
from rfly_viewer.scene.state_batches import StateBatch
from rfly_viewer.scene.viewpoint import ALL_VEHICLES

pytestmark = pytest.mark.needs("viser")
cameras_module = late_module("rfly_viewer.window.cameras")
panel = late_module("rfly_viewer.window.panel")


class Browser:
    def __init__(self):
        self.camera = types.SimpleNamespace(
            position=np.zeros(3), look_at=np.ones(3), aspect=1.5, fov=1.0
        )

    def atomic(self):
        return contextlib.nullcontext()


class Server:
    def __init__(self):
        self.browser = Browser()
        self.initial_camera = types.SimpleNamespace()

    def on_client_connect(self, callback):
        pass

    def get_clients(self):
        return {1: self.browser}


def vehicles(state, *ids):
    count = len(ids)
    batch = StateBatch(
        id=np.array(ids),
        vehicle_type=np.full(count, 3),
        position_ned=np.array([(10.0 * i, 0.0, -5.0) for i in ids]),
        euler=np.zeros((count, 3)),
        velocity_ned=np.zeros((count, 3)),
        scale=np.ones((count, 3)),
        motor_speed_rpm=np.zeros(count),
        wheel_speed_rpm=np.zeros(count),
        on_ground=np.zeros(count, bool),
    )
    state.vehicles.update(batch, 0.0)
    return state.vehicles.world(state.terrain)


def test_on_board_it_looks_ahead_and_commands_move_it_in_the_body():
    state = SceneState()
    server = Server()
    cameras = cameras_module.Cameras(server)
    poses = vehicles(state, 1)

    cameras.mount(1)
    cameras.update(poses, 1, state.terrain)
    camera = server.browser.camera
    np.testing.assert_allclose(camera.position, [0.0, 10.3, 4.95])  # x east, y north, z up
    np.testing.assert_allclose(camera.look_at - camera.position, [0.0, 20.0, 0.0], atol=1e-9)

    cameras.move(MoveCamera((1.0, 2.0, -1.0), (0.0, 0.0, np.pi / 2), relative=False), state.terrain)
    cameras.update(poses, 1, state.terrain)
    np.testing.assert_allclose(camera.position, [2.0, 11.0, 6.0])
    np.testing.assert_allclose(camera.look_at - camera.position, [20.0, 0.0, 0.0], atol=1e-9)

    cameras.move(MoveCamera((0.0, 0.0, -1.0), (0.0, 0.0, 0.0), relative=True), state.terrain)
    cameras.update(poses, 1, state.terrain)
    np.testing.assert_allclose(camera.position, [2.0, 11.0, 7.0])

    cameras.mount(0)
    cameras.update(poses, 1, state.terrain)
    np.testing.assert_allclose(camera.look_at, [0.0, 10.0, 5.0])


def test_the_cameras_go_with_the_middle_of_all_vehicles():
    """The middle of x 10 and 30 north is 20; 100 m further on, every camera is 100 m further on.

    The first view shows both vehicles: they lie within the angle of view around the middle.
    """
    state = SceneState()
    server = Server()
    cameras = cameras_module.Cameras(server)
    poses = vehicles(state, 1, 3)
    cameras.update(poses, ALL_VEHICLES, state.terrain)
    camera = server.browser.camera
    first = camera.position.copy()
    np.testing.assert_allclose(camera.look_at, [0.0, 20.0, 5.0])

    forward = camera.look_at - first
    forward /= np.linalg.norm(forward)
    for north in (10.0, 30.0):
        sight = np.array([0.0, north, 5.0]) - first
        assert sight @ forward / np.linalg.norm(sight) > np.cos(np.radians(25.0))

    cameras.update(vehicles(SceneState(), 11, 13), ALL_VEHICLES, state.terrain)
    np.testing.assert_allclose(camera.look_at, [0.0, 120.0, 5.0])
    np.testing.assert_allclose(camera.position, first + np.array([0.0, 100.0, 0.0]))


def test_key_v_goes_through_the_cameras_and_2_looks_to_the_right():
    """The vehicle looks north: its right is the east, x."""
    state = SceneState()
    server = Server()
    cameras = cameras_module.Cameras(server)
    poses = vehicles(state, 1)

    def looked_along():
        cameras.update(poses, 1, state.terrain)
        camera = server.browser.camera
        towards = camera.look_at - camera.position
        return towards / np.linalg.norm(towards)

    cameras.mount(2)
    np.testing.assert_allclose(looked_along(), [1.0, 0.0, 0.0], atol=1e-9)
    cameras.mount(None)  # outside
    assert np.linalg.norm(server.browser.camera.position) < 12.0
    outside = looked_along()
    assert outside[2] < 0.0
    cameras.mount(None)  # ahead
    np.testing.assert_allclose(looked_along(), [0.0, 1.0, 0.0], atol=1e-9)


def test_a_camera_that_stands_turns_to_its_vehicle():
    state = SceneState()
    server = Server()
    cameras = cameras_module.Cameras(server)
    camera = server.browser.camera
    camera.position = np.array([3.0, -4.0, 12.0])

    cameras.stand(True)
    for north in (1, 5):
        cameras.update(vehicles(SceneState(), north), north, state.terrain)
        np.testing.assert_allclose(camera.position, [3.0, -4.0, 12.0])
        np.testing.assert_allclose(camera.look_at, [0.0, 10.0 * north, 5.0])


@pytest.mark.parametrize(("yaw", "along"), [(0.0, [0.0, 1.0, 0.0]), (np.pi, [0.0, -1.0, 0.0])])
def test_a_view_to_the_north_and_the_south_stays_where_it_is(yaw, along):
    server = Server()
    cameras = cameras_module.Cameras(server)
    camera = server.browser.camera
    camera.position = np.array([3.0, -4.0, 12.0])
    camera.wxyz = np.array([1.0, 0.0, 0.0, 0.0])

    cameras.look(yaw)
    np.testing.assert_allclose(camera.position, [3.0, -4.0, 12.0])
    towards = camera.look_at - camera.position
    np.testing.assert_allclose(towards / np.linalg.norm(towards), along, atol=1e-9)


class Controls:
    """The part of viser's gui that a panel uses: each control has a value."""

    def __init__(self):
        self.folded = False
        self.main_panel = types.SimpleNamespace(minimize=self.fold)

    def fold(self):
        self.folded = True

    def add_dropdown(self, label, options):
        return types.SimpleNamespace(value=options[0], options=tuple(options))

    def add_checkbox(self, label, value, hint=None):
        return types.SimpleNamespace(value=value)

    def add_slider(self, label, low, high, step, value, hint=None):
        return types.SimpleNamespace(value=value)

    def add_html(self, text):
        return types.SimpleNamespace(content=text)

    def add_text(self, label, value, hint=None):
        return types.SimpleNamespace(value=value)

    def add_button(self, label, color=None):
        return types.SimpleNamespace(on_click=lambda callback: callback)

    def add_command(self, label, hotkey=None):
        return types.SimpleNamespace(on_trigger=lambda callback: callback)

    def add_folder(self, label, expand_by_default=True):
        return contextlib.nullcontext()

    def add_form(self, label):
        return contextlib.nullcontext(types.SimpleNamespace(on_submit=lambda callback: callback))


def test_focus_ids_and_trails():
    gui = Controls()
    state = SceneState()
    controls = panel.Panel(
        types.SimpleNamespace(gui=gui), lambda text: None, lambda: None, lambda: None, None, 3
    )
    assert controls.enlarge == 3.0
    assert gui.folded

    controls.follow(7)
    assert controls.followed is None
    controls.show_vehicles(state.vehicles, vehicles(state, 2, 7))
    assert controls.followed == 7  # as soon as it is there

    controls.follow(None)
    assert controls.followed == 2
    controls.follow(None)
    assert controls.followed == 7
    controls.follow(2)
    assert controls.followed == 2

    controls.follow_nobody()
    assert controls.followed is None
    controls.follow(ALL_VEHICLES)
    assert controls.followed == ALL_VEHICLES
    controls.follow(None)
    assert controls.followed == 2  # the next of the list is a vehicle
    controls.follow_nobody()

    controls.show("ids", 1)
    assert controls.shows("ids")
    controls.show("ids", -1)

    controls.show("trails", None)
    assert not controls.shows("ids")
    assert not controls.shows("trails")
    controls.show("trails", None)
    assert controls.shows("trails") is True

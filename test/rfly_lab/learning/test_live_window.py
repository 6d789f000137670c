# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`render_mode="human"`: the browser window that shows environments while they are stepped."""

from __future__ import annotations

import contextlib
import gc
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from chromium_harness import Chromium
from node_harness import wait_until
from optional_parts import late_module

from rfly_amphibious.vehicle.state_layout import ROTOR_SPEED
from rfly_common.errors import ConfigError
from rfly_common.imports import how_to_install
from rfly_lab import parallel_env, register_environments
from rfly_viewer.window.chromium import chromium_program

pytestmark = [pytest.mark.needs("gymnasium"), pytest.mark.needs("viser")]
gymnasium = late_module("gymnasium")
env_checker = late_module("gymnasium.utils.env_checker")
batch_window = late_module("rfly_lab.learning.batch_window")

ID = "rfly/LandAir-v0"
FIRST = 601
NEXT = 10_601
AFTER = 20_601
Make = Callable[..., Any]


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was asked to open; no step waits."""
    register_environments()
    addresses: list[str] = []
    monkeypatch.setattr(webbrowser, "open", addresses.append)
    monkeypatch.setattr(batch_window.Pace, "keep", lambda self: None)
    return addresses


@pytest.fixture
def make() -> Iterator[Make]:
    """Return a maker of environments in the mode `human`, which are closed at the end."""
    with ExitStack() as closing:

        def made(maker: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            return closing.enter_context(
                contextlib.closing(maker(*arguments, render_mode="human", **options))
            )

        yield made


def window_of(env: Any) -> Any:
    """Return the open window of an environment."""
    return env.unwrapped.rendering.window.live.viewer


def shown(env: Any) -> dict[int, np.ndarray]:
    """Return the places that the window has, (3,) m ENU, by id."""
    poses = window_of(env)._poses
    north, east, down = poses.position_ned.T
    places = np.column_stack([east, north, -down])
    return dict(zip(poses.id.tolist(), places, strict=True))


def shows(env: Any, expected: dict[int, np.ndarray]) -> bool:
    """Return whether the window has these things, each at its place to a tenth of a millimetre."""
    found = shown(env)
    return found.keys() == expected.keys() and all(
        np.abs(found[each] - place).max() < 1e-4 for each, place in expected.items()
    )


def expected_of(batch: Any, vehicles: Any) -> dict[int, np.ndarray]:
    """Return where vehicles, their next targets and those after them are."""
    places = {}
    for i in vehicles:
        targets = batch.episodes.targets[i, batch.episodes.target[i] :]
        places[FIRST + i] = batch.vehicles.x[i, :3].copy()
        places |= dict(zip((NEXT + i, AFTER + i), targets[:2].copy(), strict=False))
    return places


def test_each_step_moves_the_window_on(
    make: Make, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    env = make(gymnasium.make, ID, task="waypoints")
    assert opened == []
    env.reset(seed=3)
    batch = env.unwrapped.batch
    viewer = window_of(env)
    assert opened == [viewer.address]
    assert f"{viewer.address} shows 1 of 1 learning vehicles" in capsys.readouterr().err
    assert viewer.state.whole is batch.terrain
    for _ in range(3):
        env.step(np.array([0.3, 0.0, 0.0, 0.0], np.float32))
        assert env.render() is None
        expected = expected_of(batch, [0])
        assert len(expected) == 3
        wait_until(lambda e=expected: shows(env, e), "the step in the window")
    drawn = viewer._poses
    assert drawn.vehicle_type.tolist() == [600_003, 152, 152]
    speeds = batch.vehicles.x[0, ROTOR_SPEED : ROTOR_SPEED + 6] * 60 / (2 * np.pi)
    assert drawn.motor_speed_rpm[0] == pytest.approx(speeds.mean(), rel=1e-6)
    assert drawn.scale[1:] == pytest.approx(1.0 / 0.475, rel=1e-6)  # reached within 1 m

    # the last target has none after it
    batch.episodes.target[0] = 3
    env.step(np.zeros(4, np.float32))
    wait_until(lambda: shown(env).keys() == {FIRST, NEXT}, "the last target alone")

    # an episode that begins elsewhere leaves no line across the map, even with the same seed
    def trail() -> list[float]:
        """Return how far the samples of the vehicle's trail are from its present place, m."""
        samples = [places[ids == FIRST] for ids, places in list(viewer._trails._samples)]
        places = np.concatenate([np.empty((0, 3)), *samples])
        return np.linalg.norm(places - batch.vehicles.x[0, :3], axis=1).tolist()

    batch.vehicles.x[0, :2] -= 100.0
    env.step(np.zeros(4, np.float32))
    wait_until(lambda: trail() and trail()[-1] < 1.0, "a trail to where it is")
    env.reset(seed=3)
    wait_until(lambda: trail() and trail()[-1] < 1.0, "a trail to the new place")
    assert max(trail()) < 1.0
    assert not viewer.state.log


def test_closing_ends_page_and_thread(make: Make) -> None:
    env = make(gymnasium.make, ID)
    env.close()  # before it has opened
    env.reset(seed=1)
    window = env.unwrapped.rendering.window
    port = urlsplit(window.live.address).port
    socket.create_connection(("127.0.0.1", port), 10.0).close()
    env.close()
    assert env.unwrapped.rendering.window is None
    assert not any(thread.name == "rfly view: live" for thread in threading.enumerate())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 10.0)
    env.close()

    several = make(gymnasium.make_vec, ID, num_envs=2)
    several.reset(seed=1)
    several.close()
    assert not any(thread.name == "rfly view: live" for thread in threading.enumerate())


def test_a_window_that_is_no_longer_used_closes() -> None:
    env = gymnasium.make(ID, render_mode="human")
    env.reset(seed=1)
    port = urlsplit(env.unwrapped.rendering.window.live.address).port
    del env
    gc.collect()
    assert not any(thread.name == "rfly view: live" for thread in threading.enumerate())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 10.0)


def test_of_many_the_first_hundred_are_shown(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    envs = make(gymnasium.make_vec, ID, num_envs=103, task="roof")
    assert envs.metadata["render_modes"] == ["human", "rgb_array"]
    envs.reset(seed=5)
    assert "shows 100 of 103 learning vehicles" in capsys.readouterr().err
    batch = envs.unwrapped.batch
    envs.step(np.zeros(envs.action_space.shape, np.float32))
    assert envs.render() is None
    wait_until(lambda: shows(envs, expected_of(batch, range(100))), "a hundred vehicles")

    # houses where the vehicles land: a roof is as high as its target is without the wheels
    world = window_of(envs)._world._world
    roofs = world.positions + [(0.0, 0.0, each.model.bounds[1][2]) for each in world.objects]
    target = batch.episodes.targets[0, 0] - (0.0, 0.0, batch.params.origin_height)
    assert np.linalg.norm(roofs - target, axis=1).min() < 1e-9

    # a vehicle whose state is lost is not shown
    batch.vehicles.x[1, 0] = np.nan
    envs.step(np.zeros(envs.action_space.shape, np.float32))
    wait_until(lambda: FIRST + 1 not in shown(envs), "the loss")


@pytest.mark.needs("pettingzoo")
def test_vehicles_that_are_gone_leave_the_window(make: Make) -> None:
    env = make(parallel_env, vehicles=3)
    env.reset(seed=1)
    wait_until(lambda: shows(env, expected_of(env.batch, range(3))), "three vehicles")
    env.batch.endings[1] = 3
    env.batch.vehicles.x[1, :3] += (200.0, 0.0, 0.0)  # astray
    env.step({agent: np.zeros(4, np.float32) for agent in env.agents})
    assert env.agents == ["vehicle_0", "vehicle_2"]
    wait_until(lambda: shows(env, expected_of(env.batch, (0, 2))), "two vehicles")


@pytest.mark.filterwarnings("error")
def test_the_checker_passes(make: Make) -> None:
    env = make(gymnasium.make, ID, task="path")
    env_checker.check_env(env.unwrapped)


def test_steps_are_a_period_apart_and_never_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that takes 30 ms of 20, by a clock of the test, is not made up for."""
    monkeypatch.undo()
    now = 50.0
    waited = []

    def wait(seconds: float) -> None:
        nonlocal now
        waited.append(seconds)
        now += seconds

    pace = batch_window.Pace(0.02, lambda: now, wait)
    starts = []
    for work in (0.005, 0.0, 0.03, 0.01, 0.0):
        pace.keep()
        starts.append(now - 50.0)
        now += work
    assert starts == pytest.approx([0.0, 0.02, 0.04, 0.07, 0.09])
    assert waited == pytest.approx([0.015, 0.02, 0.01])


def test_without_viser_an_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ConfigError) as error:
        gymnasium.make(ID, render_mode="human")
    assert str(error.value) == f"render_mode human needs viser; {how_to_install('view')}"


@pytest.mark.exhaustive
@pytest.mark.skipif(chromium_program() is None, reason="the program chromium is not installed")
def test_a_browser_shows_the_vehicle_in_the_middle(make: Make) -> None:
    """The camera follows the only vehicle, which hides the ground in the middle of the picture."""
    env = make(gymnasium.make, ID, task="hover")
    env.reset(seed=3)
    viewer = window_of(env)
    width, height = 640, 360
    with Chromium(width, height) as page:
        page.open(viewer.address)
        wait_until(lambda: page.evaluate("document.querySelector('canvas') !== null"), "the scene")
        wait_until(lambda: viewer.is_settled, "the ground")
        for box in ("ids", "trails"):
            viewer.panel._boxes[box].value = False

        def is_in_the_middle() -> bool:
            """Return whether something is there that is blue and green, as no ground is."""
            rows = slice(height // 2 - 8, height // 2 + 9)
            middle = page.picture()[rows, width // 2 - 15 : width // 2 + 16]
            red, green, blue = middle.reshape(-1, 3).astype(float).T
            return bool(((green > 1.25 * red) & (blue > 1.25 * red)).sum() > 5)

        wait_until(is_in_the_middle, "the vehicle")
        batch = env.unwrapped.batch
        before = batch.vehicles.x[0, :3].copy()
        batch.vehicles.x[0, :3] += (60.0, 40.0, 5.0)
        batch.episodes.targets[0] += (60.0, 40.0, 5.0)
        env.step(np.zeros(4, np.float32))
        wait_until(lambda: np.abs(shown(env)[FIRST] - before).max() > 50.0, "the move")
        wait_until(is_in_the_middle, "the vehicle after its move")

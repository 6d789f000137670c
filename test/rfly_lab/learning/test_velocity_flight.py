# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Actions that are velocities, held against the flight controller's own objects."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from marks import exhaustively

from rfly_amphibious import VehicleParameters
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle import state_layout
from rfly_autonomy.control.attitude_controller import AttitudeController
from rfly_autonomy.control.flight_modes import FlightModes, TrajectorySetpoint
from rfly_autonomy.control.modes import ModeLogic
from rfly_autonomy.estimation.estimate import EstimatedMotion
from rfly_common.errors import ConfigError
from rfly_common.frames import rotation_matrix
from rfly_lab.learning.land_air_batch import LandAirBatch
from rfly_lab.learning.tasks import TASKS, Ending

pytestmark = pytest.mark.exhaustive  # whole flights of many vehicles

SCALE = VehicleParameters.load("scale")
ROTORS = state_layout.control_columns(SCALE.rotors, len(SCALE.wheels))["rotor"]


def begun(task: str, count: int = 1, seed: int = 0, **options) -> LandAirBatch:
    batch = LandAirBatch(count, task, actions=options.pop("actions", "velocity"), **options)
    which = np.arange(count)
    batch.seed(which, np.arange(seed, seed + count, dtype=np.uint64))
    batch.begin(which)
    return batch


def motion(batch: LandAirBatch, vehicle: int = 0) -> EstimatedMotion:
    x = batch.vehicles.x[vehicle]
    w, *vector = x[state_layout.QUATERNION : state_layout.QUATERNION + 4]
    return EstimatedMotion(
        x[state_layout.POSITION : state_layout.POSITION + 3].copy(),
        x[state_layout.VELOCITY : state_layout.VELOCITY + 3].copy(),
        rotation_matrix(np.array((*vector, w))),
        x[state_layout.RATES : state_layout.RATES + 3].copy(),
    )


def heading(now: EstimatedMotion) -> float:
    return math.atan2(now.rotation[1, 0], now.rotation[0, 0])


@pytest.mark.parametrize("wind", [0.0, 8.0])
def test_rotors_turn_as_the_flight_controllers_would(wind: float) -> None:
    """Over 4 s of commands at random, tick by tick."""
    batch = begun("waypoints", seed=4, wind=wind, gusts=wind / 4.0, period=0.01)
    frequency = min(SCALE.attitude_frequency, 0.45 / (SCALE.rotor_lag + 0.01))
    logic = ModeLogic(Mode.FLIGHT)
    modes = FlightModes(SCALE, logic, AttitudeController(SCALE, frequency))
    modes.enter(Mode.FLIGHT, motion(batch))
    rng = np.random.default_rng(1)
    for k in range(400):
        if k % 50 == 0:
            action = rng.uniform(-1.3, 1.3, 4)
        now = motion(batch)
        forward, left, up, turn = np.clip(action, -1.0, 1.0)
        velocity = (3.0 * forward, 3.0 * left, 1.0 * up)
        setpoint = TrajectorySetpoint(None, velocity, None, 0.8 * turn)
        clearance = float(batch.vehicles.outputs_of().clearance[0])
        modes.update(Mode.FLIGHT, now, clearance, setpoint, 0.01)
        expected = modes.rotor_speeds(now)
        rows = batch.commanded(action[None])
        # squares of the speeds differ by rounding, which a root of almost 0 makes larger
        np.testing.assert_allclose(rows[0, ROTORS] ** 2, expected**2, rtol=2e-9, atol=1e-6)
        assert batch.commanded(action[None]).tobytes() == rows.tobytes()  # it only looks
        batch.step(action[None])
        assert batch.endings[0] == Ending.RUNNING


def test_it_flies_at_the_velocity_and_turns_at_the_rate() -> None:
    batch = begun("waypoints", 8, seed=3)
    actions = np.tile((0.5, -0.25, 0.5, 0.0), (8, 1))
    for _ in range(400):
        batch.step(actions)
    for v in range(8):
        now = motion(batch, v)
        yaw = heading(now)
        c = math.cos(yaw)
        s = math.sin(yaw)
        due = (1.5 * c + 0.75 * s, 1.5 * s - 0.75 * c, 0.5)
        np.testing.assert_allclose(now.velocity, due, atol=0.02)

    # on the spot
    before = np.array([heading(motion(batch, v)) for v in range(8)])
    for _ in range(150):
        batch.step(np.tile((0.0, 0.0, 0.0, 1.0), (8, 1)))
    after = [heading(motion(batch, v)) for v in range(8)]
    turned = np.mod(after - before, 2.0 * math.pi)
    np.testing.assert_allclose(turned, 0.8 * 3.0, atol=0.08)

    # and it comes to rest
    for _ in range(300):
        batch.step(np.zeros((8, 4)))
    assert np.linalg.norm(batch.vehicles.x[:, 3:6], axis=1).max() < 0.05


def test_a_velocity_towards_the_target_solves_hover_and_waypoints() -> None:
    for task, steps in (("hover", 500), ("waypoints", 1500)):
        batch = begun(task, 12, wind=3.0, gusts=0.5)
        endings = np.zeros(12, int)
        for _ in range(steps):
            seen = batch.observe().astype(float)
            # the way to the target by the heading: the tilt taken out
            up = seen[:, 9:12]
            rise = (seen[:, :3] * up).sum(axis=1)
            level = seen[:, :2] - rise[:, None] * up[:, :2]
            wish = np.column_stack([0.15 * level, 0.5 * rise, np.zeros(12)])
            batch.step(wish)
            endings = np.where(endings, endings, batch.endings)
            if endings.all():
                break
        assert (endings == Ending.SUCCESS).all()


@pytest.mark.parametrize("options", [{}, exhaustively({"period": 0.1, "wind": 5.0, "gusts": 1.0})])
def test_the_size_of_a_batch_and_the_threads_change_no_bit(options: dict) -> None:
    rng = np.random.default_rng(7)
    actions = rng.uniform(-1.0, 1.0, (30, 17, 4)).astype(np.float32)
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        whole = begun("roof", 17, spread=0.1, **options)
        alone = [begun("roof", 1, seed, spread=0.1, **options) for seed in range(17)]
        for own in actions:
            whole.step(own)
            for v in (0, 7, 16):
                alone[v].step(own[v : v + 1])
        numba.set_num_threads(min(2, threads))
        again = begun("roof", 17, spread=0.1, **options)
        for own in actions:
            again.step(own)
    finally:
        numba.set_num_threads(threads)
    assert again.vehicles.x.tobytes() == whole.vehicles.x.tobytes()

    for v in (0, 7, 16):
        assert alone[v].vehicles.x[0].tobytes() == whole.vehicles.x[v].tobytes()
        assert alone[v].observe()[0].tobytes() == whole.observe()[v].tobytes()


def test_a_period_is_cut_into_ticks() -> None:
    """Ten periods of 10 ms are one of 100 ms, without a change of the action."""
    fine = begun("waypoints", 2, period=0.01)
    coarse = begun("waypoints", 2, period=0.1)
    action = np.array([(0.4, 0.1, -0.2, 0.5), (-1.0, 0.3, 0.8, -0.5)])
    for _ in range(20):
        for _ in range(10):
            fine.step(action)
        coarse.step(action)
    assert fine.vehicles.x.tobytes() == coarse.vehicles.x.tobytes()

    # what no tick of 10 ms divides
    odd = begun("waypoints", 1, period=0.017)
    for _ in range(100):
        odd.step(action[:1])
    assert odd.endings[0] == Ending.RUNNING


def test_a_rotor_that_fails_stands_and_the_wheels_obey() -> None:
    batch = begun("goal", 40, actions="velocity+wheels", rotor_failures=1.0)
    assert batch.action_names == ["forward", "left", "up", "turn", "steering", "drive", "brake"]
    batch.episodes.failing_step[:] = 3
    actions = np.tile((0.0, 0.0, 1.0, 0.0, 1.0, 0.5, -1.0), (40, 1))
    for k in range(5):
        rows = batch.commanded(actions)
        own = rows[np.arange(40), ROTORS.start + batch.episodes.failing_rotor]
        assert (own > 0.0).all() if k < 3 else (own == 0.0).all()
        batch.step(actions)
    columns = state_layout.control_columns(SCALE.rotors, len(SCALE.wheels))
    np.testing.assert_allclose(rows[:, columns["drive_torque"]], 0.5 * SCALE.max_drive_torque)
    assert (rows[:, columns["brake_torque"]] == 0.0).all()


def test_it_takes_off_and_lands_by_velocity() -> None:
    batch = begun("goal", 8, seed=2)
    start = batch.vehicles.x[:, 2].copy()
    for _ in range(250):
        batch.step(np.tile((0.0, 0.0, 1.0, 0.0), (8, 1)))
    assert (batch.vehicles.x[:, 2] - start > 2.5).all()
    for _ in range(700):
        batch.step(np.tile((0.0, 0.0, -1.0, 0.0), (8, 1)))
    assert (batch.endings == Ending.RUNNING).all()
    assert (batch.vehicles.outputs_of().wheel_load > 0.0).all()


@pytest.mark.parametrize("vehicle", ["full", "scale_quad", "scale_six"])
def test_other_vehicles_hold_their_place(vehicle: str) -> None:
    batch = begun("roof", 9, vehicle=vehicle)
    begin = batch.vehicles.x[:, :3].copy()
    for _ in range(150):
        batch.step(np.zeros((9, 4)))
    assert np.abs(batch.vehicles.x[:, :3] - begin).max() < 0.1


def test_any_task_takes_velocities_and_gusts_keep_their_period() -> None:
    for task in TASKS:
        batch = begun(task, 2)
        batch.step(np.zeros((2, 4), np.float32))
        assert np.isfinite(batch.observe()).all()
    with pytest.raises(ConfigError, match=r"period: 0\.015 s, expected a multiple of 0\.01 s"):
        begun("hover", 1, period=0.015, gusts=1.0)

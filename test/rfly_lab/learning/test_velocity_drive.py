# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Actions that are a speed and a yaw rate, held against the chassis controller's own objects."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from marks import exhaustively

from rfly_amphibious import ModelState, VehicleParameters
from rfly_amphibious.sensors.samples import JointSamples, SensorSamples
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.ackermann import wheel_angles
from rfly_autonomy.control.chassis_controller import ChassisController
from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.frames import rotation_matrix
from rfly_lab.learning.land_air_batch import LandAirBatch
from rfly_lab.learning.tasks import Ending
from rfly_terrain import HeightMap

pytestmark = pytest.mark.exhaustive  # the kernels of these actions take a core 20 s to compile

SCALE = VehicleParameters.load("scale")


def begun(task: str, count: int = 1, seed: int = 0, **options) -> LandAirBatch:
    batch = LandAirBatch(count, task, actions=options.pop("actions", "drive"), **options)
    which = np.arange(count)
    batch.seed(which, np.arange(seed, seed + count, dtype=np.uint64))
    batch.begin(which)
    return batch


def level() -> HeightMap:
    return HeightMap(
        np.zeros((3, 3)), origin_x=-150.0, origin_y=-150.0, step_x=150.0, step_y=150.0, name="level"
    )


def truth(batch: LandAirBatch, time: float, v: int = 0) -> tuple[Estimate, SensorSamples]:
    """Return the estimate and the joints' samples of a perfect estimator and perfect encoders."""
    p = batch.params
    state = ModelState(batch.vehicles.x[v], batch.vehicles.memory[v])
    columns = state_layout.state_columns(p.rotors, len(p.wheels))
    steering = wheel_angles(p, float(state.x[columns["steering"]][0]))
    pitch = state.rates[1] * np.cos(steering) - state.rates[0] * np.sin(steering)
    spin = state.x[columns["wheel_speed"]] - pitch
    zero = np.zeros((1, len(p.wheels)))
    rotors = np.zeros((1, p.rotors))
    joints = JointSamples(
        np.array([time]), zero, spin[None], steering[None], zero, zero, rotors, rotors
    )
    now = Estimate(
        time,
        state.position.copy(),
        state.orientation,
        state.velocity.copy(),
        state.rates.copy(),
    )
    return now, SensorSamples(joints=joints)


SKID = SCALE.replace(name="skid", steered="none", max_steering=0.0)


@pytest.mark.parametrize(
    "vehicle", ["scale", exhaustively("full"), exhaustively("scale_six"), SKID]
)
def test_wheels_turn_as_the_chassis_controller_would(vehicle: str | VehicleParameters) -> None:
    """Over 3 s of speeds and yaw rates at random, stops and turns back among them, tick by tick."""
    batch = begun("path", seed=4, vehicle=vehicle, period=0.01)
    batch.task = batch.task._replace(astray=1e6, duration=1e3)
    p = batch.params
    columns = state_layout.control_columns(p.rotors, len(p.wheels))
    chassis = ChassisController(p)
    rng = np.random.default_rng(1)
    moved = stood = 0
    for k in range(300):
        if k % 50 == 0:
            action = rng.uniform(-1.3, 1.3, 2) * (0.0 if k % 200 == 150 else 1.0)
        time = 0.01 * (k + 1)
        now, samples = truth(batch, time)
        chassis.sense(samples)
        speed, yaw_rate = np.clip(action, -1.0, 1.0) * (3.0, 0.8)
        chassis.set_twist(speed, yaw_rate)
        expected = chassis.step(now, Mode.DRIVE, 0.01)
        rows = batch.commanded(action[None])
        largest = p.max_brake_torque
        for column, own in (
            ("drive_torque", expected.drive_torque),
            ("brake_torque", expected.brake_torque),
        ):
            np.testing.assert_allclose(
                rows[0, columns[column]], own, rtol=1e-9, atol=1e-9 * largest
            )
        assert rows[0, 0] == pytest.approx(expected.steering_angle, rel=1e-9, abs=1e-12)
        assert not rows[0, columns["rotor"]].any()
        assert not rows[0, columns["steering_trim"]].any()
        assert batch.commanded(action[None]).tobytes() == rows.tobytes()  # it only looks
        batch.step(action[None])
        assert batch.endings[0] == Ending.RUNNING
        moved += np.linalg.norm(now.velocity) > 1.0
        stood += np.linalg.norm(now.velocity) < 0.1

    assert moved > 50
    assert stood > 5


def test_it_reaches_speed_and_yaw_rate_as_far_as_physics_allow() -> None:
    batch = begun("path", 4, terrain=level())
    batch.task = batch.task._replace(astray=1e6)
    wish = np.array([(1.0, 0.0), (0.5, 0.5), (-0.5, -0.5), (0.0, 1.0)])
    begin = batch.vehicles.x[:, :3].copy()
    speeds = []
    for _ in range(300):
        batch.step(wish)
        forward = rotation_matrix(batch.vehicles.x[:, state_layout.QUATERNION_XYZW])[:, :, 0]
        speeds.append((forward * batch.vehicles.x[:, 3:6]).sum(axis=1))
    speeds = np.array(speeds)
    np.testing.assert_allclose(speeds[-1], (3.0, 1.5, -1.5, 0.0), atol=0.05)
    turn = batch.vehicles.x[:, state_layout.RATES + 2]
    np.testing.assert_allclose(turn, (0.0, 0.4, -0.4, 0.0), atol=0.02)
    assert np.linalg.norm(batch.vehicles.x[3, :3] - begin[3]) < 0.05  # none turns on the spot

    # never quicker than its motors can push it
    p = batch.params
    most = len(p.driven) * p.max_drive_torque / p.rolling_radius.mean() / p.effective_mass
    assert np.diff(speeds[:, 0]).max() / 0.02 < 1.05 * most

    # it stops, and stands
    for _ in range(150):
        batch.step(np.zeros((4, 2)))
    assert np.linalg.norm(batch.vehicles.x[:, 3:6], axis=1).max() < 0.02


def test_pure_pursuit_solves_path_and_goal() -> None:
    for task, steps in (("path", 1500), ("goal", 2000)):
        batch = begun(task, 10)
        endings = np.zeros(10, int)
        for _ in range(steps):
            seen = batch.observe().astype(float)
            away = np.hypot(seen[:, 0], seen[:, 1])
            angle = np.arctan2(seen[:, 1], seen[:, 0])
            speed = 0.5 if task == "path" else np.clip(0.3 * (away - 1.0), 0.0, 0.7)
            turn = np.clip(6.0 * speed * angle / np.maximum(away, 1.5), -1.0, 1.0)
            batch.step(np.column_stack([np.broadcast_to(speed, 10), turn]))
            endings = np.where(endings, endings, batch.endings)
            if endings.all():
                break
        assert (endings == Ending.SUCCESS).sum() >= 9


def test_it_drives_takes_off_and_drives_on() -> None:
    batch = begun("goal", 8, seed=2, actions="velocity+drive")
    assert batch.action_names == ["forward", "left", "up", "turn", "speed", "yaw_rate"]

    batch.task = batch.task._replace(astray=1e6, duration=1e3, hold=1e3)
    columns = state_layout.control_columns(SCALE.rotors, len(SCALE.wheels))
    up = np.tile((0.0, 0.0, 1.0, 0.0, 0.5, 0.0), (8, 1))
    for _ in range(250):
        batch.step(up)
    rows = batch.commanded(up)
    assert (batch.vehicles.outputs_of().wheel_load == 0.0).all()
    assert not rows[:, columns["drive_torque"]].any()
    assert not rows[:, columns["brake_torque"]].any()

    for _ in range(700):
        batch.step(np.tile((0.0, 0.0, -1.0, 0.0, 0.0, 0.0), (8, 1)))
    assert (batch.endings == Ending.RUNNING).all()
    assert (batch.vehicles.outputs_of().wheel_load > 0.0).all()


@pytest.mark.parametrize("kind", ["drive", "wrench+drive", "rotors+drive", "velocity+drive"])
def test_the_size_of_a_batch_and_the_threads_change_no_bit(kind: str) -> None:
    rng = np.random.default_rng(7)
    options = {"spread": 0.1, "period": 0.02}
    numbers = len(begun("goal", 1, actions=kind).action_names)
    actions = rng.uniform(-1.0, 1.0, (15, 17, numbers)).astype(np.float32)
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        whole = begun("goal", 17, actions=kind, **options)
        alone = {v: begun("goal", 1, v, actions=kind, **options) for v in (0, 7, 16)}
        for own in actions:
            whole.step(own)
            for v, each in alone.items():
                each.step(own[v : v + 1])
        numba.set_num_threads(min(2, threads))
        again = begun("goal", 17, actions=kind, **options)
        for own in actions:
            again.step(own)
    finally:
        numba.set_num_threads(threads)
    assert again.vehicles.x.tobytes() == whole.vehicles.x.tobytes()

    for v, each in alone.items():
        assert each.vehicles.x[0].tobytes() == whole.vehicles.x[v].tobytes()


def test_a_period_is_cut_into_ticks() -> None:
    """Ten periods of 10 ms are one of 100 ms, without a change of the action."""
    fine = begun("path", 2, period=0.01)
    coarse = begun("path", 2, period=0.1)
    action = np.array([(0.6, 0.2), (-0.4, 0.5)])
    for _ in range(10):
        for _ in range(10):
            fine.step(action)
        coarse.step(action)
    assert fine.vehicles.x.tobytes() == coarse.vehicles.x.tobytes()


def test_a_new_episode_has_learned_nothing() -> None:
    batch = begun("path", 2)
    for _ in range(50):
        batch.step(np.tile((1.0, 0.3), (2, 1)))
    fresh = begun("path", 2)
    batch.seed(np.arange(2), np.arange(2, dtype=np.uint64))
    batch.begin(np.arange(2))
    for each in (batch, fresh):
        for _ in range(5):
            each.step(np.tile((1.0, -0.3), (2, 1)))
    assert batch.vehicles.x.tobytes() == fresh.vehicles.x.tobytes()
    assert not math.isnan(batch.vehicles.x.sum())

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The batch that learns: commands, observations, rewards and endings, against other ways."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import math
from pathlib import Path

import numpy as np
import pytest
from marks import exhaustively

from rfly_amphibious import Controls, ModelState, VehicleParameters, Wind
from rfly_amphibious.dynamics.wind import hashed
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.ackermann import wheel_angles
from rfly_autonomy.control.pilot import abort_pilot
from rfly_common.errors import CommandError, ConfigError, RflyError
from rfly_common.frames import rotation_matrix
from rfly_common.physics import GRAVITY
from rfly_lab.learning.grounds import hills
from rfly_lab.learning.land_air_batch import LandAirBatch
from rfly_lab.learning.tasks import TASKS, Ending
from rfly_terrain.height_map.height_map import HeightMap


def begun(task: str, count: int = 1, seed: int = 0, **options) -> LandAirBatch:
    batch = LandAirBatch(count, task, **options)
    which = np.arange(count)
    batch.seed(which, np.arange(seed, seed + count, dtype=np.uint64))
    batch.begin(which)
    return batch


def hover_law(seen: np.ndarray) -> np.ndarray:
    """Return the wrench that flies a scale vehicle to its target: a PD law by hand."""
    error, velocity, up, rates = (seen[:, k : k + 3].astype(float) for k in (0, 6, 9, 12))
    wish = 1.2 * error - 1.8 * velocity
    wish *= np.minimum(1.0, 3.0 / np.maximum(np.linalg.norm(wish, axis=1), 1e-9))[:, None]
    wish += GRAVITY * up
    thrust = wish[:, 2] / GRAVITY - 1.0
    direction = wish / np.linalg.norm(wish, axis=1)[:, None]
    roll = (-25.0 * direction[:, 1] - 7.0 * rates[:, 0]) / 8.0
    pitch = (25.0 * direction[:, 0] - 7.0 * rates[:, 1]) / 8.0
    return np.column_stack([thrust, roll, pitch, -2.0 * rates[:, 2]])


def random_actions(batch: LandAirBatch, rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-1.0, 1.0, (len(batch.rewards), len(batch.action_names)))


# what solves a task, and what does not


def test_a_law_by_hand_hovers_and_a_random_one_does_not() -> None:
    by_hand = begun("hover", 50)
    for _ in range(500):
        assert not by_hand.terminated.any()
        assert not by_hand.truncated.any()
        by_hand.step(hover_law(by_hand.observe()))
    assert (by_hand.endings == Ending.SUCCESS).all()
    assert by_hand.truncated.all()
    assert not by_hand.terminated.any()

    by_chance = begun("hover", 50)
    rng = np.random.default_rng(1)
    first = np.zeros(50, int)
    for _ in range(500):
        by_chance.step(random_actions(by_chance, rng))
        first = np.where(first, first, by_chance.endings)
    assert np.isin(first, (Ending.CRASHED, Ending.ASTRAY)).all()


def test_the_same_law_flies_through_the_waypoints() -> None:
    batch = begun("waypoints", 20)
    over = np.zeros(20, bool)
    total = np.zeros(20)
    for _ in range(1500):
        batch.step(hover_law(batch.observe()))
        total += np.where(over, 0.0, batch.rewards)
        assert (batch.endings[~over] != Ending.CRASHED).all()
        if not over.all():
            over |= batch.endings == Ending.SUCCESS
        if over.all():
            break
    assert over.all()
    # three reached, one success, and some 9 m of way each
    assert (total > 3 * 5.0 + 20.0 + 4 * 5.0 - 5.0).all()


def test_pure_pursuit_drives_along_the_path() -> None:
    batch = begun("path", 20)
    over = np.zeros(20, bool)
    for _ in range(1500):
        seen = batch.observe()
        angle = np.arctan2(seen[:, 1], seen[:, 0])
        drive = np.clip(0.3 * (2.0 - seen[:, 6]), -1.0, 1.0)
        batch.step(np.column_stack([2.0 * angle, drive, np.full(20, -1.0)]))
        assert not (batch.terminated & (batch.endings != Ending.SUCCESS) & ~over).any()
        over |= batch.endings == Ending.SUCCESS
        if over.all():
            break
    assert over.all()


def test_who_drives_to_the_goal_and_stands_there_has_solved_it() -> None:
    batch = begun("goal", 20)
    endings = np.zeros(20, int)
    for _ in range(2000):
        seen = batch.observe()
        away = np.hypot(seen[:, 0], seen[:, 1])
        angle = np.arctan2(seen[:, 1], seen[:, 0])
        wish = np.clip(0.8 * (away - 0.5), 0.0, 3.0)
        drive = np.clip(0.5 * (wish - seen[:, 6]), -1.0, 1.0)
        brake = np.where(away < 1.0, 1.0, -1.0)
        wrench = np.tile((-1.0, 0.0, 0.0, 0.0), (20, 1))
        batch.step(np.column_stack([wrench, 1.5 * angle, drive, brake]))
        endings = np.where(endings, endings, batch.endings)
        if endings.all():
            break

    assert (endings == Ending.SUCCESS).sum() >= 18


def test_the_law_lands_on_roofs() -> None:
    batch = begun("roof", 24)
    assert np.unique(batch.episodes.targets[:, 0], axis=0).shape[0] > 10
    endings = np.zeros(24, int)
    for _ in range(1000):
        seen = batch.observe()
        # first over the roof, then down; at last it pulls itself down
        up = seen[:, 9:12]
        above = -(seen[:, :3] * up).sum(axis=1)
        aside = np.linalg.norm(seen[:, :3] + above[:, None] * up, axis=1)
        seen[:, :3] += np.where(aside < 0.5, -0.6, np.minimum(above, 2.0))[:, None] * up
        batch.step(hover_law(seen))
        endings = np.where(endings, endings, batch.endings)
        if endings.all():
            break
    assert (endings == Ending.SUCCESS).all()

    # they stand on the roofs, not in them, and not on the ground
    boxes = batch.houses
    top = (boxes.centre + boxes.half_extent)[:, 2]
    house = np.array(
        [
            np.hypot(*(boxes.centre[:, :2] - at).T).argmin()
            for at in batch.episodes.targets[:, 0, :2]
        ]
    )
    above = batch.vehicles.x[:, 2] - top[house]
    assert above == pytest.approx(np.full(24, batch.params.origin_height), abs=0.1)
    ground = batch.terrain.altitude(*boxes.centre[house, :2].T)
    assert ((top[house] - ground >= 3.0) & (top[house] - ground <= 9.0)).all()


def test_the_law_hops_and_who_drives_or_stays_does_not() -> None:
    batch = begun("hop", 40)
    endings = np.zeros(40, int)
    total = np.zeros(40)
    highest = np.zeros(40)
    down = np.zeros(40, bool)
    away = batch.episodes.distance.copy()
    for _ in range(1000):
        seen = batch.observe()
        # up to 2 m, along, then down, with the rotors off once it stands
        up = seen[:, 9:12]
        d = np.linalg.norm(seen[:, :3], axis=1)
        assert (np.abs((seen[:, :3] * up).sum(axis=1)) < 1e-3).all(), "the way is level"
        down |= d < 0.5
        climb = np.where(down, -0.5, 2.0 - seen[:, 15])
        actions = hover_law(np.column_stack([seen[:, :3] + climb[:, None] * up, seen[:, 3:]]))
        actions[down & (seen[:, 15] < 0.05)] = (-1.0, 0.0, 0.0, 0.0)
        batch.step(actions)
        total += np.where(endings, 0.0, batch.rewards)
        highest = np.maximum(highest, batch.vehicles.outputs[:, state_layout.CLEARANCE])
        endings = np.where(endings, endings, batch.endings)
        if endings.all():
            break
    assert (endings == Ending.SUCCESS).all()
    assert (highest > 1.0).all()
    # up and along are paid, and the end; the rotors cost half of their time
    assert (total > 50.0 + away + 4.0 - 2.5 - 0.5 * 25.0).all()
    assert (total < 50.0 + away + 4.0).all()

    # neither standing nor pushing against the brakes leads there
    for thrust in (-1.0, -0.2):
        batch = begun("hop", 10)
        for _ in range(999):
            batch.step(np.tile((thrust, 0.0, 0.0, 0.0), (10, 1)))
        assert not batch.endings.any()
        batch.step(np.tile((thrust, 0.0, 0.0, 0.0), (10, 1)))
        assert (batch.endings == Ending.OUT_OF_TIME).all()


# endings by hand


def test_rotors_off_is_a_crash() -> None:
    batch = begun("hover", 3)
    actions = np.tile((-1.0, 0.0, 0.0, 0.0), (3, 1))
    for _ in range(200):
        batch.step(actions)
        if batch.endings.all():
            break
    assert np.isin(batch.endings, (Ending.CRASHED, Ending.ASTRAY)).all()
    assert batch.terminated.all()
    assert not batch.truncated.any()
    assert (batch.rewards < -99.0).all()


def test_too_far_is_astray() -> None:
    batch = begun("path", 2)
    batch.vehicles.x[1, 0] += 20.0
    batch.vehicles.x[1, 2] += 20.0  # not in the ground
    batch.step(np.zeros((2, 3)))
    assert batch.endings.tolist() == [Ending.RUNNING, Ending.ASTRAY]
    assert batch.terminated.tolist() == [False, True]


def test_a_state_that_is_not_finite_fails_and_is_seen_as_zeros() -> None:
    batch = begun("waypoints", 9)
    batch.vehicles.x[3, state_layout.RATES] = np.nan
    batch.step(np.zeros((9, 4)))
    assert batch.endings.tolist() == [Ending.FAILED if i == 3 else Ending.RUNNING for i in range(9)]
    assert batch.rewards[3] == -TASKS["waypoints"].broken
    assert np.isfinite(batch.observe()).all()
    assert np.isfinite(batch.rewards).all()


def test_who_stands_at_the_goal_for_half_a_second_has_solved_it() -> None:
    batch = begun("goal")
    batch.episodes.targets[0, 0] = batch.vehicles.x[0, :3] + (1.0, 1.0, -7.0)
    batch.episodes.distance[0] = batch.episodes.way[0] = math.sqrt(2.0)
    braked = np.array([[-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
    for _ in range(24):
        batch.step(braked)
        assert batch.endings[0] == Ending.RUNNING
        assert batch.rewards[0] == pytest.approx(0.0, abs=1e-3)
    batch.step(braked)
    assert batch.endings[0] == Ending.SUCCESS
    assert batch.terminated[0]
    assert batch.rewards[0] == pytest.approx(50.0, abs=1e-3)


def test_a_stay_that_is_broken_off_begins_anew() -> None:
    batch = begun("hover")
    for _ in range(300):
        batch.step(hover_law(batch.observe()))
    assert batch.episodes.held[0] > 50
    batch.vehicles.x[0, :3] = batch.episodes.targets[0, 0] + (0.4, 0.0, 0.0)
    batch.step(hover_law(batch.observe()))
    assert batch.episodes.held[0] == 0
    assert batch.endings[0] == Ending.RUNNING


def test_the_time_limit_is_the_tasks_own() -> None:
    for period, steps in ((0.02, 500), (0.05, 200), (0.003, 3333)):
        batch = begun("hover", period=period)
        batch.episodes.steps[0] = steps - 2
        batch.step(np.zeros((1, 4)))
        assert batch.endings[0] == Ending.RUNNING
        batch.step(np.zeros((1, 4)))
        assert batch.endings[0] == Ending.OUT_OF_TIME
        assert (batch.truncated[0], batch.terminated[0]) == (True, False)


@pytest.mark.parametrize("task", TASKS)
def test_rewards_are_the_formula_of_the_rules(task: str) -> None:
    batch = begun(task, 6, seed=4)
    rules = batch.task
    rng = np.random.default_rng(2)
    left = None
    for _ in range(40):
        target = batch.episodes.targets[np.arange(6), batch.episodes.target]
        axes = 2 if rules.is_level else 3
        p = batch.params
        before = np.linalg.norm((target - batch.vehicles.x[:, :3])[:, :axes], axis=1)
        if task != "hop":
            left = before
        elif left is None:
            left = before + 4.0
        was = batch.episodes.target.copy()
        batch.step(0.3 * random_actions(batch, rng))
        x = batch.vehicles.x
        after = np.linalg.norm((target - x[:, :3])[:, :axes], axis=1)
        hover = p.rotors * p.torque_coefficient * p.hover_speed**3
        way = after
        if task == "hop":  # up, along at 2 m, and down from 5 to 1 m before the target
            clearance = batch.vehicles.outputs[:, state_layout.CLEARANCE]
            load = batch.vehicles.outputs_of().wheel_load.sum(axis=1)
            carried = np.minimum(load / (p.mass * GRAVITY), 1.0)
            height = np.clip(0.5 * (after - 1.0), 0.0, 2.0)
            way = after + np.abs(clearance - height) + 2.0 - (2.0 - height) * carried
        expected = rules.near / (1.0 + after**2) + rules.progress * (left - way)
        left = way
        expected -= 0.02 * rules.turning * (x[:, 10:13] ** 2).sum(axis=1)
        expected -= 0.02 * rules.power * batch.vehicles.outputs_of().rotor_power / hover
        expected += rules.reached * (batch.episodes.target > was)
        running = batch.endings == Ending.RUNNING
        assert batch.rewards[running] == pytest.approx(expected[running], abs=1e-12)
        if not running.all():
            break

    assert batch.episodes.steps[0] > 5


# observations


@pytest.mark.parametrize("task", TASKS)
def test_observations_are_what_their_names_say(task: str) -> None:
    batch = begun(task, 5, seed=9)
    rng = np.random.default_rng(3)
    for _ in range(10):
        batch.step(0.3 * random_actions(batch, rng))
    seen = batch.observe()
    names = batch.observation_names
    assert seen.shape == (5, len(names))
    assert seen.dtype == np.float32
    value = {name: seen[:, k] for k, name in enumerate(names)}

    p = batch.params
    columns = state_layout.state_columns(p.rotors, len(p.wheels))
    counted = (1.0, 1.0, 0.0) if task in ("path", "goal", "hop") else (1.0, 1.0, 1.0)
    for v in range(5):
        x = batch.vehicles.x[v]
        state = ModelState(x, batch.vehicles.memory[v])
        R = rotation_matrix(state.orientation)
        outputs = batch.vehicles.outputs_of(v)
        t = batch.episodes.target[v]
        targets = batch.episodes.targets[v]
        after = targets[min(t + 1, len(targets) - 1)]
        angles = wheel_angles(p, x[columns["steering"]][0])
        vectors = {
            "to_target_{}_m": R.T @ (counted * (targets[t] - x[:3])),
            "to_target_after_{}_m": R.T @ (counted * (after - x[:3])),
            "velocity_{}_mps": R.T @ x[3:6],
            "up_{}": R[2],
            "rate_{}_radps": x[10:13],
        }
        for name, vector in vectors.items():
            assert [value[name.format(axis)][v] for axis in "xyz"] == pytest.approx(
                vector, rel=1e-5, abs=1e-5
            )
        assert value["clearance_m"][v] == pytest.approx(outputs.clearance, rel=1e-6)
        assert value["steering_rad"][v] == pytest.approx(x[columns["steering"]][0], abs=1e-7)
        for j in range(p.rotors):
            share = x[columns["rotor_speed"]][j] / p.max_rotor_speed
            assert value[f"rotor_{j + 1}_share"][v] == pytest.approx(share, rel=1e-6)
        for i, wheel in enumerate(p.wheels):
            # the turn of the body about the wheel's axle, which steers with it
            angle = angles[i]
            axle = (-math.sin(angle), math.cos(angle), 0.0)
            turn = x[columns["wheel_speed"]][i] - x[10:13] @ axle
            speed = turn * p.rolling_radius[i]
            assert value[f"wheel_turn_{wheel}_mps"][v] == pytest.approx(speed, rel=1e-5, abs=1e-7)
            load = outputs.wheel_load[i] / p.static_load[i]
            assert value[f"wheel_load_{wheel}_share"][v] == pytest.approx(load, rel=1e-6)
        if batch.task.sees_ground:
            yaw = math.atan2(R[1, 0], R[0, 0])
            px = x[0] + 4.0 * math.cos(yaw) + 1.0 * math.sin(yaw)
            py = x[1] + 4.0 * math.sin(yaw) - 1.0 * math.cos(yaw)
            ground = float(batch.terrain.altitude(px, py)) - x[2]
            assert value["ground_4_-1_m"][v] == pytest.approx(ground, rel=1e-5, abs=1e-5)


# the plant


@pytest.mark.parametrize("kind", ["wrench+wheels", "rotors+wheels"])
def test_a_vehicle_goes_as_in_a_simulation_with_the_same_commands(kind: str) -> None:
    """Mean wind, gusts, terrain and commands as in `Simulation`, bit by bit, for 3 s."""
    batch = begun("goal", 9, seed=70, actions=kind, wind=4.0, gusts=0.8)
    v = 5
    key = hashed(hashed(np.array([75], np.uint64)))
    own = Wind(tuple(batch.vehicles.mean_wind[v]), (0.8, 0.8, 0.4), seed=int(key[0]))
    sensors = dataclasses.replace(SensorParameters(), imu=SensorParameters.load("scale").imu)
    simulation = Simulation(
        batch.vehicles.models[0],
        sensors,
        ModelState(batch.vehicles.x[v].copy(), batch.vehicles.memory[v].copy()),
        fail_safe=abort_pilot,
        wind=own,
        method="semi_implicit_euler",
    )
    columns = state_layout.control_columns(6, 4)

    rng = np.random.default_rng(6)
    for _ in range(150):
        actions = 0.5 + 0.5 * random_actions(batch, rng)
        row = batch.commanded(actions)[v]
        batch.step(actions)
        time = simulation.time
        simulation.command_rotors(RotorCommand(time, row[columns["rotor"]]))
        drive = row[columns["drive_torque"]]
        brake = row[columns["brake_torque"]]
        simulation.command_wheels(WheelCommand(time, row[0], drive, brake))
        while simulation.time < time + 0.0199:
            simulation.tick()
        assert simulation.state.x.tobytes() == batch.vehicles.x[v].tobytes()
        assert simulation.state.memory.tobytes() == batch.vehicles.memory[v].tobytes()


def test_actions_become_commands_by_hand() -> None:
    p = VehicleParameters.load("scale")
    columns = state_layout.control_columns(6, 4)

    # a wrench of 0 carries the weight with all rotors alike, a thrust of -1 is none
    batch = begun("hover", 2)
    rows = batch.commanded(np.array([[0.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]]))
    assert rows[0][columns["rotor"]] == pytest.approx(np.full(6, p.hover_speed), rel=0.02)
    assert rows[1][columns["rotor"]].tolist() == [0.0] * 6
    assert rows[:, columns["brake_torque"]].tolist() == [[p.max_brake_torque] * 4] * 2

    # thrust and moments are those of the rotors' forces
    action = np.array([[0.2, 0.3, -0.2, 0.1], [9.0, 9.0, 9.0, 9.0]])
    rows = batch.commanded(action)
    squares = rows[0][columns["rotor"]] ** 2
    thrust = p.thrust_coefficient * squares
    x, y, _ = (p.rotor_position - (p.center_x, 0.0, 0.0)).T
    spin = np.array(p.rotor_spin)
    weight = p.mass * GRAVITY
    assert thrust.sum() == pytest.approx(1.2 * weight)
    assert thrust @ y == pytest.approx(0.3 * 0.1 * weight * 0.75)
    assert -thrust @ x == pytest.approx(-0.2 * 0.1 * weight * 0.75)
    hover_torque = 6 * p.torque_coefficient * p.hover_speed**2
    assert -p.torque_coefficient * squares @ spin == pytest.approx(0.1 * 0.5 * hover_torque)
    assert (rows[1] == batch.commanded(np.ones((2, 4)))[1]).all()
    assert rows[1][columns["rotor"]].max() == p.max_rotor_speed

    # rotors and wheels
    batch = begun("goal", actions="rotors+wheels")
    row = batch.commanded(np.array([[-1.0, 0.0, 1.0, 0.5, 0.0, 0.0, -0.5, 0.25, -0.5]]))[0]
    assert row[columns["rotor"]].tolist() == [0.0, 175.0, 350.0, 262.5, 175.0, 175.0]
    assert row[0] == -0.5 * p.max_steering
    assert row[columns["drive_torque"]].tolist() == [3.0] * 4
    assert row[columns["brake_torque"]].tolist() == [0.0] * 4
    row = batch.commanded(np.array([[0.0] * 6 + [0.0, -1.0, 0.5]]))[0]
    assert row[columns["drive_torque"]].tolist() == [-12.0] * 4
    assert row[columns["brake_torque"]].tolist() == [7.5] * 4

    row = begun("path").commanded(np.zeros((1, 3)))[0]
    assert not row.any()


def test_a_rotor_fails_at_its_step_and_not_before() -> None:
    batch = begun("hover", 40, rotor_failures=0.5)
    failing = batch.episodes.failing_step >= 0
    assert 10 < failing.sum() < 30
    assert batch.episodes.failing_step.max() < 500
    v = int(np.flatnonzero(failing)[0])
    rotor = batch.episodes.failing_rotor[v]
    columns = np.arange(19)[state_layout.control_columns(6, 4)["rotor"]]
    batch.episodes.steps[v] = batch.episodes.failing_step[v] - 1
    assert batch.commanded(np.zeros((40, 4)))[v, columns].all()
    batch.episodes.steps[v] += 1
    stopped = batch.commanded(np.zeros((40, 4)))[v, columns] == 0.0
    assert np.flatnonzero(stopped).tolist() == [rotor]


# episodes


@pytest.mark.parametrize("task", TASKS)
def test_episodes_begin_where_their_task_says(task: str) -> None:
    batch = begun(task, 200, wind=5.0)
    x = batch.vehicles.x
    targets = batch.episodes.targets
    ground = np.array(batch.terrain.altitude(x[:, 0], x[:, 1]))
    speed = np.linalg.norm(batch.vehicles.mean_wind, axis=1)
    assert 0.0 <= speed.min() < 0.5
    assert 4.5 < speed.max() <= 5.0
    assert (
        np.abs(batch.terrain.altitude(targets[..., 0], targets[..., 1]) - targets[..., 2]).max()
        < 11
    )

    if task == "roof":
        height = x[:, 2] - targets[:, 0, 2]
        assert ((height >= 3.0) & (height <= 6.0)).all()
    elif task in ("hover", "waypoints"):
        assert ((x[:, 2] - ground >= 3.0 - 1e-9) & (x[:, 2] - ground <= 8.0 + 1e-9)).all()
        assert len(np.unique(x[:, 0])) == 200
    else:
        assert (batch.vehicles.outputs_of().wheel_load > 0.0).all()
        assert not batch.vehicles.memory[:, state_layout.CRASHED].any()
    steps = np.linalg.norm(np.diff(targets[..., :2], axis=1), axis=2)
    first = np.linalg.norm(targets[:, 0, :2] - x[:, :2], axis=1)
    if task == "waypoints":
        assert ((steps >= 6.0) & (steps <= 12.0)).all()
        assert ((first >= 6.0) & (first <= 12.0)).all()
    if task == "path":
        assert steps == pytest.approx(np.full(steps.shape, 2.0))
        turn = np.diff(np.unwrap(np.arctan2(*np.diff(targets[..., :2], axis=1).T[::-1]).T, axis=1))
        assert np.abs(turn).max() <= 2.0 / 4.0
    if task == "roof":
        assert ((first >= 3.0) & (first <= 8.0)).all()
    if task == "goal":
        assert ((first >= 20.0) & (first <= 40.0)).all()
    if task == "hop":
        assert ((first >= 8.0) & (first <= 20.0)).all()


def test_a_vehicle_that_stands_at_a_start_stays_there() -> None:
    batch = begun("path", 64)
    begin = batch.vehicles.x[:, :3].copy()
    for _ in range(50):
        batch.step(np.tile((0.0, 0.0, 1.0), (64, 1)))
    assert np.abs(batch.vehicles.x[:, :3] - begin).max() < 0.1


def test_a_spread_draws_one_of_eight_vehicles_for_each_episode() -> None:
    usual = begun("hover", 300)
    assert not usual.vehicles.kind.any()
    spread = begun("hover", 300, spread=0.2)
    assert set(spread.vehicles.kind.tolist()) == set(range(1, 9))
    models = spread.vehicles.models
    factors = [model.params.mass_body / 19.2 for model in models]
    assert factors[0] == 1.0
    assert all(0.8 <= factor <= 1.2 for factor in factors)
    assert max(factors) - min(factors) > 0.15

    # each goes as its own model does alone, and draws its kind alone
    rng = np.random.default_rng(2)
    seeds = [0, 7, 70, 299]
    alone = [begun("hover", 1, seed, spread=0.2) for seed in seeds]
    begin = spread.vehicles.x.copy()
    actions = 0.3 * random_actions(spread, rng)
    rows = spread.commanded(actions)
    spread.step(actions)
    assert spread.commands.weight == usual.commands.weight
    for seed, own in zip(seeds, alone, strict=True):
        assert own.vehicles.kind[0] == spread.vehicles.kind[seed]
        own.step(actions[seed : seed + 1])
        assert own.observe()[0].tobytes() == spread.observe()[seed].tobytes()
        columns = state_layout.control_columns(6, 4)
        controls = Controls(
            rotor_speed=rows[seed, columns["rotor"]],
            brake_torque=rows[seed, columns["brake_torque"]],
        )
        state = ModelState(begin[seed], np.zeros_like(spread.vehicles.memory[seed]))
        model = models[spread.vehicles.kind[seed]]
        after = model.step(state, controls, steps=20, method="semi_implicit_euler")
        assert after.x.tobytes() == spread.vehicles.x[seed].tobytes()


def test_on_steep_ground_nothing_begins_in_it() -> None:
    along = np.arange(300.0)
    steep = HeightMap(
        np.outer(20.0 * np.sin(along / 15.0), np.ones(300)),
        origin_x=0.0,
        origin_y=0.0,
        step_x=1.0,
        step_y=1.0,
    )
    for task, least in (("hover", 1.0), ("waypoints", 3.0), ("roof", 3.0)):
        batch = begun(task, 300, terrain=steep)
        x = batch.vehicles.x
        targets = batch.episodes.targets.reshape(-1, 3)
        assert (x[:, 2] - steep.altitude(x[:, 0], x[:, 1]) >= 3.0 - 1e-9).all()
        assert (targets[:, 2] - steep.altitude(*targets[:, :2].T) >= least - 1e-9).all()


# arguments


def test_what_cannot_be_used_is_said() -> None:
    small = HeightMap(np.zeros((50, 50)), origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=1.0)
    cliff = np.where(np.add.outer(np.arange(150), np.arange(150)) % 2, 40.0, 0.0)
    cliffs = HeightMap(cliff, origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=1.0)
    for options, text in (
        (
            {"task": "sleep"},
            "task: 'sleep', expected one of hover, waypoints, path, goal, roof, hop",
        ),
        ({"actions": "mind"}, "actions: 'mind', expected one of wrench, rotors, velocity, wheels"),
        ({"period": 0.0205}, r"period: 0\.0205 s, expected a multiple of 0\.001 s"),
        ({"period": 0.0}, "period: 0.0 s, expected a finite number of at least"),
        ({"wind": -1.0}, "wind: -1"),
        (
            {"wind": 50.1},
            "wind: 50.1 m/s, expected a finite number of at least 0 and of at most 50",
        ),
        ({"wind": "strong"}, "wind: 'strong' m/s, expected a finite number"),
        ({"gusts": math.nan}, "gusts: nan"),
        ({"gusts": 30}, "gusts: 30 m/s, .* of at most 20"),
        ({"rotor_failures": 2.0}, "rotor_failures: 2"),
        ({"vehicle": "bicycle"}, "bicycle"),
        ({"spread": 0.5}, "spread: 0.5, expected a finite number of at least 0 and of at most 0.3"),
        ({"terrain": small}, r"terrain: 49 m wide, expected more than 100 m"),
        ({"terrain": cliffs, "task": "path"}, "terrain: the vehicle stands at none of"),
        ({"period": 0.015, "gusts": 1.0}, "multiple of 0.01 s"),
    ):
        task = {"task": "hover"} | options
        with pytest.raises(ConfigError, match=text):
            LandAirBatch(1, **task)
    for count in (0, -3, 10**9, 2.5, True, "3", None):
        with pytest.raises(ConfigError, match=r"num_envs: .* expected a whole number of at least"):
            LandAirBatch(count, "hover")

    batch = begun("hover", 2)
    with pytest.raises(CommandError, match=r"shape \(2, 3\), expected \(2, 4\)"):
        batch.step(np.zeros((2, 3)))
    with pytest.raises(CommandError, match="expected finite numbers"):
        batch.step(np.full((2, 4), np.nan))
    for wrong in (np.full((2, 4), "up"), np.zeros((2, 4), complex), np.full((2, 4), None)):
        with pytest.raises(CommandError, match=f"actions: {wrong.dtype}, expected numbers"):
            batch.step(wrong)
    with pytest.raises(CommandError, match="actions: expected rows of the same length"):
        batch.step([[0.0, 0.0], [0.0]])


WRONG_TYPES = (
    5,
    1.5,
    b"scale",
    [],
    {},
    object(),
    np.zeros(3),
    np.zeros((2, 2)),
    "",
    1j,
    type,
    np.array(5),
)


@pytest.mark.parametrize("option", list(inspect.signature(LandAirBatch).parameters)[1:])
def test_each_option_of_a_wrong_type_is_named(option: str) -> None:
    """Whatever stands in an option, it is taken or refused by its name."""
    base = {"task": "hover"}
    if option in ("density", "world_seed"):
        base["world"] = "random"
    if option == "sensors":
        base["observations"] = "sensors"
    for value in WRONG_TYPES:
        with contextlib.suppress(RflyError):  # no TypeError, nor any other
            LandAirBatch(1, **base | {option: value})
    if option in ("vehicle", "terrain", "world", "sensors", "actions", "task", "observations"):
        for value in (5, [], np.zeros(3)):
            with pytest.raises(ConfigError, match=f"^{option}: "):
                LandAirBatch(1, **base | {option: value})


def test_no_actions_are_not_the_usual_ones() -> None:
    with pytest.raises(ConfigError, match="actions: '', expected one of wrench, rotors"):
        LandAirBatch(1, "hover", actions="")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, np.bool_])
def test_actions_of_any_numbers_do_the_same(dtype: type) -> None:
    actions = np.array([(1, 0, 1, 0), (0, 1, 0, 1)])
    batches = [begun("hover", 2), begun("hover", 2)]
    for batch, own in zip(batches, (actions.astype(float), actions.astype(dtype)), strict=True):
        batch.step(own)
    assert batches[0].vehicles.x.tobytes() == batches[1].vehicles.x.tobytes()


@pytest.mark.parametrize("vehicle", [exhaustively("full"), exhaustively("scale_quad"), "scale_six"])
def test_other_vehicles_learn_too(vehicle: str) -> None:
    for task in TASKS:
        batch = begun(task, 9, vehicle=vehicle)
        for _ in range(3):
            batch.step(np.zeros((9, len(batch.action_names))))
        assert not batch.terminated.any()
        assert np.isfinite(batch.observe()).all()


def test_a_map_may_be_given_by_its_path() -> None:
    name = LandAirBatch(1, "hover", terrain="JacksboroFault").terrain
    path = next(file for file in name.files if file.suffix == ".png")
    for terrain in (path, str(path), name):
        assert LandAirBatch(1, "hover", terrain=terrain).terrain.bounds == name.bounds
    assert name.bounds != hills().bounds


def test_the_usual_terrain_is_the_same_each_time() -> None:
    assert hills().heights.tobytes() == hills().heights.tobytes()
    assert hills().bounds == (-200.0, 200.0, -200.0, 200.0)
    assert hills().z_max - hills().z_min < 6.5


def test_the_page_has_the_rewards_of_the_rules() -> None:
    text = (Path(__file__).parents[3] / "docs" / "howto" / "learn.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    tasks = next([cell.strip("`") for cell in row[1:]] for row in cells if row[:1] == ["term"])
    assert tasks == list(TASKS)

    terms = {
        "1 / (1 + d²)": ("near", 1.0),
        "w before - w after, m": ("progress", 1.0),
        "a target, not the last": ("reached", 1.0),
        "success that ends the episode": ("success", 1.0),
        "-ω² T": ("turning", 1.0),
        "-P T": ("power", 1.0),
        "crash, astray, failure": ("broken", -1.0),
    }
    for term, (field, sign) in terms.items():
        row = next(row for row in cells if row[:1] == [term])
        expected = [sign * getattr(TASKS[task], field) for task in tasks]
        assert [float(cell or 0.0) for cell in row[1:]] == expected
    times = {row[0].strip("`"): row[2] for row in cells if len(row) == 5}
    for task, rules in TASKS.items():
        assert times[task] == f"{rules.duration:g} s"


def test_kernels_take_tasks_of_plain_numbers() -> None:
    """An enum among a kernel's arguments costs 50 µs of Python at each call."""
    for task in TASKS.values():
        assert {type(value) for value in task} <= {int, float, bool}

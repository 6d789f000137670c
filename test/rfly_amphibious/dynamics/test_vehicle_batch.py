# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A batch of vehicles goes through the numbers of each vehicle alone, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from amphibious_cases import parameters

from rfly_amphibious import AmphibiousModel, Controls, ModelState, Wind
from rfly_amphibious.dynamics import model as model_module
from rfly_amphibious.dynamics.vehicle_batch import VehicleBatch
from rfly_amphibious.dynamics.wind import hashed
from rfly_amphibious.vehicle import state_layout
from rfly_common.errors import ConfigError
from rfly_common.kernels import parallel
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.solids import ObjectBoxes

STEPS = 20
PERIODS = 30
METHOD = "semi_implicit_euler"


def hills() -> HeightMap:
    rng = np.random.default_rng(5)
    return HeightMap(
        rng.normal(0.0, 0.3, (60, 60)), origin_x=-30.0, origin_y=-30.0, step_x=1.0, step_y=1.0
    )


def begin(model: AmphibiousModel, count: int) -> np.ndarray:
    """States of vehicles that drive, fly, and fall on their backs, in turns."""
    rng = np.random.default_rng(1)
    states = []
    for i, (x, y, yaw) in enumerate(rng.uniform(-20.0, 20.0, (count, 3)).tolist()):
        if i % 3 == 0:
            state = model.standing(x, y, yaw, speed=3.0).x
        else:
            state = model.flying((x, y, 4.0), yaw, (1.0, 0.0, 0.0)).x
        if i % 3 == 2:
            state[state_layout.QUATERNION_XYZW] = (1.0, 0.02, 0.0, 0.0)
        states.append(state)
    return np.stack(states)


def rows_of(model: AmphibiousModel, count: int, period: int) -> np.ndarray:
    rng = np.random.default_rng(period)
    return Controls(
        rotor_speed=rng.uniform(0.8, 1.1, (count, 6)) * model.params.hover_speed,
        steering=rng.uniform(-0.3, 0.3, count),
        drive_torque=rng.uniform(-2.0, 4.0, (count, 4)),
    ).rows(model.params, count)


def run(model: AmphibiousModel, which: slice, wind: Wind, seeds: np.ndarray) -> VehicleBatch:
    """Run some of 21 vehicles as a batch of their own."""
    x = begin(model, 21)[which]
    batch = VehicleBatch(model, len(x), STEPS, 0.001, wind=wind)
    batch.mean_wind[:] = np.linspace(-3.0, 3.0, 21 * 3).reshape(21, 3)[which]
    batch.gust_keys[:] = hashed(seeds[which])
    batch.put(np.arange(len(x)), x)
    for period in range(PERIODS):
        batch.advance(rows_of(model, 21, period)[which])
    return batch


@pytest.mark.parametrize(
    "wind", [Wind(), Wind(gust_sigma=(1.0, 0.5, 0.2)), Wind(turbulence=8.0)], ids=str
)
def test_each_is_as_it_is_alone(wind: Wind, monkeypatch: pytest.MonkeyPatch) -> None:
    model = AmphibiousModel(parameters("scale"), hills())
    seeds = np.arange(7, 28, dtype=np.uint64)
    together = run(model, slice(0, 21), wind, seeds)
    assert len(set(together.memory[:, state_layout.CRASHED])) > 1

    # other batches, and one thread or two
    for cores in (1, 2):
        monkeypatch.setattr(parallel, "cores", lambda cores=cores: cores)
        monkeypatch.setattr(model_module, "cores", lambda cores=cores: cores)
        for which in (slice(0, 1), slice(3, 11), slice(2, 21, 2), slice(0, 21)):
            part = run(model, which, wind, seeds)
            assert part.x.tobytes() == together.x[which].tobytes()
            assert part.memory.tobytes() == together.memory[which].tobytes()
            assert part.outputs.tobytes() == together.outputs[which].tobytes()

    # the model's own steps, without a batch
    for v in (0, 1, 2):
        own = Wind(
            tuple(together.mean_wind[v]),
            wind.gust_sigma,
            seed=int(seeds[v]),
            turbulence=wind.turbulence,
        )
        state = ModelState(begin(model, 21)[v], np.zeros(together.memory.shape[1]))
        for period in range(PERIODS):
            row = rows_of(model, 21, period)[v]
            columns = state_layout.control_columns(6, 4)
            controls = Controls(
                rotor_speed=row[columns["rotor"]],
                steering=row[0],
                drive_torque=row[columns["drive_torque"]],
            )
            # times as sums drift, and gusts begin by the time
            state = ModelState(state.x, state.memory, period * STEPS * 0.001)
            state = model.step(state, controls, steps=STEPS, wind=own, method=METHOD)
        assert state.x.tobytes() == together.x[v].tobytes()
        assert state.memory.tobytes() == together.memory[v].tobytes()


def test_each_is_as_it_is_alone_among_houses() -> None:
    """Some hit walls or land on roofs, the others are in lanes: all as the model's own steps."""
    rng = np.random.default_rng(8)
    places = np.column_stack([rng.uniform(-20.0, 20.0, (30, 2)), np.zeros(30)])
    boxes = ObjectBoxes(places, np.tile((0.8, 0.8, 1.5), (30, 1)))
    model = AmphibiousModel(parameters("scale"), hills(), solids=boxes)
    free = AmphibiousModel(parameters("scale"), hills())
    seeds = np.arange(7, 28, dtype=np.uint64)
    among = run(model, slice(0, 21), Wind(), seeds)
    without = run(free, slice(0, 21), Wind(), seeds)
    touched = (among.x != without.x).any(axis=1)
    assert 3 < touched.sum() < 18
    assert 0 < among._near().sum() < 21

    for part in (slice(0, 1), slice(4, 17)):
        assert run(model, part, Wind(), seeds).x.tobytes() == among.x[part].tobytes()
    states = ModelState(begin(model, 21), np.zeros_like(among.memory))
    for period in range(PERIODS):
        row = rows_of(model, 21, period)
        columns = state_layout.control_columns(6, 4)
        controls = Controls(
            rotor_speed=row[:, columns["rotor"]],
            steering=row[:, 0],
            drive_torque=row[:, columns["drive_torque"]],
        )
        wind = Wind(among.mean_wind)
        states = model.step(states, controls, steps=STEPS, wind=wind, method=METHOD)
    assert states.x.tobytes() == among.x.tobytes()
    assert states.memory.tobytes() == among.memory.tobytes()


def test_one_that_fails_is_marked_and_its_neighbours_go_on() -> None:
    model = AmphibiousModel(parameters("scale"), hills())
    x = begin(model, 9)
    alone = VehicleBatch(model, 8, STEPS, 0.001)
    alone.put(np.arange(8), np.delete(x, 4, axis=0))
    batch = VehicleBatch(model, 9, STEPS, 0.001)
    batch.put(np.arange(9), x)
    batch.x[4, state_layout.VELOCITY] = np.nan

    alone.advance(np.zeros((8, 19)))
    batch.advance(np.zeros((9, 19)))
    assert batch.has_failed.tolist() == [v == 4 for v in range(9)]
    assert not alone.has_failed.any()
    assert np.delete(batch.x, 4, axis=0).tobytes() == alone.x.tobytes()

    # it may begin anew
    batch.put(np.array([4]), x[4:5])
    assert not batch.has_failed.any()
    batch.advance(np.zeros((9, 19)))
    assert np.isfinite(batch.x).all()


def test_outputs_are_those_of_the_state_before_the_first_step() -> None:
    model = AmphibiousModel(parameters("scale"), hills())
    batch = VehicleBatch(model, 2, STEPS, 0.001)
    standing = model.standing(1.0, 2.0)
    batch.put(np.array([1]), standing.x[None], standing.memory[None])
    assert batch.outputs[1].tobytes() == model.outputs(standing).numbers.tobytes()
    assert batch.outputs_of(np.array([1])).wheel_load.sum() == pytest.approx(
        model.params.mass * 9.80665, rel=0.3
    )


def test_gusts_need_whole_periods() -> None:
    model = AmphibiousModel(parameters("scale"))
    VehicleBatch(model, 1, 15, 0.001)
    with pytest.raises(ConfigError, match=r"period: 0\.015 s, expected a multiple of 0\.01 s"):
        VehicleBatch(model, 1, 15, 0.001, wind=Wind(turbulence=3.0))

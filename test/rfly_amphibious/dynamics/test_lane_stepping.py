# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles side by side in lanes.

Each does bit by bit what it does alone, whatever happens to its neighbours.
"""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from amphibious_cases import parameters, plane

from rfly_amphibious import AmphibiousModel, Controls, ModelState, Wind, dynamics
from rfly_amphibious.dynamics import model as model_module
from rfly_amphibious.dynamics.body_dynamics import corners_may_touch
from rfly_amphibious.dynamics.records import POINTS_RECORD, STATE_RECORD
from rfly_amphibious.vehicle import state_layout
from rfly_common.errors import DynamicsError
from rfly_common.frames import rotation_matrix
from rfly_terrain.height_map.height_map import HeightMap, ground_of

FLEET = 11
"""Vehicles: a group of eight and three alone."""


def fleet(model: AmphibiousModel) -> ModelState:
    """Return vehicles to which different things happen.

    They drive, fly, lie on their backs, fall from 4 m, hover near the ground, or are off the map.
    """
    states = [
        model.standing(2.0, 1.0, 0.4, speed=4.0),
        model.flying((0.0, 1.0, 30.0), 0.3, (2.0, 0.0, 0.1)),
        model.flying((5.0, 5.0, 0.4)),
        model.flying((-5.0, 0.0, 4.0)),
        model.standing(-8.0, 3.0),
        model.flying((8.0, -3.0, 1.0), 1.0),
        model.standing(200.0, 0.0, speed=1.0),
        model.flying((1.0, -9.0, 2.0), velocity=(0.0, 0.0, -6.0)),
        model.standing(0.0, -4.0, 2.0, speed=2.0),
        model.flying((0.0, 9.0, 12.0)),
        model.flying((3.0, 3.0, 0.5)),
    ]
    x = np.stack([state.x for state in states])

    for overturned in (2, 10):
        x[overturned, state_layout.QUATERNION_XYZW] = (1.0, 0.02, 0.0, 0.0)
        x[overturned, state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + model.params.rotors] = (
            0.0
        )

    x[3, state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + model.params.rotors] = 0.0
    return ModelState(x, np.stack([state.memory for state in states]))


def hills() -> HeightMap:
    rng = np.random.default_rng(5)
    return HeightMap(
        rng.normal(0.0, 0.4, (60, 60)), origin_x=-30.0, origin_y=-30.0, step_x=1.0, step_y=1.0
    )


def controls(params, torques: bool) -> Controls:
    rng = np.random.default_rng(3)
    rotors = rng.uniform(0.7, 1.1, (FLEET, params.rotors)) * params.hover_speed
    drive, brake = rng.uniform(-2.0, 4.0, (2, FLEET, len(params.wheels)))
    return Controls(
        rotor_torque=params.torque_coefficient * rotors**2 if torques else None,
        rotor_speed=None if torques else rotors,
        steering=rng.uniform(-0.3, 0.3, FLEET),
        drive_torque=drive,
        brake_torque=np.maximum(brake, 0.0),
    )


@pytest.fixture
def one_by_one(monkeypatch):
    """Do something with the vehicles one after the other, as with few of them."""

    def run(action):
        with monkeypatch.context() as patch:
            patch.setattr(model_module, "LANES", 1000)
            return action()

    return run


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
@pytest.mark.parametrize(
    ("name", "torques", "air", "wind"),
    [
        ("scale", False, "sea_level", Wind((2.0, -1.0, 0.1), (0.5, 0.5, 0.2), seed=7)),
        ("scale_quad", True, "standard_atmosphere", Wind((3.0, 1.0, 0.0), seed=2, turbulence=6.0)),
        ("scale_six", False, "sea_level", Wind()),
    ],
)
def test_a_fleet_to_which_all_sorts_of_things_happen(one_by_one, method, name, torques, air, wind):
    model = AmphibiousModel(parameters(name), hills(), air_density=air, map_altitude=500.0)
    begin = fleet(model)
    commands = controls(model.params, torques)

    def run():
        return model.run(begin, commands, 1.2, wind=wind, method=method, sample_period=0.05)

    abreast = run()
    alone = one_by_one(run)
    assert abreast.final.x.tobytes() == alone.final.x.tobytes()
    assert abreast.final.memory.tobytes() == alone.final.memory.tobytes()
    assert abreast.x.tobytes() == alone.x.tobytes()
    assert abreast.memory.tobytes() == alone.memory.tobytes()
    assert (abreast.outputs.numbers == alone.outputs.numbers).all()
    crashed = abreast.final.memory[:, state_layout.CRASHED] != state_layout.INTACT
    assert crashed[[2, 10]].all()
    assert not crashed[[0, 1]].any()
    down = abreast.outputs.body_points_down.max(axis=1) > 0
    assert 2 <= down.sum() < FLEET


def test_one_that_is_alone_and_the_first_of_many_are_the_same():
    model = AmphibiousModel(parameters("full"), plane(0.05, 100.0, -0.02))
    begin = model.standing(2.0, 1.0, speed=5.0)
    commands = Controls(steering=0.05, drive_torque=60.0)
    many = ModelState(np.tile(begin.x, (16, 1)), np.tile(begin.memory, (16, 1)))
    alone = model.step(begin, commands, steps=300)
    assert (model.step(many, commands, steps=300).x == alone.x).all()


def test_one_that_diverges_is_named_and_its_neighbours_are_not(one_by_one):
    model = AmphibiousModel(parameters("scale"), hills())
    begin = fleet(model)
    begin.x[6, state_layout.VELOCITY] = 1e9  # 1000 km away within two steps

    def run():
        with pytest.raises(DynamicsError) as error:
            model.step(begin, Controls(), steps=5)
        return str(error.value)

    text = run()
    assert text.startswith("vehicle 6: position_m is")
    assert text == one_by_one(run)


def test_no_corner_touches_where_none_is_looked_up():
    """Corners that are left out are all above the ground; and they often are left out."""
    import numba

    @numba.njit
    def may_touch(states, heights, hub_z, records, ground, points):
        for k in range(heights.size):
            points[0].height[k] = heights[k]
        return corners_may_touch(
            states[0],
            hub_z,
            records[0],
            ground,
            points[0],
        )

    rng = np.random.default_rng(4)
    params = parameters("scale")
    model = AmphibiousModel(params, hills())
    record = model._records[0]
    first = len(params.wheels)
    body = np.column_stack([record["point_x"], record["point_y"], record["point_z"]])
    left_out = 0
    for _ in range(2000):
        quaternion = rng.normal(size=4)
        strut = rng.uniform(-0.1, 0.1)
        state = np.zeros(1, STATE_RECORD)
        state["strut"][0, 0] = strut
        rotation = rotation_matrix(quaternion / np.linalg.norm(quaternion))
        points = np.append(rng.uniform(-28.0, 28.0, 2), rng.uniform(-1.0, 6.0)) + body @ rotation.T
        points[0] += strut * rotation[:, 2]
        heights = points[:, 2] - np.where(
            np.arange(len(points)) == 0, model.terrain.altitude(*points[0, :2]), 0.0
        )
        if not may_touch(
            state,
            heights,
            points[0, 2],
            model._records,
            ground_of(model.terrain),
            np.zeros(1, POINTS_RECORD),
        ):
            left_out += 1
            corners = points[first : first + state_layout.CORNERS]
            assert (corners[:, 2] > model.terrain.altitude(corners[:, 0], corners[:, 1])).all()
    assert 200 < left_out < 1900


def test_no_kernel_returns_from_the_branches_of_one_expression():
    """Python 3.12 and newer return from each branch, of which one may be lanes and one a number.

    numba then finds no type for both, and `make env` ends; Python 3.11 joins the branches first.
    """
    found = []
    for file in Path(dynamics.__path__[0]).glob("*.py"):
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            if "inlined_kernel" not in map(ast.unparse, function.decorator_list):
                continue
            returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
            parts = [part for node in returns for part in ast.walk(node)]
            found += [function.name for part in parts if isinstance(part, ast.IfExp)]
    assert found == []

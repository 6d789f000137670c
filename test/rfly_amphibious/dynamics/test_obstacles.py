# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contact with solids on the ground: walls, kerbs, roofs, poles, falls.

docs/model, section 6.2.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from optional_parts import late_module
from scipy.spatial.transform import Rotation

from rfly_amphibious.dynamics.model import STILL, AmphibiousModel, Controls, ModelState, Run
from rfly_amphibious.dynamics.obstacles import obstacles_of
from rfly_amphibious.dynamics.stepper import Stepper
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.physics import GRAVITY
from rfly_terrain.world.models import cylinder_part
from rfly_terrain.world.solids import ObjectBoxes, Solids, joined

obstacle_contacts = late_module("rfly_amphibious.dynamics.obstacle_contacts")

SCALE = VehicleParameters.load("scale")
NOSE = 0.425
"""Distance from the centre to the front of the scale vehicle's body box, m."""
ROTOR_NOSE = 0.75 * np.cos(np.pi / 6) + 0.1 * 0.355
"""Distance to the front of its foremost rotor hubs, m, by docs/model, section 6.2."""


def box(x: float, y: float, z: float, size: tuple[float, float, float]) -> ObjectBoxes:
    """Return a box with its centre at (x, y, z), m."""
    return ObjectBoxes([(x, y, z)], [0.5 * np.array(size)])


def pole(x: float, y: float, radius: float, height: float = 8.0) -> Solids:
    part = cylinder_part(radius=radius, height=height) + np.array((x, y, 0.0))
    return Solids(part, np.array((0, len(part))))


def moved(state: ModelState, **columns: Floats | tuple[float, ...]) -> ModelState:
    """Return a state with another position, velocity, orientation (x y z w) or rates."""
    x = state.x.copy()
    places = {
        "position": slice(0, 3),
        "velocity": slice(3, 6),
        "orientation": state_layout.QUATERNION_XYZW,
        "rates": slice(10, 13),
    }
    for name, value in columns.items():
        x[places[name]] = value
    return dataclasses.replace(state, x=x)


def rolls(
    model: AmphibiousModel, seconds: float, state: ModelState, controls: Controls | None = None
) -> Run:
    return model.run(state, controls or Controls(), seconds, sample_period=0.001)


@pytest.mark.parametrize(("height", "nose"), [(2.0, ROTOR_NOSE), (0.36, NOSE)])
def test_stops_at_a_wall_at_two_metres_a_second(height: float, nose: float) -> None:
    """Meet a high wall with the rotors' arms, and one below them with the nose."""
    model = AmphibiousModel(SCALE, solids=box(3.0, 0.3, height / 2, (1.0, 4.0, height)))
    run = rolls(model, 1.5, model.standing(speed=2.0))

    reached = run.x[:, 0].max() + nose
    assert 2.5 < reached < 2.52
    assert run.x[-1, 3] <= 0.0
    assert abs(run.x[-1, 3]) < 0.5
    assert not run.final.crashed


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
@pytest.mark.parametrize(
    ("speed", "y", "height"),
    [
        (2.0, 0.3, 2.0),
        (30.0, 0.8, 8.0),
        (4.0, 0.0, 0.05),
    ],
)
def test_distant_obstacles_are_left_out_of_the_steps_alone(
    method: Any, speed: float, y: float, height: float
) -> None:
    """Hit a wall, pass a corner and cross a kerb.

    The states equal those of steps that always look for contacts, because something moves a
    kilometre above.
    """
    model = AmphibiousModel(SCALE, solids=box(8.0, y, height / 2, (1.0, 1.0, height)))
    always = AmphibiousModel(SCALE, solids=box(8.0, y, height / 2, (1.0, 1.0, height)))

    far = (
        np.array(list(product((-1.0, 1.0), repeat=3))),
        np.array((0.0, 0.0, 1000.0)),
        np.eye(3),
        np.zeros(3),
    )
    always.others = lambda place, reach, more, time: [far]

    begin = model.standing(speed=speed)
    states = []
    for each in (model, always):
        stepper = Stepper(each, begin, 4000, 0.001, STILL, method, keep_steps=True)
        stepper.advance(Controls(), 4000)
        states.append(stepper.step_states[0].copy())
    np.testing.assert_allclose(states[0], states[1], rtol=0.0, atol=1e-12)
    assert states[0][:, 0].max() > 5.0


@pytest.mark.parametrize("yaw", [0.0, 0.5, 1.2, np.pi / 2, np.pi])
@pytest.mark.parametrize(
    "solids",
    [
        box(5.0, 0.0, 4.0, (1.0, 9.0, 8.0)),
        box(5.0, 0.0, 4.0, (0.02, 9.0, 8.0)),
        pole(5.0, 0.02, 0.02),
        pole(5.0, 0.0, 0.3),
    ],
    ids=["wall", "sheet", "thin pole", "thick pole"],
)
def test_nothing_gets_through_at_thirty_metres_a_second(solids: Solids, yaw: float) -> None:
    model = AmphibiousModel(SCALE, solids=solids)
    begin = moved(model.standing(3.0, 0.0, yaw), velocity=(30.0, 0.0, 0.0))
    begin.x[2] += 2.0  # off the ground: it does not trip over its tyres
    run = rolls(model, 0.3, begin)

    ahead = run.x[:, 0] < 5.0
    beside = np.abs(run.x[:, 1]) > 0.25
    assert (ahead | beside.cumsum().astype(bool)).all()
    if len(solids.vertices) == 8 or yaw in (0.0, np.pi):
        assert run.x[:, 0].max() < 5.0
    assert run.final.crashed


def test_climbs_a_low_kerb_and_stops_at_one_higher_than_its_wheels() -> None:
    ends = {}
    for height in (0.05, 0.15):
        model = AmphibiousModel(SCALE, solids=box(4.0, 0.0, height / 2, (4.0, 4.0, height)))
        run = rolls(model, 4.0, model.standing(1.4, speed=1.0), Controls(drive_torque=4.0))
        ends[height] = run.x
        assert not run.final.crashed

    assert ends[0.05][:, 0].max() > 4.0
    on_top = np.abs(ends[0.05][:, 0] - 4.0) < 0.5
    assert ends[0.05][on_top, 2].mean() == pytest.approx(0.27, abs=0.01)
    hub = ends[0.15][:, 0] + SCALE.front_axle
    assert hub.max() < 2.0 - 0.4 * SCALE.wheel_radius
    assert ends[0.15][:, 2].max() < 0.25


def test_stands_on_a_flat_roof_with_its_weight() -> None:
    """Stand on a roof of four boxes, whose seams lie below the vehicle."""
    roof = joined([box(x, y, 1.5, (3.0, 3.0, 3.0)) for x in (-1.5, 1.5) for y in (-1.5, 1.5)])
    model = AmphibiousModel(SCALE, solids=roof)
    begin = model.standing(0.1, -0.2, 0.4)
    begin.x[2] += 3.05
    run = rolls(model, 3.0, begin, Controls(brake_torque=5.0))

    loads = run.outputs.wheel_load[-1]
    assert loads.sum() == pytest.approx(SCALE.mass * GRAVITY, rel=1e-3)
    assert loads == pytest.approx(SCALE.static_load, rel=0.01)
    assert run.final.position == pytest.approx((0.1, -0.2, 3.22), abs=0.01)
    assert run.outputs.clearance[0] == pytest.approx(0.05, abs=0.01)
    assert not run.final.crashed


def test_drives_on_a_roof_and_falls_off_its_edge() -> None:
    model = AmphibiousModel(SCALE, solids=box(0.0, 0.0, 1.0, (6.0, 6.0, 2.0)))
    begin = model.standing(speed=3.0)
    begin.x[2] += 2.0
    run = rolls(model, 2.5, begin, Controls(drive_torque=1.0))

    on_roof = run.x[:, 0] < 3.0 - SCALE.front_axle - 0.05
    assert run.x[on_roof, 2] == pytest.approx(2.22, abs=0.01)
    in_air = (run.outputs.wheel_load == 0.0).all(axis=1) & (run.x[:, 2] > 0.6)
    assert in_air.sum() > 100
    assert run.x[-1, 2] < 0.8
    assert run.x[-1, 0] > 3.0


def test_a_blade_that_touches_is_lost() -> None:
    """Touch the pole's side at y = 0.375 with the foremost blades, which reach 1.005 m ahead."""
    reach = 0.75 * np.cos(np.pi / 6) + 0.355
    model = AmphibiousModel(SCALE, solids=pole(2.0, 0.375, 0.1))
    hover = Controls(rotor_speed=SCALE.hover_speed)
    run = rolls(model, 1.5, model.flying((0.0, 0.0, 3.0), velocity=(1.5, 0.0, 0.0)), hover)

    struck = int(np.argmax(run.memory[:, state_layout.CRASHED] > 0.0))
    assert run.x[struck, 0] + reach == pytest.approx(1.9, abs=0.03)
    assert run.memory[struck, state_layout.CRASHED] == state_layout.ROTOR_BROKEN + 1
    assert run.final.crash_cause == "rotor 2 struck something"
    speed = run.x[struck, state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + 6]
    assert speed[1] == 0.0
    assert speed[0] > 200.0

    # leaning a still blade against the pole breaks nothing
    slow = model.run(moved(model.standing(0.95), velocity=(0.0, 0.0, 0.0)), Controls(), 0.1)
    assert not slow.final.crashed


@pytest.mark.parametrize(
    "roof", [None, box(0.0, 0.0, 1.0, (6.0, 6.0, 2.0))], ids=["ground", "roof"]
)
def test_a_fall_breaks_what_a_landing_does_not(roof: Solids | None) -> None:
    """Fall 50 m: at 28 m/s the tyres are pressed in by more than 0.066 m within 3 ms."""
    model = AmphibiousModel(SCALE, solids=roof)
    top = 0.0 if roof is None else 2.0

    fall = rolls(model, 4.0, model.flying((0.0, 0.0, top + 50.0)))
    assert fall.final.crashed
    assert fall.final.crash_cause.startswith("tyre ")

    landing = model.flying((0.0, 0.0, top + 0.35), velocity=(0.0, 0.0, -0.5))
    soft = rolls(model, 2.0, landing, Controls(rotor_speed=0.9 * SCALE.hover_speed))
    assert not soft.final.crashed
    assert soft.final.crash_cause == ""
    assert soft.final.position[2] == pytest.approx(top + 0.22, abs=0.05)


def test_falls_on_its_back_and_breaks_its_hull() -> None:
    model = AmphibiousModel(
        SCALE.replace(rotor_height=-0.1), solids=box(0.0, 0.0, 1.0, (6.0, 6.0, 2.0))
    )
    begin = moved(model.flying((0.0, 0.0, 8.0)), orientation=(1.0, 0.0, 0.0, 0.0))
    begin.x[state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + 6] = 0.0
    run = rolls(model, 1.5, begin)
    assert run.final.crash_cause == "the hull hit something"
    assert run.x[:, 2].min() > 2.0


def test_each_rotor_feels_the_roof_that_is_below_it() -> None:
    """Compare thrusts at the eastern edge of a roof 2 m high with Eq. 4.6 by hand.

    Up to x = 0.2 m the roof is 0.4 m below the hubs, beyond it the ground is 2.4 m below. A bridge
    above them changes nothing.
    """
    roof = box(-4.8, 0.0, 1.0, (10.0, 10.0, 2.0))
    bridge = box(0.0, 0.0, 8.0, (9.0, 9.0, 2.0))
    model = AmphibiousModel(SCALE, solids=joined([roof, bridge]))
    state = model.flying((0.0, 0.0, 2.4 - SCALE.rotor_height))
    plain = AmphibiousModel(SCALE, ground_effect=False, solids=roof).outputs(state).thrust

    over_roof = SCALE.rotor_position[:, 0] < 0.2
    assert 0 < over_roof.sum() < SCALE.rotors
    height = np.where(over_roof, 0.4, 2.4)
    expected = 1.0 / (1.0 - (SCALE.rotor_radius / (4.0 * height)) ** 2)
    assert model.outputs(state).thrust / plain == pytest.approx(expected, rel=1e-9)


def test_obstacles_out_of_reach_change_no_bit() -> None:
    bare = AmphibiousModel(SCALE)
    rng = np.random.default_rng(3)
    places = rng.uniform(20.0, 200.0, (1000, 3))
    full = AmphibiousModel(SCALE, solids=ObjectBoxes(places, np.full((1000, 3), 0.5)))
    begin = bare.standing(speed=4.0)
    controls = Controls(steering=0.1, drive_torque=2.0, rotor_speed=100.0)
    assert np.array_equal(bare.run(begin, controls, 0.5).x, full.run(begin, controls, 0.5).x)


def energy(p: VehicleParameters, x: Floats) -> Floats:
    """Return the energy of states (k, states), J.

    It is that of motion and height of body, wheels and rotors, and of the struts.
    """
    rotation = Rotation.from_quat(x[:, state_layout.QUATERNION_XYZW])
    rates = x[:, 10:13]
    velocity = rotation.inv().apply(x[:, 3:6])
    total = 0.5 * p.mass_sprung * (velocity**2).sum(axis=1) + p.mass_sprung * GRAVITY * x[:, 2]
    total += 0.5 * np.einsum("ki,ij,kj->k", rates, p.inertia_matrix, rates)

    springs = (p.front_spring, p.front_spring, p.rear_spring, p.rear_spring)
    for i in range(4):
        strut = x[:, state_layout.STRUT + i]
        up = np.array((0.0, 0.0, 1.0))
        hub = p.hub_position[i] + strut[:, None] * up
        speed = velocity + np.cross(rates, hub) + x[:, state_layout.STRUT_RATE + i, None] * up
        spin = x[:, state_layout.WHEEL_SPEED + i]
        total += 0.5 * p.mass_unsprung * (speed**2).sum(axis=1) + 0.5 * p.wheel_inertia * spin**2
        total += p.mass_unsprung * GRAVITY * (x[:, 2] + rotation.apply(hub)[:, 2])
        pressed = np.maximum(strut, -p.spring_load[i] / springs[i])  # a spring does not pull
        total += p.spring_load[i] * pressed + 0.5 * springs[i] * pressed**2
        total += 0.5 * p.bump_stop_stiffness * np.maximum(strut - p.bump_stop, 0.0) ** 2
        total += 0.5 * p.rebound_stop_stiffness * np.minimum(strut - p.rebound_stop, 0.0) ** 2
    return np.asarray(total)


_TABLE = joined([box(0.0, 0.0, 99.0, (1.2, 1.2, 2.0)), box(1.2, 0.3, 98.8, (0.7, 0.4, 2.0))])


@settings(max_examples=40, deadline=None)
# the side of a wheel is pressed along its strut
@example(
    angles=(2.75, 0.0, 3.0),
    place=(1.328125, -1.0),
    speed=(-2.75, 2.625, -2.75),
    rates=(1.25, 0.0, 3.0),
)
@given(
    angles=st.tuples(*[st.floats(-3.1, 3.1)] * 3),
    place=st.tuples(st.floats(-1.2, 1.8), st.floats(-1.0, 1.0)),
    speed=st.tuples(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.floats(-8.0, 0.0)),
    rates=st.tuples(*[st.floats(-4.0, 4.0)] * 3),
)
def test_no_contact_adds_energy(  # type: ignore[no-untyped-def]
    angles, place, speed, rates
) -> None:
    """Throw the vehicle onto the edges of two blocks high above the ground.

    Whenever nothing touches, it has less energy than before.
    """
    model = AmphibiousModel(SCALE, solids=_TABLE)
    begin = moved(
        model.flying((*place, 101.2)),
        velocity=speed,
        rates=rates,
        orientation=Rotation.from_euler("zyx", angles).as_quat(),
    )
    begin.x[state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + 6] = 0.0
    run = rolls(model, 1.0, begin)

    apart = (run.outputs.body_points_down == 0) & (run.outputs.wheel_load == 0.0).all(axis=1)
    left = energy(SCALE, run.x)
    top = energy(SCALE, begin.x[None])[0]
    assert left.max() < top + 1e-3
    free = left[apart]
    assert (free <= np.minimum.accumulate(free) + 0.02).all()
    assert np.isfinite(run.x).all()


def test_the_nearest_point_is_that_of_a_search(
    as_python_nearest: Callable[..., Any],
) -> None:
    """Compare with a minimisation over convex combinations of the corners in the metric."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(5)
    for flatness in (1.0, 0.09, 0.01, 2.0):
        for _ in range(12):
            corners = rng.normal(size=(8, 3))
            found = obstacles_of(Solids(corners, np.array((0, 8))), 1.0, np.zeros(0))
            assert found is not None
            parts = found.parts
            axis = rng.normal(size=3)
            axis /= np.linalg.norm(axis)
            centre = rng.normal(size=3) * 3.0
            metric = np.eye(3) + (1.0 / flatness - 1.0) * np.outer(axis, axis)

            def square(
                weights: Floats,
                corners: Floats = corners,
                centre: Floats = centre,
                metric: Floats = metric,
            ) -> float:
                apart = weights @ corners - centre
                return float(apart @ metric @ apart)

            best = minimize(
                square,
                np.full(8, 0.125),
                method="SLSQP",
                bounds=[(0.0, 1.0)] * 8,
                constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0},
                options={"ftol": 1e-13, "maxiter": 500},
            )
            ball = obstacle_contacts.Ellipsoid(tuple(centre), tuple(axis), flatness, 1e3)
            distance, gradient = as_python_nearest(ball, parts, 0)
            if best.fun < 1e-9:
                assert distance <= 1e-4
                continue
            apart = centre - best.x @ corners
            assert distance == pytest.approx(np.sqrt(best.fun), rel=1e-4)
            assert gradient == pytest.approx(
                metric @ apart / np.sqrt(best.fun), abs=0.02 * np.linalg.norm(gradient)
            )


@pytest.fixture
def as_python_nearest() -> Callable[..., Any]:
    from kernels_as_python import as_python

    from rfly_amphibious.dynamics import obstacle_contacts as contacts
    from rfly_common.kernels import vectors

    return as_python(contacts.nearest, vectors, contacts)


def test_height_above_ground_is_that_above_roofs() -> None:
    """Measure above a gable roof, a floating box and the ground next to them.

    The roof rises from eaves at 2 m to a ridge at 4 m, the box reaches from 6 m to 7 m.
    """
    corners = [
        (x, y, z)
        for x in (-5.0, 5.0)
        for y, z in (
            (-3.0, 0.0),
            (3.0, 0.0),
            (-3.0, 2.0),
            (3.0, 2.0),
            (0.0, 4.0),
        )
    ]
    gable = Solids(np.array(corners), np.array((0, 10)))
    model = AmphibiousModel(SCALE, solids=joined([gable, box(0.0, 0.0, 6.5, (2.0, 2.0, 1.0))]))
    points = np.array(
        [
            (0, 0, 9),
            (0, 0, 5),
            (3, 1.5, 5),
            (3, -2.97, 5),
            (0, 0, 1),
            (7, 0, 5),
            (99, 99, 5),
        ],
        float,
    )
    expected = (9 - 7, 5 - 4, 5 - 3, 5 - 2.02, 0, 5, 5)

    assert model.height_above_ground(points) == pytest.approx(np.array(expected, float), abs=1e-9)

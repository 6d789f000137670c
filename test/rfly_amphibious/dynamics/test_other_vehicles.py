# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Other vehicles as solid things: a truck that stands or comes, an equal vehicle head-on.
docs/model, section 6.2.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from rfly_amphibious.dynamics.model import STILL, AmphibiousModel, Controls, ModelState
from rfly_amphibious.dynamics.stepper import Stepper
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_collision.shapes.shape import Box, Sphere
from rfly_collision.shapes.vehicle_shapes import VehicleShape, VehicleShapes
from rfly_common.arrays import Floats, Ints
from rfly_common.physics import GRAVITY
from rfly_common.vehicle_states import VehicleStates
from rfly_sensing.neighbours import MOST_NEAR, SILENT_S, Neighbours

SCALE = VehicleParameters.load("scale")
STEP = 0.001
TICK = 0.004
OWN = 601
OTHER = 7
ROTOR_NOSE = 0.75 * np.cos(np.pi / 6) + 0.1 * 0.355
"""Distance to the front of a vehicle's foremost rotor hubs, m, by docs/model, section 6.2."""
SHAPES = VehicleShapes(
    (
        VehicleShape("truck", Box((6.0, 8.0, 3.0)), 1.5),
        VehicleShape("vehicle", Box((0.85, 0.6, 0.4)), 0.2),
        VehicleShape("ball", Sphere(1.0)),
    ),
    (
        ((1, 1), 0),
        ((2, 2), 1),
        ((3, 3), 2),
    ),
)


def reported(
    x: float,
    speed: float = 0.0,
    kind: int = 1,
    number: int = OTHER,
    z: float = 1.5,
    yaw_rate: float = 0.0,
) -> VehicleStates:
    return VehicleStates(
        id=np.array([number]),
        vehicle_type=np.array([kind]),
        position=np.array([[x, 0.0, z]]),
        orientation=np.array([[0.0, 0.0, 0.0, 1.0]]),
        velocity=np.array([[speed, 0.0, 0.0]], np.float32),
        angular_velocity=np.array([[0.0, 0.0, yaw_rate]], np.float32),
    )


class Vehicle:
    """One simulation, with the other vehicles that it knows of."""

    def __init__(self, x: float, speed: float, number: int = OWN, yaw: float = 0.0) -> None:
        self.model = AmphibiousModel(SCALE)
        self.others = Neighbours(SHAPES, number)
        self.model.others = partial(self.others.near, None)
        self.number = number
        self.states: list[Floats] = []
        self._stepper = Stepper(
            self.model,
            self.model.standing(x, 0.0, yaw, speed),
            10_000,
            STEP,
            STILL,
            keep_steps=True,
        )

    @property
    def state(self) -> ModelState:
        return self._stepper.state

    def tick(self) -> None:
        self._stepper.advance(Controls(), round(TICK / STEP))
        self.states.append(self._stepper.step_states[0].copy())

    @property
    def track(self) -> Floats:
        return np.concatenate(self.states)


def reported_by(vehicle: Vehicle) -> VehicleStates:
    """Return what its simulation reports, but with the shape that others take it for."""
    state = vehicle.state
    return VehicleStates(
        id=np.array([vehicle.number]),
        vehicle_type=np.array([2]),
        position=state.position[None].copy(),
        orientation=state.orientation[None].copy(),
        velocity=state.velocity[None].astype(np.float32),
    )


def meet_truck(speed: float, truck_speed: float, seconds: float, every: int = 5) -> Floats:
    """Return the track of a vehicle from the origin towards a truck whose front begins at x = 1.5.

    The truck is reported every few ticks.
    """
    vehicle = Vehicle(0.0, speed)
    for tick in range(round(seconds / TICK)):
        if tick % every == 0:
            time = tick * TICK
            vehicle.others.take(reported(4.5 + truck_speed * time, truck_speed), time, 0)
        vehicle.tick()
    return vehicle.track


def test_into_a_standing_truck_at_2_m_s() -> None:
    """It enters less than 2 cm, bounces off without gaining energy, and does not crash."""
    track = meet_truck(2.0, 0.0, 1.2)
    touched = int(np.argmax(track[:, state_layout.VELOCITY] < 1.9))
    reached = track[:, 0] + ROTOR_NOSE

    assert touched > 0
    assert reached.max() < 1.5 + 0.02
    assert -2.0 < track[-1, state_layout.VELOCITY] < 0.0
    energy = 0.5 * (track[:, 3:6] ** 2).sum(axis=1) + GRAVITY * (track[:, 2] - track[0, 2])
    assert energy.max() < 0.5 * 2.0**2 + 0.1  # of the struts, which stretch


def test_a_truck_that_comes_at_5_m_s_pushes() -> None:
    """The truck does not pass through it.

    The vehicle becomes at least as fast as the truck, but no faster than after an elastic push.
    """
    track = meet_truck(0.0, -5.0, 1.5)
    times = STEP * np.arange(1, len(track) + 1)

    side = 1.5 - 5.0 * times
    assert (track[:, 0] + ROTOR_NOSE - side).max() < 0.05
    assert track[:, state_layout.VELOCITY].min() > -10.0
    assert track[-1, state_layout.VELOCITY] < -4.5


@pytest.mark.parametrize("late", [0, 2])
def test_two_equal_vehicles_head_on(late: int) -> None:
    """Vehicles that each calculate their own motion part as mirror images, no faster than they
    came.

    The same holds with states that are 8 ms late.
    """
    one = Vehicle(-1.5, 2.0, 1)
    two = Vehicle(1.5, 2.0, 2, np.pi)
    posts: list[tuple[VehicleStates, VehicleStates]] = []
    for tick in range(250):
        posts.append((reported_by(one), reported_by(two)))
        if tick >= late:
            of_one, of_two = posts[tick - late]
            one.others.take(of_two, tick * TICK, 0, late * TICK)
            two.others.take(of_one, tick * TICK, 0, late * TICK)
        one.tick()
        two.tick()

    mirrored = two.track[:, [0, 3]] * -1.0
    assert one.track[:, [0, 3]] == pytest.approx(mirrored, abs=1e-3)
    assert -2.0 < one.track[-1, state_layout.VELOCITY] < 0.0
    assert one.track[:, 0].max() < 0.0


def crowd(x: Floats, **others: Ints | Floats) -> VehicleStates:
    """Return vehicles that stand in a row on x."""
    n = len(x)
    return VehicleStates(
        id=np.arange(1, n + 1),
        vehicle_type=np.full(n, 2),
        position=np.column_stack([x, np.zeros(n), np.full(n, 0.2)]),
        orientation=np.tile((0.0, 0.0, 0.0, 1.0), (n, 1)),
        **others,  # type: ignore[arg-type]
    )


def test_a_state_is_carried_on_by_velocity_and_yaw_rate() -> None:
    """Use a state that is 0.1 s old when it comes, and 0.2 s older when it is needed.

    After half a second the vehicle stands, after a second it is forgotten.
    """
    others = Neighbours(SHAPES, OWN)
    assert others.take(reported(6.0, -5.0, yaw_rate=0.5), 1.0, 0, 0.1) == {}
    ((_, place, rotation, velocity),) = others.near(None, np.zeros(3), 1.0, 0.5, 1.2)
    assert place == pytest.approx((6.0 - 5.0 * 0.3, 0.0, 1.5))
    expected = (np.cos(0.15), np.sin(0.15), 0.0)
    assert rotation[:, 0] == pytest.approx(expected)
    assert velocity == pytest.approx((-5.0, 0.0, 0.0))

    ((_, place, _, velocity),) = others.near(None, np.zeros(3), 1.0, 0.5, 0.9 + SILENT_S)
    expected = (6.0 - 5.0 * 0.5, 0.0, 1.5, 0.0, 0.0, 0.0)
    assert (*place, *velocity) == pytest.approx(expected)
    assert others.near(None, np.zeros(3), 1.0, 0.5, 0.91 + SILENT_S) == []


def test_old_states_itself_and_what_is_too_fast_are_no_obstacles() -> None:
    others = Neighbours(SHAPES, OWN)
    assert others.take(reported(3.0), 1.0, 0, 0.6) == {"old_states": 1}
    assert others.take(reported(3.0, number=OWN), 1.0, 0) == {}
    assert others.take(reported(3.0, speed=1e30, number=8), 1.0, 0) == {}
    assert others.near(None, np.zeros(3), 1.0, 0.5, 1.0) == []
    assert others.take(reported(4.0), 1.0, 0, 0.01) == {}  # its clock is right again
    assert len(others.near(None, np.zeros(3), 1.0, 0.5, 1.0)) == 1


def test_the_nearest_count_where_there_are_too_many() -> None:
    others = Neighbours(SHAPES, OWN)
    others.take(crowd(np.linspace(3.0, 2.0, MOST_NEAR + 4)), 0.0, 0)
    places = [part[1][0] for part in others.near(None, np.zeros(3), 1.0, 2.0, 0.0)]
    expected = np.linspace(3.0, 2.0, MOST_NEAR + 4)[:3:-1]
    assert places == pytest.approx(expected)
    assert others.left_out == 4


def test_two_at_one_place_pass_through_each_other_until_they_are_apart() -> None:
    others = Neighbours(SHAPES, OWN)
    found = []
    for x in (0.0, 0.6, 1.0, 0.6):  # from its nose: 0, 0.175, 0.575 and again 0.175 m
        others.take(crowd(np.array([x])), 0.0, 0)
        found.append(
            (len(others.near(None, np.array((0.0, 0.0, 0.2)), 1.0, 0.5, 0.0)), others.passed)
        )
    expected = [
        (0, 1),
        (0, 1),
        (1, 0),
        (1, 0),
    ]
    assert found == expected


def test_a_ball_is_round() -> None:
    others = Neighbours(SHAPES, OWN)
    others.take(reported(2.0, kind=3), 0.0, 0)
    ((corners, *_),) = others.near(None, np.zeros(3), 1.0, 0.5, 0.0)
    assert np.linalg.norm(corners, axis=1) == pytest.approx(1.0, abs=0.01)

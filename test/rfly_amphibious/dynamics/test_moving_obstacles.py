# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contact with moving solids: a wall in its own frame, a car that pushes, a platform. docs/model,
section 6.2.
"""

from __future__ import annotations

import numpy as np
import pytest

from rfly_amphibious.dynamics.model import STILL, AmphibiousModel, Controls, ModelState
from rfly_amphibious.dynamics.stepper import Stepper
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.pilot import abort_pilot
from rfly_common.arrays import Floats
from rfly_common.physics import GRAVITY
from rfly_terrain.world.models import box_part, placed_part
from rfly_terrain.world.moving import MovingPath, MovingSolids
from rfly_terrain.world.solids import Solids

SCALE = VehicleParameters.load("scale")
STEP = 0.001


def slab(size: tuple[float, float, float], z: float = 0.0) -> Floats:
    return placed_part(box_part(*size), (0.0, 0.0, z), 0.0)


def driven(
    part: Floats, begin: tuple[float, float, float], end: tuple[float, float, float], speed: float
) -> MovingSolids:
    return MovingSolids((MovingPath(np.array([begin, end]), speed),), ((part,),))


def track(
    model: AmphibiousModel,
    begin: ModelState,
    seconds: float,
    wind: Wind = STILL,
    controls: Controls | None = None,
) -> tuple[Floats, bool]:
    """Return the states (steps, states), in portions of 4 steps as in a simulation, and the crash
    flag.
    """
    steps = round(seconds / STEP)
    stepper = Stepper(model, begin, steps, STEP, wind, keep_steps=True)
    states = []
    for _ in range(steps // 4):
        stepper.advance(controls or Controls(), 4)
        states.append(stepper.step_states[0].copy())
    return np.concatenate(states), bool(stepper.state.crashed)


def test_a_moving_wall_is_a_standing_one_in_its_own_frame() -> None:
    """Strike the vehicle in the air with a wall at 3 m/s.

    It moves like a vehicle that flies into a wall, but for those 3 m/s, and gains no energy in the
    wall's frame.
    """
    part = slab((1.0, 6.0, 20.0))
    speed = 3.0
    model = AmphibiousModel(SCALE, moving=driven(part, (-2.0, 0.4, 0.0), (40.0, 0.4, 0.0), speed))
    begin = model.standing(0.0, 0.0, 0.6)
    begin.x[2] += 9.0
    struck, _ = track(model, begin, 1.0)

    # the same in the wall's frame
    begin.x[3] = -speed
    solids = Solids(part + np.array((-2.0, 0.4, 0.0)), np.array((0, len(part))))
    flown, _ = track(AmphibiousModel(SCALE, solids=solids), begin, 1.0, Wind((-speed, 0.0, 0.0)))

    times = STEP * np.arange(1, len(struck) + 1)
    flown[:, 0] += speed * times
    flown[:, 3] += speed
    assert struck == pytest.approx(flown, abs=1e-9)
    assert struck[-1, 3] > speed

    # the struts stretch, which takes some energy
    relative = struck[:, 3:6] - (speed, 0.0, 0.0)
    energy = 0.5 * (relative**2).sum(axis=1) + GRAVITY * struck[:, 2]
    assert energy.max() <= 0.5 * speed**2 + GRAVITY * begin.x[2] + 0.1
    assert 0.0 < struck[-1, 3] - speed < speed


def test_a_car_pushes_a_standing_vehicle_ahead() -> None:
    """Push a standing vehicle with a car at 2 m/s.

    The car does not pass through it, and the vehicle is never faster than after an elastic push.
    """
    car = slab((4.0, 1.8, 1.4), 0.1)
    speed = 2.0
    model = AmphibiousModel(SCALE, moving=driven(car, (-5.0, 0.0, 0.0), (50.0, 0.0, 0.0), speed))
    x, crashed = track(model, model.standing(), 3.5)
    front = -3.0 + speed * STEP * np.arange(1, len(x) + 1)
    rear = x[:, 0] - 0.425

    assert x[900, 3] == pytest.approx(0.0, abs=1e-3)
    assert x[-1, 0] > 3.0
    assert (rear - front).min() > -0.02 - 0.75  # its rotors' arms reach further back than its body
    assert x[:, 3].max() <= 2.0 * speed
    assert not crashed


def test_it_rides_on_a_moving_platform() -> None:
    """Stand with brakes on a platform that moves at 1 m/s, as on the ground."""
    model = AmphibiousModel(
        SCALE, moving=driven(slab((6.0, 6.0, 1.0)), (0.0, 0.0, 0.0), (9.0, 0.0, 0.0), 1.0)
    )
    begin = model.standing()
    begin.x[2] += 1.0
    begin.x[3] = 1.0
    x, crashed = track(model, begin, 2.0, controls=Controls(brake_torque=5.0))

    assert x[-1, :2] == pytest.approx((2.0, 0.0), abs=0.01)
    assert x[-1, 3:6] == pytest.approx((1.0, 0.0, 0.0), abs=0.01)
    assert not crashed

    model.clock_ahead = 9.5  # by then it has turned back
    expected = np.array([[-1.0, 0.0, 0.0]])
    assert model.obstacles_at(0.0, model.standing(8.5).x, 0.004).velocity == pytest.approx(expected)


def test_sensors_feel_what_carries_the_vehicle() -> None:
    """Ride on a platform that moves evenly.

    The IMU reads gravity upwards and the wheels bear the weight: no free fall.
    """
    model = AmphibiousModel(
        SCALE, moving=driven(slab((6.0, 6.0, 1.0)), (0.0, 0.0, 0.0), (9.0, 0.0, 0.0), 1.0)
    )
    begin = model.standing()
    begin.x[2] += 1.0
    begin.x[3] = 1.0

    simulation = Simulation(
        model,
        SensorParameters.load("scale"),
        begin,
        noise=False,
        command_timeout=9.0,
        fail_safe=abort_pilot,
    )
    sensed = [simulation.tick() for _ in range(250)]
    force = np.concatenate([each.imu.specific_force for each in sensed if each.imu is not None])
    loads = np.concatenate(
        [each.wheel_loads.load for each in sensed if each.wheel_loads is not None]
    )

    assert simulation.state.x[0] == pytest.approx(simulation.time, abs=0.01)
    assert force[-1] == pytest.approx((0.0, 0.0, GRAVITY), abs=0.05)
    assert loads[-1].sum() == pytest.approx(SCALE.mass * GRAVITY, rel=0.01)

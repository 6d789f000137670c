# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Simulation of one vehicle with its sensors: commands, fail-safe, events and reset."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_amphibious.dynamics.model import AmphibiousModel, Controls
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.sensors.sensor_suite import SensorSuite
from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.simulation.events import Gust, RotorFails, SensorOff
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.pilot import abort_pilot
from rfly_common.errors import CommandError, ConfigError
from rfly_terrain.height_map.height_map import HeightMap

PARAMS = VehicleParameters.load("scale")
SENSORS = SensorParameters.load("scale")
WINDY = Wind((2.0, -1.0, 0.0), (0.5, 0.5, 0.2), seed=3)


def make(start=(0.0, 0.0, 0.0), **more) -> Simulation:
    return Simulation(AmphibiousModel(PARAMS), SENSORS, start, fail_safe=abort_pilot, **more)


def hover(simulation: Simulation, share: float = 1.0) -> None:
    speed = PARAMS.hover_speed * math.sqrt(share)
    simulation.command_rotors(RotorCommand(simulation.time, np.full(PARAMS.rotors, speed)))
    simulation.command_wheels(WheelCommand(simulation.time))


def flat(samples) -> list[float]:
    parts = [getattr(samples, name) for name in samples.__dataclass_fields__]
    arrays = [array for part in parts if part is not None for array in part]
    return [float(n) for array in arrays for n in np.ravel(array)]


def test_ticks_are_the_models_own_steps_and_the_suites_own_samples() -> None:
    simulation = make(wind=WINDY, seed=5)
    model = AmphibiousModel(PARAMS)
    suite = SensorSuite(model, SENSORS, seed=5)
    state = model.standing()

    for tick in range(60):
        torque = 4.0 if tick < 30 else -4.0
        wheels = WheelCommand(simulation.time, 0.1, np.full(4, torque))
        rotors = RotorCommand(simulation.time, np.full(PARAMS.rotors, 0.5 * PARAMS.hover_speed))
        assert simulation.command_wheels(wheels)
        assert simulation.command_rotors(rotors)
        controls = Controls(rotor_speed=rotors.value, steering=0.1, drive_torque=torque)
        state, expected = suite.advance(state, controls, 0.004, wind=WINDY)
        assert flat(simulation.tick()) == flat(expected)

    assert simulation.time == pytest.approx(0.24)
    assert np.array_equal(simulation.state.x, state.x)
    assert np.array_equal(simulation.state.memory, state.memory)
    times, x = simulation.step_states
    assert np.allclose(times, (0.237, 0.238, 0.239, 0.24))
    assert np.array_equal(x[-1], state.x)


def test_stands_braked_on_a_slope_until_the_first_command_and_no_fail_safe_acts() -> None:
    heights = np.outer(0.2 * np.linspace(-30.0, 30.0, 61), np.ones(61))
    slope = HeightMap(heights, origin_x=-30.0, origin_y=-30.0, step_x=1.0, step_y=1.0)
    simulation = Simulation(
        AmphibiousModel(PARAMS, slope), SENSORS, (0.0, 0.0, 0.0), fail_safe=abort_pilot
    )
    begin = simulation.state.position.copy()
    for _ in range(125):
        simulation.tick()
    assert not simulation.failsafe
    assert simulation.stale() == []
    # the suspension takes up the load; nothing rolls
    assert np.linalg.norm(simulation.state.position[:2] - begin[:2]) < 0.02

    simulation.command_wheels(WheelCommand(simulation.time))
    for _ in range(45):
        simulation.tick()
    # released, it rolls down: g sin(11.3°) for 0.18 s is 0.35 m/s
    assert simulation.state.velocity[0] < -0.2


@pytest.mark.parametrize("silent", ["rotors", "wheels"])
def test_a_command_older_than_the_timeout_brings_the_fail_safe_at_that_tick(silent: str) -> None:
    simulation = make()
    hover(simulation, 0.1)
    for tick in range(60):
        # the tick that begins at 0.204 s is the first with a command too old
        assert simulation.failsafe == (tick > 51)
        if silent != "rotors":
            simulation.command_rotors(RotorCommand(simulation.time, np.zeros(PARAMS.rotors)))
        if silent != "wheels":
            simulation.command_wheels(WheelCommand(simulation.time))
        simulation.tick()
    assert silent in simulation.stale()[0]
    assert len(simulation.stale()) == 1


def test_fail_safe_sinks_at_half_a_metre_a_second_and_brakes_until_commands_end_it() -> None:
    model = AmphibiousModel(PARAMS)
    flying = model.flying((0.0, 0.0, 2.5), velocity=(1.5, 0.0, 0.0))
    simulation = make(flying, wind=WINDY, noise=False)
    hover(simulation)
    sinking = []
    while simulation.time < 9.0:
        simulation.tick()
        if 3.0 < simulation.time < 4.0:
            sinking.append(-simulation.state.velocity[2])

    assert simulation.failsafe
    assert not simulation.crashed
    assert np.mean(sinking) == pytest.approx(0.5, abs=0.05)
    # braked: the wind does not roll it away
    assert np.linalg.norm(simulation.state.velocity) < 0.02
    assert simulation.state.x[33 : 33 + PARAMS.rotors].max() < 0.05 * PARAMS.hover_speed

    # only fresh commands for both, and a call, end it
    assert "older than 0.2 s" in simulation.end_failsafe()
    assert simulation.failsafe
    simulation.command_rotors(RotorCommand(simulation.time, np.zeros(PARAMS.rotors)))
    assert "wheels" in simulation.end_failsafe()
    assert simulation.failsafe
    simulation.command_wheels(WheelCommand(simulation.time, drive_torque=np.full(4, 5.0)))
    simulation.tick()
    assert simulation.failsafe  # fresh commands alone do not end it
    assert simulation.end_failsafe() == ""
    assert not simulation.failsafe

    for _ in range(25):
        simulation.tick()
    assert simulation.state.velocity[0] > 0.05


def test_older_commands_are_dropped_and_what_cannot_be_is_refused() -> None:
    simulation = make()
    for _ in range(10):
        simulation.tick()
    six = np.full(PARAMS.rotors, 10.0)
    assert simulation.command_rotors(RotorCommand(0.02, six))
    assert not simulation.command_rotors(RotorCommand(0.016, six))
    assert simulation.dropped == 1
    assert simulation.command_rotors(RotorCommand(0.02, six))
    assert simulation.command_rotors(RotorCommand(0.04, six))

    with pytest.raises(CommandError, match=r"0\.044 s, the simulation's time 0\.04 s"):
        simulation.command_rotors(RotorCommand(0.044, six))
    with pytest.raises(CommandError, match="4 values, expected one for each of the 6 rotors"):
        simulation.command_rotors(RotorCommand(0.04, six[:4]))
    with pytest.raises(CommandError, match="brake_torque"):
        simulation.command_wheels(WheelCommand(0.04, brake_torque=np.array((0.0, -1.0, 0.0, 0.0))))

    simulation.reset()
    with pytest.raises(CommandError, match="stamp"):  # what is still on its way from before
        simulation.command_rotors(RotorCommand(0.04, six))


def test_reset_gives_the_same_run_again_and_its_scopes_touch_nothing_else() -> None:
    simulation = make(
        wind=WINDY, seed=2, events=(RotorFails(0.02, 0), SensorOff(0.01, "imu", 0.05))
    )

    first = []
    for _ in range(40):
        hover(simulation, 0.5)
        first.append(flat(simulation.tick()))
    end = simulation.state.x.copy()

    simulation.reset(time=False)
    assert simulation.time == pytest.approx(0.16)
    assert np.array_equal(simulation.state.x, simulation.start.x)
    simulation.tick()

    simulation.reset()
    assert simulation.time == 0.0
    assert simulation.failed_rotors == ()
    for expected in first:
        hover(simulation, 0.5)
        assert flat(simulation.tick()) == expected
    assert np.array_equal(simulation.state.x, end)

    simulation.reset(state=False)
    assert simulation.time == 0.0
    assert np.array_equal(simulation.state.x, end)


def test_events_of_a_scenario_happen_at_their_times() -> None:
    scenario = Scenario(
        "events",
        PARAMS,
        (),
        events=(
            Gust(0.1, (0.0, 4.0, 0.0), 0.2),
            RotorFails(0.1, 1),
            SensorOff(0.2, "imu", 0.1),
        ),
    )
    simulation = scenario.simulation(SENSORS, noise=False, fail_safe=abort_pilot)

    winds = {}
    imu = []
    for _ in range(100):
        hover(simulation, 0.5)
        samples = simulation.tick()
        if samples.wind is not None:
            winds[round(float(samples.wind.time[0]), 3)] = samples.wind.velocity[0].tolist()
        imu += [] if samples.imu is None else samples.imu.time.tolist()
    # ½ (1 − cos) has its peak in the middle; the wind of a tick is that of its beginning, at 0.196
    # s
    assert winds[0.1] == [0.0, 0.0, 0.0]
    assert winds[0.4] == [0.0, 0.0, 0.0]
    expected = 4.0 * 0.5 * (1.0 - math.cos(math.tau * 0.096 / 0.2))
    assert winds[0.2][1] == pytest.approx(expected)
    assert not [t for t in imu if 0.2 < t < 0.3001]
    assert len(imu) == 100 - 25

    spins = simulation.state.x[33 : 33 + PARAMS.rotors]
    assert spins[1] < 0.05 * spins[0]
    with pytest.raises(ConfigError, match="lidar"):
        make(events=(SensorOff(0.0, "lidar"),))


def test_set_pose_moves_it_there_with_rolling_wheels_and_forgets_a_crash() -> None:
    simulation = make()
    simulation.set_pose((0.0, 0.0, 0.5), (1.0, 0.0, 0.0, 0.0))  # on its back
    for _ in range(375):
        simulation.tick()
    assert simulation.crashed

    half = math.sqrt(0.5)
    height = PARAMS.origin_height
    simulation.set_pose(
        (5.0, 6.0, height),
        (0.0, 0.0, half, half),
        (0.0, 2.0, 0.0),
    )
    time = simulation.time
    for _ in range(5):
        simulation.command_wheels(WheelCommand(simulation.time))
        simulation.tick()
    assert not simulation.crashed
    assert simulation.time == pytest.approx(time + 0.02)
    assert simulation.state.position == pytest.approx((5.0, 6.04, height), abs=0.01)
    assert simulation.state.velocity[1] == pytest.approx(2.0, abs=0.05)  # no wheel drags

    with pytest.raises(ConfigError, match="length 2"):
        simulation.set_pose((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 2.0))
    with pytest.raises(ConfigError, match="position"):
        simulation.set_pose((math.nan, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))

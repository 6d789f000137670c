# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The touch-down detector, cue by cue, the loads that struts show, and the trust in estimates."""

from __future__ import annotations

import itertools
import math
from collections import deque

import numpy as np
import pytest

from rfly_amphibious.dynamics.model import AmphibiousModel
from rfly_amphibious.sensors.samples import (
    HeightSamples,
    ImuSamples,
    SensorSamples,
    WheelLoadSamples,
)
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.flight_controller import FlightController
from rfly_autonomy.control.modes import ModeInputs, ModeLogic
from rfly_autonomy.control.touch_down import Cue, TouchDown
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.trust import EstimateTrust, Trust, TrustLimits
from rfly_autonomy.estimation.wheel_contact import WheelContact, loads_of_struts
from rfly_common.errors import ConfigError
from rfly_common.physics import GRAVITY as G

STATES = (True, False, None)
TICK = 0.01


def touched(seconds, share=0.8, **states):
    """Return whether a detector with constant cues has seen a touch-down.

    `share`: thrust over that in hover.
    """
    touch_down = TouchDown()
    cues = {cue: states.get(cue.value) for cue in Cue}
    for _ in range(1 + round(seconds / TICK)):
        touch_down.update(dict(cues), share, TICK)
    return touch_down.touched


@pytest.mark.parametrize(("height", "loads", "struts"), list(itertools.product(STATES, repeat=3)))
def test_an_unknown_cue_counts_as_fulfilled_and_a_false_one_does_not(height, loads, struts):
    known = [state for state in (height, loads, struts) if state is not None]
    ground = {"height": height, "loads": loads, "struts": struts}
    assert touched(0.06, sink=True, thrust=True, **ground) == (bool(known) and all(known))
    assert not touched(1.0, sink=False, thrust=True, **ground)
    assert not touched(1.0, sink=True, thrust=False, share=0.95, **ground)


def test_agreeing_cues_have_to_last_and_some_sensor_has_to_know_the_ground():
    known = {"sink": True, "thrust": True, "loads": True}
    assert not touched(0.04, **known)
    assert touched(0.05, **known)
    assert not touched(0.2, sink=True, thrust=True)


def test_one_update_after_a_long_gap_shows_nothing():
    """Samples that come late make one step longer than all the time that a cue has to last."""
    touch_down = TouchDown()
    for time in range(3):
        touch_down.update(dict.fromkeys(Cue, time == 1), 0.4, 10.0)
        assert not touch_down.touched


def test_half_the_thrust_without_sinking_overrules_sensors_that_lie():
    lying = {"sink": True, "thrust": True, "height": False, "loads": False, "struts": False}
    assert not touched(2.0, share=0.6, **lying)
    assert not touched(0.29, share=0.5, **lying)
    assert touched(0.3, share=0.5, **lying)
    assert not touched(2.0, share=0.5, **{**lying, "sink": False})


@pytest.mark.parametrize(("climb", "after"), [(0.0, Mode.SPOOL_DOWN), (3.0, Mode.LAND)])
def test_a_climb_that_a_landing_ends_is_no_touch_down(climb, after):
    """A vehicle that climbs at 3 m/s goes on doing so for 0.4 s at 0.3 of its thrust."""
    logic = ModeLogic(Mode.LAND)
    high = ModeInputs(0, 0.0, 20.0, climb, 0.0, climb=climb, thrust=0.3)
    for _ in range(40):
        logic.update(high, TICK)
    assert logic.mode is after


@pytest.mark.parametrize("seed", range(4))
def test_a_landing_on_a_starved_machine_touches_nothing_in_the_air(seed):
    """Samples at 5 m come in steps of up to 90 ms, late, and most of the ground's are lost.

    A gust jolts the vehicle upwards meanwhile. Before, 67 ms after the begin of a landing it had
    "touched the ground" by that jolt, because no sensor of the ground was heard.
    """
    random = np.random.default_rng(seed)
    p = VehicleParameters.load("scale")
    flight = FlightController(p)
    speeds = np.full(6, p.hover_speed)
    time = 1.0
    height = 5.0
    climb = 0.0
    late = deque([(time, height, climb)], maxlen=2)

    while time < 5.0 and height > 0.3:
        dt = random.uniform(0.004, 0.09)
        time += dt
        landing = flight.mode is Mode.LAND

        # it moves by the command of the last step, and by a jolt
        force = p.thrust_coefficient * float(np.square(speeds).sum()) / p.mass
        force += 0.4 * G if landing and random.random() < 0.3 else 0.0
        climb += dt * (force - G)
        height += dt * climb
        late.append((time, height, climb))

        # samples, of the ground few
        heard = random.random() < 0.02
        flight.sense(
            SensorSamples(
                imu=ImuSamples(
                    np.array([time]),
                    np.array([[0.0, 0.0, force]]),
                    np.zeros((1, 3)),
                    np.array([[0.0, 0.0, 0.0, 1.0]]),
                ),
                height=HeightSamples(np.array([time]), np.array([height])) if heard else None,
                wheel_loads=(
                    WheelLoadSamples(np.array([time]), np.zeros((1, 4))) if heard else None
                ),
            )
        )
        stamp, z, vz = late[0]
        place = np.array((0.0, 0.0, z + 0.22))
        velocity = np.array((0.0, 0.0, vz))
        estimate = Estimate(stamp, place, np.array((0, 0, 0, 1.0)), velocity, np.zeros(3))
        if flight.mode is Mode.DISARMED:
            flight.logic.mode = Mode.FLIGHT
        speeds = flight.step(estimate, dt).value
        if flight.mode is Mode.FLIGHT and time > 1.5:
            assert flight.request("land") == ""
        assert flight.mode in (Mode.FLIGHT, Mode.LAND), f"{flight.reason} at {height:.2f} m"

    assert landing


@pytest.mark.parametrize(
    ("mode", "upward", "share", "strut_share", "after"),
    [
        (Mode.ROLLING_LAND, 0.0, 0.5, 0.5, Mode.ROLL_OUT),
        (Mode.ROLLING_LAND, 0.0, 0.5, math.nan, Mode.ROLL_OUT),
        (Mode.ROLLING_LAND, -0.21, 0.5, 0.5, Mode.ROLLING_LAND),  # it sinks along its own axis
        (Mode.ROLLING_LAND, 0.0, 0.5, 0.0, Mode.ROLLING_LAND),  # load cells lie
        (Mode.ROLLING_LAND, 0.0, 0.0, 0.0, Mode.ROLLING_LAND),
        (Mode.LAND, 0.0, 0.5, 0.5, Mode.LAND),
    ],
)
def test_wheels_that_roll_downhill_have_touched_down(mode, upward, share, strut_share, after):
    """The vehicle sinks by 0.21 m/s at 3 m/s on 4°, and not at all across the ground."""
    logic = ModeLogic(mode)
    wheels = 4 if share else 0
    now = ModeInputs(
        wheels,
        share,
        0.0,
        3.0,
        0.0,
        climb=-0.21,
        thrust=0.6,
        strut_share=strut_share,
        forward=3.0,
        upward=upward,
    )
    for _ in range(60):
        logic.update(now, TICK)

    assert logic.mode is after


def test_load_cells_that_stick_at_full_load_do_not_end_a_flight():
    """These loads alone once switched the rotors off at 20 m, sinking at 0.5 m/s."""
    logic = ModeLogic(Mode.LAND)
    high = ModeInputs(4, 1.0, 20.0, 0.5, 0.0, climb=-0.5, thrust=1.0)
    for _ in range(100):
        assert logic.update(high, TICK) is Mode.LAND


@pytest.mark.parametrize(
    ("now", "after", "seconds"),
    [
        # load cells stick at nothing: struts and height know better
        (ModeInputs(0, 0.0, 0.0, 0.0, 0.0, strut_share=1.0), Mode.DRIVE, 4.0),
        # no sensor of the ground
        (ModeInputs(math.nan, math.nan, 0.0, 0.0, 0.0, clearance_measured=False), Mode.DRIVE, 1.5),
        (
            ModeInputs(math.nan, math.nan, 3.0, 1.0, 0.0, climb=-1.0, clearance_measured=False),
            Mode.LAND,
            0.1,
        ),
    ],
)
def test_spooling_down_with_sensors_that_lie_or_without(now, after, seconds):
    logic = ModeLogic(Mode.SPOOL_DOWN)
    time = 0.0
    while logic.mode is Mode.SPOOL_DOWN and time < 10.0:
        logic.update(now, TICK)
        time += TICK
    assert logic.mode is after
    assert time == pytest.approx(seconds, abs=0.02)


@pytest.mark.parametrize("name", ["scale", "full", "scale_six"])
def test_loads_by_the_struts_are_those_of_the_model(name):
    """Standing, and hanging in the air: the static loads, and none."""
    p = VehicleParameters.load(name)
    model = AmphibiousModel(p)
    state = model.standing()
    still = np.zeros(len(p.wheels))
    struts = state.x[13 : 13 + len(p.wheels)]
    loads = np.asarray(model.outputs(state).wheel_load)
    assert loads_of_struts(p, struts, still) == pytest.approx(loads, rel=2e-3)
    assert not loads_of_struts(p, p.hanging_strut, still).any()


def test_loads_of_cells_count_until_they_are_old():
    p = VehicleParameters.load("scale")
    contact = WheelContact(p)
    assert contact.loads(0.0) is None
    contact.sense(
        SensorSamples(wheel_loads=WheelLoadSamples(np.array([1.0]), np.full((1, 4), 70.0)))
    )
    assert contact.loads(1.25) == pytest.approx(70.0)
    assert contact.loads(1.26) is None


def uncertain(position, speed, vertical=0.0, time=0.0):
    covariance = np.diag(np.square((position, 0.1, 50.0, speed, 0.0, vertical, 0.0, 0.0, 0.0)))
    zero = np.zeros(3)
    return Estimate(time, zero, np.array((0, 0, 0, 1.0)), zero, zero, covariance)


def test_levels_of_trust():
    """The defaults are 5, 15, 40 and 100 m, 0.5, 1, 2 and 4 m/s; back below 80 % of a limit."""
    trust = EstimateTrust()
    for second, (position, speed, level) in enumerate(
        (
            (4.9, 0.49, Trust.GOOD),
            (5.0, 0.0, Trust.WARN),
            (16.0, 0.0, Trust.SLOW),
            (14.0, 0.0, Trust.SLOW),
            (11.9, 0.0, Trust.WARN),
            (0.0, 2.0, Trust.STOP),
            (100.0, 0.0, Trust.LOST),
            (0.0, 0.0, Trust.GOOD),
        )
    ):
        assert trust.update(uncertain(position, speed, time=second)) is level

    assert trust.update(uncertain(0.0, 0.0, vertical=1.0)) is Trust.STOP, "counts twice"
    assert trust.update(uncertain(0.0, 0.0)._replace(covariance=None)) is Trust.GOOD


def test_trust_that_each_fix_improves_for_a_moment_stays_where_it_was():
    """The speed grows to 2.1 m/s between fixes that make it 1.5 m/s; STOP begins at 2 m/s."""
    trust = EstimateTrust()
    levels = []
    for tick in range(400):
        time = 0.01 * tick
        grows = time < 2.0
        speed = 1.5 + 0.06 * (tick % 10) if grows else 1.5
        levels.append(trust.update(uncertain(0.0, speed, time=time)))

    assert levels[:10] == [Trust.SLOW] * 9 + [Trust.STOP]
    # the last one of 2 m/s and more is that of 1.99 s
    assert set(levels[9:299]) == {Trust.STOP}
    assert set(levels[300:]) == {Trust.SLOW}


@pytest.mark.parametrize("limits", [(1.0, 2.0, 3.0), (1.0, 3.0, 2.0, 4.0), (1, 2, 3, math.inf)])
def test_limits_of_trust_have_to_rise(limits):
    with pytest.raises(ConfigError, match=r"uncertain_speed: .* expected four numbers that rise"):
        TrustLimits(speed=limits)

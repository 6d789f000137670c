# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The mode table, the requests, and the flight computer's use of sensors."""

import dataclasses
import math

import numpy as np
import pytest
from control_rig import Rig

from rfly_amphibious.sensors.samples import (
    HeightSamples,
    ImuSamples,
    JointSamples,
    SensorSamples,
    WheelLoadSamples,
)
from rfly_amphibious.sensors.sensor_parameters import Imu, SensorParameters
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.attitude_controller import Mixer
from rfly_autonomy.control.axle_lift import LOWERED, PITCH_RATE, Assist
from rfly_autonomy.control.flight_controller import (
    COMMAND_TIMEOUT,
    ESTIMATE_TIMEOUT,
    IMU_TIMEOUT,
    WORDS,
    FlightController,
)
from rfly_autonomy.control.modes import ModeInputs, ModeLogic
from rfly_autonomy.estimation.clearance import Clearance
from rfly_autonomy.estimation.dead_reckoning import DeadReckoning
from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.errors import CommandError, ConfigError
from rfly_common.frames import euler_to_quat, rotation_matrix

G = 9.80665
D, R, T, F, L, S, A, RT, RL, RO = Mode
STANDING = ModeInputs(4, 1.0, 0.0, 0.0, 0.0)
FLYING = ModeInputs(0, 0.0, 2.0, 0.1, 0.0)
ROLLING = ModeInputs(4, 1.0, 0.0, 3.0, 0.0, forward=3.0)
GLIDING = ModeInputs(0, 0.0, 2.0, 3.0, 0.0, forward=3.0)


@pytest.mark.parametrize("begin", Mode)
@pytest.mark.parametrize("wanted", Mode)
def test_every_pair_of_modes(begin, wanted):
    """The table of docs/model, section 9, written by hand, on the ground and in the air.

    S and RO come without a request, but S for what stands and is to land out of a flight.
    """
    always = {(D, R), (R, D), (T, L), (RT, L), (F, L), (RL, L)}
    ground = always | {(A, R)}
    air = always | {(L, F), (RL, F)}  # a take-off's own conditions are another matter
    for now, allowed in (
        (STANDING, ground | {(R, T)}),
        (FLYING, air | {(R, T)}),
        (ROLLING, ground | {(R, RT), (F, RL)}),
        (GLIDING, air | {(R, RT), (F, RL)}),
    ):
        logic = ModeLogic(begin)
        logic.contact.update(now.wheels_down, now.load_share, 1.0)
        refusal = logic.request(wanted, now)
        taken = (begin, wanted) in allowed or begin is wanted or (wanted is A and begin is not D)
        assert (refusal == "") == taken, refusal
        stands = (begin, wanted) == (F, L) and now.load_share > 0.3
        assert logic.mode is (S if stands else wanted if taken else begin)


@pytest.mark.parametrize(
    ("mode", "now", "seconds", "after", "not_before"),
    [
        (T, FLYING, 0.4, F, 0.2),
        (T, ModeInputs(0, 0.0, 0.4, 0.5, 0.0), 1.0, T, None),
        (T, ModeInputs(1, 0.1, 0.6, 0.5, 0.0), 1.0, T, None),
        (T, ModeInputs(4, 0.7, 0.6, 0.5, 0.0, strut_share=0.0), 0.4, F, 0.2),
        (T, ModeInputs(4, 0.7, 0.6, 0.5, 0.0, strut_share=1.0, risen=0.9), 1.0, T, None),
        (T, ModeInputs(4, 0.7, 1.1, 0.5, 0.0, strut_share=1.0, risen=1.1), 0.4, F, 0.2),
        (T, ModeInputs(0, 0.0, -7.0, 0.5, 0.0, risen=1.1), 0.4, F, 0.2),
        (T, ModeInputs(4, 1.0, -7.0, 0.5, 0.0, risen=1.1), 1.0, T, None),
        (L, ModeInputs(4, 0.5, 0.0, 0.3, 0.0), 0.2, S, 0.05),
        (L, ModeInputs(1, 0.04, 0.0, 0.3, 0.0), 0.25, L, None),
        (S, STANDING, 2.0, R, 1.5),
        (S, ModeInputs(4, 0.9, 0.0, 0.0, 0.0), 3.0, S, None),
        (S, ModeInputs(0, 0.0, 0.05, 0.2, 0.0), 0.3, L, 0.1),
        (RT, FLYING, 0.4, F, 0.2),
        (RT, ROLLING, 1.0, RT, None),
        (RL, ModeInputs(4, 0.5, 0.0, 3.0, 0.0, forward=3.0), 0.2, RO, 0.05),
        (RO, ROLLING, 2.0, R, 1.5),
        (RO, ModeInputs(0, 0.0, 0.05, 3.0, 0.0, forward=3.0), 0.3, RL, 0.1),
    ],
)
def test_transitions_that_come_by_themselves(mode, now, seconds, after, not_before):
    logic = ModeLogic(mode)
    time = 0.0
    logic.contact.update(now.wheels_down, now.load_share, 1.0)
    while time < seconds and logic.mode is mode:
        logic.update(now, 0.004)
        time += 0.004
    assert logic.mode is after
    if not_before is not None:
        assert not_before - 1e-9 <= time <= not_before + 0.01


def test_take_off_on_the_limit_of_speed_and_slope():
    for speed, slope, taken in (
        (0.29, 9.9, True),
        (0.31, 0.0, False),
        (0.0, 10.1, False),
    ):
        logic = ModeLogic(R)
        refusal = logic.request(T, ModeInputs(4, 1.0, 0.0, speed, math.radians(slope)))
        assert (refusal == "") is taken


@pytest.mark.parametrize(
    ("strut_share", "clearance", "risen", "after"),
    [
        (0.7, 0.0, 0.0, S),
        (math.nan, 0.0, math.nan, S),
        (0.0, 0.0, 0.0, L),
        (0.7, 2.0, 2.0, L),
        (math.nan, 2.0, math.nan, L),
        (0.7, 2.0, 0.0, S),
    ],
    ids=["stands", "no struts", "struts hang", "high", "high, no struts", "height lies"],
)
def test_load_cells_alone_stop_no_rotors(strut_share, clearance, risen, after):
    """The cells show 50 N each of 294 N / 4 to a flight that is to land."""
    logic = ModeLogic(F)
    now = ModeInputs(4, 0.68, clearance, 0.0, 0.0, strut_share=strut_share, risen=risen)
    logic.update(now, 0.004)
    assert logic.request(L, now) == ""
    assert logic.mode is after


@pytest.mark.parametrize(
    ("forward", "shares", "refused"),
    [
        (1.21, (0.0, 0.0), ""),
        (1.19, (0.0, 0.0), "it rolls at 1.19 m/s, expected 1.2 m/s or more"),
        (3.0, (0.14, 0.29), ""),
        (3.0, (-0.16, 0.31), "it moves aside at {:.2f} m/s, its wheels roll forward"),
        (-3.0, (0.0, 0.0), "it rolls at -3.00 m/s, expected 1.2 m/s or more"),
    ],
)
def test_wheels_take_off_and_land_rolling_only_along_themselves(forward, shares, refused):
    """The speed aside is at most 0.15 of all for a take-off, 0.3 for a landing."""
    for mode, wanted, share in ((R, RT, shares[0]), (F, RL, shares[1])):
        aside = share * forward
        now = ModeInputs(4, 1.0, 0.0, abs(forward), 0.0, forward=forward, aside=aside)
        assert ModeLogic(mode).request(wanted, now) == refused.format(abs(aside))


@pytest.mark.parametrize(("speed", "after"), [(1.51, RT), (1.49, RO)])
def test_a_rolling_take_off_at_less_than_half_its_speed_stays_on_the_ground(speed, after):
    logic = ModeLogic(R)
    logic.update(ROLLING, 0.01)
    assert logic.request(RT, ROLLING) == ""
    assert logic.update(ModeInputs(4, 0.6, 0.0, speed, 0.0, forward=speed), 0.01) is after


def make(name="scale"):
    return FlightController(VehicleParameters.load(name))


def feed(flight, time, loads=73.5, height=0.14, position=(0.0, 0.0, 0.22), rates=(0.0, 0.0, 0.0)):
    flight.sense(
        SensorSamples(
            imu=ImuSamples(
                np.array([time]),
                np.array([[0, 0, G]]),
                np.array([rates]),
                np.array([[0, 0, 0, 1.0]]),
            ),
            height=HeightSamples(np.array([time]), np.array([height])),
            wheel_loads=WheelLoadSamples(np.array([time]), np.full((1, 4), loads)),
        )
    )

    estimate = Estimate(
        time, np.array(position), np.array((0, 0, 0, 1.0)), np.zeros(3), np.array(rates)
    )
    return flight.step(estimate, 0.004)


def test_words_and_why_they_are_refused():
    flight = make()
    assert flight.request("arm") == ("nothing is known of the vehicle yet: no estimate")
    assert feed(flight, 0.004).value.tolist() == [0.0] * 6

    words = ["arm", "disarm", "drive", "takeoff", "fly", "land", "abort"]
    assert list(WORDS) == [*words, "rolling_takeoff", "rolling_land"]
    with pytest.raises(CommandError, match="request: 'hover', expected one of arm, disarm, drive"):
        flight.request("hover")

    # disarmed
    assert flight.request("drive") == "it is disarmed: arm it first"
    assert flight.request("abort") == "it is disarmed, there is nothing to abort"
    assert flight.request("land") == (
        "cannot go from DISARMED to LAND; allowed from FLIGHT or TAKEOFF or ROLLING_TAKEOFF or "
        "ROLLING_LAND"
    )

    # armed
    assert flight.request("arm") == flight.request("drive") == ""
    assert flight.request("fly") == (
        "cannot go from DRIVE to FLIGHT; allowed from LAND or ROLLING_LAND"
    )

    # with a failed rotor
    flight.lose_rotor(1)
    assert flight.request("takeoff") == "rotor 2 failed"
    assert flight.mode is R
    assert flight.request("disarm") == ""
    assert flight.request("arm") == flight.request("takeoff") == ""


def test_a_vehicle_whose_wheels_get_no_power_takes_off_nowhere():
    flight = make()
    feed(flight, 0.004)
    assert flight.request("arm") == ""
    flight.no_power = "the battery is dead"
    assert flight.request("takeoff") == flight.request("rolling_takeoff") == "the battery is dead"
    assert flight.mode is R
    flight.no_power = ""
    assert flight.request("takeoff") == ""


def test_bad_set_points_and_parameters():
    flight = make()
    with pytest.raises(CommandError, match="position"):
        flight.set_target((0.0, math.nan, 1.0))
    with pytest.raises(CommandError, match="yaw"):
        flight.set_target((0.0, 0.0, 1.0), yaw=math.inf)
    with pytest.raises(CommandError, match="velocity"):
        flight.set_velocity((0.0, 0.0))
    with pytest.raises(ConfigError, match="delay"):
        FlightController(flight.params, delay=-0.1)
    with pytest.raises(ConfigError, match="flying takes an imu"):
        FlightController(flight.params, SensorParameters.load("scale").replace(imu=None))


def test_delay_slows_the_attitude_loop():
    """The frequencies are min(7, 0.45 / (0.06 + delay)) and min(3, 0.45 / (0.12 + delay))."""
    for name, delay, expected in (
        ("scale", 0.0, 7.0),
        ("scale", 0.02, 5.625),
        ("full", 0.02, 3.0),
        ("full", 0.1, 2.0455),
    ):
        flight = FlightController(VehicleParameters.load(name), delay=delay)
        flight.reset()
        assert flight.attitude_loop.frequency == pytest.approx(
            expected * np.array((1, 1, 0.4)), rel=1e-4
        )


def test_clearance_of_a_tilted_vehicle_with_noise():
    """The lower wheels hang while the vehicle is rolled by 0.2 rad.

    Readings are smoothed to less than half their noise, without lag.
    """
    p = VehicleParameters.load("scale")
    sensor = SensorParameters.load("scale").height
    clearance = Clearance(p, sensor)
    random = np.random.default_rng(1)

    # noise
    estimated = []
    truth = []
    for k in range(2000):
        height = 2.0 + 0.5 * k * 0.004
        noisy = height + random.normal(0.0, 0.02)
        clearance.go_on(0.5, 0.0, 0.004)
        if k % 5 == 0:
            clearance.sense(HeightSamples(np.array([0.0]), np.array([noisy])), None)
        estimated.append(clearance.height)
        truth.append(height)

    error = np.subtract(estimated, truth)[50:]
    assert error.std() < 0.01
    assert abs(error.mean()) < 0.004

    # a rolled vehicle
    clearance.height = 1.0
    c = math.cos(0.2)
    s = math.sin(0.2)
    rolled = np.array(
        (
            (1, 0, 0),
            (0, c, -s),
            (0, s, c),
        )
    )
    low = [
        c * (hub[2] + p.hanging_strut[i] + 0.08) + s * hub[1]
        for i, hub in enumerate(p.hub_position)
    ]
    assert clearance.lowest_wheel(rolled) == pytest.approx(
        1.0 + min(low) - p.wheel_radius, abs=1e-12
    )

    # readings beyond the sensor's range
    clearance.sense(HeightSamples(np.array([0.0]), np.array([math.inf])), None)
    assert clearance.lowest_wheel(rolled) == math.inf
    clearance.sense(HeightSamples(np.array([0.0]), np.array([-math.inf])), None)
    assert clearance.height == sensor.min_range


def clearance_along(readings, climb, speed=0.0):
    """Return whether the clearance counts as measured at each reading, 50 a second."""
    clearance = Clearance(VehicleParameters.load("scale"), SensorParameters.load("scale").height)
    measured = []
    for k, reading in enumerate(readings):
        time = 0.02 * k
        clearance.sense(HeightSamples(np.array([time]), np.array([reading])), None)
        measured.append(clearance.measured(time))
        for _ in range(5):
            clearance.go_on(climb, speed, 0.004)
    return measured


def test_a_height_that_does_not_grow_in_a_climb_counts_no_more():
    """The lag is 0.75 m (1 - exp(-t)) after t seconds at 0.75 m/s: 0.5 m after 1.1 s."""
    noise = 0.01 * np.random.default_rng(1).standard_normal(200)
    measured = clearance_along(0.5 + noise, 0.75)
    assert 0.02 * measured.index(False) == pytest.approx(math.log(3.0), abs=0.1)
    assert not any(measured[measured.index(False) :])
    assert all(clearance_along(0.5 + noise + 0.015 * np.arange(200), 0.75))


@pytest.mark.parametrize(("bias", "counts"), [(0.4, True), (0.6, False), (-0.6, False)])
def test_a_height_that_does_not_fit_the_ground_below_a_vehicle_counts_for_nothing(bias, counts):
    """A height 6.8 m too great let it sink at 1.5 m/s to the ground. It may be right again."""
    clearance = Clearance(VehicleParameters.load("scale"), SensorParameters.load("scale").height)
    right = -clearance._lowest_tread(np.eye(3)) + clearance._place[2]

    def stand(begin, reading):
        for k in range(50):
            time = begin + 0.02 * k
            clearance.sense(HeightSamples(np.array([time]), np.array([reading])), None)
            clearance.stand(0.22, np.eye(3))
        return clearance.measured(time)

    assert stand(0.0, right)
    assert stand(1.0, right + bias) is counts
    assert stand(2.0, right)


def test_a_vehicle_that_rises_while_its_load_cells_lie_leaves_the_ground_and_keeps_its_height():
    """The ground rose with it, so that a take-off climbed for ever."""
    clearance = Clearance(VehicleParameters.load("scale"), SensorParameters.load("scale").height)
    right = -clearance._lowest_tread(np.eye(3)) + clearance._place[2]
    for k in range(200):
        risen = max(0.0, 0.02 * (k - 50))
        height = HeightSamples(np.array([0.02 * k]), np.array([right + risen]))
        clearance.sense(height, None)
        clearance.go_on(1.0 if risen else 0.0, 0.0, 0.02)
        if k < 50:
            clearance.stand(0.22, np.eye(3))
        else:
            clearance.judge(0.22 + risen, np.eye(3))
    assert clearance.above_last_ground(0.22 + risen, np.eye(3)) == pytest.approx(2.98)
    assert clearance.measured(3.98)


def test_a_height_counts_again_after_a_metre_without_a_lag():
    """The lag is 0.65 m after 2 s; it is below 0.25 m 0.95 s later, and then the way counts."""
    readings = 0.5 + 0.015 * np.maximum(np.arange(300) - 100, 0)
    measured = clearance_along(readings, 0.75)
    again = 0.02 * (300 - measured[::-1].index(False))
    assert again == pytest.approx(2.0 + math.log(0.65 / 0.25) + 1.0 / 0.75, abs=0.1)
    assert measured[-1]


def test_an_edge_below_and_slopes_ahead_are_no_contradiction():
    assert all(clearance_along(np.repeat((5.0, 2.0, 5.0), 100), 0.0))
    assert all(clearance_along(5.0 - 0.02 * np.arange(100) * 0.2 * 3.0, 0.0, speed=3.0))


def test_the_slope_of_the_ground_is_not_that_of_a_body_on_springs():
    """The body leans atan(0.01 / L) more than the ground.

    The front struts are 5 mm in, the rear ones 5 mm out.
    """
    p = VehicleParameters.load("scale")
    clearance = Clearance(p, SensorParameters.load("scale").height)
    clearance._strut = np.array((-0.005, -0.005, 0.005, 0.005))
    lean = math.radians(8.0) + math.atan(0.01 / p.wheelbase)
    c = math.cos(lean)
    s = math.sin(lean)
    nose_up = np.array(
        (
            (c, 0, -s),
            (0, 1, 0),
            (s, 0, c),
        )
    )
    assert clearance.ground_slope(nose_up, p.static_load) == pytest.approx(
        math.radians(8.0), abs=1e-9
    )

    clearance._strut = np.array((1e200, 0.0, 0.0, 0.0))  # as odd joint states have it
    assert 0.0 <= clearance.ground_slope(nose_up, p.static_load) <= math.pi


def test_dead_reckoning_of_a_turning_climb():
    """A constant turn about z with a constant acceleration in the body, against the integral by
    hand.

    The IMU is askew and biased.
    """
    mounting = (0.3, -0.2, 1.0)
    way = DeadReckoning(Imu(rate=250.0, noise=None, rotation=mounting))
    askew = rotation_matrix(euler_to_quat(mounting)).T
    rate = 0.8
    push = 1.5
    bias = np.array((0.01, -0.02, 0.03))
    time = np.arange(0.0, 1.0001, 0.004)

    # samples of the IMU
    force = np.tile(askew @ (push, 0.0, G + 0.5), (len(time), 1))
    gyro = np.tile(askew @ np.add(bias, (0.0, 0.0, rate)), (len(time), 1))
    way.sense(ImuSamples(time[:50], force[:50], gyro[:50], np.zeros((50, 4))))
    way.correct(
        Estimate(
            0.0, np.zeros(3), np.array((0, 0, 0, 1.0)), np.zeros(3), np.array((0.0, 0.0, rate))
        )
    )
    way.sense(ImuSamples(time[50:], force[50:], gyro[50:], np.zeros((len(time) - 50, 4))))

    now = way.motion
    assert way.time == 1.0
    assert now.rates == pytest.approx((0.0, 0.0, rate), abs=1e-12)
    assert math.atan2(now.rotation[1, 0], now.rotation[0, 0]) == pytest.approx(rate, abs=1e-6)

    expected = push / rate * np.array((math.sin(rate), 1.0 - math.cos(rate)))
    assert now.velocity == pytest.approx((*expected, 0.5), abs=5e-3)
    assert now.position[2] == pytest.approx(0.25, abs=2e-3)

    # a new estimate
    way.correct(Estimate(1.0, np.ones(3), np.array((0, 0, 0, 1.0)), np.zeros(3), np.zeros(3)))
    assert way.motion.position.tolist() == [1.0, 1.0, 1.0]


def turning(time, rates):
    zero = np.zeros((1, 4))
    rates = np.array([rates])
    return SensorSamples(
        joints=JointSamples(np.array([time]), zero, zero, zero, zero, zero, np.zeros((1, 6)), rates)
    )


@pytest.mark.parametrize("stands", [False, True], ids=["encoder", "rotor"])
@pytest.mark.parametrize("failsafe", [False, True])
def test_a_rotor_that_stands_is_noticed_unless_others_command_it(failsafe, stands):
    """The body does not turn if the rotor's encoder alone says that it stands."""
    flight = make()
    p = flight.params
    time = 0.0
    flight.logic.mode = F
    noticed = None
    rates = np.zeros(3)

    while time < 1.2 and noticed is None:
        time += 0.004
        if failsafe and time > 0.1:
            flight.failsafe(True)
        command = feed(flight, time, 0.0, 2.0, (0.0, 0.0, 2.2), rates)
        turned = 0.95 * command.value * (1.0 - math.exp(-time / 0.06))
        shown = turned.copy()
        shown[4] = 0.0 if time > 0.5 else turned[4]
        moments = Mixer(p).wrench(shown if stands else turned)[1:]
        rates = rates + 0.004 * np.linalg.solve(p.total_inertia, moments)
        flight.sense(turning(time, shown * (1, -1, 1, -1, 1, -1)))  # the sign is the direction's
        noticed = time if flight.failed_rotors or flight.rotor_watch.lying else None

    assert flight.failed_rotors == ((4,) if stands and not failsafe else ())
    if not failsafe:
        assert 0.59 < noticed < 0.62
    if not failsafe and stands:
        assert (flight.mode, flight.reason) == (A, "rotor 5 failed")
    elif not failsafe:
        text = "the encoder of rotor 5 shows 0 rad/s, but it works"
        assert (flight.mode, flight.rotor_watch.warnings) == (F, {"encoders": text})


def test_set_points_older_than_the_newest_are_dropped():
    flight = make()
    feed(flight, 0.004)
    flight.set_target((1.0, 2.0, 3.0), time=5.0)
    flight.set_target((9.0, 9.0, 9.0), time=4.0)
    assert flight._setpoint.position == (1.0, 2.0, 3.0)


def forget_imu(rig):
    """Keep the IMU's samples from the flight computer."""
    sense = rig.flight.sense
    rig.flight.sense = lambda samples: sense(dataclasses.replace(samples, imu=None))


@pytest.mark.parametrize(
    ("end", "seconds"),
    [
        (lambda rig: setattr(rig, "estimated", False), ESTIMATE_TIMEOUT),
        (forget_imu, IMU_TIMEOUT),
        (lambda rig: rig.flight.rotor_watch.failed.update({2: "rotor 3 stands"}), 0.0),
    ],
    ids=["estimate", "imu", "rotor"],
)
def test_rotors_that_help_the_wheels_stop_when_their_data_are_old(end, seconds):
    """They lift the front axle until what they need is too old, and three ticks at most."""
    rig = lifting()
    end(rig)
    begin = rig.time
    rig.run(1.0, lift, until=lambda r: not r.rotors.value.any())
    assert rig.time - begin == pytest.approx(seconds, abs=3.01 * rig.tick_s)


def test_rotors_that_help_the_wheels_lower_the_axle_without_orders():
    """The pitch turns, once the order is old, until it is LOWERED below that of the body."""
    rig = lifting()
    begin = rig.time
    rig.run(2.0, until=lambda r: not r.rotors.value.any())
    lowering = rig.time - begin - COMMAND_TIMEOUT
    assert LOWERED / PITCH_RATE < lowering < 2.0 * LOWERED / PITCH_RATE


def lift(rig):
    """Command the rotors to lift the front axle."""
    rig.flight.set_assist(Assist.LIFT_FRONT)


def lifting():
    """Return a vehicle that drives while its rotors begin to lift its front axle."""
    rig = Rig("scale")
    rig.flight.logic.mode = Mode.DRIVE
    rig.run(0.2, lift)
    assert rig.rotors.value.max() > 50.0
    return rig

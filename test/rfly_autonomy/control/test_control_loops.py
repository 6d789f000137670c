# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The control computers in closed loop with the vehicle.

Their responses are compared with linear models made of the laws' gains.
"""

import math

import numpy as np
import pytest
from control_rig import Rig, hover, slope
from marks import exhaustively
from scipy.integrate import solve_ivp

from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.state_layout import WHEEL_SPEED
from rfly_autonomy.control.chassis_controller import ChassisController
from rfly_common.errors import CommandError
from rfly_common.frames import euler_to_quat, rotation_matrix

G = 9.80665


def linear_flight(p, times, begin, target):
    """Return x of a vehicle near hover, by a linear model.

    It has position and velocity loops, a third-order attitude (rotor lag in its loop), and drag.
    `begin`: x, velocity, pitch, pitch rate, demanded pitch acceleration, integral.
    """
    w = p.attitude_frequency
    z = p.attitude_damping
    lag = p.rotor_lag
    drag = (p.linear_drag[0] + p.rotors * p.rotor_drag_coefficient * p.hover_speed) / p.mass

    def change(_, s):
        x, v, pitch, rate, turn, integral = s
        error = p.position_gain * (target - x) - v
        lean = (p.velocity_gain * error + integral) / G
        wanted = -w * w * (pitch - lean) - 2 * z * w * rate
        integral_rate = 0.25 * p.velocity_gain * error
        return v, G * pitch - drag * v, rate, turn, (wanted - turn) / lag, integral_rate

    return solve_ivp(change, (0.0, times[-1]), begin, t_eval=times, max_step=0.01).y


def test_a_step_of_the_position():
    rig = hover()
    p = rig.params
    x = rig.sim.state.position[0]
    run = rig.run(4.0, lambda r: r.flight.set_target((x + 1.0, 0.0, 10.0)))
    start = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    expected = x + linear_flight(p, run.elapsed, start, 1.0)[0]
    assert np.abs(run.x - expected).max() < 0.04
    assert run.x.max() - x < 1.2  # overshoot of the integral
    assert np.ptp(run.z) < 0.12
    assert 0.9 < (run.time[np.argmax(run.x > x + 0.9)] - run.time[0]) < 2.2


@pytest.mark.exhaustive
def test_an_attitude_is_flown_before_any_place_and_then_the_place_again():
    """A tilt of 0.1 rad carries the weight.

    It accelerates by g tan 0.1 forward, less the drag, at the same height.
    """
    rig = hover()
    p = rig.params
    rotation = rotation_matrix(euler_to_quat((0.0, 0.1, 0.0)))
    share = p.mass * G / math.cos(0.1) / (p.rotors * p.thrust_coefficient * p.max_rotor_speed**2)

    def turn(r):
        r.flight.set_attitude(rotation, share)
        r.flight.set_target((0.0, 0.0, 10.0))

    rig.run(0.8, turn)
    run = rig.run(0.4, turn)

    assert run.pitch == pytest.approx(0.1, abs=0.01)
    assert run.yaw == pytest.approx(0.0, abs=0.01)
    drag = (p.linear_drag[0] + p.rotors * p.rotor_drag_coefficient * p.hover_speed) / p.mass
    gained = (run.vx[-1] - run.vx[0]) / run.elapsed[-1]
    expected = G * math.tan(0.1) - drag * run.vx.mean()
    assert gained == pytest.approx(expected, rel=0.1)
    assert np.ptp(run.z) < 0.1

    # back to the place
    run = rig.run(6.0, lambda r: r.flight.set_target((0.0, 0.0, 10.0)))
    assert abs(run.x[-1]) < 0.2

    with pytest.raises(CommandError, match=r"it is tilted by 89\.4°, expected at most"):
        rig.flight.set_attitude(rotation_matrix(euler_to_quat((1.56, 0.0, 0.0))), 0.5)
    with pytest.raises(CommandError, match="thrust"):
        rig.flight.set_attitude(rotation, 1.01)


def test_gains_that_are_changed_in_flight():
    """The step of the position follows the linear model with the gains.

    They are half the position's and more of the velocity's.
    """
    rig = hover()
    p = rig.params.replace(
        position_gain=0.5 * rig.params.position_gain, velocity_gain=1.2 * rig.params.velocity_gain
    )
    x = rig.sim.state.position[0]
    rig.flight.set_gains(p)
    run = rig.run(4.0, lambda r: r.flight.set_target((x + 1.0, 0.0, 10.0)))
    start = (0.0,) * 6
    by_new_gains = linear_flight(p, run.elapsed, start, 1.0)[0]
    by_old_gains = linear_flight(rig.params, run.elapsed, start, 1.0)[0]
    assert np.abs(run.x - x - by_new_gains).max() < 0.04
    assert np.abs(run.x - x - by_old_gains).max() > 0.1


def test_a_disturbed_attitude():
    """A sudden tilt of 0.15 rad is levelled as by the linear model.

    The vehicle overshoots by less than 0.2 rad.
    """
    rig = hover()
    state = rig.sim.state
    position = np.array(state.position)
    velocity = np.array(state.velocity)

    # tilt the vehicle
    rig.sim.set_pose(
        position, (0.0, math.sin(0.075), 0.0, math.cos(0.075)), velocity, (0.0, 0.0, 0.0)
    )
    begin = (
        position[0],
        velocity[0],
        0.15,
        0.0,
        0.0,
        rig.flight.flight_modes.position_controller.integral[0],
    )

    run = rig.run(1.5, lambda r: r.flight.set_target((0.0, 0.0, 10.0)))
    expected = linear_flight(rig.params, run.elapsed, begin, 0.0)
    assert np.abs(run.pitch - expected[2]).max() < 0.02
    assert np.abs(run.x - expected[0]).max() < 0.03
    assert run.pitch.min() > -0.2
    assert np.abs(run.yaw).max() < 0.01


def test_a_step_of_the_yaw():
    """The held heading turns at 0.5 rad/s.

    The vehicle follows it like a second-order system with 0.4 ω.
    """
    rig = hover()
    p = rig.params
    run = rig.run(4.5, lambda r: r.flight.set_target((0.0, 0.0, 10.0), yaw=1.0))
    w = 0.4 * p.attitude_frequency
    wanted = np.minimum(0.5 * (run.elapsed + 0.004), 1.0)

    def change(time, s):
        yaw, rate = s
        error = np.interp(time, run.elapsed, wanted) - yaw
        return rate, w * w * math.sin(error) - 2 * p.attitude_damping * w * rate

    duration = (0.0, run.elapsed[-1])
    solution = solve_ivp(change, duration, (0.0, 0.0), t_eval=run.elapsed, max_step=0.01)
    expected = solution.y[0]
    assert np.abs(run.yaw - expected).max() < 0.06
    assert run.yaw.max() < 1.03
    assert abs(run.yaw[-1] - 1.0) < 0.01


def test_flying_by_velocity():
    """Flying forward and turning is a circle of radius v / yaw rate; at zero the vehicle holds its
    place.
    """
    rig = hover()
    rig.run(3.0, lambda r: r.flight.set_velocity((1.5, 0.0, 0.0), 0.5))
    run = rig.run(2.0, lambda r: r.flight.set_velocity((1.5, 0.0, 0.0), 0.5))
    assert np.hypot(run.vx, run.vy) == pytest.approx(1.5, rel=0.08)
    assert run.yaw_rate == pytest.approx(0.5, abs=0.02)
    assert np.abs(run.z - 10.0).max() < 0.1

    # stop
    rig.run(2.0, lambda r: r.flight.set_velocity((0.0, 0.0, 0.0)))
    run = rig.run(0.5, lambda r: r.flight.set_velocity((0.0, 0.0, 0.0)))
    assert max(np.ptp(run.x), np.ptp(run.y)) < 0.15

    # climb
    rig.run(2.0, lambda r: r.flight.set_velocity((0.0, 0.0, 0.8)))
    run = rig.run(0.5, lambda r: r.flight.set_velocity((0.0, 0.0, 0.8)))
    assert run.vz == pytest.approx(0.8, abs=0.12)


def test_flown_into_the_ground_by_velocity():
    """The vehicle comes down like a landing, stays upright, and flies away again."""
    rig = Rig("scale", airborne=2.2)
    down = (0.0, 0.0, -1.5)
    up = (0.0, 0.0, 1.0)
    rig.run(
        5.0,
        lambda r: r.flight.set_velocity(down),
        until=lambda r: r.sim.outputs.wheel_load.sum() > 0.0,
    )

    assert -rig.rows[-2].vz < 0.7

    # away again
    rig.run(0.5, lambda r: r.flight.set_velocity(down))
    run = rig.run(1.5, lambda r: r.flight.set_velocity(up))
    assert run.z[-1] > 0.6
    assert np.abs(run.pitch).max() < 0.1
    assert rig.modes == [Mode.FLIGHT]


def test_a_step_of_the_speed():
    """The motors have a lag under a P law; the observer leaves it no steady error.

    Rise, overshoot and steady error are those of the law itself.
    """
    rig = Rig("scale", rate=100.0)
    rig.run(0.1)
    assert rig.flight.request("arm") == ""
    run = rig.run(4.0, lambda r: r.chassis.set_speed(2.0))
    p = rig.params

    def change(_, s):
        v, acceleration = s
        return acceleration, (1.5 * (2.0 - v) - acceleration) / p.drive_lag

    begin = (0.0, 0.0)
    solution = solve_ivp(change, (0.0, 4.0), begin, t_eval=run.elapsed, max_step=0.01)
    expected = solution.y[0]
    assert np.abs(run.vx - expected).max() < 0.12
    assert run.vx.max() < 1.1 * 2.0
    assert run.vx[-1] == pytest.approx(2.0, rel=0.03)
    run = rig.run(4.0, lambda r: r.chassis.set_speed(-1.0, acceleration=1.5))
    assert np.abs(np.diff(run.vx) / 0.01).max() < 3.5  # the ramp, with the brake's share of it
    assert run.vx[-1] == pytest.approx(-1.0, abs=0.05)
    run = rig.run(2.2, lambda r: r.chassis.set_speed(0.0))
    assert np.ptp(run.x[-20:]) < 1e-3  # held


def stop(name, speed, wind):
    """Return the distance of a stop in a wind from behind, m, and the motion 10 s later."""
    rig = Rig(name, rate=100.0)
    rig.sim.wind_disturbance = np.array((wind, 0.0, 0.0))
    rig.run(0.1)
    assert rig.flight.request("arm") == ""
    rig.run(7.0, lambda r: r.chassis.set_speed(speed))
    assert rig.sim.state.velocity[0] == pytest.approx(speed, rel=0.01), "no wind drives it on"
    begin = rig.sim.state.position[0]
    run = rig.run(10.0, lambda r: r.chassis.set_speed(0.0))
    return run.x[-1] - begin, run


@pytest.mark.parametrize(
    ("name", "speed", "wind"),
    [
        exhaustively("scale", 8.0, 18.0),
        exhaustively("full", 10.0, 25.0),
        ("scale", 3.0, 0.0),
        exhaustively("full", 20.0, 25.0),
    ],
)
def test_it_stops_in_a_wind_from_behind(name, speed, wind):
    """Friction-limited: v² / 2 (μ g - drag / M), with the whole drag of the wind all the way.

    From a low speed, the time in which brakes and tyres' deflections build up counts, too.
    """
    distance, run = stop(name, speed, wind)
    p = VehicleParameters.load(name)
    push = p.linear_drag[0] * wind + 0.5 * 1.225 * p.drag_area[0] * wind**2
    limited = speed**2 / 2.0 / (p.friction_x * G - push / p.mass)
    assert distance < 1.35 * limited
    assert np.abs(run.vx[-100:]).max() < 1e-3


@pytest.mark.parametrize(
    ("name", "more"),
    [("scale", 10.0), exhaustively("full", 490.0)],
)
def test_no_steady_error_with_an_unknown_load_on_a_slope(name, more):
    p = VehicleParameters.load(name)
    rig = Rig(p.replace(mass_body=p.mass_body + more), slope(15.0), rate=100.0)
    rig.chassis = ChassisController(p)
    rig.run(0.1)
    assert rig.flight.request("arm") == ""
    run = rig.run(6.0, lambda r: r.chassis.set_speed(1.0))
    assert np.hypot(run.vx, run.vz)[-50:] == pytest.approx(1.0, abs=0.02)
    run = rig.run(3.0, lambda r: r.chassis.set_speed(0.0))
    assert np.ptp(run.x[-100:]) < 1e-3


def test_full_throttle_with_and_without_traction_control():
    """Traction control keeps wheels from spinning away, and the pull greater.

    12 N m is more than μ F_z R.
    """

    def start(limited):
        rig = Rig("scale", noise=True, rate=100.0)
        if not limited:
            rig.chassis.traction.update = lambda *_: None
        rig.run(0.1)
        assert rig.flight.request("arm") == ""
        slips = []

        def drive(r):
            r.chassis.set_speed(15.0)
            spin = r.sim.state.x[WHEEL_SPEED : WHEEL_SPEED + 4]
            speed = r.sim.state.velocity[0]
            slip = np.abs(p.rolling_radius * spin - speed) / max(speed, p.low_speed)
            slips.append(np.max(slip))

        p = rig.params
        vx = rig.run(1.0, drive).vx
        return vx, np.array(slips), rig

    vx, slip, rig = start(True)
    free_vx, free_slip, _ = start(False)
    assert vx[-1] > 1.15 * free_vx[-1]
    assert slip[20:].mean() < 5.0 * rig.chassis.traction.peak < 0.2 * free_slip[20:].mean()
    assert slip.max() < 0.2 * free_slip.max()
    assert vx[-1] < 0.95 * G  # no more than friction gives in a second


def test_steering_stays_within_the_friction():
    rig = Rig("scale", rate=100.0)
    rig.run(0.1)
    assert rig.flight.request("arm") == ""
    rig.run(2.5, lambda r: r.chassis.set_speed(5.0))
    run = rig.run(1.5, lambda r: r.chassis.set_speed(5.0, 0.5))
    p = rig.params
    speed = np.hypot(run.vx, run.vy)[-1]
    expected = math.atan(p.wheelbase * 0.6 * p.friction_y * G / speed**2)
    assert rig.wheels.steering_angle == pytest.approx(expected, rel=0.01)
    assert 0.4 * p.friction_y * G < speed * run.yaw_rate[-1] < 0.7 * p.friction_y * G


def test_turning_by_the_motors():
    rig = Rig(parameters_without_steering(), noise=True, rate=100.0)
    rig.run(0.1)
    assert rig.flight.request("arm") == ""
    rig.run(1.0, lambda r: r.chassis.set_twist(0.0, 0.8))
    run = rig.run(2.0, lambda r: r.chassis.set_twist(0.0, 0.8))
    assert run.yaw_rate.mean() == pytest.approx(0.8, rel=0.15)
    assert max(np.ptp(run.x), np.ptp(run.y)) < 0.3
    rig.run(1.5, lambda r: r.chassis.set_twist(1.0, -0.5))
    run = rig.run(2.0, lambda r: r.chassis.set_twist(1.0, -0.5))
    assert run.yaw_rate.mean() == pytest.approx(-0.5, rel=0.25)
    assert np.hypot(run.vx, run.vy).mean() == pytest.approx(1.0, rel=0.1)
    run = rig.run(3.0, lambda r: r.chassis.set_twist(0.0, 0.0))
    assert max(np.ptp(run.x[-40:]), np.ptp(run.y[-40:])) < 2e-3


@pytest.mark.exhaustive
def test_a_gyroscope_s_bias_on_a_vehicle_that_stands_turns_no_later_drive():
    """It is 0.01 rad/s for 30 s; braked wheels can't follow what would make up for it."""
    rig = Rig(parameters_without_steering(), rate=100.0)
    truth = rig.estimate
    rig.run(0.1)
    assert rig.flight.request("arm") == ""
    rig.estimate = lambda samples: truth(samples)._replace(rates=np.array((0.0, 0.0, 0.01)))
    rig.run(30.0, lambda r: r.chassis.set_twist(0.0, 0.0))
    rig.estimate = truth
    run = rig.run(2.0, lambda r: r.chassis.set_twist(1.5, 0.0))
    assert np.abs(run.yaw).max() < 0.01


def parameters_without_steering():
    return VehicleParameters.load("scale").replace(steered="none", max_steering=0.0)


@pytest.mark.exhaustive
def test_driving_after_a_pose_that_leads():
    """The vehicle drives round a bend of 4 m at 1.5 m/s, to a stand at the place of the pose."""
    rig = Rig("scale", rate=100.0)
    rig.run(0.1)
    assert rig.flight.request("arm") == ""
    begin = rig.time

    def lead(r):
        if round(r.time / 0.01) % 2:
            return
        angle = min(1.5 * (r.time - begin), 10.0) / 4.0
        r.chassis.set_target((1.0 + 4.0 * math.sin(angle), 4.0 - 4.0 * math.cos(angle), 0.0))

    run = rig.run(13.0, lead)
    off = np.hypot(run.x - 1.0, run.y - 4.0) - 4.0
    assert np.abs(off[run.time > 2.5]).max() < 0.25
    end = (1.0 + 4.0 * math.sin(2.5), 4.0 - 4.0 * math.cos(2.5))
    assert math.dist((run.x[-1], run.y[-1]), end) < 0.25
    assert np.ptp(run.x[-40:]) < 5e-3


@pytest.mark.parametrize("degrees", [exhaustively(0.0), 9.8])
def test_every_mode_in_order_on_level_ground_and_on_a_slope(degrees):
    rig = Rig("scale", slope(degrees), noise=True)
    rig.run(0.1)
    assert rig.flight.request("takeoff").startswith("cannot go from DISARMED")
    assert rig.flight.request("arm") == ""

    # take-off
    rig.run(0.3)
    assert rig.flight.request("takeoff") == ""
    rig.run(6.0, until=lambda r: r.flight.mode is Mode.FLIGHT)
    assert float(rig.sim.outputs.clearance) > 0.4

    # landing
    rig.run(0.4)
    assert rig.flight.request("land") == ""
    rig.run(6.0, until=lambda r: r.flight.mode is Mode.SPOOL_DOWN)
    sink = -rig.rows[-25].vz
    assert 0.2 < sink < 0.75

    rig.run(4.0, until=lambda r: r.flight.mode is Mode.DRIVE)
    run = rig.run(0.5)
    assert np.ptp(run.x) < 2e-3

    order = [
        Mode.DISARMED,
        Mode.DRIVE,
        Mode.TAKEOFF,
        Mode.FLIGHT,
        Mode.LAND,
        Mode.SPOOL_DOWN,
        Mode.DRIVE,
    ]
    assert rig.modes == order
    assert rig.flight.request("disarm") == ""
    assert not rig.sim.crashed


def test_no_take_off_from_a_slope_above_the_limit_nor_while_it_drives():
    rig = Rig("scale", slope(10.2), rate=100.0)
    rig.run(0.4)
    assert rig.flight.request("arm") == ""
    rig.run(0.1)
    assert rig.flight.request("takeoff").startswith("the slope is 10.")
    level = Rig("scale", rate=100.0)
    level.run(0.1)
    level.flight.request("arm")
    level.run(0.8, lambda r: r.chassis.set_speed(1.0))
    assert level.flight.request("takeoff").startswith("its speed is")
    assert level.flight.mode is Mode.DRIVE


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["scale", "full"])
def test_v21_through_the_computers(name):
    """The landing is that of the validation table, with sensors in place of the truth."""
    rig = Rig(name, airborne=0.0)
    p = rig.params
    begin = rig.sim.state
    height = 1.5 - float(rig.sim.model.outputs(begin).clearance)
    rig.sim.set_pose((0.0, 0.0, height), (0.0, 0.0, 0.0, 1.0))
    run = rig.run(2.0, lambda r: r.flight.set_target((0.0, 0.0, height)))
    assert abs(run.z[-1] - height) <= 0.10
    assert rig.flight.request("land") == ""
    forces = []
    tilts = []
    sink = None

    def watch(r):
        nonlocal sink
        forces.append(np.linalg.norm(r.sim.outputs.specific_force))
        tilts.extend(abs(row.pitch) for row in r.rows[-1:])
        if sink is None and r.sim.outputs.wheel_load.sum() > 0.0:
            sink = -r.rows[-2].vz

    rig.run(9.0, watch, until=lambda r: r.flight.mode is Mode.DRIVE)
    assert rig.modes == [Mode.FLIGHT, Mode.LAND, Mode.SPOOL_DOWN, Mode.DRIVE]
    assert sink <= 0.60
    assert max(forces) <= 2 * G
    assert max(tilts) <= 0.12
    rig.run(0.5)
    assert rig.sim.outputs.wheel_load.sum() / (p.mass * G) == pytest.approx(1.0, rel=0.02)
    run = rig.run(4.0, lambda r: r.chassis.set_speed(3.0))
    assert run.vx[-1] == pytest.approx(3.0, rel=0.03)


def test_the_motion_command_is_lost_in_flight():
    rig = hover()
    rig.run(1.0, lambda r: r.flight.set_velocity((1.0, 0.0, 0.0)))
    run = rig.run(4.0, until=lambda r: r.flight.mode is Mode.LAND)
    assert run.elapsed[-1] == pytest.approx(2.5, abs=0.02)
    assert rig.flight.reason == "the motion command is lost"
    assert np.abs(run.z - 10.0).max() < 0.1
    assert run.x[-1] - run.x[0] < 2.5

    # nothing has been commanded in the next flight yet
    assert rig.flight.request("fly") == ""
    rig.run(0.6)
    assert rig.flight.mode is Mode.FLIGHT

    rig.run(0.2, lambda r: r.flight.set_velocity((0.0, 0.0, 0.0)))
    rig.run(1.5)
    rig.flight.set_velocity((0.0, 0.0, 0.0))  # back in time
    rig.run(1.8)
    assert rig.flight.mode is Mode.FLIGHT


def test_the_motion_command_is_lost_on_the_road():
    rig = Rig("scale", rate=100.0)
    rig.run(0.1)
    rig.flight.request("arm")
    rig.run(1.5, lambda r: r.chassis.set_speed(2.0))
    run = rig.run(4.0)
    assert run.vx[run.elapsed < 0.45] == pytest.approx(1.8, abs=0.3)
    assert abs(run.vx[-1]) < 1e-3


def test_the_fail_safe_leads_to_abort_and_arm_ends_it_on_the_ground():
    rig = Rig("scale", airborne=1.2)
    rig.run(0.5, lambda r: r.flight.set_target((0.0, 0.0, 1.2)))
    rig.flight.failsafe(True)

    rig.run(0.1)
    assert rig.flight.mode is Mode.ABORT
    assert rig.flight.request("arm") == "it does not stand on its wheels yet"

    # down
    run = rig.run(6.0, until=lambda r: r.sim.outputs.wheel_load.sum() > 0.99 * r.params.mass * G)
    assert run.vz[:-100].min() > -0.75
    rig.run(1.5)
    assert rig.wheels.brake_torque == pytest.approx(rig.params.max_brake_torque)

    # on the ground
    rig.flight.failsafe(True)  # again
    assert rig.flight.request("drive") == "it was aborted: arm it first"
    assert rig.flight.request("arm") == ""
    rig.run(0.1)
    rig.flight.failsafe(False)
    assert rig.modes == [Mode.FLIGHT, Mode.ABORT, Mode.DRIVE]


def test_without_estimates_the_imu_leads_down():
    """Noise and all, the flight is aborted, and ends at the fail-safe's rate within the drift."""
    rig = Rig("scale", airborne=2.5, noise=True)
    rig.run(1.0, lambda r: r.flight.set_target((0.0, 0.0, 2.5)))
    rig.estimated = False
    run = rig.run(
        1.0,
        lambda r: r.flight.set_target((0.0, 0.0, 2.5)),
        until=lambda r: r.flight.mode is Mode.ABORT,
    )

    assert run.elapsed[-1] == pytest.approx(0.5, abs=0.02)
    assert rig.flight.request("takeoff") == "its position is not known: no estimate"

    # down
    run = rig.run(12.0, until=lambda r: r.sim.outputs.wheel_load.sum() > 0.0)
    assert 0.25 < -run.vz[-1] < 0.9
    assert math.hypot(run.x[-1], run.y[-1]) < 2.0
    rig.run(0.5)
    assert not rig.sim.crashed


def test_a_rotor_that_fails_is_noticed():
    rig = hover()
    rig.sim.fail_rotor(2)
    hold = lambda r: r.flight.set_target((0.0, 0.0, 10.0))  # noqa: E731
    run = rig.run(1.0, hold, until=lambda r: r.flight.mode is Mode.ABORT)
    assert run.elapsed[-1] < 0.5
    assert rig.flight.failed_rotors == (2,)
    run = rig.run(3.0, hold)
    assert np.abs(run.pitch[-125:]).max() < 0.2
    assert rig.sim.state.velocity[2] == pytest.approx(-0.5, abs=0.15)


@pytest.mark.exhaustive
def test_rolling_by_sticks_from_the_road_into_the_air_and_back():
    rig = Rig("scale", rate=100.0)
    rig.run(0.2)
    assert rig.flight.request("arm") == ""

    def forward(each):
        each.chassis.set_twist(2.5, 0.0)
        each.flight.set_velocity((2.5, 0.0, 0.0))

    rig.run(3.0, forward)
    assert rig.flight.request("rolling_takeoff") == ""
    run = rig.run(6.0, forward, until=lambda r: r.flight.mode is Mode.FLIGHT)
    assert min(run.vx) > 2.0

    rig.run(1.0, forward)
    assert rig.flight.request("rolling_land") == ""
    rig.run(6.0, forward, until=lambda r: r.flight.mode is Mode.ROLL_OUT)
    assert -rig.rows[-20].vz < 1.2
    assert rig.rows[-1].vx > 1.5

    rig.run(6.0, until=lambda r: r.flight.mode is Mode.DRIVE)
    rig.run(3.0)
    assert abs(rig.rows[-1].vx) < 0.02

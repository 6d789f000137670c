# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Joint commands of ros2_control: what their messages say, and what the vehicle does by them."""

import math
from pathlib import Path

import numpy as np
import pytest
import yaml
from control_rig import Rig, abort_pilot
from marks import exhaustively
from ros2_control_double import NAN, JointStateTopicSystem, ackermann

from rfly_amphibious.description.urdf import vehicle_urdf
from rfly_amphibious.sensors.samples import joint_names
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle.ackermann import virtual_steering
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.chassis_controller import turning_on_the_spot
from rfly_autonomy.control.flight_controller import FlightController
from rfly_autonomy.control.joint_chassis import JointChassisController, JointCommandReader
from rfly_autonomy.estimation.estimator import StateEstimator
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters
from rfly_common.errors import CommandError

SENSORS = SensorParameters.load("scale")
CONFIG = yaml.safe_load(
    (Path(__file__).parents[3] / "config" / "ros2_control.yaml").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def scale():
    return VehicleParameters.load("scale")


@pytest.fixture(scope="module")
def skid(scale):
    return scale.replace(steered="none", max_steering=0.0)


def system(params):
    return JointStateTopicSystem(vehicle_urdf(params, ros2_control="/car"))


def test_commands_of_the_double_are_those_of_the_controller_itself():
    """Printed by steering_kinematics.cpp of ros2_controllers, 94e74de35, compiled alone.

    The whole controller (4.42.1) sends the same to four digits.
    """
    assert ackermann(1.0, 0.4, 0.66, 0.56, 0.108) == pytest.approx(
        {
            "wheel_rr_joint/velocity": 10.296296296296298,
            "wheel_rl_joint/velocity": 8.2222222222222214,
            "steer_fr_joint/position": 0.23309467252920471,
            "steer_fl_joint/position": 0.28897540999256643,
        },
        rel=1e-15,
    )


class Controlled(Rig):
    """A rig with noise whose chassis obeys ros2_control, one cycle a tick."""

    def __init__(self, params, rate=100.0, airborne=None, **options):
        super().__init__(params, rate=rate, noise=True, airborne=airborne)
        self.chassis = JointChassisController(params, **options)
        self.system = system(params)
        self.reader = JointCommandReader(params)
        if airborne is None:
            self.run(0.1)
            assert self.flight.request("arm") == ""

    def control(self, duration, commands, threshold=None):
        """Run with these commands; return the motion."""
        self.system.commands.update(commands)

        def cycle(_):
            message = self.system.write(threshold)
            if message is not None:
                self.chassis.set_joints(self.reader(*message))

        return self.run(duration, cycle)


def parameters_of(controller):
    return CONFIG[f"/**/{controller}"]["ros__parameters"]


def forward(motion):
    return motion.vx * np.cos(motion.yaw) + motion.vy * np.sin(motion.yaw)


def test_the_description_names_plugin_topics_and_joints(scale, skid):
    car = system(scale)
    assert car.plugin == "joint_state_topic_hardware_interface/JointStateTopicSystem"
    assert car.params["joint_commands_topic"] == "/car/joint_commands"
    assert car.params["joint_states_topic"] == "/car/joint_states"
    wheels = [f"wheel_{each}_joint" for each in ("fl", "fr", "rl", "rr")]
    steering = ["steer_fl_joint", "steer_fr_joint"]
    assert car.joints == {
        **{joint: ["velocity"] for joint in wheels},
        **{joint: ["position"] for joint in (*steering, "camera_joint")},
    }
    assert list(system(skid).joints) == [*wheels, "camera_joint"]

    # every state that joint_states may bring has its interface
    names = joint_names(scale)
    car.read(names, [0.0] * len(names), [0.0] * len(names))


def test_commands_are_read_as_the_plugin_packs_them(scale):
    car = system(scale)
    car.commands |= {"wheel_rr_joint/velocity": 9.0, "steer_fl_joint/position": 0.2}
    command = JointCommandReader(scale)(*car.write())
    np.testing.assert_array_equal(command.wheel_rate, [NAN, NAN, NAN, 9.0])
    np.testing.assert_array_equal(command.steering, [0.2, NAN, NAN, NAN])
    assert math.isnan(command.camera)


@pytest.mark.parametrize(
    ("names", "position", "velocity", "effort", "said"),
    [
        (["wing_joint"], [], [], [], "unknown joints 'wing_joint'"),
        ([f"j{i}" for i in range(9)], [], [], [], "unknown joints 'j0', 'j1', 'j2'$"),
        (["wheel_fl_joint"], [], [], [], "velocity: 0 values, expected one for each of wheel_fl"),
        (["wheel_fl_joint"], [0.0], [1.0], [], "position: 1 values, expected one for each of no"),
        (["wheel_fl_joint"] * 2, [], [1.0, 1.0], [], "named twice"),
        (["wheel_fl_joint"], [], [1.0], [1.0], "effort: 1 values, expected none"),
        (["wheel_fl_joint"], [], [math.inf], [], "velocity of wheel_fl_joint is inf"),
        (["wheel_fl_joint"], [], [-600.0], [], "velocity of wheel_fl_joint is -600"),
        (["steer_fr_joint"], [-math.inf], [], [], "position of steer_fr_joint is -inf"),
        (["camera_joint"], [math.inf], [], [], "position of camera_joint is inf"),
        (["camera_joint"], [-17.2], [], [], "camera_joint is -17.2, expected -6.28319 to 6.28319"),
    ],
)
def test_messages_that_cannot_be_are_refused(scale, names, position, velocity, effort, said):
    with pytest.raises(CommandError, match=said):
        JointCommandReader(scale)(names, position, velocity, effort)


@pytest.mark.parametrize("left_out", [None, "fl", "fr"])
def test_steering_joints_turn_the_virtual_wheel(scale, left_out):
    """A turn of 2.5 m needs the virtual wheel at atan(0.66 / 2.5), by both wheels or one alone."""
    car = system(scale)
    car.commands |= ackermann(1.0, 0.4, 0.66, 0.56, 0.108)
    if left_out:
        car.commands[f"steer_{left_out}_joint/position"] = NAN
    command = JointCommandReader(scale)(*car.write())
    assert virtual_steering(scale, command.steering) == pytest.approx(
        math.atan(0.66 / 2.5), rel=1e-9
    )


@pytest.mark.parametrize(
    ("left", "right", "rear_left", "rear_right", "speed"),
    [
        (1.0541011880326194, 1.0541011880326194, 2.7777777778, 2.7777777778, 0.3),
        (1.427838827201176, 0.7892004264427991, 2.135, 3.4206, 0.3),
        (1.972, 1.1696, 0.0, 0.0, 0.0),
    ],
    ids=["wheels still straight", "wheels at their limit", "on the spot"],
)
def test_a_bend_that_is_too_tight_becomes_the_tightest(
    scale, left, right, rear_left, rear_right, speed
):
    """Messages of AckermannSteeringController 4.42.1 for 0.3 m/s and 0.8 rad/s; 0 and 0.4 rad/s.

    The virtual wheel's limit is 0.5 rad. Each wheel turns about the rear axle's line, Eq. 5.1.
    """
    car = Controlled(scale)
    commands = {
        "steer_fl_joint/position": left,
        "steer_fr_joint/position": right,
        "wheel_rl_joint/velocity": rear_left,
        "wheel_rr_joint/velocity": rear_right,
    }
    motion = car.control(2.0, commands)
    turn = 0.66 / math.tan(0.5)
    tightest = (math.atan(0.66 / (turn - 0.28)), math.atan(0.66 / (turn + 0.28)), 0.0, 0.0)
    assert car.wheels.wheel_steering == pytest.approx(tightest, abs=1e-9)
    assert not car.chassis.steering_watch.text

    end = motion.elapsed > 1.6
    assert forward(motion)[end] == pytest.approx(speed, rel=0.05, abs=0.01)
    assert motion.yaw_rate[end].mean() == pytest.approx(speed / turn, rel=0.05, abs=0.01)


@pytest.mark.parametrize(("speed", "yaw_rate"), [(1.0, 0.4), (-0.6, 0.2)])
def test_speed_and_yaw_rate_of_an_ackermann_controller_arrive(scale, speed, yaw_rate):
    """The controller has the numbers of config/ros2_control.yaml; the front wheels stay NaN.

    Encoders count, and wheels swing on their tyres at 25 Hz: answers to that must not drive it.
    """
    given = parameters_of("ackermann_steering_controller")
    radius = given["traction_wheels_radius"]
    car = Controlled(scale)
    motion = car.control(
        2.5, ackermann(speed, yaw_rate, given["wheelbase"], given["traction_track_width"], radius)
    )
    end = motion.elapsed > 2.2
    assert forward(motion)[end] == pytest.approx(speed, rel=0.05)
    assert motion.yaw_rate[end] == pytest.approx(yaw_rate, rel=0.05)
    assert not car.wheels.drive_torque[:2].any()


def test_wheels_in_the_air_turn_at_their_rates(scale):
    """The vehicle flies, and its wheels are to turn: nothing damps them but the controller."""
    car = Controlled(scale, rate=250.0, airborne=5.0)
    car.flight.attitude_loop.expected[:] = scale.hover_speed
    step = car.chassis.step
    car.chassis.step = lambda estimate, _, dt: step(estimate, Mode.DRIVE, dt)
    rates = []
    for _ in range(32):
        car.flight.set_velocity((1.0, 0.0, 0.0))
        car.control(0.05, {"wheel_rl_joint/velocity": 9.0, "wheel_rr_joint/velocity": 9.0})
        rates.append(car.chassis._wheel_rate[2:])
    assert np.array(rates[-12:]) == pytest.approx(9.0, abs=1.0)


def sides(speed, yaw_rate):
    """Return the commands of diff_drive_controller with the numbers of config/ros2_control.yaml."""
    given = parameters_of("diff_drive_controller")
    width = given["wheel_separation"] * given["wheel_separation_multiplier"]
    rates = {
        side: (speed + sign * yaw_rate * width / 2.0) / given["wheel_radius"]
        for side, sign in (("l", -1.0), ("r", 1.0))
    }
    return {f"wheel_{end}{each}_joint/velocity": rates[each] for end in "fr" for each in "lr"}


@pytest.mark.parametrize(
    ("speed", "yaw_rate"),
    [(0.0, 0.8), (-0.6, 0.2), (3.0, 0.5), exhaustively(1.0, 0.4), exhaustively(0.5, 0.4)],
)
def test_speed_and_yaw_rate_of_a_diff_drive_controller_arrive(skid, speed, yaw_rate):
    """A skid-steer chassis has them from the fifth second on, and swings no more."""
    car = Controlled(skid)
    car.control(4.0, sides(speed, yaw_rate))
    end = car.control(2.0, {})
    assert forward(end).mean() == pytest.approx(speed, rel=0.03, abs=0.02)
    assert end.yaw_rate.mean() == pytest.approx(yaw_rate, rel=0.05)
    assert end.yaw_rate.std() < 0.05 * yaw_rate


def test_a_slow_turn_on_the_spot_does_not_stick_and_slip(skid):
    """0.05 rad/s: tyres that stick bear 5.8 N m at each wheel before they slide."""
    car = Controlled(skid)
    car.control(4.5, sides(0.0, 0.05))
    end = car.control(2.0, {})
    assert end.yaw_rate.mean() == pytest.approx(0.05, rel=0.1)
    assert end.yaw_rate.std() < 0.005


class Estimating(Controlled):
    """A controlled rig that knows its motion by the estimate of all sensors alone."""

    def __init__(self, params):
        super().__init__(params, rate=SENSORS.imu.rate, airborne=0.0)
        model = self.sim.model
        self.sim = Simulation(model, SENSORS, model.standing(), noise=True, fail_safe=abort_pilot)
        self.estimator = StateEstimator(EstimatorParameters.load("scale"), SENSORS, params)
        self.flight = FlightController(params, SENSORS)
        self.run(3.0)
        assert self.flight.request("arm") == ""

    def estimate(self, samples):
        now = self.estimator.update(samples)
        self.flight.advance_clock(self.sim.state.time)
        self.chassis.advance_clock(self.sim.state.time)
        return now


@pytest.mark.parametrize(("speed", "yaw_rate"), [(1.0, 0.4), exhaustively(-0.6, 0.2)])
def test_a_diff_drive_controller_s_twist_arrives_by_estimates(skid, speed, yaw_rate):
    """Wheels that slide aside and stick again measure a speed that is uncertain, and are sound."""
    car = Estimating(skid)
    car.control(5.0, sides(speed, yaw_rate))
    end = car.control(4.0, {})
    assert forward(end).mean() == pytest.approx(speed, rel=0.05)
    assert end.yaw_rate.mean() == pytest.approx(yaw_rate, rel=0.05)
    assert car.estimator.faults == {}


def test_the_shipped_numbers_are_the_vehicles(scale, skid):
    steering = parameters_of("ackermann_steering_controller")
    drive = parameters_of("diff_drive_controller")
    radius = scale.rolling_radius.mean()
    assert steering["wheelbase"] == pytest.approx(scale.wheelbase)
    assert steering["traction_track_width"] == steering["steering_track_width"] == scale.track
    assert steering["traction_wheels_radius"] == pytest.approx(radius, rel=1e-3)
    assert drive["wheel_radius"] == pytest.approx(radius, rel=1e-3)
    assert drive["wheel_separation"] == skid.track
    wide = drive["wheel_separation"] * drive["wheel_separation_multiplier"]
    assert wide == pytest.approx(turning_on_the_spot(skid)[0], rel=1e-3)

    named = [each for each in steering.values() if isinstance(each, list)]
    named += [drive["left_wheel_names"], drive["right_wheel_names"]]
    named.append(parameters_of("camera_controller")["joints"])
    assert {joint for joints in named for joint in joints} <= system(scale).joints.keys()


@pytest.mark.parametrize(
    ("timeout", "stops"), [(0.3, True), (0.0, False)], ids=["timeout", "never"]
)
def test_a_silent_controller_is_lost_after_its_timeout(scale, timeout, stops):
    car = Controlled(scale, command_timeout=timeout)
    rolling = dict.fromkeys([f"wheel_{each}_joint/velocity" for each in ("rl", "rr")], 9.0)
    car.control(0.5, rolling)
    car.run(0.28)
    assert not car.chassis.command_lost
    car.run(0.1)
    assert car.chassis.command_lost is stops
    assert bool(car.wheels.drive_torque.max() < 0.0) is stops  # the motors brake


def test_silence_of_joints_that_do_what_they_are_told_is_no_loss(scale):
    """It stands with its wheels at rest as commanded: the plugin is silent by its own rule."""
    car = Controlled(scale, command_timeout=0.1)
    states = dict.fromkeys(car.system.states, 0.0)
    car.system.states = states
    car.control(0.02, dict.fromkeys(car.system.commands, 0.0), threshold=-1.0)
    car.control(0.3, {}, threshold=1e-5)
    assert not car.chassis.command_lost

    # it is at rest, not where it was told to steer
    car.system.commands["steer_fl_joint/position"] = 0.3
    car.control(0.02, {})
    car.chassis._steering = np.zeros(4)
    car.chassis.advance_clock(car.time + 0.2)
    assert car.chassis.command_lost


@pytest.mark.parametrize("rate", [0.0, NAN])
def test_a_vehicle_without_a_rate_is_braked_in_its_bend(scale, rate):
    car = Controlled(scale)
    bend = {f"steer_{each}_joint/position": 0.2 for each in ("fl", "fr")}
    car.control(0.1, bend | dict.fromkeys(["wheel_rl_joint/velocity"], rate))
    assert car.wheels.brake_torque.min() > 0.0
    assert car.wheels.steering_angle == pytest.approx(0.2, abs=0.01)
    assert not car.chassis.is_ordered


def test_it_obeys_in_drive_only(scale):
    car = Controlled(scale)
    assert car.flight.request("disarm") == ""
    motion = car.control(0.3, {"wheel_rl_joint/velocity": 9.0, "wheel_rr_joint/velocity": 9.0})
    assert car.chassis.is_ordered
    assert np.abs(forward(motion)).max() < 0.01
    assert not car.wheels.drive_torque.any()

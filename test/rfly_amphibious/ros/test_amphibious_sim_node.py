# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""amphibious_sim_node as others meet it: a running process and real DDS."""

from __future__ import annotations

import math
import re
import time

import numpy as np
import pytest
from node_harness import PATIENCE

from rfly_autonomy.control.pilot import abort_pilot
from rfly_common.ros.endpoints import GoalResult

pytestmark = pytest.mark.ros

SIM = "/car/amphibious_sim_node"


class Seat:
    """A peer with the topics and services of the vehicle in `/car`."""

    def __init__(self, domain_id: int, node, lock_step: bool = False) -> None:
        from diagnostic_msgs.msg import DiagnosticArray
        from node_harness import Peer
        from rfly_suite.msg import RotorCommand, SimulationTick, WheelCommand
        from sensor_msgs.msg import Imu
        from std_msgs.msg import Bool, String

        from rfly_common.ros.qos import COMMANDS, LATCHED, STATE_OUT, sensor_qos

        self.node = node
        self.peer = Peer(domain_id, f"seat_{lock_step}".lower())
        self.until = self.peer.spin_until
        self.imu = self.peer.receive(Imu, "/car/imu/data", sensor_qos(lock_step))
        self.failsafe = self.peer.receive(Bool, "/car/failsafe", LATCHED)
        self.diagnostics = self.peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
        self.ticks = (
            self.peer.receive(SimulationTick, "/car/simulation_tick", STATE_OUT)
            if lock_step
            else []
        )
        self.rotors = self.peer.publisher(RotorCommand, "/car/cmd/rotors", COMMANDS)
        self.wheels = self.peer.publisher(WheelCommand, "/car/cmd/wheels", COMMANDS)
        self.mode = self.peer.publisher(String, "/car/cmd/mode", COMMANDS)

    def said(self) -> tuple[int, str, dict[str, str]]:
        """The newest diagnostic of the simulation, once there is one."""
        from node_harness import diagnostic

        return self.until(lambda: diagnostic(self.diagnostics, "simulation"))

    def call(self, service: str, **fields):
        """The response of one of the node's services."""
        from simulation_interfaces import srv

        name = "".join(word.capitalize() for word in service.split("_"))
        return self.peer.call(getattr(srv, name), f"{SIM}/{service}", **fields)

    def state(self) -> int:
        return self.call("get_simulation_state").state.state

    def go(self, state: int):
        from simulation_interfaces.msg import SimulationState

        return self.call("set_simulation_state", state=SimulationState(state=state)).result

    def time(self) -> float:
        """The simulation's."""
        return float(stamp(self.call("get_entity_state", entity="car").state))

    def command(self, header, rotor: float = 0.0, torque: float = 0.0, rotors: int = 6) -> None:
        from rfly_suite.msg import RotorCommand, WheelCommand

        self.rotors.publish(RotorCommand(header=header, value=[rotor] * rotors))
        self.wheels.publish(WheelCommand(header=header, drive_torque=[torque] * 4))

    def answer_until(self, ready, **command) -> None:
        """Commands for the newest IMU message, until `ready()`."""
        answered = 0

        def answer() -> bool:
            nonlocal answered
            if len(self.imu) > answered:
                answered = len(self.imu)
                header = self.imu[-1].header
                self.commanded_at = header.stamp.sec + 1e-9 * header.stamp.nanosec
                self.command(header, **command)
            return ready()

        self.until(answer)

    def later(self, seconds: float):
        """Return whether this much simulation time has passed since the next IMU message."""
        del self.imu[:]
        return lambda: self.imu and stamp(self.imu[-1]) - stamp(self.imu[0]) > seconds


def stamp(message) -> float:
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


@pytest.fixture(scope="module")
def running(shared_domain_id):
    """A vehicle on level ground that runs in real time, with all topics."""
    from node_harness import NodeProcess

    parameters = {
        "ground": "level",
        "seed": "3",
        "tf_source": "truth",
        "id": "610",
        "wind": "[1.0, 0.0, 0.0]",
        "command_patience": "0.5",
    }
    with NodeProcess(
        "amphibious_sim_node", shared_domain_id, parameters, "-r", "__ns:=/car"
    ) as node:
        made = Seat(shared_domain_id, node)
        yield made
        made.peer.close()


@pytest.fixture
def seat(running):
    """Return the node at the begin of its time again, and running."""
    running.go(2)
    assert running.call("reset_simulation").result.result == 1
    running.peer.spin_for(0.1)  # what was on its way
    del running.imu[:]
    running.go(1)
    running.until(lambda: running.imu)
    return running


def test_runs_in_real_time_and_stamps_each_imu_period(seat) -> None:
    """The simulation keeps real time and never runs faster.

    On a machine that is too slow, the diagnostics give the rate.
    """

    def told() -> float:
        return float(seat.said()[2].get("real_time_factor", "nan"))

    def is_told() -> bool:
        before = told()
        begin = time.monotonic()
        first = stamp(seat.imu[-1])
        seat.until(lambda: stamp(seat.imu[-1]) > first + 1.5)
        pace = 1.5 / (time.monotonic() - begin)
        return pace < 1.15 and (abs(pace - 1.0) < 0.15 or before - 0.15 < pace < told() + 0.15)

    seat.until(is_told)  # again where other tests have slowed it down
    steps = np.diff([stamp(message) for message in seat.imu])
    assert np.allclose(steps / 0.004, np.round(steps / 0.004), atol=1e-3)
    # the computer's time, never ahead of it
    assert time.time() - 3600.0 < stamp(seat.imu[-1]) <= time.time()
    assert np.median(steps) == pytest.approx(0.004, abs=1e-6)
    # at rest the IMU reads the reaction to gravity
    forces = np.array([(m.linear_acceleration.x, m.linear_acceleration.z) for m in seat.imu[-300:]])
    assert forces.mean(axis=0) == pytest.approx((0.0, 9.80665), abs=0.05)
    seat.until(
        lambda: re.fullmatch(r"playing|runs at 0\.\d\d × real time, 1 is wanted", seat.said()[1])
    )
    assert not seat.failsafe[-1].data


def test_publishes_its_battery(seat) -> None:
    """A standing vehicle draws the 25 W of its avionics: 0.496 A at 50.4 V."""
    from sensor_msgs.msg import BatteryState

    from rfly_common.ros.qos import STATE_OUT

    messages = seat.peer.receive(BatteryState, "/car/battery", STATE_OUT)
    message = seat.until(lambda: messages)[-1]
    assert message.current == pytest.approx(-25.0 / 50.4, rel=0.01)
    assert message.voltage == pytest.approx(50.4, abs=0.05)
    assert len(message.cell_voltage) == 12
    assert message.capacity == 22.0
    assert 0.99 < message.percentage < 1.0
    assert message.power_supply_status == BatteryState.POWER_SUPPLY_STATUS_DISCHARGING


def test_tells_the_forces_that_its_equations_use(seat) -> None:
    """Springs of a standing vehicle carry 25.2 kg, and its rotors take no torque."""
    from rfly_suite.msg import VehicleForces

    from rfly_common.ros.qos import SENSORS

    heard = seat.peer.receive(VehicleForces, "/car/ground_truth/forces", SENSORS)
    message = seat.until(lambda: heard)[-1]
    assert message.header.frame_id == "car/base_link"
    assert sum(message.spring_force) == pytest.approx(25.2 * 9.80665, rel=1e-3)
    assert max(map(abs, message.damper_force)) < 1.0
    assert [len(message.slip_ratio), len(message.slip_angle)] == [4, 4]
    assert list(message.rotor_torque) == [0.0] * 6


def test_tells_where_it_is_in_every_way_that_is_asked_for(seat) -> None:
    from nav_msgs.msg import Odometry
    from rfly_suite.msg import VehicleStateArray
    from sensor_msgs.msg import JointState, NavSatFix, Range
    from tf2_msgs.msg import TFMessage

    from rfly_common.ros.qos import FLEET_IN, SENSORS, TF, TF_STATIC_IN

    kinds = {
        "ground_truth/odom": Odometry,
        "wheel/odom": Odometry,
        "joint_states": JointState,
        "gps/fix": NavSatFix,
        "height_above_ground": Range,
    }
    heard = {topic: seat.peer.receive(of, f"/car/{topic}", SENSORS) for topic, of in kinds.items()}
    states = seat.peer.receive(VehicleStateArray, "/car/vehicle_states", FLEET_IN)
    moving = seat.peer.receive(TFMessage, "/tf", TF)
    fixed = seat.peer.receive(TFMessage, "/tf_static", TF_STATIC_IN)
    seat.until(lambda: all(heard.values()) and states and moving and fixed)
    state = states[-1]
    odometry = heard["ground_truth/odom"][-1]
    place = odometry.pose.pose.position
    assert (list(state.id), list(state.vehicle_type), state.motors) == ([610], [3], 8)
    assert state.position == pytest.approx((place.x, place.y, place.z), abs=1e-3)
    assert (odometry.header.frame_id, odometry.child_frame_id) == (
        "map",
        "car/base_link",
    )
    names = {(t.header.frame_id, t.child_frame_id) for message in fixed for t in message.transforms}
    assert {
        ("map", "car/odom"),
        ("car/base_link", "car/imu_link"),
        ("car/base_link", "car/gps_link"),
    } <= names
    [moved] = seat.until(
        lambda: [t for t in moving[-1].transforms if t.child_frame_id == "car/base_link"]
    )
    assert moved.header.frame_id == "car/odom"
    assert moved.transform.translation.z == pytest.approx(place.z, abs=1e-3)
    [below] = [t for t in moving[-1].transforms if t.child_frame_id == "car/base_footprint"]
    assert below.header.frame_id == "car/odom"
    assert below.transform.translation.z == 0.0  # level ground
    assert below.transform.translation.x == pytest.approx(place.x, abs=1e-3)


def test_runs_into_what_is_placed_before_it_and_says_what_broke(seat) -> None:
    """A wall 4 m ahead while it speeds up: it stays before it, and a reset repairs it."""
    from rfly_suite.msg import PlacedObjectArray, VehicleStateArray
    from std_msgs.msg import String

    from rfly_common.ros.qos import FLEET_IN, LATCHED

    objects = seat.peer.publisher(PlacedObjectArray, "/car/placed_objects", LATCHED)
    states = seat.peer.receive(VehicleStateArray, "/car/vehicle_states", FLEET_IN)
    wall = PlacedObjectArray(
        id=[900],
        vehicle_type=[0],
        position=[5.0, 0.0, 0.0],
        orientation=[0.0, 0.0, 0.0, 1.0],
        box_origin=[5.0, 0.0, 2.0],
        box_half_extent=[1.0, 8.0, 2.0],
        offset=[0.0],
        scale=[1.0, 1.0, 1.0],
        use_ground_packet=[0],
    )
    wall.header.frame_id = "nowhere"
    objects.publish(wall)
    seat.until(
        lambda: (
            seat.said()[1] == "placed_objects is ignored: frame 'nowhere', expected map or map_ned"
        )
    )
    wall.header.frame_id = "map"
    objects.publish(wall)
    seat.until(lambda: "ignored" not in seat.said()[1])

    def has_crashed() -> bool:
        if seat.failsafe[-1].data:  # a busy machine has kept it waiting for commands
            seat.mode.publish(String(data="arm"))
        return "crashed at " in seat.node.output

    seat.answer_until(has_crashed, torque=12.0)
    told = "crashed: the hull hit something; reset_simulation"
    seat.answer_until(
        lambda: seat.said()[1].startswith(told), torque=0.0
    )  # in silence the fail-safe is told first
    assert max(message.position[0] for message in states) < 4.0 - 0.6
    objects.publish(PlacedObjectArray(header=wall.header))
    assert seat.call("reset_simulation").result.result == 1
    seat.until(lambda: "crashed" not in seat.said()[1])


def test_fail_safe_after_silence_and_its_end_by_fresh_commands_and_arm(seat) -> None:
    from std_msgs.msg import String

    seat.answer_until(seat.later(0.4), torque=3.0)
    assert not seat.failsafe[-1].data
    seat.until(lambda: seat.failsafe[-1].data)  # nobody commands any more
    # of simulation time since the stamp of the last command, and the patience
    assert time.time() - seat.commanded_at > 0.2 + 0.5 - 0.1
    assert int(seat.until(lambda: seat.said()[2].get("waits_for_commands"))) > 0
    _, text, _ = seat.until(lambda: seat.said()[0] == 2 and seat.said())
    assert "commands are too old (rotors: " in text
    seat.mode.publish(String(data="arm"))
    seat.until(lambda: "the fail-safe goes on: commands are older than 0.2 s" in seat.node.output)
    seat.answer_until(lambda: "waits for arm" in seat.said()[1])
    assert seat.failsafe[-1].data  # fresh commands alone do not end it
    seat.mode.publish(String(data="arm"))
    seat.answer_until(lambda: not seat.failsafe[-1].data and seat.said()[0] != 2)


def test_commands_that_cannot_be_are_refused_and_the_node_stays(seat) -> None:
    from rfly_suite.msg import RotorCommand, WheelCommand
    from std_msgs.msg import Header

    kinds = ("refused_rotor_commands", "refused_wheel_commands")

    def counters():
        return [int(seat.said()[2].get(kind, 0)) for kind in kinds]

    before = counters()
    seat.rotors.publish(RotorCommand(value=[1.0, 2.0]))
    text = "cmd/rotors refused: 2 values, expected one for each of the 6 rotors"
    seat.until(lambda: seat.said()[0] == 1 and text in seat.said()[1])
    seat.rotors.publish(RotorCommand(value=[math.nan] * 6))
    seat.rotors.publish(RotorCommand(mode=7, value=[1.0] * 6))
    ahead = Header()
    ahead.stamp.sec = 10_000
    seat.rotors.publish(RotorCommand(header=ahead, value=[1.0] * 6))
    seat.wheels.publish(WheelCommand(brake_torque=[0.0, 0.0, -1.0, 0.0]))
    seat.until(lambda: counters() == [before[0] + 4, before[1] + 1])
    assert seat.node.process.poll() is None
    assert not seat.failsafe[-1].data  # what is refused is no command


def test_parts_are_broken_and_mended_while_it_runs(seat) -> None:
    from node_harness import RflyBeside
    from rfly_suite.srv import InjectFault
    from sensor_msgs.msg import FluidPressure

    from rfly_common.ros.qos import sensor_qos

    baro = seat.peer.receive(FluidPressure, "/car/baro", sensor_qos(False))
    seat.until(lambda: baro)
    pressure = baro[-1].fluid_pressure

    def inject(part, kind, **fields):
        return seat.peer.call(InjectFault, f"{SIM}/inject_fault", part=part, kind=kind, **fields)

    assert inject("barometer", "biased", value=[5000.0]).success
    seat.until(lambda: abs(baro[-1].fluid_pressure - pressure - 5000.0) < 100.0)
    seat.until(lambda: seat.said()[2]["faults"] == "barometer is biased: 5000")
    assert inject("barometer", "mend").success
    seat.until(lambda: abs(baro[-1].fluid_pressure - pressure) < 100.0)
    assert inject("barometer", "wrong", value=[9e4], duration_s=0.2).success
    seat.until(lambda: baro[-1].fluid_pressure == 9e4)
    seat.until(lambda: abs(baro[-1].fluid_pressure - pressure) < 100.0)

    for refused, text in (
        (inject("barometer", "mend"), "part: barometer has no fault to mend"),
        (inject("radar", "mend"), "part: 'radar', expected one of imu, gps, "),
        (inject("imu", "odd"), "kind: 'odd', expected one of off, stuck, "),
        (inject("imu", "off", duration_s=-1.0), "duration_s: -1.0 s, expected a finite number"),
        (inject("imu", "slow", value=[math.nan]), "value: nan Hz, expected a finite number"),
    ):
        assert not refused.success
        assert refused.message.startswith(text)

    # by the command
    def rfly(*words):
        return RflyBeside(seat.peer, "sim", "fault", "--namespace", "car", *words).end()

    assert rfly("barometer", "wrong", "--value", "80000") == (0, "barometer: wrong\n", "")
    seat.until(lambda: baro[-1].fluid_pressure == 8e4)
    assert rfly("barometer", "mend") == (0, "barometer: mended\n", "")
    code, _, errors = rfly("rotor_9", "off")
    assert code == 2
    assert "part: 'rotor_9', expected one of imu" in errors


def test_a_vehicle_on_six_wheels_takes_six_numbers_and_its_chassis_node_gives_them(
    domain_id,
) -> None:
    """Five are refused by their name; none are 0 for all."""
    from node_harness import NodeProcess
    from rfly_suite.msg import WheelCommand, WheelLoads
    from sensor_msgs.msg import JointState

    from rfly_common.ros.qos import COMMANDS, sensor_qos

    given = {"vehicle": "scale_six", "ground": "level", "wind": "[0.0, 0.0, 0.0]"}
    given["command_timeout"] = (
        "10.0"  # a slow test process is no link loss, whose fail-safe would stay
    )
    with NodeProcess("amphibious_sim_node", domain_id, given, "-r", "__ns:=/car") as node:
        seat = Seat(domain_id, node)
        joints = seat.peer.receive(JointState, "/car/joint_states", sensor_qos(False))
        loads = seat.peer.receive(WheelLoads, "/car/wheel_loads", sensor_qos(False))
        wheels = ["fl", "fr", "rl", "rr", "ml", "mr"]
        seat.until(lambda: joints and loads)
        assert [n.removeprefix("wheel_") for n in joints[-1].name if n.startswith("wheel_")] == [
            f"{wheel}_joint" for wheel in wheels
        ]
        assert sum(loads[-1].load) == pytest.approx(36.0 * 9.80665, rel=1e-3)
        assert len(loads[-1].load) == 6

        text = (
            "cmd/wheels refused: drive_torque: 5 values, expected one for each of fl, fr, rl, rr, "
            "ml, mr"
        )
        seat.wheels.publish(WheelCommand(drive_torque=[1.0] * 5))
        seat.until(lambda: seat.said()[0] == 1 and text in seat.said()[1])
        assert seat.said()[2]["refused_wheel_commands"] == "1"

        def rolls() -> bool:
            seat.wheels.publish(WheelCommand(drive_torque=[2.0] * 6))
            middle = joints[-1].velocity[joints[-1].name.index("wheel_ml_joint")]
            return bool(middle > 5.0)

        seat.until(rolls)
        assert seat.said()[2]["refused_wheel_commands"] == "1"

        told = seat.peer.receive(WheelCommand, "/car/cmd/wheels", COMMANDS)
        with NodeProcess(
            "chassis_control_node",
            domain_id,
            {"vehicle": "scale_six"},
            "-r",
            "__ns:=/car",
        ):
            seat.until(lambda: told and len(told[-1].brake_torque) == 6)
            assert list(told[-1].brake_torque) == pytest.approx(
                [0.3 * 12.0] * 6
            )  # no node publishes the mode
            seat.until(lambda: abs(joints[-1].velocity[4]) < 0.1)
        seat.peer.close()


def test_pause_step_reset_and_stop(seat) -> None:
    assert seat.state() == 1
    assert seat.go(1).result == 101  # already playing
    assert seat.call("step_simulation", steps=3).result.result == 4  # not paused: operation failed
    assert seat.go(2).result == 1
    paused = seat.time()
    seat.peer.spin_for(0.1)
    assert seat.time() == paused
    assert seat.call("step_simulation", steps=25).result.result == 1
    assert seat.time() == pytest.approx(paused + 0.1)
    assert seat.call("step_simulation", steps=0).result.result == 4
    assert seat.call("reset_simulation", scope=4).result.result == 0  # spawned: unsupported
    assert seat.call("reset_simulation").result.result == 1
    # 0.08 s back, to a whole 0.02 s: no buffer of transforms calls that old
    begin = seat.time()
    assert paused - 1e-6 < begin < paused + 0.02 + 1e-6
    assert begin / 0.02 == pytest.approx(round(begin / 0.02), abs=1e-3)
    assert seat.state() == 2
    assert seat.go(1).result == 1
    seat.until(lambda: seat.time() > begin + 0.05)
    assert seat.go(0).result == 1  # stopped: as reset and paused
    assert (seat.time() < stamp(seat.imu[-1]) - 0.05, seat.state()) == (True, 0)
    assert seat.go(3).result == 103
    features = list(seat.call("get_simulator_features").features.features)
    expected = [4, 6, 8, 10, 11, 12, 20, 21, 22, 24, 25, 26, 31, 32, 33]
    assert features == expected


def test_steps_as_an_action_end_when_they_are_done(seat) -> None:
    from rclpy.action import ActionClient
    from simulation_interfaces.action import SimulateSteps

    assert seat.go(2).result == 1
    paused = seat.time()
    told = []
    action = ActionClient(seat.peer.node, SimulateSteps, f"{SIM}/simulate_steps")
    seat.until(action.server_is_ready)
    asked = action.send_goal_async(
        SimulateSteps.Goal(steps=25),
        lambda message: told.append(message.feedback.remaining_steps),
    )
    seat.until(asked.done)
    ended = GoalResult(asked.result())
    seat.until(ended.done)
    assert ended.result().result.result.result == 1
    assert told == sorted(
        told, reverse=True
    )  # as far as it came: the node may not know of who listens yet
    assert seat.time() == pytest.approx(paused + 0.1)
    action.destroy()


def test_the_vehicle_can_be_put_elsewhere(seat) -> None:
    from simulation_interfaces.msg import EntityState

    assert seat.call("get_entity_state", entity="truck").result.result == 2
    assert seat.go(2).result == 1
    wanted = EntityState()
    wanted.pose.position.x = 30.0
    wanted.pose.position.y = -20.0
    wanted.pose.position.z = 5.0
    wanted.pose.orientation.w = wanted.pose.orientation.z = math.sqrt(0.5)
    wanted.twist.linear.x = 2.0
    wanted.twist.angular.x = 0.5
    assert seat.call("set_entity_state", entity="car", state=wanted).result.result == 1
    assert seat.call("step_simulation", steps=25).result.result == 1
    found = seat.call("get_entity_state", entity="car").state
    # 0.1 s of free fall, drifting to its right; in the world's axes
    assert (found.pose.position.x, found.pose.position.y) == pytest.approx((30.2, -20.0), abs=0.01)
    assert found.pose.position.z == pytest.approx(5.0 - 0.5 * 9.81 * 0.1**2, abs=0.02)
    assert found.twist.linear.z == pytest.approx(-0.98, abs=0.05)
    assert found.twist.angular.x == pytest.approx(
        0.5, abs=0.06
    )  # the wheels that drop take some of it
    assert found.acceleration.linear.z == pytest.approx(-9.8, abs=2.5)  # struts still swing
    wanted.pose.position.z = -3.0
    bad = seat.call("set_entity_state", entity="car", state=wanted).result
    assert (bad.result, "below the ground" in bad.error_message) == (101, True)
    # from where no step is small enough
    wanted.pose.position.z = 5.0
    wanted.twist.linear.x = 1e9
    told = seat.call("set_entity_state", entity="car", state=wanted).result.error_message
    assert told == "twist.linear: 1e+09, expected at most 200"
    wanted.pose.position.z = 1e7
    told = seat.call("set_entity_state", entity="car", state=wanted).result.error_message
    assert told == "pose.position.z: 1e+07, expected at most 10000"
    info = seat.call("get_entity_info", entity="car").info
    assert (info.category.category, list(info.tags)) == (1, ["land-air"])
    assert list(seat.call("get_entities").entities) == ["car"]
    wanted.header.frame_id = "moon"
    assert "moon" in seat.call("set_entity_state", entity="car", state=wanted).result.error_message


@pytest.fixture
def locked(domain_id):
    """A vehicle in lock-step, as fast as its peer answers."""
    from node_harness import NodeProcess

    parameters = {
        "ground": "level",
        "lock_step": "true",
        "real_time_factor": "0",
        "seed": "5",
        "publish_clock": "true",
    }
    with NodeProcess("amphibious_sim_node", domain_id, parameters, "-r", "__ns:=/car") as node:
        made = Seat(domain_id, node, lock_step=True)
        yield made
        made.peer.close()


def test_lock_step_stands_still_while_nobody_answers_and_repeats_bit_by_bit(
    locked,
) -> None:
    from sensor_msgs.msg import FluidPressure

    from rfly_amphibious.dynamics.model import AmphibiousModel
    from rfly_amphibious.sensors.sensor_parameters import SensorParameters
    from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
    from rfly_amphibious.simulation.simulation import Simulation
    from rfly_amphibious.vehicle.parameters import VehicleParameters
    from rfly_common.ros.qos import sensor_qos

    baro = locked.peer.receive(FluidPressure, "/car/baro", sensor_qos(lock_step=True))
    twice = locked.until(lambda: len(locked.ticks) >= 2 and locked.ticks)
    assert [stamp(tick) for tick in twice[:2]] == [
        0.0,
        0.0,
    ]  # the start, and told again
    assert locked.imu == []
    locked.until(
        lambda: "lock-step: waits for cmd/rotors and cmd/wheels of 0.000 s" in locked.said()[1]
    )
    for tick in range(250):
        locked.until(lambda due=0.004 * tick: abs(stamp(locked.ticks[-1]) - due) < 1e-9)
        locked.command(locked.ticks[-1].header, 0.5 * tick, 4.0)
    locked.until(lambda: abs(stamp(locked.ticks[-1]) - 1.0) < 1e-9)
    simulation = Simulation(
        AmphibiousModel(VehicleParameters.load("scale")),
        SensorParameters.load("scale"),
        seed=5,
        fail_safe=abort_pilot,
    )
    expected = []
    for tick in range(250):
        simulation.command_rotors(RotorCommand(simulation.time, np.full(6, 0.5 * tick)))
        simulation.command_wheels(WheelCommand(simulation.time, drive_torque=np.full(4, 4.0)))
        samples = simulation.tick()
        expected.append(samples.imu.specific_force[0].tolist())
    heard = [
        (m.linear_acceleration.x, m.linear_acceleration.y, m.linear_acceleration.z)
        for m in locked.imu
    ]
    assert np.array_equal(heard, expected)
    assert list(locked.ticks[-1].count) == [
        1,
        0,
        0,
        1,
        0,
        0,
        0,
        0,
        0,
        0,
    ]  # at 1 s all are due: what somebody hears
    locked.until(lambda: len(baro) == 25)
    locked.peer.spin_for(0.2)
    assert stamp(locked.ticks[-1]) == pytest.approx(1.0)  # and waits again


def test_lock_step_waits_for_both_commands_of_its_tick(locked) -> None:
    from rfly_suite.msg import RotorCommand, WheelCommand

    locked.until(lambda: locked.ticks)
    locked.command(locked.ticks[-1].header)
    locked.until(lambda: stamp(locked.ticks[-1]) > 0.0)
    now = locked.ticks[-1].header
    before = stamp(locked.ticks[-1])
    locked.rotors.publish(RotorCommand(header=now, value=[0.0] * 6))
    locked.wheels.publish(WheelCommand())  # without a stamp: taken, but no answer
    locked.until(lambda: "waits for cmd/wheels of" in locked.said()[1])
    assert stamp(locked.ticks[-1]) == before
    locked.wheels.publish(WheelCommand(header=now))
    locked.until(lambda: stamp(locked.ticks[-1]) == pytest.approx(before + 0.004))


def test_lock_step_steps_are_answered_when_their_commands_are_and_a_reset_begins_at_0(
    locked,
) -> None:
    from simulation_interfaces.srv import StepSimulation

    locked.until(lambda: locked.ticks)
    assert locked.go(2).result == 1
    client = locked.peer.node.create_client(StepSimulation, f"{SIM}/step_simulation")
    locked.until(client.service_is_ready)
    begin = stamp(locked.ticks[-1])
    future = client.call_async(StepSimulation.Request(steps=3))
    locked.peer.spin_for(0.1)
    assert not future.done()
    answered = -1.0

    def answer() -> bool:
        nonlocal answered
        if stamp(locked.ticks[-1]) > answered:
            answered = stamp(locked.ticks[-1])
            locked.command(locked.ticks[-1].header)
        return future.done()

    locked.until(answer)
    assert future.result().result.result == 1
    assert stamp(locked.ticks[-1]) == pytest.approx(begin + 0.012)
    assert locked.go(1).result == 1
    locked.call("reset_simulation")
    locked.until(lambda: stamp(locked.ticks[-1]) == 0.0)
    locked.command(locked.ticks[-1].header)
    locked.until(lambda: stamp(locked.ticks[-1]) == pytest.approx(0.004))


def test_lock_step_steps_that_nobody_answers_are_told_as_failed(locked) -> None:
    from rclpy.action import ActionClient
    from simulation_interfaces.action import SimulateSteps

    locked.until(lambda: locked.ticks)
    assert locked.go(2).result == 1
    end = locked.call("step_simulation", steps=3).result
    assert end.result == 4
    assert (
        end.error_message
        == "no cmd/rotors and cmd/wheels of 0.000 s came within 5 s: 3 steps are left undone"
    )
    client = ActionClient(locked.peer.node, SimulateSteps, f"{SIM}/simulate_steps")
    locked.until(client.server_is_ready)
    sent = client.send_goal_async(SimulateSteps.Goal(steps=2))
    goal = locked.until(lambda: sent.done() and sent.result())
    locked.peer.spin_for(0.3)
    cancelled = goal.cancel_goal_async()
    ended = GoalResult(goal)
    assert (
        locked.until(lambda: ended.done() and ended.result()).result.result.error_message
        == "cancelled"
    )
    assert cancelled.done()
    client.destroy()


def test_ends_in_order_while_it_waits(locked) -> None:
    assert locked.node.stop() == 0
    assert "Traceback" not in locked.node.output


def test_waits_for_terrain_map_and_stands_on_it(domain_id) -> None:
    from node_harness import NodeProcess
    from rfly_suite.msg import TerrainMap

    from rfly_common.ros.qos import LATCHED
    from rfly_terrain import HeightMap
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    with NodeProcess(
        "amphibious_sim_node",
        domain_id,
        {"start": "[20.0, 30.0, 0.5]"},
        "-r",
        "__ns:=/car",
    ) as node:
        seat = Seat(domain_id, node)
        assert seat.said()[:2] == (
            3,
            "no terrain_map has come yet: is terrain_node running?",
        )
        assert seat.state() == 5  # loading
        maps = seat.peer.publisher(TerrainMap, "/car/terrain_map", LATCHED)
        small = HeightMap(
            np.full((3, 3), 7.0),
            origin_x=-5.0,
            origin_y=-5.0,
            step_x=5.0,
            step_y=5.0,
            name="small",
        )
        maps.publish(height_map_to_msg(small, (0.0, 0.0, 0.0), 0, 10**6))
        assert (
            "lies off the map 'small'" in seat.until(lambda: seat.said()[0] == 2 and seat.said())[1]
        )
        large = HeightMap(
            np.full((3, 3), 7.0),
            origin_x=-50.0,
            origin_y=-50.0,
            step_x=50.0,
            step_y=50.0,
            name="large",
        )
        maps.publish(height_map_to_msg(large, (0.0, 0.0, 0.0), 0, 10**6))
        seat.until(lambda: seat.imu)
        place = seat.call("get_entity_state", entity="car").state.pose.position
        assert (place.x, place.y) == pytest.approx((20.0, 30.0), abs=0.01)
        assert 7.0 < place.z < 8.0
        seat.peer.close()


def test_bad_parameters_end_it_with_one_line_and_code_2(domain_id) -> None:
    from node_harness import NodeProcess

    with NodeProcess("amphibious_sim_node", domain_id, {"start": "[1.0, 2.0]"}) as node:
        assert node.process.wait(PATIENCE) == 2
        node.stop()
        assert "parameter start: [1.0, 2.0], expected x, y, heading" in node.output
        assert "Traceback" not in node.output

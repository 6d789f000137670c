# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""flight_control_node and chassis_control_node through DDS: a peer plays the simulation and the
estimator.
"""

import itertools
import json
import math
import time

import numpy as np
import pytest
from node_harness import PATIENCE, NodeProcess, Peer, diagnostic
from ros2_control_double import JointStateTopicSystem, ackermann

from rfly_amphibious.description.urdf import vehicle_urdf
from rfly_amphibious.dynamics.model import AmphibiousModel
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.pilot import abort_pilot
from rfly_autonomy.estimation.estimate import Estimate

pytestmark = pytest.mark.ros

TICK_NS = 4_000_000


class Plant:
    """A simulation: samples, and the truth as an estimate, go out; the nodes' answers come in."""

    def __init__(self, peer, vehicle, lock_step):
        from diagnostic_msgs.msg import DiagnosticArray
        from nav_msgs.msg import Odometry
        from rfly_suite import msg
        from sensor_msgs.msg import Imu, JointState, Range
        from std_msgs.msg import Bool, String

        from rfly_amphibious.ros.sensor_topics import sample_messages
        from rfly_common.ros.qos import COMMANDS, LATCHED, STATE_OUT, sensor_qos

        self.peer = peer
        self.vehicle = vehicle
        self.lock_step = lock_step
        self.sim = Simulation(
            AmphibiousModel(VehicleParameters.load("scale")),
            SensorParameters.load("scale"),
            noise=False,
            fail_safe=abort_pilot,
        )
        self.made = sample_messages(self.sim.sensors, vehicle)
        qos = sensor_qos(lock_step)
        kinds = {"imu": ("imu/data", Imu), "joints": ("joint_states", JointState)}
        kinds |= {
            "height": ("height_above_ground", Range),
            "wheel_loads": ("wheel_loads", msg.WheelLoads),
        }
        self.topics = {kind: topic for kind, (topic, _) in kinds.items()}
        self.out = {
            kind: peer.publisher(of, f"{vehicle}/{topic}", qos)
            for kind, (topic, of) in kinds.items()
        }
        odometry_qos = qos if lock_step else STATE_OUT
        self.odometry = peer.publisher(Odometry, f"{vehicle}/odometry/global", odometry_qos)
        self.words = peer.publisher(String, f"{vehicle}/cmd/mode", COMMANDS)
        self.failsafe = peer.publisher(Bool, f"{vehicle}/failsafe", LATCHED)
        self.rotors = peer.receive(msg.RotorCommand, f"{vehicle}/cmd/rotors", COMMANDS)
        self.wheels = peer.receive(msg.WheelCommand, f"{vehicle}/cmd/wheels", COMMANDS)
        self.modes = peer.receive(msg.VehicleMode, f"{vehicle}/mode", LATCHED)
        self.diagnostics = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
        self.ticks = (
            peer.publisher(msg.SimulationTick, f"{vehicle}/simulation_tick", STATE_OUT)
            if lock_step
            else None
        )
        for topic in (
            "joint_states",
            "wheel_loads",
            "odometry/global",
        ):  # both nodes are there
            peer.spin_until(
                lambda topic=topic: peer.node.count_subscribers(f"/{vehicle}/{topic}") == 2
            )
        by_both = (self.odometry, self.out["joints"], self.out["wheel_loads"])
        peer.spin_until(lambda: all(made.get_subscription_count() == 2 for made in by_both))

    @property
    def mode(self):
        return self.modes[-1].mode if self.modes else ""

    def sense(self):
        """A tick of the simulation; its samples go out. Counts by kind."""
        samples = self.sim.tick()
        counts = dict.fromkeys(self.out, 0)
        for kind in self.out:
            given = getattr(samples, kind)
            for message in [] if given is None else self.made(self.topics[kind], given):
                if kind == "joints":
                    self.joints_stamp = message.header.stamp
                self.out[kind].publish(message)
                counts[kind] += 1
        return counts

    def tell_estimate(self):
        from rfly_autonomy.ros.estimate_msgs import estimate_to_odometry

        s = self.sim.state
        self.odometry.publish(
            estimate_to_odometry(
                Estimate(s.time, s.position, s.orientation, s.velocity, s.rates),
                self.vehicle,
                rates=np.zeros((3, 3)),
            )
        )

    def tell_tick(self, counts):
        from rfly_suite.msg import SimulationTick

        message = SimulationTick()
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(self.sim.time_ns, 10**9)
        for kind, index in (
            ("imu", 0),
            ("joints", 4),
            ("height", 6),
            ("wheel_loads", 7),
        ):
            message.count[index] = counts[kind]
        self.ticks.publish(message)

    def answered(self, messages):
        """The rotors' with the stamp of imu/data; the wheels' with that of joint_states, or in
        lock-step the tick's.
        """
        if not messages:
            return False
        stamp = messages[-1].header.stamp
        if messages is self.wheels and not self.lock_step:
            return stamp == self.joints_stamp
        return (stamp.sec, stamp.nanosec) == divmod(self.sim.time_ns, 10**9)

    def obey(self):
        rotors = self.rotors[-1]
        wheels = self.wheels[-1]
        time = self.sim.time
        torques = rotors.mode == rotors.TORQUE
        self.sim.command_rotors(RotorCommand(time, np.array(rotors.value), torques))
        self.sim.command_wheels(
            WheelCommand(
                time,
                wheels.steering_angle,
                np.array(wheels.drive_torque),
                np.array(wheels.brake_torque),
            )
        )

    def step(self):
        """One tick, answered by both where it has samples for both. Best-effort samples may be
        lost: the next do.
        """
        for _ in range(20):
            self.tell_estimate()
            counts = self.sense()
            if self.lock_step:
                self.tell_estimate()
                self.tell_tick(counts)
            both = self.lock_step or counts["joints"]
            try:
                self.peer.spin_until(
                    lambda both=both: (
                        self.answered(self.rotors) and (not both or self.answered(self.wheels))
                    ),
                    PATIENCE if self.lock_step else 5.0,
                )
            except AssertionError:
                if self.lock_step:
                    raise
                continue
            if self.wheels:
                self.obey()
            return
        raise AssertionError("20 ticks without an answer")

    def run(self, seconds, each=lambda: None):
        for _ in range(round(seconds / 0.004)):
            each()
            self.step()

    def run_until(self, ready, each=lambda: None):
        deadline = time.monotonic() + PATIENCE
        while not ready():
            assert time.monotonic() < deadline, f"waited {PATIENCE} s in vain"
            each()
            self.step()

    def say(self, word, mode=None):
        from std_msgs.msg import String

        self.words.publish(String(data=word))
        if mode is not None:
            self.peer.spin_until(lambda: self.mode == mode)

    def status(self, task):
        return diagnostic(self.diagnostics, task)

    def until_status(self, task, part):
        return self.peer.spin_until(lambda: (s := self.status(task)) and part in s[1] and s)


def started(lock_step, vehicle, domain, rotor_command="speed", **of_chassis):
    arguments = {"lock_step": str(lock_step).lower()}
    of_flight = {"rotor_command": rotor_command}
    more = {"flight_control_node": of_flight, "chassis_control_node": of_chassis}
    return [
        NodeProcess(name, domain, arguments | given, "-r", f"__ns:=/{vehicle}")
        for name, given in more.items()
    ]


@pytest.fixture
def free(domain_id):
    """(plant, flight node, chassis node) that run on the clock."""
    flight, chassis = started(False, "bug", domain_id)
    peer = Peer(domain_id, events=True)
    with flight, chassis:
        plant = Plant(peer, "bug", False)
        peer.spin_until(lambda: plant.mode == "DISARMED")  # latched, before anything else
        plant.run(0.06)
        yield plant, flight, chassis
    peer.close()


def test_samples_are_answered_with_their_stamps(free):
    plant, _, _ = free
    assert list(plant.rotors[-1].value) == [0.0] * 6
    assert plant.rotors[-1].mode == 0
    plant.peer.spin_until(lambda: plant.wheels)
    assert plant.peer.node.count_subscribers("/bug/ground_truth/odom") == 0
    assert list(plant.wheels[-1].brake_torque) == [4.5] * 4  # parked: 0.3 · 15 N m


def test_words_are_taken_or_refused_with_the_reason(free):
    plant, _, _ = free
    plant.say("fly!")
    _, _, values = plant.until_status(
        "flight", "expected one of arm, disarm, drive, takeoff, fly, land, abort"
    )
    assert values["unknown_modes"] == "1"
    plant.say("takeoff")
    plant.until_status("flight", "cannot go from DISARMED to TAKEOFF; allowed from DRIVE")
    assert plant.mode == "DISARMED"
    plant.say("arm", "DRIVE")


def test_a_request_before_the_first_estimate_waits_for_it_a_second(domain_id):
    """Guidance may know an estimate a moment before the controller does."""
    flight, chassis = started(False, "bug", domain_id)
    peer = Peer(domain_id, events=True)
    with flight, chassis:
        plant = Plant(peer, "bug", False)
        peer.spin_until(lambda: plant.mode == "DISARMED")
        peer.spin_until(lambda: plant.words.get_subscription_count() == 1)
        text = "cmd/mode 'takeoff' refused: nothing is known of the vehicle yet: no estimate"
        plant.peer.spin_until(lambda: text in flight.output or plant.say("takeoff"))

        # the newest one waits
        plant.say("land")
        plant.say("arm")
        plant.run_until(lambda: plant.mode == "DRIVE")
        assert "cmd/mode 'land' refused: nothing is known" in flight.output
        assert "'arm' refused" not in flight.output
    peer.close()


def test_a_request_that_waits_is_refused_as_the_time_goes_back(domain_id):
    """Else it would arm the vehicle of another run."""
    flight, chassis = started(False, "bug", domain_id)
    peer = Peer(domain_id, events=True)
    with flight, chassis:
        plant = Plant(peer, "bug", False)
        peer.spin_until(lambda: plant.words.get_subscription_count() == 1)
        imu = plant.made("imu/data", plant.sim.tick().imu)[-1]
        imu.header.stamp.sec = 100
        peer.spin_until(lambda: plant.rotors or plant.out["imu"].publish(imu))

        plant.say("arm")
        plant.say("fly!")  # refused at once, so that the other has come
        peer.spin_until(lambda: "'fly!' refused" in flight.output)
        imu.header.stamp.sec = 0
        peer.spin_until(lambda: "time went back" in flight.output or plant.out["imu"].publish(imu))
        plant.run(0.1)
        assert plant.mode == "DISARMED"
        assert "cmd/mode 'arm' refused: nothing is known" in flight.output
    peer.close()


def test_an_axle_is_lifted_by_topic(free):
    from std_msgs.msg import String

    from rfly_common.ros.qos import COMMANDS

    plant, _, _ = free
    assist = plant.peer.publisher(String, "bug/cmd/assist", COMMANDS)
    plant.peer.spin_until(lambda: assist.get_subscription_count() == 2)  # both nodes
    plant.say("arm", "DRIVE")
    plant.run_until(
        lambda: max(plant.rotors[-1].value) > 100.0,
        lambda: assist.publish(String(data="lift_front")),
    )
    plant.until_status("flight", "DRIVE")

    assist.publish(String(data="jump"))
    for task in ("flight", "chassis"):
        plant.peer.spin_until(
            lambda task=task: "refused_cmd_assist" in (plant.status(task) or ("", "", {}))[2]
        )


def test_no_take_off_begins_while_the_wheels_get_no_power(free):
    """chassis_control_node says so; a text of another publisher is as good as its own."""
    from std_msgs.msg import String

    from rfly_common.ros.qos import LATCHED

    plant, flight, _ = free
    own = plant.peer.receive(String, "bug/no_power", LATCHED)
    plant.peer.spin_until(lambda: own)
    assert own[-1].data == ""
    text = plant.peer.publisher(String, "bug/no_power", LATCHED)
    plant.peer.spin_until(lambda: text.get_subscription_count() == 2)
    plant.say("arm", "DRIVE")
    text.publish(String(data="the battery is dead"))
    plant.run_until(
        lambda: "'takeoff' refused: the battery is dead" in flight.output,
        lambda: plant.say("takeoff"),
    )
    assert plant.mode == "DRIVE"
    text.publish(String(data=""))
    plant.run_until(lambda: plant.mode == "TAKEOFF", lambda: plant.say("takeoff"))


def test_a_node_that_has_died_forbids_no_take_off(free):
    """Nothing would ever take back that the wheels got no power."""
    from std_msgs.msg import String

    from rfly_common.ros.qos import LATCHED

    plant, flight, chassis = free
    text = plant.peer.publisher(String, "bug/no_power", LATCHED)
    plant.peer.spin_until(lambda: text.get_subscription_count() == 1)
    plant.say("arm", "DRIVE")
    text.publish(String(data="the battery is dead"))
    refused = "'takeoff' refused: the battery is dead"
    plant.run_until(lambda: refused in flight.output, lambda: plant.say("takeoff"))

    chassis.stop()
    plant.peer.node.destroy_publisher(text)
    plant.run_until(lambda: plant.mode == "TAKEOFF", lambda: plant.say("takeoff"))


def test_a_wrench_is_refused_with_the_reason(free):
    """No command in another frame, sideways, downwards, no number, or late counts; its own do."""
    from geometry_msgs.msg import WrenchStamped

    from rfly_common.ros.qos import COMMANDS

    plant, _, _ = free
    wrench = plant.peer.publisher(WrenchStamped, "bug/cmd/wrench", COMMANDS)
    plant.peer.spin_until(lambda: wrench.get_subscription_count() == 1)
    plant.run(0.2)

    def push(frame, x, y, z, pitch=0.0, stamp=(0, 0)):
        message = WrenchStamped()
        message.header.stamp.sec, message.header.stamp.nanosec = stamp
        message.header.frame_id = frame
        force = message.wrench.force
        force.x, force.y, force.z = x, y, z
        message.wrench.torque.y = pitch
        wrench.publish(message)

    def refused():
        values = (plant.status("flight") or ("", "", {}))[2]
        return int(values.get("refused_cmd_wrench", 0))

    base = "bug/base_link"
    cases = (
        (("map", 0.0, 0.0, 9.0), "header.frame_id is 'map', expected bug/base_link"),
        ((base, 1.0, 0.0, 9.0), "force is (1, 0, 9), expected only z"),
        ((base, math.nan, 0.0, 9.0), "force is (nan, 0, 9), expected only z"),
        ((base, 0.0, 0.0, -1.0), "thrust is -1 N, expected 0 or more"),
        ((base, 0.0, 0.0, math.nan), "nan, expected a finite number"),
        ((base, 0.0, 0.0, 9.0, math.inf), "inf, expected a finite number"),
        ((base, 0.0, 0.0, 9.0, 0.0, (0, 1)), " s ago, expected at most 0.1 s"),
    )
    for count, (pushed, message) in enumerate(cases, 1):
        push(*pushed)
        plant.until_status("flight", message)
        assert refused() == count
    push(base, 0.0, 0.0, 9.0)
    push("", 0.0, 0.0, 9.0)
    push("map", 0.0, 0.0, 9.0)
    plant.peer.spin_until(lambda: refused() > len(cases))
    assert refused() == len(cases) + 1, "two of three were right"


@pytest.mark.parametrize("topic", ["cmd/ackermann", "cmd/pose", "cmd_vel"])
def test_a_link_that_loses_most_commands_is_told(free, topic):
    """Of a command each 5 ticks, ten come, and then those after gaps of 4, 8 and 5 others."""
    from ackermann_msgs.msg import AckermannDriveStamped
    from geometry_msgs.msg import PoseStamped, TwistStamped

    from rfly_common.ros.qos import COMMANDS

    plant, _, _ = free
    plant.say("arm", "DRIVE")
    tasks = ("chassis",) if topic == "cmd/ackermann" else ("flight", "chassis")
    kinds = {
        "cmd/ackermann": AckermannDriveStamped,
        "cmd/pose": PoseStamped,
        "cmd_vel": TwistStamped,
    }
    kind = kinds[topic]
    commands = plant.peer.publisher(kind, f"bug/{topic}", COMMANDS)
    plant.peer.spin_until(lambda: commands.get_subscription_count() == len(tasks))
    # a busy machine may lose some of the ten: they come again
    gaps = itertools.cycle([0.02] * 12 + [0.08, 0.16, 0.10] * 4)
    due = plant.sim.time

    def command():
        nonlocal due
        if plant.sim.time >= due - 1e-9:
            due = plant.sim.time + next(gaps)
            message = kind()
            seconds, nanoseconds = divmod(plant.sim.time_ns, 10**9)
            message.header.stamp.sec, message.header.stamp.nanosec = seconds, nanoseconds
            commands.publish(message)

    text = f"most commands on {topic} are lost"
    told = lambda task: text in (plant.status(task) or ("", ""))[1]  # noqa: E731
    plant.run_until(lambda: all(map(told, tasks)), command)


def test_driving_by_each_command_and_braking_without(free):
    from ackermann_msgs.msg import AckermannDriveStamped
    from geometry_msgs.msg import PoseStamped, TwistStamped

    from rfly_common.ros.qos import COMMANDS

    plant, _, _ = free
    plant.say("arm", "DRIVE")
    ackermann = plant.peer.publisher(AckermannDriveStamped, "bug/cmd/ackermann", COMMANDS)
    twist = plant.peer.publisher(TwistStamped, "bug/cmd_vel", COMMANDS)
    pose = plant.peer.publisher(PoseStamped, "bug/cmd/pose", COMMANDS)
    plant.peer.spin_until(
        lambda: twist.get_subscription_count() == pose.get_subscription_count() == 2
    )  # both nodes
    drive = AckermannDriveStamped()
    turn = TwistStamped()
    place = PoseStamped()
    drive.drive.speed = 1.0
    drive.drive.steering_angle = 0.25
    plant.run_until(
        lambda: min(plant.wheels[-1].drive_torque) > 0.0,
        lambda: ackermann.publish(drive),
    )
    plant.run(0.4, lambda: ackermann.publish(drive))
    speed = float(plant.sim.state.velocity[0])
    assert 0.25 < speed < 0.7
    assert plant.wheels[-1].steering_angle == 0.25
    assert min(plant.wheels[-1].drive_torque) > 0.0
    turn.twist.linear.x = 1.0
    turn.twist.angular.z = -0.5
    plant.run(0.2, lambda: twist.publish(turn))
    assert plant.wheels[-1].steering_angle == pytest.approx(math.atan(-0.66 * 0.5), abs=0.01)
    place.header.frame_id = "map"
    place.pose.position.x = 10.0
    place.pose.position.y = 10.0
    place.pose.orientation.w = 1.0
    plant.run(0.2, lambda: pose.publish(place))
    assert 0.05 < plant.wheels[-1].steering_angle < 0.1  # a wide bend, to the left again
    assert min(plant.wheels[-1].drive_torque) > 0.0
    torques = []
    plant.run(0.7, lambda: torques.append(max(plant.wheels[-1].drive_torque)))
    assert min(torques) < 0.0
    assert plant.until_status("chassis", "the motion command is lost")
    place.header.frame_id = "mars"
    pose.publish(place)
    turn.header.frame_id = "map"
    twist.publish(turn)
    _, _, values = plant.peer.spin_until(
        lambda: (
            (s := plant.status("chassis"))
            and "refused_cmd_vel" in s[2]
            and "refused_cmd_pose" in s[2]
            and s
        )
    )
    assert values["refused_cmd_pose"] == "1"
    plant.run(0.2)


def test_ros2_control_drives_by_joint_commands_alone(domain_id):
    from rclpy.qos import QoSProfile
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64, String

    from rfly_common.ros.qos import COMMANDS, LATCHED

    description = vehicle_urdf(VehicleParameters.load("scale"), ros2_control="/bug")
    control = JointStateTopicSystem(description)
    given = {"joint_commands": "true", "robot_description": json.dumps(description)}
    peer = Peer(domain_id, events=True)
    flight, chassis = started(False, "bug", domain_id, **given)
    with flight, chassis:
        plant = Plant(peer, "bug", False)
        texts = peer.receive(String, "bug/robot_description", LATCHED)
        looks = peer.receive(Float64, "bug/gimbal/cmd", COMMANDS)
        joints = peer.publisher(
            JointState, control.params["joint_commands_topic"], QoSProfile(depth=1)
        )
        peer.spin_until(lambda: texts)
        assert texts[-1].data == description
        assert not peer.node.count_subscribers("/bug/cmd/ackermann")

        def cycle():
            message = control.write()
            joints.publish(JointState(**message._asdict()))

        # parked, and told what is missing
        control.commands |= ackermann(1.0, 0.4, 0.66, 0.56, 0.108)
        control.commands["camera_joint/position"] = 0.3
        plant.run(0.06, cycle)
        peer.spin_until(lambda: looks)
        assert {each.data for each in looks} == {0.3}
        plant.until_status("chassis", "it is not armed: send arm on cmd/mode")
        assert list(plant.wheels[-1].brake_torque) == [4.5] * 4

        # rear wheels pull, front wheels steer
        plant.say("arm", "DRIVE")
        plant.run_until(lambda: max(plant.wheels[-1].drive_torque) > 0.0, cycle)
        plant.run(0.2, cycle)
        assert plant.wheels[-1].steering_angle == pytest.approx(math.atan(0.66 / 2.5))
        assert list(plant.wheels[-1].drive_torque)[:2] == [0.0, 0.0]

        # a message that cannot be read changes nothing; silence brakes
        joints.publish(JointState(name=["wing_joint"]))
        plant.until_status("chassis", "joint_commands refused: unknown joints 'wing_joint'")
        plant.run_until(lambda: min(plant.wheels[-1].drive_torque) < 0.0)
        plant.until_status("chassis", "the motion command is lost: it brakes")
    peer.close()


def test_the_fail_safe_leads_to_abort_and_arm_ends_it(free):
    from std_msgs.msg import Bool

    plant, _, _ = free
    plant.say("arm", "DRIVE")
    plant.run(0.1)
    plant.failsafe.publish(Bool(data=True))
    plant.peer.spin_until(lambda: plant.mode == "ABORT")
    level, _, _ = plant.until_status("flight", "aborted: the simulation's fail-safe acts")
    assert level == 2
    plant.run_until(lambda: list(plant.wheels[-1].brake_torque) == [15.0] * 4)
    plant.run(0.8)
    plant.failsafe.publish(Bool(data=False))
    plant.say("arm", "DRIVE")


def test_time_that_goes_back_disarms(free):
    plant, _, _ = free
    plant.say("arm", "DRIVE")
    plant.run(0.02)
    plant.sim.reset()
    plant.rotors.clear()
    plant.wheels.clear()
    plant.run(0.02)
    plant.peer.spin_until(lambda: plant.mode == "DISARMED")


def test_brakes_when_nobody_tells_the_mode(free):
    plant, flight, chassis = free
    plant.say("arm", "DRIVE")
    assert flight.stop() == 0
    plant.until_status("chassis", "no node publishes the mode")
    count = len(plant.wheels)

    def braked():
        plant.tell_estimate()
        plant.sense()
        plant.peer.spin_for(0.002)
        return len(plant.wheels) > count

    plant.peer.spin_until(braked)
    assert list(plant.wheels[-1].brake_torque) == [4.5] * 4
    assert chassis.stop() == 0


def test_lock_step_from_a_stand_into_the_air(domain_id):
    """Each tick has one answer of each node, after the estimate has arrived.

    A repeated tick gets the same answer. The rotors are commanded by torque.
    """
    flight, chassis = started(True, "bee", domain_id, "torque")
    peer = Peer(domain_id, events=True)
    with flight, chassis:
        plant = Plant(peer, "bee", True)
        plant.step()
        plant.run(0.1)
        count = len(plant.rotors), len(plant.wheels)
        counts = plant.sense()
        plant.tell_tick(counts)
        peer.spin_for(0.2)
        assert (len(plant.rotors), len(plant.wheels)) == count
        plant.tell_estimate()
        peer.spin_until(lambda: plant.answered(plant.rotors) and plant.answered(plant.wheels))
        plant.tell_tick(counts)
        peer.spin_until(
            lambda: (len(plant.rotors), len(plant.wheels)) == (count[0] + 2, count[1] + 2)
        )
        assert plant.rotors[-1] == plant.rotors[-2]
        plant.obey()
        plant.say("arm", "DRIVE")
        plant.say("takeoff", "TAKEOFF")
        begin = plant.sim.time
        first = len(plant.rotors)
        for _ in range(1000):
            plant.step()
            if plant.mode == "FLIGHT":
                break
        assert plant.mode == "FLIGHT"
        assert {message.mode for message in plant.rotors} == {plant.rotors[-1].TORQUE}
        assert 2.0 < plant.sim.time - begin < 3.5
        assert float(plant.sim.outputs.clearance) > 0.45
        expected = round((plant.sim.time - begin) / 0.004)
        assert len(plant.rotors) - first == expected
        stamps = [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in plant.rotors[first:]]
        expected = [TICK_NS] * (len(stamps) - 1)
        assert np.diff(stamps).tolist() == expected
        began = {m.mode: m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in plant.modes}
        asked = round(begin * 1e9)
        assert (began["DISARMED"], began["DRIVE"], began["TAKEOFF"]) == (0, asked, asked)
        assert began["FLIGHT"] in stamps
        plant.sim.reset()  # the first tick has no samples, and is not answered by what flew before
        plant.tell_tick(dict.fromkeys(plant.out, 0))
        peer.spin_until(lambda: plant.mode == "DISARMED")
        plant.tell_estimate()
        peer.spin_until(lambda: plant.answered(plant.rotors) and plant.answered(plant.wheels))
        assert list(plant.rotors[-1].value) == [0.0] * 6
        assert flight.stop() == chassis.stop() == 0
    peer.close()

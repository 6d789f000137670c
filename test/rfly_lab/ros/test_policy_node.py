# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""policy_node with the shipped policy: against messages of the test, and a simulated vehicle."""

from __future__ import annotations

import contextlib
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rfly_lab import shipped_policy

pytestmark = [pytest.mark.ros, pytest.mark.needs("onnx", "onnxruntime")]


class Puppet:
    """A vehicle that stands still in the air at (0, 0, 5) over level ground, by messages."""

    def __init__(self, peer: Any) -> None:
        from diagnostic_msgs.msg import DiagnosticArray
        from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
        from nav_msgs.msg import Odometry, Path
        from rfly_suite.msg import VehicleMode, WheelLoads
        from sensor_msgs.msg import FluidPressure, Imu, JointState, NavSatFix, Range
        from std_msgs.msg import String

        from rfly_amphibious.sensors.samples import joint_names
        from rfly_amphibious.vehicle.parameters import VehicleParameters
        from rfly_common.ros.qos import COMMANDS, LATCHED, SENSORS, STATE_OUT

        self.params = VehicleParameters.load("scale")
        self.peer = peer
        self.time = 100.0
        self.yaw = 0.0
        self.load = 0.0
        """Load of each wheel, N."""
        self.poses = peer.receive(PoseStamped, "cmd/pose", COMMANDS)
        self.wrenches = peer.receive(WrenchStamped, "cmd/wrench", COMMANDS)
        self.requests = peer.receive(String, "cmd/mode", COMMANDS)
        self.said = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
        self._goal = peer.node.create_publisher(PoseStamped, "goal_pose", COMMANDS)
        self._path = peer.node.create_publisher(Path, "follow_path", LATCHED)
        self._mode = peer.node.create_publisher(VehicleMode, "mode", LATCHED)
        self._odometry = peer.node.create_publisher(Odometry, "odometry/global", STATE_OUT)
        self._joints = peer.node.create_publisher(JointState, "joint_states", SENSORS)
        self._height = peer.node.create_publisher(Range, "height_above_ground", SENSORS)
        self._loads = peer.node.create_publisher(WheelLoads, "wheel_loads", SENSORS)
        self.more = {
            topic: peer.node.create_publisher(kind, topic, SENSORS)
            for topic, kind in (
                ("imu/data", Imu),
                ("baro", FluidPressure),
                ("gps/fix", NavSatFix),
                ("gps/vel", TwistStamped),
            )
        }
        """Sensors of a policy that sees by them."""
        self.unseen: set[str] = set()
        """Topics of these that are silent."""
        self._names = joint_names(self.params)

    def set_mode(self, mode: str) -> None:
        from rfly_suite.msg import VehicleMode

        self._mode.publish(VehicleMode(mode=mode))

    def send_goal(self, x: float, y: float, z: float, frame: str = "map") -> None:
        from geometry_msgs.msg import PoseStamped

        message = PoseStamped()
        message.header.frame_id = frame
        place = message.pose.position
        place.x, place.y, place.z = x, y, z
        message.pose.orientation.w = 1.0
        self._goal.publish(message)

    def send_path(self, *places: tuple[float, float, float], frame: str = "map") -> None:
        from geometry_msgs.msg import PoseStamped
        from nav_msgs.msg import Path

        message = Path()
        message.header.frame_id = frame
        for x, y, z in places:
            pose = PoseStamped()
            pose.header.frame_id = frame
            pose.pose.position.x, pose.pose.position.y, pose.pose.position.z = x, y, z
            pose.pose.orientation.w = 1.0
            message.poses.append(pose)
        self._path.publish(message)

    def tell(self, sensors: bool = True) -> None:
        """Publish an estimate, and the samples of a period before it."""
        from nav_msgs.msg import Odometry
        from rfly_suite.msg import WheelLoads
        from sensor_msgs.msg import JointState, Range

        from rfly_common.ros.stamps import ns_to_stamp

        self.time += 0.02
        stamp = ns_to_stamp(round(self.time * 1e9))
        if sensors:
            joints = JointState(name=self._names)
            joints.header.stamp = stamp
            speeds = [0.0] * (len(self._names) - 6) + [200.0, -200.0] * 3
            joints.position = [0.0] * len(self._names)
            joints.velocity = speeds
            self._joints.publish(joints)
            height = Range(min_range=0.05, max_range=100.0, range=4.9)
            height.header.stamp = stamp
            self._height.publish(height)
            loads = WheelLoads(load=[self.load] * 4)
            loads.header.stamp = stamp
            self._loads.publish(loads)
            self._tell_more(stamp)
        message = Odometry()
        message.header.frame_id = "map"
        message.header.stamp = stamp
        message.child_frame_id = "amphibious/base_link"
        message.pose.pose.position.z = 5.0
        message.pose.pose.orientation.z = math.sin(0.5 * self.yaw)
        message.pose.pose.orientation.w = math.cos(0.5 * self.yaw)
        self._odometry.publish(message)

    def _tell_more(self, stamp: Any) -> None:
        """Publish IMU, barometer and GPS, at the origin of a world without a map."""
        from geometry_msgs.msg import TwistStamped
        from sensor_msgs.msg import FluidPressure, Imu, NavSatFix

        from rfly_common.geodesy import DEFAULT_GEO_ORIGIN
        from rfly_common.physics import standard_pressure

        imu = Imu()
        imu.linear_acceleration.z = 9.80665
        imu.orientation.z = math.sin(0.5 * self.yaw)
        imu.orientation.w = math.cos(0.5 * self.yaw)
        latitude, longitude, altitude = DEFAULT_GEO_ORIGIN
        fix = NavSatFix(latitude=latitude, longitude=longitude, altitude=altitude + 5.0)
        fix.status.status = 0
        baro = FluidPressure(fluid_pressure=float(standard_pressure(altitude + 5.0)))
        messages = {"imu/data": imu, "baro": baro, "gps/fix": fix, "gps/vel": TwistStamped()}
        for topic, message in messages.items():
            if topic not in self.unseen:
                message.header.stamp = stamp
                self.more[topic].publish(message)

    def tell_until(self, ready: Any, sensors: bool = True) -> None:
        """Go on until a condition holds."""

        def step() -> Any:
            self.tell(sensors)
            self.peer.spin_for(0.02)
            return ready()

        self.peer.spin_until(step)

    def is_heard(self) -> bool:
        """Return whether the node receives what the vehicle publishes."""
        topics = (
            self._goal,
            self._path,
            self._mode,
            self._odometry,
            self._joints,
            self._height,
            self._loads,
        )
        return all(topic.get_subscription_count() for topic in topics)

    def doing(self) -> str:
        from node_harness import diagnostic

        status = diagnostic(self.said, "policy")
        return "" if status is None else str(status[1])


@pytest.fixture
def puppet(domain_id: int) -> Any:
    from node_harness import Peer

    peer = Peer(domain_id)
    yield Puppet(peer)
    peer.close()


@pytest.mark.exhaustive
def test_it_commands_in_flight_alone_and_only_what_it_knows(domain_id: int, puppet: Any) -> None:
    from node_harness import NodeProcess

    with NodeProcess("policy_node", domain_id, {"policy": str(shipped_policy("hover"))}) as node:
        puppet.peer.spin_until(puppet.is_heard)
        puppet.set_mode("DRIVE")
        puppet.tell_until(lambda: "waits for goal_pose" in puppet.doing())
        puppet.send_goal(0.5, 0.0, 5.0)
        puppet.tell_until(lambda: "waits for FLIGHT, it is in DRIVE" in puppet.doing())
        assert not puppet.wrenches
        assert not puppet.requests, "without autostart it asks for no mode"

        puppet.set_mode("FLIGHT")
        puppet.tell_until(lambda: len(puppet.wrenches) > 5)
        message = puppet.wrenches[-1]
        assert message.header.frame_id == "amphibious/base_link"
        force = message.wrench.force
        torque = message.wrench.torque
        weight = puppet.params.mass * 9.80665
        assert (force.x, force.y) == (0.0, 0.0)
        assert 0.0 < force.z < 2.0 * weight
        assert torque.y > 0.0, "the nose goes down towards a target ahead"
        puppet.tell_until(lambda: puppet.doing() == "hover: running")

        # without sensors, and too far away
        puppet.tell_until(lambda: "not known: " in puppet.doing(), sensors=False)
        assert "joints" in puppet.doing()
        puppet.tell_until(lambda: puppet.doing() == "hover: running")
        puppet.send_goal(60.0, 0.0, 5.0)
        puppet.tell_until(lambda: "astray: it commands nothing" in puppet.doing())
        puppet.peer.spin_for(0.2)
        puppet.wrenches.clear()
        for _ in range(10):
            puppet.tell()
            puppet.peer.spin_for(0.02)
        assert not puppet.wrenches

        # where it is already it hovers, and hands back by silence all the same
        puppet.send_goal(0.0, 0.0, 5.0)
        puppet.tell_until(lambda: puppet.doing() == "hover: success")
        puppet.tell_until(lambda: "not known: " in puppet.doing(), sensors=False)
        puppet.poses.clear()
        for _ in range(10):
            puppet.tell(sensors=False)
            puppet.peer.spin_for(0.02)
        assert not puppet.poses

        # goals that are none
        puppet.send_goal(float("nan"), 0.0, 5.0)
        puppet.tell_until(lambda: "goal_pose refused" in puppet.doing())
        puppet.send_goal(0.0, 0.0, 5.0)
        puppet.tell_until(lambda: puppet.wrenches)
        assert "Traceback" not in node.output


@pytest.mark.exhaustive
def test_it_takes_off_once_for_each_target(domain_id: int, puppet: Any) -> None:
    """A vehicle that was landed or disarmed, or that was to stop, stays on the ground."""
    from node_harness import NodeProcess

    def land_and_stay(mode: str = "DRIVE") -> None:
        puppet.set_mode(mode)
        puppet.tell_until(lambda: f"is in {mode}" in puppet.doing() or "waits" in puppet.doing())
        puppet.peer.spin_for(0.2)
        puppet.requests.clear()
        for _ in range(60):
            puppet.tell()
            puppet.peer.spin_for(0.01)
        assert not puppet.requests

    parameters = {"policy": str(shipped_policy("hover")), "autostart": "true"}
    with NodeProcess("policy_node", domain_id, parameters) as node:
        puppet.peer.spin_until(puppet.is_heard)
        puppet.set_mode("DRIVE")
        puppet.tell_until(lambda: puppet.requests)
        assert puppet.requests[0].data == "takeoff"
        puppet.set_mode("FLIGHT")
        puppet.tell_until(lambda: puppet.doing() == "hover: running")
        land_and_stay()

        # a new target, and a pilot who disarms it before it flies
        puppet.send_goal(0.5, 0.0, 5.0)
        puppet.tell_until(lambda: puppet.requests)
        land_and_stay("DISARMED")
        puppet.set_mode("DRIVE")

        # a new target, then none
        puppet.send_goal(0.5, 0.0, 5.0)
        puppet.tell_until(lambda: puppet.requests)
        puppet.send_path()
        puppet.tell_until(lambda: "waits for goal_pose" in puppet.doing())
        land_and_stay()
        assert "Traceback" not in node.output


@pytest.mark.exhaustive
def test_it_hops_and_lands_once_for_each_target(domain_id: int, puppet: Any) -> None:
    """Wrenches from TAKEOFF on; once it stands, `land`, and nothing more without a new target."""
    from node_harness import NodeProcess

    def stays_on_the_ground() -> bool:
        puppet.peer.spin_for(0.2)
        puppet.requests.clear()
        puppet.wrenches.clear()
        for _ in range(60):
            puppet.tell()
            puppet.peer.spin_for(0.01)
        return not puppet.requests and not puppet.wrenches

    parameters = {"policy": str(shipped_policy("hop")), "autostart": "true"}
    with NodeProcess("policy_node", domain_id, parameters) as node:
        puppet.peer.spin_until(puppet.is_heard)
        puppet.load = 70.0
        puppet.set_mode("DRIVE")
        puppet.tell_until(lambda: "waits for goal_pose" in puppet.doing())
        assert stays_on_the_ground(), "a hop leads somewhere"

        # too far away, then where it stands
        puppet.send_goal(60.0, 0.0, 0.0)
        puppet.tell_until(lambda: "astray: it commands nothing" in puppet.doing())
        assert stays_on_the_ground()
        puppet.send_goal(0.5, 0.0, 0.0)
        puppet.tell_until(lambda: "success, it waits for a new target" in puppet.doing())
        assert stays_on_the_ground()

        # it takes off itself, and its place comes nearer than its height
        puppet.send_goal(12.0, 0.0, 0.0)
        puppet.tell_until(lambda: puppet.requests)
        assert puppet.requests[0].data == "takeoff"
        assert not puppet.wrenches
        puppet.set_mode("TAKEOFF")
        puppet.tell_until(lambda: len(puppet.wrenches) > 5)
        puppet.set_mode("FLIGHT")
        puppet.load = 0.0
        puppet.send_goal(1.0, 1.0, 0.0)
        puppet.tell_until(lambda: puppet.doing() == "hop: running")
        puppet.requests.clear()

        # it stands
        puppet.load = 70.0
        puppet.tell_until(lambda: puppet.requests)
        assert puppet.requests[0].data == "land"
        puppet.set_mode("SPOOL_DOWN")
        assert stays_on_the_ground()
        puppet.set_mode("DRIVE")
        assert stays_on_the_ground()
        puppet.send_goal(-9.0, 0.0, 0.0)
        puppet.tell_until(lambda: puppet.requests)
        assert puppet.requests[0].data == "takeoff"
        assert "Traceback" not in node.output


def test_it_stays_at_the_last_way_point(domain_id: int, puppet: Any) -> None:
    """It keeps place and heading of the moment at which it has passed the last one."""
    from node_harness import NodeProcess

    with NodeProcess("policy_node", domain_id, {"policy": str(shipped_policy("waypoints"))}):
        puppet.peer.spin_until(puppet.is_heard)
        puppet.set_mode("FLIGHT")
        puppet.tell_until(lambda: "waits for goal_pose" in puppet.doing())
        puppet.send_path((0.0, 0.0, 5.0), frame="nowhere")
        puppet.tell_until(lambda: "follow_path refused" in puppet.doing())
        puppet.send_path((0.0, 0.2, 5.0), (0.3, 0.1, 5.2))
        puppet.tell_until(lambda: len(puppet.poses) > 3)
        puppet.yaw = 1.0
        puppet.poses.clear()
        puppet.tell_until(lambda: len(puppet.poses) > 10)
        pose = puppet.poses[-1].pose
        assert (pose.position.x, pose.position.y, pose.position.z) == (0.3, 0.1, 5.2)
        assert (pose.orientation.z, pose.orientation.w) == (0.0, 1.0)


@pytest.mark.needs("onnx")
def test_a_policy_of_sensors_commands_while_it_hears_all_of_them(
    domain_id: int, puppet: Any, tmp_path: Path
) -> None:
    """One that always pushes with the weight; each sensor that is silent is named."""
    from node_harness import NodeProcess
    from policy_files import blind

    from rfly_lab import LandAirBatch, PolicyFacts

    facts = PolicyFacts.of(LandAirBatch(1, "hover", observations="sensors", sensors="scale_rtk"))
    with NodeProcess("policy_node", domain_id, {"policy": str(blind(tmp_path, facts))}) as node:
        puppet.peer.spin_until(
            lambda: (
                puppet.is_heard()
                and all(each.get_subscription_count() for each in puppet.more.values())
            )
        )
        puppet.set_mode("FLIGHT")
        puppet.send_goal(0.5, 0.0, 5.0)
        puppet.tell_until(lambda: puppet.doing() == "hover: running")
        puppet.tell_until(lambda: puppet.wrenches)
        force = puppet.wrenches[-1].wrench.force.z
        assert force == pytest.approx(puppet.params.mass * 9.80665)

        for topic, sensor in (("imu/data", "imu"), ("gps/vel", "gps"), ("baro", "barometer")):
            puppet.unseen = {topic}
            puppet.tell_until(lambda name=sensor: f"not known: {name}: it" in puppet.doing())
            puppet.wrenches.clear()
            for _ in range(5):
                puppet.tell()
                puppet.peer.spin_for(0.02)
            assert not puppet.wrenches
            puppet.unseen = set()
            puppet.tell_until(lambda: puppet.doing() == "hover: running")
        assert "Traceback" not in node.output


def test_files_that_do_not_fit_end_the_node(domain_id: int, tmp_path: Path) -> None:
    from node_harness import NodeProcess

    pickle = tmp_path / "policy.zip"
    pickle.write_bytes(b"PK\x03\x04" + bytes(100))
    hover = str(shipped_policy("hover"))
    for parameters, message in (
        ({}, "parameter policy: expected an ONNX file"),
        ({"policy": str(pickle)}, "no ONNX model that can be run"),
        ({"policy": hover, "vehicle": "full"}, "trained for 'scale', this is 'full'"),
        ({"policy": hover, "goal": "[1.0, 2.0]"}, "goal: 2 numbers, expected three for each"),
        ({"policy": hover, "goal": "[1.0, 2.0, .nan]"}, "parameter goal: targets[0, 2]: nan"),
    ):
        node = NodeProcess("policy_node", domain_id, parameters)
        node.process.wait(60)
        assert node.stop() != 0
        assert message in node.output
        assert "Traceback" not in node.output


SCENARIO = """version: 1
vehicle: scale
mission: {items: [{mode: takeoff, height_m: 2}]}
end: {time_s: 600}
"""


class Simulated:
    """A simulated vehicle with noise, estimator and controllers as nodes in lock-step, by DDS."""

    def __init__(self, domain_id: int, folder: Path, policy: Path, **settings: str) -> None:
        """Let a policy fly it. `settings`: parameters of policy_node, or `sensors` of all."""
        from nav_msgs.msg import Odometry
        from node_harness import NodeProcess, Peer
        from rfly_suite.msg import VehicleMode

        from rfly_common.ros.qos import LATCHED, STATE_IN

        scenario = folder / "stand.yaml"
        scenario.write_text(SCENARIO, encoding="utf-8")
        self.peer = Peer(domain_id)
        self.truth = self.peer.receive(Odometry, "/one/ground_truth/odom", STATE_IN)
        self.modes = self.peer.receive(VehicleMode, "/one/mode", LATCHED)
        space = ("-r", "__ns:=/one")
        sensors = {"sensors": settings.pop("sensors", "scale")}
        of_all = {"lock_step": "true", "vehicle": "scale", **sensors}
        simulated = {"scenario": str(scenario), "seed": "4", "real_time_factor": "0.0"}
        own = {"policy": str(policy), "autostart": "true", **settings}
        controllers = ("state_estimator_node", "flight_control_node", "chassis_control_node")
        self._nodes = contextlib.ExitStack()
        for kind, parameters, nodes in (
            ("amphibious_sim_node", simulated, ()),
            ("policy_node", own, ()),
            ("rfly_nodes", {"guided": "true"}, controllers),
        ):
            node = NodeProcess(kind, domain_id, of_all | parameters, *space, nodes=nodes)
            self._nodes.enter_context(node)
            if kind == "policy_node":
                self.policy_node = node

    def __enter__(self) -> Simulated:
        return self

    def __exit__(self, *_: object) -> None:
        self._nodes.close()
        self.peer.close()

    def wait_for(self, mode: str) -> int:
        """Wait for a mode; return the second of its message."""
        self.peer.spin_until(lambda: self.modes and self.modes[-1].mode == mode, 300.0)
        return int(self.truth[-1].header.stamp.sec)

    def wait_until(self, second: int) -> None:
        """Wait for a time of the simulation, s."""
        self.peer.spin_until(lambda: self.truth[-1].header.stamp.sec > second, 300.0)

    def places(self, after: int = -1) -> np.ndarray:
        """True positions after a second, m, (k, 3)."""
        late = [message.pose.pose for message in self.truth if message.header.stamp.sec > after]
        return np.array([(at.position.x, at.position.y, at.position.z) for at in late])


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.timeout(700)
def test_it_takes_off_and_hovers_a_simulated_vehicle(domain_id: int, tmp_path: Path) -> None:
    with Simulated(domain_id, tmp_path, shipped_policy("hover")) as vehicle:
        began = vehicle.wait_for("FLIGHT")
        vehicle.wait_until(began + 15)
        assert vehicle.modes[-1].mode == "FLIGHT"
        assert "Traceback" not in vehicle.policy_node.output
    places = vehicle.places(began + 10)
    # 3 m above its place, as well as an estimate knows that
    assert np.abs(places[:, 2] - 3.22).max() < 1.5
    assert np.abs(places[:, :2]).max() < 5.0
    assert np.ptp(places[:, 2]) < 1.0


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.timeout(700)
def test_it_hovers_a_simulated_vehicle_by_its_sensors(domain_id: int, tmp_path: Path) -> None:
    """It sees topics of sensors alone; the GPS of 2 cm shows its place."""
    policy = shipped_policy("hover_by_sensors")
    with Simulated(domain_id, tmp_path, policy, sensors="scale_rtk") as vehicle:
        began = vehicle.wait_for("FLIGHT")
        vehicle.wait_until(began + 20)
        assert vehicle.modes[-1].mode == "FLIGHT"
        assert "Traceback" not in vehicle.policy_node.output
    places = vehicle.places(began + 15)
    away = np.linalg.norm(places[:, :2] - vehicle.places()[0, :2], axis=1)
    assert away.max() < 1.0
    assert np.ptp(places, axis=0).max() < 0.3


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.timeout(700)
def test_it_hops_a_simulated_vehicle_and_leaves_it_standing(domain_id: int, tmp_path: Path) -> None:
    """The flight by noisy estimates begins and ends on the wheels."""
    with Simulated(domain_id, tmp_path, shipped_policy("hop"), goal="[9.0, -8.0, 0.0]") as vehicle:
        vehicle.wait_for("SPOOL_DOWN")
        began = vehicle.wait_for("DRIVE")
        vehicle.wait_until(began + 5)
        assert "Traceback" not in vehicle.policy_node.output
    names = [mode for mode, _ in itertools.groupby(message.mode for message in vehicle.modes)]
    assert names[-4:] == ["TAKEOFF", "FLIGHT", "SPOOL_DOWN", "DRIVE"]
    assert names[:-4] in (["DISARMED", "DRIVE"], ["DISARMED"])  # the newest of two is kept
    places = vehicle.places()
    assert places[:, 2].max() > 1.0
    # within 2 m by its estimate, which a GPS leads astray by some metres
    assert np.linalg.norm(places[-1, :2] - (9.0, -8.0)) < 7.0
    assert np.ptp(vehicle.places(began + 1)[:, :2], axis=0).max() < 0.05

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A mission in lock-step with guidance_node, twice, through DDS.

Estimator, guidance and both controllers share a process, as with `rfly up amphibious`, or have
one each, as with its `--processes`.
"""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest
from amphibious_cases import slower_imu
from node_harness import NodeProcess, Peer

from rfly_bringup.nodes.entry_points import MOTION_CONTROLLER, SEVERAL

pytestmark = [pytest.mark.ros, pytest.mark.slow, pytest.mark.timeout(700)]

PATIENCE = 300.0
"""Longest wall time of one mission, s."""

SCENARIO = """version: 1
vehicle: scale
mission:
  drive_speed_mps: 4
  items:
    - {mode: waypoint, position_m: [1, 0.3]}
    - {mode: takeoff, height_m: 1}
    - {mode: waypoint, position_m: [1.5, 0.3]}
    - {mode: land}
end: {time_s: 60}
"""


def run_mission(domain_id, namespace, scenario, sensors, processes, noise=True):
    """Return the truth of a mission's run by its stamp, and the modes.

    `processes`: nodes that share each process.
    """
    from nav_msgs.msg import Odometry
    from rclpy.event_handler import SubscriptionEventCallbacks
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from rfly_suite.msg import VehicleMode

    from rfly_common.ros.qos import LATCHED
    from rfly_common.ros.stamps import stamp_to_ns

    peer = Peer(domain_id)
    truth = []
    matched = []
    peer.node.create_subscription(
        Odometry,
        f"/{namespace}/ground_truth/odom",
        truth.append,
        QoSProfile(depth=10_000, reliability=ReliabilityPolicy.RELIABLE),
        event_callbacks=SubscriptionEventCallbacks(matched=matched.append),
    )
    modes = peer.receive(VehicleMode, f"/{namespace}/mode", LATCHED)

    of_all = {"lock_step": "true", "vehicle": "scale", "sensors": sensors, "scenario": scenario}
    simulation = {**of_all, "seed": "4", "real_time_factor": "0.0", "noise": str(noise).lower()}
    controller = {**of_all, "guided": "true", "autostart": "true"}
    in_namespace = ("-r", f"__ns:=/{namespace}")
    with (
        NodeProcess("amphibious_sim_node", domain_id, simulation, *in_namespace),
        ExitStack() as stack,
    ):
        peer.spin_until(lambda: matched)  # it stands until the controllers answer
        controllers = [
            stack.enter_context(
                NodeProcess(SEVERAL, domain_id, controller, *in_namespace, nodes=nodes)
            )
            for nodes in processes
        ]
        peer.spin_until(lambda: any("is done" in each.output for each in controllers), PATIENCE)
        peer.spin_until(lambda: modes[-1].mode == "DRIVE")  # the topic may come after the log
    peer.close()

    poses = {
        stamp_to_ns(message.header.stamp): (
            message.pose.pose.position.x,
            message.pose.pose.position.y,
            message.pose.pose.position.z,
            message.twist.twist.linear.x,
            message.twist.twist.angular.z,
        )
        for message in truth
    }
    words = [message.mode for message in modes]
    changes = [word for k, word in enumerate(words) if k == 0 or words[k - 1] != word]
    return poses, changes


@pytest.mark.exhaustive
def test_a_mission_with_noise_repeats_bit_by_bit(domain_id, tmp_path):
    """Guidance takes part in the lock-step: both runs have the same truth at each stamp.

    That holds whether the nodes share a process or not.
    """
    file = tmp_path / "mission.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    sensors = slower_imu(tmp_path)

    one = [MOTION_CONTROLLER]
    each = [(node,) for node in MOTION_CONTROLLER]
    first, modes = run_mission(domain_id, "first", str(file), sensors, one)
    second, modes_again = run_mission(domain_id, "second", str(file), sensors, each)

    assert modes[-6:] == ["DRIVE", "TAKEOFF", "FLIGHT", "LAND", "SPOOL_DOWN", "DRIVE"]
    assert modes[-6:] == modes_again[-6:]
    both = sorted(first.keys() & second.keys())
    assert len(both) > 0.8 * max(len(first), len(second)), "few are lost on their way to the peer"
    assert both[-1] > 10e9, "a mission takes longer than 10 s"
    assert [first[stamp] for stamp in both] == [second[stamp] for stamp in both]


HOP = """version: 1
vehicle: scale
mission:
  items:
    - {mode: takeoff, height_m: 2, rolling: true}
    - {mode: land, position_m: [30, 0], rolling: true}
end: {time_s: 60}
"""
STEP_HEIGHT = 1.2 * 0.11
"""Height of a step of 1.2 wheel radii, m."""

CLIMB = """version: 1
vehicle: scale
world: world.yaml
mission: {items: [{mode: waypoint, position_m: [5, 0], speed_mps: 1.5, thrust_assist: true}]}
end: {time_s: 60}
"""
WORLD = f"""version: 1
objects: [{{box: [12, 12, {STEP_HEIGHT:g}], x: 7.5, y: 0}}]
"""


@pytest.mark.exhaustive
def test_it_takes_off_and_lands_on_rolling_wheels(domain_id, tmp_path):
    file = tmp_path / "hop.yaml"
    file.write_text(HOP, encoding="utf-8")
    sensors = slower_imu(tmp_path)
    poses, modes = run_mission(domain_id, "hop", str(file), sensors, [MOTION_CONTROLLER], False)
    rolled = ["DRIVE", "ROLLING_TAKEOFF", "FLIGHT", "ROLLING_LAND", "ROLL_OUT", "DRIVE"]
    assert modes[-6:] == rolled

    way = np.array([poses[stamp] for stamp in sorted(poses)])
    height = way[:, 2] - 0.22
    assert height.max() == pytest.approx(2.0, abs=0.3)
    assert way[height > 0.1, 3].min() > 0.5 * 3.0, "it never stops in the air"

    # 0.8 m/s² and a lag of 2/3 s from the touch-down to the stand
    landing = way[height.argmax() :]
    x, _, _, speed, _ = landing[np.argmax(landing[:, 2] < 0.22 + 0.02)]
    assert x == pytest.approx(30.0, abs=2.0)
    assert speed > 1.0
    assert way[-1, 0] == pytest.approx(x + speed**2 / 1.6 + speed * 2.0 / 3.0, abs=1.5)
    assert abs(way[-1, 1]) < 0.5


@pytest.mark.exhaustive
def test_rotors_help_it_up_a_step(domain_id, tmp_path):
    file = tmp_path / "climb.yaml"
    file.write_text(CLIMB, encoding="utf-8")
    (tmp_path / "world.yaml").write_text(WORLD, encoding="utf-8")
    sensors = slower_imu(tmp_path)
    poses, modes = run_mission(domain_id, "climb", str(file), sensors, [MOTION_CONTROLLER], False)
    assert modes[-1] == "DRIVE"
    assert "TAKEOFF" not in modes

    # it stops up to 0.4 m early, and wheels that slip at the step mislead the estimate
    way = np.array([poses[stamp] for stamp in sorted(poses)])
    assert way[-1, 0] == pytest.approx(5.0, abs=1.0)
    assert way[-1, 2] == pytest.approx(STEP_HEIGHT + 0.22, abs=0.03)


ROUND = """version: 1
vehicle: scale
world: world.yaml
mission: {items: [{mode: waypoint, position_m: [11, 0], speed_mps: 1}]}
end: {time_s: 90}
"""
WALL = """version: 1
objects: [{box: [0.5, 1.5, 4], x: 5, y: 0}]
"""


@pytest.mark.exhaustive
def test_it_gets_round_a_wall_that_the_map_does_not_show(domain_id, tmp_path):
    """It is stuck before the wall, whose face is at x = 4.75 m, backs off and goes round it."""
    file = tmp_path / "round.yaml"
    file.write_text(ROUND, encoding="utf-8")
    (tmp_path / "world.yaml").write_text(WALL, encoding="utf-8")
    sensors = slower_imu(tmp_path)
    poses, modes = run_mission(domain_id, "round", str(file), sensors, [MOTION_CONTROLLER], False)
    assert modes[-1] == "DRIVE"
    assert "TAKEOFF" not in modes

    way = np.array([poses[stamp] for stamp in sorted(poses)])
    stuck = np.argmax(way[:, 0] > 4.0)
    x, y = way[stuck:, :2].T
    assert way[:stuck, 3].max() > 0.8
    assert x[: np.argmax(x > 5.5)].min() < 3.5, "it backs off"
    assert np.abs(y[(x > 4.75) & (x < 5.25)]).min() > 0.75, "it passes beside the wall"

    # the last poses may still be on their way
    assert way[-1, :2] == pytest.approx((11.0, 0.0), abs=1.5)

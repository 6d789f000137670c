# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly doctor` and `rfly status` with running nodes: a graph with every problem, and a healthy
one.
"""

from __future__ import annotations

import json
import math
import re
import signal
import socket
import time

import pytest
from bridge_harness import Window, fleet, pose
from node_harness import run_rfly

pytestmark = pytest.mark.ros


def findings_of(out):
    return {finding["key"]: finding for finding in map(json.loads, out.splitlines())}


@pytest.fixture(scope="module")
def broken(shared_domain_id):
    """Return the doctor's findings by key, in a graph with all problems at once."""
    from diagnostic_msgs.msg import DiagnosticArray
    from geometry_msgs.msg import PoseStamped
    from node_harness import NodeProcess, Peer, RflyBeside
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from rfly_suite.msg import VehicleStateArray

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held:
        held.bind(("127.0.0.1", 0))
        closed = Window()
        closed.socket.close()
        to = {"port": str(closed.port)}
        robots = {
            **to,
            "feedback_port": str(held.getsockname()[1]),
            "vehicles": "[car,boat,plane]",
            "car.id": "7",
            "boat.id": "8",
            "plane.id": "9",
            "plane.topic": "plane/pos",
        }
        site = {**to, "feedback_port": "0", "use_sim_time": "true"}
        terrain = {"map": "JacksboroFault"}
        with (
            NodeProcess("terrain_node", shared_domain_id, terrain),
            NodeProcess("terrain_node", shared_domain_id, terrain),
            NodeProcess("ue_bridge_node", shared_domain_id, robots),
            NodeProcess(
                "ue_bridge_node",
                shared_domain_id,
                site,
                "-r",
                "__ns:=/site",
                "-r",
                "__node:=second",
            ),
        ):
            peer = Peer(shared_domain_id)
            told = peer.receive(DiagnosticArray, "/diagnostics", 50)
            states = peer.publisher(VehicleStateArray, "vehicle_states", 10)
            lossy = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
            peer.node.create_publisher(VehicleStateArray, "vehicle_states", lossy)
            poses = {
                name: peer.node.create_publisher(PoseStamped, f"{name}/pose", 10)
                for name in ("car", "boat", "plane")
            }
            peer.spin_until(
                lambda: (
                    poses["car"].get_subscription_count() and poses["boat"].get_subscription_count()
                )
            )
            names = peer.node.get_node_names
            peer.spin_until(lambda: names().count("terrain_node") > 1)
            assert names().count("terrain_node") == 2, (
                f"others are in ROS domain {shared_domain_id} too: {names()}"
            )
            peer.spin_until(
                lambda: (
                    peer.node.count_subscribers("/site/terrain_map")
                    and peer.node.count_publishers("/terrain_map") == 2
                )
            )
            started = {"/terrain_node: terrain", "/ue_bridge_node: bridge", "/site/second: bridge"}
            peer.spin_until(
                lambda: started <= {status.name for message in told for status in message.status}
            )

            def publish():
                states.publish(fleet([1, 2], source="/first"))
                states.publish(fleet([2, 3], source="/second"))
                poses["car"].publish(pose((math.nan, 0.0, 0.0)))
                poses["boat"].publish(pose(frame="moon"))
                poses["plane"].publish(pose())

            code, out, err = RflyBeside(
                peer, "doctor", "--json", "--seconds", "7", meanwhile=publish
            ).end()
            try:
                assert (code, err) == (1, ""), out
                yield {**findings_of(out), "port": closed.port, "held": held.getsockname()[1]}
            finally:
                peer.close()


@pytest.mark.parametrize(
    ("key", "texts"),
    [
        (
            "destination:127.0.0.1:{port}",
            ["nothing listens on 127.0.0.1:{port}", "is RflySim3D running there?"],
        ),
        (
            "frame:/boat/pose",
            ["/boat/pose: frame 'moon' is not connected to 'map': no transform names it", "/tf"],
        ),
        ("not_finite:/car/pose", ["/car/pose: vehicle 7 of car is at a NaN or infinite position"]),
        (
            "id_twice:2",
            [
                "vehicle 2 comes from 2 sources",
                "/first (/vehicle_states) and /second (/vehicle_states)",
            ],
        ),
        ("node_twice:/terrain_node", ["2 nodes", "are called /terrain_node"]),
        ("terrain_twice:/terrain_map", ["2 nodes publish /terrain_map"]),
        ("bridge_twice:127.0.0.1:{port}", ["2 bridges send to 127.0.0.1:{port}", "/site/second"]),
        (
            "mismatch:/vehicle_states:/peer:/ue_bridge_node",
            [
                "/vehicle_states: nothing gets from /peer to /ue_bridge_node",
                "best effort publisher and reliable sub",
            ],
        ),
        (
            "robot:/plane/pos",
            [
                "no node publishes /plane/pos",
                "is published on /plane/pose; set the parameter plane.topic",
            ],
        ),
        ("clock", ["/site/second: /clock has not moved", "use_sim_time is on"]),
        ("status:/site/second:no_states", ["no states yet", "publish vehicle_states"]),
        (
            "status:/ue_bridge_node:feedback_port_taken:{held}",
            ["another program holds the feedback port {held}", "feedback_port"],
        ),
    ],
)
def test_what_is_wrong_is_told(broken, key, texts):
    finding = broken[key.format_map(broken)]
    assert finding["problem"] is True
    told = f"{finding['what']} | {finding['do']}"
    assert [text for text in texts if text.format_map(broken) not in told] == []


def test_nothing_else_is_said_to_be_wrong(broken):
    """One finding for each problem, even if several nodes report it."""
    problems = [
        key for key, finding in broken.items() if isinstance(finding, dict) and finding["problem"]
    ]
    assert len(problems) == 12, problems


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """A terrain, a bridge and a fleet of two.

    `run(*words)` returns exit code and output of a command next to them.
    """
    import conftest
    from node_harness import NodeProcess, Peer, RflyBeside
    from rfly_suite.msg import VehicleStateArray

    window = Window()
    to = {"port": str(window.port), "feedback_port": "0"}
    with (
        conftest._domain(tmp_path_factory) as domain,
        NodeProcess("terrain_node", domain, {"map": "JacksboroFault"}),
        NodeProcess("ue_bridge_node", domain, to),
    ):
        peer = Peer(domain)
        states = peer.publisher(VehicleStateArray, "vehicle_states", 10)
        peer.spin_until(lambda: peer.node.count_publishers("terrain_map"))
        # another test's peer may take a while to leave the domain
        peer.spin_until(lambda: peer.node.get_node_names().count("peer") == 1)

        def run(*words, interrupt_after_s=None):
            beside = RflyBeside(
                peer, *words, meanwhile=lambda: states.publish(fleet([1, 2], source="/peer"))
            )
            if interrupt_after_s is not None:
                end = time.monotonic() + interrupt_after_s
                beside.until(lambda: time.monotonic() > end)
                beside.process.send_signal(signal.SIGINT)
            return beside.end()

        yield run
        peer.close()
        window.socket.close()


def test_a_healthy_graph(healthy):
    code, out, err = healthy("doctor", "--json", "--seconds", "4")
    problems = [finding for finding in findings_of(out).values() if finding["problem"]]
    assert (code, problems, err) == (0, [], "")


def test_nodes_of_another_domain(broken, domain_id):
    """The doctor of an empty domain sees that others are in use, and exits with 1."""
    from rfly_bringup.doctor.machine import dds_domains, udp_ports

    done = run_rfly("doctor", "--seconds", "1")
    assert done.returncode == 1
    assert (
        f"no node of rfly_suite is seen in ROS domain {domain_id} (discovery range LOCALHOST)"
        in done.stdout
    )
    assert "ROS_DOMAIN_ID=" in done.stdout
    assert domain_id not in dds_domains(udp_ports())


def test_the_table_of_what_runs(healthy):
    """The table shows both nodes, the fleet at ten messages per second, and the datagrams."""
    of_bridge = r"/ue_bridge_node 127\.0\.0\.1:\d+ \d+ \d+\.\d"

    # on a busy machine a bridge may report once in these seconds, which gives no rate
    for _ in range(3):
        code, out, err = healthy("status", "--once", "--seconds", "4")
        assert (code, err) == (0, "")
        lines = [" ".join(line.split()) for line in out.splitlines()]
        if any(re.fullmatch(of_bridge, line) for line in lines):
            break

    assert [
        line
        for line in lines
        if re.fullmatch(r"/terrain_node terrain JacksboroFault ok serving \d\.\d", line)
    ]
    assert [
        line
        for line in lines
        if re.fullmatch(r"/ue_bridge_node bridge 127\.0\.0\.1:\d+ ok sending \d\.\d", line)
    ]

    (vehicles,) = [line for line in lines if "/vehicle_states" in line]
    found = re.fullmatch(r"2 1-2 /peer /vehicle_states map (\d+\.\d) \d\.\d", vehicles)
    assert found
    assert 2.0 < float(found[1]) < 12.0
    (bridge,) = [line for line in lines if re.fullmatch(of_bridge, line)]
    assert int(bridge.split()[2]) >= 2 * 10


def test_the_table_stays_after_ctrl_c(healthy):
    """Ctrl-C keeps the last table with all nodes, once."""
    code, out, err = healthy("status", interrupt_after_s=8.0)
    assert (code, err) == (0, "")
    assert out.count("ROS domain ") == 1
    for node in ("/terrain_node", "/ue_bridge_node"):
        assert any(line.startswith(node) and " ok " in line for line in out.splitlines())
    assert "/vehicle_states" in out


def test_what_nobody_would_say_of_a_bridge_is_left_out():
    """Numbers that are none, thousands of millions of windows, parameters of other types."""
    from rfly_bringup.doctor.snapshot import OK, DiagnosticReport
    from rfly_bringup.ros import graph_watch

    def rate(before, after):
        status = DiagnosticReport("/b", "bridge", OK, "", "", {"sent_datagrams": before}, 0.0, None)
        return graph_watch._rate((1.0, status), {"sent_datagrams": after}, 3.0)

    assert rate("100", "300") == 100.0
    for odd in ("x", "", "1e9", "-5", "9" * 5000, "[/red]"):
        assert rate(odd, "300") is rate("100", odd) is None
    addresses = graph_watch._addresses
    assert addresses({"host": "h", "port": 20010, "windows": 2}) == [("h", 20010), ("h", 20011)]
    assert len(addresses({"host": "h", "port": 20010, "windows": 2**31})) == 64
    assert (
        addresses({"host": 5, "port": "x", "windows": None})
        == addresses({"host": "h", "port": 2**40, "windows": 9})
        == []
    )
    assert graph_watch._robot_names({"vehicles": 5}) == graph_watch._robot_names({}) == []

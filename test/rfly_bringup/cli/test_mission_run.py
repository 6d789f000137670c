# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly mission start`, `hold`, `resume`, `return` and `status` with a running mission_node."""

from __future__ import annotations

import re
import signal
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from rfly_missions import MissionItem
from rfly_missions.mission.files import Mission, write_mission
from rfly_terrain.height_map.height_map import HeightMap

pytestmark = pytest.mark.ros

ORIGIN = (47.0, 8.0, 500.0)
PERIOD_S = 0.005
"""of the clock"""


@pytest.fixture(scope="module")
def hawk(shared_domain_id, tmp_path_factory):
    """Run mission_node with one multirotor over level ground, `faster` times as fast as real time.

    Yield `rfly(*words)`, which runs a command at the same time.
    """
    from node_harness import NodeProcess, Peer, RflyBeside
    from rclpy.clock import Clock as RclpyClock
    from rclpy.clock import ClockType
    from rfly_suite.msg import TerrainMap
    from rosgraph_msgs.msg import Clock

    from rfly_common.ros.qos import LATCHED, STATE_OUT
    from rfly_common.ros.stamps import ns_to_stamp
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    folder = tmp_path_factory.mktemp("missions")
    items = (
        MissionItem.takeoff((0, 0, -10)),
        MissionItem.waypoint((15, 0, -12)),
        MissionItem.land((15, 5, 0)),
    )
    write_mission(folder / "short.plan", Mission(items, ORIGIN))
    far = (items[0], MissionItem.waypoint((60, 0, -12)), MissionItem.waypoint((60, 40_000, -12)))
    write_mission(folder / "long.plan", Mission(far, ORIGIN))
    flat = HeightMap(
        np.zeros((2, 2)),
        origin_x=-50_000.0,
        origin_y=-50_000.0,
        step_x=100_000.0,
        step_y=100_000.0,
        name="flat",
    )
    parameters = {"vehicles": "[hawk]", "use_sim_time": "true", "file_folders": f"['{folder}']"}
    with NodeProcess("mission_node", shared_domain_id, parameters):
        peer = Peer(shared_domain_id)
        clock = peer.node.create_publisher(Clock, "/clock", STATE_OUT)
        peer.faster = 20
        now = 1_000_000_000_000
        told = time.monotonic_ns()

        def tell():
            nonlocal now, told
            before = told
            told = time.monotonic_ns()
            now += peer.faster * (told - before)
            clock.publish(Clock(clock=ns_to_stamp(now)))

        peer.node.create_timer(PERIOD_S, tell, clock=RclpyClock(clock_type=ClockType.STEADY_TIME))
        terrain = peer.node.create_publisher(TerrainMap, "terrain_map", LATCHED)
        terrain.publish(height_map_to_msg(flat, ORIGIN, 1, 10**9))
        peer.spin_until(lambda: peer.node.count_publishers("hawk/mission_params"))
        peer.folder = folder
        peer.rfly = lambda *words: RflyBeside(peer, "mission", *words)
        yield peer
        peer.close()


def test_a_mission_to_its_end(hawk):
    code, out, err = hawk.rfly("start", "hawk", str(hawk.folder / "short.plan")).end()
    assert (code, out) == (0, "hawk: 3 items done\n")
    lines = [
        f"hawk: item {number} of 0 … 2: {mode}"
        for number, mode in ((0, "TAKEOFF"), (1, "WAYPOINT"), (2, "LAND"))
    ]
    assert [line for line in err.splitlines() if line in lines] == lines
    assert hawk.rfly("status", "hawk").end()[:2] == (0, "hawk: no mission is running: LAND\n")


@pytest.mark.exhaustive
def test_hold_resume_status_and_return(hawk):
    flight = hawk.rfly("start", "hawk", str(hawk.folder / "long.plan"))
    flight.until(lambda: "WAYPOINT" in flight.err)
    hawk.faster = 1
    assert hawk.rfly("hold", "hawk").end()[:2] == (0, "hawk: holds\n")

    flight.until(lambda: "HOLD" in flight.err)
    code, out, _ = hawk.rfly("status", "hawk").end()
    assert code == 0
    assert re.fullmatch(
        r"hawk: item [12] of 0 … 2: HOLD, 0\.0 m to go \((3[3-9]|[4-9]\d) %\)\n", out
    )
    assert hawk.rfly("resume", "hawk").end()[:2] == (0, "hawk: carries on\n")
    assert hawk.rfly("return", "hawk").end()[:2] == (0, "hawk: returns to home\n")

    hawk.faster = 20
    code, out, err = flight.end()
    assert (code, out) == (1, "")
    assert err.endswith("hawk: returned by command\n")


def test_ctrl_c_holds_and_no_wait_leaves_it_flying(hawk):
    code, out, _ = hawk.rfly("start", "hawk", str(hawk.folder / "long.plan"), "--no-wait").end()
    assert (code, out) == (0, "hawk: the mission has begun; see rfly mission status\n")
    hawk.faster = 1
    watching = hawk.rfly("status", "hawk", "--follow")
    watching.until(lambda: "hawk: item" in watching.err)
    flight = hawk.rfly("start", "hawk", str(hawk.folder / "long.plan"))
    flight.until(lambda: "hawk: item" in flight.err)
    flight.process.send_signal(signal.SIGINT)
    code, _, err = flight.end()
    assert code == 1
    assert err.endswith("hawk: cancelled: holding\n")
    hawk.faster = 20
    code, out, _ = watching.end()
    # the mode of the vehicle is a message of its own, and may come after the end of the mission
    assert (code, out.startswith("hawk: no mission is running: ")) == (0, True)


@pytest.mark.parametrize("words", [("start", "dove", "x.plan"), ("status", "dove", "--follow")])
def test_ctrl_c_ends_the_wait_for_a_node(hawk, words):
    waiting = hawk.rfly(*words)
    waiting.until(lambda: "rfly_mission" in hawk.node.get_node_names())
    waiting.process.send_signal(signal.SIGINT)
    assert waiting.end() == (130, "", "")


def test_a_mission_that_is_refused_says_why(hawk):
    code, out, err = hawk.rfly("start", "hawk", "/nowhere/survey.plan").end()
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert err.startswith(
        "hawk: '/nowhere/survey.plan': not below the folders of the parameter file_folders"
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["hold", "dove"], "no mission_node offers /dove/set_mission_command: is `rfly up` runn"),
        (["status", "dove"], "no mission_node offers /dove/execute_mission"),
        (
            ["start", "dove", "x.plan", "--namespace", "site"],
            "no mission_node offers /site/dove/execute_mission",
        ),
        (["hold", "a b"], "NAME 'a b'"),
        (["hold", "\udc80"], r"NAME '\udc80'"),
        (["hold", "hawk", "--namespace", "é"], "--namespace 'é': Invalid namespace"),
        (["hold", "hawk", "--namespace", "site/"], "--namespace 'site/': Invalid namespace"),
    ],
)
def test_mistakes_are_one_line(words, text, domain_id, monkeypatch, capsys):
    from rfly_bringup.cli.main import main
    from rfly_bringup.ros import command_client

    monkeypatch.setattr(command_client, "TIMEOUT_S", 0.2)
    monkeypatch.setattr(sys, "argv", ["rfly", "mission", *words])
    with pytest.raises(SystemExit) as end:
        main()
    err = capsys.readouterr().err
    assert (end.value.code, err.count("\n"), text in err) == (2, 1, True), err


@pytest.mark.parametrize("last", ["set_mission_command", "execute_mission"])
def test_a_vehicle_that_is_not_there_leads_to_those_that_are(last):
    from rfly_bringup.ros.command_client import CommandClient

    services = ["/hawk/set_mission_command", "/hawk/execute_mission/_action/send_goal", "/x/other"]
    clients = [f"/dove/{last}"]
    node = SimpleNamespace(
        get_service_names_and_types=lambda: [(name, []) for name in services + clients],
        count_services=services.count,
    )
    client = SimpleNamespace(_server="mission_node", node=node)
    assert CommandClient.missing_server(client, f"/dove/{last}") == (
        f"no mission_node offers /dove/{last}, but there is /hawk/{last}"
    )

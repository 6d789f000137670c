# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""mavlink_node with mission_node behind it, and ground stations of pymavlink and MAVSDK."""

from __future__ import annotations

import json
import math
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from marks import exhaustively
from node_harness import PATIENCE

pytestmark = [pytest.mark.ros, pytest.mark.needs("pymavlink")]

CLIENT = Path(__file__).parents[2] / "mavsdk_client.py"


@pytest.fixture
def clock(peer):
    """Simulated time, and level ground 500 m above the sea."""
    from mavlink_fleet import level_world

    with level_world(peer):
        yield


@pytest.fixture
def start(domain_id, clock):
    """Starts mission_node and mavlink_node for hawk (system 1) and kite (system 2).

    It returns the port that they send to, and the nodes.
    """
    from node_harness import NodeProcess

    with ExitStack() as stack:

        def begin(of_mission_node=None, **parameters):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            both = {"vehicles": "[hawk, kite]", "use_sim_time": "true"}
            mavlink = {**both, "port": "0", "targets": f"['127.0.0.1:{port}']", **parameters}
            mission = {**both, **(of_mission_node or {})}
            nodes = [
                stack.enter_context(NodeProcess(name, domain_id, parameters_of_node))
                for name, parameters_of_node in (
                    ("mission_node", mission),
                    ("mavlink_node", mavlink),
                )
            ]
            return port, nodes

        yield begin


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.needs("mavsdk")
def test_mavsdk_flies_a_mission_and_downloads_it_again(start, peer, tmp_path):
    """It also downloads a recording before, and turns the vehicle in flight.

    It takes 8 s of a core. In make test MAVSDK meets missions in test_shared_missions, and the rest
    is said to stations without ROS.
    """
    from rfly_suite.msg import AttitudeTarget
    from sensor_msgs.msg import BatteryState

    from rfly_common.ros.qos import COMMANDS, STATE_IN

    recording = bytes(k * k % 251 for k in range(150_001))
    (tmp_path / "run.mcap").write_bytes(recording)
    port, nodes = start(log_folder=str(tmp_path))

    # as a flight controller does
    attitudes = peer.receive(AttitudeTarget, "kite/cmd/attitude", COMMANDS)
    batteries = peer.receive(BatteryState, "kite/battery_state", STATE_IN)

    command = [sys.executable, str(CLIENT), str(port), "2", str(tmp_path / "downloaded")]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        peer.spin_until(lambda: client.poll() is not None, 3 * PATIENCE)
    finally:
        client.kill()
        output = client.communicate()[0]

    seen = json.loads(next((line for line in output.splitlines() if line.startswith("{")), "{}"))
    assert client.returncode == 0, output + nodes[0].output + nodes[1].output

    assert seen["log"] == [1, 150_001, 100]
    assert (tmp_path / "downloaded").read_bytes() == recording

    # east is yaw 0 in ENU; rolled by 10° to the right
    q = attitudes[-1].orientation
    half_roll = math.radians(5)
    expected = (math.sin(half_roll), 0, 0, math.cos(half_roll))
    assert (q.x, q.y, q.z, q.w) == pytest.approx(expected, abs=1e-3)
    assert attitudes[-1].thrust == pytest.approx(0.5)

    # the flight; kite starts 10 m east
    assert seen["armable"]
    refusal = seen["return_disarmed"].upper()
    assert "DENIED" in refusal or "REJECTED" in refusal
    longitude = 8.0 + 10.0 / 76_056.1
    assert seen["home"] == pytest.approx([47.0, longitude, 500.0], abs=5e-5)
    assert seen["takeoff_altitude"] == 6.0
    assert seen["equal"]
    assert 5.5 < seen["height"] < 6.5
    assert [current for current, _ in seen["progress"]][-1] == 4
    assert {total for _, total in seen["progress"]} == {5}
    assert seen["landed"] == pytest.approx([47.0, longitude, 0.0], abs=1e-5)

    # the battery
    assert 80.0 < seen["charge"] < seen["battery"]
    assert batteries[-1].percentage < 1.0
    assert batteries[-1].current < 0.0  # negative while discharging, by sensor_msgs

    assert [node.stop() for node in nodes] == [0, 0]


@pytest.mark.needs("mavsdk")
def test_mavsdk_turns_the_gimbal_and_reads_its_attitude_back(start, peer):
    """A stand-in for hawk's gimbal turns camera_link as commanded; positive looks down there."""
    from std_msgs.msg import Float64
    from tf2_msgs.msg import TFMessage

    from rfly_common.ros.frame_lookup import transform_to_msg
    from rfly_common.ros.qos import COMMANDS, TF

    link = peer.node.create_publisher(TFMessage, "/tf", TF)
    port, nodes = start(**{"hawk.gimbal_min_pitch": "-60.0"})
    commands_received = peer.receive(Float64, "hawk/gimbal/cmd", COMMANDS)

    def publish_link():
        half = 0.5 * commands_received[-1].data if commands_received else 0.0
        rotation = (0.0, math.sin(half), 0.0, math.cos(half))
        now = peer.node.get_clock().now().nanoseconds
        names = "hawk/base_link", "hawk/camera_link"
        transform = transform_to_msg(*names, (0.2, 0, 0), rotation, now)
        link.publish(TFMessage(transforms=[transform]))

    peer.node.create_timer(0.02, publish_link)
    client = subprocess.Popen(
        [sys.executable, str(CLIENT.with_name("mavsdk_gimbal_client.py")), str(port), "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        peer.spin_until(lambda: client.poll() is not None)
    finally:
        client.kill()
        output = client.communicate()[0]

    assert client.returncode == 0, output + nodes[0].output + nodes[1].output
    seen = json.loads(next(line for line in output.splitlines() if line.startswith("{")))

    assert seen["gimbals"] == [[1, 1, "camera gimbal"]]
    assert (seen["control"], seen["released"]) == ("PRIMARY", "NONE")
    assert (seen["once"], seen["streamed"], seen["lowest"]) == pytest.approx(
        (-45.0, 20.0, -60.0), abs=0.5
    )
    assert "yaw" in seen

    commands = [message.data for message in commands_received]
    assert commands[:2] == pytest.approx([0.785398, -0.349066], abs=1e-5)
    # a rate makes several, each farther down; one, where the machine has no time for the others
    assert len(commands) > 2
    assert commands[1:] == sorted(commands[1:])
    assert commands[-1] == pytest.approx(math.radians(60.0))

    assert [node.stop() for node in nodes] == [0, 0]


def test_pymavlinks_own_tools_for_missions_and_parameters(start, peer):
    """MAVWPLoader, MAVParmDict and mavutil fly hawk, as MAVProxy uses them."""
    from pymavlink import mavparm, mavutil, mavwp

    def heard(kind):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            peer.spin_for(0.0)
            peer._executor.spin_once(timeout_sec=0.002)
            message = link.recv_match(type=kind, blocking=False)
            if message is not None and message.get_srcSystem() == 1:
                return message
        raise AssertionError(f"no {kind}")

    port, nodes = start(**{"hawk.parameters": "['MIS_TAKEOFF_ALT=7']"})
    link = mavutil.mavlink_connection(f"udpin:127.0.0.1:{port}", source_system=245)
    try:
        heard("GLOBAL_POSITION_INT")
        link.target_system = 1
        link.target_component = 1

        link.param_fetch_all()
        first = heard("PARAM_VALUE")
        names = {first.param_id: first.param_value}
        while len(names) < first.param_count:
            value = heard("PARAM_VALUE")
            names[value.param_id] = value.param_value
        assert names["MIS_TAKEOFF_ALT"] == 7.0
        real = mavutil.mavlink.MAV_PARAM_TYPE_REAL32

        assert mavparm.MAVParmDict().mavset(link, "NAV_ACC_RAD", 4.0, retries=3, parm_type=real)
        link.param_set_send("NAV_ACC_RAD", 0.0, real)
        assert heard("PARAM_ERROR").error == mavutil.mavlink.MAV_PARAM_ERROR_VALUE_OUT_OF_RANGE
        assert heard("PARAM_VALUE").param_value == 4.0

        loader = mavwp.MAVWPLoader(1, 1)
        loader.add_latlonalt(47.0001, 8.0, 12.0)
        loader.add_latlonalt(47.0001, 8.0001, 15.0)
        link.waypoint_count_send(loader.count())
        for seq in (0, 1):
            assert heard(["MISSION_REQUEST", "MISSION_REQUEST_INT"]).seq == seq
            link.mav.send(loader.item(seq))
        assert heard("MISSION_ACK").type == mavutil.mavlink.MAV_MISSION_ACCEPTED

        link.waypoint_request_list_send()
        assert heard("MISSION_COUNT").count == 2
        link.mav.mission_request_int_send(1, 1, 1)
        back = heard("MISSION_ITEM_INT")
        # it went up as floats
        assert (back.x, back.y, back.z) == pytest.approx((470001000, 80001000, 15.0), abs=20)

        link.arducopter_arm()
        assert heard("COMMAND_ACK").result == mavutil.mavlink.MAV_RESULT_ACCEPTED
        link.set_mode_px4("TAKEOFF", None, None)
        while heard("GLOBAL_POSITION_INT").relative_alt < 6500:
            pass
        assert heard("HEARTBEAT").base_mode & mavutil.mavlink.MAV_MODE_FLAG_SAFETY_ARMED
    finally:
        link.close()
    assert [node.stop() for node in nodes] == [0, 0]
    assert not any("Traceback" in node.output for node in nodes)


def test_the_gains_of_a_flight_controller_are_parameters(start, peer, domain_id):
    from node_harness import NodeProcess
    from pymavlink import mavutil
    from rcl_interfaces.srv import GetParameters

    real = mavutil.mavlink.MAV_PARAM_TYPE_REAL32
    with NodeProcess(
        "flight_control_node", domain_id, {"position_gain": "1.25"}, "-r", "__ns:=/duck"
    ) as controller:
        parameters = {"vehicles": "[duck]", "duck.uav_type": "land-air"}
        port, nodes = start(**parameters)
        link = mavutil.mavlink_connection(f"udpin:127.0.0.1:{port}", source_system=245)

        def value(name, *written):
            """Return the value in PARAM_VALUE, None if none comes."""
            deadline = time.monotonic() + 1.0
            if written:
                link.param_set_send(name, *written)
            else:
                link.param_fetch_one(name)
            while time.monotonic() < deadline:
                peer._executor.spin_once(timeout_sec=0.002)
                message = link.recv_match(type="PARAM_VALUE", blocking=False)
                if message is not None and message.param_id == name:
                    return message.param_value
            return None

        try:
            peer.spin_until(lambda: link.recv_match(type="HEARTBEAT", blocking=False))
            link.target_system = 1
            link.target_component = 1
            peer.spin_until(lambda: value("RFLY_POS_GAIN") == 1.25)

            peer.spin_until(lambda: value("RFLY_POS_GAIN", 0.75, real) == 0.75)
            # beyond its range
            assert peer.spin_until(lambda: value("RFLY_TILT_MAX", 1.5, real)) < 1.4

            client = peer.node.create_client(
                GetParameters, "/duck/flight_control_node/get_parameters"
            )
            peer.spin_until(client.service_is_ready)
            answer = client.call_async(GetParameters.Request(names=["position_gain"]))
            peer.spin_until(answer.done)
            assert answer.result().values[0].double_value == 0.75

            assert controller.stop() == 0
            peer.spin_until(lambda: value("RFLY_POS_GAIN") is None)
        finally:
            link.close()
    assert [node.stop() for node in nodes] == [0, 0]
    assert not any("Traceback" in node.output for node in [controller, *nodes])


@pytest.mark.exhaustive
def test_a_land_air_vehicle_is_a_rover_on_the_ground_and_a_copter_above_it(start, peer):
    """It goes to a place on wheels, takes off, flies to another place, lands, and drives again."""
    from mavlink_station import StationSocket
    from pymavlink.dialects.v20 import common as d

    with StationSocket(peer) as station:
        duck = {"duck.uav_type": "land-air", "vehicles": "[duck]"}
        shown = {"duck.rotors": "8", "targets": f"['127.0.0.1:{station.port}']"}
        _, nodes = start(of_mission_node=duck, **duck, **shown)
        here = peer.spin_until(lambda: station.last("GLOBAL_POSITION_INT"))
        heights = []

        def height():
            heights.append(station.last("GLOBAL_POSITION_INT").relative_alt * 1e-3)
            return heights[-1]

        def is_at(north_m):
            height()
            gone = (station.last("GLOBAL_POSITION_INT").lat - here.lat) * 1e-7 * 111_174.0
            return abs(gone - north_m) < 1.5

        def go_to(north_m, above_m):
            place = here.lat * 1e-7 + north_m / 111_174.0, here.lon * 1e-7
            assert station.command(192, -1.0, 1.0, 0.0, math.nan, *place, 500.0 + above_m) == 0

        def landed_state():
            return station.last("EXTENDED_SYS_STATE").landed_state

        assert station.last("HEARTBEAT").type == d.MAV_TYPE_OCTOROTOR
        peer.spin_until(lambda: station.command(d.MAV_CMD_COMPONENT_ARM_DISARM, 1.0) == 0)

        # on wheels
        go_to(20.0, 0.0)
        peer.spin_until(lambda: is_at(20.0))
        assert landed_state() == d.MAV_LANDED_STATE_ON_GROUND
        assert max(heights) < 0.5

        # in the air
        assert (
            station.command(d.MAV_CMD_NAV_TAKEOFF, 0, 0, 0, math.nan, math.nan, math.nan, 512) == 0
        )
        peer.spin_until(lambda: height() > 11.5)
        go_to(40.0, 12.0)
        peer.spin_until(lambda: landed_state() == d.MAV_LANDED_STATE_IN_AIR)
        peer.spin_until(lambda: is_at(40.0))
        assert height() > 11.0

        # and down again
        assert station.command(d.MAV_CMD_NAV_LAND, *[math.nan] * 7) == 0
        peer.spin_until(lambda: landed_state() == d.MAV_LANDED_STATE_LANDING)
        peer.spin_until(lambda: landed_state() == d.MAV_LANDED_STATE_ON_GROUND)
        heights.clear()
        go_to(20.0, 0.0)
        peer.spin_until(lambda: is_at(20.0))
        assert max(heights) < 0.5
    assert [node.stop() for node in nodes] == [0, 0]


def test_a_map_without_a_place_is_reported(domain_id, peer):
    from diagnostic_msgs.msg import DiagnosticArray
    from fleet_harness import TerrainSource, ground
    from node_harness import NodeProcess, diagnostic

    from rfly_common.ros.qos import STATE_OUT

    diagnostics = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
    TerrainSource(peer).publish(ground())  # at 0, 0, 0
    with NodeProcess("mavlink_node", domain_id, {"vehicles": "[hawk]", "port": "0"}):
        peer.spin_until(
            lambda: (
                (row := diagnostic(diagnostics, "mavlink"))
                and row[0] == 1
                and "geo_origin 0, 0, 0" in row[1]
            )
        )


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"targets": "['127.0.0.1']"}, "parameter targets: '127.0.0.1', expected host:port"),
        exhaustively({"vehicles": "[a, a]"}, "parameter vehicles: 'a' is named twice"),
        exhaustively(
            {"vehicles": "[a, b]", "b.system_id": "1"},
            "parameter b.system_id: 1 belongs to two vehicles",
        ),
        exhaustively({"vehicles": "[a]", "a.parameters": "['X=1']"}, "'X=1': expected NAME=value"),
        ({"signing_file": "/nowhere/at/all"}, "parameter signing_file: /nowhere/at/all"),
        exhaustively({"vehicles": "[a, b]", "first_system_id": "250"}, "parameter b.system_id"),
    ],
)
def test_wrong_parameters_end_it_in_one_line(domain_id, parameters, text):
    from node_harness import NodeProcess

    with NodeProcess("mavlink_node", domain_id, {"port": "0", **parameters}) as node:
        assert node.process.wait(PATIENCE) == 2
        node._reader.join(PATIENCE)
        assert text in node.output
        assert "Traceback" not in node.output


@pytest.mark.parametrize(
    ("port", "holder"),
    [
        (14679, "perhaps PX4's simulation, which binds 14580 + its instance's number"),
        (14697, "perhaps another mavlink_node"),
    ],
)
def test_an_occupied_port_is_refused_with_its_likely_holder(domain_id, port, holder):
    from node_harness import NodeProcess

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", port))
        with NodeProcess("mavlink_node", domain_id, {"port": str(port)}) as node:
            assert node.process.wait(PATIENCE) == 2
            node._reader.join(PATIENCE)
    assert f"udp 127.0.0.1:{port}: another program holds it, {holder}" in node.output
    assert "Traceback" not in node.output


def test_vehicles_beside_an_autopilot_have_other_system_ids(domain_id, peer):
    from node_harness import NodeProcess

    parameters = {"vehicles": "[a, b, c]", "first_system_id": "11", "b.system_id": "7"}
    with NodeProcess("mavlink_node", domain_id, {"port": "0", **parameters}) as node:
        peer.spin_until(lambda: "for ground stations" in node.output)
        assert "11 a, 7 b, 13 c" in node.output


def test_an_abort_ends_with_the_controller_that_reports_it(domain_id, peer):
    """The controller's topic has another name than the node expects."""
    from mavlink_station import StationSocket
    from node_harness import NodeProcess
    from pymavlink.dialects.v20 import common as d
    from rfly_suite.msg import VehicleMode

    from rfly_common.ros.qos import LATCHED

    with StationSocket(peer) as station:
        parameters = {"vehicles": "[duck]", "duck.uav_type": "land-air", "port": "0"}
        targets = f"['127.0.0.1:{station.port}']"
        with NodeProcess(
            "mavlink_node",
            domain_id,
            {**parameters, "targets": targets},
            *("-r", "duck/mode:=/state/of/duck"),
        ) as node:
            modes = peer.publisher(VehicleMode, "/state/of/duck", LATCHED)

            def shows(status):
                heartbeat = station.last("HEARTBEAT")
                return heartbeat is not None and heartbeat.system_status == status

            modes.publish(VehicleMode(mode="ABORT"))
            peer.spin_until(lambda: shows(d.MAV_STATE_CRITICAL))
            peer.node.destroy_publisher(modes)
            peer.spin_until(lambda: shows(d.MAV_STATE_ACTIVE))
    assert "Traceback" not in node.output

"""What is found in snapshots written by hand: no ROS, no network."""

from __future__ import annotations

import dataclasses

import pytest

from rfly_bringup.doctor.findings import Finding, find
from rfly_bringup.doctor.snapshot import (
    ERROR,
    OK,
    STALE,
    WARN,
    Destination,
    Endpoint,
    Machine,
    Mismatch,
    Robot,
    SharedMemory,
    Snapshot,
    Source,
    Status,
)

TERRAIN = "rfly_suite/msg/TerrainMap"
STATES = "rfly_suite/msg/VehicleStateArray"
POSE = "geometry_msgs/msg/PoseStamped"
HEALTHY = Snapshot(
    domain_id=7,
    nodes=("/terrain_node", "/trajectory_node", "/ue_bridge_node"),
    endpoints=(
        Endpoint("/terrain_map", TERRAIN, "/terrain_node", True),
        Endpoint("/terrain_map", TERRAIN, "/trajectory_node", False),
        Endpoint("/vehicle_states", STATES, "/trajectory_node", True),
        Endpoint("/vehicle_states", STATES, "/ue_bridge_node", False),
    ),
    statuses=(
        Status("/terrain_node", "terrain", OK, "serving"),
        Status("/trajectory_node", "fleet", OK, "publishing"),
        Status("/ue_bridge_node", "bridge", OK, "sending"),
    ),
    sources=(
        Source("/vehicle_states", "/trajectory_node", frozenset({1001, 1002}), 50.0, 0.01, "map"),
    ),
    destinations=(Destination("/ue_bridge_node", "127.0.0.1", 20010, "127.0.0.1"),),
)


def found(**changes):
    """Findings of the healthy snapshot with these changes: key -> finding."""
    return {finding.key: finding for finding in find(dataclasses.replace(HEALTHY, **changes))}


def said(level, message, node="/ue_bridge_node", task="bridge"):
    others = [status for status in HEALTHY.statuses if status.node != node]
    return {"statuses": (*others, Status(node, task, level, message))}


def test_nothing_is_found_where_all_is_well():
    assert found() == {}


CASES = {
    "id_twice:1001": (
        {
            "sources": (
                *HEALTHY.sources,
                Source("/vehicle_states", "/intruder", frozenset({1001, 5}), 1.0, 0.5, "map"),
            )
        },
        ("vehicle 1001 comes from 2 sources", "/intruder", "/trajectory_node"),
    ),
    "not_finite:/car/pose": (
        {"sources": (Source("/car/pose", "car", frozenset({7}), 9.0, 0.1, "map", frozenset({7})),)},
        ("/car/pose", "vehicle 7", "NaN"),
    ),
    "frame:/car/pose": (
        {
            "lost_frames": {
                "/car/pose": "frame 'odom' is not connected to 'map': no transform names it"
            }
        },
        ("frame 'odom'", "/tf"),
    ),
    "destination:127.0.0.1:20010": (
        {
            "destinations": (
                Destination("/ue_bridge_node", "127.0.0.1", 20010, "127.0.0.1", "refused"),
            )
        },
        ("nobody listens on 127.0.0.1:20010", "is RflySim3D running there?"),
    ),
    "destination:192.168.1.20:20010": (
        {
            "destinations": (
                Destination("/ue_bridge_node", "192.168.1.20", 20010, "192.168.1.20", "refused"),
            )
        },
        (
            "nobody listens on 192.168.1.20:20010",
            "is RflySim3D running there? Is its firewall open for UDP 20010?",
        ),
    ),
    "destination:192.168.1.21:20010": (
        {
            "destinations": (
                Destination(
                    "/ue_bridge_node", "192.168.1.21", 20010, "192.168.1.21", "unreachable"
                ),
            )
        },
        ("192.168.1.21 is unreachable", "rfly up --host"),
    ),
    "destination:10.1.1.1:20010": (
        {
            "destinations": (
                Destination(
                    "/ue_bridge_node", "10.1.1.1", 20010, "10.1.1.1", "silent", "192.168.1.1"
                ),
            )
        },
        ("10.1.1.1 lies outside", "behind 192.168.1.1"),
    ),
    "destination:viewer:20010": (
        {"destinations": (Destination("/ue_bridge_node", "viewer", 20010, "", "unknown"),)},
        ("no machine is called viewer", "--host"),
    ),
    "bridge_twice:127.0.0.1:20010": (
        {
            "destinations": (
                *HEALTHY.destinations,
                Destination("/b/ue_bridge_node", "127.0.0.1", 20010, "127.0.0.1"),
            )
        },
        ("2 bridges send to 127.0.0.1:20010", "/b/ue_bridge_node"),
    ),
    "node_twice:/terrain_node": (
        {"nodes": (*HEALTHY.nodes, "/terrain_node")},
        ("2 nodes of ROS domain 7 are called /terrain_node", "another rfly up"),
    ),
    "terrain_twice:/terrain_map": (
        {"endpoints": (*HEALTHY.endpoints, Endpoint("/terrain_map", TERRAIN, "/other", True))},
        ("2 nodes publish /terrain_map", "/other"),
    ),
    "no_map": (
        {"endpoints": HEALTHY.endpoints[1:]},
        ("nobody publishes /terrain_map, which /trajectory_node wait", "start terrain_node"),
    ),
    "status:/ue_bridge_node:dropped, bad_quaternion: robot/odom": (
        said(WARN, "dropped, bad_quaternion: robot/odom"),
        ("its orientation is no rotation", "0, 0, 0, 1"),
    ),
    "nothing": (
        {"nodes": ("/talker",), "statuses": (), "machine": Machine(other_domains=(42,))},
        (
            "no node of rfly_suite is seen in ROS domain 7",
            "/talker",
            "ROS_DOMAIN_ID=42 rfly doctor",
        ),
    ),
    "silent:/trajectory_node": (
        {"statuses": (HEALTHY.statuses[0], HEALTHY.statuses[2])},
        ("/trajectory_node is there, but says nothing",),
    ),
    "mismatch:/vehicle_states:/x:/ue_bridge_node": (
        {
            "mismatches": (
                Mismatch("/vehicle_states", "/x", "/ue_bridge_node", "best effort publisher"),
            )
        },
        ("nothing gets from /x to /ue_bridge_node: best effort publisher", "publish reliable"),
    ),
    "robot:/car/pos": (
        {
            "robots": (Robot("/ue_bridge_node", "car", 7, "/car/pos", POSE),),
            "endpoints": (*HEALTHY.endpoints, Endpoint("/car/pose", POSE, "/car", True)),
        },
        ("nobody publishes /car/pos", "published on /car/pose; set the parameter car.topic"),
    ),
    "multicast": (
        {"machine": Machine(multicast=False)},
        ("multicast does not work", "ROS_STATIC_PEERS"),
    ),
    "shm_stuck": (
        {
            "machine": Machine(
                shared_memory=SharedMemory(3, 1.6, stuck_ports=("fastrtps_port9161",))
            )
        },
        ("fastrtps_port9161", "rm /dev/shm/fastrtps_*"),
    ),
    "shm_foreign": (
        {"machine": Machine(shared_memory=SharedMemory(foreign=("fastrtps_port9161",)))},
        ("another user's", "fastrtps_port9161"),
    ),
    "shm_full": (
        {"machine": Machine(shared_memory=SharedMemory(120, 60.0, free_mb=3.0))},
        ("3 MB left", "120 files", "rm /dev/shm"),
    ),
    "clock": (
        said(WARN, "/clock has not moved for 9 s"),
        ("/clock has not moved for 9 s", "use_sim_time is on"),
    ),
    "status:/ue_bridge_node:no states for 4.2 s": (
        said(STALE, "no states for 4.2 s"),
        ("/ue_bridge_node: no states for 4.2 s", "publish vehicle_states"),
    ),
    "status:/ue_bridge_node:feedback port 127.0.0.1:20006: another program holds it": (
        said(ERROR, "feedback port 127.0.0.1:20006: another program holds it", task="feedback")
        | {"machine": Machine(port_holders={20006: "python3 (process 12)"})},
        ("python3 (process 12)", "feedback_port"),
    ),
    "status:/terrain_node:no map is loaded: no such file; call load_terrain": (
        said(
            ERROR, "no map is loaded: no such file; call load_terrain", "/terrain_node", "terrain"
        ),
        ("no map is loaded: no such file",),
    ),
    "status:/ue_bridge_node:bridge": (
        said(WARN, "something new"),
        ("/ue_bridge_node (bridge): something new",),
    ),
}


@pytest.mark.parametrize("key", CASES)
def test_each_problem_is_told_with_what_to_do(key):
    changes, texts = CASES[key]
    finding = found(**changes)[key]
    assert finding.problem
    assert finding.do
    told = f"{finding.what} | {finding.do}"
    assert [text for text in texts if text not in told] == []


def test_a_bridge_alone_needs_no_map():
    """A robot in the window without terrain_node: worth knowing, and not the first thing to mend."""
    alone = found(
        nodes=("/ue_bridge_node",),
        endpoints=(Endpoint("/terrain_map", TERRAIN, "/ue_bridge_node", False),),
        statuses=HEALTHY.statuses[2:],
    )
    assert list(alone) == ["no_map"]
    assert not alone["no_map"].problem
    assert "which /ue_bridge_node waits for" in alone["no_map"].what


@pytest.mark.parametrize(
    "key", [key for key in CASES if not key.startswith(("no_map", "nothing", "robot"))]
)
def test_each_problem_is_told_once(key):
    assert [other for other, finding in found(**CASES[key][0]).items() if finding.problem] == [key]


def test_what_was_seen_from_outside_is_not_told_again_in_the_bridge_s_words():
    """The bridge's sentence of an id, of a frame, of NaN, of a window and of a peer that does not
    match.
    """
    bridge = said(
        WARN,
        "vehicle 1002 comes from /a; what /b says of it is dropped; "
        "window 0 at 127.0.0.1:20010: nobody listens there (is RflySim3D running?); "
        "/vehicle_states: nothing gets from /x: the publisher is best effort, the subscription reliable; "
        "dropped, unknown_frame: car/pose: frame 'odom' is not connected to 'map': no transform names it",
    )
    keys = (
        "id_twice:1001",
        "destination:127.0.0.1:20010",
        "frame:/car/pose",
        "mismatch:/vehicle_states:/x:/ue_bridge_node",
    )
    outside = {name: value for key in keys for name, value in CASES[key][0].items()}
    sources = (
        *HEALTHY.sources,
        Source("/vehicle_states", "/b", frozenset({1001, 1002}), 1.0, 0.5, "map"),
    )
    assert set(found(**{**outside, **bridge, "sources": sources})) == set(keys)
    assert set(found(**bridge)) == {key.replace("1001", "1002") for key in keys}


def test_the_exit_code_counts_problems_only():
    """Another domain, files in shared memory, a host of this network that says nothing: worth
    knowing.
    """
    findings = found(
        machine=Machine(other_domains=(3,), shared_memory=SharedMemory(leftovers=4)),
        destinations=(Destination("/ue_bridge_node", "192.168.1.20", 20010, "192.168.1.20"),),
        endpoints=(
            *HEALTHY.endpoints,
            Endpoint("/site/vehicle_states", STATES, "/site/trajectory_node", True),
        ),
    )
    assert set(findings) == {
        "other_domains",
        "shm_leftovers",
        "destination:192.168.1.20:20010",
        "not_shown:/site/vehicle_states",
    }
    assert not any(finding.problem for finding in findings.values())


def test_multicast_is_not_needed_on_one_host():
    assert found(machine=Machine(multicast=False), discovery_range="LOCALHOST") == {}


def test_the_same_advice_is_printed_once(capsys):
    from rfly_bringup.cli.doctor import _print

    found = [
        Finding(f"destination:{port}", f"window at {port}", "is it running?")
        for port in (20010, 20011)
    ]
    _print([*found, Finding("clock", "it stands", "resume it")], Snapshot())
    assert capsys.readouterr().out.splitlines()[1:] == [
        "✗ window at 20010",
        "✗ window at 20011",
        "    is it running?",
        "✗ it stands",
        "    resume it",
    ]

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Findings in snapshots written by hand: no ROS, no network."""

from __future__ import annotations

import dataclasses

import pytest

from rfly_bringup.doctor.findings import _EXPLAINED as EXPLAINED
from rfly_bringup.doctor.findings import Finding, find
from rfly_bringup.doctor.snapshot import (
    ERROR,
    OK,
    STALE,
    WARN,
    Destination,
    DiagnosticReport,
    Endpoint,
    Machine,
    Mismatch,
    Robot,
    SharedMemory,
    Snapshot,
    Source,
)
from rfly_common.diagnostic_reasons import Notice, Reason, reason_values

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
        DiagnosticReport("/terrain_node", "terrain", OK, "serving"),
        DiagnosticReport("/trajectory_node", "fleet", OK, "publishing"),
        DiagnosticReport("/ue_bridge_node", "bridge", OK, "sending"),
    ),
    sources=(
        Source("/vehicle_states", "/trajectory_node", frozenset({1001, 1002}), 50.0, 0.01, "map"),
    ),
    destinations=(Destination("/ue_bridge_node", "127.0.0.1", 20010, "127.0.0.1"),),
)


def found(**changes):
    """Findings of the healthy snapshot with these changes: key -> finding."""
    return {finding.key: finding for finding in find(dataclasses.replace(HEALTHY, **changes))}


def reported(level, *notices, node="/ue_bridge_node", task="bridge"):
    """The healthy reports, one node's replaced by these notices."""
    others = [report for report in HEALTHY.statuses if report.node != node]
    message = "; ".join(notice.text for notice in notices)
    values = reason_values(notices)
    report = DiagnosticReport(node, task, level, message, values=values)
    return {"statuses": (*others, report)}


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
        (
            "vehicle 1001 comes from 2 sources",
            "/intruder",
            "/trajectory_node",
            "; /ue_bridge_node takes the first and drops the others",
        ),
    ),
    "frame_twice:lead/base_link": (
        {"frame_conflicts": {"lead/base_link": "two publishers on /tf"}},
        ("frame lead/base_link has two publishers on /tf", "--namespace"),
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
        ("nothing listens on 127.0.0.1:20010", "is RflySim3D running there?"),
    ),
    "destination:192.168.1.20:20010": (
        {
            "destinations": (
                Destination("/ue_bridge_node", "192.168.1.20", 20010, "192.168.1.20", "refused"),
            )
        },
        (
            "nothing listens on 192.168.1.20:20010",
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
        ("no node publishes /terrain_map, which /trajectory_node wait", "start terrain_node"),
    ),
    "status:/ue_bridge_node:bad_quaternion:robot/odom": (
        reported(WARN, Notice("dropped", Reason.BAD_QUATERNION, "robot/odom")),
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
        ("no node publishes /car/pos", "published on /car/pose; set the parameter car.topic"),
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
        reported(WARN, Notice("/clock has not moved for 9 s", Reason.CLOCK_STOPPED, "9")),
        ("/clock has not moved for 9 s", "use_sim_time is on"),
    ),
    "status:/ue_bridge_node:no_states": (
        reported(STALE, Notice("no states for 4.2 s", Reason.NO_STATES, "4.2")),
        ("/ue_bridge_node: no states for 4.2 s", "publish vehicle_states"),
    ),
    "status:/ue_bridge_node:feedback_port_taken:20006": (
        reported(
            ERROR,
            Notice("the port is taken", Reason.FEEDBACK_PORT_TAKEN, "20006"),
            task="feedback",
        )
        | {"machine": Machine(port_holders={20006: "python3 (process 12)"})},
        ("the feedback port 20006", "python3 (process 12)", "feedback_port"),
    ),
    "status:/ue_sensors_node:no_sensor_data:9999": (
        reported(
            STALE,
            Notice("no data on port 9999 yet", Reason.NO_SENSOR_DATA, "9999"),
            node="/ue_sensors_node",
            task="sensor0",
        ),
        ("/ue_sensors_node: no data on port 9999", "sensor licence", "firewall"),
    ),
    "status:/coptersim_node:no_coptersim_data:30101": (
        reported(
            STALE,
            Notice("no truth on port 30101 yet", Reason.NO_COPTERSIM_DATA, "30101"),
            node="/coptersim_node",
            task="copter1",
        ),
        ("/coptersim_node: no data on port 30101", "UDP_Simple", "firewall"),
    ),
    "status:/terrain_node:no_map_loaded": (
        reported(
            ERROR,
            Notice("no map", Reason.NO_MAP_LOADED, "no such file"),
            node="/terrain_node",
            task="terrain",
        ),
        ("no map is loaded: no such file",),
    ),
    "status:/ue_bridge_node:old_stamps:/car/pose": (
        reported(WARN, Notice("dropped", Reason.STALE, "/car/pose")),
        ("/car/pose", "chrony"),
    ),
    "status:/ue_bridge_node:bridge": (
        reported(WARN, Notice("something new")),
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
    """A robot in the window without terrain_node: worth knowing, but no problem."""
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


SEEN_FROM_OUTSIDE = {
    "id_twice:1001": Notice("two sources", Reason.OTHER_SOURCE, "1002"),
    "destination:127.0.0.1:20010": Notice("refused", Reason.WINDOW_REFUSED, "127.0.0.1:20010"),
    "frame:/car/pose": Notice("no transform", Reason.UNKNOWN_FRAME, "car/pose"),
    "mismatch:/vehicle_states:/x:/ue_bridge_node": Notice(
        "QoS", Reason.PEER_MISMATCH, "/vehicle_states /x /ue_bridge_node"
    ),
}
"""What a bridge reports itself, by the key of the finding that a look from outside gives."""


def test_what_was_seen_from_outside_is_not_reported_again_in_the_bridge_s_words():
    """Ids from two sources, a frame, a window and a peer that does not match."""
    bridge = reported(WARN, *SEEN_FROM_OUTSIDE.values())
    outside = {name: value for key in SEEN_FROM_OUTSIDE for name, value in CASES[key][0].items()}
    sources = (
        *HEALTHY.sources,
        Source("/vehicle_states", "/b", frozenset({1001, 1002}), 1.0, 0.5, "map"),
    )

    both = found(**{**outside, **bridge, "sources": sources})

    assert both == found(**{**outside, "sources": sources})
    assert set(both) == set(SEEN_FROM_OUTSIDE)
    alone = {key.replace("1001", "1002") for key in SEEN_FROM_OUTSIDE}
    assert set(found(**bridge)) == alone


SITES = ("/alpha", "/beta")


def at_two_sites(*, bridges=(), window=20010):
    """Two fleets of the same ids in two namespaces, with the bridges of some of them."""
    ends = [Endpoint(f"{site}/vehicle_states", STATES, f"{site}/fleet", True) for site in SITES]
    ends += [
        Endpoint(f"{site}/vehicle_states", STATES, f"{site}/ue_bridge_node", False)
        for site in bridges
    ]
    sources = [
        Source(f"{site}/vehicle_states", f"{site}/fleet", frozenset({1, 2}), 50.0, 0.01, "map")
        for site in SITES
    ]
    destinations = [
        Destination(f"{site}/ue_bridge_node", "127.0.0.1", window + index, "127.0.0.1")
        for index, site in enumerate(bridges)
    ]
    return {
        "nodes": (),
        "statuses": (),
        "endpoints": tuple(ends),
        "sources": tuple(sources),
        "destinations": tuple(destinations),
    }


@pytest.mark.parametrize("bridges", [(), SITES[:1], SITES])
def test_vehicles_of_two_namespaces_are_not_dropped(bridges):
    """No bridge takes both fleets, so that none drops a vehicle of the other."""
    assert not [key for key in found(**at_two_sites(bridges=bridges)) if "id_twice" in key]


def test_a_bridge_drops_what_it_gets_twice_by_a_robots_topic():
    """The bridge of alpha also shows a robot of beta, whose id its fleet has."""
    two = at_two_sites(bridges=SITES)
    robot = Robot("/alpha/ue_bridge_node", "car", 2, "/beta/car/pose", POSE)
    car = Source("/beta/car/pose", "car", frozenset({2}), 9.0, 0.1, "map")
    finding = found(**{**two, "robots": (robot,), "sources": (*two["sources"], car)})["id_twice:2"]
    assert finding.what == (
        "vehicle 2 comes from 2 sources: /alpha/fleet (/alpha/vehicle_states) and car "
        "(/beta/car/pose); /alpha/ue_bridge_node takes the first and drops the others"
    )


def with_other_words(statuses, message="words of another language; dropped, stale: x"):
    return tuple(dataclasses.replace(report, message=message) for report in statuses)


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason in EXPLAINED])
def test_a_reason_is_found_whatever_the_sentence_says(reason):
    """The finding is made from reason and subject: it is equal with every sentence replaced."""
    statuses = reported(WARN, Notice("a sentence", reason, "7"))["statuses"]
    findings = found(statuses=statuses)
    assert findings
    assert found(statuses=with_other_words(statuses)) == findings


@pytest.mark.parametrize("key", CASES)
def test_every_case_is_found_whatever_the_sentences_say(key):
    """Other words change only the finding that repeats a sentence without a reason."""
    changes = CASES[key][0]
    statuses = with_other_words(changes.get("statuses", HEALTHY.statuses))

    def facts(findings):
        return [
            (each.key, each.do, each.problem, "" if each.key.endswith(":bridge") else each.what)
            for each in findings.values()
        ]

    assert facts(found(**{**changes, "statuses": statuses})) == facts(found(**changes))


def test_a_transform_that_is_ignored():
    why = "transform 'map' -> 'a': translation [nan, 0.0, 0.0], rotation [0, 0, 0, 1] is no rigid"
    (finding,) = found(bad_transforms=(why,)).values()
    assert finding.what == f"/tf: {why}, and is ignored"


def with_values(**values):
    """The healthy reports, the bridge's with these values."""
    report = dataclasses.replace(HEALTHY.statuses[-1], values=values)
    return {"statuses": (*HEALTHY.statuses[:-1], report)}


@pytest.mark.parametrize(
    ("values", "findings"),
    [
        ({"undeclared_parameters": "mapp enu_frames my_own_thing"}, {"parameter:mapp": "map?"}),
        ({"sections_of_others": "/terain_node"}, {"section:/terain_node": "/terrain_node?"}),
        ({"sections_of_others": "/site/terrain_node"}, {"section:/site/terrain_node": "/terrain"}),
        ({"sections_of_others": "/misson_node"}, {"section:/misson_node": "mission_node?"}),
        # of nodes that run, that run elsewhere, or that are not of this suite
        ({"sections_of_others": "/**/terrain_node /mission_node /controller_server"}, {}),
    ],
)
def test_names_in_a_parameter_file_that_no_node_has(values, findings):
    got = found(**with_values(**values))
    assert set(got) == set(findings)
    assert all(findings[key] in got[key].do for key in findings)


def test_a_parameter_that_a_node_does_not_have():
    notice = Notice("…", Reason.UNKNOWN_PARAMETER, "windos")
    (finding,) = found(**reported(WARN, notice)).values()
    assert finding.what == (
        "/ue_bridge_node: it has no parameter windos, which it was given at its start"
    )
    assert finding.do == "did you mean windows?"


def test_a_report_with_an_unknown_reason_is_shown_as_it_is():
    """Nodes of a newer version may state reasons that this doctor does not know."""
    report = DiagnosticReport("/new", "task", WARN, "new words", values={"reason": "brand_new"})
    finding = found(statuses=(*HEALTHY.statuses, report))["status:/new:task"]
    assert finding.what == "/new (task): new words"


def test_a_known_reason_beside_an_unnamed_one_hides_no_sentence():
    findings = found(**reported(WARN, Notice("a b c"), Notice("no", Reason.NO_STATES)))
    assert set(findings) == {"status:/ue_bridge_node:no_states", "status:/ue_bridge_node:bridge"}
    assert "a b c" in findings["status:/ue_bridge_node:bridge"].what


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

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`--autopilot` of `rfly up amphibious` and its launch file: which nodes it starts, what it
refuses.
"""

from __future__ import annotations

import pytest

from rfly_bringup.nodes.amphibious_set import amphibious_nodes


def of_the_vehicle(arguments):
    return {
        node.executable: node.parameters for node in amphibious_nodes(arguments) if node.namespace
    }


def test_betaflight_takes_the_place_of_flight_control():
    ours = of_the_vehicle({})
    theirs = of_the_vehicle({"autopilot": "betaflight"})
    assert not ours["amphibious_sim_node"]["lock_step"]
    assert ours.keys() - theirs.keys() == {"flight_control_node"}
    assert theirs.keys() - ours.keys() == {"betaflight_node"}
    assert {given["vehicle"] for given in theirs.values()} == {"scale_quad"}
    assert theirs["amphibious_sim_node"]["type"] == 400_003
    assert all(given["lock_step"] for name, given in theirs.items() if name != "guidance_node")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"autopilot": "px4"}, "expected one of betaflight, ardupilot"),
        ({"real_time_factor": "2"}, "wall clock"),
        ({"count": "2"}, "one vehicle"),
        ({"vehicle": "full"}, "6 rotors"),
    ],
)
def test_what_real_firmware_cannot_do_is_refused(more, why):
    with pytest.raises(ValueError, match=why):
        amphibious_nodes({"autopilot": "betaflight", **more})
    if "autopilot" not in more:
        amphibious_nodes(more)


def test_ardupilot_takes_the_place_of_all_control_nodes_and_has_ports_of_its_own():
    nodes = [
        node
        for node in amphibious_nodes({"autopilot": "ardupilot", "count": "2"})
        if node.namespace
    ]
    names = ["amphibious_sim_node", "state_estimator_node", "ardupilot_json_node"]
    assert [node.executable for node in nodes] == 2 * names
    assert [node.parameters["port"] for node in nodes[2::3]] == [9002, 9012]
    assert all(
        node.parameters["lock_step"] and node.parameters["vehicle"] == "scale_quad"
        for node in nodes
    )
    six = amphibious_nodes({"autopilot": "ardupilot", "vehicle": "scale"})
    assert six[-1].parameters["vehicle"] == "scale"

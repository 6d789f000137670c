"""`--autopilot betaflight` of `rfly up amphibious` and its launch file: which nodes it starts, what it refuses."""

from __future__ import annotations

import pytest

from rfly_bringup.nodes.amphibious_set import amphibious_nodes


def of_the_vehicle(arguments):
    return {node.executable: node.parameters for node in amphibious_nodes(arguments) if node.namespace}


def test_betaflight_takes_the_place_of_flight_control():
    ours, theirs = of_the_vehicle({}), of_the_vehicle({"autopilot": "betaflight"})
    assert not ours["amphibious_sim_node"]["lock_step"]
    assert ours.keys() - theirs.keys() == {"flight_control_node"}
    assert theirs.keys() - ours.keys() == {"betaflight_node"}
    assert {given["vehicle"] for given in theirs.values()} == {"scale_quad"}
    assert theirs["amphibious_sim_node"]["type"] == 400_003
    assert all(given["lock_step"] for name, given in theirs.items() if name != "guidance_node")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"autopilot": "px4"}, "expected one of betaflight"),
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

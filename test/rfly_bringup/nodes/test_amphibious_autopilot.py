# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`--autopilot` of `rfly up amphibious` and its launch file: which nodes it starts, what it
refuses.
"""

from __future__ import annotations

from importlib import resources

import pytest

from rfly_bringup.nodes.amphibious_set import amphibious_nodes, start_commands
from rfly_common.errors import ConfigError
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN
from rfly_terrain.height_map.height_map import HeightMap


def of_the_vehicle(arguments):
    return {
        node.executable: node.parameters for node in amphibious_nodes(arguments) if node.namespace
    }


def test_an_unknown_autopilot_is_refused():
    with pytest.raises(ValueError, match="expected one of ardupilot, px4"):
        amphibious_nodes({"autopilot": "inav"})


@pytest.mark.parametrize(
    ("autopilot", "link", "ports"),
    [
        ("ardupilot", "ardupilot_json_node", [9002, 9012]),
        ("px4", "mavlink_hil_node", [4560, 4561]),
    ],
)
def test_a_whole_autopilot_replaces_estimator_and_controllers(autopilot, link, ports):
    arguments = {"autopilot": autopilot, "count": "2"}
    nodes = [node for node in amphibious_nodes(arguments) if node.namespace]
    assert [node.executable for node in nodes] == 2 * ["amphibious_sim_node", link]
    assert [node.parameters["port"] for node in nodes[1::2]] == ports
    assert all(node.parameters["type"] == 400_003 for node in nodes[::2])
    # nobody else publishes /tf
    assert all(node.parameters["tf_source"] == "truth" for node in nodes[::2])
    assert all(
        node.parameters["lock_step"] and node.parameters["vehicle"] == "scale_quad"
        for node in nodes
    )
    six = amphibious_nodes({"autopilot": autopilot, "vehicle": "scale"})
    assert six[-1].parameters["vehicle"] == "scale"


def test_a_map_from_the_lidar_needs_the_estimator():
    nodes = of_the_vehicle({"autopilot": "px4", "mapping": "true"})
    assert list(nodes) == [
        "amphibious_sim_node",
        "state_estimator_node",
        "mavlink_hil_node",
        "mapping_node",
    ]
    assert "tf_source" not in nodes["amphibious_sim_node"]


def test_a_vehicle_that_px4_cannot_fly_is_refused_before_anything_starts(tmp_path):
    file = tmp_path / "blind.yaml"
    lines = resources.files("rfly_amphibious").joinpath("data/sensors/scale.yaml").read_text()
    before, after = lines.split("barometer:")
    file.write_text(before + "encoders:" + after.split("encoders:")[1])
    with pytest.raises(ConfigError, match="no barometer; PX4 needs"):
        amphibious_nodes({"autopilot": "px4", "sensors": str(file)})


def commands(**arguments):
    return start_commands(arguments["autopilot"], amphibious_nodes(arguments))


def test_the_commands_that_start_px4():
    assert commands(autopilot="px4", count="2", scenario="hop") == [
        "PX4 for amphibious_1, in the folder of PX4's sources:",
        "    rfly sim px4-params amphibious_1.px4 --vehicle scale_quad --overwrite",
        "    (set -a; . ./amphibious_1.px4; exec build/px4_sitl_default/bin/px4 -i 0)",
        "PX4 for amphibious_2, in the folder of PX4's sources:",
        "    rfly sim px4-params amphibious_2.px4 --vehicle scale_quad --overwrite",
        "    (set -a; . ./amphibious_2.px4; exec build/px4_sitl_default/bin/px4 -i 1)",
    ]
    own = commands(autopilot="px4", vehicle="full", sensors="scale", name="car")
    assert own[1] == "    rfly sim px4-params car_1.px4 --vehicle full --sensors scale --overwrite"


def test_the_commands_that_start_ardupilot():
    """Copter has no frame like the six rotors of `scale`, which Rover can drive."""
    origin = "47.397742,8.545594,488,0"
    quad = commands(autopilot="ardupilot", count="2", scenario="hop")
    assert quad[4:] == [
        "    rfly sim ardupilot-params amphibious_2.parm --vehicle scale_quad --firmware copter "
        "--overwrite",
        f"    arducopter --model JSON:127.0.0.1 --home {origin} --defaults amphibious_2.parm -I1",
    ]
    six = commands(autopilot="ardupilot", scenario="hop", vehicle="scale")
    assert "--firmware rover" in six[1]
    assert six[2].startswith("    ardurover --model")


def test_the_home_of_ardupilot_is_the_maps_origin(tmp_path):
    name = "RollingHills"
    terrain = HeightMap.load(name)
    home = terrain.geo_origin or DEFAULT_GEO_ORIGIN
    [line] = [line for line in commands(autopilot="ardupilot", scenario="hills") if "home" in line]
    assert f"--home {home[0]:.10g},{home[1]:.10g}," in line


def test_our_controllers_need_no_command():
    assert commands(autopilot="") == []

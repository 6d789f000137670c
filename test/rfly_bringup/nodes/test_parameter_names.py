# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Names in a parameter file that no node has, and values of a wrong type."""

from __future__ import annotations

import pytest

from rfly_bringup.nodes.node_set import StartedNode
from rfly_bringup.nodes.parameter_names import check_parameter_file
from rfly_common.errors import ConfigError

NODES = (StartedNode("terrain_node"), StartedNode("mission_node", "site"))


def check(tmp_path, section, *lines):
    """Return the warnings for a file with one section, without the file's name."""
    path = tmp_path / "params.yaml"
    body = "".join(f"    {line}\n" for line in lines)
    path.write_text(f"{section}:\n  ros__parameters:\n{body}", encoding="utf-8")
    return [text.removeprefix(f"{path}:") for text in check_parameter_file(str(path), NODES)]


@pytest.mark.parametrize(
    ("section", "line", "warnings"),
    [
        ("terrain_node", "map: x", []),
        ("terrain_node", "mapp: x", ["3: no parameter mapp in terrain_node; did you mean map?"]),
        ("terrain_node", "use_sim_time: true", []),
        ("terrain_node", "use_simtime: true", ["3: no parameter use_simtime in terrain_node; did"]),
        ("/site/mission_node", "uav.id: 3", []),
        ("/site/mission_node", "uav.di: 3", ["3: no parameter uav.di in mission_node"]),
        ("/**", "map: x", []),
        ("/**", "host: x", []),  # of a node that does not start here
        ("/**", "maps: x", ["3: no parameter maps in mission_node and 1 more"]),
        ("terrain_node", "qos_overrides./tf.publisher.depth: 3", []),
        ("terain_node", "map: x", ["1: /terain_node fits no node that starts; did you mean /terr"]),
        ("mission_node", "rate: 1.0", ["1: /mission_node fits no node that starts; did you mean"]),
        ("/site/misson_node", "rate: 1.0", ["1: /site/misson_node fits no node that starts"]),
        ("ue_bridge_node", "host: x", []),  # a file may serve more nodes than start
        ("ue_bridge", "host: x", ["1: /ue_bridge fits no node that starts; did you mean ue_br"]),
        ("controller_server", "odom_topic: x", []),  # of Nav2
    ],
)
def test_names_that_no_node_has(section, line, warnings, tmp_path):
    found = check(tmp_path, section, line)
    assert len(found) == len(warnings)
    assert [text.startswith(told) for text, told in zip(found, warnings, strict=True)] == [
        True for _ in warnings
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('use_sim_time: "true"', "use_sim_time of mission_node: string, expected bool"),
        ("rate: fast", "rate of mission_node: string, expected double"),
        ("vehicles: uav", r"vehicles of mission_node: string, expected string\[\]"),
        ("vehicles: [1]", r"vehicles of mission_node: integer\[\], expected string\[\]"),
        ("uav.id: 1.5", "uav.id of mission_node: double, expected integer"),
    ],
)
def test_a_wrong_type_is_refused(line, told, tmp_path):
    with pytest.raises(ConfigError, match=rf"params\.yaml:3: {told}"):
        check(tmp_path, "/**/mission_node", line)


@pytest.mark.parametrize("line", ["rate: 20", "vehicles: []", "uav.id: 1"])
def test_whole_numbers_and_empty_lists_fit(line, tmp_path):
    assert check(tmp_path, "/**/mission_node", line) == []

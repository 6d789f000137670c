# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The file config/diagnostics.yaml: our nodes' names by diagnostic_aggregator's rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
GROUPS = yaml.safe_load((ROOT / "config" / "diagnostics.yaml").read_text(encoding="utf-8"))[
    "analyzers"
]["ros__parameters"]
ANALYZERS = {key: group for key, group in GROUPS.items() if isinstance(group, dict)}


def groups_of(name):
    """Return the analyzers that take a status of that name.

    `startswith` and `contains` are lists of plain texts.
    """
    return [
        key
        for key, group in ANALYZERS.items()
        if any(name.startswith(text) for text in group.get("startswith", []))
        or any(text in name for text in group.get("contains", []))
    ]


def nodes():
    """Return the names of all executables but the process that holds several nodes."""
    text = (ROOT / "cmake" / "nodes.cfg").read_text(encoding="utf-8")
    return [
        name for name in re.findall(r"^\s+(\w+) = ", text, re.MULTILINE) if name != "rfly_nodes"
    ]


def test_every_group_is_a_generic_analyzer_with_a_path_of_its_own():
    """The aggregator takes type, path, lists of texts, and a timeout that is a double."""
    assert set(GROUPS) - set(ANALYZERS) == {"path", "pub_rate"}
    for group in ANALYZERS.values():
        assert group["type"] == "diagnostic_aggregator/GenericAnalyzer"
        assert set(group) == {"type", "path", "contains", "timeout", "discard_stale"}
        assert group["discard_stale"] is True, "a group of nodes that do not run is no error"
        assert isinstance(group["timeout"], float)
        assert group["timeout"] > 2.0, "nodes report once a second"
    assert len({group["path"] for group in ANALYZERS.values()}) == len(ANALYZERS)


@pytest.mark.parametrize("node", nodes())
def test_each_node_is_in_one_group_in_every_namespace(node):
    for namespace in ("", "/amphibious_1", "/site/north"):
        assert len(groups_of(f"{namespace}/{node}: any task")) == 1
    assert not groups_of(f"/another_{node}: any task"), "foreign nodes are not ours"


def test_no_group_waits_for_a_node_that_there_is_not():
    named = {text for group in ANALYZERS.values() for text in group["contains"]}
    assert named == {f"/{node}: " for node in nodes()}


@pytest.mark.ros
def test_what_a_running_node_reports_is_taken(domain_id, tmp_path):
    import numpy as np
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import NodeProcess, Peer

    from rfly_common.ros.qos import STATE_OUT
    from rfly_terrain.files.writer import write_map

    write_map(np.zeros((3, 3)), tmp_path / "flat", origin_x=0, origin_y=0, step_x=1, step_y=1)
    parameters = {"map": f"'{tmp_path / 'flat.png'}'"}
    with NodeProcess("terrain_node", domain_id, parameters, "-r", "__ns:=/site"):
        peer = Peer(domain_id)
        reports = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
        names = set()
        peer.spin_until(
            lambda: (
                names.update(s.name for array in reports for s in array.status) or len(names) == 2
            )
        )
        assert names == {"/site/terrain_node: terrain", "/site/terrain_node: occupancy"}
        assert {group for name in names for group in groups_of(name)} == {"terrain"}
        assert all(array.header.stamp.sec for array in reports), (
            "the aggregator warns of what has no stamp"
        )
        peer.close()

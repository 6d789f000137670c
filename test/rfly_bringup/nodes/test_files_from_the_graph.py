# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Files that a peer may reach by naming them.

Every service, action, topic and parameter that could take a name is listed here. Those that read
files do so below the operator's folders only, and reveal nothing of any file's content.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from rfly_common.errors import ConfigError, TerrainFileNotFound, TerrainFormatError
from rfly_common.ros.endpoints import GoalResult
from rfly_common.ros.node_parameters import parameters_of
from rfly_common.untrusted_files.allowed_folders import resolve_below, without_content
from rfly_terrain.files.terrain_message import is_plain, load_asked_map
from rfly_terrain.files.writer import write_map

ROOT = Path(__file__).resolve().parents[3]
SECRET = "Tr0ub4dor"
FILES = {"LoadTerrain.map", "LoadFleet.fleet", "ExecuteMission.file"}
"""texts in requests and goals that name a file on the node's machine"""
NO_FILES = {
    *(
        "GetTerrainAltitude.frame_id",
        "GetTerrainAltitudes.frame_id",
        "MoveObject.frame_id",
        "PlaceObject.frame_id",
        "PlaceObject.model",
    ),
    *("InjectFault.part", "InjectFault.kind", "InjectFault.quantity"),
    *(
        "PlanPath.name",
        "PlanPath.vehicle_class",
        "RequestObject.name",
        "SendUeCommand.command",
    ),
}
"""other texts in requests and goals"""
PACKAGES = (
    "rfly_terrain",
    "rfly_trajectory",
    "rfly_missions",
    "rfly_collision",
    "rfly_ue_bridge",
    "rfly_amphibious",
)


def texts_of_requests():
    for file in (*ROOT.glob("srv/*.srv"), *ROOT.glob("action/*.action")):
        request = file.read_text(encoding="utf-8").split("\n---", 1)[0]
        for name in re.findall(r"^(?:w?string)\S*\s+(\w+)\s*(?:#.*)?$", request, re.MULTILINE):
            yield f"{file.stem}.{name}"


def test_every_text_of_a_request_is_known():
    """A new one is a file, and belongs into the tests below, or is none."""
    assert set(texts_of_requests()) == FILES | NO_FILES


def test_no_parameter_that_a_peer_may_change_names_a_file_or_an_address():
    changeable = []
    for package in PACKAGES:
        module = importlib.import_module(f"{package}.ros.node_parameters")
        for cls in {cls for classes in module.NODES.values() for cls in classes}:
            changeable += [
                f"{each.name}: {each.description}" for each in parameters_of(cls) if each.changeable
            ]
    assert changeable
    assert [each for each in changeable if re.search(r"file|folder|path|address|host", each)] == []


@pytest.fixture
def places(tmp_path):
    """A folder that the operator named and another, each with a file, and links from the first to
    the second.
    """
    named = tmp_path / "named"
    other = tmp_path / "other"
    for folder in (named / "sub", other):
        folder.mkdir(parents=True)
        (folder / "a.yaml").write_text(SECRET, encoding="utf-8")
    (named / "link.yaml").symlink_to(other / "a.yaml")
    (named / "way").symlink_to(other)
    return named, other


OUTSIDE = (
    "{other}/a.yaml",
    "../other/a.yaml",
    "sub/../../other/a.yaml",
    "../link.yaml",
    "../way/a.yaml",
    "..",
)
OUTSIDE += (
    "/etc/passwd",
    "{other}/none.yaml",
    "{named}x/a.yaml",
    "a\0.yaml",
    "x" * 5000,
    "~/a.yaml",
    "",
)


def test_a_name_leads_below_the_named_folders_or_to_nothing(places):
    named, other = places
    for good in ("sub/a.yaml", f"{named}/sub/a.yaml", "sub/../sub/a.yaml"):
        assert resolve_below(good, [other / "none", named], "file_folders") == f"{named}/sub/a.yaml"
    for name in OUTSIDE:
        with pytest.raises(ConfigError, match="below the folders of the parameter file_folders"):
            resolve_below(name.format(named=named, other=other), [named / "sub"], "file_folders")
        with pytest.raises(ConfigError, match="names none"):
            resolve_below(name.format(named=named, other=other), [], "file_folders")


def test_whether_a_file_elsewhere_exists_is_not_told(places):
    named, other = places
    texts = set()
    for name in ("a.yaml", "none.yaml"):
        with pytest.raises(ConfigError) as caught:
            resolve_below(f"{other}/{name}", [named], "file_folders")
        texts.add(str(caught.value).replace(name, ""))
    assert len(texts) == 1


def test_a_line_is_told_and_no_word_of_it():
    error = ConfigError(f"/a/b.yaml:12: vehicles[0].{SECRET}: '{SECRET}' /a/b.yaml:99: {SECRET}")
    told = without_content("b.yaml", error, "/a/b.yaml", "rfly fleet check /a/b.yaml")
    assert (
        told
        == "'b.yaml', line 12: cannot be used; on the node's machine `rfly fleet check /a/b.yaml` "
        "says why"
    )
    assert without_content("b", ConfigError(f"{SECRET}: line 7"), "/a/b", "x") == (
        "'b': cannot be used; on the node's machine `x` says why"
    )
    assert (
        without_content("b", PermissionError(13, "Permission denied", "/a/b"), "/a/b", "")
        == "'b': Permission denied"
    )


def test_maps_by_name_or_below_the_search_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named = tmp_path / "named"
    other = tmp_path / "other"
    for folder in (named / "sub", other):
        folder.mkdir(parents=True)
        write_map(np.eye(3), folder / "Hill", origin_x=0, origin_y=0, step_x=1, step_y=1)
    for good in ("sub/Hill", "sub/Hill.png", f"{named}/sub/Hill", "JacksboroFault"):
        assert load_asked_map(good, [named]).rows > 1
    for bad in (
        f"{other}/Hill",
        "../other/Hill",
        "other/Hill",
        "./other/Hill",
        f"{other}/none",
    ):
        with pytest.raises(
            TerrainFileNotFound,
            match="below the folders of the parameter map_search_path",
        ):
            load_asked_map(bad, [named])
    (named / "sub" / "Hill.txt").write_text(f"{SECRET},1,2,3,4,5,6,7,8\n", encoding="utf-8")

    with pytest.raises(TerrainFormatError, match="line 1: cannot be used") as caught:
        load_asked_map("sub/Hill", [named])
    assert SECRET not in str(caught.value)
    assert [
        is_plain(name) for name in ("Hill", "Hill.png", "a/b", "..", "C:x", "a\\b", "/x", "")
    ] == [
        True,
        True,
        False,
        False,
        False,
        False,
        False,
        False,
    ]


# what is wrong in each of these files, in the places where a reader may name it
BAD_FILES = {
    "first line": f"{SECRET}\n",
    "a key": f"version: 1\n{SECRET}: 2\nvehicles: [{{id: 1, type: 3}}]\n",
    "a value": f"version: 1\nvehicles: [{{id: {SECRET}, type: 3}}]\n",
    "a tag": f"version: !{SECRET} 1\n",
    "json": f'{{"fileType": "{SECRET}", "version": 1}}',
    "json key": f'{{"fileType": "Plan", "version": 1, "mission": {{"plannedHomePosition": '
    f'["{SECRET}", 1, 2]}}}}',
    "a column": f"QGC WPL 110\n0 1 0 16 0 0 0 0 47 8 500 {SECRET}\n",
    "a number": f"QGC WPL 110\n{SECRET}\n",
}


@pytest.mark.ros
@pytest.mark.slow
def test_no_answer_log_or_diagnostic_says_what_is_in_a_file(domain_id, tmp_path):
    """No service or action reveals the content of files, below the named folder or elsewhere."""
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import NodeProcess, Peer
    from rcl_interfaces.msg import Log
    from rclpy.action import ActionClient
    from rclpy.qos import QoSProfile
    from rfly_suite.action import ExecuteMission
    from rfly_suite.srv import LoadFleet, LoadTerrain

    from rfly_common.ros.qos import LATCHED

    named = tmp_path / "named"
    other = tmp_path / "other"
    named.mkdir()
    other.mkdir()
    names = []
    for folder in (named, other):
        for number, text in enumerate(BAD_FILES.values()):
            for ending in ("yaml", "plan", "txt"):
                (folder / f"{number}.{ending}").write_text(text, encoding="utf-8")
            (folder / f"{number}.png").write_text(text, encoding="utf-8")
            names.append(f"{folder}/{number}")
    folders = f"['{named}']"
    said: list[str] = []
    with (
        NodeProcess("terrain_node", domain_id, {"map_search_path": folders}),
        NodeProcess("trajectory_node", domain_id, {"file_folders": folders}),
        NodeProcess("mission_node", domain_id, {"file_folders": folders, "vehicles": "[hawk]"}),
    ):
        peer = Peer(domain_id)
        reports = peer.receive(DiagnosticArray, "/diagnostics", QoSProfile(depth=100))
        logs = peer.receive(Log, "/rosout", with_room(LATCHED))
        client = ActionClient(peer.node, ExecuteMission, "hawk/execute_mission")
        peer.spin_until(client.server_is_ready)
        for name in names:
            for answer in (
                peer.call(LoadTerrain, "load_terrain", map=name),
                peer.call(LoadFleet, "trajectory_node/load_fleet", fleet=f"{name}.yaml"),
                result_of(peer, client, ExecuteMission.Goal(file=f"{name}.plan")),
            ):
                assert not answer.success
                assert (
                    "cannot be used" in answer.message or "not below the folders" in answer.message
                )
                assert ("cannot be used" in answer.message) == name.startswith(str(named))
                said.append(answer.message)
        peer.spin_until(lambda: any("last load failed" in str(report) for report in reports))
        peer.spin_until(lambda: logs)
        said += [*map(str, reports), *map(str, logs)]
        peer.close()
    assert len(said) > 3 * len(names)
    assert [text for text in said if SECRET in text] == []


def with_room(profile):
    """The profile with room for all that is logged."""
    from rclpy.qos import QoSProfile

    return QoSProfile(depth=1000, reliability=profile.reliability, durability=profile.durability)


def result_of(peer, client, goal):
    """The result of a goal that ends at once."""
    got = GoalResult(peer.send_goal(client, goal))
    peer.spin_until(got.done)
    return got.result().result

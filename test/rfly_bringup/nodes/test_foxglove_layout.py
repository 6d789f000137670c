# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""config/foxglove.json: each panel asks for topics, and fields of messages, that there are."""

from __future__ import annotations

import csv
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
LAYOUT = json.loads((ROOT / "config" / "foxglove.json").read_text(encoding="utf-8"))
PANELS: dict[str, Any] = LAYOUT["configById"]
OF_A_FLEET = ("lead", "NAME")
"""A vehicle of the default fleet, and its name in the table of topics."""
SHOWN_IN_3D = {
    "nav_msgs/OccupancyGrid",
    "nav_msgs/Path",
    "sensor_msgs/Image",
    "sensor_msgs/LaserScan",
    "sensor_msgs/PointCloud2",
    "visualization_msgs/Marker",
    "visualization_msgs/MarkerArray",
}


def published() -> dict[str, str]:
    """Return the types of the topics that nodes publish, named as the default start names them."""
    table = (ROOT / "docs" / "reference" / "topics.csv").read_text(encoding="utf-8")
    types = {}
    for row in csv.DictReader(table.splitlines()):
        if row["does"] == "publishes":
            name = row["name"].lstrip("/")
            vehicle, table_name = OF_A_FLEET
            types[re.sub(rf"^{table_name}/", f"{vehicle}/", name)] = row["type"]
    return types


def type_of(topic: str) -> str:
    return published()[topic.removeprefix("/").removeprefix("amphibious_1/")]


def panels(kind: str) -> list[Any]:
    return [panel for name, panel in PANELS.items() if name.startswith(f"{kind}!")]


def test_the_scene_shows_topics_that_there_are():
    (scene,) = panels("3D")
    assert scene["fixedFrame"] == "map"
    assert {type_of(topic) for topic in scene["topics"]} <= SHOWN_IN_3D


def test_the_other_panels_have_their_kinds_of_topics():
    for panel in panels("Image"):
        mode = panel["imageMode"]
        assert type_of(mode["imageTopic"]) == "sensor_msgs/Image"
        assert type_of(mode["calibrationTopic"]) == "sensor_msgs/CameraInfo"
    assert {panel["topicToRender"] for panel in panels("DiagnosticSummary")} == {"/diagnostics"}
    kinds = {name.split("!")[0] for name in PANELS}
    assert kinds == {"3D", "Image", "Plot", "DiagnosticSummary"}


@pytest.mark.ros
def test_the_plots_show_fields_of_the_messages():
    for panel in panels("Plot"):
        for path in panel["paths"]:
            topic, *fields = path["value"].split(".")
            kind = type_of(topic)
            for field in fields:
                package, name = kind.split("/")
                message = getattr(importlib.import_module(f"{package}.msg"), name)
                name, index = re.fullmatch(r"(\w+)(\[\d+\])?", field).groups()
                kind = message.get_fields_and_field_types()[name]
                assert bool(index) is bool(re.search(r"sequence|\[", kind)), path
            assert re.search("float|double", kind), path

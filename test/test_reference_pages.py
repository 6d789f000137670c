# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The pages of docs/reference say what the code does, and ROS's tools can read the changelog."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys

import pytest
import yaml
from page_commands import ROOT
from reference_pages import PAGES, full_page

from rfly_trajectory.fleet.fleet_file import shape_types

REFERENCE = ROOT / "docs" / "reference"


def page(name: str) -> str:
    """Return a page as the site has it."""
    return full_page(REFERENCE / f"{name}.md")


def section(name: str, heading: str) -> str:
    """Return the section of a page below a heading of the second level."""
    return page(name).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", PAGES)
def test_what_follows_from_the_code_is_not_in_git(name):
    """A page says in git how to get the rest, and the site has both."""
    text = (REFERENCE / f"{name}.md").read_text(encoding="utf-8")
    assert "`make docs`" in text
    assert "\n|" not in text
    assert "\n##" not in text
    assert page(name).startswith(text)
    assert len(page(name)) > 2 * len(text)


def test_the_measurements_are_next_to_figures_of_the_vehicles():
    """The law T = c_T ϖ² on Bitcraze's scale, worked out by hand: 2.2e-8 N s² within 3 %."""
    found = re.search(r"The best c_T is (\S+) N", page("measurements"))
    assert found is not None
    assert float(found[1]) == pytest.approx(2.2e-8, rel=0.03)
    # rolling resistance in the files of the sets
    for name in ("full", "scale"):
        file = ROOT / "rfly_amphibious" / "data" / "vehicles" / f"{name}.yaml"
        vehicle = yaml.safe_load(file.read_text(encoding="utf-8"))
        rolling = vehicle["tyre"]["rolling_resistance"]
        assert f"| `{name}` | {rolling:g} |" in section("measurements", "Rolling resistance")


def test_the_power_of_driving_is_next_to_the_measured_one():
    """The row is 0.02 · 70 kg · 9.80665 · 0.787 m/s / 0.8 = 13.5 W; 3.84 A · 24 V = 92.2 W.

    As motor currents 2 · 1.92 A · (0.04488 · 78.71 · 0.787/0.165 V + 0.46 · 1.92 V) = 68.1 W.
    A base load of 3.8 W and 5 W s/m give 4.675 W at 0.175 m/s.
    """
    driving = section("measurements", "Power of driving")
    assert "| 0.787 | 68 … 92 | 13.5 |" in driving
    assert "4.67 W in the third, -3 %" in driving.replace("\n  ", " ")


def test_each_fault_of_the_table_is_a_row_of_the_fault_matrix():
    with (REFERENCE / "fault-matrix.csv").open(encoding="utf-8") as table:
        cases = {(run["part"], run["kind"], run["mode"]) for run in csv.DictReader(table)}
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \|", page("fault-matrix"), re.MULTILINE)
    assert len(rows) > 90
    assert len(set(rows)) == len(rows)
    assert set(rows) == cases


def test_the_messages_are_the_files():
    """Each file of an interface is a section, and its text is the file's."""
    text = page("messages")
    files = [file for kind in ("msg", "srv", "action") for file in (ROOT / kind).iterdir()]
    assert len(files) > 30
    headings = {f"rfly_suite/{file.parent.name}/{file.stem}" for file in files}
    assert headings == set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert all(f"\n{file.read_text(encoding='utf-8').strip()}\n" in text for file in files)


def test_the_models_are_those_of_the_list():
    file = ROOT / "rfly_common" / "data" / "vehicle_models.yaml"
    listed = yaml.safe_load(file.read_text(encoding="utf-8"))["models"]
    rows = re.findall(r"^\| `(\w+)` \| .*? \| (\d+) \| (\d+) \|", page("models"), re.MULTILINE)
    assert [name for name, *_ in rows] == [model["name"] for model in listed]
    # DisplayOrder · 10000 + ClassID
    assert ("f450", str(1000 * 10000 + 3), "3") in rows


def test_the_fleet_schema_has_all_shapes_of_the_code():
    """Each class of a shape is a type of the schema, which has a definition of its keys."""
    file = ROOT / "rfly_trajectory" / "data" / "schemas" / "fleet.schema.json"
    definitions = json.loads(file.read_text(encoding="utf-8"))["definitions"]
    shape = definitions["shape"]
    names = list(shape_types())
    assert {"circle", "dubins", "lawn_mower"} < set(names) < set(definitions)
    assert shape["properties"]["type"]["enum"] == names
    assert shape["allOf"] == [
        {
            "if": {"required": ["type"], "properties": {"type": {"const": name}}},
            "then": {"$ref": f"#/definitions/{name}"},
        }
        for name in names
    ]


@pytest.mark.needs("catkin_pkg", "docutils")
def test_ros_tools_read_the_changelog():
    """catkin_pkg finds the released versions, and docutils has nothing to complain about."""
    import docutils.core
    from catkin_pkg.changelog import BulletList, get_changelog_from_path

    complaints = io.StringIO()
    settings = {"report_level": 1, "warning_stream": complaints}
    text = (ROOT / "CHANGELOG.rst").read_text(encoding="utf-8")
    docutils.core.publish_doctree(text, settings_overrides=settings)
    assert complaints.getvalue() == ""

    changelog = get_changelog_from_path(str(ROOT), "rfly_suite")
    ((version, _, content),) = changelog.foreach_version()
    assert version == "0.1.0"
    bullets = [list(part) for part in content if isinstance(part, BulletList)]
    released = text[text.index(f"\n{version} (") :]
    assert sum(map(len, bullets)) == released.count("\n* ")


def test_a_command_is_described_as_its_help_does():
    """The page shows an argument, a number, a choice, and a switch with two names."""
    fly = section("cli", "rfly mission fly")
    assert "| `FILE` | required | a .plan or .waypoints file |" in fly
    assert "| `--limit NUMBER` | 3600.0 | give up after this time of flight, s |" in fly
    assert "| `--uav-type multirotor\\|fixed-wing\\|ground\\|land-air` | multirotor |" in fly
    stamped = (
        "| `--stamped, --unstamped` | --stamped | publish cmd_vel as TwistStamped or as Twist |"
    )
    assert stamped in section("cli", "rfly drive")


@pytest.mark.exhaustive
@pytest.mark.ros
@pytest.mark.needs("pymavlink")
def test_the_topics_are_those_of_the_nodes(domain_id):
    """The list of topics is made by all nodes in a process of their own.

    rclpy's context and signals are theirs.
    """
    command = [sys.executable, str(ROOT / "docs" / "node_topics.py")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    assert (REFERENCE / "topics.csv").read_text(encoding="utf-8") == run.stdout


def test_a_node_has_its_topics():
    """The page shows QoS that differs, and names of the node's own namespace."""
    terrain = section("topics", "terrain_node")
    assert "| publishes | `outTerrainPoint` | sensor_msgs/PointCloud2 | latched, 1 |" in terrain
    assert "| service | `get_grid_map` | grid_map_msgs/GetGridMap |  |" in terrain
    simulation = section("topics", "amphibious_sim_node")
    assert "| service | `~/inject_fault` | rfly_suite/InjectFault |  |" in simulation


def test_the_pages_are_made_where_no_ros_is():
    """`make docs` has no ROS."""
    program = (
        "import sys; sys.modules.update(dict.fromkeys(['rclpy', 'rcl_interfaces', 'rfly_suite'])); "
        f"sys.path.insert(0, {str(ROOT / 'docs')!r}); import reference_pages as it; "
        "print(*(make() for make in it.PAGES.values()), sep='', end='')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert run.stdout == "".join(make() for make in PAGES.values())


def test_the_parameters_are_those_that_the_nodes_declare():
    """The page shows numbers with their range, lists, choices, and what changes at run time."""
    terrain = section("parameters", "terrain_node")
    assert "| `max_slope_deg` | double | 25.0 | 0.01 … 90 | " in terrain
    assert "degrees (*changeable*) |" in terrain
    assert "| `geo_origin` | double[] | [] |  | " in terrain
    assert "| `goal_mode` | string | drive | drive, fly, mixed | " in page("parameters")

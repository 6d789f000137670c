# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The pages of docs/reference say what the code does, and ROS's tools can read the changelog.

If not: python docs/reference_pages.py.
"""

from __future__ import annotations

import io
import json
import re
import runpy
import subprocess
import sys

import pytest
from page_commands import ROOT

REFERENCE = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def pages() -> dict[str, object]:
    return runpy.run_path(str(ROOT / "docs" / "reference_pages.py"))


@pytest.mark.parametrize(
    ("page", "function"),
    [("cli", "commands_page"), ("messages", "messages_page"), ("models", "models_page")],
)
def test_the_page_is_up_to_date(page, function, pages):
    assert (REFERENCE / f"{page}.md").read_text(encoding="utf-8") == pages[function]()


def test_the_page_of_measurements_is_up_to_date():
    """It follows from the vehicles' sets: a new value shows next to what others measured."""
    page = runpy.run_path(str(ROOT / "docs" / "measurements_page.py"))["measurements_page"]()
    assert (REFERENCE / "measurements.md").read_text(encoding="utf-8") == page
    # the law T = c_T ϖ² on Bitcraze's scale, worked out by hand: 2.2e-8 N s² within 3 %
    found = re.search(r"The best c_T is (\S+) N", page)
    assert found is not None
    assert float(found[1]) == pytest.approx(2.2e-8, rel=0.03)


def test_the_fleet_schema_has_all_shapes_of_the_code(pages):
    """Each class of a shape is a type of the schema, which has a definition of its keys."""
    text = pages["FLEET_SCHEMA"].read_text(encoding="utf-8")
    assert text == pages["fleet_schema"]()
    schema = json.loads(text)["definitions"]
    names = schema["shape"]["properties"]["type"]["enum"]
    assert {"circle", "dubins", "lawn_mower"} < set(names) < set(schema)


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
    assert sum(map(len, bullets)) == text.count("\n* ")


def test_a_command_is_described_as_its_help_does():
    """The page shows an argument, a number, a choice, and a switch with two names."""
    text = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    fly = text.partition("## rfly mission fly\n")[2].partition("\n## ")[0]
    assert "| `FILE` | required | a .plan or .waypoints file |" in fly
    assert "| `--limit NUMBER` | 3600.0 | give up after this time of flight, s |" in fly
    assert "| `--uav-type multirotor\\|fixed-wing\\|ground\\|land-air` | multirotor |" in fly
    stamped = (
        "| `--stamped, --unstamped` | --stamped | publish cmd_vel as TwistStamped or as Twist |"
    )
    assert stamped in text


@pytest.mark.ros
@pytest.mark.needs("pymavlink")
def test_the_topics_are_those_of_the_nodes(domain_id):
    """The list of topics is made by all nodes in a process of their own.

    rclpy's context and signals are theirs.
    """
    command = [sys.executable, str(ROOT / "docs" / "topics_page.py")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    assert (REFERENCE / "topics.md").read_text(encoding="utf-8") == run.stdout
    assert (
        "| publishes | `outTerrainPoint` | sensor_msgs/PointCloud2 | reliable, latched, 1 |"
        in run.stdout
    )


def test_the_parameters_are_those_that_the_nodes_declare():
    """The modules that declare them are read where no ROS is."""
    program = (
        "import runpy, sys; sys.modules['rclpy'] = sys.modules['rcl_interfaces'] = None; "
        f"runpy.run_path({str(ROOT / 'docs' / 'parameters_page.py')!r}, run_name='__main__')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert (REFERENCE / "parameters.md").read_text(encoding="utf-8") == run.stdout

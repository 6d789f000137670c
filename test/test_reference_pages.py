"""The pages of docs/reference say what the code does. If not: python docs/reference_pages.py."""

from __future__ import annotations

import json
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


def test_the_fleet_schema_has_all_shapes_of_the_code(pages):
    """Each class of a shape is a type of the schema, which has a definition of its keys."""
    text = pages["FLEET_SCHEMA"].read_text(encoding="utf-8")
    assert text == pages["fleet_schema"]()
    schema = json.loads(text)["definitions"]
    names = schema["shape"]["properties"]["type"]["enum"]
    assert {"circle", "dubins", "lawn_mower"} < set(names) < set(schema)


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

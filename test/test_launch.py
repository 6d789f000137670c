"""The launch files in a real `launch`: nodes come up, answer, and end with Ctrl-C."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.needs_launch, pytest.mark.ros]

LAUNCH = Path(__file__).parents[1] / "launch"

PROGRAM = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

arguments = [tuple(a.split(":=", 1)) for a in sys.argv[2:]]
source = PythonLaunchDescriptionSource(sys.argv[1])
included = IncludeLaunchDescription(source, launch_arguments=arguments)
service = LaunchService(noninteractive=True)
service.include_launch_description(LaunchDescription([included]))
sys.exit(service.run())
"""


@pytest.mark.parametrize("name", ["rfly.launch.py", "terrain.launch.py"])
def test_launch_file_starts_serves_and_ends(name, domain_id, rflysim_ports):
    """Altitudes are answered under the given namespace.

    SIGINT ends launch and nodes with exit code 0.
    """
    from node_harness import Peer
    from rfly_suite.srv import GetTerrainAltitude

    command = [
        sys.executable,
        "-c",
        PROGRAM,
        str(LAUNCH / name),
        "namespace:=site",
        "frame_id:=map_ned",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    peer = Peer(domain_id)
    try:
        answer = peer.call(GetTerrainAltitude, "/site/get_terrain_altitude", x=1.5, y=2.0)
        assert answer.success
        assert answer.normal.z < 0  # the node's frame is NED, as the launch argument says
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        output, _ = process.communicate(timeout=15)
        assert process.returncode == 0, output
        assert time.monotonic() - started < 10
        assert "Traceback" not in output
        assert "process has finished cleanly" in output
    finally:
        peer.close()
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.mark.needs("ros2launch")
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["rfly.launch.py", "mapp:=x"], "mapp: no such argument; did you mean map?"),
        (["rfly.launch.py", "map:=NoSuchMap"], "map 'NoSuchMap' not found"),
        (
            ["rfly.launch.py", "fleet:=no_such_fleet"],
            "fleet 'no_such_fleet': no such file",
        ),
        (["rfly.launch.py", "frame_id:=enu"], "['', 'map', 'map_ned']"),
        (
            ["amphibious.launch.py", "scenario:=no_such"],
            "scenario 'no_such': no such file",
        ),
    ],
)
def test_what_is_wrong_ends_the_launch_before_any_node(words, text, domain_id):
    """One error that names it, exit code 1, no process started."""
    command = ["ros2", "launch", str(LAUNCH / words[0]), *words[1:]]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    output = run.stdout + run.stderr
    assert run.returncode == 1, output
    assert text in output
    assert "process started" not in output
    assert "Traceback" not in output


@pytest.mark.needs("ros2launch")
def test_rviz_on_a_machine_without_it_starts_nothing(domain_id):
    """No node is started; once three nodes were left running without a parent."""
    from ament_index_python.packages import get_packages_with_prefixes

    if "rviz2" in get_packages_with_prefixes():
        pytest.skip("the program rviz2 is installed")
    command = ["ros2", "launch", str(LAUNCH / "rfly.launch.py"), "rviz:=true"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1
    assert "rviz2: package rviz2 is not installed" in run.stdout + run.stderr
    assert "process started" not in run.stdout + run.stderr

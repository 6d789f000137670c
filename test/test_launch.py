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
service = LaunchService(noninteractive=True)
service.include_launch_description(LaunchDescription([IncludeLaunchDescription(source, launch_arguments=arguments)]))
sys.exit(service.run())
"""


@pytest.mark.parametrize("name", ["rfly.launch.py", "terrain.launch.py"])
def test_launch_file_starts_serves_and_ends(name, domain_id, rflysim_ports):
    """Altitudes are answered under the given namespace; SIGINT ends launch and nodes with exit code 0."""
    from node_harness import Peer
    from rfly_suite.srv import GetTerrainAltitude

    command = [sys.executable, "-c", PROGRAM, str(LAUNCH / name), "namespace:=site", "frame_id:=map_ned"]
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

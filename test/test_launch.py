# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The launch files in a real `launch`: nodes come up, answer, and end with Ctrl-C."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from node_harness import PATIENCE, wait_until

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
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, output
        assert "Traceback" not in output
        assert "process has finished cleanly" in output
    finally:
        peer.close()
        if process.poll() is None:
            process.kill()
            process.wait()


@contextmanager
def ros2_launch(log: Path, *words: str) -> Iterator[subprocess.Popen]:
    """Run `ros2 launch`, its output in a file; kill it at the end, whatever the test did."""
    with log.open("w") as output:
        process = subprocess.Popen(
            ["ros2", "launch", *words], stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def processes_of_domain(domain: int) -> dict[int, str]:
    """Return the command lines of the suite's nodes in a ROS domain, by process id."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended, or is another user's
        if "/rfly_suite/" in command and f"ROS_DOMAIN_ID={domain}".encode() in environment:
            found[int(folder.name)] = command
    return found


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="the program setpriv is not installed")
@pytest.mark.needs("ros2launch")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_no_node_outlives_its_launch(number, domain_id, rflysim_ports, tmp_path):
    """launch itself leaves its processes running on SIGTERM, and says so."""
    log = tmp_path / "launch.log"
    with ros2_launch(log, str(LAUNCH / "rfly.launch.py")) as launch:
        wait_until(lambda: "[trajectory_node]: driving" in log.read_text(), "no node drives")
        nodes = processes_of_domain(domain_id)
        assert len(nodes) == 3, nodes
        launch.send_signal(number)
        launch.wait(PATIENCE)
        wait_until(lambda: not processes_of_domain(domain_id), f"{nodes} run on")
    text = log.read_text()
    assert "[terrain_node-1]: process started" in text  # its own name, not that of a prefix
    assert "Traceback" not in text


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="the program setpriv is not installed")
@pytest.mark.needs("ros2launch")
def test_a_prefix_of_the_user_counts_too(domain_id, tmp_path):
    """`--launch-prefix` (a debugger, say) of one node, which still ends with its launch."""
    log = tmp_path / "launch.log"
    words = ["--launch-prefix", "env RFLY_TEST_PREFIX=1", "--launch-prefix-filter", "terrain.*"]
    with ros2_launch(log, *words, str(LAUNCH / "rfly.launch.py")) as launch:
        wait_until(lambda: len(processes_of_domain(domain_id)) == 3, "not three nodes")
        wait_until(lambda: "[terrain_node]: map" in log.read_text(), "no map")
        prefixed = [
            command
            for pid, command in processes_of_domain(domain_id).items()
            if b"RFLY_TEST_PREFIX=1" in Path(f"/proc/{pid}/environ").read_bytes()
        ]
        assert len(prefixed) == 1
        assert "terrain_node" in prefixed[0]
        launch.kill()
        wait_until(lambda: not processes_of_domain(domain_id), "nodes run on")


@pytest.mark.needs("ros2launch")
@pytest.mark.parametrize("name", ["rfly.launch.py", "terrain.launch.py", "amphibious.launch.py"])
def test_a_recording_that_nothing_could_write_starts_nothing(name, domain_id, tmp_path):
    """One line and exit code 1 come before any node without the library mcap."""
    (tmp_path / "mcap.py").write_text("raise ModuleNotFoundError('no mcap', name='mcap')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = ["ros2", "launch", str(LAUNCH / name), "record:=true"]
    environment = {**os.environ, "PYTHONPATH": path}
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment
    )
    output = run.stdout + run.stderr
    assert run.returncode == 1, output
    assert "[ERROR] [launch]: record needs mcap; in the folder of rfly_suite: " in output
    assert "process started" not in output


@pytest.mark.needs("ros2launch")
@pytest.mark.parametrize(
    ("words", "first", "fleet"),
    [
        (["world:=village"], "", "fleet 'hills_convoy': 5 vehicles"),
        (
            ["map:=RollingHills"],
            "[WARNING] [launch]: fleet 'demo_convoy' leaves the map 'RollingHills': about 904 m",
            "fleet 'demo_convoy': 5 vehicles",
        ),
    ],
)
def test_a_fleet_fits_its_map_or_launch_says_so(
    words, first, fleet, domain_id, rflysim_ports, tmp_path
):
    """A world brings its fleet; a map with a fleet that leaves it is named before any node."""
    log = tmp_path / "launch.log"
    with ros2_launch(log, str(LAUNCH / "rfly.launch.py"), *words) as launch:
        wait_until(lambda: fleet in log.read_text(), f"no {fleet}")
        launch.send_signal(signal.SIGINT)
        assert launch.wait(PATIENCE) == 0
    before = log.read_text().partition("process started")[0]
    assert ("WARNING" in before) == bool(first)
    assert first in before


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
        (["rfly.launch.py", "frame_id:=enu"], "frame_id: 'enu', expected one of map, map_ned"),
        (
            ["amphibious.launch.py", "scenario:=no_such"],
            "scenario 'no_such': no such file",
        ),
    ],
)
def test_what_is_wrong_ends_the_launch_before_any_node(words, text, domain_id):
    """One error that names it, exit code 1, no process started."""
    command = ["ros2", "launch", str(LAUNCH / words[0]), *words[1:]]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    output = run.stdout + run.stderr
    assert run.returncode == 1, output
    errors = [line for line in output.splitlines() if line.startswith("[ERROR]")]
    assert len(errors) == 1, output
    assert errors[0].startswith(f"[ERROR] [launch]: {text}")
    assert "process started" not in output
    assert "Traceback" not in output


@pytest.mark.needs("ros2launch")
def test_rviz_on_a_machine_without_it_starts_nothing(domain_id):
    """No node is started; once three nodes were left running without a parent."""
    from ament_index_python.packages import get_packages_with_prefixes

    if "rviz2" in get_packages_with_prefixes():
        pytest.skip("the program rviz2 is installed")
    command = ["ros2", "launch", str(LAUNCH / "rfly.launch.py"), "rviz:=true"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 1
    assert "rviz2: package rviz2 is not installed" in run.stdout + run.stderr
    assert "process started" not in run.stdout + run.stderr

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly up` and the demo as a user runs them: processes, real DDS, real sockets."""

import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fork_server import process_name
from marks import exhaustively
from node_harness import PATIENCE, Rfly, run_rfly, wait_until

from rfly_bringup.nodes.argument_files import check_params_file, local_address_towards
from rfly_common.errors import ConfigError

pytestmark = [pytest.mark.ros, pytest.mark.usefixtures("rflysim_ports")]

DEMO = [sys.executable, "-m", "rfly_bringup.demo"]


class Running:
    """A program whose output is read while it runs."""

    def __init__(self, process):
        self.process = process
        self.output = ""

    def read_until(self, pattern, timeout_s=PATIENCE):
        """Return the match of a pattern in the output read by now."""
        deadline = time.monotonic() + timeout_s
        while not (found := re.search(pattern, self.output)):
            left = deadline - time.monotonic()
            readable = left > 0 and select.select([self.process.stdout], [], [], left)[0]
            assert readable, f"no {pattern!r} within {timeout_s} s:\n{self.output}"
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, f"ended before {pattern!r}:\n{self.output}"
            self.output += data.decode()
        return found

    def end(self):
        """Exit code; the rest of the output is read."""
        self.output += self.process.communicate(timeout=PATIENCE)[0].decode()
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(PATIENCE)


def rfly_up(*words, fresh=False):
    """Run `rfly up`; it and its nodes are forked, unless their processes are what is tested."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return Running(Rfly("up", *words, fresh=fresh, **streams))


def demo(cwd, **environment):
    process = subprocess.Popen(
        DEMO,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    return Running(process)


def pid_of(executable, domain_id):
    """The process of a node of this test's domain, once it has started."""
    return wait_until(lambda: running_pid(executable, domain_id), executable)


def running_pid(executable, domain_id):
    """Return the process of a node of this test's domain, forked or executed, or None."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                forked = (entry / "comm").read_text().rstrip("\n")
                words = (entry / "cmdline").read_bytes().split(b"\0")
                variables = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            executed = (
                any(word.endswith(f"/{executable}".encode()) for word in words[:3])
                and f"ROS_DOMAIN_ID={domain_id}".encode() in variables
            )
            if executed or forked == process_name(executable, domain_id):
                return int(entry.name)
    return None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=lambda s: s.name)
def test_up_starts_all_nodes_and_ends_cleanly(domain_id, number):
    """Lines bear the node's name; Ctrl-C or a closed terminal ends all, exit code 0, no trace."""
    with rfly_up("--frame-id", "map_ned", fresh=number == signal.SIGINT) as up:
        for pattern in (
            r"terrain_node +\| .*JacksboroFault",
            r"ue_bridge_node +\| .*127\.0\.0\.1:20010",
        ):
            up.read_until(pattern)
        up.process.send_signal(number)
        assert up.end() == 0, up.output
        assert "Traceback" not in up.output


def is_running(pid):
    """Return whether the process is neither gone nor a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="the program setpriv is not installed")
@pytest.mark.parametrize("moment", [exhaustively("at once"), "later"])
def test_nodes_end_with_rfly_up_even_where_it_is_killed(domain_id, moment):
    """kill -9: none of its nodes is left, whether they run already or have just been started."""
    with rfly_up(fresh=True) as up:
        if moment == "later":
            up.read_until(r"ue_bridge_node +\| .*sending to")
        nodes = []
        deadline = time.monotonic() + PATIENCE
        while not nodes:
            with open(f"/proc/{up.process.pid}/task/{up.process.pid}/children") as children:
                nodes = [int(pid) for pid in children.read().split()]
            assert time.monotonic() < deadline
        up.process.kill()
        up.process.wait(PATIENCE)
        wait_until(
            lambda: not any(is_running(pid) for pid in nodes),
            lambda: f"{[pid for pid in nodes if is_running(pid)]} of {nodes} run on",
        )


def test_up_goes_on_where_nobody_reads_its_lines(domain_id):
    """`rfly up | head -1`: a node must not wait for a reader that has gone."""
    with rfly_up("--log-level", "debug") as up:
        up.read_until(r"terrain_node +\| ")
        up.process.stdout.close()
        assert pid_of("ue_bridge_node", domain_id)
        up.process.send_signal(signal.SIGTERM)
        assert up.process.wait(PATIENCE) == 0


def test_all_nodes_in_one_process(domain_id):
    """They serve and drive as several do: altitudes are answered, a fleet moves, Ctrl-C ends them
    with exit code 0.
    """
    from node_harness import Peer
    from rfly_suite.msg import VehicleStateArray
    from rfly_suite.srv import GetTerrainAltitude

    from rfly_common.ros.qos import FLEET_IN

    with rfly_up("--single-process", "--collision", "--fleet", "demo_convoy") as up:
        up.read_until(r"rfly_nodes +\| .*ue_bridge_node.*sending to")
        peer = Peer(domain_id)
        try:
            states = peer.receive(VehicleStateArray, "vehicle_states", FLEET_IN)
            assert peer.call(GetTerrainAltitude, "get_terrain_altitude", x=1.5, y=2.0).success
            first = peer.spin_until(lambda: states)[0]
            peer.spin_until(lambda: any(list(s.position) != list(first.position) for s in states))
            wanted = {"terrain_node", "ue_bridge_node", "trajectory_node", "collision_node"}
            peer.spin_until(lambda: wanted <= set(peer.node.get_node_names()))
        finally:
            peer.close()
        up.process.send_signal(signal.SIGINT)
        assert up.end() == 0
        assert "Traceback" not in up.output


def test_a_second_up_on_the_same_domain_says_so(domain_id, tmp_path):
    """One plain line that names the nodes and the way out; it goes on all the same."""
    params = tmp_path / "params.yaml"
    params.write_text("ue_bridge_node: {ros__parameters: {feedback_port: 0, port: 47100}}")
    with rfly_up("--params-file", params) as first:
        first.read_until(r"ue_bridge_node +\| .*sending to")
        with rfly_up("--params-file", params) as second:
            # whichever of the first one's nodes it has heard of until it looks
            warning = (
                r"rfly up +\| warning: .*domain (\d+): /\w+_node.*Is another `rfly up` running\?"
            )
            assert second.read_until(warning)[1] == str(domain_id)
            second.read_until(r"ue_bridge_node +\| .*sending to")
            second.process.send_signal(signal.SIGINT)
            assert second.end() == 0
            assert second.output.count("warning: other nodes") == 1
        first.process.send_signal(signal.SIGINT)
        assert first.end() == 0


@pytest.mark.parametrize(
    "content",
    [b"a: [", b"- 1", b"\xff"],
    ids=["broken", "a list", "no text"],
)
def test_a_parameter_file_that_no_node_could_read_is_named(tmp_path, content):
    path = tmp_path / "params.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"params_file: .*params\.yaml:"):
        check_params_file(str(path), [])


@pytest.mark.parametrize(
    "content", ["", "# later\n", "a: {}"], ids=["empty", "a comment", "a node"]
)
def test_a_parameter_file_without_parameters_is_told(tmp_path, content):
    """As for ROS 2, it is none that keeps nodes from starting."""
    path = tmp_path / "params.yaml"
    path.write_text(content)
    (told,) = check_params_file(str(path), [])
    assert told.startswith(f"{path}: holds no parameters, expected NODE: ")


def test_up_survives_a_killed_node_and_says_so(domain_id):
    """The others go on; the exit code is 1 in the end."""
    with rfly_up() as up:
        up.read_until(r"terrain_node +\| .*JacksboroFault")
        up.read_until(r"ue_bridge_node +\| .*sending to")
        os.kill(pid_of("ue_bridge_node", domain_id), signal.SIGKILL)
        up.read_until(r"ue_bridge_node +\| ended by itself with signal SIGKILL")
        assert pid_of("terrain_node", domain_id)
        up.process.send_signal(signal.SIGINT)
        assert up.end() == 1


def test_up_respawns(domain_id):
    """--respawn starts a node that died again."""
    with rfly_up("--respawn") as up:
        up.read_until(r"ue_bridge_node +\| .*sending to")
        os.kill(pid_of("ue_bridge_node", domain_id), signal.SIGKILL)
        up.read_until(r"starting again")
        up.output = ""
        up.read_until(r"ue_bridge_node +\| .*sending to")
        up.process.send_signal(signal.SIGINT)
        up.end()


def test_an_argument_wins_over_the_params_file(domain_id, tmp_path):
    """params_file over the nodes' defaults, arguments over both."""
    params = tmp_path / "params.yaml"
    params.write_text(
        "/**:\n  ros__parameters:\n    frame_id: map_ned\n"
        "ue_bridge_node:\n  ros__parameters:\n    host: 127.0.0.2\n    port: 20333\n"
    )
    with rfly_up("--params-file", params, "--host", "127.0.0.3") as up:
        up.read_until(r"ue_bridge_node +\| .*127\.0\.0\.3:20333")
        up.process.send_signal(signal.SIGINT)
        up.end()


def test_up_with_a_host_elsewhere_listens_where_that_host_answers(domain_id, tmp_path):
    """The node listens on the address that faces the host.

    A machine without a route to the host gets a warning that it will not receive anything.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("", 0))
        port = sock.getsockname()[1]
    params = tmp_path / "params.yaml"
    params.write_text(f"ue_bridge_node:\n  ros__parameters:\n    feedback_port: {port}\n")
    address = local_address_towards("203.0.113.9")
    expected = (
        f"listening to RflySim3D on {address}:{port}" if address else "feedback_bind is 127.0.0.1"
    )
    with rfly_up("--params-file", params, "--host", "203.0.113.9") as up:
        up.read_until(r"ue_bridge_node +\| .*" + re.escape(expected))
        up.process.send_signal(signal.SIGINT)
        assert up.end() == 0
        assert not address or "feedback_bind is" not in up.output


@pytest.mark.parametrize("words", [["up"], ["up", "amphibious"]])
def test_a_mistake_is_one_line_and_exit_code_2(words):
    """No trace, no usage text, one line that says what is wrong (others: test_mistakes.py)."""
    run = run_rfly(*words, "--windows", "65")
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.startswith("rfly: windows: 65, expected a finite number of at least 1 and of")
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.exhaustive
def test_the_demo_measures_from_outside_and_ends_by_itself(domain_id, tmp_path):
    """DURATION: exit code 0, vehicles on the ground by the service's word, a picture of the
    received tracks.

    With RflySim3D's port in use the demo goes elsewhere and says so.
    """
    environment = {**os.environ, "DURATION": "4"}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as blocker:
        blocker.bind(("127.0.0.1", 20010))
        run = subprocess.run(
            DEMO,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=tmp_path,
            check=False,
            env=environment,
        )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "UDP port 20010 is in use" in run.stdout + run.stderr

    lines = re.findall(
        r"(\d+) datagrams received.*? (\d+) vehicles\s+within ([\d.]+) mm", run.stdout
    )
    datagrams, vehicles, millimetres = lines[-1]
    assert int(datagrams) > 100
    assert int(vehicles) >= 2
    assert float(millimetres) < 5.0
    assert (tmp_path / "build" / "demo" / "convoy.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.exhaustive
def test_the_demo_fails_when_the_bridge_is_killed(domain_id, tmp_path):
    """Exit code 1, and the reason."""
    with demo(tmp_path, DURATION="60") as running:
        running.read_until(r"datagrams received")
        os.kill(pid_of("ue_bridge_node", domain_id), signal.SIGKILL)
        assert running.end() == 1
        assert "demo failed: ue_bridge_node has ended" in running.output


@pytest.mark.exhaustive
def test_the_demo_fails_when_the_bridge_hangs(domain_id, tmp_path):
    """A stopped process is still there, but no datagram arrives."""
    with demo(tmp_path, DURATION="60") as running:
        running.read_until(r"datagrams received")
        os.kill(pid_of("ue_bridge_node", domain_id), signal.SIGSTOP)
        assert running.end() == 1
        assert "no datagram has arrived" in running.output


@pytest.mark.parametrize(
    "text",
    [
        "{" * 5000,
        "a: !!int ''\n",
        f"a: {'9' * 5000}\n",
        "a: !!timestamp 2001-01-01T99:00:00Z\nb: !!int x\n",
        "a: &a [*a]\n",
        "- " * 3000,
    ],
    ids=["braces", "no number", "5000 digits", "hour 99", "an alias of itself", "deep lists"],
)
def test_odd_params_files_are_one_line(tmp_path, text):
    """A file on which PyYAML ends in RecursionError, IndexError or ValueError gives one line.

    None of these errors names the file.
    """
    path = tmp_path / "params.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^params_file: .*params\.yaml:[12]: ") as caught:
        check_params_file(str(path), [])
    assert "\n" not in str(caught.value)

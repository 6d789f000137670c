# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Nodes and commands end cleanly at any signal; a killed one does not disturb the others."""

import random
import re
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from marks import exhaustively
from node_harness import PATIENCE

pytestmark = pytest.mark.ros

TRACE = re.compile("Traceback|Error|Exception|dumped|by force")

NODES = ("terrain_node", "ue_bridge_node", "trajectory_node", "mission_node", "collision_node")


def stop_once(name, domain_id, number, moment_s, port):
    """Send a node a signal after a time. Return (exit code, output)."""
    from node_harness import NodeProcess

    parameters = {"port": str(port), "feedback_port": "0"} if name == "ue_bridge_node" else {}
    started = time.monotonic()
    with NodeProcess(name, domain_id, parameters, fresh=True) as node:
        threading.Event().wait(max(0.0, moment_s - (time.monotonic() - started)))
        return node.stop(number), node.output


@pytest.mark.slow
@pytest.mark.needs("make env")
@pytest.mark.parametrize(
    "number",
    [exhaustively(signal.SIGINT), signal.SIGTERM],
    ids=lambda s: s.name,
)
def test_nodes_end_cleanly_at_any_moment(number, domain_id):
    """Signals at random moments from 0.1 s after the start: exit code 0, in order, no trace.

    `make attack` does many more.
    """
    chance = random.Random(int(number))
    tries = [(NODES[i % len(NODES)], chance.uniform(0.1, 1.5)) for i in range(2 * len(NODES))]

    def run(one):
        name, moment_s = one
        return name, moment_s, *stop_once(name, domain_id, number, moment_s, port=47000)

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(run, tries))
    wrong = [
        f"{name} after {moment_s:.3f} s: exit code {code}\n{output}"
        for name, moment_s, code, output in results
        if code != 0 or TRACE.search(output)
    ]
    assert not wrong, f"{len(wrong)} of {len(tries)}\n" + "\n".join(wrong[:5])


COMMANDS = {
    "up": (3.0, ["up"]),
    "amphibious": (3.0, ["up", "amphibious", "--scenario", "hop"]),
    "view": (3.0, ["view", "--port", "0", "--udp-port", "47020"]),
    "record": (1.5, ["record", "-", "--port", "47030"]),
    "listen": (1.5, ["listen", "--port", "47040"]),
    "terrain": (1.2, ["terrain", "info", "JacksboroFault"]),
    "sim": (2.0, ["sim", "run", "hop"]),
}
"""Seconds to start on a machine that is not idle, and the command line."""


def stop_command_once(name, number, moment_s):
    """Send an `rfly` command a signal after a time. Return (exit code, output)."""
    from node_harness import executable, shell_environment

    rfly = str(executable("rfly", "bin"))
    started = time.monotonic()
    process = subprocess.Popen(
        [rfly, *COMMANDS[name][1]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=shell_environment(),
        start_new_session=True,
    )
    try:
        threading.Event().wait(max(0.0, moment_s - (time.monotonic() - started)))
        process.send_signal(number)
        output, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, output.decode(errors="replace")
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.needs("make env")
@pytest.mark.usefixtures("rflysim_ports")
@pytest.mark.parametrize(
    "name",
    [name if name == "sim" else exhaustively(name) for name in COMMANDS],
)
def test_a_command_ends_cleanly_from_its_first_instruction_on(name, domain_id):
    """A command ends at Ctrl-C, a kill or a closed terminal at any moment after its start.

    It ends in order, without a trace, with the code that a shell expects.
    """
    chance = random.Random(name)
    stops = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    tries = [(stops[i % 3], COMMANDS[name][0] * (i + chance.random()) / 3) for i in range(3)]
    wrong = []
    for number, moment_s in tries:
        code, output = stop_command_once(name, number, moment_s)
        if code not in (0, -number, 128 + number) or TRACE.search(output):
            wrong.append(f"{number.name} after {moment_s:.3f} s: exit code {code}\n{output}")
    assert not wrong, f"{len(wrong)} of {len(tries)}\n" + "\n".join(wrong)


def masks(pid):
    """(blocked, caught) signals of a process, as proc(5) gives them."""
    text = Path(f"/proc/{pid}/status").read_text()
    return [
        int(re.search(rf"^{name}:\s*(\w+)$", text, re.MULTILINE)[1], 16)
        for name in ("SigBlk", "SigCgt")
    ]


@pytest.mark.needs("make env")
def test_signals_are_in_hand_while_python_executes_itself(domain_id):
    """Each signal is blocked or caught during the second start of a node's Python.

    A node's Python starts twice. In the end each signal is caught.
    """
    from node_harness import NodeProcess

    stops = sum(1 << (number - 1) for number in (signal.SIGINT, signal.SIGTERM))
    with NodeProcess(
        "ue_bridge_node", domain_id, {"port": "47000", "feedback_port": "0"}, fresh=True
    ) as node:
        second_start = f"_RFLY_SUITE_ENVIRONMENT={node.process.pid}".encode()
        environment = Path(f"/proc/{node.process.pid}/environ")
        deadline = time.monotonic() + PATIENCE
        while second_start not in environment.read_bytes().split(b"\0"):
            assert time.monotonic() < deadline, "it has not executed itself"
        seen = []
        while "sending to" not in node.output:
            assert time.monotonic() < deadline, node.output
            seen.append(masks(node.process.pid))
        assert len(seen) > 10
        assert all((blocked | caught) & stops == stops for blocked, caught in seen)
        blocked, caught = masks(node.process.pid)
        assert (blocked & stops, caught & stops) == (0, stops)
        assert node.stop(signal.SIGTERM) == 0


def test_a_command_that_is_started_by_a_link_hears_ctrl_c(tmp_path):
    """The link is as in ~/.local/bin, where people link programs of virtual environments."""
    from node_harness import executable, shell_environment

    link = tmp_path / "rfly"
    link.symlink_to(executable("rfly", "bin"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [link, "listen", "--port", str(port)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=shell_environment(), text=True
    ) as process:
        assert process.stdout.readline().startswith("listening")
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(PATIENCE) in (0, 130)
        finally:
            process.kill()


def test_a_node_ends_in_order_and_not_by_the_watchdog(domain_id):
    """The watchdog's exit code is 0 too, but it destroys no node and closes no socket."""
    from node_harness import NodeProcess, Peer
    from rfly_suite.srv import GetTerrainAltitude

    with NodeProcess("terrain_node", domain_id) as node:
        peer = Peer(domain_id)
        try:
            assert peer.call(
                GetTerrainAltitude, "get_terrain_altitude", x=0.0, y=0.0
            ).success  # so it spins
        finally:
            peer.close()
        assert node.stop(signal.SIGTERM) == 0
        assert "by force" not in node.output


@pytest.mark.slow
def test_a_node_that_is_killed_leaves_the_others_and_rejoins(domain_id):
    """The others go on after kill -9 of each node in turn; after its restart the datagrams flow
    again.
    """
    import socket

    from node_harness import NodeProcess

    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    parameters = {"ue_bridge_node": {"port": str(receiver.getsockname()[1]), "feedback_port": "0"}}

    def drain_and_wait():
        """Wait until a datagram arrives that is not here yet."""
        receiver.setblocking(False)
        try:
            while receiver.recv(65536):
                pass
        except BlockingIOError:
            pass
        receiver.settimeout(PATIENCE)
        receiver.recv(65536)

    running = {name: NodeProcess(name, domain_id, parameters.get(name)) for name in NODES}
    try:
        drain_and_wait()
        for name in NODES:
            running[name].process.kill()
            running[name].process.wait()
            others = [n for n in NODES if n != name]
            assert all(running[n].process.poll() is None for n in others), (
                f"{name} took another node with it"
            )
            running[name] = NodeProcess(name, domain_id, parameters.get(name))
            drain_and_wait()
        for name in NODES:
            assert running[name].process.poll() is None
            assert running[name].stop() == 0
    finally:
        for node in running.values():
            node.__exit__()
        receiver.close()

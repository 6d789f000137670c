# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Peers that misbehave: a node and the viewer withstand them.

Their effect on a careless server is found.
"""

from __future__ import annotations

import random
import socket
import sys
import threading

import pytest
from marks import exhaustively

from attacks import peers
from attacks.peers import BEHAVIOURS, flood, is_served, judged, streams
from attacks.running import Running

GOES_ON = "import time; time.sleep(60)"


def program(text):
    return Running([sys.executable, "-S", "-u", "-c", text])


def test_all_peers_come_and_each_behaves_in_one_of_the_ways():
    """A server that accepts all and answers none counts them; a seed brings the same again."""
    came = []
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:

        def serve():
            while True:
                try:
                    came.append(server.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        streams(
            random.Random(1),
            2 * len(BEHAVIOURS),
            server.getsockname()[1],
            (b"hello", b"good-bye"),
        )
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in came:
        connection.close()
    assert len(came) == 2 * len(BEHAVIOURS)


def test_a_flood_counts_what_it_sent():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        assert flood(receiver.getsockname()[1], [b"a", b"bc", b""]) == 3
        assert [receiver.recv(10) for _ in range(3)] == [b"a", b"bc", b""]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise SystemExit(3)", "it ended with exit code 3"),
        (
            "import traceback, time\ntry: 1 / 0\nexcept ZeroDivisionError: traceback.print_exc()\n"
            + GOES_ON,
            "a trace",
        ),
        ("kept = bytearray(500_000_000)\n" + GOES_ON, "it swelled to 5"),
    ],
)
def test_a_servers_faults_are_reported(text, told):
    with program("print('ready')\n" + text) as running:
        running.wait_for("ready")

        def found():
            failures = judged("link", 1, running, None).failures
            return [failure for failure in failures if failure.startswith(told)]

        assert peers.wait_until(found, told, 10.0)


def test_a_thread_that_ends_is_found():
    text = (
        "import sys, threading\nthreading.Thread(target=sys.stdin.readline).start()\n"
        "print('ready')\n"
    )
    with Running([sys.executable, "-S", "-u", "-c", text + GOES_ON], stdin=-1) as running:
        running.wait_for("ready")
        running.first_threads = running.threads()
        assert judged("link", 1, running, None).failures == ()
        running.process.stdin.write("go\n")
        running.process.stdin.flush()
        assert peers.wait_until(lambda: judged("link", 1, running, None).failures, "end", 10.0)
        assert judged("link", 1, running, None).failures[0].startswith("1 of its threads ended")


def test_letting_others_wait_is_told_apart_from_failures():
    with program(GOES_ON) as running:
        assert not judged("link", 7, running, 0.5).is_slow
        late = judged("link", 7, running, 3.2)
    assert late.is_slow
    assert late.failures == ()


def test_a_peer_without_an_answer_is_not_served(monkeypatch):
    monkeypatch.setattr(peers, "PATIENCE_S", 0.1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind(("127.0.0.1", 0))
        assert not is_served(socket.SOCK_DGRAM, deaf.getsockname()[1], b"hello")


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        exhaustively("link tcp"),
        "answers of RflySim3D",
        "states of CopterSim",
        "data of sensors",
        exhaustively("foreign pages"),
        exhaustively("browsers"),
        pytest.param(
            "ground stations",
            marks=[pytest.mark.exhaustive, pytest.mark.needs("pymavlink")],
        ),
    ],
)
def test_a_node_and_the_viewer_stand_it(name):
    result = peers.ATTACKS[name](random.Random(2), peers.SHORT_TRIES)
    assert result.tried >= peers.SHORT_TRIES
    assert result.failures == ()
    assert result.largest_memory_mb > 50.0
    assert (result.longest_stall_s is None) == (name == "foreign pages")

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The running bridge while its feedback port is flooded."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bridge_harness import Bridge, pose
from node_harness import diagnostic, wait_until

ROOT = Path(__file__).parents[3]
RATE = 50_000
SECONDS = 3
MOST_GROWTH_BYTES = 5_000_000

pytestmark = [pytest.mark.ros, pytest.mark.slow]


def resident_bytes(pid):
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_flood_costs_no_memory_and_no_pose(domain_id):
    """A flood of 50,000 datagrams/s, half of them no answers, does no harm.

     Every pose published meanwhile reaches the window with its own numbers, every datagram of the
    flood is accounted for, and the bridge grows by less than 5 MB.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        feedback_port = free.getsockname()[1]
    bridge = Bridge(
        domain_id,
        vehicles="[car]",
        feedback_port=feedback_port,
        **{"car.id": 7, "car.topic": "car/pose"},
    )
    try:
        bridge.shown("car/pose", pose())
        publisher = bridge.publisher(type(pose()), "car/pose")

        def show(number):
            """Publish a pose of its own and wait until the window has it."""
            publisher.publish(pose((2.0, float(number), 3.0)))
            wanted = struct.pack("<d", number)  # north is y in `map`
            wait_until(
                lambda: any(datagram[80:88] == wanted for datagram in bridge.window.poll()),
                f"pose {number} did not arrive",
            )
            bridge.window.clear()

        def feedback():
            return (diagnostic(bridge.statuses, "feedback") or (0, "", {}))[2]

        bridge.peer.spin_until(lambda: "received" in feedback())
        for number in range(1, 201):  # so that what a first message allocates is there
            show(number)
        before = resident_bytes(bridge.node.process.pid)
        flooder = [
            sys.executable,
            ROOT / "benchmarks" / "flooder.py",
            str(feedback_port),
            str(RATE),
            str(SECONDS),
        ]
        with subprocess.Popen(flooder, stdout=subprocess.PIPE, text=True) as flood:
            try:
                highest = before
                while flood.poll() is None:
                    number += 1
                    show(number)
                    highest = max(highest, resident_bytes(bridge.node.process.pid))
                    time.sleep(0.01)
                told = json.loads(flood.stdout.read())
            finally:
                flood.kill()
        assert number > 200
        assert told["sent"] == RATE * SECONDS
        assert highest - before < MOST_GROWTH_BYTES

        def counted(name):
            return int(feedback().get(name, 0))

        bridge.peer.spin_until(
            lambda: counted("received") + counted("system_dropped") == told["sent"]
        )
        assert counted("received") > 0
        for reason in ("unknown_length", "wrong_checksum"):
            assert 0 < counted(reason) <= told[reason]
        assert counted("unknown_length") + counted("wrong_checksum") + counted(
            "overflow"
        ) <= counted("received")
        assert counted("socket_errors") == counted("not_allowed") == counted("text") == 0
        show(0)
    finally:
        bridge.close()

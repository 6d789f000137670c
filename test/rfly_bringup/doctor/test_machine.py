# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The machine as the doctor sees it.

Sockets and locks are real; /dev/shm and the routes are files that the tests write.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct

import pytest

from rfly_bringup.doctor import machine
from rfly_common.errors import ConfigError
from rfly_ue_bridge.sockets.udp_sender import resolve


@pytest.fixture
def bound():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_who_holds_a_port(bound):
    inodes = machine.udp_ports()[bound]
    assert machine.holders({bound: inodes})[bound].endswith(f"(process {os.getpid()})")


def test_an_open_port_is_silent_and_a_closed_one_refuses(bound):
    assert machine.ask("127.0.0.1", bound) == "silent"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert machine.ask("127.0.0.1", port) == "refused"


def test_a_name_that_nobody_has():
    with pytest.raises(ConfigError):
        resolve("no-such-host.invalid")
    assert machine.ask("no-such-host.invalid", 20010) == "unknown"


def test_domains_by_their_ports():
    """Domain 3 begins at 7400 + 3 · 250 = 8150: participants at 8160, 8162 …, each with the port
    above. Two windows of RflySim3D, 20010 and 20011, are no domain; nor is a port without its
    neighbour.
    """
    assert machine.dds_domains([8160, 8161, 20010, 20011, 7410, 7413]) == {3}
    assert machine.dds_domains([7410, 7411, 8162, 8163, 8170, 8171]) == {0, 3}


def test_the_router_of_a_host(tmp_path, monkeypatch):
    """A table as Linux writes it: the default by 192.168.1.1, and the network 192.168.1.0/24."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "route").write_text(
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
        "eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "eth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    )
    monkeypatch.setattr(machine, "PROC", tmp_path)
    assert machine.router_to("10.0.0.5") == "192.168.1.1"
    assert machine.router_to("192.168.1.20") == ""
    assert machine.router_to("127.0.0.1") == ""


def test_files_of_killed_nodes(tmp_path, monkeypatch):
    """Two segments, one whose lock is held, one whose process has ended; two ports, one stuck."""
    monkeypatch.setattr(machine, "SHM", tmp_path)
    for name in ("fastrtps_living", "fastrtps_left"):
        (tmp_path / name).write_bytes(bytes(1_000_000))
        (tmp_path / f"{name}_el").touch()

    first = 7400 + 250 * 9
    free = first + 11
    stuck = first + 13
    of_domain_10 = first + 250
    for port, value in ((free, 1), (stuck, 0), (of_domain_10, 0)):
        (tmp_path / f"sem.fastrtps_port{port}_mutex").write_bytes(
            struct.pack("=IIII", value, 0, 0, 0)
        )

    with (tmp_path / "fastrtps_living_el").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = machine.look_at_shared_memory(9)

    assert (found.leftovers, found.leftover_mb) == (1, 1.0)
    assert found.stuck_ports == (f"fastrtps_port{stuck}",)
    assert found.foreign == ()
    assert found.free_mb > 1

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The thread that reads sockets: whose datagrams it hands on, what it counts, and its budget."""

from __future__ import annotations

import queue
import socket

import pytest
from node_harness import PATIENCE

import rfly_common.sockets.socket_thread as module
from rfly_common.errors import ConfigError
from rfly_common.sockets.socket_thread import ReadBudget, SocketThread
from rfly_common.sockets.udp_sockets import bound_socket


@pytest.mark.parametrize(
    ("reads", "idle_s", "left", "pause_s"),
    [
        (100, 0.0, 0.0, 0.0),  # the burst
        (101, 0.0, -1.0, 0.004),  # 1 ms would be due, 4 ms are the least
        (120, 0.0, -20.0, 0.02),  # 20 of 1000 a second
        (120, 0.015, -5.0, 0.005),  # 15 earned meanwhile
        (900, 0.0, -800.0, 0.1),  # 0.8 s would be due, 0.1 s are the most
        (10, 60.0, 100.0, 0.0),  # no more than the burst is saved
    ],
)
def test_reading_beyond_the_burst_is_paid_by_a_pause(monkeypatch, reads, idle_s, left, pause_s):
    now_s = 7.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now_s)
    budget = ReadBudget(rate=1000.0, burst=100.0)
    for _ in range(reads):
        budget.spend(5)
    now_s += idle_s
    assert budget.pause_s() == pytest.approx(pause_s)
    assert budget.left == pytest.approx(left)


def test_bytes_cost_too(monkeypatch):
    monkeypatch.setattr(module.time, "monotonic", lambda: 0.0)
    budget = ReadBudget(rate=1000.0, burst=1000.0, per_read=64.0, per_byte=1.0)
    budget.spend(36)
    budget.spend(100)
    assert budget.left == 1000.0 - (64 + 36) - (64 + 100)


@pytest.mark.parametrize(
    ("allow", "taken", "not_allowed"),
    [
        ((), [b"abcd", b"xyz"], 0),
        (["127.0.0.2"], [b"xyz"], 1),
        (["127.0.0.0/8"], [b"abcd", b"xyz"], 0),
    ],
)
def test_long_datagrams_are_cut_and_strangers_counted(allow, taken, not_allowed):
    own = bound_socket("127.0.0.1", 0)
    came = queue.Queue()
    with SocketThread("test", allow=allow, largest=4) as thread:
        thread.receive(own, lambda datagram, sender: came.put((datagram, sender[0])))
        thread.start()
        for host, datagram in (("127.0.0.1", b"abcdef"), ("127.0.0.2", b"xyz")):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.bind((host, 0))
                sender.sendto(datagram, own.getsockname())
        assert [came.get(timeout=PATIENCE)[0] for _ in taken] == taken
    assert (thread.received, thread.not_allowed) == (2, not_allowed)
    assert own.fileno() == -1  # closed with its thread


def test_a_socket_added_later_is_read_too():
    came = queue.Queue()
    with SocketThread("test") as thread:
        thread.start()
        own = bound_socket("127.0.0.1", 0)
        thread.receive(own, lambda datagram, _sender: came.put(datagram))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"late", own.getsockname())
        assert came.get(timeout=PATIENCE) == b"late"


def test_an_entry_that_is_no_address_is_named():
    with pytest.raises(ConfigError, match="allow: 'somewhere'"):
        SocketThread("test", allow=["somewhere"])

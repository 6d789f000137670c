# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The receiver of sensor data: what a handler raises costs one datagram."""

from __future__ import annotations

import queue
import socket

from node_harness import PATIENCE
from sensor_window import free_ports

from rfly_common.threads.loop_thread import LoopThread
from rfly_ue_bridge.sockets.sensor_receiver import SensorReceiver


def test_a_handler_that_raises_loses_one_datagram(monkeypatch):
    reported = []
    monkeypatch.setattr(LoopThread, "report", reported.append)
    (port,) = free_ports(1)
    taken = queue.Queue()

    def take(datagram, _arrival_s):
        if datagram == b"bad":
            raise OverflowError(datagram)
        taken.put(datagram)

    with (
        SensorReceiver({port: take}),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        for datagram in (b"a", b"bad", b"bad", b"b"):
            sender.sendto(datagram, ("127.0.0.1", port))
        assert [taken.get(timeout=PATIENCE) for _ in range(2)] == [b"a", b"b"]
    assert [error.args for error in reported] == [(b"bad",)] * 2


def test_the_tick_comes_without_data():
    (port,) = free_ports(1)
    ticks = queue.Queue()
    with SensorReceiver({port: lambda *_: None}, tick=ticks.put):
        assert ticks.get(timeout=PATIENCE) < ticks.get(timeout=PATIENCE)

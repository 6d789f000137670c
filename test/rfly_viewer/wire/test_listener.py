# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The viewer's socket: order, limits, commands to a network, addresses that cannot be bound."""

from __future__ import annotations

import socket
import time

import pytest
from node_harness import PATIENCE

from rfly_common.errors import ConfigError
from rfly_ue_bridge import RequestLayout, VisionSensor, encode_request
from rfly_viewer.wire import listener as module
from rfly_viewer.wire.listener import Listener, SensorRequest


def send(port, *datagrams, host="127.0.0.1"):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        for datagram in datagrams:
            opened.sendto(datagram, (host, port))


def take(listener, count):
    """Take until `count` datagrams, or datagrams and overflows, have come."""
    taken = []
    deadline = time.monotonic() + PATIENCE
    while len(taken) + listener.overflow < count and time.monotonic() < deadline:
        listener.arrived.wait(0.1)
        taken += listener.take()
    return taken


def test_datagrams_come_in_their_order():
    with Listener(port=0) as listener:
        send(listener.port, b"one", b"two", b"three")
        assert take(listener, 3) == [b"one", b"two", b"three"]
        assert listener.take() == []


def test_requests_for_sensors_bear_their_senders_address():
    request = encode_request(VisionSensor(3, 1), RequestLayout.OLD)
    with Listener(port=0) as listener:
        send(listener.port, b"one", request, request[:-1])
        plain, asked, cut = take(listener, 3)
    assert isinstance(asked, SensorRequest)
    assert (asked, asked.source) == (request, "127.0.0.1")
    assert not isinstance(plain, SensorRequest)
    assert not isinstance(cut, SensorRequest)


def test_what_finds_no_room_is_counted(monkeypatch):
    monkeypatch.setattr(module, "MAX_QUEUED_BYTES", 100)
    with Listener(port=0) as listener:
        send(listener.port, *[bytes(60)] * 5)
        deadline = time.monotonic() + PATIENCE
        while listener.overflow < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert (len(listener.take()), listener.overflow) == (1, 4)


def test_commands_to_the_whole_network_are_heard_where_asked(rflysim_ports):
    """224.0.0.10:20009, joined on the loopback interface."""
    with Listener(port=0, lan_interface="127.0.0.1") as listener:
        send(20009, b"to all", host="224.0.0.10")
        assert b"to all" in take(listener, 1)


def test_addresses_that_cannot_be_had_are_named():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ConfigError, match="--udp-port"):
            Listener(port=taken.getsockname()[1])
    with pytest.raises(ConfigError, match="--lan-interface nonsense"):
        Listener(port=0, lan_interface="nonsense")

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Datagrams through real sockets on loopback."""

from __future__ import annotations

import errno
import socket

import numpy as np
import pytest
from node_harness import PATIENCE

from rfly_common.errors import ConfigError
from rfly_ue_bridge.codec.state_datagrams import DatagramRun
from rfly_ue_bridge.sockets import udp_sender
from rfly_ue_bridge.sockets.udp_sender import UdpSender


def free_ports(count):
    """Return the first of `count` consecutive free UDP ports, and sockets that hold them."""
    while True:
        first = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        first.bind(("127.0.0.1", 0))
        port = first.getsockname()[1]
        held = [first]

        try:
            for offset in range(1, count):
                held.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                held[-1].bind(("127.0.0.1", port + offset))
        except OSError:
            for one in held:
                one.close()
            continue
        for one in held:
            one.settimeout(PATIENCE)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)

        return port, held


@pytest.fixture
def three_windows():
    port, held = free_ports(3)
    yield port, held
    for one in held:
        one.close()


@pytest.fixture
def sender_to():
    made = []

    def make(*arguments, **options):
        made.append(UdpSender(*arguments, **options))
        return made[-1]

    yield make
    for sender in made:
        sender.close()


def run_of(count, size):
    """Datagrams that differ from each other."""
    numbers = np.arange(count * size, dtype=np.uint32).astype(np.uint8)
    return DatagramRun(numbers.data, size)


def test_every_window_gets_every_datagram(three_windows, sender_to):
    port, held = three_windows
    sender = sender_to("127.0.0.1", port, 3)
    sender.send(b"one")
    sender.send_runs([run_of(2, 5)])
    for one in held:
        assert [one.recv(100) for _ in range(3)] == [
            b"one",
            bytes([0, 1, 2, 3, 4]),
            bytes([5, 6, 7, 8, 9]),
        ]
    assert sender.sent == 9


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize(
    ("count", "size"),
    [
        (1, 112),
        (2, 112),
        (64, 112),
        (65, 112),
        (300, 40),
        (40, 3804),
    ],
)
def test_runs_arrive_whole_and_in_order(three_windows, sender_to, cut, count, size):
    """The datagrams are the same if the system cuts a run or each is sent by a call of its own."""
    port, held = three_windows
    sender = sender_to("127.0.0.1", port)
    sender.windows[0].cuts_runs = sender.windows[0].cuts_runs and cut
    run = run_of(count, size)
    sender.send_runs([run])
    assert [held[0].recv(65536) for _ in range(count)] == [bytes(datagram) for datagram in run]
    assert sender.sent == count


def test_system_that_cannot_cut_gets_single_datagrams(three_windows, sender_to, monkeypatch):
    """An option number that the kernel does not know: EINVAL, then one call each, now and later."""
    monkeypatch.setattr(udp_sender, "_UDP_SEGMENT", 9999)
    port, held = three_windows
    sender = sender_to("127.0.0.1", port)
    sender.send_runs([run_of(3, 8)])
    assert [len(held[0].recv(100)) for _ in range(3)] == [8, 8, 8]
    assert not sender.windows[0].cuts_runs
    assert sender.windows[0].socket is not None


def test_one_window_by_its_index(three_windows, sender_to):
    port, held = three_windows
    sender = sender_to("127.0.0.1", port, 2)

    assert sender.send_to(1, b"b") == ""
    assert sender.send_to(2, b"c") == ""  # beyond the configured windows: whatever the id
    assert sender.send_to(-1, b"all") == ""
    assert [
        held[1].recv(9),
        held[1].recv(9),
        held[2].recv(9),
        held[0].recv(9),
    ] == [
        b"b",
        b"all",
        b"c",
        b"all",
    ]
    assert "expected -1" in sender.send_to(-2, b"x")
    assert "expected -1" in sender.send_to(65536 - port, b"x")


def test_a_port_without_a_listener_is_counted_and_stops_nothing(three_windows, sender_to):
    """The window comes back: what is sent then arrives, the first datagram included."""
    port, held = three_windows
    held[1].close()
    sender = sender_to("127.0.0.1", port, 2)
    for number in range(10):
        sender.send(bytes([number]))
    assert [held[0].recv(9) for _ in range(10)] == [bytes([n]) for n in range(10)]
    assert sender.windows[1].errors["ECONNREFUSED"] >= 5
    assert "nothing listens" in sender.windows[1].last_error
    assert sender.windows[0].errors == {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as back:
        back.settimeout(PATIENCE)
        back.bind(("127.0.0.1", port + 1))
        sender.send(b"again")
        assert back.recv(9) == b"again"


def test_runs_to_nobody_are_counted_and_stop_nothing(three_windows, sender_to):
    port, held = three_windows
    held[0].close()
    sender = sender_to("127.0.0.1", port, 2)
    for _ in range(3):
        sender.send_runs([run_of(70, 10)])
    assert [len(held[1].recv(99)) for _ in range(210)] == [10] * 210
    assert sender.windows[0].errors["ECONNREFUSED"] >= 1


def test_unheard_ports_of_this_machine(three_windows, sender_to):
    port, held = three_windows
    held[1].close()
    sender = sender_to("127.0.0.1", port, 3)
    sender.send_to(-1, b"x")
    assert sender.closed_ports() == [port + 1]


def test_no_broadcast_unless_asked_for(sender_to):
    """255.255.255.255 without the option is refused by the system, counted, and explained."""
    sender = sender_to("255.255.255.255", 20010)
    sender.send(b"x")
    window = sender.windows[0]
    assert window.errors["EACCES"] == 1
    assert "parameter broadcast" in window.last_error
    assert sender.sent == 0


def test_broadcast_option_is_set_only_when_asked_for(three_windows, sender_to):
    for asked in (False, True):
        opened = sender_to("127.0.0.1", three_windows[0], broadcast=asked).windows[0].socket
        assert bool(opened.getsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST)) is asked


def test_multicast_stays_on_the_named_interface(sender_to):
    """The way to the group is loopback here; a receiver that joined there gets the datagram."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(PATIENCE)
        receiver.bind(("", 0))
        group = socket.inet_aton("224.0.0.99") + socket.inet_aton("127.0.0.1")
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        sender = sender_to(
            "224.0.0.99",
            receiver.getsockname()[1],
            multicast_ttl=3,
            multicast_interface="127.0.0.1",
        )
        sender.send(b"to the group")
        assert receiver.recv(99) == b"to the group"
        assert sender.windows[0].socket.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL) == 3


def test_socket_that_broke_is_renewed(three_windows, sender_to):
    """A socket that the system refuses is replaced at most once a second."""
    port, held = three_windows
    sender = sender_to("127.0.0.1", port)
    window = sender.windows[0]
    window.socket.close()
    window.socket = None
    window.reopen_at_ns = 2**62
    sender.send(b"too early")
    assert (sender.sent, window.errors) == (0, {"not sent": 1})
    window.reopen_at_ns = 0
    sender.send(b"now")
    assert held[0].recv(99) == b"now"


def test_error_of_the_socket_closes_it_and_names_it(three_windows, sender_to):
    """A descriptor closed behind our back gives EBADF at each send: counted, renewed."""
    port, held = three_windows
    sender = sender_to("127.0.0.1", port)
    window = sender.windows[0]
    window.socket.close()
    window.reopen_at_ns = 0
    sender.send(b"x")
    assert held[0].recv(9) == b"x"
    assert window.errors == {errno.errorcode[errno.EBADF]: 1}


@pytest.mark.parametrize(
    ("arguments", "options", "named"),
    [
        pytest.param(("no.such.host.invalid",), {}, "no.such.host.invalid", id="host"),
        pytest.param(("127.0.0.1", 65535, 2), {}, "65536", id="ports-beyond-the-last"),
        pytest.param(("127.0.0.1", 20010, 0), {}, "0 windows", id="no-window"),
        pytest.param(
            ("224.0.0.9",), {"multicast_interface": "eth0"}, "eth0", id="interface-by-name"
        ),
    ],
)
def test_settings_that_cannot_work_are_named(arguments, options, named):
    with pytest.raises(ConfigError, match=named):
        UdpSender(*arguments, **options)

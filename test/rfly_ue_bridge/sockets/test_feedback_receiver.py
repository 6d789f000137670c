# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The receiver with real sockets on loopback."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time

import pytest
from feedback_datagrams import CAMERA, CRASH, DATAGRAMS, OBJECT
from node_harness import wait_until

from rfly_common.errors import ConfigError, FeedbackError
from rfly_ue_bridge.sockets.feedback_receiver import COUNTERS, FeedbackReceiver

ALL = [bytes.fromhex(spelled) for spelled, _, _ in DATAGRAMS.values()]


def crash(copter_id):
    return bytes.fromhex(CRASH)[:4] + copter_id.to_bytes(4, "little") + bytes(4)


@contextlib.contextmanager
def sender(port, source="127.0.0.1"):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((source, 0))
        sock.connect(("127.0.0.1", port))
        yield sock.send


def packets(receiver, count):
    got = []
    wait_until(lambda: got.extend(receiver.take()) or len(got) >= count)
    return got


def test_every_packet_arrives_in_its_order():
    with FeedbackReceiver(port=0) as receiver, sender(receiver.port) as send:
        for datagram in ALL:
            send(datagram)
        got = packets(receiver, len(ALL))
        assert [packet.name for packet in got] == list(DATAGRAMS)
        assert [dict(packet.values) for packet in got] == [
            values for _, _, values in DATAGRAMS.values()
        ]
        assert receiver.counters == dict.fromkeys(COUNTERS, 0) | {"received": len(ALL)}


def test_what_is_no_packet_is_counted_by_reason_and_what_follows_is_read():
    bad_name = bytes.fromhex(OBJECT)[:-32] + b"\xff" * 31 + b"\0"
    strange = [
        b"",
        b"x",
        bytes(57),
        bytes(161),
        bytes(9000),
        bytes(72),
        bytes(160),
        bad_name,
    ]

    with FeedbackReceiver(port=0) as receiver, sender(receiver.port) as send:
        for datagram in strange:
            send(datagram)
        send(crash(3))

        got = packets(receiver, 1)
        assert [packet["copterID"] for packet in got] == [3]

        counters = receiver.counters
        assert counters["received"] == 9
        assert {k: counters[k] for k in ("unknown_length", "wrong_checksum", "text")} == {
            "unknown_length": 5,
            "wrong_checksum": 2,
            "text": 1,
        }


def test_of_a_full_queue_the_oldest_go_and_are_counted():
    with FeedbackReceiver(port=0, queue_size=3) as receiver, sender(receiver.port) as send:
        for copter_id in range(10):
            send(crash(copter_id))
        wait_until(lambda: receiver.counters["received"] == 10)
        wait_until(lambda: receiver.counters["overflow"] == 7)
        assert len(receiver) == 3
        assert [packet["copterID"] for packet in receiver.take(2)] == [7, 8]
        assert [packet["copterID"] for packet in receiver.take()] == [9]
        assert receiver.take() == []


def test_wake_is_called_after_something_was_queued_and_for_nothing_else():
    woken = []
    with FeedbackReceiver(
        port=0, wake=lambda: woken.append(threading.current_thread())
    ) as receiver:
        with sender(receiver.port) as send:
            send(b"rubbish")
            wait_until(lambda: receiver.counters["unknown_length"] == 1)
            assert woken == []
            send(crash(1))
            wait_until(lambda: woken)
        assert len(receiver) == 1
        assert woken[0] is not threading.current_thread()


@pytest.mark.parametrize(
    ("allow", "taken"),
    [
        ((), [1, 2]),
        (("127.0.0.1",), [1]),
        (("127.0.0.2", "10.0.0.0/8"), [2]),
        (("127.0.0.0/8",), [1, 2]),
        (("192.168.1.5",), []),
    ],
)
def test_only_senders_on_the_list_are_heard(allow, taken):
    with FeedbackReceiver(port=0, allow=allow) as receiver:
        with sender(receiver.port, "127.0.0.1") as one, sender(receiver.port, "127.0.0.2") as two:
            one(crash(1))
            two(crash(2))
            two(bytes(5))
        wait_until(lambda: receiver.counters["received"] == 3)
        wait_until(lambda: len(receiver) == len(taken))
        assert [packet["copterID"] for packet in receiver.take()] == taken
        refused = 2 * (2 not in taken) + (1 not in taken)
        assert receiver.counters["not_allowed"] == refused
        assert receiver.counters["unknown_length"] == (2 in taken)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"bind": "localhost"}, "bind: 'localhost'"),
        ({"multicast_interface": "eth0"}, "multicast_interface: 'eth0'"),
        ({"allow": ["10.0.0.0/40"]}, "allow: '10.0.0.0/40'"),
        ({"port": 65536}, "port: 65536"),
        ({"queue_size": 0}, "queue_size: 0"),
    ],
)
def test_settings_that_cannot_be_used_are_named(wrong, named):
    with pytest.raises(ConfigError, match=named):
        FeedbackReceiver(**wrong)


def multicast(datagram, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        sock.sendto(datagram, ("224.0.0.10", port))


def test_multicast_reaches_every_receiver_that_asked_and_no_other():
    with contextlib.ExitStack() as stack:
        joined = stack.enter_context(FeedbackReceiver(port=0, multicast_interface="127.0.0.1"))
        port = joined.port
        assert joined.multicast_error == ""

        also = stack.enter_context(
            FeedbackReceiver("127.0.0.2", port, multicast_interface="127.0.0.1")
        )
        unasked = stack.enter_context(FeedbackReceiver("0.0.0.0", port))

        multicast(crash(1), port)
        for receiver in (joined, also):
            assert [packet["copterID"] for packet in packets(receiver, 1)] == [1]
            assert receiver.counters["received"] == 1  # once, not from both of its sockets

        with sender(port) as send:  # 127.0.0.1 fits `joined` better than 0.0.0.0 does
            send(crash(2))
        assert [packet["copterID"] for packet in packets(joined, 1)] == [2]
        assert unasked.counters["received"] == 0


def test_a_failed_join_leaves_unicast_working_and_can_be_repeated():
    with FeedbackReceiver(port=0, multicast_interface="203.0.113.7") as receiver:
        assert receiver.multicast_error.startswith("224.0.0.10 on 203.0.113.7: ")
        assert receiver.join() == receiver.multicast_error
        with sender(receiver.port) as send:
            send(crash(1))
            assert len(packets(receiver, 1)) == 1


def test_a_join_while_it_listens_is_heard_at_once():
    with FeedbackReceiver(port=0, multicast_interface="203.0.113.7") as receiver:
        receiver._interface = "127.0.0.1"  # the machine got its address
        assert receiver.join() == ""
        multicast(crash(6), receiver.port)
        assert packets(receiver, 1)[0]["copterID"] == 6


def test_a_shared_port_is_shared_and_an_exclusive_one_is_not():
    with FeedbackReceiver(port=0, share_port=True) as receiver:
        with FeedbackReceiver(port=receiver.port, share_port=True) as second:
            assert second.port == receiver.port

        alone = FeedbackReceiver(port=receiver.port, share_port=False)
        with pytest.raises(
            FeedbackError, match=f"127.0.0.1:{receiver.port}: another program holds it"
        ) as caught:
            alone.start()
        assert caught.value.errno == errno.EADDRINUSE
        assert not alone.listening

    alone._requested_port = 0
    with alone:
        other = FeedbackReceiver(port=alone.port, share_port=True)
        with pytest.raises(FeedbackError):
            other.start()


def test_an_address_of_another_machine_is_named():
    with pytest.raises(
        FeedbackError, match=r"203\.0\.113\.7:0: this machine does not have that address"
    ):
        FeedbackReceiver("203.0.113.7", 0).start()


def test_close_waits_for_no_datagram_may_be_repeated_and_it_starts_again():
    receiver = FeedbackReceiver(port=0)
    receiver.close()

    for copter_id in (1, 2):
        receiver.start()
        receiver.start()
        with sender(receiver.port) as send:
            send(crash(copter_id))
            wait_until(lambda: len(receiver) == 1)

        receiver.close()  # no datagram wakes it
        receiver.close()

        assert not receiver.listening
        assert [packet["copterID"] for packet in receiver.take()] == [copter_id]

    assert receiver.counters["received"] == 2
    assert not [thread for thread in threading.enumerate() if thread.name == "rfly_feedback"]


def test_what_is_queued_is_decoded_only_as_it_is_taken():
    bad_name = bytes.fromhex(OBJECT)[:-32] + b"\xff" * 32
    with FeedbackReceiver(port=0) as receiver, sender(receiver.port) as send:
        send(bad_name)
        send(bytes.fromhex(CAMERA))
        wait_until(lambda: len(receiver) == 2)
        assert receiver.counters["text"] == 0
        assert receiver.take(1) == []
        assert receiver.counters["text"] == 1
        assert receiver.take(1)[0].name == "CameraData"


def test_what_the_taker_does_not_want_is_counted_and_not_decoded():
    bad_name = bytes.fromhex(OBJECT)[:-32] + b"\xff" * 32
    with FeedbackReceiver(port=0) as receiver, sender(receiver.port) as send:
        for datagram in (
            bad_name,
            crash(1),
            bytes.fromhex(CAMERA),
            crash(2),
        ):
            send(datagram)
        wait_until(lambda: len(receiver) == 4)
        assert [packet["copterID"] for packet in receiver.take(3, {"CopterSimCrash"})] == [1]
        assert [packet["copterID"] for packet in receiver.take(only={"CopterSimCrash"})] == [2]
        assert receiver.counters["not_wanted"] == 2
        assert receiver.counters["text"] == 0


@pytest.mark.slow
def test_a_flood_takes_little_of_the_processor_and_no_memory_and_its_losses_are_counted():
    """The number of packets that it reads in a second is bounded, and with it its share of a core.

    One thread sends valid packets as fast as it can for two seconds.
    """
    begin = time.monotonic()
    with FeedbackReceiver(port=0) as receiver, sender(receiver.port) as send:
        sent = 0
        datagram = bytes.fromhex(CAMERA)
        deadline = time.monotonic() + 2.0
        while time.monotonic() < deadline:
            for _ in range(100):
                send(datagram)
            sent += 100
        wait_until(
            lambda: sum(receiver.counters[k] for k in ("received", "system_dropped")) >= sent
        )
        counters = receiver.counters
        assert counters["received"] + counters["system_dropped"] == sent
        assert counters["received"] < 16_000 * (time.monotonic() - begin) + 8192
        assert len(receiver) == 4096
        assert counters["overflow"] == counters["received"] - 4096
        receiver.close()

    assert receiver.counters["system_dropped"] == counters["system_dropped"]

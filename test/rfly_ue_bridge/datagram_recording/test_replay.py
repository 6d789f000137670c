# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Order and time of a replay, on a clock of the test's own; and on the real one over loopback."""

from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node_harness import PATIENCE

from rfly_common.errors import ConfigError, TruncatedCaptureError
from rfly_ue_bridge.codec.to_rflysim3d import TO_RFLYSIM3D
from rfly_ue_bridge.datagram_recording.datagrams import RecordedDatagram
from rfly_ue_bridge.datagram_recording.replay import (
    SPIN_NS,
    Destinations,
    Lateness,
    ReplayReport,
    Target,
    replay,
    single_datagrams,
)

PORTS = range(20010, 20074)
MS = 1_000_000


def at(time_ns, payload=b"x", port=20010):
    return RecordedDatagram(
        1_700_000_000_000_000_000 + time_ns, ("10.0.0.1", 5), ("10.0.0.2", port), payload
    )


class FakeClock:
    """Looking at it takes 1 µs; a sleep takes 60 µs longer than asked, as under Linux."""

    def __init__(self, oversleep_ns=60_000):
        self.time_ns = 5_000_000_000
        self.slept_ns = 0
        self._oversleep_ns = oversleep_ns

    def now_ns(self):
        self.time_ns += 1000
        return self.time_ns

    def sleep(self, ns):
        assert ns > 0
        self.time_ns += ns + self._oversleep_ns
        self.slept_ns += ns


def run(recording, clock=None, cost_ns=0, **options):
    """(time since the first datagram, port, payload) of each, and the report."""
    clock = clock or FakeClock()
    sent = []

    def send(port, payload):
        sent.append((clock.time_ns, port, bytes(payload)))
        clock.time_ns += cost_ns

    report = replay(recording, send, ports=options.pop("ports", PORTS), clock=clock, **options)
    return [(time_ns - sent[0][0], port, payload) for time_ns, port, payload in sent], report


def test_gaps_are_those_of_the_recording():
    """Each datagram leaves within 3 µs of its time; lateness does not add up."""
    times = [0, 20 * MS, 20 * MS + 1, 21 * MS, 400 * MS] + [
        400 * MS + n * 20 * MS for n in range(1, 500)
    ]
    sent, report = run(
        [at(time_ns, str(number).encode()) for number, time_ns in enumerate(times)], cost_ns=5000
    )
    assert [payload for _, _, payload in sent] == [
        str(number).encode() for number in range(len(times))
    ]
    for (time_ns, _, _), wanted in zip(sent, times, strict=True):
        assert -1000 <= time_ns - wanted <= (10_000 if wanted == 20 * MS + 1 else 3000)
    assert report.sent == len(times)
    assert report.lateness.percentile_us(99) <= 2
    assert report.duration_ns == pytest.approx(times[-1], abs=10_000)


def test_it_sleeps_all_but_the_last_stretch():
    """The processor is busy only for SPIN_NS before each datagram."""
    clock = FakeClock()
    run([at(0), at(1000 * MS)], clock)
    assert 1000 * MS - SPIN_NS - 20 * 60_000 <= clock.slept_ns <= 1000 * MS - SPIN_NS


def test_a_datagram_that_is_late_does_not_delay_the_next():
    """Slow sending delays only the datagrams that are due meanwhile.

    5 ms are spent in sending: the three that are due go at once, the next one at its time.
    """
    sent, report = run(
        [
            at(0),
            at(1 * MS),
            at(2 * MS),
            at(3 * MS),
            at(30 * MS),
        ],
        cost_ns=5 * MS,
    )
    assert [round(time_ns / MS) for time_ns, _, _ in sent] == [0, 5, 10, 15, 30]
    assert report.lateness.worst_ns == pytest.approx(12 * MS, abs=20_000)


@pytest.mark.parametrize(
    ("speed", "expected"),
    [
        (2.0, [0, 5, 10]),
        (0.25, [0, 40, 80]),
        (1.0, [0, 10, 20]),
    ],
)
def test_speed(speed, expected):
    sent, _ = run(
        [
            at(0),
            at(10 * MS),
            at(20 * MS),
        ],
        speed=speed,
    )
    assert [round(time_ns / MS) for time_ns, _, _ in sent] == expected


def test_speed_0_does_not_wait():
    clock = FakeClock()
    sent, _ = run([at(0), at(10_000 * MS)], clock, speed=0.0)
    assert len(sent) == 2
    assert clock.slept_ns == 0


def test_a_clock_that_went_back_does_not_stop_the_replay():
    """Datagrams that seem to be earlier leave at once.

    Later ones keep their distance from the first.
    """
    sent, _ = run(
        [
            at(50 * MS),
            at(60 * MS),
            at(40 * MS),
            at(80 * MS),
        ]
    )
    assert [round(time_ns / MS) for time_ns, _, _ in sent] == [0, 10, 10, 30]


def test_passes_follow_each_other_after_the_pause():
    sent, report = run([at(0), at(10 * MS)], passes=3, pause_s=0.005)
    assert [round(time_ns / MS) for time_ns, _, _ in sent] == [0, 10, 15, 25, 30, 40]
    assert (report.passes, report.sent) == (3, 6)


def test_other_ports_are_left_out_and_counted_once():
    """They do not count for the time either: the first chosen datagram begins."""
    recording = [
        at(0, port=53),
        at(500 * MS),
        at(510 * MS, port=20006),
        at(520 * MS, port=20073),
        at(530 * MS, port=53),
    ]
    sent, report = run(recording, passes=2)
    assert [(round(time_ns / MS), port) for time_ns, port, _ in sent[:2]] == [
        (0, 20010),
        (20, 20073),
    ]
    assert report.other_ports == {53: 2, 20006: 1}


def test_a_recording_without_a_chosen_datagram_names_what_it_holds():
    with pytest.raises(
        ConfigError,
        match=r"no datagram to port 20010 to 20073; it holds some to 53 \(2\), 20006 \(1\)",
    ):
        run(
            [
                at(0, port=53),
                at(1, port=53),
                at(2, port=20006),
            ]
        )
    with pytest.raises(ConfigError, match="no UDP datagram at all"):
        run([])


def test_the_whole_part_of_a_truncated_recording_is_sent():
    def recording():
        yield at(0)
        raise TruncatedCaptureError("ends at byte 99")

    class Again:
        def __iter__(self):
            return recording()

    sent, report = run(Again(), passes=2)
    assert len(sent) == 2
    assert report.truncated == "ends at byte 99"


@pytest.mark.parametrize(
    "wrong",
    [
        {"speed": -1.0},
        {"speed": float("nan")},
        {"speed": 1e-320},
        {"speed": 1e300},
        {"pause_s": 0.0},
        {"pause_s": 1e305},
    ],
)
def test_impossible_speeds_and_pauses(wrong):
    with pytest.raises(ConfigError, match=r"^(speed|pause) .*: expected"):
        run([at(0)], **wrong)


@given(st.lists(st.integers(0, 50 * MS), min_size=1, max_size=30), st.sampled_from([0.5, 1.0, 3.0]))
def test_nothing_is_lost_swapped_or_early(gaps, speed):
    times = [sum(gaps[:index]) for index in range(len(gaps))]
    sent, report = run([at(time_ns, bytes([n])) for n, time_ns in enumerate(times)], speed=speed)
    assert [payload for _, _, payload in sent] == [bytes([n]) for n in range(len(times))]
    for (time_ns, _, _), wanted in zip(sent, times, strict=True):
        assert time_ns >= wanted / speed - 3000
    assert report.lateness.worst_ns < 3000 + 3000 * len(times)


def test_progress_is_told_in_long_gaps():
    seen = []
    run(
        [at(0), at(1000 * MS)], progress=lambda report, left_ns: seen.append((report.sent, left_ns))
    )
    assert len([left_ns for sent, left_ns in seen if sent == 1]) >= 9
    assert max(left_ns for _, left_ns in seen) <= 1000 * MS


def test_percentiles_of_lateness():
    late = Lateness()
    for microseconds in range(1, 101):
        late.add(1000 * microseconds)
    late.add(10**12)
    assert [late.percentile_us(percent) for percent in (50, 99, 100)] == [51, 100, 100_000]
    assert (late.text(50), late.text(100)) == ("51 µs", "100000 µs or more")
    assert late.worst_ns == 10**12
    assert Lateness().percentile_us(99) == 0


SIMPLE = struct.pack("<3i7f", 1234567890, 7, 3, *[0.5] * 7)


def test_datagrams_that_a_capture_shows_as_one_are_taken_apart():
    """One payload, as tcpdump sees datagrams that Linux was given in one call."""
    pieces = [struct.pack("<3i7f", 1234567890, number, 3, *[0.5] * 7) for number in range(5)]
    assert [bytes(piece) for piece in single_datagrams(b"".join(pieces), [TO_RFLYSIM3D])] == pieces


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(SIMPLE, id="one-packet"),
        pytest.param(SIMPLE * 2 + SIMPLE[:-1], id="a-rest"),
        pytest.param(SIMPLE + bytes(40), id="second-is-no-packet"),
        pytest.param(b"", id="empty"),
        pytest.param(bytes(3804), id="zeros"),
        pytest.param(
            struct.pack("<i252s", 1234567890, SIMPLE * 6), id="a-packet-that-holds-others"
        ),
    ],
)
def test_everything_else_stays_as_it_is(payload):
    assert [bytes(piece) for piece in single_datagrams(payload, [TO_RFLYSIM3D])] == [payload]


def test_merged_datagrams_are_sent_one_by_one():
    sent, report = run([at(0, SIMPLE * 3)], tables=[TO_RFLYSIM3D])
    assert [payload for _, _, payload in sent] == [SIMPLE] * 3
    assert report.sent == 3


def test_vehicles_get_other_ids():
    """copterID is at bytes 4 to 7 of a single packet, and an array of uint16 from 4 in a fleet's.

    What is no packet of the table stays.
    """

    def packets(number):
        return [
            struct.pack("<3i7f", 1234567890, number, 3, *[0.5] * 7),
            struct.pack("<i3H3794x", 1234567890, number, 0, 9),
            b"\7\0\0\0",
        ]

    sent, _ = run(
        [at(time, payload) for time, payload in enumerate(packets(7))],
        tables=(TO_RFLYSIM3D,),
        new_ids=lambda ids: [{7: 107}.get(each, each) for each in ids],
    )
    assert [payload for _, _, payload in sent] == packets(107)


def test_windows_keep_their_distance_at_the_target():
    """Datagrams of the second chosen port go to the second port behind the new one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as window:
        window.bind(("127.0.0.1", 0))
        window.settimeout(PATIENCE)

        target = Target(range(20010, 20013), "127.0.0.1", window.getsockname()[1] - 1)
        destinations = Destinations(target)

        try:
            report = ReplayReport()
            replay(
                [at(0, b"a", 20011), at(MS, b"b", 20011)],
                destinations.send,
                ports=target.recorded,
                report=report,
            )

            assert [window.recv(100), window.recv(100)] == [b"a", b"b"]
            assert destinations.error_texts() == []
            assert report.sent == 2
        finally:
            destinations.close()


def test_ports_where_nothing_listens_are_named():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    destinations = Destinations(Target(range(20010, 20011), "127.0.0.1", port))
    destinations.send(20010, b"x")
    assert destinations.error_texts() == [f"127.0.0.1:{port}: nothing listens there"]
    destinations.close()


@pytest.mark.parametrize(
    ("recorded", "port", "named"),
    [
        (range(20010, 20010), None, "20010 to 20009"),
        (range(0, 5), None, "within 1 to 65535"),
        (range(65530, 65537), None, "within 1 to 65535"),
        (range(20010, 20020), 65530, "65530 to 65539"),
    ],
)
def test_targets_that_cannot_be(recorded, port, named):
    with pytest.raises(ConfigError, match=named):
        Target(recorded, "127.0.0.1", port)

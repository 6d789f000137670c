# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The gate of a tick: what it waits for, what is answered again, and a reset."""

from __future__ import annotations

import pytest

from rfly_amphibious.simulation.tick_gate import TickGate

IMU, GPS = 0, 3


def tick(stamp_ns, imu=1, gps=0):
    """A tick with these numbers of messages of two topics."""
    return "tick", stamp_ns, [imu, 0, 0, gps]


ODOMETRY = "answered", "odometry"
HEARD_IMU = "heard", IMU
HEARD_GPS = "heard", GPS


@pytest.mark.parametrize(
    ("answers", "events", "expected"),
    [
        pytest.param((), [tick(10)], ["begin", 10], id="the first tick waits for no messages"),
        pytest.param(
            (),
            [tick(10), tick(20, 2, 1), HEARD_IMU, HEARD_GPS, HEARD_IMU],
            ["begin", 10, "begin", 20],
            id="a tick waits for as many messages as were published in it",
        ),
        pytest.param(
            (),
            [tick(10), tick(20, 2, 1), HEARD_IMU, HEARD_GPS],
            ["begin", 10, "begin"],
            id="one message is missing",
        ),
        pytest.param(
            (),
            [tick(10), tick(20, 2), HEARD_IMU, tick(20, 2)],
            ["begin", 10, "begin", 20],
            id="a tick that is announced again no longer waits",
        ),
        pytest.param(
            (),
            [tick(10), HEARD_IMU, tick(20), tick(20), tick(30), HEARD_IMU],
            ["begin", 10, "begin", 20, "again 20", "begin", 30],
            id="an answered tick that is announced again is answered again",
        ),
        pytest.param(
            (),
            [tick(10), HEARD_IMU, tick(20), tick(5), HEARD_IMU, tick(15)],
            ["begin", 10, "begin", 20, "reset", "begin", 5, "begin", 15],
            id="the time goes back",
        ),
        pytest.param(
            ("odometry",),
            [tick(10), (*ODOMETRY, 10), HEARD_IMU, tick(20), (*ODOMETRY, 20)],
            ["begin", 10, "begin", 20],
            id="another node answers first",
        ),
        pytest.param(
            ("odometry",),
            [tick(10), HEARD_IMU, (*ODOMETRY, 9)],
            ["begin"],
            id="another node has answered the tick before",
        ),
        pytest.param(
            ("odometry",),
            [tick(10), (*ODOMETRY, 10), tick(0), (*ODOMETRY, 0)],
            ["begin", 10, "reset", "begin", 0],
            id="after a reset, answers of later ticks do not count",
        ),
    ],
)
def test_ticks_open_in_order_and_once(answers, events, expected):
    calls = []
    gate = TickGate(
        (IMU, GPS),
        calls.append,
        answers,
        again=lambda stamp_ns: calls.append(f"again {stamp_ns}"),
        begin=lambda: calls.append("begin"),
        reset=lambda: calls.append("reset"),
    )
    for name, *arguments in events:
        getattr(gate, name)(*arguments)
    assert calls == expected


def test_a_tick_whose_answer_failed_is_tried_anew():
    """An answer published for the tick before would be the wrong one."""
    tried = []

    def answer(stamp_ns):
        tried.append(stamp_ns)
        if len(tried) == 1:
            raise ValueError(stamp_ns)

    gate = TickGate((), answer, again=lambda stamp_ns: tried.append(f"again {stamp_ns}"))
    with pytest.raises(ValueError, match="10"):
        gate.tick(10, ())
    gate.tick(10, ())
    gate.tick(10, ())
    assert tried == [10, 10, "again 10"]

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Waiting and leaving states: rate limit and map change. Times are made up."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rfly_common.vehicle_states import VehicleStates
from rfly_ue_bridge.codec.ned_states import states_to_ned
from rfly_ue_bridge.sockets.rate_limiter import RateLimiter

MS = 1_000_000
S = 1_000_000_000


def ned(*pairs):
    """Vehicles as (id, x north)."""
    n = len(pairs)
    states = VehicleStates(
        id=np.array([i for i, _ in pairs], np.int32),
        vehicle_type=np.zeros(n),
        position=np.array([[x, 0.0, 0.0] for _, x in pairs]).reshape(n, 3),
        orientation=np.tile([1.0, 0, 0, 0], (n, 1)),
    )
    return states_to_ned(states, "ned")[0]


def pairs(states):
    return (
        []
        if states is None
        else list(zip(states.id.tolist(), states.position_ned[:, 0].tolist(), strict=True))
    )


def test_without_limit_everything_goes_at_once():
    outbox = RateLimiter()
    states = ned((1, 0.0), (2, 0.0))
    assert outbox.idle
    assert outbox.offer(states, 0) is states
    assert outbox.next_due_ns() is None


def test_rate_limit_is_for_each_vehicle():
    outbox = RateLimiter(rate_limit_hz=10)
    assert pairs(outbox.offer(ned((1, 0.0)), 0)) == [(1, 0.0)]
    assert pairs(outbox.offer(ned((1, 1.0), (2, 1.0)), 50 * MS)) == [(2, 1.0)]
    assert pairs(outbox.offer(ned((1, 2.0), (2, 2.0)), 100 * MS)) == [(1, 2.0)]


def test_the_newest_of_what_waits_goes_when_its_time_has_come():
    outbox = RateLimiter(rate_limit_hz=10)
    outbox.offer(ned((1, 0.0)), 0)
    assert pairs(outbox.offer(ned((1, 1.0)), 30 * MS)) == []
    assert pairs(outbox.offer(ned((1, 2.0)), 60 * MS)) == []
    assert outbox.next_due_ns() == 100 * MS
    assert outbox.due(99 * MS) is None
    assert pairs(outbox.due(100 * MS)) == [(1, 2.0)]
    assert outbox.superseded == 1  # x = 1 was never shown
    assert outbox.next_due_ns() is None
    assert pairs(outbox.offer(ned((1, 3.0)), 150 * MS)) == []  # the late one counts for the rate
    assert pairs(outbox.due(200 * MS)) == [(1, 3.0)]


def test_map_change_holds_everything_and_lets_the_newest_go():
    outbox = RateLimiter()
    outbox.hold(1 * S)
    assert not outbox.idle
    assert pairs(outbox.offer(ned((1, 0.0), (2, 0.0)), 0)) == []
    assert pairs(outbox.offer(ned((1, 1.0)), S // 2)) == []
    assert outbox.next_due_ns() == 1 * S
    assert outbox.due(S - 1) is None
    assert sorted(pairs(outbox.due(S))) == [(1, 1.0), (2, 0.0)]
    assert outbox.idle


def test_a_newer_state_after_the_hold_replaces_what_waited():
    outbox = RateLimiter()
    outbox.hold(1 * S)
    outbox.offer(ned((1, 0.0), (2, 0.0)), 0)
    assert pairs(outbox.offer(ned((1, 5.0)), 2 * S)) == [(1, 5.0)]
    assert pairs(outbox.due(2 * S)) == [(2, 0.0)]


def test_second_map_change_extends_the_hold():
    outbox = RateLimiter()
    outbox.hold(1 * S)
    outbox.offer(ned((1, 0.0)), 0)
    outbox.hold(2 * S)
    assert outbox.due(S) is None
    assert outbox.next_due_ns() == 2 * S
    outbox.hold(S)  # never shortens
    assert outbox.next_due_ns() == 2 * S


def test_rate_limit_and_hold_together():
    outbox = RateLimiter(rate_limit_hz=10)
    outbox.offer(ned((1, 0.0)), 0)
    outbox.hold(1 * S)
    outbox.offer(ned((1, 1.0)), 50 * MS)
    assert outbox.next_due_ns() == 1 * S
    assert pairs(outbox.due(1 * S)) == [(1, 1.0)]


def test_forgetting_changes_nothing_that_is_seen():
    outbox = RateLimiter(rate_limit_hz=10)
    outbox.offer(ned((1, 0.0), (2, 0.0)), 0)
    outbox.drop_stale(50 * MS)
    assert pairs(outbox.offer(ned((1, 1.0)), 60 * MS)) == []
    outbox.drop_stale(1 * S)
    assert pairs(outbox.due(1 * S)) == [(1, 1.0)]


_steps = st.lists(
    st.tuples(
        st.lists(st.integers(1, 6), unique=True, min_size=1, max_size=6),
        st.integers(0, 80 * MS),
        st.integers(0, 9),
    ),
    max_size=30,
)


@given(_steps)
def test_no_vehicle_is_too_often_out_of_order_or_left_behind(steps):
    """No vehicle exceeds 10 Hz, numbers only rise, and the last number of each leaves."""
    outbox = RateLimiter(rate_limit_hz=10)
    steady = 0
    sent = {}
    last = {}

    def note(states, now):
        for vehicle_id, x in pairs(states):
            when, before = sent.get(vehicle_id, (-S, -1.0))
            assert now - when >= 100 * MS
            assert x > before
            sent[vehicle_id] = (now, x)

    for number, (ids, pause, hold) in enumerate(steps):
        steady += pause
        if hold == 0:
            outbox.hold(steady + S)
        due = outbox.next_due_ns()
        if due is not None and due <= steady:
            note(outbox.due(steady), steady)
        note(outbox.offer(ned(*[(i, float(number)) for i in ids]), steady), steady)
        last.update(dict.fromkeys(ids, float(number)))
    while (due := outbox.next_due_ns()) is not None:
        steady = max(steady, due)
        note(outbox.due(steady), steady)
    assert {vehicle_id: x for vehicle_id, (_, x) in sent.items()} == last

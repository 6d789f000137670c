# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Stale stamps and doubled ids. Times are made up: nothing here waits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_common.state_sources import Conflict, IdOwners, IdTable, StampFilter

S = 1_000_000_000


def ids(*numbers):
    return np.array(numbers, np.int32)


def test_older_than_the_last_of_its_source_is_stale():
    stamps = StampFilter()
    assert stamps.rejection_reason("/a", 10 * S, 11 * S, 0) is None
    assert stamps.rejection_reason("/a", 10 * S - 1, 11 * S, 1) == "stale"
    assert (
        stamps.rejection_reason("/b", 9 * S, 11 * S, 2) is None
    )  # another source has its own last stamp
    assert (
        stamps.rejection_reason("/a", 10 * S, 11 * S, 3) is None
    )  # equal: the next part of one instant
    assert stamps.rejection_reason("/a", 10 * S + 1, 11 * S, 4) is None


def test_stamp_zero_counts_as_now():
    stamps = StampFilter(max_age_s=0.5)
    assert stamps.rejection_reason("/a", 0, 100 * S, 0) is None
    assert (
        stamps.rejection_reason("/a", 99 * S + S // 2, 100 * S, 0) == "stale"
    )  # the stamp 0 was taken for 100 s
    assert stamps.rejection_reason("/a", 0, 101 * S, 0) is None
    assert stamps.rejection_reason("/a", 150 * S, 102 * S, 0) is None  # from the future
    assert stamps.rejection_reason("/a", 0, 103 * S, 0) is None
    assert stamps.rejection_reason("/a", 149 * S, 104 * S, 0) == "stale"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30))
def test_newer_stamps_are_never_refused(steps):
    """`is_newer` says yes only where `rejection_reason` will let pass, whatever the clock does."""
    stamps = StampFilter()
    for stamp_ns, now_ns in steps:
        newer = stamps.is_newer("/a", stamp_ns)
        refused = stamps.rejection_reason("/a", stamp_ns, now_ns, 0)
        assert not (newer and refused)


def test_nothing_is_certainly_newer_while_ages_count():
    stamps = StampFilter(max_age_s=1.0)
    assert stamps.rejection_reason("/a", 10 * S, 10 * S, 0) is None
    assert not stamps.is_newer("/a", 11 * S)


def test_max_age_compares_with_the_node_clock():
    stamps = StampFilter(max_age_s=2.0)
    assert stamps.rejection_reason("/a", 8 * S, 10 * S, 0) is None
    assert stamps.rejection_reason("/b", 8 * S - 1, 10 * S, 0) == "too_old"
    assert (
        stamps.rejection_reason("/c", 20 * S, 10 * S, 0) is None
    )  # from the future, which max_age says nothing about


def test_what_is_too_old_does_not_become_the_last():
    stamps = StampFilter(max_age_s=1.0)
    assert stamps.rejection_reason("/a", 5 * S, 10 * S, 0) == "too_old"
    assert stamps.rejection_reason("/a", 9 * S, 10 * S, 0) is None


def test_clock_that_jumps_back_starts_anew():
    stamps = StampFilter()
    assert stamps.rejection_reason("/a", 100 * S, 100 * S, 0) is None
    assert stamps.rejection_reason("/a", 1 * S, 2 * S, 1) is None


MS = 1_000_000


@pytest.mark.parametrize(
    ("arrivals", "accepted", "set_back"),
    [
        pytest.param(
            [(50 * k, 10_000 + 50 * k) for k in range(20)], range(20), [], id="nothing-goes-back"
        ),
        pytest.param(
            # 20 Hz for a second, then the same again: 4 messages are behind for less than 250 ms
            [(50 * k, 10_000 + 50 * (k % 20)) for k in range(40)],
            [*range(20), *range(25, 40)],
            [0.70],
            id="a-replay-of-a-second-begins-again",
        ),
        pytest.param(
            [(0, 100_000), (50, 100_050), *((100 + 50 * k, 50 + 50 * k) for k in range(8))],
            [0, 1, 7, 8, 9],
            [99.75],
            id="a-simulator-begins-again",
        ),
        pytest.param(
            [(0, 100_000), (1001, 3000), (2002, 3500)],
            [0, 1, 2],
            [97.0],
            id="a-slow-source-or-a-pause-of-a-second",
        ),
        pytest.param(
            [(20 * k, 2000 + 20 * k if k % 2 else 1000 + 20 * k) for k in range(100)],
            [0, *range(1, 100, 2)],
            [],
            id="a-second-publisher-lags-behind",
        ),
        pytest.param(
            [(0, 9_000_000), (20, 1020), (40, 1040), (280, 1280), (300, 1300)],
            [0, 3, 4],
            [8998.72],
            id="one-stamp-of-the-far-future",
        ),
    ],
)
def test_a_source_whose_clock_was_set_back(arrivals, accepted, set_back):
    """It recovers within a second, and is named once; what is late stays out.

    Times and stamps in ms. The first message that is behind waits 250 ms, counted by hand.
    """
    told = []
    stamps = StampFilter(on_set_back=lambda source, seconds: told.append((source, seconds)))
    passed = [
        k
        for k, (steady, stamp) in enumerate(arrivals)
        if stamps.rejection_reason("/a", stamp * MS, 10**6 * S, steady * MS) is None
    ]
    assert passed == [k for k in range(len(arrivals)) if k in accepted]
    assert told == [("/a", pytest.approx(seconds)) for seconds in set_back]


def test_what_is_too_old_after_the_clock_was_set_back_stays_out():
    """`max_age` counts still: nothing begins anew, and nothing is named."""
    stamps = StampFilter(max_age_s=1.0, on_set_back=lambda *_: pytest.fail("told"))
    assert stamps.rejection_reason("/a", 100 * S, 100 * S, 0) is None
    assert stamps.rejection_reason("/a", 90 * S, 101 * S, 1 * S) == "stale"
    assert stamps.rejection_reason("/a", 90 * S, 102 * S, 2 * S) == "too_old"


def test_silent_sources_are_forgotten():
    stamps = StampFilter(on_set_back=lambda *_: pytest.fail("told"))
    assert stamps.rejection_reason("/a", 100 * S, 200 * S, 0) is None
    stamps.drop_stale(10 * S + 1)
    assert stamps.rejection_reason("/a", 1 * S, 211 * S, 11 * S) is None


def test_endless_new_names_do_not_fill_the_memory():
    stamps = StampFilter()
    for number in range(20_000):
        stamps.rejection_reason(f"/{number}", 1, 1, 1)
    assert len(stamps._last) <= 10_000


def test_first_source_keeps_an_id():
    owners = IdOwners(stale_after_s=1.0)
    assert owners.claim(ids(1, 2, 3), "/a", 0).accepted.all()
    claim = owners.claim(ids(3, 4), "/b", S // 2)
    assert claim.accepted.tolist() == [False, True]
    assert claim.others == 1
    assert claim.conflicts == (Conflict(3, "/a", "/b"),)
    assert owners.claim(ids(3, 2, 1), "/a", S // 2).accepted.all()


def test_id_of_a_silent_source_can_be_taken_over():
    """Silence is counted from the owner's last message; what others wanted meanwhile does not
    count.
    """
    owners = IdOwners(stale_after_s=1.0)
    owners.claim(ids(3), "/a", 0)
    assert not owners.claim(ids(3), "/b", S).accepted.any()
    assert owners.claim(ids(3), "/b", S + 1).accepted.all()
    assert owners.claim(ids(3), "/a", S + 2).conflicts == (Conflict(3, "/b", "/a"),)


def test_partial_updates_keep_only_what_they_name():
    owners = IdOwners(stale_after_s=1.0)
    owners.claim(ids(1, 2), "/a", 0)
    owners.claim(ids(2), "/a", S)
    assert owners.claim(ids(1, 2), "/b", S + S // 2).accepted.tolist() == [True, False]


def test_one_example_for_each_source_that_keeps_ids():
    owners = IdOwners()
    owners.claim(ids(1, 2), "/a", 0)
    owners.claim(ids(5, 6), "/b", 0)
    claim = owners.claim(ids(6, 2, 5, 1, 9), "/c", 1)
    assert claim.accepted.tolist() == [False, False, False, False, True]
    assert (claim.others, claim.configured) == (4, 0)
    assert set(claim.conflicts) == {Conflict(2, "/a", "/c"), Conflict(6, "/b", "/c")}


def test_configured_ids_are_for_no_source():
    owners = IdOwners(configured={7: "topic car/pose"})
    claim = owners.claim(ids(6, 7, 8), "/fleet", 0)
    assert claim.accepted.tolist() == [True, False, True]
    assert (claim.configured, claim.others) == (1, 0)
    assert claim.conflicts == (Conflict(7, "topic car/pose", "/fleet"),)


def test_sources_are_forgotten_with_their_ids():
    """Sources that remain keep their ids."""
    owners = IdOwners(stale_after_s=1.0)
    for number in range(1000):
        owners.claim(ids(number), f"/{number}", number)
    owners.claim(
        ids(7, 500), "/late", S + 5
    )  # 0 to 4 are silent for more than a second now, 7 is not
    owners.drop_stale(S + 900)
    assert len(owners) == 100
    assert len(owners._sources) == 100
    assert owners.claim(ids(950), "/x", S + 900).conflicts == (Conflict(950, "/950", "/x"),)
    assert owners.claim(ids(951), "/951", S + 900).accepted.all()


def test_silent_ids_are_forgotten():
    owners = IdOwners(stale_after_s=1.0)
    owners.claim(ids(1, 2, 3), "/a", 0)
    owners.claim(ids(2), "/a", S)
    owners.drop_stale(S + 1)
    assert len(owners) == 1
    owners.drop_stale(3 * S)
    assert len(owners) == 0
    assert owners.claim(ids(1), "/b", 3 * S).accepted.all()


_messages = st.lists(
    st.tuples(
        st.lists(st.integers(-3, 12), unique=True, min_size=1, max_size=8),
        st.sampled_from(["/a", "/b", "/c"]),
        st.integers(0, 700_000_000),
    ),
    max_size=25,
)


@given(_messages)
def test_owners_agree_with_one_dictionary_entry_after_the_other(messages):
    """The slow obvious rule, id by id."""
    owners = IdOwners(stale_after_s=1.0)
    slow = {}
    steady = 0
    for numbers, source, pause in messages:
        steady += pause
        expected = []
        for number in numbers:
            owner, heard = slow.get(number, (source, steady))
            expected.append(owner == source or steady - heard > S)
            if expected[-1]:
                slow[number] = (source, steady)
        claim = owners.claim(ids(*numbers), source, steady)
        assert claim.accepted.tolist() == expected
        assert claim.others == expected.count(False)


@given(st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), unique=True, max_size=10), max_size=8))
def test_table_gives_each_id_one_row(batches):
    table = IdTable()
    slow = {}
    for number, batch in enumerate(batches):
        rows = table.rows(ids(*batch), (number, 0))
        for vehicle_id in batch:
            slow.setdefault(vehicle_id, number)
        expected = [slow[vehicle_id] for vehicle_id in batch]
        assert table.values[rows, 0].tolist() == expected
        assert table.ids.tolist() == sorted(slow)


@pytest.mark.parametrize("ids_seen", [[5], [1, 2, 3]])
def test_table_keeps_what_the_mask_names(ids_seen):
    table = IdTable()
    table.rows(ids(*ids_seen), (1, 1))
    table.keep(table.ids != ids_seen[0])
    assert table.ids.tolist() == ids_seen[1:]


def test_a_reserved_id_is_no_sources_until_it_is_released():
    owners = IdOwners(1.0, {7: "topic car/pose"})
    for reserved in (30, 3, 30):
        owners.reserve(reserved, "place_object")
    claim = owners.claim(np.array([3, 5, 7, 30], np.int32), "/fleet", 0)
    assert claim.accepted.tolist() == [False, True, False, False]
    assert [owners.owner_of(i, 0) for i in (3, 5, 7, 30, 31)] == [
        "place_object", "/fleet", "topic car/pose", "place_object", None
    ]  # fmt: skip
    assert owners.owner_of(5, 1_000_000_001) is None  # silent for longer than stale_after
    owners.release(30)
    owners.release(30)
    assert owners.owner_of(30, 0) is None
    assert owners.claim(np.array([3, 30], np.int32), "/fleet", 0).accepted.tolist() == [False, True]

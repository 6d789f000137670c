# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contacts that begin, go on and end.

The sequences are worked out by hand, or compared with a slow dictionary.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rfly_collision.world.contact_tracker import (
    BEGIN,
    END,
    GROUND,
    STATIC,
    STAY,
    ContactTracker,
    PairContacts,
    no_pairs,
)

MS = 1_000_000


def pairs(*contacts):
    """Return PairContacts of (vehicle, other, object id, depth), 3 ms into the step, normal up."""
    if not contacts:
        return no_pairs()
    vehicle, other, object_id, depth = (np.array(column) for column in zip(*contacts, strict=True))
    n = len(contacts)
    place = np.arange(3.0 * n).reshape(n, 3)
    return PairContacts(
        vehicle,
        other,
        object_id,
        place,
        np.tile([0.0, 0, 1], (n, 1)),
        depth * 1.0,
        np.full(n, 3e-3),
    )


def event_rows(events):
    """Return [(event, vehicle, other, object id, depth)]."""
    c = events.contacts
    rows = zip(events.event, c.vehicle, c.other, c.object_id, c.depth, strict=True)
    return [tuple(value.item() for value in row) for row in rows]


def test_two_vehicles_touch_and_part():
    """Contacts begin once, stay, end when a look does not find them, and may begin again."""
    tracker = ContactTracker()
    pair = (1, 2, 0, 0.5)
    assert event_rows(tracker.update(0, pairs())) == []
    assert event_rows(tracker.update(20 * MS, pairs(pair))) == [(BEGIN, *pair)]
    assert event_rows(tracker.update(40 * MS, pairs((1, 2, 0, 0.25)))) == [(STAY, 1, 2, 0, 0.25)]
    assert len(tracker.lost(no_pairs(), 41 * MS)) == 0
    ended = tracker.update(41 * MS, pairs(), near=pairs(pair).key)
    assert event_rows(ended) == [(END, 1, 2, 0, 0.25)]
    assert ended.contacts.time.tolist() == [0]
    assert event_rows(tracker.update(60 * MS, pairs())) == []
    assert event_rows(tracker.update(80 * MS, pairs(pair))) == [(BEGIN, *pair)]


def test_what_rattles_on_the_ground_touches_it_all_the_time():
    """A contact that is lost for 60 ms by less than 2 mm and found again is one contact.

    It begins once and ends once, with the last depth.
    """
    tracker = ContactTracker()
    ground = (7, GROUND, 0, 0.01)
    assert event_rows(tracker.update(0, pairs(ground))) == [(BEGIN, *ground)]
    for ms in (20, 40, 60):
        lost = tracker.lost(no_pairs(), ms * MS)
        assert event_rows(tracker.update(ms * MS, pairs(), lost.key)) == [(STAY, 7, GROUND, 0, 0.0)]
    assert event_rows(tracker.update(80 * MS, pairs((7, GROUND, 0, 0.02)))) == [
        (STAY, 7, GROUND, 0, 0.02)
    ]
    assert event_rows(
        tracker.update(100 * MS, pairs(), tracker.lost(no_pairs(), 100 * MS).key)
    ) == [(STAY, 7, GROUND, 0, 0)]
    assert event_rows(tracker.update(120 * MS, pairs())) == [(END, 7, GROUND, 0, 0.02)]


def test_small_clearance_ends_after_a_tenth_of_a_second():
    """A contact last touched at 0 is open at 99 ms and ended at 100 ms."""
    tracker = ContactTracker()
    box = (7, STATIC, 1001, 0.01)
    tracker.update(0, pairs(box))
    near = pairs(box).key
    assert event_rows(tracker.update(99 * MS, pairs(), near)) == [(STAY, 7, STATIC, 1001, 0)]
    assert len(tracker.lost(no_pairs(), 100 * MS)) == 0
    assert event_rows(tracker.update(100 * MS, pairs(), near)) == [(END, *box)]


def test_more_than_2_mm_ends_at_once():
    tracker = ContactTracker()
    tracker.update(0, pairs((7, GROUND, 0, 0.01), (8, GROUND, 0, 0.01)))
    lost = tracker.lost(no_pairs(), MS)
    assert lost.vehicle.tolist() == [7, 8]
    events = tracker.update(MS, pairs(), near=lost.key[1:])  # the scene has found 8 near, 7 not
    expected = [(END, 7, GROUND, 0, 0.01), (STAY, 8, GROUND, 0, 0)]
    assert event_rows(events) == expected


def test_each_pair_is_one_contact():
    """One vehicle on the ground, on two objects and next to two vehicles has five contacts.

    They are reported in one order, whichever came first.
    """
    last = 2**31 - 1
    five = [
        (3, GROUND, 0, 0.1),
        (3, 4, 0, 0.2),
        (3, last, 0, 0.3),
        (3, STATIC, 0, 0.4),
        (3, STATIC, last, 0.5),
    ]
    mixed = [five[i] for i in (4, 1, 3, 0, 2)]

    tracker = ContactTracker()
    assert event_rows(tracker.update(0, pairs((last, GROUND, 0, 1.0), *mixed))) == [
        *[(BEGIN, *contact) for contact in five],
        (BEGIN, last, GROUND, 0, 1.0),
    ]

    events = tracker.update(MS, pairs(five[1], (4, 5, 0, 0.1), five[4]))
    assert event_rows(events) == [
        (END, *five[0]),
        (STAY, *five[1]),
        (END, *five[2]),
        (END, *five[3]),
        (STAY, *five[4]),
        (BEGIN, 4, 5, 0, 0.1),
        (END, last, GROUND, 0, 1.0),
    ]


def test_positions_and_times_stay_with_their_contacts():
    tracker = ContactTracker()
    begun = tracker.update(0, pairs((9, 10, 0, 0.1), (3, GROUND, 0, 0.2)))
    assert begun.contacts.vehicle.tolist() == [3, 9]
    assert begun.contacts.position.tolist() == [[3, 4, 5], [0, 1, 2]]
    assert begun.contacts.time.tolist() == [3e-3, 3e-3]
    held = tracker.update(MS, pairs((9, 10, 0, 0.1)), near=pairs((3, GROUND, 0, 0)).key)
    assert held.contacts.position.tolist() == [[3, 4, 5], [0, 1, 2]]
    assert held.contacts.time.tolist() == [0, 3e-3]


def test_all_contacts_can_be_ended():
    tracker = ContactTracker()
    tracker.update(0, pairs((3, GROUND, 0, 0.2), (1, 2, 0, 0.1)))
    expected = [(END, 1, 2, 0, 0.1), (END, 3, GROUND, 0, 0.2)]
    assert event_rows(tracker.end_all()) == expected
    assert event_rows(tracker.end_all()) == []


def test_a_clock_that_went_back_holds_nothing():
    tracker = ContactTracker()
    tracker.update(50 * MS, pairs((3, GROUND, 0, 0.2)))
    assert len(tracker.lost(no_pairs(), 49 * MS)) == 0


_CONTACTS = [
    (1, 2, 0),
    (1, 3, 0),
    (2, 3, 0),
    (1, GROUND, 0),
    (2, GROUND, 0),
    (1, STATIC, 5),
    (1, STATIC, 6),
]
_looks = st.lists(
    st.tuples(
        st.sampled_from([5 * MS, 40 * MS, 100 * MS]),
        st.lists(st.sampled_from(_CONTACTS), unique=True),
        st.lists(st.sampled_from(_CONTACTS), unique=True),
    ),
    max_size=25,
)


@given(_looks)
def test_the_tracker_agrees_with_one_dictionary_entry_after_the_other(looks):
    """No contact ends before it has begun, and none begins twice."""
    tracker = ContactTracker()
    slow = {}
    now = 0
    open_contacts = set()
    for pause, touching, near in looks:
        now += pause

        # the slow dictionary's answer
        expected = {}
        for contact in set(touching) | set(slow):
            if contact in touching:
                expected[contact] = STAY if contact in slow else BEGIN
                slow[contact] = now
            elif contact in near and contact[1] < 0 and now - slow[contact] < 100 * MS:
                expected[contact] = STAY
            else:
                expected[contact] = END
                del slow[contact]

        events = tracker.update(
            now,
            pairs(*[(*c, 0.1) for c in touching]),
            pairs(*[(*c, 0.0) for c in near]).key,
        )
        rows = event_rows(events)

        assert {row[1:4]: row[0] for row in rows} == expected
        assert len(rows) == len(expected)

        # begin and end alternate
        for event, *contact, _ in rows:
            assert (tuple(contact) in open_contacts) == (event != BEGIN)
            (open_contacts.discard if event == END else open_contacts.add)(tuple(contact))

        assert len(tracker.active) == len(slow)

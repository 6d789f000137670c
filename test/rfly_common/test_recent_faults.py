# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Faults that go on are named once each, whatever else goes on."""

from __future__ import annotations

from rfly_common.diagnostic_reasons import Notice, RecentFaults


def test_one_continuing_fault_hides_no_other():
    """Three sources send ten messages a second for ten seconds; each has one fault."""
    now = 0.0
    faults = RecentFaults(clock=lambda: now)
    logged = []
    for step in range(100):
        now = step / 10
        for kind, source in (("nan", "a"), ("nan", "b"), ("old", "a")):
            if faults.begin(kind, Notice(f"{kind} of {source}, {step}", subject=source)):
                logged.append((kind, source))
    assert logged == [("nan", "a"), ("nan", "b"), ("old", "a")]
    assert [each.text for each in faults.notices()] == [
        "nan of a, 99",
        "nan of b, 99",
        "old of a, 99",
    ]


def test_two_mistakes_of_one_source_are_two_faults_and_values_make_no_difference():
    faults = RecentFaults(clock=lambda: 0.0)
    texts = (
        "cmd_vel refused: [nan, 0.0, 1.5e-3] is not finite",
        "cmd_vel refused: header.frame_id is 'map', expected base_link",
        "cmd_vel refused: [0.25, nan, inf] is not finite",
        "cmd_vel refused: header.frame_id is 'it''s', expected base_link",
    )
    assert [faults.begin("cmd_vel", Notice(text)) for text in texts] == [True, True, False, False]
    assert [each.text for each in faults.notices()] == [texts[2], texts[3]]


def test_a_fault_is_over_after_five_seconds_and_new_when_it_comes_again():
    now = 100.0
    faults = RecentFaults(clock=lambda: now)
    assert faults.begin("nan", Notice("x"))
    now = 104.9
    assert len(faults.notices()) == 1
    assert not faults.begin("nan", Notice("x"))
    now = 109.9
    assert faults.notices() == []
    assert faults.begin("nan", Notice("x"))


def test_a_sender_who_invents_names_fills_neither_memory_nor_log():
    faults = RecentFaults(clock=lambda: 0.0)
    by_subject = [faults.begin("nan", Notice("x", subject=f"s{k}" * 1000)) for k in range(1000)]
    by_kind = [faults.begin(f"k{k}", Notice("y" * 10**6)) for k in range(1000)]
    assert sum(by_subject) == 10
    assert sum(by_kind) == 30
    assert max(len(each.text + each.subject) for each in faults.notices()) <= 600

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Codes that diagnostics carry for programs."""

from __future__ import annotations

import pytest
from reference_pages import reasons_page

from rfly_common.diagnostic_reasons import Notice, Reason, listed, reason_values, reasons_in


def test_reasons_come_back_from_the_values():
    notices = [
        Notice("no states", Reason.NO_STATES),
        Notice("a frame", Reason.UNKNOWN_FRAME, "/car/pose"),
        Notice("anything"),
    ]
    values = reason_values(notices)
    assert values == {
        "reason": "no_states",
        "reason_2": "unknown_frame",
        "subject_2": "/car/pose",
        "reason_3": "other",
    }
    assert reasons_in(values) == [(notice.reason, notice.subject) for notice in notices]


def test_a_long_list_of_names_is_cut():
    names = [f"v{i}" for i in range(25)]
    assert listed(names[:2]) == "v0, v1"
    assert listed([]) == ""
    assert listed(names[:20]).endswith("v18, v19")
    assert listed(names).endswith("v18, v19 and 5 more")


def test_a_reason_of_another_version_counts_as_other():
    assert reasons_in({"reason": "brand_new", "subject": "x"}) == [(Reason.OTHER, "x")]


def test_a_status_without_reasons_has_none():
    assert reasons_in({"subject": "x", "reason_2": "stale"}) == []


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_is_documented(reason):
    assert f"| `{reason.value}` | " in reasons_page()


@pytest.mark.ros
def test_whatever_nodes_drop_has_a_reason():
    """Counters of dropped states are reasons, too; others count no dropped states."""
    from rfly_collision.ros.collision_node import COUNTERS as COLLISION_COUNTERS
    from rfly_ue_bridge.ros.state_topics import COUNTERS as BRIDGE_COUNTERS

    counters = {*COLLISION_COUNTERS, *BRIDGE_COUNTERS} - {"refused_commands"}
    assert counters <= {reason.value for reason in Reason}

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Frames on /tf that are in two places: with two parents, or by two publishers."""

from __future__ import annotations

from typing import Any

import pytest
from optional_parts import late_module

pytestmark = pytest.mark.ros
graph_watch = late_module("rfly_bringup.ros.graph_watch")


def transforms(*edges: tuple[str, str]) -> Any:
    from geometry_msgs.msg import TransformStamped
    from tf2_msgs.msg import TFMessage

    message = TFMessage()
    for parent, child in edges:
        edge = TransformStamped(child_frame_id=child)
        edge.header.frame_id = parent
        message.transforms.append(edge)
    return message


LEAD = ("map", "lead/base_link")
CASES = {
    "one publisher, many messages": ([("/tf", LEAD, n) for n in range(1, 50)], {}),
    "one that was restarted": ([("/tf", LEAD, n) for n in (7, 8, 9, 1, 2, 3)], {}),
    "one that loses messages": ([("/tf", LEAD, n) for n in (1, 4, 9, 40)], {}),
    "other frames of two nodes": (
        [("/tf", ("map", f"{name}/base_link"), n) for n in (1, 2, 3, 4) for name in "ab"],
        {},
    ),
    "two that began together": (
        [("/tf", LEAD, n) for n in (1, 1, 2, 2, 3, 3)],
        {"lead/base_link": "two publishers on /tf"},
    ),
    "two that began apart": (
        [("/tf", LEAD, n) for n in (900, 1, 901, 2, 902, 3)],
        {"lead/base_link": "two publishers on /tf"},
    ),
    "two parents": (
        [("/tf", LEAD, 1), ("/tf", ("odom", "/lead/base_link"), 2)],
        {"lead/base_link": "two parents, map and odom"},
    ),
    "two parents, one static": (
        [("/tf", LEAD, 1), ("/tf_static", ("odom", "lead/base_link"), 1)],
        {"lead/base_link": "two parents, map and odom"},
    ),
    "static and moving": (
        [("/tf", LEAD, 1), ("/tf_static", LEAD, 1)],
        {"lead/base_link": "a publisher on /tf and one on /tf_static"},
    ),
    "the same static frame of two terrain nodes": (
        [("/tf_static", ("map", "map_ned"), 1), ("/tf_static", ("map", "map_ned"), 1)],
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_frames_in_two_places(case: str) -> None:
    messages, expected = CASES[case]
    frames = graph_watch.HeardFrames()
    for topic, edge, number in messages:
        frames.hear(topic, transforms(edge), number)
    assert frames.conflicts() == expected

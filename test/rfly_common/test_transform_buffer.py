# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The transform buffer on trees that can be computed by hand."""

import math

import numpy as np
import pytest

from rfly_common.errors import FrameError
from rfly_common.transform_buffer import KEEP_NS, TransformBuffer

H = math.sqrt(0.5)
LEFT = (0.0, 0.0, H, H)
"""a quarter turn to the left"""
NONE = (0.0, 0.0, 0.0, 1.0)


def apply(transform, point):
    from rfly_common.frames import quat_rotate

    return quat_rotate(transform.quat_xyzw, np.array(point, float)) + transform.translation


def test_a_chain_by_hand():
    """base 1 m ahead of odom, odom turned left and 10 m east of map: a point 2 m ahead of base."""
    buffer = TransformBuffer()
    buffer.add("map", "odom", 5, (10, 0, 0), LEFT)
    buffer.add("odom", "base", 5, (1, 0, 0), NONE)
    np.testing.assert_allclose(
        apply(buffer.lookup("map", "base", 5), (2, 0, 0)), (10, 3, 0), atol=1e-12
    )
    np.testing.assert_allclose(
        apply(buffer.lookup("base", "map", 5), (10, 3, 0)), (2, 0, 0), atol=1e-12
    )


def test_siblings_meet_at_their_parent():
    """Frames of two vehicles are connected through the map."""
    buffer = TransformBuffer()
    buffer.add("map", "a", 1, (1, 0, 0), NONE)
    buffer.add("map", "b", 1, (0, 1, 0), LEFT)
    np.testing.assert_allclose(apply(buffer.lookup("a", "b"), (1, 0, 0)), (-1, 2, 0), atol=1e-12)


def test_between_two_times_it_interpolates_the_short_way():
    """Half-way between no turn and a quarter turn (given with the opposite sign) is an eighth."""
    buffer = TransformBuffer()
    buffer.add("map", "odom", 100, (0, 0, 0), NONE)
    buffer.add("map", "odom", 200, (2, 4, 6), (0, 0, -H, -H))
    half = buffer.lookup("map", "odom", 150)
    np.testing.assert_allclose(half.translation, (1, 2, 3))
    expected = (0, 0, math.sin(math.pi / 8), math.cos(math.pi / 8))
    np.testing.assert_allclose(half.quat_xyzw, expected, atol=1e-12)


def test_later_holds_and_earlier_fails():
    """A pose that overtakes its transform uses the newest; one older than all fails and says by how
    much.
    """
    buffer = TransformBuffer()
    buffer.add("map", "odom", 2_000_000_000, (1, 0, 0), NONE)
    np.testing.assert_array_equal(
        buffer.lookup("map", "odom", 9_000_000_000).translation, (1, 0, 0)
    )
    with pytest.raises(FrameError, match=r"'odom'.*1\.500 s"):
        buffer.lookup("map", "odom", 500_000_000)


def test_static_transforms_hold_for_all_times_and_survive_clear():
    """A jump of the clock removes the moving tree; the static one stays."""
    buffer = TransformBuffer()
    buffer.add("map", "map_ned", 0, (0, 0, 0), (H, H, 0, 0), static=True)
    buffer.add("map", "odom", 7, (0, 0, 0), NONE)
    buffer.clear()
    np.testing.assert_allclose(
        apply(buffer.lookup("map", "map_ned", 12345), (1, 2, 3)), (2, 1, -3), atol=1e-12
    )
    with pytest.raises(FrameError, match=r"'odom'.*no transform names it"):
        buffer.lookup("map", "odom")


def test_history_is_bounded():
    """Only the last ten seconds are kept."""
    buffer = TransformBuffer()
    for i in range(100):
        buffer.add("map", "odom", i * 1_000_000_000, (i, 0, 0), NONE)
    newest = 99_000_000_000
    assert buffer.lookup("map", "odom", newest - KEEP_NS).translation[0] == 89
    with pytest.raises(FrameError):
        buffer.lookup("map", "odom", newest - KEEP_NS - 1)


def test_frames_that_fall_silent_are_forgotten():
    """20,000 vehicles come and go, each with a name of its own.

    A name is forgotten ten minutes after its last transform.
    """
    wall = 0.0
    buffer = TransformBuffer(clock=lambda: wall)
    buffer.add("map", "base", 1, (1, 0, 0), NONE, static=True)
    buffer.add("map", "slow", 1_000_000_000, (2, 0, 0), NONE)
    buffer.add("map", "slow", 2_000_000_000, (3, 0, 0), NONE)

    for number in range(20_000):
        wall += 1.0
        buffer.add("map", f"v{number}", number * 1_000_000_000, (number, 0, 0), NONE)
        if number == 30:  # silent: its newest place is kept, and no way to it
            assert buffer.lookup("map", "slow").translation[0] == 3
            with pytest.raises(FrameError, match=r"its oldest transform is 0\.500 s younger"):
                buffer.lookup("map", "slow", 1_500_000_000)
        if number == 595:
            assert buffer.lookup("map", "v0").translation[0] == 0

    assert buffer.lookup("map", "base").translation[0] == 1
    assert 600 <= len(buffer.frames()) - 2 <= 612
    with pytest.raises(FrameError, match="'slow'"):
        buffer.lookup("map", "slow")


@pytest.mark.parametrize(
    ("translation", "rotation"),
    [
        ((math.nan, 0, 0), NONE),
        ((0, math.inf, 0), NONE),
        ((0, 0, 0), (0, 0, 0, math.nan)),
        ((0, 0, 0), (0, 0, 0, 1e200)),
        # a squared norm of 1.01 and 0.99 is just too far off
        ((0, 0, 0), (0, 0, 0, math.sqrt(1.01 + 1e-9))),
        ((0, 0, 0), (0, 0, 0, math.sqrt(0.99 - 1e-9))),
        ((0, 0, 0), (0, 0, 0, 0)),
        ((0, 0, 0), (0, 0, 0, 1.1)),
        ((0, 0), NONE),
    ],
)
def test_what_is_no_rigid_motion_is_refused(translation, rotation):
    """NaN, a zero quaternion, a quaternion off unit norm, a wrong length."""
    buffer = TransformBuffer()
    with pytest.raises(FrameError, match="no rigid motion"):
        buffer.add("map", "odom", 1, translation, rotation)
    assert buffer.frames() == set()


@pytest.mark.parametrize("squared", [1.0099, 0.9901])
def test_a_rotation_is_accepted_as_in_tf2_and_normalised(squared):
    """tf2 accepts a squared norm within 0.01 of 1."""
    buffer = TransformBuffer()
    buffer.add("map", "odom", 1, (0, 0, 0), (0, 0, math.sqrt(squared), 0))
    assert buffer.lookup("map", "odom").quat_xyzw.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(("parent", "child"), [("map", "map"), ("", "map"), ("map", "")])
def test_a_transform_joins_two_named_frames(parent, child):
    buffer = TransformBuffer()
    with pytest.raises(FrameError, match="expected two different frames"):
        buffer.add(parent, child, 1, (0, 0, 0), NONE)


def test_a_chain_of_a_thousand_transforms_is_the_longest():
    """tf2's MAX_GRAPH_DEPTH."""
    buffer = TransformBuffer()
    for number in range(1, 1002):
        buffer.add(f"f{number - 1}", f"f{number}", 1, (1, 0, 0), NONE, static=True)
    assert buffer.lookup("f0", "f1000").translation[0] == 1000.0
    with pytest.raises(FrameError, match="more than 1,000 transforms"):
        buffer.lookup("f0", "f1001")


def test_a_loop_is_an_error_not_a_hang():
    """Two frames that are each other's parent."""
    buffer = TransformBuffer()
    buffer.add("a", "b", 1, (0, 0, 0), NONE)
    buffer.add("b", "a", 1, (0, 0, 0), NONE)
    with pytest.raises(FrameError, match="loop"):
        buffer.lookup("map", "a")


def test_a_publisher_whose_clock_was_set_back_by_seconds():
    """The new clock's transforms count after a quarter of a second, though older are newer."""
    now = 0.0
    buffer = TransformBuffer(clock=lambda: now)
    for k in range(5):
        now = 0.1 * k
        buffer.add("map", "odom", 10**9 * (100 + k), (k, 0, 0), NONE)
    for k in range(5):
        now = 0.5 + 0.1 * k
        buffer.add("map", "odom", 10**9 * (96 + k), (50 + k, 0, 0), NONE)
    assert buffer.lookup("map", "odom").translation[0] == 54
    assert buffer.lookup("map", "odom", 10**9 * 100).translation[0] == 54
    with pytest.raises(FrameError, match="younger"):
        buffer.lookup("map", "odom", 10**9 * 98)

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Poses between poses: positions on lines, attitudes against SciPy's slerp, unknown times."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from rfly_autonomy.mapping.pose_track import PoseTrack
from rfly_common.errors import FrameError

SECOND = 1_000_000_000


def test_poses_between_are_on_lines_and_turn_at_constant_rate():
    rng = np.random.default_rng(2)
    times = np.array([0.0, 0.1, 0.25, 0.4])
    turns = Rotation.random(4, random_state=5)
    places = rng.normal(size=(4, 3))
    signs = np.array([1, -1, -1, 1])  # q and -q are the same attitude
    track = PoseTrack()
    for k in (2, 0, 3, 1):  # in any order
        track.add(
            round(times[k] * SECOND),
            places[k],
            signs[k] * turns[k].as_quat(),
        )
    asked = np.array([0.0, 0.03, 0.1, 0.17, 0.2499, 0.4, 0.33])
    position, turn = track.at(np.round(asked * SECOND).astype(np.int64))
    for axis in range(3):
        assert position[:, axis] == pytest.approx(
            np.interp(asked, times, places[:, axis]), abs=1e-12
        )
    apart = (Slerp(times, turns)(asked).inv() * Rotation.from_quat(turn)).magnitude()

    assert apart.max() < 1e-7
    assert track.newest_ns == round(0.4 * SECOND)


def test_an_attitude_that_stays_stays():
    track = PoseTrack()
    for k in range(3):
        track.add(
            k * SECOND // 10,
            (k, 0, 0),
            (0, 0, 0.6, 0.8),
        )
    position, turn = track.at(np.array([50_000_000, 130_000_000]))
    assert position[:, 0] == pytest.approx([0.5, 1.3])
    expected = np.tile((0, 0, 0.6, 0.8), (2, 1))
    assert turn == pytest.approx(expected)


def test_unknown_times():
    track = PoseTrack(max_gap=0.5)
    with pytest.raises(FrameError, match="no pose is known yet"):
        track.at(np.array([1]))
    track.add(10 * SECOND, (0, 0, 0), (0, 0, 0, 1))
    assert track.at(np.array([10 * SECOND]))[0].tolist() == [[0, 0, 0]]

    track.add(11 * SECOND, (1, 0, 0), (0, 0, 0, 1))
    for asked, expected in (
        ([9 * SECOND], r"a time 1\.000 s before the oldest pose"),
        ([10 * SECOND, 11 * SECOND + 5_000_000], r"a time 0\.005 s after the newest pose"),
        ([10 * SECOND + 1], r"between two poses that are 1\.000 s apart, more than 0\.5 s"),
    ):
        with pytest.raises(FrameError, match=expected):
            track.at(np.array(asked))
    assert track.at(np.array([10 * SECOND, 11 * SECOND]))[0][:, 0].tolist() == [0, 1], (
        "at the poses themselves"
    )

    track.add(11 * SECOND, (2, 0, 0), (0, 0, 0, 1))
    assert track.at(np.array([11 * SECOND]))[0][0, 0] == 2

    track.add(25 * SECOND, (3, 0, 0), (0, 0, 0, 1))
    assert len(track) == 1, "ten seconds are kept"
    assert [array.shape for array in track.at(np.array([], np.int64))] == [(0, 3), (0, 4)]

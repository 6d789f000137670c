# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A goal's result whose first response is lost."""

from __future__ import annotations

import pytest

from rfly_common.ros import endpoints
from rfly_common.ros.endpoints import GoalResult


class Future:
    def __init__(self, value=None):
        self.value = value

    def done(self):
        return self.value is not None

    def result(self):
        return self.value


class Goal:
    """A goal whose first response is lost."""

    def __init__(self):
        self.asked = []

    def get_result_async(self):
        self.asked.append(Future("reached" if self.asked else None))
        return self.asked[-1]


def test_a_lost_response_is_asked_for_again(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(endpoints.time, "monotonic", lambda: now[0])
    goal = Goal()
    result = GoalResult(goal)
    for seconds, done in ((0.0, False), (9.9, False), (10.1, True)):
        now[0] = 100.0 + seconds
        assert result.done() is done
    assert result.result() == "reached"
    assert len(goal.asked) == 2


def test_one_answer_is_enough():
    goal = Goal()
    result = GoalResult(goal)
    with pytest.raises(StopIteration):
        result.result()
    goal.asked[0].value = "at once"
    assert result.done()
    assert result.result() == "at once"
    assert len(goal.asked) == 1

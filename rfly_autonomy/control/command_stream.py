# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Watch over a stream of commands, by which a link that loses most of them is found.

Theory of operation. A sender has a rate. The stamps of its commands show it: once ten gaps between
them are alike, their mean is the period. A link that loses commands by chance leaves gaps of one,
two or many periods, in any order. So it loses most commands if fewer than half of those that were
due have come, and the long gaps differ. A stream that stops and goes on has one long gap, the long
gaps of one that becomes slower are alike, and one that becomes faster has none. A gap beyond the
receiver's timeout is a pause, unless the stream itself is slow. A sender that sends by events, such
as a joystick, or that becomes slow and uneven has gaps of any length, which are no whole numbers of
periods. A few of them may be by accident, so few have to fit better than many; and after a rest, in
which a sender may have changed to events, one gap has to be a period first. If accident has its way
all the same, that ends when none of many gaps is as short as a period: the sender has another one
now, or none.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise

RECENT = 10
"""Number of gaps by which a stream is judged, and that have to be alike to show its period."""

ALIKE = 1.5
"""Ratio of two gaps below which they are alike. Below it a gap to the period lacks no command."""

LOSSY_SHARE = 0.5
"""Share of the due commands that come below which most are lost."""

SOUND_SHARE = 0.75
"""Share of the due commands that come above which the link is sound again."""

CHANGES = 2
"""Number of times that a long gap follows one of another length by which commands are lost.

A stream that changes its rate does so once.
"""

FORGOTTEN = 100
"""Number of gaps, all longer than a period that the stream has shown, after which it is forgotten.

A link that loses nine of ten commands leaves such a row once in 40,000 gaps.
"""

ACCIDENT = 1e-4
"""Probability below which it is no accident that long gaps are near whole numbers of periods."""

TIMEOUT = 0.5
"""Time after which the controllers take a command for lost, s, where none is set."""

PAUSE = 1.2
"""Gap after which a stream begins anew, in timeouts: its sender may have stopped on purpose."""

REST = 2.4
"""Gap after which the stream has to show its period by one gap again, in timeouts."""

SILENCE = 4.0
"""Time without a command after which nothing is known of the link, in timeouts."""

MOST_LOST = 12.0
"""Gap of a slow stream that is no pause yet, in periods: it lacks eleven commands."""


class CommandStream:
    """Stream of commands from one sender."""

    def __init__(self, period: float = math.nan, timeout: float = TIMEOUT) -> None:
        """`period`: known time between commands, s; NaN: the stream shows it.

        `timeout`: time after which the receiver takes a command for lost, s.
        """
        self._timeout = timeout
        self._period = period
        self._is_known = not math.isnan(period)
        self._long_gaps = 0
        """Number of gaps since the last one of a period."""
        self._has_rested = False
        """True from a rest to the next gap of a period."""

        self._stamp = math.nan
        self._heard_at = -math.inf
        self._loses_most = False
        self._gaps: deque[float] = deque(maxlen=RECENT)
        """Last times between two stamps, s."""

    def loses_most(self, time: float) -> bool:
        """Return whether most commands are lost, as those until `time`, s, have shown."""
        return self._loses_most and 0.0 <= time - self._heard_at <= self._longest(SILENCE)

    def rest(self) -> None:
        """Begin anew with the next command: its sender had nothing to answer for a while."""
        self._stamp = math.nan

    def hear(self, stamp: float, time: float) -> None:
        """Take note of a command by its stamp, s. `time`: of the receiver's clock, s.

        Two commands of one stamp are one.
        """
        gap = stamp - self._stamp
        if gap == 0.0:
            return
        silence = self._longest(SILENCE)
        if not -silence < gap <= silence:
            self._loses_most = False
        rest = self._longest(REST)
        self._has_rested |= not -rest < gap <= rest
        self._stamp = stamp
        self._heard_at = time
        pause = SILENCE * self._timeout if math.isnan(self._period) else self._longest(PAUSE)
        if 0.0 < gap <= pause:
            self._gaps.append(gap)
            self._judge()
        else:
            self._gaps.clear()

    def _longest(self, timeouts: float) -> float:
        """Return a time of so many timeouts, s.

        It is longer for a slow stream, which pauses by this measure with each command that is lost.
        """
        is_slow = 2.0 * self._period > PAUSE * self._timeout
        return max(timeouts * self._timeout, MOST_LOST * self._period if is_slow else 0.0)

    def _judge(self) -> None:
        """Learn the period from gaps that are alike, or find the share of commands that came."""
        gaps = self._gaps
        self._long_gaps += 1
        if gaps[-1] < ALIKE * self._period:
            self._long_gaps = 0
            self._has_rested = False
        if self._long_gaps >= FORGOTTEN and not self._is_known:
            self._period = math.nan
            self._loses_most = False
        way = sum(gaps)
        share = len(gaps) * self._period / way
        if share < LOSSY_SHARE and self._changes() >= CHANGES and self._keeps_time():
            self._loses_most = True
        if len(gaps) < RECENT:
            return

        is_regular = max(gaps) < ALIKE * min(gaps)
        if is_regular:
            self._period = way / RECENT
            self._long_gaps = 0
            self._has_rested = False
        if is_regular or share > SOUND_SHARE:
            self._loses_most = False

    def _keeps_time(self) -> bool:
        """Return whether long gaps are whole numbers of periods, as those that losses leave.

        Those of a known period need not be. Of n gaps of any length the sum of the distances from
        whole numbers is below s periods, s ≤ ½, with a probability of (2 s)ⁿ/n!.
        """
        if self._is_known:
            return True
        periods = [gap / self._period for gap in self._gaps if gap > ALIKE * self._period]
        off = sum(abs(count - round(count)) for count in periods)
        chance = (2.0 * off) ** len(periods) / math.factorial(len(periods))
        return not self._has_rested and chance < ACCIDENT

    def _changes(self) -> int:
        """Return how often a long gap follows one of another length."""
        long = ALIKE * self._period
        return sum(
            min(pair) > long and max(pair) >= ALIKE * min(pair) for pair in pairwise(self._gaps)
        )

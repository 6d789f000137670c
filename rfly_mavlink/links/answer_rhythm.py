# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ticks of a lock-step that an autopilot answers, learned from its answers.

Theory of operation. An autopilot may compute its outputs less often than its sensors arrive: PX4's
rover at 100 Hz with sensors at 250 Hz answers after 3 ticks, then after 2, and so on. A simulation
that waits for each tick's answer would stand still for the whole time limit of most ticks.

`AnswerRhythm` counts the ticks from one answered tick to the next, the gaps. At first every tick is
expected to be answered. If the prediction fails, the rhythm is being learned, and every tick is
waited for, with a short limit. It is known again as soon as the last gaps repeat a pattern. From
then on only the ticks at the end of a gap are waited for.

Answers arrive in the order of their ticks. Those to ticks that were not waited for are kept until
the answer to a tick that is: what has been learned then depends on the answers and not on the wall
time of their arrival, and a run gives the same result on a fast and on a slow computer.
"""

from __future__ import annotations

from collections import deque

EVERY_TICK = (1,)
"""Pattern of an autopilot that answers each tick."""

FEWEST_GAPS = 4
"""Gaps that are needed to know a pattern."""

REPEATS = 3
"""Repetitions of a pattern that are needed to know it."""

LONGEST_PATTERN = 8
"""Gaps in the longest pattern."""

MOST_TICKS = 1000
"""Ticks without an answer that are remembered."""


class AnswerRhythm:
    """Pattern of the ticks that are answered."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin with an autopilot that is expected to answer each tick."""
        self.pattern: tuple[int, ...] = EVERY_TICK
        """Gaps that repeat, in ticks, the next one first; empty while they are being learned."""

        self._gaps: deque[int] = deque(maxlen=REPEATS * LONGEST_PATTERN)
        self._ticks: deque[int] = deque(maxlen=MOST_TICKS)
        """Times of the ticks since the last one that was answered, µs."""

        self._answers: list[int] = []
        """Times of the answers since the last tick that was waited for, µs."""

    @property
    def expects_answer(self) -> bool:
        """True if the newest tick has to be waited for."""
        return not self.pattern or len(self._ticks) >= self.pattern[0]

    @property
    def is_sure(self) -> bool:
        """True if the pattern is known, and no tick outside it has been answered."""
        return bool(self.pattern) and all(answer == self._ticks[-1] for answer in self._answers)

    def __str__(self) -> str:
        """Return the rhythm in words, such as "every 4th tick"."""
        if not self.pattern:
            return "being learned"
        if len(self.pattern) > 1:
            return f"{len(self.pattern)} of {sum(self.pattern)} ticks"
        gap = self.pattern[0]
        ending = {1: "st", 2: "nd", 3: "rd"}.get(gap % 10 if gap // 10 % 10 != 1 else 0, "th")
        return "every tick" if gap == 1 else f"every {gap}{ending} tick"

    def tick(self, time_usec: int) -> None:
        """Note that a tick's state has been sent."""
        self._ticks.append(time_usec)

    def answered(self, time_usec: int) -> None:
        """Note an answer, to a tick that is waited for or not; other times are no answers."""
        if time_usec in self._ticks and time_usec not in self._answers:
            self._answers.append(time_usec)

    def settle(self) -> None:
        """Learn from the answers, at the end of a tick that was waited for."""
        missed = not self._ticks or self._ticks[-1] not in self._answers
        as_predicted = self.is_sure and not missed
        if missed and self.pattern:
            self._gaps.clear()

        for time_usec in self._answers:
            self._close_gap(time_usec)
        self._answers.clear()

        if as_predicted:
            self.pattern = (*self.pattern[1:], self.pattern[0])
        else:
            self.pattern = self._repeated()

    def _close_gap(self, time_usec: int) -> None:
        """Count the ticks up to an answered one."""
        if time_usec not in self._ticks:  # a later one has been answered before
            return
        gap = self._ticks.index(time_usec) + 1
        for _ in range(gap):
            self._ticks.popleft()
        self._gaps.append(gap)

    def _repeated(self) -> tuple[int, ...]:
        """Return the shortest pattern that the last gaps repeat, the next gap first, or nothing."""
        gaps = list(self._gaps)
        for length in range(1, LONGEST_PATTERN + 1):
            needed = max(FEWEST_GAPS, REPEATS * length)
            if len(gaps) < needed:
                return ()
            last = gaps[-needed:]
            if all(gap == before for gap, before in zip(last[length:], last, strict=False)):
                return tuple(last[-length:])
        return ()

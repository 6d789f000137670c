"""Lock-step barrier: all messages of a tick received, so that runs repeat bit by bit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence


class TickGate:
    """Counts what comes in, and opens for a tick once all of it is there.

    `watched`: indices of the tick's counts that are waited for; `answers`: whether an answer of
    another node to the tick (`answered`) is waited for too, such as the estimator's. The first tick
    that is heard opens at once: what was published before cannot be waited for; so does one that is
    told a second time, because nobody answered it.
    """

    def __init__(
        self, watched: Sequence[int], on_tick: Callable[[int], None], answers: bool = False
    ) -> None:
        self._watched = tuple(watched)
        self._on_tick = on_tick
        self._answers = answers
        self._heard = dict.fromkeys(self._watched, 0)
        self._due = dict.fromkeys(self._watched, 0)
        self._waiting: deque[tuple[int, dict[int, int]]] = deque()
        self._answered = self._opened = self._last = -1
        self.repeated = 0
        """ticks that were told again before they opened: something was lost"""

    def heard(self, index: int) -> None:
        """A message of the topic with this index has been taken in."""
        self._heard[index] += 1
        self._open()

    def answered(self, stamp_ns: int) -> None:
        """The answer of the other node to the tick with this stamp has been taken in."""
        self._answered = stamp_ns
        self._open()

    def tick(self, stamp_ns: int, count: Sequence[int]) -> None:
        """The simulation says that a tick has ended, and how many messages it has published in it."""
        if stamp_ns < self._last:  # the simulation was reset
            self._waiting.clear()
            self._answered = self._opened = self._last = -1
        if stamp_ns == self._last or self._last < 0:
            if self._waiting:
                self.repeated += 1
            self._waiting.clear()
            self._due = dict(self._heard)
            self._last = stamp_ns
            if self._answers and self._answered < stamp_ns:
                self._waiting.append((stamp_ns, dict(self._due)))
            else:
                self._pass(stamp_ns)
            return
        self._last = stamp_ns
        for index in self._watched:
            self._due[index] += int(count[index])
        self._waiting.append((stamp_ns, dict(self._due)))
        self._open()

    def _open(self) -> None:
        while self._waiting:
            stamp_ns, due = self._waiting[0]
            if any(self._heard[index] < number for index, number in due.items()):
                return
            if self._answers and self._answered < stamp_ns:
                return
            self._waiting.popleft()
            self._pass(stamp_ns)

    def _pass(self, stamp_ns: int) -> None:
        self._opened = stamp_ns
        self._on_tick(stamp_ns)

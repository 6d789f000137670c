# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lock-step barrier: all messages of a tick received, so that runs repeat bit by bit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence


class TickGate:
    """Gate that opens for a tick as soon as all messages of the tick have been received.

    `watched`: indices of the counts to wait for; `answers`: topics of other nodes' answers to
    the tick (`answered`), which it waits for as well, such as the estimator's. The first tick opens
    at once, because the gate can't wait for messages from before. A tick that is announced a second
    time, because it was not answered, opens at once too.

    `answer(stamp_ns)` is called when the gate opens for a tick, and `again(stamp_ns)` (by default
    `answer`) when it opens once more, as the answer was lost. `begin()` is called when a new tick
    is announced, and before it `reset()` if the simulation was reset: that tick is announced before
    any sample.
    """

    def __init__(
        self,
        watched: Iterable[int],
        answer: Callable[[int], None],
        answers: Sequence[str] = (),
        *,
        again: Callable[[int], None] | None = None,
        begin: Callable[[], None] = lambda: None,
        reset: Callable[[], None] = lambda: None,
    ) -> None:
        self._watched = tuple(watched)
        self._answer = answer
        self._again = again or answer
        self._begin = begin
        self._reset = reset
        self._answered = dict.fromkeys(answers, -1)
        self._heard = dict.fromkeys(self._watched, 0)
        self._due = dict.fromkeys(self._watched, 0)
        self._waiting: deque[tuple[int, dict[int, int]]] = deque()
        self._opened = -1
        self._last = -1
        self.repeated = 0
        """Number of ticks that were announced again before they opened: a message was lost."""

    def heard(self, index: int) -> None:
        """Count a received message of the topic with this index."""
        self._heard[index] += 1
        self._open()

    def answered(self, topic: str, stamp_ns: int) -> None:
        """Note the answer of another node to the tick with this stamp."""
        self._answered[topic] = stamp_ns
        self._open()

    def tick(self, stamp_ns: int, count: Sequence[int]) -> None:
        """Note that a tick has ended, with the numbers of messages published in it."""
        if stamp_ns < self._last:  # the simulation was reset
            self._waiting.clear()
            self._answered = dict.fromkeys(self._answered, -1)
            self._opened = -1
            self._last = -1
            self._reset()
        if stamp_ns != self._last:
            self._begin()
        if stamp_ns == self._last or self._last < 0:
            self._restart(stamp_ns)
            return
        self._last = stamp_ns

        for index in self._watched:
            self._due[index] += int(count[index])
        self._waiting.append((stamp_ns, dict(self._due)))
        self._open()

    def _restart(self, stamp_ns: int) -> None:
        """Wait for no message of the first tick, or of a tick that is announced again."""
        if self._waiting:
            self.repeated += 1
        self._waiting.clear()
        self._due = dict(self._heard)
        self._last = stamp_ns
        if self._lacks_answer(stamp_ns):
            self._waiting.append((stamp_ns, dict(self._due)))
        else:
            self._pass(stamp_ns)

    def _lacks_answer(self, stamp_ns: int) -> bool:
        """Return whether another node has not answered this tick yet."""
        return any(answered < stamp_ns for answered in self._answered.values())

    def _open(self) -> None:
        """Open for all waiting ticks that are complete, in their order."""
        while self._waiting:
            stamp_ns, due = self._waiting[0]
            if any(self._heard[index] < number for index, number in due.items()):
                return
            if self._lacks_answer(stamp_ns):
                return
            self._waiting.popleft()
            self._pass(stamp_ns)

    def _pass(self, stamp_ns: int) -> None:
        """Open for a tick. Where its answer raises, it is answered anew the next time."""
        if stamp_ns == self._opened:
            self._again(stamp_ns)
        else:
            self._answer(stamp_ns)
            self._opened = stamp_ns

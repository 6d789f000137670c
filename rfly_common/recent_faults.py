# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Faults of input that go on: each kind of each source is told once. No ROS."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from rfly_common.diagnostic_reasons import Notice

SHOWN_S = 5.0
"""Time that a fault lasts after it was last seen, s."""
MOST_OF_KIND = 10
"""Faults of one kind that are told."""
MOST_FAULTS = 40
"""Faults that are told; a sender who invents kinds or subjects fills neither memory nor log."""
LONGEST_TEXT = 300
"""Characters of a fault's text and subject: they may quote a message."""
_VALUES = re.compile(r"'[^']*'|\b(?:nan|inf)\b|\d[\w.+-]*|[^\w']+")
"""Parts of a sentence that differ from one message to the next, and what separates words."""


class RecentFaults:
    """Faults by kind, subject and sentence, whose values may change; each with its newest text.

    `clock`: steady time, s.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._faults: dict[tuple[str, str, str], tuple[float, Notice]] = {}

    def begin(self, kind: str, notice: Notice) -> bool:
        """Note that a fault was seen. Return whether it is new, so that it should be logged."""
        now = self._clock()
        notice = notice._replace(
            text=" ".join(notice.text.split())[:LONGEST_TEXT], subject=notice.subject[:LONGEST_TEXT]
        )
        key = (kind, notice.subject, _VALUES.sub("", notice.text))
        seen, _ = self._faults.get(key, (-SHOWN_S, None))
        is_new = now - seen >= SHOWN_S
        if is_new:
            self._forget(now)
            of_kind = sum(other == kind for other, _, _ in self._faults)
            if of_kind >= MOST_OF_KIND or len(self._faults) >= MOST_FAULTS:
                return False

        self._faults[key] = now, notice
        return is_new

    def notices(self) -> list[Notice]:
        """Return the faults that go on, the oldest first."""
        self._forget(self._clock())
        return [notice for _, notice in self._faults.values()]

    def _forget(self, now: float) -> None:
        self._faults = {
            key: fault for key, fault in self._faults.items() if now - fault[0] < SHOWN_S
        }

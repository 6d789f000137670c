# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Disarming of a vehicle that stays on the ground, after a landing or before its first flight."""

from __future__ import annotations

from typing import NamedTuple

from rfly_missions.mavlink.parameter_protocol import Tunables


class _Countdown(NamedTuple):
    """A time on the ground."""

    since: float
    """Simulated time at which it began, s."""
    duration: float
    """Time until the vehicle is disarmed, s."""


class AutoDisarm:
    """The countdown of one vehicle; `values` hold the two times."""

    def __init__(self, values: Tunables) -> None:
        self._values = values
        self._has_flown = False
        self._countdown: _Countdown | None = None

    def reset(self) -> None:
        """Forget the flight: the vehicle has been armed, or the clock has gone back."""
        self._has_flown = False
        self._countdown = None

    def is_due(self, now: float, in_air: bool, may_disarm: bool) -> bool:
        """Return whether the vehicle has stayed down long enough while `may_disarm` was true."""
        if in_air:
            self._has_flown = True
        if in_air or not may_disarm:
            self._countdown = None
            return False

        if self._countdown is None:
            values = self._values
            after_landing = values.disarm_after_landing
            duration = after_landing if self._has_flown else values.disarm_before_flight
            self._countdown = _Countdown(now, duration)
            self._has_flown = False
            return False
        if now - self._countdown.since < self._countdown.duration:
            return False
        self._countdown = None
        return True

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rate limit of each vehicle's datagrams, and the pause while RflySim3D loads a map.

Theory of operation. A state leaves at once if no pause holds all states back and its vehicle's last
departure is at least one interval ago. Otherwise it waits, in place of an older waiting state of
the same vehicle: no last pose is lost, and at most one state of each vehicle waits. The caller asks
`next_due_ns` when to call `due`, which releases the states whose time has come. A limiter with no
rate limit, no pause and no waiting state is `idle`, and its caller may skip it.

Times are nanoseconds of a steady clock, passed in by the caller.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rfly_common.state_sources import IdTable
from rfly_ue_bridge.codec.ned_states import NedStates

_NEVER_NS = -(2**62)


class RateLimiter:
    """Limiter of each vehicle's datagrams.

    `offer` returns the states that leave at once, `due` those that have waited long enough.
    """

    def __init__(self, rate_limit_hz: float = 0.0) -> None:
        self._interval_ns = round(1e9 / rate_limit_hz) if rate_limit_hz > 0 else 0
        self._hold_until_ns = _NEVER_NS
        self._waiting: NedStates | None = None
        self._sent = IdTable()  # (steady time of the last departure, not used)
        self.superseded = 0
        """Number of states that newer ones replaced while they waited."""
        self.idle = True
        """True while nothing is limited, paused or waiting.

        A state may then leave without a call of `offer`.
        """
        self._note_idle()

    def hold(self, until_ns: int) -> None:
        """Hold all states back until that time."""
        self._hold_until_ns = max(self._hold_until_ns, until_ns)
        self._note_idle()

    def offer(self, states: NedStates, steady_ns: int) -> NedStates:
        """Return the states that leave now.

        The others wait, in place of older states of the same vehicles.
        """
        self._end_hold(steady_ns)
        if self.idle or len(states) == 0:
            return states

        # newer states replace waiting ones
        if self._waiting is not None:
            replaced = np.isin(self._waiting.id, states.id)
            self.superseded += int(np.count_nonzero(replaced))
            self._waiting = _or_none(self._waiting.select(~replaced))
            self._note_idle()

        ready = self._ready(states, steady_ns)
        if ready.all():
            return states

        held_back = states.select(~ready)
        self._waiting = held_back if self._waiting is None else self._waiting.concatenate(held_back)
        self._note_idle()
        return states.select(ready)

    def forget(self, vehicle_ids: NDArray[np.int32]) -> None:
        """Drop the waiting states of these vehicles."""
        if self._waiting is not None:
            self._waiting = _or_none(self._waiting.select(~np.isin(self._waiting.id, vehicle_ids)))
            self._note_idle()

    def due(self, steady_ns: int) -> NedStates | None:
        """Return the waiting states that may leave now, if any."""
        self._end_hold(steady_ns)
        if self._waiting is None:
            return None

        ready = self._ready(self._waiting, steady_ns)
        out = _or_none(self._waiting.select(ready))
        self._waiting = _or_none(self._waiting.select(~ready))
        self._note_idle()
        return out

    def next_due_ns(self) -> int | None:
        """Return the time of the next call of `due`; None while nothing waits."""
        if self._waiting is None:
            return None
        if self._interval_ns == 0:
            return self._hold_until_ns
        rows = self._sent.rows(self._waiting.id, (_NEVER_NS, 0))
        return max(int(self._sent.values[rows, 0].min()) + self._interval_ns, self._hold_until_ns)

    def drop_stale(self, steady_ns: int) -> None:
        """Forget the last departures of vehicles whose next state would leave at once anyway.

        Call it now and then.
        """
        self._sent.keep(steady_ns - self._sent.values[:, 0] < self._interval_ns)

    def _end_hold(self, steady_ns: int) -> None:
        if steady_ns >= self._hold_until_ns:
            self._hold_until_ns = _NEVER_NS
            self._note_idle()

    def _note_idle(self) -> None:
        self.idle = (
            self._waiting is None and self._interval_ns == 0 and self._hold_until_ns == _NEVER_NS
        )

    def _ready(
        self, states: NedStates, steady_ns: int
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Return the mask of states that may leave now, and note their departure."""
        if self._hold_until_ns != _NEVER_NS:
            return np.zeros(len(states), np.bool_)
        if self._interval_ns == 0:
            return np.ones(len(states), np.bool_)
        rows = self._sent.rows(states.id, (_NEVER_NS, 0))
        ready = steady_ns - self._sent.values[rows, 0] >= self._interval_ns
        self._sent.values[rows[ready], 0] = steady_ns
        return ready


def _or_none(states: NedStates) -> NedStates | None:
    return states if len(states) else None

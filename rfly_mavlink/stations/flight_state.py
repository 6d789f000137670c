# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""States of a vehicle that MAVLink's ground stations fly, and the events that change them.

Theory of operation: a vehicle is disarmed, or it is armed and in one of three states. IDLE means
that nothing requested here is being carried out: it stands, holds, or is flown by mission_node's
other clients. FLYING means that a request is being carried out: a take-off, a way, a mission, or
set-points. PAUSED means that a mission is held and can be resumed where it was.

FlightLogic changes its state by `TRANSITIONS` alone. An event that the table does not list for a
state changes nothing: the end of a flight that has been dropped already, for example. The flight
mode that ground stations show is a second, independent value; a mode that moves the vehicle and is
selected while it is disarmed begins when it is armed. `AutoDisarm` disarms a vehicle that stays on
the ground, after a landing or before its first flight.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from rfly_mavlink.stations.parameter_protocol import Tunables


class FlightState(Enum):
    """The state of one vehicle."""

    DISARMED = auto()
    """It obeys nothing but requests to arm and to select a mode."""
    IDLE = auto()
    """It is armed, and nothing that was requested here is under way."""
    FLYING = auto()
    """It carries out a request."""
    PAUSED = auto()
    """It holds, and can resume its mission."""


class FlightEvent(Enum):
    """A cause of a transition."""

    ARM = auto()
    """It is armed, here or by its controller."""
    DISARM = auto()
    """It is disarmed, here or by its controller."""
    START = auto()
    """A flight is requested."""
    PAUSE = auto()
    """A hold interrupts the mission."""
    RESUME = auto()
    """The mission goes on."""
    END = auto()
    """The request is carried out, given up or dropped."""


TRANSITIONS: dict[FlightState, dict[FlightEvent, FlightState]] = {
    FlightState.DISARMED: {
        FlightEvent.ARM: FlightState.IDLE,
    },
    FlightState.IDLE: {
        FlightEvent.DISARM: FlightState.DISARMED,
        FlightEvent.START: FlightState.FLYING,
    },
    FlightState.FLYING: {
        FlightEvent.DISARM: FlightState.DISARMED,
        FlightEvent.START: FlightState.FLYING,
        FlightEvent.PAUSE: FlightState.PAUSED,
        FlightEvent.END: FlightState.IDLE,
    },
    FlightState.PAUSED: {
        FlightEvent.DISARM: FlightState.DISARMED,
        FlightEvent.START: FlightState.FLYING,
        FlightEvent.RESUME: FlightState.FLYING,
        FlightEvent.END: FlightState.IDLE,
    },
}
"""The next state, by state and event; an event that is missing changes nothing."""


def next_state(state: FlightState, event: FlightEvent) -> FlightState:
    """Return the state after an event."""
    return TRANSITIONS[state].get(event, state)


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

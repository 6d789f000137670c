# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""States of a vehicle that MAVLink's ground stations fly, their events, and the current mission.

Theory of operation: a vehicle is disarmed, or it is armed and in one of three states. IDLE means
that nothing requested here is being carried out: it stands, holds, or is flown by mission_node's
other clients. FLYING means that a request is being carried out: a take-off, a way, a mission, or
set-points. PAUSED means that a mission is held and can be resumed where it was.

FlightLogic changes its state by `TRANSITIONS` alone. An event that the table does not list for a
state changes nothing: the end of a flight that has been dropped already, for example. The flight
mode that ground stations show is a second, independent value; a mode that moves the vehicle and is
selected while it is disarmed begins when it is armed. `AutoDisarm` disarms a vehicle that stays on
the ground, after a landing or before its first flight. `PoseTracker` has its motion, from its poses
alone. `CurrentMission` is the mission that the ground station shows, and its progress.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_mavlink.stations.mission_rows import FlightPlan, MissionRow
from rfly_mavlink.stations.parameter_protocol import Tunables
from rfly_mavlink.stations.plan_rows import plan_id

SMOOTHING_S = 0.1
"""Time constant of velocity and rates, s."""
LONGEST_GAP_S = 1.0
"""Longest gap, s, over which the motion is known; after it velocity and rates restart at 0."""


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


@dataclass
class CurrentMission:
    """The mission that a ground station has uploaded or another client flies, and its progress."""

    rows: tuple[MissionRow, ...] = ()
    plan: FlightPlan | None = None
    """The plan of another client's mission, which is flown exactly; None: that of the rows."""
    seq: int = 0
    """The current row."""
    finished: bool = False
    """True once it has been flown to its end."""
    is_new: bool = False
    """True until another client's mission shows its progress."""
    reached: list[int] = field(default_factory=list)
    """Rows that were carried out and have not been reported yet."""

    @cached_property
    def id(self) -> int:
        """Number that is another one for other rows."""
        return plan_id(self.rows)

    def begin_at(self, seq: int) -> None:
        """Make a row the current one of a mission that is to be flown from there."""
        self.seq = seq
        self.finished = False

    def go_to(self, seq: int) -> None:
        """Make a row the current one; the one before is reached."""
        if seq != self.seq:
            self.reached.append(self.seq)
            self.seq = seq

    def follow_to(self, index: int) -> None:
        """Follow another client's mission to an item; the first one seen reaches no row."""
        row = min(index, max(0, len(self.rows) - 1))
        if self.is_new:
            self.seq = row
            self.is_new = False
        self.go_to(row)

    def finish(self) -> None:
        """End the mission; its current row is reached."""
        self.reached.append(self.seq)
        self.finished = True


class PoseTracker:
    """Velocity and turn rates of one vehicle.

    NED metres, body axes forward-right-down, radians, seconds.
    """

    def __init__(self) -> None:
        self.known = False
        self.time = math.nan
        """Time of the last pose, s."""
        self.position: Floats = np.zeros(3)
        """NED, m."""
        self.euler: Floats = np.zeros(3)
        """Roll, pitch, yaw, rad."""
        self.velocity: Floats = np.zeros(3)
        """NED, m/s."""
        self.rates: Floats = np.zeros(3)
        """Turn rates about the body's axes, rad/s."""

    def take(self, time: float, position: Any, euler: Any) -> None:
        """Take a pose (3,) (3,); of two with the same time the second counts."""
        new_position = np.asarray(position, float)
        new_euler = np.asarray(euler, float)
        dt = time - self.time if self.known else math.nan

        if not 0.0 <= dt <= LONGEST_GAP_S:
            self.velocity = np.zeros(3)
            self.rates = np.zeros(3)
        elif dt > 0.0:
            share = dt / (dt + SMOOTHING_S)
            turns = [math.remainder(a, 2.0 * math.pi) for a in (new_euler - self.euler).tolist()]
            velocity = (new_position - self.position) / dt
            rates = _body_rates(new_euler, np.array(turns) / dt)
            self.velocity = self.velocity + share * (velocity - self.velocity)
            self.rates = self.rates + share * (rates - self.rates)

        self.known = True
        self.time = time
        self.position = new_position
        self.euler = new_euler


def _body_rates(euler: Floats, rates: Floats) -> Floats:
    """Return the turn rates for the rates of roll, pitch and yaw.

    Beard & McLain, Small Unmanned Aircraft, 2012, equation 3.3 inverted.
    """
    roll, pitch, _ = euler.tolist()
    roll_rate, pitch_rate, yaw_rate = rates.tolist()
    return np.array(
        [
            roll_rate - yaw_rate * math.sin(pitch),
            pitch_rate * math.cos(roll) + yaw_rate * math.sin(roll) * math.cos(pitch),
            -pitch_rate * math.sin(roll) + yaw_rate * math.cos(roll) * math.cos(pitch),
        ]
    )

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Run clock of a fleet: common start, pause, reset, and changes of time scale without a jump.

Several nodes agree on the start through the topic `fleet_start`, in any order of arrival. A start
is a ROS time in whole microseconds, plus the number of the run (0 … 999) in its last three digits
of nanoseconds. A reset begins the next run. Of two starts the later run counts, and within one run
the earlier time: nodes that begin at once, reset at once or hear of it late all end at the same
start. `agreed_start` is commutative, associative and idempotent, as long as fewer than 500 resets
lie between what two nodes know.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from rfly_common.config.checks import finite_number
from rfly_common.vehicle_states import VehicleStates

# fastest pace, fleet seconds per second
MAX_TIME_SCALE = 1000.0
# units of time, ns
SECOND = 1_000_000_000
MICROSECOND = 1_000
# number of the run: modulo this
RUNS = 1000
LATEST_S = 2**31 - 1
"""Latest start, s: builtin_interfaces/Time counts seconds in 32 bits."""


@dataclass(frozen=True)
class RunClock:
    """Fleet time, s, as a function of node time, ns; immutable, every change returns a new clock.

    Fleet time is 0 until `start_ns` and then grows by `time_scale` seconds per second. A change of
    scale and a pause keep the fleet time of that moment, so that no vehicle jumps. Raises
    ConfigError for a scale outside 0 … 1000.
    """

    start_ns: int
    time_scale: float = 1.0
    """Fleet seconds per second of the node; 0 stands still."""
    running: bool = True
    from_ns: int | None = None
    """Node time at which the present pace began, ns; None: the start."""
    from_s: float = 0.0
    """Fleet time at `from_ns`, s."""

    def __post_init__(self) -> None:
        check_time_scale(self.time_scale)

    def fleet_time(self, now_ns: int) -> float:
        """Return the fleet time, s, at a node time."""
        return self.from_s + self.pace(now_ns) * (now_ns - self._from_ns) * 1e-9

    def pace(self, now_ns: int) -> float:
        """Return the fleet seconds per second just after a node time.

        The fleet's velocities are multiplied by this.
        """
        return self.time_scale if self.running and now_ns >= self._from_ns else 0.0

    def started(self, now_ns: int) -> RunClock:
        """Return the clock running from now; a running one is returned unchanged."""
        return self if self.running else dataclasses.replace(self._at(now_ns), running=True)

    def paused(self, now_ns: int) -> RunClock:
        """Return the clock standing still from now."""
        return dataclasses.replace(self._at(now_ns), running=False)

    def advanced(self, now_ns: int, seconds: float) -> RunClock:
        """Return the clock moved ahead by some seconds of fleet time at this node time."""
        return dataclasses.replace(self, from_ns=now_ns, from_s=self.fleet_time(now_ns) + seconds)

    def scaled(self, now_ns: int, time_scale: float) -> RunClock:
        """Return the clock with another pace from now."""
        return dataclasses.replace(self._at(now_ns), time_scale=time_scale)

    def restarted(self, start_ns: int) -> RunClock:
        """Return the clock of a fleet that starts again at a node time; a paused one waits."""
        return RunClock(start_ns, self.time_scale, self.running)

    @property
    def order(self) -> tuple[int, float, float, bool]:
        """Key that orders any two clocks of a run."""
        return (self._from_ns, self.from_s, self.time_scale, self.running)

    @property
    def _from_ns(self) -> int:
        return self.start_ns if self.from_ns is None else self.from_ns

    def _at(self, now_ns: int) -> RunClock:
        """Return the clock with its pace counted from now, or from its start if that is later."""
        if now_ns <= self.start_ns:
            return dataclasses.replace(self, from_ns=None, from_s=0.0)
        return dataclasses.replace(self, from_ns=now_ns, from_s=self.fleet_time(now_ns))


def check_time_scale(time_scale: float) -> None:
    """Raise ConfigError for a scale that is negative, too high or not a number."""
    finite_number("time_scale", time_scale, at_least=0.0, at_most=MAX_TIME_SCALE)


def states_at_pace(states: VehicleStates, pace: float) -> VehicleStates:
    """Return states sampled in fleet time with the velocities of an observer.

    These are the fleet's velocities times `pace`.
    """
    if pace == 1.0:
        return states

    velocity = None if states.velocity is None else states.velocity * np.float32(pace)
    angular_velocity = (
        None if states.angular_velocity is None else states.angular_velocity * np.float32(pace)
    )
    return dataclasses.replace(states, velocity=velocity, angular_velocity=angular_velocity)


def start_at_time(start_time: float) -> int:
    """Return the start, ns, of the first run at a ROS time, s.

    Raises ConfigError for a time that no message can carry.
    """
    finite_number("start_time", start_time, "s", at_least=0.0, at_most=LATEST_S)
    return round(start_time * 1e6) * MICROSECOND


def next_start(now_ns: int, known_ns: int | None = None, given_ns: int | None = None) -> int:
    """Return the start of a fleet that begins at a node time, ns.

    It is the given start if that is still to come, else the next whole second. The run is the one
    after the known start, or the first if no start is known.
    """
    run = 0 if known_ns is None else (run_number(known_ns) + 1) % RUNS
    if given_ns is not None and given_ns > now_ns:
        return given_ns - run_number(given_ns) + run
    return (now_ns // SECOND + 1) * SECOND + run


def run_number(start_ns: int) -> int:
    """Return the number of resets before this start, modulo 1000."""
    return start_ns % MICROSECOND


def agreed_start(one_ns: int, other_ns: int) -> int:
    """Return the one of two starts that counts."""
    runs_ahead = (run_number(one_ns) - run_number(other_ns)) % RUNS
    if runs_ahead == 0:
        return min(one_ns, other_ns)
    return one_ns if runs_ahead < RUNS // 2 else other_ns


def is_near(start_ns: int, now_ns: int) -> bool:
    """Return True if a start is near enough to now for a restarting fleet to use it unchanged."""
    return now_ns - SECOND <= start_ns <= now_ns + 2 * SECOND

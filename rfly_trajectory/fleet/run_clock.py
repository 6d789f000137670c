"""Run clock of a fleet: common start, pause, reset, and changes of time scale without a jump.

Several nodes agree on the start by the topic `fleet_start`, in any order of arrival. A start is a
ROS time in whole microseconds, plus the number of the run (0 … 999) in its last three digits of
nanoseconds. A reset begins the next run. Of two starts the later run counts, and of one run the
earlier time: whichever nodes begin at once, reset at once or hear of it late, all end at the same
start (`agreed_start` is commutative, associative and idempotent, as long as less than 500 resets
lie between what two nodes know).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from rfly_common.config.checks import finite_number
from rfly_common.vehicle_states import VehicleStates

MAX_TIME_SCALE = 1000.0
SECOND = 1_000_000_000
MICROSECOND = 1_000
RUNS = 1000
LATEST_S = 2**31 - 1
"""builtin_interfaces/Time counts seconds in 32 bits"""


@dataclass(frozen=True)
class RunClock:
    """Fleet time [s] as a function of node time [ns]; immutable, every change gives a new one.

    Fleet time is 0 until `start_ns` and goes on from there, `time_scale` seconds a second. A change
    of scale and a pause keep the fleet time of the moment, so that no vehicle jumps. Raises
    ConfigError for a scale outside 0 … 1000.
    """

    start_ns: int
    time_scale: float = 1.0
    """fleet seconds a second of the node; 0 stands still"""
    running: bool = True
    from_ns: int | None = None
    """node time from which the present pace holds; None: the start"""
    from_s: float = 0.0
    """fleet time then"""

    def __post_init__(self) -> None:
        check_time_scale(self.time_scale)

    def fleet_time(self, now_ns: int) -> float:
        """Seconds of fleet time at a node time."""
        return self.from_s + self.pace(now_ns) * (now_ns - self._from_ns) * 1e-9

    def pace(self, now_ns: int) -> float:
        """Fleet seconds a second just after a node time: what the fleet's velocities are to be
        multiplied with.
        """
        return self.time_scale if self.running and now_ns >= self._from_ns else 0.0

    def started(self, now_ns: int) -> RunClock:
        """Goes on from now; one that is running is returned as it is."""
        return self if self.running else dataclasses.replace(self._at(now_ns), running=True)

    def paused(self, now_ns: int) -> RunClock:
        """Stands still from now."""
        return dataclasses.replace(self._at(now_ns), running=False)

    def advanced(self, now_ns: int, seconds: float) -> RunClock:
        """The same, so much further now."""
        return dataclasses.replace(self, from_ns=now_ns, from_s=self.fleet_time(now_ns) + seconds)

    def scaled(self, now_ns: int, time_scale: float) -> RunClock:
        """Another pace from now on."""
        return dataclasses.replace(self._at(now_ns), time_scale=time_scale)

    def restarted(self, start_ns: int) -> RunClock:
        """Restart the fleet at a node time; a paused one waits at its start."""
        return RunClock(start_ns, self.time_scale, self.running)

    @property
    def _from_ns(self) -> int:
        return self.start_ns if self.from_ns is None else self.from_ns

    def _at(self, now_ns: int) -> RunClock:
        """The same with its pace counted from now, or from the start where that is to come."""
        if now_ns <= self.start_ns:
            return dataclasses.replace(self, from_ns=None, from_s=0.0)
        return dataclasses.replace(self, from_ns=now_ns, from_s=self.fleet_time(now_ns))


def check_time_scale(time_scale: float) -> None:
    """Raises ConfigError for a scale that is negative, too high or no number."""
    finite_number("time_scale", time_scale, at_least=0.0, at_most=MAX_TIME_SCALE)


def states_at_pace(states: VehicleStates, pace: float) -> VehicleStates:
    """States sampled in fleet time, with the velocities that an onlooker sees: those of the fleet
    times `pace`.
    """
    if pace == 1.0:
        return states
    velocity = None if states.velocity is None else states.velocity * np.float32(pace)
    turning = (
        None if states.angular_velocity is None else states.angular_velocity * np.float32(pace)
    )
    return dataclasses.replace(states, velocity=velocity, angular_velocity=turning)


def start_at_time(start_time: float) -> int:
    """The start (ns) of the first run at a ROS time (s). Raises ConfigError for a time that no
    message can carry.
    """
    finite_number("start_time", start_time, "s", at_least=0.0, at_most=LATEST_S)
    return round(start_time * 1e6) * MICROSECOND


def next_start(now_ns: int, known_ns: int | None = None, given_ns: int | None = None) -> int:
    """Where a fleet starts that begins at a node time: at a given start that is to come, else at
    the next whole second; in the run after that of a known start, else in the first run.
    """
    run = 0 if known_ns is None else (run_number(known_ns) + 1) % RUNS
    if given_ns is not None and given_ns > now_ns:
        return given_ns - run_number(given_ns) + run
    return (now_ns // SECOND + 1) * SECOND + run


def run_number(start_ns: int) -> int:
    """How often the fleet had been reset before this start, modulo 1000."""
    return start_ns % MICROSECOND


def agreed_start(one_ns: int, other_ns: int) -> int:
    """That of two starts which counts."""
    ahead = (run_number(one_ns) - run_number(other_ns)) % RUNS
    if ahead == 0:
        return min(one_ns, other_ns)
    return one_ns if ahead < RUNS // 2 else other_ns


def is_near(start_ns: int, now_ns: int) -> bool:
    """Whether a start is near enough to now for a restarting fleet to use it unchanged."""
    return now_ns - SECOND <= start_ns <= now_ns + 2 * SECOND

"""Run clock of a fleet: start, pause, reset, and changes of time scale without a jump."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from rfly_common.errors import ConfigError
from rfly_common.vehicle_states import VehicleStates

HIGHEST_TIME_SCALE = 1000.0


@dataclass(frozen=True)
class RunClock:
    """Fleet time [s] as a function of node time [ns]; immutable, every change gives a new one.

    Fleet time is 0 until `start_ns` and goes on from there, `time_scale` seconds a second. A change of scale and a
    pause keep the fleet time of the moment, so that no vehicle jumps. Raises ConfigError for a scale outside 0 … 1000.
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
        """Fleet seconds a second just after a node time: what the fleet's velocities are to be multiplied with."""
        return self.time_scale if self.running and now_ns >= self._from_ns else 0.0

    def started(self, now_ns: int) -> RunClock:
        """Goes on from now; one that is running is returned as it is."""
        return self if self.running else dataclasses.replace(self._at(now_ns), running=True)

    def paused(self, now_ns: int) -> RunClock:
        """Stands still from now."""
        return dataclasses.replace(self._at(now_ns), running=False)

    def scaled(self, now_ns: int, time_scale: float) -> RunClock:
        """Another pace from now on."""
        return dataclasses.replace(self._at(now_ns), time_scale=time_scale)

    def restarted(self, start_ns: int) -> RunClock:
        """The fleet begins anew at a node time; a paused one waits at its beginning."""
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
    if not (math.isfinite(time_scale) and 0.0 <= time_scale <= HIGHEST_TIME_SCALE):
        raise ConfigError(f"time_scale: {time_scale!r}, expected a number from 0 (standing still) to 1000")


def states_at_pace(states: VehicleStates, pace: float) -> VehicleStates:
    """States sampled in fleet time, with the velocities that an onlooker sees: those of the fleet times `pace`."""
    if pace == 1.0:
        return states
    velocity = None if states.velocity is None else states.velocity * np.float32(pace)
    turning = None if states.angular_velocity is None else states.angular_velocity * np.float32(pace)
    return dataclasses.replace(states, velocity=velocity, angular_velocity=turning)

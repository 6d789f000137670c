"""Common start time of a fleet, agreed between nodes by `fleet_start` in any order of arrival.

A start is a ROS time in whole microseconds, plus the number of the run (0 … 999) in its last three digits of
nanoseconds. A reset begins the next run. Of two starts the later run counts, and of one run the earlier time: whichever
nodes begin at once, reset at once or hear of it late, all end at the same start (`agreed` is commutative, associative
and idempotent, as long as less than 500 resets lie between what two nodes know).
"""

from __future__ import annotations

import math

from rfly_common.errors import ConfigError

SECOND = 1_000_000_000
MICROSECOND = 1_000
RUNS = 1000
LATEST_S = 2**31 - 1
"""builtin_interfaces/Time counts seconds in 32 bits"""


def given_start(start_time: float) -> int:
    """The start (ns) of the first run at a ROS time (s). Raises ConfigError for a time that no message can carry."""
    if not (math.isfinite(start_time) and 0.0 <= start_time <= LATEST_S):
        raise ConfigError(f"start_time: {start_time!r} s, expected a ROS time from 0 to {LATEST_S}")
    return round(start_time * 1e6) * MICROSECOND


def next_start(now_ns: int, known_ns: int | None = None, given_ns: int | None = None) -> int:
    """Where a fleet starts that begins at a node time: at a given start that is to come, else at the next whole second;
    in the run after that of a known start, else in the first run."""
    run = 0 if known_ns is None else (run_number(known_ns) + 1) % RUNS
    if given_ns is not None and given_ns > now_ns:
        return given_ns - run_number(given_ns) + run
    return (now_ns // SECOND + 1) * SECOND + run


def run_number(start_ns: int) -> int:
    """How often the fleet had been reset before this start, modulo 1000."""
    return start_ns % MICROSECOND


def agreed(one_ns: int, other_ns: int) -> int:
    """That of two starts which counts."""
    ahead = (run_number(one_ns) - run_number(other_ns)) % RUNS
    if ahead == 0:
        return min(one_ns, other_ns)
    return one_ns if ahead < RUNS // 2 else other_ns


def starts_about(start_ns: int, now_ns: int) -> bool:
    """Whether a start lies so near to now that a fleet which begins anew may take it as it is."""
    return now_ns - SECOND <= start_ns <= now_ns + 2 * SECOND

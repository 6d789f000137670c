# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A simulated clock that jumps, under each node, while sensible messages arrive.

It goes hours and years ahead, back, to zero and below, stands still, and runs on. The node has to
answer all the time, and may not end, print a trace or swell. When the clock runs steadily in the
end, the node publishes again on each topic on which it published before the jumps.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from claims import domain

from attacks.messages import NODES, PATIENCE_S, Target, interface, sensible_makers
from attacks.odd_messages import OddMessages
from attacks.table import Result

TRIES = 100
SHORT_TRIES = 10
"""Jumps of the clock in a short run."""
TICK_NS = 20_000_000
"""Step of a running clock, simulated ns; real time passes more quickly."""
TICKS = 25
"""Most ticks between two jumps."""
WORKS_S = 3.0
"""Real time of work before the jumps, s."""
USUAL = 3
"""Messages in that time from which a topic counts as one on which the node keeps publishing."""
COMPILED_WITHIN_S = 240.0
"""Longest wait for an answer before the jumps, while kernels are compiled, s."""
STANDS_S = 0.3
"""Real time for which a clock stands, s."""
LAST_NS = (2**31 - 1) * 10**9
"""Last second of a ROS message."""
HOUR_NS = 3600 * 10**9

JUMPS: Mapping[str, Callable[[random.Random, int], int]] = {
    "runs on": lambda rng, now: now,
    "minutes ahead": lambda rng, now: now + rng.randrange(HOUR_NS),
    "hours ahead": lambda rng, now: now + rng.randrange(1, 100) * HOUR_NS,
    "back": lambda rng, now: now - rng.choice((1, 10**6, 10**8, 10**9, HOUR_NS)),
    "to zero": lambda rng, now: 0,
    "below zero": lambda rng, now: -rng.choice((1, 10**9, HOUR_NS, LAST_NS)),
    "to this year": lambda rng, now: time.time_ns(),
    "to the last second": lambda rng, now: LAST_NS - rng.choice((0, 10**9)),
}
"""New time, ns, from the present one, by the name of the jump."""


class Ticker:
    """A clock for one node, with a sensible message on each of its topics at each tick."""

    def __init__(self, target: Target, messages: OddMessages) -> None:
        from rclpy.qos import qos_profile_sensor_data
        from rosgraph_msgs.msg import Clock

        self._target = target
        self._messages = messages
        self._clock_type = Clock
        self._clock = target.peer.node.create_publisher(Clock, "/clock", 100)
        target.peer.spin_until(self._clock.get_subscription_count, PATIENCE_S)

        self.heard: Counter[str] = Counter()
        """Number of messages of the node by topic."""
        for topic, (kind,) in target.published():
            target.peer.node.create_subscription(
                interface(kind),
                topic,
                lambda _, topic=topic: self.heard.update((topic,)),
                qos_profile_sensor_data,
                raw=True,
            )

    def tick(self, now_ns: int) -> None:
        """Publish a time, and messages of that time."""
        message = self._clock_type()
        _set_stamp(message.clock, now_ns)
        self._clock.publish(message)
        for kind, publisher in self._target.publishers.values():
            sensible = self._messages.sensible(kind)
            if hasattr(sensible, "header"):
                _set_stamp(sensible.header.stamp, now_ns)
            publisher.publish(sensible)

    def run_until(self, start_ns: int, ready: Callable[[], Any]) -> bool:
        """Run at real time's pace until `ready()`; return whether that came in time."""
        start = time.monotonic()
        while not ready():
            passed_s = time.monotonic() - start
            if passed_s > PATIENCE_S:
                return False
            self.tick(start_ns + round(passed_s * 1e9))
            self._target.peer.spin_for(TICK_NS * 1e-9)
        return True


def attack(
    name: str, executable: str, parameters: Mapping[str, str], rng: random.Random, tries: int
) -> Result:
    """Run one node under a clock that jumps this often."""
    messages = OddMessages(rng, sensible_makers())
    with ExitStack() as stack:
        own_domain = stack.enter_context(domain())
        target = Target(stack, executable, {**parameters, "use_sim_time": "true"}, own_domain)
        ticker = Ticker(target, messages)

        # its usual work, after that in which it compiles what it needs
        for _ in range(2):
            ticker.heard.clear()
            until = time.monotonic() + WORKS_S
            ticker.run_until(HOUR_NS, lambda until=until: time.monotonic() > until)
            target.answers(COMPILED_WITHIN_S)
        usual = {topic for topic, number in ticker.heard.items() if number >= USUAL}
        target.longest_stall_s = 0.0

        now = HOUR_NS
        done: list[str] = []
        failures: list[str] = []
        while len(done) < tries and not failures:
            # jump, run for some ticks, stand
            jump = rng.choice(list(JUMPS))
            now = JUMPS[jump](rng, now)
            done.append(f"{jump}: {now * 1e-9:.9g} s")
            for _ in range(rng.randint(1, TICKS)):
                now = max(-LAST_NS, min(now, LAST_NS))
                ticker.tick(now)
                now += TICK_NS
            target.peer.spin_for(rng.choice((0.0, STANDS_S)))

            answered = target.answers()
            if problem := target.problem() or ("" if answered else f"no answer in {PATIENCE_S} s"):
                failures.append(f"{problem}; the clock went {'; '.join(done[-5:])}")

        # at work again
        ticker.heard.clear()
        if not ticker.run_until(time.time_ns(), lambda: usual <= ticker.heard.keys()):
            silent = ", ".join(sorted(usual - ticker.heard.keys()))
            failures.append(f"silent on {silent} after {'; '.join(done[-5:])}")
        return Result(
            name,
            len(done),
            len(failures),
            target.memory_mb(),
            target.longest_stall_s,
            tuple(failures),
        )


def _set_stamp(stamp: Any, time_ns: int) -> None:
    stamp.sec, stamp.nanosec = divmod(time_ns, 10**9)


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {
    name: partial(attack, f"clock jumps under {name}", executable, parameters)
    for name, (executable, parameters) in NODES.items()
}

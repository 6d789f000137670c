# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""An autopilot that misbehaves: ArduPilot floods its JSON port with mutated servo frames.

It becomes sensible again at the end, and has to be served then.
"""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable

from attacks.peers import FLOOD, flood, is_served, judged, listening_port, node_at_work
from attacks.running import wait_until
from attacks.table import Result

TRIES = 500
SHORT_TRIES = 10
START_S = 120.0
"""Patience with the start of the simulation, s."""
ODD_NUMBERS = (0, 1, 2, 999, 1000, 1500, 2000, 2001, 2**15, 2**16 - 1)


def servo_frames(rng: random.Random, count: int) -> list[bytes]:
    """Return good ones, with odd pulses, rates and numbers of the frame, and mutated ones."""
    from fuzz.fuzz_terrain import mutate_bytes

    frames = []
    for number in range(count):
        magic, outputs = rng.choice(((18458, 16), (29569, 32), (18458, 32), (0, 16), (29569, 16)))
        frame = rng.choice((number, 0, number - 3, 2**32 - 1, rng.getrandbits(32))) % 2**32
        pulses = [rng.choice(ODD_NUMBERS) for _ in range(outputs)]
        data = struct.pack(f"<HHI{outputs}H", magic, rng.choice(ODD_NUMBERS), frame, *pulses)
        frames.append(mutate_bytes(rng, data) if rng.random() < 0.4 else data)
    return frames


def ardupilot(rng: random.Random, tries: int) -> Result:
    """Return frames of servo outputs that no ArduPilot sends, then one that it does."""
    with node_at_work("ardupilot_json_node", {"port": 0}, traffic=True) as (running, pulse):
        port = listening_port(running, "udp")
        good = struct.pack("<HHI16H", 18458, 400, 0, *[1000] * 16)

        def served() -> bool:
            return is_served(socket.SOCK_DGRAM, port, good)

        wait_until(served, "the first state, once the simulation runs", START_S)
        tried = flood(port, servo_frames(rng, FLOOD * tries))
        failures = [] if served() else ["a frame of servo outputs got no state afterwards"]
        return judged(
            "ArduPilot at ardupilot_json_node", tried, running, pulse.longest_stall(), failures
        )


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {"ArduPilot": ardupilot}

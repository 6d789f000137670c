# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mutated packets through the decoders of all wires.

They are RflySim3D's packets and answers, and frames of external controllers. `test/fuzz` has the
mutators and judges the outcomes; a wrong outcome ends the attack.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial

from attacks.table import Result

TRIES = 300_000
SHORT_TRIES = 2_000


def packets(name: str, wire: str, rng: random.Random, tries: int) -> Result:
    """Send many datagrams of one wire."""
    from fuzz import fuzz_feedback, fuzz_link, fuzz_packets

    runs: dict[str, Callable[[int, int], Counter[str]]] = {
        "packets": fuzz_packets.run,
        "feedback": fuzz_feedback.run,
        "link": fuzz_link.run,
    }
    seed = rng.getrandbits(32)
    try:
        runs[wire](tries, seed)
    except Exception as error:  # noqa: BLE001  any that comes out of a decoder is a failure
        failure = f"seed {seed}: {type(error).__name__}: {error}"[:300]
        return Result(name, tries, 1, None, None, (failure,))
    return Result(name, tries, 0, None, None, ())


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {
    name: partial(packets, name, wire)
    for name, wire in {
        "packets to RflySim3D, decoded": "packets",
        "answers of RflySim3D, received": "feedback",
        "frames of controllers, decoded": "link",
    }.items()
}

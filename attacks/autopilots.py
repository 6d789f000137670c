"""Autopilots that misbehave: ArduPilot at its JSON port; Betaflight on MSP and at the simulators' ports.

ArduPilot's part is a flood of mutated servo frames. Betaflight's is a program in the firmware's place: sensible until
it has been set up, then it answers MSP with mutated frames and floods the motors' port. Both become sensible again at
the end, and have to be served then.
"""

from __future__ import annotations

import random
import socket
import struct
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from claims import BETAFLIGHT_PORTS, turn

from attacks.peers import FLOOD, PATIENCE_S, flood, is_served, judged, listening_port, node_at_work
from attacks.running import wait_until
from attacks.table import Result

TRIES, SHORT_TRIES = 500, 10
ODD_NUMBERS = (0, 1, 2, 999, 1000, 1500, 2000, 2001, 2**15, 2**16 - 1)


def servo_frames(rng: random.Random, count: int) -> list[bytes]:
    """Good ones, with odd pulses, rates and numbers of the frame, and mutated ones."""
    from fuzz.fuzz_terrain import mutate_bytes

    made = []
    for number in range(count):
        magic, outputs = rng.choice(((18458, 16), (29569, 32), (18458, 32), (0, 16), (29569, 16)))
        frame = rng.choice((number, 0, number - 3, 2**32 - 1, rng.getrandbits(32))) % 2**32
        pulses = [rng.choice(ODD_NUMBERS) for _ in range(outputs)]
        data = struct.pack(f"<HHI{outputs}H", magic, rng.choice(ODD_NUMBERS), frame, *pulses)
        made.append(mutate_bytes(rng, data) if rng.random() < 0.4 else data)
    return made


def ardupilot(rng: random.Random, tries: int) -> Result:
    """Frames of servo outputs that no ArduPilot sends, then one that it does."""
    with node_at_work("ardupilot_json_node", {"port": 0}, traffic=True) as (running, pulse):
        port = listening_port(running, "udp")
        tried = flood(port, servo_frames(rng, FLOOD * tries))
        good = struct.pack("<HHI16H", 18458, 400, 0, *[1000] * 16)
        served = is_served(socket.SOCK_DGRAM, port, good)
        failures = [] if served else ["a frame of servo outputs got no state afterwards"]
        return judged("ArduPilot at ardupilot_json_node", tried, running, pulse.longest_stall(), failures)


def betaflight(rng: random.Random, tries: int) -> Result:
    """A program in the firmware's place that answers so many questions in a way that no firmware does."""
    with turn(BETAFLIGHT_PORTS), tempfile.TemporaryDirectory(prefix="attack_") as name:
        folder = Path(name)
        program = folder / "firmware"
        script = Path(__file__).with_name("odd_firmware.py")
        program.write_text(
            f"#!/bin/sh\nexec '{sys.executable}' -S '{script}' {rng.getrandbits(32)} {tries}\n", encoding="utf-8"
        )
        program.chmod(0o700)
        given = {"program": program, "folder": folder / "kept"}
        with node_at_work("betaflight_node", given, traffic=True) as (running, pulse):
            told = folder / "kept" / "answered.txt"

            def answered() -> list[int]:
                """To how many questions in an odd way, in a sensible way since, and how many datagrams it has sent."""
                with suppress(OSError):
                    return [int(word) for word in told.read_text(encoding="ascii").split()]
                return [0, 0, 0]

            def recovered() -> bool:
                """It goes on asking, and tells what the firmware says now: odd answers may have said: armed."""
                values = pulse.diagnostics.get("/betaflight_node: flight", ("", "", {}))[2]
                return answered()[1] > 10 and values.get("armed") == "False"

            failures = []
            try:
                wait_until(recovered, "questions", PATIENCE_S + 0.1 * tries)
            except TimeoutError:
                failures.append(f"it does not recover: {answered()}, {pulse.diagnostics}")
            odd, _, datagrams = answered()
            return judged("Betaflight at betaflight_node", odd + datagrams, running, pulse.longest_stall(), failures)


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {"ArduPilot": ardupilot, "Betaflight": betaflight}

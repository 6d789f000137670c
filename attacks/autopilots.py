# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Autopilots that misbehave: ArduPilot at its JSON port; Betaflight on MSP and at the simulators'
ports.

ArduPilot's part is a flood of mutated servo frames. Betaflight's is a program in the firmware's
place: sensible until it has been set up, then it answers MSP with mutated frames and floods the
motors' port. Both become sensible again at the end, and have to be served then. The firmware itself
runs too, with others at its ports and at the node's.
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

from attacks.odd_firmware import odd_motors
from attacks.peers import (
    FLOOD,
    PATIENCE_S,
    flood,
    is_served,
    judged,
    listening_port,
    node_at_work,
    streams,
)
from attacks.running import wait_until
from attacks.table import Result
from rfly_amphibious.autopilots.betaflight_packets import (
    MOTOR_PORT,
    RADIO,
    RADIO_PORT,
    SERIAL_PORT,
    STATE,
    STATE_PORT,
)
from rfly_amphibious.autopilots.betaflight_session import find_firmware
from rfly_common.errors import AutopilotError

TRIES = 500
SHORT_TRIES = 10
ODD_DOUBLES = (0.0, 1.0, -1.0, 1e-300, 1e30, 1e308, float("nan"), float("inf"), 9.81)
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
        tried = flood(port, servo_frames(rng, FLOOD * tries))
        good = struct.pack("<HHI16H", 18458, 400, 0, *[1000] * 16)
        served = is_served(socket.SOCK_DGRAM, port, good)
        failures = [] if served else ["a frame of servo outputs got no state afterwards"]
        return judged(
            "ArduPilot at ardupilot_json_node", tried, running, pulse.longest_stall(), failures
        )


def betaflight(rng: random.Random, tries: int) -> Result:
    """Answer some questions as no firmware does, from a program in the firmware's place."""
    with turn(BETAFLIGHT_PORTS), tempfile.TemporaryDirectory(prefix="attack_") as name:
        # a program in the firmware's place
        folder = Path(name)
        program = folder / "firmware"
        script = Path(__file__).with_name("odd_firmware.py")
        program.write_text(
            f"#!/bin/sh\nexec '{sys.executable}' -S '{script}' {rng.getrandbits(32)} {tries}\n",
            encoding="utf-8",
        )
        program.chmod(0o700)

        # the node at work with it
        parameters = {"program": program, "folder": folder / "kept"}
        with node_at_work("betaflight_node", parameters, traffic=True) as (running, pulse):
            report = folder / "kept" / "answered.txt"

            def answered() -> list[int]:
                """Return the counts of odd answers, of sensible answers since, and of datagrams
                sent.
                """
                with suppress(OSError):
                    return [int(word) for word in report.read_text(encoding="ascii").split()]
                return [0, 0, 0]

            def recovered() -> bool:
                """Return whether the node reports the firmware's state again.

                Odd answers may have said that it is armed.
                """
                values = pulse.diagnostics.get("/betaflight_node: flight", ("", "", {}))[2]
                return answered()[1] > 10 and values.get("armed") == "False"

            failures = []
            try:
                wait_until(recovered, "questions", PATIENCE_S + 0.1 * tries)
            except TimeoutError:
                failures.append(f"it does not recover: {answered()}, {pulse.diagnostics}")

            odd, _, datagrams = answered()
            return judged(
                "Betaflight at betaflight_node",
                odd + datagrams,
                running,
                pulse.longest_stall(),
                failures,
            )


def betaflights_ports(rng: random.Random, tries: int) -> Result:
    """Attack Betaflight itself at work.

    Other peers speak MSP to it and flood the node's port for motors: the node has to go on. Then
    they flood the firmware's ports for state and radio: the node goes on, or reports the firmware's
    state.
    """
    with (
        turn(BETAFLIGHT_PORTS),
        node_at_work("betaflight_node", {}, traffic=True) as (running, pulse),
    ):
        name = "/betaflight_node: flight"
        failures = []

        def well(except_for: str) -> None:
            """Wait until the node reports no error, or this one."""
            newer_than = pulse.stamps.get(name, 0.0) + 2.0  # a newer report

            def is_well() -> bool:
                level, text, _ = pulse.diagnostics.get(name, ("2", "", {}))
                return pulse.stamps.get(name, 0.0) > newer_than and (
                    level != "2" or bool(except_for and except_for in text)
                )

            try:
                wait_until(is_well, "no error", PATIENCE_S)
            except TimeoutError:
                failures.append(f"it does not recover: {pulse.diagnostics.get(name)}")

        # others speak MSP to it, and flood the node's port for motors
        questions = [b"$M<" + bytes((0, code, code)) for code in (*range(1, 68), 108, 150)]
        garbage = [b"$M<\xff\x6c", b"#\nstatus\n", b"$X<\0" + rng.randbytes(30)]
        streams(rng, tries, SERIAL_PORT, [*questions, *garbage])
        sent = flood(MOTOR_PORT, [data for _ in range(tries) for data in odd_motors(rng)])
        well("")

        # others flood its ports for state and radio
        states = [
            rng.choice((STATE.pack(*rng.choices(ODD_DOUBLES, k=18)), rng.randbytes(144)))
            for _ in range(FLOOD * tries)
        ]
        sent += flood(STATE_PORT, states)
        sticks = [
            rng.choice((rng.randbytes(40), RADIO.pack(rng.random(), *[2000] * 16)))
            for _ in range(FLOOD * tries)
        ]
        sent += flood(RADIO_PORT, sticks)
        well("Betaflight")

        return judged(
            "others at Betaflight's own ports",
            tries + sent,
            running,
            pulse.longest_stall(),
            failures,
        )


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {
    "ArduPilot": ardupilot,
    "Betaflight": betaflight,
}
with suppress(AutopilotError):
    find_firmware()
    ATTACKS["Betaflight's own ports"] = betaflights_ports

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink peers that know the protocol: replayed and forged signatures, and odd autopilots.

With a `signing_file` mavlink_node takes only messages that are signed with its key, each once.
mavlink_hil_node has no key: it takes signed messages as it takes others, and checks what they
command.
"""

from __future__ import annotations

import math
import random
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from attacks.peers import LASTS_S, PATIENCE_S, judged, listening_port, node_at_work
from attacks.running import free_port, wait_until
from attacks.table import Result

TRIES = 3_000
SHORT_TRIES = 60
"""Forged datagrams, or autopilots times AUTOPILOT_SHARE, in a short run."""
AUTOPILOT_SHARE = 20
PARAMETER = b"MIS_TAKEOFF_ALT"
"""Parameter by which a replayed message would be noticed."""
BETWEEN = 50
"""Forged datagrams between two of the station."""
ANSWERED_S = 0.2
"""Time after which no answers to earlier datagrams come, s."""
HOUR_S = 3600.0
HEADER_BYTES = 10
SIGNATURE_BYTES = 13
COMPILED_WITHIN_S = 240.0
"""Longest wait for the simulation, whose kernels may have to be compiled first, s."""
ODD_CONTROLS = (math.nan, math.inf, -math.inf, 3e38, -3e38, 1e-40, 0.0, 1.0, -1.0)


class Station:
    """A ground station with the key of a node, or with another one."""

    def __init__(self, port: int, passphrase: str, **options: Any) -> None:
        from rfly_mavlink.dialect.wire import Reader, Writer, load_dialect, signing_key

        self._dialect = load_dialect()
        key = signing_key(passphrase)
        self._reader = Reader(key)
        self._writer = Writer(245, key, component_id=190, **options)
        self._port = port
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(0.2)

    def setting(self, value: float) -> bytes:
        """Return a signed datagram that sets the parameter."""
        message = self._dialect.MAVLink_param_set_message(1, 1, PARAMETER, value, 9)
        return self._writer.write(message)

    def send(self, datagram: bytes) -> None:
        with suppress(ConnectionRefusedError):
            self._socket.sendto(datagram, ("127.0.0.1", self._port))

    def ask(self) -> None:
        """Request the parameter."""
        request = self._dialect.MAVLink_param_request_read_message(1, 1, PARAMETER, -1)
        self.send(self._writer.write(request))

    def values(self, seconds: float) -> Iterator[float]:
        """Yield the values of the parameter that arrive in this time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with suppress(TimeoutError, ConnectionRefusedError):
                for message in self._reader.read(self._socket.recv(4096)):
                    if message.get_type() == "PARAM_VALUE":
                        yield message.param_value

    def close(self) -> None:
        self._socket.close()


def forged(rng: random.Random, heard: list[bytes], others: list[Station]) -> bytes:
    """Return a datagram that the node must not take: replayed, altered or signed otherwise."""
    data = bytearray(rng.choice(heard))
    match rng.randrange(5):
        case 0:
            return bytes(data)
        case 1:
            return rng.choice(others).setting(rng.uniform(30.0, 40.0))
        case 2:  # without the signature and its flag, as MAVLink 2 has it otherwise
            data[2] = 0
            return bytes(data[:-SIGNATURE_BYTES])
        case 3:  # link, time stamp or signature
            data[-rng.randint(1, SIGNATURE_BYTES)] ^= 1 << rng.randrange(8)
        case 4:
            data[rng.randrange(HEADER_BYTES, len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def signed_stations(rng: random.Random, tries: int) -> Result:
    """Replay and forge messages of a signing ground station among its own."""
    with tempfile.TemporaryDirectory(prefix="attack_") as folder:
        file = Path(folder) / "passphrase.txt"
        file.write_text("open sesame\n")
        parameters = {
            "vehicles": ["uav"],
            "port": 0,
            "targets": [f"127.0.0.1:{free_port()}"],
            "signing_file": file,
        }
        with node_at_work("mavlink_node", parameters, traffic=False) as (running, pulse):
            port = listening_port(running, "udp")
            station = Station(port, "open sesame", link_id=3)
            others = [
                Station(port, "open sesam", link_id=3),
                Station(port, "open sesame", link_id=3, clock=lambda: time.time() - HOUR_S),
                Station(port, "open sesame", link_id=9, clock=lambda: time.time() - HOUR_S),
            ]

            failures = []
            heard: list[bytes] = []
            for _ in range(0, tries, BETWEEN):
                # the station's own message counts
                right = rng.uniform(3.0, 20.0)
                heard.append(station.setting(right))
                station.send(heard[-1])
                station.ask()
                if not any(abs(value - right) < 1e-3 for value in station.values(PATIENCE_S)):
                    failures.append(f"message {len(heard)} of the station was not taken")

                # what is forged does not
                for _ in range(BETWEEN):
                    station.send(forged(rng, heard, others))
                list(station.values(ANSWERED_S))
                station.ask()
                value = next(station.values(PATIENCE_S), math.nan)
                if not abs(value - right) < 1e-3:
                    failures.append(f"a forged datagram has made {value} of {right}")
            for each in (station, *others):
                each.close()
            return judged(
                "signed stations, replayed", tries, running, pulse.longest_stall(), failures
            )


def commands_heard(pulse: Any) -> list[float]:
    """Return the list of all numbers that come as rotor commands until the pulse is closed."""
    from rfly_suite.msg import RotorCommand

    numbers: list[float] = []
    pulse.node.create_subscription(
        RotorCommand, "cmd/rotors", lambda message: numbers.extend(message.value), 100
    )
    return numbers


def odd_autopilots(rng: random.Random, tries: int) -> Result:
    """Be autopilots with odd controls, systems, times, signatures and pieces, one after another.

    They flood, stop halfway and connect again. What the node publishes stays within its range.
    """
    from rfly_mavlink.dialect.wire import Writer, load_dialect, signing_key

    dialect = load_dialect()

    def stream() -> bytes:
        """Return a flood of controls."""
        key = signing_key("x") if rng.random() < 0.3 else b""
        writer = Writer(rng.choice((0, 1, 2, 255)), key, component_id=rng.choice((0, 1, 50, 255)))
        share = rng.choice((0.0, 0.1, 1.0))
        parts = []
        for _ in range(rng.choice((1, 20, 500))):
            controls = [
                rng.choice(ODD_CONTROLS) if rng.random() < share else rng.random()
                for _ in range(16)
            ]
            usec = rng.choice((0, 1, 2**64 - 1, time.time_ns() // 1000))
            parts.append(
                writer.write(
                    dialect.MAVLink_hil_actuator_controls_message(
                        usec, controls, rng.randrange(256), rng.choice((0, 2**64 - 1))
                    )
                )
            )
        return b"".join(parts)

    autopilots = max(1, tries // AUTOPILOT_SHARE)
    with node_at_work("mavlink_hil_node", {"port": 0}, traffic=True) as (running, pulse):
        numbers = commands_heard(pulse)
        port = listening_port(running, "tcp")

        def connect(data: bytes) -> None:
            """Connect, send all in pieces of odd sizes, and read once."""
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), LASTS_S) as peer:
                peer.settimeout(LASTS_S)
                until = time.monotonic() + LASTS_S
                while data and time.monotonic() < until:
                    size = rng.choice((1, 7, 1000, len(data)))
                    peer.sendall(data[:size])
                    data = data[size:]
                peer.recv(100_000)

        sensible = dialect.MAVLink_hil_actuator_controls_message(0, [0.5] * 16, 128, 0)
        good = Writer(1).write(sensible)
        wait_until(lambda: connect(good) or numbers, "a rotor command", COMPILED_WITHIN_S)
        for _ in range(autopilots):
            connect(stream())

        failures = []
        wrong = [number for number in numbers if not 0.0 <= number < math.inf]
        if wrong:
            failures.append(f"{len(wrong)} rotor commands such as {wrong[0]}")
        numbers.clear()
        with suppress(TimeoutError):
            wait_until(lambda: connect(good) or numbers, "a rotor command", PATIENCE_S)
        if not numbers:
            failures.append("a sensible autopilot is not obeyed afterwards")
        return judged("odd autopilots", autopilots, running, pulse.longest_stall(), failures)


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {
    "signed stations": signed_stations,
    "odd autopilots": odd_autopilots,
}

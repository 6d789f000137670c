# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A program in Betaflight's place, for `attacks.autopilots`: python odd_firmware.py SEED
ODD_ANSWERS.

It accepts settings on its command line and reports by MSP that its loop runs, as betaflight_node
expects. After some sensible answers come ODD_ANSWERS odd ones, with datagrams at the motors' port;
then sensible ones again. Standard library alone.
"""

from __future__ import annotations

import random
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

SERIAL_PORT = 5761
MOTOR_PORT = 9002
MSP_ATTITUDE = 108
MSP_STATUS_EX = 150
SENSIBLE_FIRST = 20
MOTORS = struct.pack("<4f", 0.1, 0.1, 0.1, 0.1)


def frame(code: int, payload: bytes) -> bytes:
    """Return a frame of MSP version 1 from the firmware."""
    body = bytes((len(payload), code)) + payload
    check = 0
    for byte in body:
        check ^= byte
    return b"$M>" + body + bytes((check,))


def answer(code: int) -> bytes:
    """Return a sensible answer: level and disarmed, a loop of 1 ms."""
    if code == MSP_ATTITUDE:
        return frame(code, struct.pack("<3h", 0, 0, 90))
    return frame(code, struct.pack("<H", 1000) + bytes(22))


def odd_answers(rng: random.Random, code: int) -> list[bytes]:
    """Return answers that are cut, damaged, of another code, in a flood, in garbage, or none."""
    good = answer(code)
    numbers = bytes(rng.choice((0, 1, 127, 128, 255)) for _ in range(rng.randrange(256)))
    kinds = (
        [],
        [good[: rng.randrange(len(good))]],
        [good[:3] + bytes((rng.randrange(256),)) + good[4:]],
        [good[:-1] + bytes((good[-1] ^ 1,))],
        [frame(rng.randrange(256), numbers)],
        [frame(code, numbers)],
        [rng.randbytes(rng.randrange(100_000))],
        [b"$M>" * rng.randrange(30_000)],
        [good] * rng.randrange(2_000),
        [b"$M!" + good[3:], b"\r\n# ", good],
        [bytes((byte,)) for byte in good],
    )

    return rng.choice(kinds)


def odd_motors(rng: random.Random) -> Iterator[bytes]:
    """Yield good motor outputs, odd numbers, and datagrams of other lengths."""
    for _ in range(rng.choice((1, 10, 200))):
        values = [rng.choice((float("nan"), float("inf"), -1.0, 3e38, 2.0, 0.1)) for _ in range(4)]
        yield rng.choice(
            (
                MOTORS,
                struct.pack("<4f", *values),
                rng.randbytes(rng.randrange(2000)),
                MOTORS[:-1],
                b"",
            )
        )


def serve(peer: socket.socket, rng: random.Random, odd: int) -> None:
    """Answer until the peer has gone."""
    motors = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    buffer = b""
    questions = 0
    sent = 0

    while data := peer.recv(4096):
        buffer += data

        # the command line of the settings
        if buffer[:1] == b"#" or (buffer[-1:] == b"\n" and not buffer.startswith(b"$M<")):
            if buffer == b"save\n":
                Path("eeprom.bin").write_bytes(b"settings")
                sys.exit()
            peer.sendall(buffer.strip() + b"\r\n# ")
            buffer = b""

        # questions by MSP
        while len(buffer) >= 6 and buffer.startswith(b"$M<"):
            code = buffer[4]
            buffer = buffer[6:]
            questions += 1
            is_odd = SENSIBLE_FIRST < questions <= SENSIBLE_FIRST + odd
            for part in odd_answers(rng, code) if is_odd else [answer(code)]:
                peer.sendall(part)
            for datagram in odd_motors(rng) if is_odd else [MOTORS]:
                motors.sendto(datagram, ("127.0.0.1", MOTOR_PORT))
                sent += 1

            # write down what has been answered
            counts = (
                min(max(questions - SENSIBLE_FIRST, 0), odd),
                max(questions - SENSIBLE_FIRST - odd, 0),
                sent,
            )
            Path("answered.new").write_text(" ".join(map(str, counts)), encoding="ascii")
            Path("answered.new").replace("answered.txt")


def main() -> None:
    seed, odd = map(int, sys.argv[1:])
    with socket.create_server(("127.0.0.1", SERIAL_PORT)) as server:
        while True:
            peer, _ = server.accept()
            with peer:
                serve(peer, random.Random(seed), odd)


if __name__ == "__main__":
    main()

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A stand-in for ArduPilot SITL at its JSON interface, with a flight law of its own.

It is written from ArduPilot's readme. Lock-step: a frame of pulses goes out, and the next one only
after the state that answers it. If no state comes in time, the same frame goes out again. On demand
datagrams get lost, come twice or late, or are garbage.
"""

from __future__ import annotations

import json
import math
import random
import socket
import struct
import time

PATIENCE_S = 1.0
"""Time after which a frame is sent again, s: 10 s in the readme, 1 s in ArduPilot's source."""
NOBODY_S = 100.0
LOOPBACK = "127.0.0.1"


class ArdupilotDouble:
    """Starts of ArduPilot one after the other, from one socket.

    `pulses(state)`: the law, 16 or 32 µs, of a state or None.
    """

    def __init__(self, port, pulses, seed=0):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((LOOPBACK, 0))
        self._to = (LOOPBACK, port)
        self._law = pulses
        self._random = random.Random(seed)
        self.sent_again = 0
        self.restart()

    def close(self):
        self._socket.close()

    def restart(self):
        self.count = 0
        self.state = None

    def datagram(self, count, pulses):
        magic = {16: 18458, 32: 29569}[len(pulses)]
        return struct.pack(f"<HHI{len(pulses)}H", magic, 250, count, *pulses)

    def send(self, data):
        self._socket.sendto(data, self._to)

    def receive(self, timeout_s):
        """Return the state of the next datagram, or None."""
        self._socket.settimeout(timeout_s)
        try:
            data = self._socket.recv(65_536)
        except TimeoutError:
            return None
        assert data[:1] == data[-1:] == b"\n"  # preceded by and terminated with, says the readme
        return json.loads(data)

    def step(self, lose_frame=False, lose_reply=False, twice=False, late=False, garbage=False):
        """Send one frame and take its answer."""
        frame = self.datagram(self.count, self._law(self.state))

        # datagrams that go wrong
        if garbage:
            self.send(self._random.randbytes(self._random.randrange(100)))
        if not lose_frame:
            self.send(frame)
        if twice:
            self.send(frame)
        if late and self.count > 5:
            self.send(self.datagram(self.count - 5, [1999] * 16))

        state = self.receive(PATIENCE_S)
        if lose_reply:
            state = self.receive(PATIENCE_S)

        # the same frame again, until there is an answer
        deadline = time.monotonic() + NOBODY_S
        while state is None:
            self.sent_again += 1
            assert time.monotonic() < deadline, "nobody answers"
            self.send(frame)
            state = self.receive(PATIENCE_S)

        self.state = state
        self.count = self.count + 1
        return state


class HoverLaw:
    """Law that flies `scale_quad` to a place and stays there, from the interface's state alone.

    It is cascaded. Numbers are those of the vehicle's file; rotors front right, front left, rear
    left, rear right on outputs 1 to 4.
    """

    MASS = 30.0
    GRAVITY = 9.80665
    INERTIA = (1.73, 2.78, 4.1)
    THRUST_COEFFICIENT = 0.0012
    FASTEST = 350.0
    REACH = 0.75 * math.sqrt(0.5)
    TORQUE_PER_THRUST = 0.054
    ROTORS = (
        (1, 1, 1),
        (1, -1, -1),
        (-1, -1, 1),
        (-1, 1, -1),
    )
    """Place forward and right, and 1 for a counter-clockwise rotor, whose torque yaws to the right.
    """

    def __init__(self, target):
        self.target = target
        self._heading = None

    def __call__(self, state):
        if state is None:
            return [1000] * 16

        # attitude
        w, x, y, z = state["quaternion"]
        roll = math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
        pitch = math.asin(max(-1.0, min(1.0, 2 * (w * y - z * x))))
        yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        self._heading = yaw if self._heading is None else self._heading

        # acceleration to the target
        wanted = [
            max(-2.0, min(2.0, 0.8 * (goal - at) - 1.6 * speed))
            for goal, at, speed in zip(
                self.target, state["position"], state["velocity"], strict=True
            )
        ]

        # angles, moments and lift
        ahead = math.cos(yaw) * wanted[0] + math.sin(yaw) * wanted[1]
        right = -math.sin(yaw) * wanted[0] + math.cos(yaw) * wanted[1]
        turn = math.remainder(self._heading - yaw, math.tau)
        angles = (right / self.GRAVITY - roll, -ahead / self.GRAVITY - pitch, 0.2 * turn)
        rates = state["imu"]["gyro"]
        about = [
            j * (25.0 * a - 8.0 * r) for j, a, r in zip(self.INERTIA, angles, rates, strict=True)
        ]
        lift = self.MASS * (self.GRAVITY - wanted[2]) / (math.cos(roll) * math.cos(pitch))

        return [self._pulse(lift, about, *rotor) for rotor in self.ROTORS] + [0] * 12

    def _pulse(self, lift, about, forward, right, spin):
        lever = 4 * self.REACH
        thrust = lift / 4 - right * about[0] / lever + forward * about[1] / lever
        thrust += spin * about[2] / (4 * self.TORQUE_PER_THRUST)
        share = math.sqrt(max(thrust, 0.0) / self.THRUST_COEFFICIENT) / self.FASTEST
        return round(1000 + 1000 * min(share, 1.0))

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A stand-in for an autopilot that speaks MAVLink HIL, in a thread of its own.

Like PX4's simulation link it has the clock of the newest HIL_SENSOR, connects once, and computes
its outputs at fixed times of that clock. A clock that goes back leaves it waiting.
"""

from __future__ import annotations

import socket
import threading
import time

from node_harness import PATIENCE

REST = [0.0] * 16


class HilDouble:
    """An autopilot that computes its outputs every `period_us` of its clock, armed or not.

    `law(time_us)` returns its 16 controls. A period of 0 answers every HIL_SENSOR. `pause_s` is the
    wall time that an answer takes.
    """

    def __init__(self, port, law=lambda _time: REST, period_us=0, armed=True, pause_s=0.0):
        from pymavlink.dialects.v20 import common

        self._common = common
        self._mav = common.MAVLink(None, 1, 1)
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.law = law
        self.period_us = period_us
        self.armed = armed
        self.pause_s = pause_s
        self.times = []
        """Times of all HIL_SENSOR messages, µs."""
        self.answered = []
        """Times of those that it has answered, µs."""
        self.resets = []
        """Times of those with the reset bit, µs."""
        self._due_us = 0
        self._send(common.MAVLink_heartbeat_message(2, 12, 0, 0, 4, 3))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _send(self, message):
        self._socket.sendall(message.pack(self._mav))

    def _run(self):
        try:
            while data := self._socket.recv(65_536):
                for message in self._mav.parse_buffer(data) or []:
                    if message.get_type() == "HIL_SENSOR":
                        self._sense(message)
        except OSError:
            pass  # the other side has gone

    def _sense(self, message):
        now = message.time_usec
        self.times.append(now)
        if message.fields_updated & 0x80000000:
            self.resets.append(now)
        if now < self._due_us:
            return

        # the next multiple of the period
        if self.period_us:
            self._due_us = (now // self.period_us + 1) * self.period_us
        self.answered.append(now)
        time.sleep(self.pause_s)
        mode = 129 if self.armed else 1
        controls = self.law(now) if self.armed else REST
        self._send(self._common.MAVLink_hil_actuator_controls_message(now, controls, mode, 1))

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pulse widths as MAVLink's SERVO_OUTPUT_RAW, for a board at a serial line."""

from __future__ import annotations

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_mavlink.dialect.wire import Writer, load_dialect
from rfly_mavlink.links.transport import Handler

CHANNELS = 16
"""Pulse widths in a message."""

FRAME_BYTES = 49
"""Size of a message with all channels: MAVLink 2, not signed."""


class ServoOutput:
    """Writer of the messages, from system 1, component MAV_COMP_ID_AUTOPILOT1."""

    def __init__(self) -> None:
        """Load the codec. Raise ConfigError if pymavlink is missing."""
        self._dialect = load_dialect()
        self._writer = Writer(1)

    def pack(self, time_s: float, pulse: Floats) -> bytes:
        """Return the frame for at most 16 pulse widths, µs; the others are 0, unused."""
        channels = np.zeros(CHANNELS, int)
        channels[: len(pulse)] = np.rint(pulse)
        message = self._dialect.MAVLink_servo_output_raw_message(
            int(time_s * 1e6) % 2**32, 0, *channels.tolist()
        )
        return self._writer.write(message)


def check_rate(rate: float, baud: int) -> None:
    """Raise ConfigError if the line is too slow for a rate of frames, Hz.

    Frames would wait in the line and arrive late.
    """
    largest = 0.8 * baud / (10 * FRAME_BYTES)
    if rate > largest:
        raise ConfigError(f"rate: {rate:g} Hz, expected at most {largest:.0f} at {baud} bit/s")


class OneWay(Handler):
    """Handler of a transport that only sends."""

    losses = 0
    """Number of times that the line was lost."""

    def closed(self) -> None:
        """Count the loss of the line."""
        self.losses += 1

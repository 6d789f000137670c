# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Manoeuvre: signals over time for rotors and wheels, with take-offs and landings.

`rfly_lab.identification` finds a vehicle's parameters from the log of a manoeuvre.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rfly_amphibious.simulation.commands import Mode

Channel = Literal[
    "lift_n", "roll_nm", "pitch_nm", "yaw_nm", "steering_rad", "drive_nm", "brake_nm", "height_m"
]
"""Channel of a signal.

`lift_n`: thrust on the ground; `roll_nm`, `pitch_nm`, `yaw_nm`: moments of the rotors;
`steering_rad`: of the virtual wheel; `drive_nm`, `brake_nm`: torques of each wheel while the
vehicle drives; `height_m`: of a flight above the take-off.
"""


class Signal(NamedTuple):
    """Signal of a channel: value + amplitude · sin, at a frequency that changes evenly."""

    channel: Channel
    begin: float
    """Begin, s."""

    end: float
    """End, s."""

    value: float = 0.0
    """Mean, in the channel's unit."""

    amplitude: float = 0.0
    """Amplitude, in the channel's unit."""

    frequency: tuple[float, float] = (0.0, 0.0)
    """Frequencies at begin and end, Hz."""

    def at(self, time: float) -> float:
        """Return the value at a time (s) within the signal, in the channel's unit."""
        t = time - self.begin
        first, last = self.frequency
        cycles = first * t + 0.5 * (last - first) * t * t / (self.end - self.begin)
        return self.value + self.amplitude * math.sin(math.tau * cycles)


@dataclass(frozen=True)
class Manoeuvre:
    """Signals, and modes with the time (s) from which they are requested.

    Signals of one channel add up.
    """

    signals: tuple[Signal, ...]
    modes: tuple[tuple[float, Mode], ...] = ()

    def value(self, channel: Channel, time: float) -> float | None:
        """Return the sum of a channel's signals at a time (s); None: there is none."""
        values = [
            s.at(time) for s in self.signals if s.channel == channel and s.begin <= time < s.end
        ]
        return sum(values) if values else None

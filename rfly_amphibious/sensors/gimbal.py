"""Gimbal with one pitch joint: a first-order lag behind its command."""

from __future__ import annotations

import math

from rfly_amphibious.sensors.range_sensor_parameters import GimbalParameters


class Gimbal:
    """Positive pitch looks down, rad. Begins at 0, or at the limit nearest to it."""

    def __init__(self, parameters: GimbalParameters) -> None:
        self.parameters = parameters
        self.pitch = self.command = self._within(0.0)

    def look(self, pitch: float) -> None:
        """The pitch to go to; beyond the limits, the limit. Raises ValueError for what is no finite number."""
        if not math.isfinite(pitch):
            raise ValueError(f"gimbal: a pitch of {pitch} rad, expected a finite number")
        self.command = self._within(pitch)

    def advance(self, duration: float) -> float:
        """The pitch after `duration` (s) of the same command: the lag's exact solution, however time is cut."""
        self.pitch = self.command + (self.pitch - self.command) * math.exp(-duration / self.parameters.lag)
        return self.pitch

    def _within(self, pitch: float) -> float:
        return min(max(pitch, self.parameters.min_pitch), self.parameters.max_pitch)

"""Ground clearance of the lowest wheel, from the downward range sensor and the struts."""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.sensors.samples import HeightSamples, JointSamples
from rfly_amphibious.sensors.sensor_parameters import HeightSensor
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats

TRUST = 0.3
"""of a new reading, against what is expected from the last ones and the vertical speed"""


class Clearance:
    """The readings smoothed, less what lies between the sensor and the lowest point of a wheel.

    The ground is taken as level: below the sensor as below the wheels.
    """

    def __init__(self, params: VehicleParameters, sensor: HeightSensor) -> None:
        self._hubs = params.hub_position - np.array(sensor.position)
        self._radius = params.wheel_radius
        self._tyre = params.tyre_stiffness
        plane = np.column_stack([np.ones(len(self._hubs)), params.hub_position[:, :2]])
        self._slopes = np.linalg.pinv(plane)[1:]
        self._min_range = sensor.min_range
        self._strut = params.hanging_strut
        self.height = math.nan
        """m, of the sensor above the ground; nan before the first reading, inf beyond the sensor's
        range
        """

    def sense(self, height: HeightSamples | None, joints: JointSamples | None) -> None:
        """What there is."""
        if joints is not None:
            self._strut = joints.strut[-1]
        if height is None:
            return
        for reading in height.distance.tolist():
            near = self._min_range if reading == -math.inf else reading
            if math.isfinite(self.height) and math.isfinite(near):
                self.height += TRUST * (near - self.height)
            else:
                self.height = near

    def go_on(self, climb: float, dt: float) -> None:
        """dt seconds later, at a vertical speed (m/s)."""
        self.height += climb * dt

    def lowest_wheel(self, rotation: Floats) -> float:
        """m above the ground, for an attitude (3, 3)."""
        x, y, z = rotation[2].tolist()
        hubs = self._hubs[:, 0] * x + self._hubs[:, 1] * y + (self._hubs[:, 2] + self._strut) * z
        return self.height + float(hubs.min()) - self._radius

    def ground_slope(self, rotation: Floats, loads: Floats) -> float:
        """rad, of the plane beneath the wheels with loads (wheels,) N: springs and tyres let the
        body lean further.
        """
        along, across = (
            self._slopes @ (self._hubs[:, 2] + self._strut + loads / self._tyre)
        ).tolist()
        x, y, z = rotation[2].tolist()
        upright = (z - along * x - across * y) / math.hypot(1.0, along, across)
        return math.acos(min(1.0, max(-1.0, upright)))

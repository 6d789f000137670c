# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ground clearance of the lowest wheel, from the downward range sensor and the struts."""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.sensors.samples import HeightSamples, JointSamples
from rfly_amphibious.sensors.sensor_parameters import HeightSensor
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats

TRUST = 0.3
"""Weight of a new reading against the height expected from earlier ones and the climb rate."""


class Clearance:
    """Smoothed height readings, and the clearance of the lowest wheel that follows from them.

    The ground below the wheels is taken to be as high as below the sensor.
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
        """Height of the sensor above the ground, m. NaN: no reading yet, inf: out of range."""

    def sense(self, height: HeightSamples | None, joints: JointSamples | None) -> None:
        """Take in readings, if there are any."""
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
        """Go on by dt seconds at a vertical speed, m/s."""
        self.height += climb * dt

    def lowest_wheel(self, rotation: Floats) -> float:
        """Return the height of the lowest wheel above the ground, m, for an attitude (3, 3)."""
        x, y, z = rotation[2].tolist()
        hubs = self._hubs[:, 0] * x + self._hubs[:, 1] * y + (self._hubs[:, 2] + self._strut) * z
        return self.height + float(hubs.min()) - self._radius

    def ground_slope(self, rotation: Floats, loads: Floats) -> float:
        """Return the slope of the plane below the wheels, rad, for loads (wheels,) N.

        The body leans further than that on its springs and tyres.
        """
        treads = self._hubs[:, 2] + self._strut + loads / self._tyre
        along, across = (self._slopes @ treads).tolist()
        x, y, z = rotation[2].tolist()
        upright = (z - along * x - across * y) / math.hypot(1.0, along, across)
        return math.acos(min(1.0, max(-1.0, upright)))

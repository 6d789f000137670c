# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ground clearance of the lowest wheel, from the downward range sensor and the struts."""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.sensors.samples import HeightSamples, JointSamples
from rfly_amphibious.sensors.sensor_parameters import HeightSensor
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.wheel_contact import SENSOR_TIMEOUT
from rfly_common.arrays import Floats

LAG_TIME = 1.0
"""Time with which the lag of the height behind the climb fades, s."""

MOST_LAG = 0.5
"""Lag above which the height contradicts the climb, m."""

LAG_OF_SPEED = 0.8
"""Its increase for each m/s across ground that may slope, s."""

LAG_STEP = 0.1
"""Largest step of a height that counts whole, m: a roof's edge is no contradiction."""

AGREED_WAY = 1.0
"""Way up and down without half of that lag after which the height counts again, m."""

MOST_OFF = 0.5
"""Clearance of a vehicle that stands above which its height is wrong, m."""

OFF_TIME = 0.5
"""Time for which it has to be above that, s."""

TRUST = 0.3
"""Weight of a new reading against the height expected from earlier ones and the climb rate."""


class Clearance:
    """Smoothed height readings, and the clearance of the lowest wheel that follows from them.

    The ground below the wheels is taken to be as high as below the sensor. Without a sensor, or
    while it is silent, the clearance is that above the ground of the last place where it stood. So
    it is while the readings contradict the climb, as those of an obstructed sensor do, and if they
    did not fit the ground there.
    """

    def __init__(self, params: VehicleParameters, sensor: HeightSensor | None) -> None:
        self._place = np.zeros(3) if sensor is None else np.array(sensor.position)
        self._hubs = params.hub_position - self._place
        self._treads: list[list[float]] = (self._hubs + self._place).tolist()
        """Hubs at rest, x, y and z, by wheel, m."""
        self._radius = params.wheel_radius
        self._tyre = params.tyre_stiffness
        plane = np.column_stack([np.ones(len(self._hubs)), params.hub_position[:, :2]])
        self._slopes = np.linalg.pinv(plane)[1:]
        self._min_range = 0.0 if sensor is None else sensor.min_range
        self._strut = params.hanging_strut

        self.height = math.nan
        """Height of the sensor above the ground, m. NaN: no reading yet, inf: out of range."""

        self._height_time = -math.inf
        self._last = math.nan
        """Last reading, m."""

        self._way = 0.0
        """Way up since then, m."""

        self._lag = 0.0
        """Change of the readings beyond the way up, faded, m."""

        self._most_lag = MOST_LAG
        self._agreed_way = math.inf
        """Way without a lag since the readings last contradicted the climb, m."""

        self._off_since = math.inf
        """Time since when the readings do not fit the ground on which it stands, s."""

        self._is_off = False
        """True if they did not when it last stood."""

        self._ground = math.nan
        """Altitude of the ground at the last place where it stood, m; NaN before."""

    def measured(self, time: float) -> bool:
        """Return whether there is a reading, not too old at a time (s), that fits the climb."""
        known = not math.isnan(self.height) and time - self._height_time <= SENSOR_TIMEOUT
        return known and self._agreed_way >= AGREED_WAY and not self._is_off

    def stand(self, altitude: float, rotation: Floats) -> None:
        """Note the ground of a vehicle that stands, by its origin's altitude, m, and attitude."""
        self._ground = altitude + self._lowest_tread(rotation)
        self._lag = 0.0
        self.judge(altitude, rotation)

    def judge(self, altitude: float, rotation: Floats) -> None:
        """Judge the readings of a vehicle that its wheels carry, by the ground where it last stood.

        Load cells may lie: a vehicle that has risen from that ground shows nothing of the readings.
        """
        if not abs(self.above_last_ground(altitude, rotation)) < 0.5 * MOST_OFF:
            return
        if abs(self.lowest_wheel(rotation)) > MOST_OFF:
            self._off_since = min(self._off_since, self._height_time)
        else:
            self._off_since = math.inf
        self._is_off = self._height_time - self._off_since >= OFF_TIME

    def sense(self, height: HeightSamples | None, joints: JointSamples | None) -> None:
        """Take in readings, if there are any."""
        if joints is not None:
            self._strut = joints.strut[-1]
        if height is None:
            return
        self._compare(float(height.time[-1]) - self._height_time, float(height.distance[-1]))
        self._height_time = float(height.time[-1])
        for reading in height.distance.tolist():
            near = self._min_range if reading == -math.inf else reading
            if math.isfinite(self.height) and math.isfinite(near):
                self.height += TRUST * (near - self.height)
            else:
                self.height = near

    def _compare(self, seconds: float, reading: float) -> None:
        """Compare a reading, some seconds after the last one, with the way up since then."""
        step = reading - self._last - self._way
        self._lag *= math.exp(-seconds / LAG_TIME)
        if math.isfinite(step):
            self._lag += min(max(step, -LAG_STEP), LAG_STEP)
        self._agreed_way += abs(self._way)
        most = self._most_lag if self._agreed_way >= AGREED_WAY else 0.5 * self._most_lag
        if abs(self._lag) > most:
            self._agreed_way = 0.0
        self._last = reading
        self._way = 0.0

    def go_on(self, climb: float, speed: float, dt: float) -> None:
        """Go on by dt seconds at speeds up and across the ground, m/s."""
        self.height += climb * dt
        self._way += climb * dt
        self._most_lag = MOST_LAG + LAG_OF_SPEED * speed

    def lowest_wheel(self, rotation: Floats) -> float:
        """Return the height of the lowest wheel above the ground, m, for an attitude (3, 3)."""
        return self.height + self._lowest_tread(rotation) - float(rotation[2] @ self._place)

    def above_last_ground(self, altitude: float, rotation: Floats) -> float:
        """Return the height of the lowest wheel above the ground where it last stood, m.

        `altitude`: of the vehicle's origin, m. NaN if it has not stood yet.
        """
        return altitude + self._lowest_tread(rotation) - self._ground

    def _lowest_tread(self, rotation: Floats) -> float:
        """Return the height of the lowest wheel's tread above the vehicle's origin, m."""
        x, y, z = rotation[2].tolist()
        lowest = min(
            hub_x * x + hub_y * y + (hub_z + strut) * z
            for (hub_x, hub_y, hub_z), strut in zip(self._treads, self._strut.tolist(), strict=True)
        )
        return lowest - self._radius

    def ground_slope(self, rotation: Floats, loads: Floats | None) -> float:
        """Return the slope of the plane below the wheels, rad, for loads (wheels,) N.

        The body leans further than that on its springs and tyres, which are left out with None.
        """
        treads = self._hubs[:, 2]
        if loads is not None:
            treads = treads + self._strut + loads / self._tyre
        along, across = (self._slopes @ treads).tolist()
        x, y, z = rotation[2].tolist()
        upright = (z - along * x - across * y) / math.hypot(1.0, along, across)
        return math.acos(min(1.0, max(-1.0, upright)))

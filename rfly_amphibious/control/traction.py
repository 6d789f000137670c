"""Traction control: torque reduced on wheels that slip. Eq. 10.8."""

from __future__ import annotations

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.vehicle_record import peak_slip
from rfly_common.arrays import Floats

SLIPS = 1.5
"""times the slip at which a tyre pulls most, beyond which a motor's torque is cut"""
LEFT, BACK, CUT_TIME = 0.8, 0.05, 0.01
"""what is left of the torque after so many seconds of slip (s); what comes back in them without, of the whole torque"""
LEAST_SHARE = 0.05


class TractionControl:
    """Cuts the torque of motors whose wheels slip. Eq. 10.8."""

    def __init__(self, params: VehicleParameters) -> None:
        p = self._params = params
        self.peak = peak_slip(p.shape_x, p.curvature_x) * p.friction_x / p.slip_stiffness
        """κ at which a tyre pulls most"""
        self._hubs = p.hub_position
        self.slip = np.zeros(4)
        """(4,) κ as seen last: positive drives"""
        self.share = np.ones(4)
        """(4,) of the torque that is left to each motor"""

    def update(
        self, wheel_rate: Floats, steering: Floats, velocity: Floats, rates: Floats, drive: Floats, dt: float
    ) -> None:
        """Spins (4,) against the body, rad/s, steering (4,), rad, velocity and rates (3,) in body axes, and the torques
        (4,) that were asked for: a wheel slips by its motor where both have the same sign.
        """
        p, hubs = self._params, self._hubs
        along = velocity[0] - rates[2] * hubs[:, 1]
        aside = velocity[1] + rates[2] * hubs[:, 0]
        ground = along * np.cos(steering) + aside * np.sin(steering)
        rolling = p.rolling_radius * (wheel_rate + rates[1])
        self.slip = (rolling - ground) / np.maximum(np.abs(ground), p.low_speed)
        slips = self.slip * np.sign(drive) > SLIPS * self.peak
        steps = dt / CUT_TIME
        self.share = np.clip(np.where(slips, self.share * LEFT**steps, self.share + BACK * steps), LEAST_SHARE, 1.0)

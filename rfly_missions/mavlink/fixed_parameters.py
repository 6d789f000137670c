# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Integer parameters of a vehicle that cannot be changed, under the names that PX4 gives them.

QGroundControl reads them when it connects to a vehicle of PX4's kind. Without them it reports
missing parameters, and components that need setup.
"""

from __future__ import annotations

from typing import NamedTuple


class FixedParameter(NamedTuple):
    """A value of MAV_PARAM_TYPE_INT32, and its explanation."""

    value: int
    text: str


AIRFRAMES = {"fixed-wing": 2100, "ground": 50000}
"""PX4's generic airframe (plane, rover) by kind of vehicle."""
MULTIROTOR_AIRFRAMES = {6: 6001, 8: 8001}
"""PX4's generic airframe of hexarotors and octorotors, by the number of rotors."""
QUADROTOR_AIRFRAME = 4001
"""PX4's generic quadrotor, which stands for multirotors with other numbers of rotors."""
SIMULATED_IMU = 1_310_988
"""Device id of a simulated gyroscope and accelerometer in PX4: DRV_IMU_DEVTYPE_SIM, bus 1."""
SIMULATED_COMPASS = 197_388
"""Device id of a simulated magnetometer in PX4."""
_CALIBRATED = "id of the simulated {}, which needs no calibration"


def fixed_parameters(uav_type: str, system_id: int, rotors: int = 4) -> dict[str, FixedParameter]:
    """Return the parameters of a vehicle, by name."""
    airframe = f"PX4's generic airframe for a vehicle of the kind {uav_type}"
    parameters = {
        "SYS_AUTOSTART": FixedParameter(
            AIRFRAMES.get(uav_type, MULTIROTOR_AIRFRAMES.get(rotors, QUADROTOR_AIRFRAME)), airframe
        ),
        "MAV_SYS_ID": FixedParameter(system_id, "MAVLink system id"),
        "COM_RC_IN_MODE": FixedParameter(1, "1: there is no radio control"),
        "CAL_GYRO0_ID": FixedParameter(SIMULATED_IMU, _CALIBRATED.format("gyroscope")),
        "CAL_ACC0_ID": FixedParameter(SIMULATED_IMU, _CALIBRATED.format("accelerometer")),
        "CAL_MAG0_ID": FixedParameter(SIMULATED_COMPASS, _CALIBRATED.format("magnetometer")),
    }
    if uav_type == "fixed-wing":
        parameters["FW_ARSP_MODE"] = FixedParameter(1, "1: there is no airspeed sensor")
    return parameters

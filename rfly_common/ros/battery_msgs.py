# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A battery as a message."""

from __future__ import annotations

import math

from sensor_msgs.msg import BatteryState

from rfly_common.energy.battery import Battery


def battery_to_msg(battery: Battery) -> BatteryState:
    """Return the state of a battery, without a stamp; the current is negative while it drains."""
    pack = battery.pack
    cells = max(1, round(pack.cells))
    charging = battery.current < 0.0
    return BatteryState(
        voltage=battery.voltage,
        temperature=math.nan,
        current=0.0 - battery.current,
        charge=pack.capacity_ah * battery.charge,
        capacity=pack.capacity_ah,
        design_capacity=pack.capacity_ah,
        percentage=battery.charge,
        power_supply_status=(
            BatteryState.POWER_SUPPLY_STATUS_CHARGING
            if charging
            else BatteryState.POWER_SUPPLY_STATUS_DISCHARGING
        ),
        power_supply_health=BatteryState.POWER_SUPPLY_HEALTH_GOOD,
        power_supply_technology=BatteryState.POWER_SUPPLY_TECHNOLOGY_LIPO,
        present=True,
        cell_voltage=[battery.voltage / cells] * cells,
    )

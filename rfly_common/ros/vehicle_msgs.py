# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles and batteries as the messages VehicleStateArray, VehicleState and BatteryState."""

from __future__ import annotations

import math

import numpy as np
from rfly_suite.msg import VehicleState, VehicleStateArray
from sensor_msgs.msg import BatteryState

from rfly_common.energy.battery import Battery
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.stamps import fill_header, stamp_to_ns
from rfly_common.vehicle_states import VehicleStates


def states_to_msg(states: VehicleStates) -> VehicleStateArray:
    """Return a message of flat arrays; arrays that hold only defaults stay empty."""
    message = VehicleStateArray(
        source=states.source,
        id=flat("i", states.id),
        vehicle_type=flat("i", states.vehicle_type),
        position=flat("d", states.position),
        orientation=flat("d", states.orientation),
        motors=states.motor_speed.shape[1],
    )
    fill_header(message, states.stamp_ns, states.frame_id)

    for name in ("velocity", "angular_velocity", "motor_speed"):
        values = getattr(states, name)
        if values.any():
            setattr(message, name, flat("f", values))
    if (states.scale != 1).any():
        message.scale = flat("f", states.scale)
    if states.fit_ground.any():
        message.fit_ground = flat("B", states.fit_ground)

    return message


def state_msg_to_states(message: VehicleState) -> VehicleStates:
    """Return one vehicle as arrays of length 1; a scale of 0 0 0 means 1."""
    scale = np.asarray(message.scale, np.float32)
    motor_speed = np.asarray(message.motor_speed, np.float32)

    return VehicleStates(
        id=np.array([message.id]),
        vehicle_type=np.array([message.vehicle_type]),
        position=np.asarray(message.position),
        orientation=np.asarray(message.orientation),
        velocity=np.asarray(message.velocity, np.float32),
        angular_velocity=np.asarray(message.angular_velocity, np.float32),
        motor_speed=motor_speed.reshape(1, -1),
        scale=scale if scale.any() else np.ones(3, np.float32),
        fit_ground=np.array([message.fit_ground]),
        frame_id=message.header.frame_id,
        stamp_ns=stamp_to_ns(message.header.stamp),
    )


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

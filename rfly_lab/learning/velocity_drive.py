# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Driving by speed and yaw rate for a batch: the laws of the chassis controller, for all at once.

They know the truth, not an estimate, and lack the controller's watches over faults. A vehicle that
also has rotors forgets what they learned while no wheel has load, and its wheels roll freely then.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.sensors.sensor_kernels import JointGeometry, wheel_turn
from rfly_amphibious.sensors.sensor_suite import joint_geometry
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.state_layout import QUATERNION, RATES, STEERING_COMMAND, VELOCITY
from rfly_autonomy.control import drive_laws
from rfly_autonomy.control.chassis_controller import skid_law
from rfly_autonomy.control.drive_laws import (
    DriveLaw,
    SkidLaw,
    SpeedMemory,
    TurnTable,
    fresh_speed,
    skid_torques,
    speed_torques,
    steering_limit,
    traction,
    turn_steering,
    twist_curvature,
)
from rfly_autonomy.control.speed_controller import drive_law
from rfly_autonomy.control.steady_turn import steady_turn
from rfly_autonomy.control.teleop import TeleopLimits
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.kernels.jit import callable_in_kernels, inlined_kernel, kernel
from rfly_common.kernels.vectors import rotated_back, rotation_matrix
from rfly_lab.learning.episode_kernels import limited

for _law in (
    drive_laws.observed_force,
    drive_laws.driving,
    drive_laws.stopping,
    drive_laws.braking_limit,
    drive_laws.brake_shares,
    drive_laws.resistance,
    drive_laws.motor_torque,
    fresh_speed,
    speed_torques,
    skid_torques,
    steering_limit,
    traction,
    turn_steering,
    twist_curvature,
    drive_laws.wheel_velocities,
):
    callable_in_kernels(_law)


class Chassis(NamedTuple):
    """Constants of the laws for one kind of vehicle, as kernels take them."""

    dt: float
    """Time from command to command, s."""
    first: int
    """Place of the speed in an action; the yaw rate follows."""
    most_speed: float
    """Speed of an action of 1, m/s."""
    most_yaw_rate: float
    """Yaw rate of an action of 1, rad/s."""
    flies: bool
    """True if the vehicle has commands for its rotors, too."""
    is_skid: bool
    """True if it steers by its motors."""
    law: DriveLaw
    turn: TurnTable
    skid: SkidLaw
    joints: JointGeometry
    steering_column: int
    """Column of the steering in a row of the state."""
    load_columns: Ints
    """Columns of the wheels' loads in a row of outputs, (wheels,)."""
    drive_columns: Ints
    """Columns of the drive torques in a row of commands, (wheels,)."""
    brake_columns: Ints
    """Columns of the brake torques, (wheels,)."""


class ChassisMemory(NamedTuple):
    """What the laws of n vehicles keep from command to command."""

    speed: Floats
    """Momentum, unknown force, braking force and known force of `SpeedMemory`, (n, 4)."""
    holds: Bools
    """`holds` of `SpeedMemory`, (n,)."""
    motor_torque: Floats
    """`motor_torque` of `SpeedMemory`, (n, wheels), N m."""
    share: Floats
    """Shares of the torque that wheels keep, (n, wheels)."""
    wheel_torque: Floats
    """Torques of motors and brakes, (n, wheels), N m."""
    skid: Floats
    """Integrals of the yaw rate, rad/s, and of the torque, N m, (n, 2)."""

    def copy(self) -> ChassisMemory:
        """Return a copy with arrays of its own."""
        copies: Any = (array.copy() for array in self)
        return ChassisMemory(*copies)


def chassis_memory(vehicles: int, wheels: int) -> ChassisMemory:
    """Return the memory of vehicles that have not begun to drive."""
    holds: NDArray[np.bool_] = np.zeros(vehicles, np.bool_)
    return ChassisMemory(
        np.zeros((vehicles, 4)),
        holds,
        np.zeros((vehicles, wheels)),
        np.ones((vehicles, wheels)),
        np.zeros((vehicles, wheels)),
        np.zeros((vehicles, 2)),
    )


def chassis_of(p: VehicleParameters, dt: float, first: int) -> Chassis:
    """Return the constants of the laws for commands every dt seconds.

    `first`: place of the speed in an action; numbers before it are for the rotors.
    """
    limits = TeleopLimits()
    wheels = len(p.wheels)
    state = state_layout.state_columns(p.rotors, wheels)
    control = state_layout.control_columns(p.rotors, wheels)

    # places of its numbers
    of_state = np.arange(p.state_size)
    of_control = np.arange(state_layout.controls_size(p.rotors, wheels))
    of_outputs = np.arange(state_layout.reported(wheels))

    return Chassis(
        dt=dt,
        first=first,
        most_speed=limits.drive_speed,
        most_yaw_rate=limits.yaw_rate,
        flies=first > 0,
        is_skid=p.steered == "none",
        law=drive_law(p),
        turn=steady_turn(p).table,
        skid=skid_law(p),
        joints=joint_geometry(p),
        steering_column=int(of_state[state["steering"]][0]),
        load_columns=of_outputs[state_layout.output_columns(wheels)["wheel_load"]],
        drive_columns=of_control[control["drive_torque"]],
        brake_columns=of_control[control["brake_torque"]],
    )


@kernel
def begin_drive(which: Ints, memory: ChassisMemory) -> None:
    """Let vehicles (k,) forget all."""
    for k in range(which.shape[0]):
        forget(which[k], memory)


@inlined_kernel
def forget(v: int, memory: ChassisMemory) -> None:
    """Let vehicle v begin anew."""
    keep(v, memory, fresh_speed(memory.share.shape[1]))
    memory.share[v] = 1.0
    memory.wheel_torque[v] = 0.0
    memory.skid[v] = 0.0


@inlined_kernel
def keep(v: int, memory: ChassisMemory, speed: SpeedMemory) -> None:
    """Write what the speed law keeps of vehicle v."""
    memory.speed[v, 0] = speed.momentum
    memory.speed[v, 1] = speed.unknown
    memory.speed[v, 2] = speed.braking_force
    memory.speed[v, 3] = speed.known
    memory.holds[v] = speed.holds
    memory.motor_torque[v] = speed.motor_torque


@kernel
def drive_by_velocity(
    actions: Any,
    chassis: Chassis,
    memory: ChassisMemory,
    states: Floats,
    outputs: Floats,
    rows: Floats,
) -> None:
    """Write steering, drive and brake torques for actions (n, numbers) to rows (n, controls)."""
    for v in range(actions.shape[0]):
        if chassis.flies and not touches(outputs[v], chassis.load_columns):
            forget(v, memory)
            continue
        wanted = chassis.most_speed * limited(actions[v, chassis.first])
        yaw_rate = chassis.most_yaw_rate * limited(actions[v, chassis.first + 1])
        drive_one(v, wanted, yaw_rate, chassis, memory, states[v], rows[v])


@inlined_kernel
def touches(outputs: Floats, load_columns: Ints) -> bool:
    """Return whether any wheel has load."""
    loaded = False
    for i in range(load_columns.shape[0]):
        loaded = loaded or outputs[load_columns[i]] > 0.0
    return loaded


@inlined_kernel
def drive_one(
    v: int,
    wanted: float,
    yaw_rate: float,
    chassis: Chassis,
    memory: ChassisMemory,
    x: Floats,
    row: Floats,
) -> None:
    """Write the commands of vehicle v at a speed, m/s, and a yaw rate, rad/s, and go on."""
    law = chassis.law
    dt = chassis.dt
    w = x[QUATERNION]
    rotation = rotation_matrix(x[QUATERNION + 1], x[QUATERNION + 2], x[QUATERNION + 3], w)
    velocity = rotated_back(rotation, (x[VELOCITY], x[VELOCITY + 1], x[VELOCITY + 2]))
    rates = (x[RATES], x[RATES + 1], x[RATES + 2])
    speed = velocity[0]
    grade = math.asin(max(-1.0, min(1.0, rotation[6])))

    # wheels as encoders read them
    angles = np.empty(len(law.driven))
    spins = np.empty(len(law.driven))
    tan_steering = math.tan(x[chassis.steering_column])
    for i in range(len(angles)):
        tangent, spins[i] = wheel_turn(i, x, tan_steering, chassis.joints)
        angles[i] = math.atan(tangent)

    # traction and steering
    share = memory.share[v]
    skid_rate = 0.0
    steering = 0.0
    if chassis.is_skid:
        skid_rate = yaw_rate
    else:
        torque = memory.wheel_torque[v]
        _, kept = traction(law, share, spins, angles, velocity, rates, torque, dt)
        share[:] = kept
        limit = steering_limit(law, speed)
        steering = turn_steering(chassis.turn, twist_curvature(wanted, yaw_rate), speed)
        steering = min(max(steering, -limit), limit)

    # speed
    before = SpeedMemory(
        memory.speed[v, 0],
        memory.speed[v, 1],
        memory.motor_torque[v].copy(),
        memory.speed[v, 2],
        memory.holds[v],
        memory.speed[v, 3],
    )
    drive, brake, after = speed_torques(
        law, before, wanted, speed, dt, grade, skid_rate == 0.0, rates[2], share, 0.0
    )
    keep(v, memory, after)
    direction = math.copysign(1.0, speed)
    for i in range(len(drive)):
        memory.wheel_torque[v, i] = drive[i] - direction * brake[i]
    if chassis.is_skid:
        own = memory.skid[v]
        if skid_rate == 0.0 and wanted == 0.0:  # the brakes hold it
            own[:] = 0.0
        else:
            turning, own[0], own[1] = skid_torques(
                chassis.skid, own[0], own[1], skid_rate, rates[2], speed, spins, dt
            )
            drive = drive + turning

    row[STEERING_COMMAND] = steering
    for i in range(len(drive)):
        row[chassis.drive_columns[i]] = drive[i]
        row[chassis.brake_columns[i]] = brake[i]

"""Columns of a wheel's numbers in the flat arrays of `state_layout`, for kernels."""

from __future__ import annotations

from rfly_amphibious.vehicle.state_layout import (
    BRAKE_ACTING,
    DRIVE_COMMAND,
    FIXED_STATES,
    MEMORY,
    OUTER_WHEELS,
    REPORTED,
    ROTOR_COMMAND,
    ROTOR_SPEED,
    STRUT,
    WHEEL_LOAD,
)
from rfly_common.kernels.jit import inlined_kernel


@inlined_kernel
def of_wheel(first: int, i: int, block: int, behind: int) -> int:
    """Return the column of wheel i in what begins at column `first` for the outer wheels.

    `block`: where the first quantity that wheels have begins; `behind`: where the middle wheels'
    numbers do.
    """
    return first + i if i < OUTER_WHEELS else behind + (first - block) // 2 + i - OUTER_WHEELS


@inlined_kernel
def state_of(first: int, i: int, rotors: int) -> int:
    """Return the column of wheel i in the state: STRUT to TYRE_Y."""
    return of_wheel(first, i, STRUT, FIXED_STATES + rotors)


@inlined_kernel
def drive_of(i: int, rotors: int) -> int:
    """Return the column of wheel i's drive torque in the state; middle wheels have five
    other quantities first.
    """
    first = ROTOR_SPEED + rotors + 1
    return of_wheel(first, i, first - 5 * OUTER_WHEELS, FIXED_STATES + rotors)


@inlined_kernel
def command_of(first: int, i: int, rotors: int) -> int:
    """Return the column of wheel i in the controls: DRIVE_COMMAND or BRAKE_COMMAND."""
    return of_wheel(first, i, DRIVE_COMMAND, ROTOR_COMMAND + rotors)


@inlined_kernel
def memory_of(i: int) -> int:
    """Return the column of wheel i's brake torque in the memory."""
    return of_wheel(BRAKE_ACTING, i, BRAKE_ACTING, MEMORY)


@inlined_kernel
def output_of(first: int, i: int) -> int:
    """Return the column of wheel i in the outputs: WHEEL_LOAD to TYRE_COMPRESSION."""
    return of_wheel(first, i, WHEEL_LOAD, REPORTED)

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Layout of the flat arrays: state, controls, memory and outputs of a vehicle.

World axes are ENU, body axes FLU, the quaternion is w x y z (body -> world). Wheels: front left,
front right, rear left, rear right; then middle left and middle right, where there is a middle axle.
All numbers are SI. The state has 42 numbers and one more for each rotor.

`STATE`, `CONTROLS`, `MEMORY_FIELDS` and `OUTPUTS` list the quantities of each array in their order.
A quantity of the wheels has four neighbouring columns, one for each outer wheel. The columns of the
two middle wheels follow after the last column of a vehicle without them, in the same order, two
for each quantity. So a column means the same in all vehicles. A middle axle adds 14 numbers to the
state, 6 to the controls, 2 to the memory and 18 to the outputs.

Kernels know none of these columns: they read records (`dynamics.records`), whose fields have the
names of the quantities.
"""

from __future__ import annotations

import functools

import numpy as np

from rfly_common.arrays import Ints

WHEELS = ("fl", "fr", "rl", "rr", "ml", "mr")
"""Names of the wheels of all vehicles; the last two are those of a middle axle."""
OUTER_WHEELS = 4
"""Wheels that every vehicle has."""
MAX_WHEELS = 6
"""Most wheels of a vehicle."""
MAX_ROTORS = 8
"""Most rotors of a vehicle."""
PARTS = 8
"""Room for wheels, or for rotors, in the records of kernels: `LANES`."""

PER_WHEEL = -1
"""Size of a quantity that has a number for each wheel."""
PER_ROTOR = -2
"""Size of a quantity that has a number for each rotor."""

Fields = tuple[tuple[str, int], ...]
"""(name, size) of each quantity of an array, in the array's order."""
Columns = dict[str, slice | Ints]
"""Columns of each quantity: a slice where they are neighbours, so that they give a view."""

# state
POSITION = 0
"""3 columns: position of the sprung mass's centre, m, world."""
VELOCITY = 3
"""3 columns: its velocity, m/s, world."""
QUATERNION = 6
"""4 columns: attitude, w x y z, body -> world."""
QUATERNION_XYZW = [7, 8, 9, 6]
"""Columns of the attitude in the order of all public interfaces: `x[..., QUATERNION_XYZW]`."""
RATES = 10
"""3 columns: angular velocity, rad/s, body."""
STRUT = 13
"""4 columns: displacement of the hubs along body z from their static places, m; positive =
compressed."""
STRUT_RATE = 17
"""4 columns: its rate, m/s."""
WHEEL_SPEED = 21
"""4 columns: spin of the wheels about their axles, inertial, rad/s; positive rolls forward."""
TYRE_X = 25
"""4 columns: longitudinal tyre deflection, m."""
TYRE_Y = 29
"""4 columns: lateral tyre deflection, m."""
ROTOR_SPEED = 33
"""A column for the speed of each rotor, rad/s; then steering (1 column, rad, positive = left),
drive torques (4 columns, N m) and steering trims (4 columns: angle of each wheel beyond that of the
linkage, rad, positive = left)."""

STATE: Fields = (
    ("position", 3),
    ("velocity", 3),
    ("quaternion", 4),
    ("rates", 3),
    ("strut", PER_WHEEL),
    ("strut_rate", PER_WHEEL),
    ("wheel_speed", PER_WHEEL),
    ("tyre_x", PER_WHEEL),
    ("tyre_y", PER_WHEEL),
    ("rotor_speed", PER_ROTOR),
    ("steering", 1),
    ("drive_torque", PER_WHEEL),
    ("steering_trim", PER_WHEEL),
)

# controls
STEERING_COMMAND = 0
"""Steering angle, rad."""
DRIVE_COMMAND = 1
"""4 columns: drive torques, N m."""
BRAKE_COMMAND = 5
"""4 columns: brake torques, N m."""
ROTOR_COMMAND = 9
"""A column for each rotor: rad/s, or N m where rotor torques are commanded; then the steering trims
(4 columns, rad)."""

CONTROLS: Fields = (
    ("steering", 1),
    ("drive_torque", PER_WHEEL),
    ("brake_torque", PER_WHEEL),
    ("rotor", PER_ROTOR),
    ("steering_trim", PER_WHEEL),
)

# memory: numbers besides the state that a simulation carries from step to step
GUST = 4
"""3 columns: gust, m/s, world."""
OVERTURNED = 7
"""Time for which the vehicle has lain on a point of its body, tilted by more than 60°, s."""
CRASHED = 8
"""Cause of the crash: INTACT before it, afterwards one of the causes below."""
MEMORY = 14
"""Numbers in the memory of a vehicle with four wheels."""

MEMORY_FIELDS: Fields = (
    ("brake_acting", PER_WHEEL),  # N m, signed: what acted in the last step
    ("gust", 3),
    ("overturned", 1),
    ("crashed", 1),
    ("turbulence", 5),  # filters of Eq. 3.6: u, v (two) and w (two)
)

# causes of a crash
INTACT = 0
"""No crash."""
OVERTURNED_TOO_LONG = 1
"""The vehicle lay overturned."""
HULL_BROKEN = 2
"""The hull hit something."""
WHEEL_BROKEN = 10
"""A tyre was pressed through: this number plus the wheel's, from 0."""
ROTOR_BROKEN = 20
"""A rotor struck something: this number plus the rotor's, from 0."""

# outputs of one evaluation
SPECIFIC_FORCE = 0
"""3 columns: specific force of the sprung mass's centre, m/s², body."""
THRUST = 23
"""8 columns: thrusts of the rotors, N."""
ROTOR_POWER = 31
"""Power at all shafts together, W."""
BODY_POINTS_DOWN = 32
"""Number of points of the body box and rotor hubs that touch the ground, plus the number of parts
of the hull that touch something solid."""
CLEARANCE = 34
"""Height of the lowest wheel's lowest point above the ground, m; negative = compressed tyre."""
OFF_MAP = 35
"""Number of wheels that are not above the map, where its edge's height is used."""
ROTOR_TORQUE = 52
"""8 columns: torques at the rotors' shafts, N m; positive turns a rotor in its sense."""

OUTPUTS: Fields = (
    ("specific_force", 3),
    ("wheel_load", PER_WHEEL),  # N, along the ground's normal
    ("tyre_force_x", PER_WHEEL),  # N, along the wheels' headings
    ("tyre_force_y", PER_WHEEL),  # N, to the left
    ("strut_force", PER_WHEEL),  # N; positive pushes the body up
    ("tyre_compression", PER_WHEEL),  # m; 0 without contact
    ("thrust", MAX_ROTORS),
    ("rotor_power", 1),
    ("body_points_down", 1),
    ("rotor_down_speed", 1),  # rad/s, of the fastest rotor whose hub or disc strikes something
    ("clearance", 1),
    ("wheels_off_map", 1),
    ("spring_force", PER_WHEEL),  # N, of the struts; positive pushes the body up
    ("damper_force", PER_WHEEL),  # N, the same
    ("slip_ratio", PER_WHEEL),  # positive drives forward
    ("slip_angle", PER_WHEEL),  # rad; positive pushes to the left
    ("rotor_torque", MAX_ROTORS),
)

CORNERS = 8
"""Corners of the body box."""
FIRST_ROTOR = PARTS
"""Point of the body that is the first rotor's hub; the points before it are the wheels' hubs."""
FIRST_CORNER = 2 * PARTS
"""Point of the body that is the first corner of its box."""
POINTS = 3 * PARTS
"""Points of a body whose heights are known, with room for all wheels and rotors."""


def columns(fields: Fields, rotors: int, wheels: int) -> Columns:
    """Return the columns of each quantity of an array, by name."""
    sizes = {PER_WHEEL: OUTER_WHEELS, PER_ROTOR: rotors}
    result: Columns = {}
    end = 0
    for name, size in fields:
        begin = end
        end += sizes.get(size, size)
        result[name] = slice(begin, end)

    # the middle wheels follow
    middle = wheels - OUTER_WHEELS
    for name, size in fields:
        if size == PER_WHEEL and middle:
            outer = np.arange(end)[result[name]]
            result[name] = np.append(outer, np.arange(end, end + middle))
            end += middle
    return result


def record_sizes(fields: Fields) -> dict[str, int]:
    """Return the size of each quantity in a record, in the record's order.

    Numbers of wheels and rotors come first: each quantity fills a vector of the processor's.
    """
    sizes = {name: PARTS if size in (PER_WHEEL, PER_ROTOR) else size for name, size in fields}
    return dict(sorted(sizes.items(), key=lambda item: item[1] != PARTS))


def columns_of_record(fields: Fields, rotors: int, wheels: int) -> Ints:
    """Return for each number of a record its column in the public array, -1 where it has none."""
    own = columns(fields, rotors, wheels)
    result = []
    for name, size in record_sizes(fields).items():
        place = own[name]
        used = range(place.start, place.stop) if isinstance(place, slice) else place.tolist()
        result += [*used, *[-1] * (size - len(used))]
    return np.array(result)


@functools.cache
def state_columns(rotors: int, wheels: int) -> Columns:
    """Return the columns of the state, by the names of `STATE`."""
    return columns(STATE, rotors, wheels)


@functools.cache
def control_columns(rotors: int, wheels: int) -> Columns:
    """Return the columns of the controls, by the names of `CONTROLS`."""
    return columns(CONTROLS, rotors, wheels)


@functools.cache
def memory_columns(wheels: int) -> Columns:
    """Return the columns of the memory, by the names of `MEMORY_FIELDS`."""
    return columns(MEMORY_FIELDS, 0, wheels)


@functools.cache
def output_columns(wheels: int) -> Columns:
    """Return the columns of the outputs, by the names of `OUTPUTS`."""
    return columns(OUTPUTS, 0, wheels)


def _size(fields: Fields, rotors: int, wheels: int) -> int:
    """Return how many numbers an array of a vehicle has."""
    sizes = {PER_WHEEL: wheels, PER_ROTOR: rotors}
    return sum(sizes.get(size, size) for _, size in fields)


@functools.cache
def state_size(rotors: int, wheels: int) -> int:
    """Return how many numbers the state of a vehicle has."""
    return _size(STATE, rotors, wheels)


@functools.cache
def controls_size(rotors: int, wheels: int) -> int:
    """Return how many numbers the controls of a vehicle have."""
    return _size(CONTROLS, rotors, wheels)


@functools.cache
def memory_size(wheels: int) -> int:
    """Return how many numbers the memory of a vehicle has."""
    return _size(MEMORY_FIELDS, 0, wheels)


@functools.cache
def reported(wheels: int) -> int:
    """Return how many numbers one evaluation of a vehicle reports."""
    return _size(OUTPUTS, 0, wheels)


def crash_cause(code: int) -> str:
    """Return which part broke, and how, for a cause of CRASHED; "" for INTACT."""
    if code >= ROTOR_BROKEN:
        return f"rotor {code - ROTOR_BROKEN + 1} struck something"
    if code >= WHEEL_BROKEN:
        return f"tyre {WHEELS[code - WHEEL_BROKEN]} was pressed through"
    return ("", "it lay overturned", "the hull hit something")[code]


def state_names(rotors: int, wheels: int = OUTER_WHEELS) -> list[str]:
    """Return one name with its unit for each number of the state, for tables and errors."""
    names = {
        "position": [f"position_{axis}_m" for axis in "xyz"],
        "velocity": [f"velocity_{axis}_mps" for axis in "xyz"],
        "quaternion": [f"quaternion_{part}" for part in "wxyz"],
        "rates": [f"rate_{axis}_radps" for axis in "xyz"],
        "strut": [f"strut_{wheel}_m" for wheel in WHEELS],
        "strut_rate": [f"strut_rate_{wheel}_mps" for wheel in WHEELS],
        "wheel_speed": [f"wheel_speed_{wheel}_radps" for wheel in WHEELS],
        "tyre_x": [f"tyre_x_{wheel}_m" for wheel in WHEELS],
        "tyre_y": [f"tyre_y_{wheel}_m" for wheel in WHEELS],
        "rotor_speed": [f"rotor_{j + 1}_radps" for j in range(rotors)],
        "steering": ["steering_rad"],
        "drive_torque": [f"drive_torque_{wheel}_nm" for wheel in WHEELS],
        "steering_trim": [f"steering_trim_{wheel}_rad" for wheel in WHEELS],
    }

    every = np.arange(state_size(rotors, wheels))
    result = [""] * len(every)
    for quantity, own in state_columns(rotors, wheels).items():
        for column, name in zip(every[own], names[quantity], strict=False):
            result[column] = name
    return result

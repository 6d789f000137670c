"""Layout of the flat arrays: state, controls, memory, outputs.

World axes are ENU, body axes FLU, the quaternion is w x y z (body -> world). Wheels: front left,
front right, rear left, rear right; then middle left and middle right, where there is a middle axle.
All SI. The state has 38 numbers and one for each rotor.

What is said below of four wheels lies side by side. The numbers of the two middle wheels come
behind all that a vehicle without them has, in the same order, two and two: with them a state has 12
numbers more, controls 4, memory 2 and outputs 10. So the same columns mean the same for all
vehicles.
"""

from __future__ import annotations

import numpy as np

from rfly_common.arrays import Ints

WHEELS = ("fl", "fr", "rl", "rr", "ml", "mr")
"""of all vehicles; the last two are those of a middle axle"""
OUTER_WHEELS = 4
MAX_WHEELS = 6
MAX_ROTORS = 8

# state
POSITION = 0
"""3: of the sprung mass's centre, m, world"""
VELOCITY = 3
"""3: m/s, world"""
QUATERNION = 6
"""4: w x y z, body -> world"""
QUATERNION_XYZW = [7, 8, 9, 6]
"""its columns in the order of all public interfaces: `x[..., QUATERNION_XYZW]`"""
RATES = 10
"""3: angular velocity, rad/s, body"""
STRUT = 13
"""4: hub displacement along body z from its static place, m; positive = compressed"""
STRUT_RATE = 17
"""4: m/s"""
WHEEL_SPEED = 21
"""4: spin about the axle, inertial, rad/s; positive rolls forward"""
TYRE_X = 25
"""4: longitudinal tyre deflection, m"""
TYRE_Y = 29
"""4: lateral tyre deflection, m"""
ROTOR_SPEED = 33
"""as many as there are rotors: rad/s; then steering 1 (rad, positive = left) and drive torque 4 (N
m)
"""
AFTER_ROTORS = 5
"""numbers behind the rotor speeds: steering, drive torques"""
FIXED_STATES = 38

# controls
STEERING_COMMAND = 0
DRIVE_COMMAND = 1
BRAKE_COMMAND = 5
ROTOR_COMMAND = 9
"""as many as there are rotors: rad/s, or N m where rotor torques are commanded"""

# memory: what a simulation carries from step to step beside the state
BRAKE_ACTING = 0
"""4: brake torque that acted in the last step, N m, signed"""
GUST = 4
"""3: m/s, world"""
OVERTURNED = 7
"""s: how long the vehicle has been lying tilted by more than 60° on a point of its body"""
CRASHED = 8
"""0, or once it has crashed, why: one of the following"""
INTACT = 0
OVERTURNED_TOO_LONG = 1
HULL_BROKEN = 2
WHEEL_BROKEN = 10
"""and the wheel's number, from 0"""
ROTOR_BROKEN = 20
"""and the rotor's number, from 0"""
TURBULENCE = 9
"""5: of the filters of Eq. 3.6, u, v (two) and w (two)"""
MEMORY = 14

# outputs of one evaluation
SPECIFIC_FORCE = 0
"""3: of the sprung mass's centre, m/s², body"""
WHEEL_LOAD = 3
"""4: N, along the ground's normal"""
TYRE_FORCE_X = 7
"""4: N, along the wheel's heading"""
TYRE_FORCE_Y = 11
"""4: N, to the left"""
STRUT_FORCE = 15
"""4: N, positive pushes the body up"""
TYRE_COMPRESSION = 19
"""4: m; 0 without contact"""
THRUST = 23
"""8: N"""
ROTOR_POWER = 31
"""W, at all shafts together"""
BODY_POINTS_DOWN = 32
"""points of the body box and rotor hubs that touch the ground, and parts of the hull that touch
something solid
"""
ROTOR_DOWN_SPEED = 33
"""rad/s, of the fastest rotor whose hub touches the ground, or whose disc something solid"""
CLEARANCE = 34
"""m, from the ground up to the lowest wheel's lowest point; negative = compressed tyre"""
OFF_MAP = 35
"""wheels that are not above the map, where its edge's height is used"""
REPORTED = 36
"""numbers above"""
CORNERS = 8
POINTS = 24
"""looked up on the ground at once: hubs of all wheels, corners of the body box 8, rotor hubs 8; and
two more, as a step takes 9 % longer where such a field does not fill whole cache lines
"""


def _columns(first: int, wheels: int, block: int, behind: int) -> slice | Ints:
    """Those of all wheels: a slice where they lie side by side."""
    if wheels == OUTER_WHEELS:
        return slice(first, first + OUTER_WHEELS)
    more = behind + (first - block) // 2 + np.arange(wheels - OUTER_WHEELS)
    return np.concatenate([np.arange(first, first + OUTER_WHEELS), more])


def wheel_states(first: int, wheels: int, rotors: int) -> slice | Ints:
    """As `wheel_columns.state_of`, of all wheels."""
    return _columns(first, wheels, STRUT, FIXED_STATES + rotors)


def wheel_drives(wheels: int, rotors: int) -> slice | Ints:
    """As `wheel_columns.drive_of`, of all wheels."""
    first = ROTOR_SPEED + rotors + 1
    return _columns(first, wheels, first - 5 * OUTER_WHEELS, FIXED_STATES + rotors)


def wheel_commands(first: int, wheels: int, rotors: int) -> slice | Ints:
    """As `wheel_columns.command_of`, of all wheels."""
    return _columns(first, wheels, DRIVE_COMMAND, ROTOR_COMMAND + rotors)


def wheel_memory(wheels: int) -> slice | Ints:
    """As `wheel_columns.memory_of`, of all wheels."""
    return _columns(BRAKE_ACTING, wheels, BRAKE_ACTING, MEMORY)


def wheel_outputs(first: int, wheels: int) -> slice | Ints:
    """As `wheel_columns.output_of`, of all wheels."""
    return _columns(first, wheels, WHEEL_LOAD, REPORTED)


def rotor_commands(rotors: int) -> slice:
    """Columns of the controls."""
    return slice(ROTOR_COMMAND, ROTOR_COMMAND + rotors)


def controls_size(rotors: int, wheels: int) -> int:
    """Numbers in the controls."""
    return ROTOR_COMMAND + rotors + 2 * (wheels - OUTER_WHEELS)


def memory_size(wheels: int) -> int:
    """Numbers in the memory of a vehicle with so many wheels."""
    return MEMORY + wheels - OUTER_WHEELS


def reported(wheels: int) -> int:
    """Numbers of one evaluation."""
    return REPORTED + 5 * (wheels - OUTER_WHEELS)


def crash_cause(code: int) -> str:
    """Which part a cause of CRASHED names, and what happened to it; "" for INTACT."""
    if code >= ROTOR_BROKEN:
        return f"rotor {code - ROTOR_BROKEN + 1} struck something"
    if code >= WHEEL_BROKEN:
        return f"tyre {WHEELS[code - WHEEL_BROKEN]} was pressed through"
    return ("", "it lay overturned", "the hull hit something")[code]


def state_size(rotors: int, wheels: int) -> int:
    """Numbers in the state of a vehicle with so many rotors and wheels."""
    return FIXED_STATES + rotors + 6 * (wheels - OUTER_WHEELS)


def state_names(rotors: int, wheels: int = OUTER_WHEELS) -> list[str]:
    """One name with its unit for each number of the state, for tables and errors."""
    names = [
        f"{quantity}_{axis}_{unit}"
        for quantity, unit in (("position", "m"), ("velocity", "mps"))
        for axis in "xyz"
    ]
    names += [f"quaternion_{part}" for part in "wxyz"] + [f"rate_{axis}_radps" for axis in "xyz"]
    of_wheels = (
        ("strut", "m"),
        ("strut_rate", "mps"),
        ("wheel_speed", "radps"),
        ("tyre_x", "m"),
        ("tyre_y", "m"),
    )
    drive = ("drive_torque", "nm")
    names += [
        f"{quantity}_{wheel}_{unit}"
        for quantity, unit in of_wheels
        for wheel in WHEELS[:OUTER_WHEELS]
    ]
    names += [f"rotor_{j + 1}_radps" for j in range(rotors)] + ["steering_rad"]
    names += [f"{drive[0]}_{wheel}_{drive[1]}" for wheel in WHEELS[:OUTER_WHEELS]]
    middle = WHEELS[OUTER_WHEELS:wheels]
    return names + [
        f"{quantity}_{wheel}_{unit}" for quantity, unit in (*of_wheels, drive) for wheel in middle
    ]

"""Layout of the flat arrays: state, controls, memory, outputs.

World axes are ENU, body axes FLU, the quaternion is w x y z (body -> world). Wheels: front left, front right,
rear left, rear right. All SI. The state has 38 numbers and one for each rotor.
"""

from __future__ import annotations

WHEELS = ("fl", "fr", "rl", "rr")
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
"""as many as there are rotors: rad/s; then steering 1 (rad, positive = left) and drive torque 4 (N m)"""
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
INTACT, OVERTURNED_TOO_LONG, HULL_BROKEN = 0, 1, 2
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
"""points of the body box and rotor hubs that touch the ground, and parts of the hull that touch something solid"""
ROTOR_DOWN_SPEED = 33
"""rad/s, of the fastest rotor whose hub touches the ground, or whose disc something solid"""
CLEARANCE = 34
"""m, from the ground up to the lowest wheel's lowest point; negative = compressed tyre"""
OFF_MAP = 35
"""wheels that are not above the map, where its edge's height is used"""
REPORTED = 36
"""numbers above"""
POINTS = 20
"""looked up on the ground at once: hubs 4, corners of the body box 8, rotor hubs 8"""
FIRST_CORNER, FIRST_ROTOR = 4, 12


def crash_cause(code: int) -> str:
    """Which part a cause of CRASHED names, and what happened to it; "" for INTACT."""
    if code >= ROTOR_BROKEN:
        return f"rotor {code - ROTOR_BROKEN + 1} struck something"
    if code >= WHEEL_BROKEN:
        return f"tyre {WHEELS[code - WHEEL_BROKEN]} was pressed through"
    return ("", "it lay overturned", "the hull hit something")[code]


def state_size(rotors: int) -> int:
    """Numbers in the state of a vehicle with this many rotors."""
    return FIXED_STATES + rotors


def state_names(rotors: int) -> list[str]:
    """One name with its unit for each number of the state, for tables and errors."""
    names = [
        f"{quantity}_{axis}_{unit}" for quantity, unit in (("position", "m"), ("velocity", "mps")) for axis in "xyz"
    ]
    names += [f"quaternion_{part}" for part in "wxyz"] + [f"rate_{axis}_radps" for axis in "xyz"]
    for quantity, unit in (
        ("strut", "m"),
        ("strut_rate", "mps"),
        ("wheel_speed", "radps"),
        ("tyre_x", "m"),
        ("tyre_y", "m"),
    ):
        names += [f"{quantity}_{wheel}_{unit}" for wheel in WHEELS]
    names += [f"rotor_{j + 1}_radps" for j in range(rotors)] + ["steering_rad"]
    return names + [f"drive_torque_{wheel}_nm" for wheel in WHEELS]

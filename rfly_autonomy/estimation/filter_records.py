# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Records of the error-state Kalman filter: nominal state, book-keeping, logs and constants.

World axes ENU, body axes FLU, SI units. The filter's point is the IMU, so that it needs no angular
acceleration. In the kernels `x` is a record of type STATE, `book` one of type BOOK, `p` the
covariance of the error state (ERRORS, ERRORS), `h` a measurement's Jacobian (m, ERRORS) and `c` the
Constants.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

MAX_WHEELS = 6
"""Number of wheels there is room for. `Constants.radius` has the vehicle's number."""

SHAPE_READINGS = 16
"""Number of GPS velocities whose shape against the IMU is looked at."""

LONGEST_GAP = 0.5
"""Time between two readings of an aid above which the later begins anew, s. That of a slow GPS is
longer, `Constants.gps_gap`.
"""

SENSORS = (
    "gps_position",
    "gps_velocity",
    "magnetometer",
    "barometer",
    "orientation",
    "wheel_speed",
    "side_slip",
    "standstill",
    "height",
)
"""Measurements that are fused, in the order of all counters."""
DEGREES = (3, 3, 3, 1, 3, 1, 1, 6, 1)
"""Numbers in a measurement of each sensor."""
FIRST_NUMBERS = (0, 3, 6, 9, 10, 13, 14, 15, 21)
"""First number of each sensor among the numbers of all sensors: sums of DEGREES."""

GPS_POSITION = 0
GPS_VELOCITY = 1
MAGNETOMETER = 2
BAROMETER = 3
ORIENTATION = 4
WHEEL_SPEED = 5
SIDE_SLIP = 6
STANDSTILL = 7
HEIGHT = 8
NO_SENSOR = -1


def _record(fields: list[tuple[str, int]]) -> np.dtype[Any]:
    """Return a type of records of floats: numbers, and arrays where the length is above 1."""
    parts = [(name, np.float64, (length,) if length > 1 else ()) for name, length in fields]
    return np.dtype((np.record, parts))


STATE = _record(
    [
        ("position", 3),  # m
        ("velocity", 3),  # m/s
        ("quaternion", 4),  # w x y z, body -> world
        ("gyro_bias", 3),  # rad/s, body axes
        ("force_bias", 3),  # m/s², body axes
        ("gps_drift", 3),  # m, world axes
        ("baro_bias", 1),  # Pa
        ("field_bias", 3),  # T, body axes
        ("ahrs_drift", 3),  # rad, of the IMU's own orientation, world axes
        ("ground_error", 1),  # m, height of the ground above the map's
        ("slip", 1),  # share by which wheels turn faster than they roll
    ]
)
"""Nominal state."""

BOOK = _record(
    [
        # motion at this time, body axes, without the biases
        ("time", 1),
        ("rates", 3),
        ("force", 3),
        # wheels
        ("wheel_load", MAX_WHEELS),  # N
        ("wheel_load_time", 1),
        ("still_since", 1),
        ("still_angle", MAX_WHEELS),  # rad, of the wheels at that time
        ("last_standstill", 1),  # times of the last measurements
        ("last_side_slip", 1),
        # measurements of each sensor: counts, time, and normalised innovations squared
        ("accepted", len(SENSORS)),
        ("rejected", len(SENSORS)),
        ("last_accepted", len(SENSORS)),
        ("innovation", len(SENSORS)),
        ("innovation_sum", len(SENSORS)),
        ("residual", sum(DEGREES)),  # innovation of the last measurement of each sensor
        # time when each wheel was last off the ground
        ("last_lifted", MAX_WHEELS),
        # GPS
        ("gps_doubt", 1),  # fixes that did not fit, less those that did
        ("gps_refused", 1),  # 1: yes
        ("gps_agrees_since", 1),  # time since when its fixes agree with each other
        ("gps_offset", 3),  # m, last fix less the expected one
        ("gps_back_at", 1),  # time of its first fix after it was away for long
        ("gps_resets", 1),  # number of times its position was taken over
        # small filter of altitude and climb without heights, see `consistency`
        ("free_altitude", 1),
        ("free_climb", 1),
        ("free_p", 3),  # variance of the altitude, covariance, variance of the climb
        ("free_way", 1),  # m, its way up since the last height
        # small filter of the level velocity without wheels, see `speed_consistency`
        ("free_velocity", 2),
        ("free_variance", 1),
        ("gps_apart", 2),  # m/s, GPS velocity less that one, averaged
        ("velocity_off", 3),  # m/s, innovation of the GPS velocity, averaged
        ("velocity_off_square", 1),  # (m/s)², its square, averaged alike
        ("wheels_apart", 2),  # m/s, the same of the wheels
        ("wheels_time", 1),
        ("wheels_slide", 1),  # 1: yes
        ("slide_since", 1),
        # GPS positions against GPS velocity
        ("fix_time", 1),
        ("fix_gap", 1),  # s
        ("fix_position", 3),
        ("fix_velocity", 3),
        ("fix_way", 3),  # m, beyond that of the velocities
        ("gps_velocity_refused", 1),  # 1: yes
        # GPS velocities against the IMU's integral, see `velocity_shapes`
        ("imu_velocity", 3),  # m/s, integral of the IMU's acceleration, never corrected
        ("slow_force_bias", 3),  # m/s², body axes, the bias taken off there
        ("apart_count", 1),  # number of GPS velocities compared with it
        ("apart_time", SHAPE_READINGS),  # times of the last ones
        ("apart", 3 * SHAPE_READINGS),  # m/s, GPS velocity less that integral
        ("may_step", 1),  # 1: a step explains them as well as a slope does
        ("gps_velocity_step", 3),  # m/s, step of a GPS velocity that is refused for it; 0: none
        # height against that climb
        ("height_altitude", 1),  # m, of the IMU by the last height
        ("height_time", 1),
        ("height_lag", 1),  # m
        ("height_refused", 1),  # 1: yes
        ("height_way", 1),  # m, way without a lag since it was refused
        # pressure against the climb
        ("pressure_apart", 1),  # Pa, innovation of pressures, averaged
        ("pressure_pull", 1),  # m, what they moved the altitude; it fades
        ("pressure_drift", 1),  # Pa, the same innovation, averaged for long
        ("pressure_drag", 1),  # m, what they moved the altitude; it fades as slowly
        ("climb_apart", 1),  # m/s, innovation of the GPS's climb, averaged
        ("climb_fits", 1),  # 1: it confirms the climb
        ("usual_pressure_bias", 1),  # Pa, the barometer's bias without a step
        ("pressure_stepped", 1),  # 1: the bias made a step
        # votes against the prediction
        ("last_measured", len(SENSORS)),
        ("doubted_since", len(SENSORS)),  # last accepted, or the first after a gap
        ("misfits", len(SENSORS)),  # share of readings that do not fit well
        ("realigned_at", 1),  # time when the motion was last estimated anew
        ("gyro_biased", 1),  # 1: beyond what is usual
        ("force_biased", 1),
        # ground
        ("off_map", 1),  # 1: the ground below the vehicle is not the map's
        ("bend_variance", 1),  # m², of the map's ground about its mean plane around the vehicle
    ]
)
"""Everything else that the filter remembers."""

IMU_SAMPLE = _record(
    [
        ("time", 1),
        ("source", 1),  # of force and rates: IMU, NOTHING or ROTORS
        ("force", 3),  # m/s², body axes
        ("rates", 3),  # rad/s, body axes
    ]
)
"""Row of the IMU's log."""

IMU = 0.0
NOTHING = 1.0
ROTORS = 2.0
"""Sources of a row of the IMU's log: a sample, or while it is silent nothing or the rotors."""

MEASUREMENT = _record([("time", 1), ("kind", 1), ("values", 18)])
"""Row of the log of measurements.

Joints: rates, steering and angles of each wheel. GPS: position, velocity, and 1 if the velocity was
not measured.
"""
GPS_WITHOUT_VELOCITY = 6
"""Number of a GPS's measurement that is 1 if its velocity was not measured."""

KIND_LOADS = 0
KIND_JOINTS = 1
KIND_GPS = 2
KIND_FIELD = 3
KIND_PRESSURE = 4
KIND_ORIENTATION = 5
KIND_HEIGHT = 6
"""Kinds of measurements, in the order in which those of one time are used."""

SAME_TIME = 1e-7
"""Stamps nearer than this are of one instant, s."""


class History(NamedTuple):
    """The IMU's log, and the filter at each of its rows."""

    imu: Any
    """Records IMU_SAMPLE, (rows,)."""
    x: Any
    """Records STATE, (rows,)."""
    book: Any
    """Records BOOK, (rows,)."""
    p: Any
    """Covariances, (rows, ERRORS, ERRORS)."""
    cursor: Any
    """First row of the log of measurements after each row, (rows,)."""


class Constants(NamedTuple):
    """Constants of a run. Noise: densities of integrated readings, else standard deviations."""

    force_noise: float
    gyro_noise: float
    coast_force: float
    coast_gyro: float

    markov_sigma: Any
    """Stationary standard deviations of errors that fade, (ERRORS,)."""
    markov_time: Any
    """Correlation times of errors, s; inf for those that do not fade, (ERRORS,)."""
    ground_known: bool
    ground_slope: float

    gps_white: Any
    """Noise of the position, m, (3,)."""
    gps_velocity: float
    field: Any
    """Magnetic field of the Earth, T, ENU, (3,)."""
    field_white: float
    pressure_white: float
    altitude: float
    """Altitude of the world's origin, m."""
    ahrs_white: float
    height_white: float

    wheel_noise: float
    """Noise of one wheel's rate, rad/s."""
    wheel_floor: float
    """Noise of the speed that all wheels have in common, m/s."""
    wheel_delay: float
    """Age of a wheel's rate at its stamp, s."""
    slip_gain: float
    """Share of slip for each m/s² along the vehicle."""
    drag: float
    """Deceleration of rolling wheels, m/s²."""
    side_gain: float
    """Slip angle for each m/s² across, rad."""
    side_noise: float
    side_slip: float
    side_slip_rate: float
    """Uncertainty of the slip angle for each m/s² of side force, rad."""
    side_period: float

    still_time: float
    still_rate: float
    still_way: float
    still_speed: float
    still_gyro: float
    still_period: float

    wheel_load: float
    """Least load of a wheel that rolls on the ground, N."""
    still_load: float
    """Least load of all wheels of a vehicle that stands, N."""
    load_age: float

    radius: Any
    """Rolling radii, m, (wheels,)."""
    hub_x: Any
    """Hubs from the IMU, m, (wheels,)."""
    hub_y: Any
    hub_z: float
    """Mean height of the hubs from the IMU, m."""
    tread_z: float
    """Mean height of the wheels' contacts with the ground from the IMU, m."""
    lever_gps: Any
    """Place from the IMU, m, body axes, (3,)."""
    lever_baro: Any
    lever_height: Any

    contact_time: float
    """Time on the ground after which a wheel rolls, s."""
    grip: float
    """Acceleration across and along at which tyres slide with all weight on the wheels, m/s²."""
    weight: float
    """Weight, N."""

    gates: Any
    """Largest normalised innovation squared of a measurement of 0 … 6 numbers, (7,)."""
    return_gate: float
    """Gate for readings of up to three numbers that fit well."""
    reacquire: float
    """Time over which readings that do not fit are averaged, s."""
    gyro_usual: Any
    """Usual standard deviations of the gyroscope's bias, rad/s, (3,)."""
    force_usual: Any
    """The same of the accelerometer's, m/s², (3,)."""
    gps_reset: float
    """Time after which the position of a refused GPS is taken over, s."""
    gps_gap: float
    """Time between two readings of the GPS above which the later begins anew, s."""

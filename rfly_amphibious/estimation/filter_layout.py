"""Layout of the error-state Kalman filter: nominal state, error state, logs, and what is constant
in a run.

World axes ENU, body axes FLU, SI units. Its point is the IMU, so that no angular acceleration is
needed; attitude errors are rotation vectors in world axes: R_true = exp(error) R. In the kernels
`x` is the nominal state (SIZE,), `p` the covariance of the error state (ERRORS, ERRORS), `h` a
measurement's Jacobian (m, ERRORS), `c` the Constants.
"""

from __future__ import annotations

from typing import Any, NamedTuple

POSITION = 0
VELOCITY = 3
QUATERNION = 6
GYRO_BIAS = 10
FORCE_BIAS = 13
GPS_DRIFT = 16
BARO_BIAS = 19
FIELD_BIAS = 20
AHRS_DRIFT = 23
GROUND_ERROR = 26
SLIP = 27
"""nominal state: quaternion w x y z, biases in body axes, drifts of GPS and of the IMU's own
orientation in world axes, the field's bias in T, how much higher the ground is than the map says,
m, the share by which wheels turn faster than they roll
"""

E_POSITION = 0
E_VELOCITY = 3
E_ATTITUDE = 6
E_GYRO = 9
E_FORCE = 12
E_GPS = 15
E_BARO = 18
E_FIELD = 19
E_AHRS = 22
E_GROUND = 25
E_SLIP = 26
ERRORS = 27

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
"""what is fused, in the order of all counters"""
DEGREES = (3, 3, 3, 1, 3, 1, 1, 6, 1)
"""numbers in a measurement of each"""
(
    GPS_POSITION,
    GPS_VELOCITY,
    MAGNETOMETER,
    BAROMETER,
    ORIENTATION,
    WHEEL_SPEED,
    SIDE_SLIP,
    STANDSTILL,
    HEIGHT,
) = range(9)
NOTHING = -1

WHEELS = 6
"""as many as there is room for; a vehicle with fewer leaves the last ones out: `Constants.radius`
has its number
"""
TIME = 28
RATES = 29
FORCE = 32
LOADS = 35
LOAD_TIME = 41
STILL_SINCE = 42
STILL_ANGLE = 43
LAST_STILL = 49
LAST_SIDE = 50
ACCEPTED = 51
REJECTED = 60
LAST_ACCEPTED = 69
INNOVATION = 78
INNOVATION_SUM = 87
"""of each sensor; the last normalised innovation squared, and the sum of all of them"""
CONTACT = 96
GPS_DOUBT = 102
GPS_REFUSED = 103
GPS_AGREES = 104
GPS_OFF = 105
GPS_RESETS = 108
OFF_MAP = 109
GROUND_BENT = 110
"""when each wheel was last off the ground; fixes that did not fit, less those that did; whether the
GPS is refused, since when its fixes agree with each other, how far it is off (3), how often its
position was taken over, whether what is below the vehicle is not the map's ground, and the variance
(m²) of the map's ground about its mean plane where the vehicle may be
"""
SIZE = 111

IMU_TIME = 0
IMU_COASTS = 1
IMU_FORCE = 2
IMU_RATES = 5
IMU_WIDTH = 8
"""a row of the IMU's log, in body axes; it coasts where the IMU was silent"""

LOG_TIME = 0
LOG_KIND = 1
LOG_VALUES = 2
LOG_WIDTH = 20
KIND_LOADS, KIND_JOINTS, KIND_GPS, KIND_FIELD, KIND_PRESSURE, KIND_ORIENTATION, KIND_HEIGHT = range(
    7
)
"""rows of the measurements' log, and the order of those of one time. Joints: rates, steering,
angles, of each wheel
"""

SAME_TIME = 1e-7
"""s: stamps nearer than this are of one instant"""


class History(NamedTuple):
    """Logs of a run, and what the filter knew at each row of the IMU's."""

    imu: Any
    """(rows, IMU_WIDTH)"""
    measurements: Any
    """(n, LOG_WIDTH) in the order of their times"""
    x: Any
    """(rows, SIZE)"""
    p: Any
    """(rows, ERRORS, ERRORS)"""
    cursor: Any
    """(rows,) the first measurement after that row"""


class Constants(NamedTuple):
    """What stays the same in a run. Noise: densities for what is integrated, standard deviations
    for what is read.
    """

    force_noise: float
    gyro_noise: float
    coast_force: float
    coast_gyro: float
    markov_sigma: Any
    """(27,) stationary standard deviations of the errors that fade: biases, drifts, the map's
    error, slip
    """
    markov_time: Any
    """(27,) s, their correlation times; inf: it does not fade"""
    ground_known: bool
    ground_slope: float
    gps_white: Any
    """(3,)"""
    gps_velocity: float
    field: Any
    """(3,) T, ENU"""
    field_white: float
    pressure_white: float
    altitude: float
    """m, of the world's origin"""
    ahrs_white: float
    height_white: float
    wheel_noise: float
    """rad/s, of one wheel"""
    wheel_floor: float
    """m/s, of all together"""
    wheel_delay: float
    """s, by which a wheel's rate is older than its stamp"""
    slip_gain: float
    """share of slip for each m/s² along the vehicle"""
    drag: float
    """m/s², of rolling wheels"""
    side_gain: float
    """rad of slip angle for each m/s² across"""
    side_noise: float
    side_slip: float
    side_slip_rate: float
    """rad of slip angle for each m/s² of side force"""
    side_period: float
    still_time: float
    still_rate: float
    still_way: float
    still_speed: float
    still_gyro: float
    still_period: float
    wheel_load: float
    """N, from which a wheel rolls on the ground"""
    still_load: float
    """N, of all wheels, from which a vehicle may stand"""
    load_age: float
    radius: Any
    """(wheels,)"""
    hub_x: Any
    """(wheels,) from the IMU"""
    hub_y: Any
    hub_z: float
    """m, mean of the hubs from the IMU"""
    tread_z: float
    """m, likewise of where the wheels touch the ground"""
    lever_gps: Any
    """(3,) from the IMU, body axes"""
    lever_baro: Any
    lever_height: Any
    contact_time: float
    """s on the ground after which a wheel rolls"""
    grip: float
    """m/s² across and along, for all of the weight on the wheels, from which tyres slide"""
    weight: float
    """N"""
    gates: Any
    """(7,) largest normalised innovation squared of as many numbers"""
    return_gate: float
    """of a fix of a refused GPS, or a height above the map, that fits again"""
    reacquire: float
    """s of rejections after which GPS velocity is believed again"""
    gps_reset: float
    """s after which the position of a refused GPS is taken over"""

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Samples, commands, estimates and setpoints of the land-air vehicle <-> messages.

See docs/model, section 11. Frames of a vehicle have its name as prefix: `<vehicle>/base_link`,
`<vehicle>/imu_link`; `map` is the world, ENU.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from ackermann_msgs.msg import AckermannDriveStamped
from geometry_msgs.msg import PoseStamped, TwistStamped, Vector3Stamped
from nav_msgs.msg import Odometry, Path
from numpy.typing import ArrayLike
from rfly_suite.msg import RotorCommand as RotorCommandMsg
from rfly_suite.msg import WheelCommand as WheelCommandMsg
from sensor_msgs.msg import (
    FluidPressure,
    Imu,
    JointState,
    MagneticField,
    NavSatFix,
    NavSatStatus,
    Range,
)
from std_msgs.msg import Float64MultiArray

from rfly_amphibious.control.commands import RotorCommand, Setpoint, WheelCommand
from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.sensors import samples
from rfly_amphibious.sensors.samples import joint_names
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_array, unit_quaternion
from rfly_common.errors import CommandError, SensorMessageError
from rfly_common.frames import quat_to_euler, rotation_matrix
from rfly_common.ros.stamps import ns_to_stamp, stamp_to_ns

if TYPE_CHECKING:
    from rfly_amphibious.sensors.sensor_suite import SensorSuite

Message = TypeVar("Message", bound=Any)

WORLD = "map"
UNKNOWN = 1e6
"""Variance of quantities that a sensor does not measure."""
WENT_BACK_S = 0.05
"""Step back of stamps that means a reset of the simulation, s."""


def frame_of(vehicle: str, name: str) -> str:
    """Return the frame `name` of a vehicle."""
    return f"{vehicle}/{name}" if vehicle else name


def _stamped(message: Message, time: float, frame_id: str, epoch_ns: int = 0) -> Message:
    """Return the message with a time (s since the epoch) as its stamp, and its frame."""
    message.header.stamp = ns_to_stamp(epoch_ns + round(time * 1e9))
    message.header.frame_id = frame_id
    return message


def time_of(message: Any) -> float:
    """Return the time of a message's stamp, s."""
    return stamp_to_ns(message.header.stamp) * 1e-9


def _time_since(message: Any, epoch_ns: int, now: float) -> float:
    """Return the time of a message's stamp, s since the epoch; `now` without a stamp."""
    stamp_ns = stamp_to_ns(message.header.stamp)
    return (stamp_ns - epoch_ns) * 1e-9 if stamp_ns else now


class SampleMessages:
    """Messages from the samples of a suite's sensors: a list per kind, one message per sample.

    `epoch_ns`: stamp of simulation time 0.
    """

    def __init__(self, suite: SensorSuite, vehicle: str, epoch_ns: int = 0) -> None:
        self._suite = suite
        self._epoch_ns = epoch_ns
        self._vehicle = vehicle
        self._base = frame_of(vehicle, "base_link")
        self._joint_names = suite.joint_names
        self._steered = suite.model.params.steering_sign != 0.0
        sensors = suite.parameters
        if sensors.imu is not None:
            variance = suite.variance("imu")
            self._imu_covariances = [_diagonal(variance[first : first + 3]) for first in (0, 3, 6)]
        if sensors.gps is not None:
            self._gps_covariance = _diagonal(suite.variance("gps")[:3])
        if sensors.magnetometer is not None:
            self._field_covariance = _diagonal(suite.variance("magnetometer"))
        if sensors.barometer is not None:
            self._pressure_variance = float(suite.variance("barometer")[0])
        self._wheel_covariances = _wheel_covariances(suite)

    def _stamped(self, message: Message, time: float, frame_id: str) -> Message:
        return _stamped(message, time, frame_id, self._epoch_ns)

    def imu(self, readings: samples.ImuSamples) -> list[Imu]:
        """Return messages for imu/data."""
        force, rate, attitude = self._imu_covariances
        messages = []
        for time, f, w, q in _rows(readings):
            message = self._stamped(Imu(), time, frame_of(self._vehicle, "imu_link"))
            _set_vector(message.linear_acceleration, f)
            _set_vector(message.angular_velocity, w)
            _set_quaternion(message.orientation, q)
            message.linear_acceleration_covariance = force
            message.angular_velocity_covariance = rate
            message.orientation_covariance = attitude
            messages.append(message)
        return messages

    def gps(self, readings: samples.GpsSamples) -> list[tuple[NavSatFix, TwistStamped]]:
        """Return messages for gps/fix and gps/vel, whose velocity has the axes of the world."""
        messages = []
        for time, (latitude, longitude, altitude), v in _rows(readings):
            fix = self._stamped(NavSatFix(), time, frame_of(self._vehicle, "gps_link"))
            fix.status.status = NavSatStatus.STATUS_FIX
            fix.status.service = NavSatStatus.SERVICE_GPS
            fix.latitude = latitude
            fix.longitude = longitude
            fix.altitude = altitude
            fix.position_covariance = self._gps_covariance
            fix.position_covariance_type = NavSatFix.COVARIANCE_TYPE_DIAGONAL_KNOWN

            velocity = self._stamped(TwistStamped(), time, WORLD)
            _set_vector(velocity.twist.linear, v)
            messages.append((fix, velocity))
        return messages

    def magnetometer(self, readings: samples.MagnetometerSamples) -> list[MagneticField]:
        """Return messages for imu/mag."""
        messages = []
        for time, field in _rows(readings):
            message = self._stamped(MagneticField(), time, frame_of(self._vehicle, "imu_link"))
            _set_vector(message.magnetic_field, field)
            message.magnetic_field_covariance = self._field_covariance
            messages.append(message)
        return messages

    def barometer(self, readings: samples.BarometerSamples) -> list[FluidPressure]:
        """Return messages for baro."""
        frame = frame_of(self._vehicle, "baro_link")
        return [
            self._stamped(
                FluidPressure(fluid_pressure=pressure, variance=self._pressure_variance),
                time,
                frame,
            )
            for time, pressure in _rows(readings)
        ]

    def joints(self, readings: samples.JointSamples) -> list[JointState]:
        """Return messages for joint_states; the steering's rate is not measured: NaN."""
        return [
            self._stamped(
                JointState(name=self._joint_names, position=place, velocity=rate),
                time,
                self._base,
            )
            for time, place, rate in _rows(
                (readings.time, *readings.columns(self._steered, math.nan))
            )
        ]

    def wheel_odometry(self, readings: samples.OdometrySamples) -> list[Odometry]:
        """Return messages for wheel/odom, in its own frame, which lies at the vehicle's start."""
        return self._odometry(
            readings, frame_of(self._vehicle, "wheel_odom"), *self._wheel_covariances
        )

    def ground_truth(self, readings: samples.OdometrySamples) -> list[Odometry]:
        """Return messages for ground_truth/odom."""
        return self._odometry(readings, WORLD, _EXACT, _EXACT)

    def _odometry(
        self,
        readings: samples.OdometrySamples,
        frame: str,
        pose_covariance: Floats,
        twist_covariance: Floats,
    ) -> list[Odometry]:
        messages = []
        for time, p, q, v, w in _rows(readings):
            message = self._stamped(_odometry(self._base, p, q, v, w), time, frame)
            message.pose.covariance = pose_covariance
            message.twist.covariance = twist_covariance
            messages.append(message)
        return messages

    def height(self, readings: samples.HeightSamples) -> list[Range]:
        """Return messages for height_above_ground."""
        sensor = self._suite.parameters.height
        assert sensor is not None
        frame = frame_of(self._vehicle, "height_link")
        about = {
            "radiation_type": Range.INFRARED,
            "field_of_view": sensor.field_of_view,
            "min_range": sensor.min_range,
            "max_range": sensor.max_range,
            "variance": float(self._suite.variance("height")[0]),
        }

        return [
            self._stamped(Range(range=distance, **about), time, frame)
            for time, distance in _rows(readings)
        ]

    def wheel_loads(self, readings: samples.WheelLoadSamples) -> list[Float64MultiArray]:
        """Return messages for wheel_loads: N, in the order of the vehicle's wheels."""
        return [Float64MultiArray(data=load) for _, load in _rows(readings)]

    def wind(self, readings: samples.WindSamples) -> list[Vector3Stamped]:
        """Return messages for environment/wind."""
        messages = []
        for time, velocity in _rows(readings):
            message = self._stamped(Vector3Stamped(), time, WORLD)
            _set_vector(message.vector, velocity)
            messages.append(message)
        return messages


# messages -> samples: each function returns a single sample, or raises SensorMessageError


def imu_samples(message: Imu) -> samples.ImuSamples:
    """Return the sample of imu/data."""
    force = _vector("linear_acceleration", message.linear_acceleration)
    rates = _vector("angular_velocity", message.angular_velocity)
    return samples.ImuSamples(
        _time(message), force[None], rates[None], _quaternion(message.orientation)[None]
    )


def gps_samples(fix: NavSatFix, velocity: TwistStamped) -> samples.GpsSamples:
    """Return the sample of gps/fix and gps/vel of the same time, as `GpsPairs` finds them."""
    if fix.status.status < NavSatStatus.STATUS_FIX:
        raise SensorMessageError("gps/fix: its status says that there is no fix")
    place = _finite("latitude, longitude, altitude", (fix.latitude, fix.longitude, fix.altitude))
    return samples.GpsSamples(
        _time(fix), place[None], _vector("twist.linear", velocity.twist.linear)[None]
    )


class GpsPairs:
    """Pairs of gps/fix and gps/vel of one time, in any order; None before the second message."""

    def __init__(self) -> None:
        self._halves: dict[type, Any] = {}

    def __call__(self, message: NavSatFix | TwistStamped) -> samples.GpsSamples | None:
        """Take a message of gps/fix or gps/vel, and return the pair's sample, or None."""
        self._halves[type(message)] = message
        fix = self._halves.get(NavSatFix)
        velocity = self._halves.get(TwistStamped)
        if fix is None or velocity is None or fix.header.stamp != velocity.header.stamp:
            return None
        self._halves.clear()
        return gps_samples(fix, velocity)


def magnetometer_samples(message: MagneticField) -> samples.MagnetometerSamples:
    """Return the sample of imu/mag."""
    return samples.MagnetometerSamples(
        _time(message), _vector("magnetic_field", message.magnetic_field)[None]
    )


def barometer_samples(message: FluidPressure) -> samples.BarometerSamples:
    """Return the sample of baro."""
    return samples.BarometerSamples(
        _time(message), _finite("fluid_pressure", (message.fluid_pressure,))
    )


def height_samples(message: Range) -> samples.HeightSamples:
    """Return the sample of height_above_ground; -inf and inf are readings too (REP 117)."""
    if math.isnan(message.range):
        raise SensorMessageError(
            "height_above_ground: range is nan, expected a number, -inf or inf"
        )
    return samples.HeightSamples(_time(message), np.array([message.range]))


def wheel_load_samples(
    message: Float64MultiArray, time: float, wheels: int = state_layout.OUTER_WHEELS
) -> samples.WheelLoadSamples:
    """Return the sample of wheel_loads of a number of wheels.

    It has no stamp: `time` (s) is its arrival.
    """
    load = _finite("wheel_loads", message.data, (wheels,))
    return samples.WheelLoadSamples(np.array([time]), load[None])


def wind_samples(message: Vector3Stamped) -> samples.WindSamples:
    """Return the sample of environment/wind."""
    return samples.WindSamples(_time(message), _vector("vector", message.vector)[None])


class JointReader:
    """Reader of a vehicle's joint_states, in any order and with any other joints."""

    def __init__(self, params: VehicleParameters) -> None:
        self._names = joint_names(params)
        self._wheels = len(params.wheels)
        self._columns = np.flatnonzero(params.steering_sign)
        self._order: list[int] = []
        self._names_in_order: list[str] | None = None

    def __call__(self, message: JointState) -> samples.JointSamples:
        """Return the single sample of a message."""
        if message.name != self._names_in_order:
            missing = [name for name in self._names if name not in message.name]
            if missing:
                raise SensorMessageError(f"joint_states: there is no {', '.join(missing)}")
            self._order = [message.name.index(name) for name in self._names]
            self._names_in_order = list(message.name)
        names = len(message.name)

        if len(message.position) != names or len(message.velocity) != names:
            raise SensorMessageError(
                f"joint_states: {names} names, {len(message.position)} positions, "
                f"{len(message.velocity)} velocities, expected as many of each"
            )

        place = _finite("position", np.asarray(message.position)[self._order])
        speed = np.asarray(message.velocity)[self._order]
        wheels = self._wheels
        strut = wheels + len(self._columns)
        rotor = strut + wheels

        steering = np.zeros(wheels)
        steering[self._columns] = place[wheels:strut]
        rates = _finite("velocity", np.concatenate([speed[:wheels], speed[strut:]]))

        return samples.JointSamples(
            _time(message),
            place[None, :wheels],
            rates[None, :wheels],
            steering[None],
            place[None, strut:rotor],
            rates[None, wheels : 2 * wheels],
            place[None, rotor:],
            rates[None, 2 * wheels :],
        )


# commands


def rotor_command_to_msg(command: RotorCommand) -> RotorCommandMsg:
    """Return the message for cmd/rotors."""
    mode = RotorCommandMsg.TORQUE if command.torques else RotorCommandMsg.SPEED
    return _stamped(
        RotorCommandMsg(mode=mode, value=np.asarray(command.value).tolist()),
        command.time,
        "",
    )


def msg_to_rotor_command(message: RotorCommandMsg, now: float, epoch_ns: int = 0) -> RotorCommand:
    """Return the command of cmd/rotors; without a stamp it is from `now` (s since the epoch).

    Raise CommandError for an unknown mode.
    """
    if message.mode not in (RotorCommandMsg.SPEED, RotorCommandMsg.TORQUE):
        raise CommandError(f"mode {message.mode}, expected 0 (speeds, rad/s) or 1 (torques, N m)")
    return RotorCommand(
        _time_since(message, epoch_ns, now),
        np.array(message.value),
        message.mode == RotorCommandMsg.TORQUE,
    )


def wheel_command_to_msg(command: WheelCommand) -> WheelCommandMsg:
    """Return the message for cmd/wheels."""
    message = WheelCommandMsg(
        steering_angle=float(command.steering_angle),
        drive_torque=np.asarray(command.drive_torque, float).tolist(),
        brake_torque=np.asarray(command.brake_torque, float).tolist(),
    )
    return _stamped(message, command.time, "")


def msg_to_wheel_command(
    message: WheelCommandMsg,
    now: float,
    wheels: int = state_layout.OUTER_WHEELS,
    epoch_ns: int = 0,
) -> WheelCommand:
    """Return the command of cmd/wheels; without a stamp it is from `now` (s since the epoch).

    Without numbers it is 0 for each of the `wheels`.
    """
    torques = (
        np.array(torque or [0.0] * wheels)
        for torque in (list(message.drive_torque), list(message.brake_torque))
    )
    time = _time_since(message, epoch_ns, now)
    return WheelCommand(time, message.steering_angle, *torques)


# estimates


def estimate_to_odometry(
    estimate: Estimate, vehicle: str, frame: str = WORLD, *, rates: Floats
) -> Odometry:
    """Return the message for odometry/global.

    Its pose is in the world, or in `frame`; its twist is in base_link's axes. `rates` (3, 3):
    covariance of its angular velocity. Covariances are 0 if unknown.
    """
    rotation = rotation_matrix(estimate.orientation)
    velocity = (rotation.T @ estimate.velocity).tolist()
    pose = (
        np.asarray(estimate.position).tolist(),
        np.asarray(estimate.orientation).tolist(),
    )

    base = frame_of(vehicle, "base_link")
    message = _stamped(
        _odometry(base, *pose, velocity, np.asarray(estimate.rates).tolist()),
        estimate.time,
        frame,
    )

    message.pose.covariance, message.twist.covariance = estimate.odometry_covariances(rates)
    return message


def unknown_odometry(vehicle: str, frame: str = WORLD) -> Odometry:
    """Return the odometry/global of an estimator that knows nothing yet, for lock-step.

    Its first covariance is -1.
    """
    nowhere = (0.0, 0.0, 0.0)
    message = _odometry(frame_of(vehicle, "base_link"), nowhere, (*nowhere, 1.0), nowhere, nowhere)
    message.header.frame_id = frame
    message.pose.covariance[0] = message.twist.covariance[0] = -1.0
    return message


def is_unknown(message: Odometry) -> bool:
    """Return whether an odometry says that nothing is known (`unknown_odometry`)."""
    return bool(message.pose.covariance[0] < 0.0)


def odometry_to_estimate(message: Odometry) -> Estimate:
    """Return the estimate of odometry/global, or of any odometry in the world.

    Its covariance consists of two blocks, for position and attitude, and for the velocity; None if
    all is 0. Raise SensorMessageError for impossible numbers, and if nothing is known
    (`is_unknown`).
    """
    if is_unknown(message):
        raise SensorMessageError(
            "nothing is known of the vehicle's place yet: the estimator is not aligned"
        )

    pose = message.pose.pose
    twist = message.twist.twist
    orientation = _quaternion(pose.orientation)
    rotation = rotation_matrix(orientation)

    covariance = None
    of_pose, of_twist = (
        _finite("covariance", part.covariance).reshape(6, 6)
        for part in (message.pose, message.twist)
    )
    if of_pose.any():
        covariance = np.zeros((9, 9))
        covariance[_PLACES] = of_pose
        covariance[3:6, 3:6] = rotation @ of_twist[:3, :3] @ rotation.T

    return Estimate(
        time_of(message),
        _vector("position", pose.position),
        orientation,
        rotation @ _vector("linear", twist.linear),
        _vector("angular", twist.angular),
        covariance,
    )


# parts


_EXACT = np.zeros(36)
_PLACES = np.ix_((0, 1, 2, 6, 7, 8), (0, 1, 2, 6, 7, 8))
"""Rows and columns of position and attitude in an estimate's covariance."""


def _diagonal(variances: ArrayLike) -> Floats:
    return np.diag(np.asarray(variances, float)).ravel()


def _wheel_covariances(suite: SensorSuite) -> tuple[Floats, Floats]:
    """Return the covariances of pose and twist.

    Dead reckoning has no bound; speeds are as fine as the encoder counts of a period.
    """
    encoders = suite.parameters.encoders
    params = suite.model.params
    pose = _diagonal([UNKNOWN] * 6)
    if encoders is None or not suite.noise or not encoders.wheel_counts:
        return pose, _diagonal([0.0, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 0.0])
    step = math.tau * float(np.mean(params.rolling_radius)) / encoders.wheel_counts * encoders.rate
    # differences of two values rounded to whole counts, averaged over the wheels
    speed = 2.0 * step * step / 12.0 / len(params.wheels)
    arm = float(np.mean(np.abs(params.hub_position[:, 1])))
    return pose, _diagonal([speed, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, speed / (arm * arm)])


def _rows(readings: Any) -> Any:
    """Return sample after sample, as plain numbers and lists."""
    return zip(*(part.tolist() for part in readings), strict=True)


def _odometry(child: str, p: Any, q: Any, v: Any, w: Any) -> Odometry:
    message = Odometry(child_frame_id=child)
    pose = message.pose.pose
    twist = message.twist.twist
    _set_vector(pose.position, p)
    _set_quaternion(pose.orientation, q)
    _set_vector(twist.linear, v)
    _set_vector(twist.angular, w)
    return message


def _set_vector(vector: Any, xyz: Any) -> None:
    vector.x, vector.y, vector.z = xyz


def _set_quaternion(quaternion: Any, xyzw: Any) -> None:
    quaternion.x, quaternion.y, quaternion.z, quaternion.w = xyzw


def _time(message: Any) -> Floats:
    return np.array([time_of(message)])


def _finite(name: str, numbers: ArrayLike, shape: tuple[int, ...] | None = None) -> Floats:
    return finite_array(name, numbers, shape, error=SensorMessageError)


def _vector(name: str, vector: Any) -> Floats:
    return _finite(name, (vector.x, vector.y, vector.z))


def _quaternion(quaternion: Any) -> Floats:
    values = (quaternion.x, quaternion.y, quaternion.z, quaternion.w)
    return unit_quaternion("orientation", values, tolerance=1e-2, error=SensorMessageError)


def order_to_ackermann(order: Setpoint, vehicle: str) -> AckermannDriveStamped:
    """Return speed and steering of an order, for cmd/ackermann."""
    message = _stamped(AckermannDriveStamped(), order.time, frame_of(vehicle, "base_link"))
    message.drive.speed = float(order.speed)
    message.drive.steering_angle = float(order.steering)
    return message


def order_to_pose(order: Setpoint, now: Estimate) -> PoseStamped:
    """Return the target of an order, for cmd/pose; without one, the vehicle's place.

    It is level and has the order's yaw, or without one the vehicle's.
    """
    yaw = quat_to_euler(now.orientation)[2] if order.yaw is None else order.yaw
    place = now.position if order.target is None else order.target
    return _pose(order.time, place, (0.0, 0.0, math.sin(0.5 * yaw), math.cos(0.5 * yaw)))


def estimate_to_pose(now: Estimate) -> PoseStamped:
    """Return the vehicle's pose, for pose."""
    return _pose(now.time, now.position, now.orientation)


def points_to_path(points: Floats, time: float) -> Path:
    """Return points (n, 3), m, ENU, as a path."""
    return _stamped(
        Path(poses=[_pose(time, point, (0.0, 0.0, 0.0, 1.0)) for point in points]),
        time,
        WORLD,
    )


def _pose(time: float, place: Any, quat_xyzw: Any) -> PoseStamped:
    message = _stamped(PoseStamped(), time, WORLD)
    _set_vector(message.pose.position, map(float, place))
    _set_quaternion(message.pose.orientation, map(float, quat_xyzw))
    return message

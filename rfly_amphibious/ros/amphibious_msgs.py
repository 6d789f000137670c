# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Samples, commands, estimates and setpoints of the land-air vehicle <-> messages.

See docs/model, section 11. Frames of a vehicle have its name as prefix: `<vehicle>/base_link`,
`<vehicle>/imu_link`; `map` is the world, ENU.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import TwistStamped, Vector3Stamped
from nav_msgs.msg import Odometry
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

from rfly_amphibious.ros.message_parts import (
    UNKNOWN,
    WORLD,
    Message,
    finite,
    frame_of,
    odometry,
    quaternion_of,
    set_quaternion,
    set_vector,
    stamped,
    time_of,
    time_since,
    vector_of,
)
from rfly_amphibious.sensors import samples
from rfly_amphibious.sensors.samples import joint_names
from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.errors import CommandError, SensorMessageError

if TYPE_CHECKING:
    from rfly_amphibious.sensors.sensor_suite import SensorSuite


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
        return stamped(message, time, frame_id, self._epoch_ns)

    def imu(self, readings: samples.ImuSamples) -> list[Imu]:
        """Return messages for imu/data."""
        force, rate, attitude = self._imu_covariances
        messages = []
        for time, f, w, q in _rows(readings):
            message = self._stamped(Imu(), time, frame_of(self._vehicle, "imu_link"))
            set_vector(message.linear_acceleration, f)
            set_vector(message.angular_velocity, w)
            set_quaternion(message.orientation, q)
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
            set_vector(velocity.twist.linear, v)
            messages.append((fix, velocity))
        return messages

    def magnetometer(self, readings: samples.MagnetometerSamples) -> list[MagneticField]:
        """Return messages for imu/mag."""
        messages = []
        for time, field in _rows(readings):
            message = self._stamped(MagneticField(), time, frame_of(self._vehicle, "imu_link"))
            set_vector(message.magnetic_field, field)
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
            message = self._stamped(odometry(self._base, p, q, v, w), time, frame)
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
            set_vector(message.vector, velocity)
            messages.append(message)
        return messages


# messages -> samples: each function returns a single sample, or raises SensorMessageError


def imu_samples(message: Imu) -> samples.ImuSamples:
    """Return the sample of imu/data."""
    force = vector_of("linear_acceleration", message.linear_acceleration)
    rates = vector_of("angular_velocity", message.angular_velocity)
    return samples.ImuSamples(
        _time(message), force[None], rates[None], quaternion_of(message.orientation)[None]
    )


def gps_samples(fix: NavSatFix, velocity: TwistStamped) -> samples.GpsSamples:
    """Return the sample of gps/fix and gps/vel of the same time, as `GpsPairs` finds them."""
    if fix.status.status < NavSatStatus.STATUS_FIX:
        raise SensorMessageError("gps/fix: its status says that there is no fix")
    place = finite("latitude, longitude, altitude", (fix.latitude, fix.longitude, fix.altitude))
    return samples.GpsSamples(
        _time(fix), place[None], vector_of("twist.linear", velocity.twist.linear)[None]
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
        _time(message), vector_of("magnetic_field", message.magnetic_field)[None]
    )


def barometer_samples(message: FluidPressure) -> samples.BarometerSamples:
    """Return the sample of baro."""
    return samples.BarometerSamples(
        _time(message), finite("fluid_pressure", (message.fluid_pressure,))
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
    load = finite("wheel_loads", message.data, (wheels,))
    return samples.WheelLoadSamples(np.array([time]), load[None])


def wind_samples(message: Vector3Stamped) -> samples.WindSamples:
    """Return the sample of environment/wind."""
    return samples.WindSamples(_time(message), vector_of("vector", message.vector)[None])


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

        place = finite("position", np.asarray(message.position)[self._order])
        speed = np.asarray(message.velocity)[self._order]
        wheels = self._wheels
        strut = wheels + len(self._columns)
        rotor = strut + wheels

        steering = np.zeros(wheels)
        steering[self._columns] = place[wheels:strut]
        rates = finite("velocity", np.concatenate([speed[:wheels], speed[strut:]]))

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
    return stamped(
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
        time_since(message, epoch_ns, now),
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
    return stamped(message, command.time, "")


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
    time = time_since(message, epoch_ns, now)
    return WheelCommand(time, message.steering_angle, *torques)


# estimates


# parts


_EXACT = np.zeros(36)


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


def _time(message: Any) -> Floats:
    return np.array([time_of(message)])

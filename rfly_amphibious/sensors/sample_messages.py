# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Samples of the land-air vehicle's sensors as ROS messages, and back.

`SAMPLE_TOPICS` declares topics, types and fields once, for nodes, for logs that are written without
ROS, and for readers of logs. See docs/model, section 11. Frames of a vehicle have its name as
prefix: `<vehicle>/base_link`, `<vehicle>/imu_link`; `map` is the world, ENU. A message is any
object with the fields of a ROS message: one of ROS's own classes, or a plain one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.sensors import samples
from rfly_amphibious.sensors.samples import joint_names
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_array, unit_quaternion
from rfly_common.errors import SensorMessageError
from rfly_common.transform_buffer import WORLD

if TYPE_CHECKING:
    from rfly_amphibious.dynamics.model import Outputs
    from rfly_amphibious.sensors.sensor_suite import SensorSuite

Message = TypeVar("Message", bound=Any)

FORCES = ("spring_force", "damper_force", "slip_ratio", "slip_angle", "rotor_torque")
"""Fields of VehicleForces, which are properties of `Outputs`."""
UNKNOWN = 1e6
"""Variance of quantities that a sensor does not measure."""
WENT_BACK_S = 0.05
"""Step back of stamps that means a reset of the simulation, s."""


def frame_of(vehicle: str, name: str) -> str:
    """Return the frame `name` of a vehicle."""
    return f"{vehicle}/{name}" if vehicle else name


def stamped(message: Message, time: float, frame_id: str, epoch_ns: int = 0) -> Message:
    """Return the message with a time (s since the epoch) as its stamp, and its frame."""
    header = message.header
    header.stamp.sec, header.stamp.nanosec = divmod(epoch_ns + round(time * 1e9), 10**9)
    header.frame_id = frame_id
    return message


def stamp_ns_of(message: Any) -> int:
    """Return the stamp of a message, ns."""
    stamp = message.header.stamp
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


def time_of(message: Any) -> float:
    """Return the time of a message's stamp, s."""
    return stamp_ns_of(message) * 1e-9


def time_since(message: Any, epoch_ns: int, now: float) -> float:
    """Return the time of a message's stamp, s since the epoch; `now` without a stamp."""
    stamp_ns = stamp_ns_of(message)
    return (stamp_ns - epoch_ns) * 1e-9 if stamp_ns else now


def set_odometry(message: Message, child: str, p: Any, q: Any, v: Any, w: Any) -> Message:
    """Return an odometry with the frame of its twist, its pose and its twist."""
    message.child_frame_id = child
    pose = message.pose.pose
    twist = message.twist.twist
    set_vector(pose.position, p)
    set_quaternion(pose.orientation, q)
    set_vector(twist.linear, v)
    set_vector(twist.angular, w)
    return message


def set_forces(message: Message, outputs: Outputs) -> Message:
    """Return a VehicleForces with the forces and slips of one evaluation of the model."""
    for name in FORCES:
        setattr(message, name, getattr(outputs, name).tolist())
    return message


def set_vector(vector: Any, xyz: Any) -> None:
    vector.x, vector.y, vector.z = xyz


def set_quaternion(quaternion: Any, xyzw: Any) -> None:
    quaternion.x, quaternion.y, quaternion.z, quaternion.w = xyzw


def finite(name: str, numbers: ArrayLike, shape: tuple[int, ...] | None = None) -> Floats:
    return finite_array(name, numbers, shape, error=SensorMessageError)


def vector_of(name: str, vector: Any) -> Floats:
    return finite(name, (vector.x, vector.y, vector.z))


def quaternion_of(quaternion: Any) -> Floats:
    values = (quaternion.x, quaternion.y, quaternion.z, quaternion.w)
    return unit_quaternion("orientation", values, tolerance=1e-2, error=SensorMessageError)


INFRARED = 1
"""Radiation of a sensor_msgs/Range."""
DIAGONAL_KNOWN = 2
"""Type of a sensor_msgs/NavSatFix's covariance."""
GPS_SERVICE = 1
"""Service of a sensor_msgs/NavSatStatus."""

MessageFields = Mapping[str, tuple[str, ...]]
"""Numbers of a message by field of its samples; a single one may be a list."""
Put = Callable[[Any, Any], None]
"""Function that puts a value into a message."""


class SampleTopic(NamedTuple):
    """Declaration of a sensor's topic."""

    kind: str
    """Kind of samples: a field of SensorSamples."""
    sensor: str
    """Sensor that makes them: a field of SensorParameters."""
    type: str
    """Type of the messages."""
    frame: str
    """Frame of the messages, of the vehicle if it is not the world."""
    fields: MessageFields


def _xyz(vector: str) -> tuple[str, ...]:
    return (f"{vector}.x", f"{vector}.y", f"{vector}.z")


def _xyzw(quaternion: str) -> tuple[str, ...]:
    return (*_xyz(quaternion), f"{quaternion}.w")


_ODOMETRY = {
    "position": _xyz("pose.pose.position"),
    "orientation": _xyzw("pose.pose.orientation"),
    "velocity": _xyz("twist.twist.linear"),
    "rates": _xyz("twist.twist.angular"),
}

SAMPLE_TOPICS: Mapping[str, SampleTopic] = MappingProxyType(
    {
        "imu/data": SampleTopic(
            "imu",
            "imu",
            "sensor_msgs/Imu",
            "imu_link",
            {
                "specific_force": _xyz("linear_acceleration"),
                "rates": _xyz("angular_velocity"),
                "orientation": _xyzw("orientation"),
            },
        ),
        "gps/fix": SampleTopic(
            "gps",
            "gps",
            "sensor_msgs/NavSatFix",
            "gps_link",
            {"geodetic": ("latitude", "longitude", "altitude")},
        ),
        "gps/vel": SampleTopic(
            "gps", "gps", "geometry_msgs/TwistStamped", WORLD, {"velocity": _xyz("twist.linear")}
        ),
        "imu/mag": SampleTopic(
            "magnetometer",
            "magnetometer",
            "sensor_msgs/MagneticField",
            "imu_link",
            {"field": _xyz("magnetic_field")},
        ),
        "baro": SampleTopic(
            "barometer",
            "barometer",
            "sensor_msgs/FluidPressure",
            "baro_link",
            {"pressure": ("fluid_pressure",)},
        ),
        "joint_states": SampleTopic(
            "joints",
            "encoders",
            "sensor_msgs/JointState",
            "base_link",
            {"positions": ("position",), "rates": ("velocity",)},
        ),
        "wheel/odom": SampleTopic(
            "wheel_odometry", "encoders", "nav_msgs/Odometry", "wheel_odom", _ODOMETRY
        ),
        "height_above_ground": SampleTopic(
            "height", "height", "sensor_msgs/Range", "height_link", {"distance": ("range",)}
        ),
        "wheel_loads": SampleTopic(
            "wheel_loads",
            "wheel_loads",
            "rfly_suite/WheelLoads",
            "base_link",
            {"load": ("load",)},
        ),
        "environment/wind": SampleTopic(
            "wind", "wind", "geometry_msgs/Vector3Stamped", WORLD, {"velocity": _xyz("vector")}
        ),
        "ground_truth/odom": SampleTopic(
            "ground_truth", "ground_truth", "nav_msgs/Odometry", WORLD, _ODOMETRY
        ),
    }
)
"""Sensor topics, in the order in which a tick's messages are published."""


@functools.cache
def numbers_of(topic: str) -> Callable[[Any], list[float]]:
    """Return the function from a message of a topic to its numbers, in the order of its fields.

    Older recordings of wheel_loads, without stamps, are read as well.
    """
    if topic == "wheel_loads":
        return lambda message: list(message.load if hasattr(message, "load") else message.data)
    paths = [path for fields in SAMPLE_TOPICS[topic].fields.values() for path in fields]
    read: Callable[[Any], Any] = attrgetter(*paths)
    is_number = len(paths) == 1
    return lambda message: [read(message)] if is_number else list(read(message))


class SampleMessages:
    """Messages from samples: a list per topic, one message per sample.

    `new`: function from a type's name to the function that makes an empty message. `epoch_ns`:
    stamp of simulation time 0. `constants`: values by topic and field that all messages have, such
    as covariances. `steering_rate` stands for the steering's rates, which are not measured.
    """

    def __init__(
        self,
        new: Callable[[str], Callable[[], Any]],
        params: VehicleParameters,
        sensors: SensorParameters,
        vehicle: str,
        epoch_ns: int = 0,
        constants: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        steering_rate: float = math.nan,
    ) -> None:
        self._epoch_ns = epoch_ns
        self._vehicle = vehicle
        self._steered = params.steering_sign != 0.0
        self._steering_rate = steering_rate
        known = _known(params, sensors, vehicle)
        self._new = {topic: new(each.type) for topic, each in SAMPLE_TOPICS.items()}
        self._puts = {
            topic: [_put(paths) for paths in each.fields.values()]
            for topic, each in SAMPLE_TOPICS.items()
        }
        self._constants = {
            topic: [
                (_put((path,)), value)
                for path, value in {**known[topic], **constants.get(topic, {})}.items()
            ]
            for topic in SAMPLE_TOPICS
        }

    def __call__(self, topic: str, readings: Any) -> list[Any]:
        """Return the messages of a topic for samples of its kind."""
        kind, _, _, frame, fields = SAMPLE_TOPICS[topic]
        if frame != WORLD:
            frame = frame_of(self._vehicle, frame)
        columns = (
            readings.columns(self._steered, self._steering_rate)
            if kind == "joints"
            else [getattr(readings, name) for name in fields]
        )

        messages = []
        rows = (column.tolist() for column in (readings.time, *columns))
        for time, *values in zip(*rows, strict=True):
            message = stamped(self._new[topic](), time, frame, self._epoch_ns)
            for put, value in zip(self._puts[topic], values, strict=True):
                put(message, value)
            for put, value in self._constants[topic]:
                put(message, value)
            messages.append(message)
        return messages


def _put(paths: tuple[str, ...]) -> Put:
    """Return the function that puts a value, or several values of one part, into a message."""
    owner_path, _, name = paths[0].rpartition(".")
    owner = attrgetter(owner_path) if owner_path else lambda message: message
    if len(paths) == 1:
        return lambda message, value: setattr(owner(message), name, value)
    names = [path.rpartition(".")[2] for path in paths]

    def put(message: Any, values: Any) -> None:
        part = owner(message)
        for name, value in zip(names, values, strict=True):
            setattr(part, name, value)

    return put


def _known(
    params: VehicleParameters, sensors: SensorParameters, vehicle: str
) -> dict[str, dict[str, Any]]:
    """Return by topic what all its messages say besides their numbers."""
    base = frame_of(vehicle, "base_link")
    known: dict[str, dict[str, Any]] = {topic: {} for topic in SAMPLE_TOPICS}
    known["gps/fix"] = {"status.status": 0, "status.service": GPS_SERVICE}
    known["joint_states"] = {"name": joint_names(params)}
    known["wheel/odom"] = {"child_frame_id": base}
    known["ground_truth/odom"] = {"child_frame_id": base}
    if sensors.height is not None:
        known["height_above_ground"] = {
            "radiation_type": INFRARED,
            "field_of_view": sensors.height.field_of_view,
            "min_range": sensors.height.min_range,
            "max_range": sensors.height.max_range,
        }
    return known


def variances_of(suite: SensorSuite) -> dict[str, dict[str, Any]]:
    """Return the covariances of a suite's sensors, by topic and field of the messages."""
    variance = {
        name: suite.variance(name)
        for name in ("imu", "gps", "magnetometer", "barometer", "height")
        if getattr(suite.parameters, name) is not None
    }
    fields: dict[str, dict[str, Any]] = {}
    if "imu" in variance:
        force, rates, attitude = map(_diagonal, np.split(variance["imu"][:9], 3))
        fields["imu/data"] = {
            "linear_acceleration_covariance": force,
            "angular_velocity_covariance": rates,
            "orientation_covariance": attitude,
        }
    if "gps" in variance:
        fields["gps/fix"] = {
            "position_covariance": _diagonal(variance["gps"][:3]),
            "position_covariance_type": DIAGONAL_KNOWN,
        }
    if "magnetometer" in variance:
        fields["imu/mag"] = {"magnetic_field_covariance": _diagonal(variance["magnetometer"])}
    if "barometer" in variance:
        fields["baro"] = {"variance": float(variance["barometer"][0])}
    if "height" in variance:
        fields["height_above_ground"] = {"variance": float(variance["height"][0])}

    pose, twist = _wheel_covariances(suite)
    fields["wheel/odom"] = {"pose.covariance": pose, "twist.covariance": twist}
    return fields


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


def _diagonal(variances: ArrayLike) -> Floats:
    return np.diag(np.asarray(variances, float)).ravel()


class SampleReader:
    """Samples from the messages of the topics that estimators and controllers subscribe to.

    Each has a single sample. A GPS's samples come with the second of its two messages; the first
    gives None. Raise SensorMessageError.
    """

    def __init__(self, params: VehicleParameters) -> None:
        self._wheels = len(params.wheels)
        self._joints = JointReader(params)
        self._halves: dict[str, Any] = {}
        """Messages of the GPS, by topic, whose other half has not come yet."""

    def __call__(self, topic: str, message: Any) -> Any:
        """Return the sample of a message."""
        if topic == "joint_states":
            return self._joints(message)
        if topic == "wheel_loads":
            load = finite("wheel_loads", message.load, (self._wheels,))
            return samples.WheelLoadSamples(np.array([time_of(message)]), load[None])
        if topic in _GPS_TOPICS:
            return self._fix(topic, message)
        sample: Callable[..., Any] = _SAMPLES[SAMPLE_TOPICS[topic].kind]
        return sample(np.array([time_of(message)]), *_checked(topic, message))

    def _fix(self, topic: str, message: Any) -> samples.GpsSamples | None:
        """Return the sample of gps/fix and gps/vel of one time, in any order."""
        self._halves[topic] = message
        fix, velocity = (self._halves.get(each) for each in _GPS_TOPICS)
        if fix is None or velocity is None or stamp_ns_of(fix) != stamp_ns_of(velocity):
            return None
        self._halves.clear()
        if fix.status.status < 0:
            raise SensorMessageError("gps/fix: its status says that there is no fix")
        parts = (*_checked("gps/fix", fix), *_checked("gps/vel", velocity))
        return samples.GpsSamples(np.array([time_of(fix)]), *parts)


_GPS_TOPICS = ("gps/fix", "gps/vel")
_SAMPLES = {
    "imu": samples.ImuSamples,
    "magnetometer": samples.MagnetometerSamples,
    "barometer": samples.BarometerSamples,
    "height": samples.HeightSamples,
    "wind": samples.WindSamples,
}


def _checked(topic: str, message: Any) -> Iterator[Floats]:
    """Yield the values of a message's fields with an axis of samples. Raise SensorMessageError."""
    for name, read, label in _READERS[topic]:
        numbers: Any = read(message)
        if name == "orientation":
            turn = unit_quaternion(label, numbers, tolerance=1e-2, error=SensorMessageError)
            yield turn[None]
        elif name == "distance":  # -inf and inf are readings too (REP 117)
            if math.isnan(numbers):
                raise SensorMessageError(f"{topic}: range is nan, expected a number, -inf or inf")
            yield np.array([numbers])
        else:
            several = isinstance(numbers, tuple)
            values = finite(label, numbers if several else (numbers,))
            yield values[None] if several else values


_READERS = {
    topic: [
        (name, attrgetter(*paths), paths[0].rpartition(".")[0] or ", ".join(paths))
        for name, paths in declared.fields.items()
    ]
    for topic, declared in SAMPLE_TOPICS.items()
}
"""Fields of the samples, functions that read their numbers, and their names in messages."""


class JointReader:
    """Reader of a vehicle's joint_states, in any order and with any other joints."""

    def __init__(self, params: VehicleParameters) -> None:
        self._names = joint_names(params)
        self._wheels = len(params.wheels)
        self._columns = np.flatnonzero(params.steering_sign)
        self._order: list[int] = []
        self._names_in_order: list[str] | None = None

    def __call__(self, message: Any) -> samples.JointSamples:
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
            np.array([time_of(message)]),
            place[None, :wheels],
            rates[None, :wheels],
            steering[None],
            place[None, strut:rotor],
            rates[None, wheels : 2 * wheels],
            place[None, rotor:],
            rates[None, 2 * wheels :],
        )

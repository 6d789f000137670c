"""MCAP log of a run with ROS 2 messages, for Foxglove and `ros2 bag`; no ROS needed.

Needs mcap and mcap-ros2-support, the extra `log`. Topics, frames and names of joints are those of the
nodes; times are simulated time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rfly_amphibious.scenarios.recorder import ScenarioRun
from rfly_amphibious.scenarios.run import SAMPLE_STEPS
from rfly_amphibious.sensors.kernels import turn_joints
from rfly_amphibious.sensors.sensor_suite import joint_geometry
from rfly_amphibious.simulation.simulation import STEP
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.arrays import Floats
from rfly_common.frames import quat_conjugate, quat_rotate
from rfly_common.imports import require

Message = dict[str, Any]

WORLD = "map"
TOPICS = {
    "/tf": "tf2_msgs/TFMessage",
    "/ground_truth/odom": "nav_msgs/Odometry",
    "/imu/data": "sensor_msgs/Imu",
    "/joint_states": "sensor_msgs/JointState",
    "/wheel_loads": "std_msgs/Float64MultiArray",
    "/rotor_speeds": "std_msgs/Float64MultiArray",
    "/environment/wind": "geometry_msgs/Vector3Stamped",
    "/mode": "std_msgs/String",
}
MODE_PERIOD = 0.5
"""s after which the mode is told again, as the node does"""


def check_mcap() -> None:
    """Raises ConfigError that says what to install where MCAP files can't be written."""
    require("mcap_ros2", "writing MCAP files")


def write_mcap(run: ScenarioRun, path: Path, vehicle: str = "amphibious") -> None:
    """Truth without noise at each sample, 50 Hz: TOPICS; what an IMU in base_link (frame `<vehicle>/base_link`) reads.

    `/rotor_speeds` are rad/s, `/wheel_loads` N. Metadata say scenario, vehicle, seed and ending. Raises ConfigError
    without mcap-ros2-support.
    """
    check_mcap()
    from mcap_ros2.writer import Writer

    scenario = run.scenario
    with path.open("wb") as file, Writer(file) as writer:
        schemas = {
            kind: writer.register_msgdef(kind.replace("/", "/msg/"), message_definition(kind))
            for kind in TOPICS.values()
        }
        for time_ns, topic, message in _messages(run, f"{vehicle}/base_link"):
            writer.write_message(topic, schemas[TOPICS[topic]], message, time_ns)
        writer.add_metadata(
            "scenario",
            {
                "name": scenario.name,
                "vehicle": scenario.params.name,
                "seed": str(scenario.wind.seed),
                "ending": run.ending,
            },
        )


def _messages(run: ScenarioRun, frame: str) -> Iterator[tuple[int, str, Message]]:
    """In the order of time."""
    times = np.round(run.time * 1e9).astype(np.int64)
    position, orientation = run.position, run.x[:, at.QUATERNION_XYZW]
    velocity = quat_rotate(quat_conjugate(orientation), run.x[:, at.VELOCITY : at.VELOCITY + 3])
    rates, force = run.x[:, at.RATES : at.RATES + 3], run.outputs.specific_force
    names, angles, speeds = joint_states(run)
    rotors = run.scenario.params.rotors
    rotor_speed = run.x[:, at.ROTOR_SPEED : at.ROTOR_SPEED + rotors]
    modes = _Modes(run)
    for k, time_ns in enumerate(times.tolist()):
        for told_ns, mode in modes.until(time_ns):
            yield told_ns, "/mode", {"data": mode}
        stamp = {"sec": time_ns // 10**9, "nanosec": time_ns % 10**9}
        in_world, in_body = ({"stamp": stamp, "frame_id": name} for name in (WORLD, frame))
        place, attitude = _vector(position[k]), _quaternion(orientation[k])
        transform = {"translation": place, "rotation": attitude}
        yield (
            time_ns,
            "/tf",
            {"transforms": [{"header": in_world, "child_frame_id": frame, "transform": transform}]},
        )
        odometry = {
            "header": in_world,
            "child_frame_id": frame,
            "pose": {"pose": {"position": place, "orientation": attitude}, "covariance": _EXACT_6},
            "twist": {
                "twist": {"linear": _vector(velocity[k]), "angular": _vector(rates[k])},
                "covariance": _EXACT_6,
            },
        }
        yield time_ns, "/ground_truth/odom", odometry
        imu = {
            "header": in_body,
            "orientation": attitude,
            "orientation_covariance": _EXACT_3,
            "angular_velocity": _vector(rates[k]),
            "angular_velocity_covariance": _EXACT_3,
            "linear_acceleration": _vector(force[k]),
            "linear_acceleration_covariance": _EXACT_3,
        }
        yield time_ns, "/imu/data", imu
        joints = {
            "header": in_body,
            "name": names,
            "position": angles[k].tolist(),
            "velocity": speeds[k].tolist(),
            "effort": [],
        }
        yield time_ns, "/joint_states", joints
        yield time_ns, "/wheel_loads", _array("wheel", run.outputs.wheel_load[k])
        yield time_ns, "/rotor_speeds", _array("rotor", rotor_speed[k])
        yield time_ns, "/environment/wind", {"header": in_world, "vector": _vector(run.wind[k])}


_EXACT_3, _EXACT_6 = [0.0] * 9, [0.0] * 36


def joint_states(run: ScenarioRun) -> tuple[list[str], Floats, Floats]:
    """(names, positions, rates), (k, names) rad and m: wheels, steered wheels, struts, rotors, as `/joint_states`.

    Angles of wheels and rotors count from the first sample; steering angles come without rates (0).
    """
    params = run.scenario.params
    geometry = joint_geometry(params)
    steered = geometry.steering_sign
    joints = 4 + params.rotors
    last, out = np.concatenate([np.zeros(joints), np.full(joints, np.nan)]), np.empty((len(run.time), 4 + 2 * joints))
    # all samples are as far apart, but the last one of a run that ended between two
    spans = np.diff(run.time, prepend=run.time[0] - SAMPLE_STEPS * STEP)
    for part in (slice(0, -1), slice(-1, None)):
        if len(run.time[part]):
            turn_joints(float(spans[part][-1]), run.x[part], geometry, last, out[part])
    steering, rate, angle = out[:, :4][:, steered != 0.0], out[:, 4:8], out[:, 8:12]
    rotor_rate, rotor_angle = out[:, 12 : 12 + params.rotors], out[:, 12 + params.rotors :]
    names = [f"wheel_{wheel}" for wheel in at.WHEELS]
    names += [f"steer_{wheel}" for wheel, sign in zip(at.WHEELS, steered, strict=True) if sign]
    names += [f"strut_{wheel}" for wheel in at.WHEELS] + [f"rotor_{j + 1}" for j in range(params.rotors)]
    strut, strut_rate = run.x[:, at.STRUT : at.STRUT + 4], run.x[:, at.STRUT_RATE : at.STRUT_RATE + 4]
    positions = np.concatenate([angle, steering, strut, rotor_angle], axis=1)
    return names, positions, np.concatenate([rate, np.zeros_like(steering), strut_rate, rotor_rate], axis=1)


class _Modes:
    """When which mode is told: at each change, and each MODE_PERIOD between."""

    def __init__(self, run: ScenarioRun) -> None:
        changes = {round(time * 1e9): mode.value for time, mode in run.modes}
        period = round(MODE_PERIOD * 1e9)
        times = sorted({*changes, *range(0, round(run.duration * 1e9) + 1, period)})
        begins = sorted(changes)
        present = np.searchsorted(begins, times, side="right") - 1
        self._due = [(time, changes[begins[index]]) for time, index in zip(times, present.tolist(), strict=True)]

    def until(self, time_ns: int) -> Iterator[tuple[int, str]]:
        while self._due and self._due[0][0] <= time_ns:
            yield self._due.pop(0)


def _vector(values: Floats) -> Message:
    x, y, z = values.tolist()
    return {"x": x, "y": y, "z": z}


def _quaternion(xyzw: Floats) -> Message:
    x, y, z, w = xyzw.tolist()
    return {"x": x, "y": y, "z": z, "w": w}


def _array(label: str, values: Floats) -> Message:
    size = len(values)
    dimension = {"label": label, "size": size, "stride": size}
    return {"layout": {"dim": [dimension], "data_offset": 0}, "data": values.tolist()}


_FIELDS = {
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec",
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "std_msgs/String": "string data",
    "std_msgs/MultiArrayDimension": "string label\nuint32 size\nuint32 stride",
    "std_msgs/MultiArrayLayout": "std_msgs/MultiArrayDimension[] dim\nuint32 data_offset",
    "std_msgs/Float64MultiArray": "std_msgs/MultiArrayLayout layout\nfloat64[] data",
    "geometry_msgs/Point": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Quaternion": "float64 x 0\nfloat64 y 0\nfloat64 z 0\nfloat64 w 1",
    "geometry_msgs/Pose": "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation",
    "geometry_msgs/PoseWithCovariance": "geometry_msgs/Pose pose\nfloat64[36] covariance",
    "geometry_msgs/Twist": "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular",
    "geometry_msgs/TwistWithCovariance": "geometry_msgs/Twist twist\nfloat64[36] covariance",
    "geometry_msgs/Transform": "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation",
    "geometry_msgs/TransformStamped": (
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform"
    ),
    "geometry_msgs/Vector3Stamped": "std_msgs/Header header\ngeometry_msgs/Vector3 vector",
    "tf2_msgs/TFMessage": "geometry_msgs/TransformStamped[] transforms",
    "nav_msgs/Odometry": (
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/PoseWithCovariance pose\n"
        "geometry_msgs/TwistWithCovariance twist"
    ),
    "sensor_msgs/Imu": (
        "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\nfloat64[9] orientation_covariance\n"
        "geometry_msgs/Vector3 angular_velocity\nfloat64[9] angular_velocity_covariance\n"
        "geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance"
    ),
    "sensor_msgs/JointState": (
        "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort"
    ),
}
_BETWEEN = "=" * 80


def message_definition(name: str) -> str:
    """The schema `ros2msg` of a message such as `nav_msgs/Odometry`: its fields, then those of all messages in it."""
    needed = [name]
    for message in needed:  # it grows while it is walked
        types = [line.split()[0].split("[")[0] for line in _FIELDS[message].splitlines()]
        needed += [kind for kind in types if kind in _FIELDS and kind not in needed]
    parts = [_FIELDS[name], *(f"MSG: {message}\n{_FIELDS[message]}" for message in needed[1:])]
    return f"\n{_BETWEEN}\n".join(parts) + "\n"

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MCAP log of a run with ROS 2 messages, for Foxglove and `ros2 bag`; no ROS needed.

It needs mcap and mcap-ros2-support, the extra `log`. Topics, frames and names of joints are those
of the nodes; times are simulated time.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rfly_amphibious.sensors.samples import JointSamples, SensorSamples, joint_names
from rfly_amphibious.sensors.sensor_kernels import turn_joints
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.sensors.sensor_suite import joint_geometry
from rfly_amphibious.simulation.simulation import STEP
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.motor_channels import FIRST_ID, model_type, motor_channels
from rfly_common.arrays import Floats
from rfly_common.frames import euler_to_quat, quat_conjugate, quat_rotate, rotation_matrix
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN
from rfly_common.imports import require
from rfly_lab.runs.closed_loop import ClosedLoopRun
from rfly_lab.runs.message_definitions import message_definition
from rfly_lab.runs.recorder import ScenarioRun
from rfly_lab.runs.run import SAMPLE_STEPS

Message = dict[str, Any]
Stamped = tuple[int, str, Message]
"""Time, ns, topic and message."""

WORLD = "map"
"""Frame of the world."""

TOPICS = {
    "/tf": "tf2_msgs/TFMessage",
    "/ground_truth/odom": "nav_msgs/Odometry",
    "/imu/data": "sensor_msgs/Imu",
    "/joint_states": "sensor_msgs/JointState",
    "/wheel_loads": "std_msgs/Float64MultiArray",
    "/rotor_speeds": "std_msgs/Float64MultiArray",
    "/environment/wind": "geometry_msgs/Vector3Stamped",
    "/mode": "std_msgs/String",
    "/vehicle_states": "rfly_suite/VehicleStateArray",
}
"""Topics of a run, with the types of their messages."""

SENSED_TOPICS = {
    "/tf_static": "tf2_msgs/TFMessage",
    "/gps/fix": "sensor_msgs/NavSatFix",
    "/gps/vel": "geometry_msgs/TwistStamped",
    "/imu/mag": "sensor_msgs/MagneticField",
    "/baro": "sensor_msgs/FluidPressure",
    "/height_above_ground": "sensor_msgs/Range",
    "/odometry/global": "nav_msgs/Odometry",
    "/cmd/rotors": "rfly_suite/RotorCommand",
    "/cmd/wheels": "rfly_suite/WheelCommand",
}
"""Topics of a closed loop in addition to TOPICS."""

MODE_PERIOD = 0.5
"""Time after which the mode is logged again, as by the node, s."""


def check_mcap() -> None:
    """Raise ConfigError with what to install if MCAP files cannot be written."""
    require("mcap_ros2", "writing MCAP files")


def write_mcap(run: ScenarioRun | ClosedLoopRun, path: Path, vehicle: str = "amphibious") -> None:
    """Write a log of a run: TOPICS with the truth at each sample, 50 Hz, without noise.

    `/imu/data` is that of an IMU in base_link (frame `<vehicle>/base_link`), `/rotor_speeds` are
    rad/s, `/wheel_loads` N, `/vehicle_states` what RflySim3D and `rfly view` show. Of a closed loop
    that kept its ticks: what its sensors measured, with their noise and rates, and the estimates
    and commands (SENSED_TOPICS); `/ground_truth/odom`, `/rotor_speeds` and `/vehicle_states` stay
    true. The metadata hold scenario, map, vehicle, seed, ending and the place of the world's origin
    (latitude, longitude, deg, altitude, m). Raise ConfigError without mcap-ros2-support.
    """
    check_mcap()
    from mcap_ros2.writer import Writer

    closed = run if isinstance(run, ClosedLoopRun) else None
    run = run.run if isinstance(run, ClosedLoopRun) else run
    scenario = run.scenario

    messages = _in_time(_modes(run), _messages(run, f"{vehicle}/base_link"))
    topics = TOPICS
    if closed is not None and closed.ticks:
        truth = (m for m in messages if m[1] not in _OF_SENSORS)
        messages = _in_time(truth, _sensed(closed, vehicle))
        topics = TOPICS | SENSED_TOPICS

    with path.open("wb") as file, Writer(file) as writer:
        schemas = {
            kind: writer.register_msgdef(kind.replace("/", "/msg/"), message_definition(kind))
            for kind in topics.values()
        }

        for time_ns, topic, message in messages:
            writer.write_message(topic, schemas[topics[topic]], message, time_ns)

        terrain = scenario.terrain
        place = terrain.geo_origin if terrain is not None else None
        writer.add_metadata(
            "scenario",
            {
                "geo_origin": " ".join(map(str, place or DEFAULT_GEO_ORIGIN)),
                "map": "" if terrain is None else terrain.name,
                "name": scenario.name,
                "vehicle": scenario.params.name,
                "seed": str(scenario.wind.seed),
                "ending": run.ending,
            },
        )


_in_time = functools.partial(heapq.merge, key=lambda message: message[0])
_OF_SENSORS = ("/imu/data", "/joint_states", "/wheel_loads", "/environment/wind")
"""Topics with the truth in the log of a run, and with samples in that of a closed loop."""


def _sensed(closed: ClosedLoopRun, vehicle: str) -> Iterator[Stamped]:
    """Yield samples, estimates and commands of a closed loop, at the times of their ticks."""
    params = closed.run.scenario.params
    base = f"{vehicle}/base_link"
    imu_frame = f"{vehicle}/imu_link"
    names = joint_names(params)
    steered = params.steering_sign != 0.0

    # places of the sensors
    links = []
    for name, (place, turn) in closed.sensors.fixed_frames().items():
        rotation = _quaternion(np.asarray(euler_to_quat(turn), float))
        transform = {"translation": _vector(np.array(place)), "rotation": rotation}
        child = f"{vehicle}/{name}"
        links.append(
            {"header": _header(0.0, base), "child_frame_id": child, "transform": transform}
        )
    yield 0, "/tf_static", {"transforms": links}

    estimated = -1.0
    for tick in closed.ticks:
        now = round(tick.time * 1e9)
        samples = tick.samples

        if samples.imu is not None:
            for time, force, rates, attitude in zip(*samples.imu, strict=True):
                yield now, "/imu/data", _imu(_header(time, imu_frame), attitude, rates, force)
        if samples.joints is not None:
            columns = samples.joints.columns(steered, 0.0)
            for time, positions, speeds in zip(samples.joints.time, *columns, strict=True):
                yield now, "/joint_states", _joints(_header(time, base), names, positions, speeds)
        yield from _air_sensors(samples, now, vehicle, closed.sensors)
        if samples.wheel_loads is not None:
            for load in samples.wheel_loads.load:
                yield now, "/wheel_loads", _array("wheel", load)
        if samples.wind is not None:
            for time, velocity in zip(*samples.wind, strict=True):
                wind = {"header": _header(time, WORLD), "vector": _vector(velocity)}
                yield now, "/environment/wind", wind

        estimate = tick.estimate
        if estimate is not None and estimate.time > estimated:
            estimated = estimate.time
            velocity = rotation_matrix(estimate.orientation).T @ estimate.velocity
            pose = _header(estimated, WORLD), base, estimate.position, estimate.orientation
            covariances = estimate.odometry_covariances(closed.sensors.rates_covariance)
            odometry = _odometry(*pose, velocity, estimate.rates, covariances)
            yield now, "/odometry/global", odometry

        rotors = tick.rotors
        rotor_command = {
            "header": _header(rotors.time, ""),
            "mode": int(rotors.torques),
            "value": rotors.value.tolist(),
        }
        yield now, "/cmd/rotors", rotor_command
        wheels = tick.wheels
        wheel_command = {
            "header": _header(wheels.time, ""),
            "steering_angle": float(wheels.steering_angle),
            "drive_torque": wheels.drive_torque.tolist(),
            "brake_torque": wheels.brake_torque.tolist(),
        }
        yield now, "/cmd/wheels", wheel_command


def _air_sensors(
    samples: SensorSamples, now: int, vehicle: str, sensors: SensorParameters
) -> Iterator[Stamped]:
    """Yield the samples of GPS, magnetometer, barometer and height sensor of a tick, at `now`, ns.

    Covariances are 0, which means unknown.
    """
    if samples.gps is not None:
        for time, (latitude, longitude, altitude), velocity in zip(*samples.gps, strict=True):
            fix = {
                "header": _header(time, f"{vehicle}/gps_link"),
                "status": {"status": 0, "service": 1},
                "latitude": float(latitude),
                "longitude": float(longitude),
                "altitude": float(altitude),
                "position_covariance": _EXACT_3,
                "position_covariance_type": 0,
            }
            yield now, "/gps/fix", fix
            twist = {"linear": _vector(velocity), "angular": _vector(np.zeros(3))}
            yield now, "/gps/vel", {"header": _header(time, WORLD), "twist": twist}
    if samples.magnetometer is not None:
        for time, field in zip(*samples.magnetometer, strict=True):
            header = _header(time, f"{vehicle}/imu_link")
            reading = {"magnetic_field": _vector(field), "magnetic_field_covariance": _EXACT_3}
            yield now, "/imu/mag", {"header": header, **reading}
    if samples.barometer is not None:
        for time, pressure in zip(*samples.barometer, strict=True):
            header = _header(time, f"{vehicle}/baro_link")
            yield now, "/baro", {"header": header, "fluid_pressure": pressure, "variance": 0.0}
    if samples.height is not None and sensors.height is not None:
        height = sensors.height
        beam = {
            "radiation_type": 1,  # infrared
            "field_of_view": height.field_of_view,
            "min_range": height.min_range,
            "max_range": height.max_range,
            "variance": float(height.noise.variance(1.0 / height.rate)[0]),
        }
        for time, distance in zip(*samples.height, strict=True):
            header = _header(time, f"{vehicle}/height_link")
            yield now, "/height_above_ground", {"header": header, **beam, "range": distance}


def _messages(run: ScenarioRun, frame: str) -> Iterator[Stamped]:
    """Yield the truth at each sample, in the order of time."""
    times = np.round(run.time * 1e9).astype(np.int64)
    position = run.position
    orientation = run.x[:, state_layout.QUATERNION_XYZW]
    velocity = quat_rotate(
        quat_conjugate(orientation), run.x[:, state_layout.VELOCITY : state_layout.VELOCITY + 3]
    )
    rates = run.x[:, state_layout.RATES : state_layout.RATES + 3]
    force = run.outputs.specific_force

    names, angles, speeds = joint_states(run)
    params = run.scenario.params
    rotors = params.rotors
    rotor_speed = run.x[:, state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + rotors]

    for k, time_ns in enumerate(times.tolist()):
        in_world = _header(time_ns * 1e-9, WORLD)
        in_body = _header(time_ns * 1e-9, frame)
        transform = {"translation": _vector(position[k]), "rotation": _quaternion(orientation[k])}
        link = {"header": in_world, "child_frame_id": frame, "transform": transform}
        odometry = _odometry(in_world, frame, position[k], orientation[k], velocity[k], rates[k])

        yield time_ns, "/tf", {"transforms": [link]}
        yield time_ns, "/ground_truth/odom", odometry
        yield time_ns, "/imu/data", _imu(in_body, orientation[k], rates[k], force[k])
        yield time_ns, "/joint_states", _joints(in_body, names, angles[k], speeds[k])
        yield time_ns, "/wheel_loads", _array("wheel", run.outputs.wheel_load[k])
        yield time_ns, "/rotor_speeds", _array("rotor", rotor_speed[k])
        yield time_ns, "/environment/wind", {"header": in_world, "vector": _vector(run.wind[k])}
        motors = motor_channels(run.x[k], rotors, len(params.wheels))
        shown = {
            "header": in_world,
            "source": "",
            "id": [FIRST_ID],
            "vehicle_type": [model_type(rotors)],
            "position": position[k].tolist(),
            "orientation": orientation[k].tolist(),
            "velocity": run.x[k, state_layout.VELOCITY : state_layout.VELOCITY + 3].tolist(),
            "angular_velocity": rates[k].tolist(),
            "motors": len(motors),
            "motor_speed": motors.tolist(),
            "scale": [],
            "fit_ground": [],
        }
        yield time_ns, "/vehicle_states", shown


_EXACT_3 = [0.0] * 9
"""Covariance of exact values, (3, 3)."""

_EXACT_6 = [0.0] * 36
"""Covariance of exact values, (6, 6)."""


def joint_states(run: ScenarioRun) -> tuple[list[str], Floats, Floats]:
    """Return names, positions and rates, (k, names), of the joints, as in `/joint_states`.

    Positions are in rad and m. The joints are wheels, steered wheels, struts and rotors. Angles of
    wheels and rotors count from the first sample; steering angles have no rates (0).
    """
    params = run.scenario.params
    geometry = joint_geometry(params)
    wheels = len(params.wheels)
    turning = wheels + params.rotors
    last = np.repeat([0.0, np.nan], turning)

    out = np.empty((len(run.time), wheels + 2 * turning))
    # all samples are equally spaced, except the last one of a run that ended between two
    spans = np.diff(run.time, prepend=run.time[0] - SAMPLE_STEPS * STEP)
    for part in (slice(0, -1), slice(-1, None)):
        if len(run.time[part]):
            turn_joints(float(spans[part][-1]), run.x[part], geometry, last, out[part])

    steering, rate, angle, rotors = np.split(out, wheels * np.arange(1, 4), axis=1)
    rotor_rate = rotors[:, : params.rotors]
    rotor_angle = rotors[:, params.rotors :]
    strut, strut_rate = (
        run.x[:, state_layout.state_columns(params.rotors, wheels)[key]]
        for key in ("strut", "strut_rate")
    )

    joints = JointSamples(
        run.time, angle, rate, steering, strut, strut_rate, rotor_angle, rotor_rate
    )
    return joint_names(params), *joints.columns(params.steering_sign != 0.0, 0.0)


def _modes(run: ScenarioRun) -> Iterator[Stamped]:
    """Yield the mode at each change, and each MODE_PERIOD between."""
    changes = {round(time * 1e9): mode.value for time, mode in run.modes}
    repeats = range(0, round(run.duration * 1e9) + 1, round(MODE_PERIOD * 1e9))
    mode = ""
    for time_ns in sorted({*changes, *repeats}):
        mode = changes.get(time_ns, mode)
        yield time_ns, "/mode", {"data": mode}


def _header(time: float, frame: str) -> Message:
    """Return a std_msgs/Header of a time, s."""
    sec, nanosec = divmod(round(time * 1e9), 10**9)
    return {"stamp": {"sec": sec, "nanosec": nanosec}, "frame_id": frame}


def _odometry(
    header: Message,
    child: str,
    position: Floats,
    orientation: Floats,
    velocity: Floats,
    rates: Floats,
    covariances: tuple[Any, Any] = (_EXACT_6, _EXACT_6),
) -> Message:
    """Return a nav_msgs/Odometry; `covariances` (36,) are those of pose and twist, 0: exact."""
    pose = {"position": _vector(position), "orientation": _quaternion(orientation)}
    twist = {"linear": _vector(velocity), "angular": _vector(rates)}
    return {
        "header": header,
        "child_frame_id": child,
        "pose": {"pose": pose, "covariance": list(covariances[0])},
        "twist": {"twist": twist, "covariance": list(covariances[1])},
    }


def _imu(header: Message, orientation: Floats, rates: Floats, force: Floats) -> Message:
    """Return a sensor_msgs/Imu of exact values."""
    return {
        "header": header,
        "orientation": _quaternion(orientation),
        "orientation_covariance": _EXACT_3,
        "angular_velocity": _vector(rates),
        "angular_velocity_covariance": _EXACT_3,
        "linear_acceleration": _vector(force),
        "linear_acceleration_covariance": _EXACT_3,
    }


def _joints(header: Message, names: list[str], positions: Floats, speeds: Floats) -> Message:
    """Return a sensor_msgs/JointState."""
    return {
        "header": header,
        "name": names,
        "position": positions.tolist(),
        "velocity": speeds.tolist(),
        "effort": [],
    }


def _vector(values: Floats) -> Message:
    x, y, z = values.tolist()
    return {"x": x, "y": y, "z": z}


def _quaternion(xyzw: Floats) -> Message:
    x, y, z, w = xyzw.tolist()
    return {"x": x, "y": y, "z": z, "w": w}


def _array(label: str, values: Floats) -> Message:
    """Return a std_msgs/Float64MultiArray with one dimension."""
    size = len(values)
    dimension = {"label": label, "size": size, "stride": size}
    return {"layout": {"dim": [dimension], "data_offset": 0}, "data": values.tolist()}

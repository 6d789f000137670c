# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MCAP log of a run with ROS 2 messages, for Foxglove and `ros2 bag`; no ROS needed.

It needs mcap and mcap-ros2-support, the extra `log`. Topics, frames and names of joints are those
of the nodes; times are simulated time.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rfly_amphibious.dynamics.model import Outputs
from rfly_amphibious.sensors.sample_messages import (
    SAMPLE_TOPICS,
    SampleMessages,
    set_forces,
    set_odometry,
    stamped,
)
from rfly_amphibious.sensors.samples import (
    ImuSamples,
    JointSamples,
    OdometrySamples,
    WheelLoadSamples,
    WindSamples,
)
from rfly_amphibious.sensors.sensor_kernels import turn_joints
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.sensors.sensor_suite import joint_geometry
from rfly_amphibious.simulation.simulation import STEP
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.motor_channels import FIRST_ID, model_type, motor_channels
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.files import open_whole
from rfly_common.frames import euler_to_quat, quat_conjugate, quat_rotate, rotation_matrix
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN
from rfly_common.imports import require
from rfly_common.transform_buffer import WORLD
from rfly_lab.runs.closed_loop import ClosedLoopRun
from rfly_lab.runs.message_definitions import message_definition, new_message
from rfly_lab.runs.recorder import ScenarioRun
from rfly_lab.runs.run import SAMPLE_STEPS

Message = Any
Stamped = tuple[int, str, Message]
"""Time, ns, topic and message."""

OF_TRUTH = ("ground_truth/odom", "imu/data", "joint_states", "wheel_loads", "environment/wind")
"""Topics with the truth in the log of a run."""
_AT_ONCE = 500
"""Samples whose messages are made at once: those of a long run would fill the memory."""
OF_SENSORS = (
    "imu/data",
    "joint_states",
    "gps/fix",
    "gps/vel",
    "imu/mag",
    "baro",
    "height_above_ground",
    "wheel_loads",
    "environment/wind",
)
"""Topics with samples in the log of a closed loop, in the order of a tick."""

TOPICS = {
    "/tf": "tf2_msgs/TFMessage",
    **{f"/{topic}": SAMPLE_TOPICS[topic].type for topic in OF_TRUTH},
    "/ground_truth/forces": "rfly_suite/VehicleForces",
    "/rotor_speeds": "std_msgs/Float64MultiArray",
    "/mode": "rfly_suite/VehicleMode",
    "/vehicle_states": "rfly_suite/VehicleStateArray",
}
"""Topics of a run, with the types of their messages."""

SENSED_TOPICS = {
    "/tf_static": "tf2_msgs/TFMessage",
    **{f"/{topic}": SAMPLE_TOPICS[topic].type for topic in OF_SENSORS if topic not in OF_TRUTH},
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
    and commands (SENSED_TOPICS); `/ground_truth/odom`, `/ground_truth/forces`, `/rotor_speeds` and
    `/vehicle_states` stay true. The metadata hold scenario, map, vehicle, seed, ending and the
    place of the world's origin (latitude, longitude, deg, altitude, m). Raise ConfigError without
    mcap-ros2-support.
    """
    check_mcap()
    from mcap_ros2.writer import Writer

    closed = run if isinstance(run, ClosedLoopRun) else None
    run = run.run if isinstance(run, ClosedLoopRun) else run
    scenario = run.scenario

    messages = _in_time(_modes(run), _messages(run, vehicle))
    topics = TOPICS
    if closed is not None and closed.ticks:
        truth = (m for m in messages if m[1].removeprefix("/") not in OF_SENSORS)
        messages = _in_time(truth, _sensed(closed, vehicle))
        topics = TOPICS | SENSED_TOPICS

    with open_whole(path) as file, Writer(file) as writer:
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


_in_time = partial(heapq.merge, key=lambda message: message[0])


def _sensed(closed: ClosedLoopRun, vehicle: str) -> Iterator[Stamped]:
    """Yield samples, estimates and commands of a closed loop, at the times of their ticks.

    Covariances of samples are 0, which means unknown.
    """
    params = closed.run.scenario.params
    base = f"{vehicle}/base_link"

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

    height = closed.sensors.height
    constants = {}
    if height is not None:
        variance = float(height.noise.variance(1.0 / height.rate)[0])
        constants["height_above_ground"] = {"variance": variance}
    messages_of = _sample_messages(params, closed.sensors, vehicle, constants)

    estimated = -1.0
    for tick in closed.ticks:
        now = round(tick.time * 1e9)
        for topic in OF_SENSORS:
            readings = getattr(tick.samples, SAMPLE_TOPICS[topic].kind)
            for message in [] if readings is None else messages_of(topic, readings):
                yield now, f"/{topic}", message

        estimate = tick.estimate
        if estimate is not None and estimate.time > estimated:
            estimated = estimate.time
            velocity = rotation_matrix(estimate.orientation).T @ estimate.velocity
            odometry = stamped(new_message("nav_msgs/Odometry"), estimated, WORLD)
            pose = estimate.position, estimate.orientation
            set_odometry(odometry, base, *pose, velocity, estimate.rates)
            covariances = estimate.odometry_covariances(closed.sensors.rates_covariance)
            odometry.pose.covariance, odometry.twist.covariance = map(list, covariances)
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
            "wheel_steering_angle": (
                [] if wheels.wheel_steering is None else wheels.wheel_steering.tolist()
            ),
        }
        yield now, "/cmd/wheels", wheel_command


def _messages(run: ScenarioRun, vehicle: str) -> Iterator[Stamped]:
    """Yield the truth at each sample, in the order of time."""
    base = f"{vehicle}/base_link"
    params = run.scenario.params
    constants = {"imu/data": {"header.frame_id": base}}
    messages_of = _sample_messages(params, SensorParameters(name=""), vehicle, constants)
    truth = _truth(run)
    sampled: dict[str, list[Any]] = {}

    rotors = params.rotors
    rotor_speed = run.x[:, state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + rotors]
    times = np.round(run.time * 1e9).astype(np.int64)
    odometry = truth["ground_truth/odom"]

    for k, time_ns in enumerate(times.tolist()):
        in_world = _header(time_ns * 1e-9, WORLD)
        place = run.position[k]
        orientation = odometry.orientation[k]
        transform = {"translation": _vector(place), "rotation": _quaternion(orientation)}
        link = {"header": in_world, "child_frame_id": base, "transform": transform}

        yield time_ns, "/tf", {"transforms": [link]}
        yield time_ns, "/rotor_speeds", _array("rotor", rotor_speed[k])
        forces = stamped(new_message("rfly_suite/VehicleForces"), time_ns * 1e-9, base)
        outputs = Outputs(run.outputs.numbers[k], rotors)
        yield time_ns, "/ground_truth/forces", set_forces(forces, outputs)
        if k % _AT_ONCE == 0:
            part = slice(k, k + _AT_ONCE)
            sampled = {topic: messages_of(topic, _part(truth[topic], part)) for topic in OF_TRUTH}
        for topic, messages in sampled.items():
            yield time_ns, f"/{topic}", messages[k % _AT_ONCE]
        motors = motor_channels(run.x[k], rotors, len(params.wheels))
        shown = {
            "header": in_world,
            "source": "",
            "id": [FIRST_ID],
            "vehicle_type": [model_type(rotors)],
            "position": place.tolist(),
            "orientation": orientation.tolist(),
            "velocity": run.x[k, state_layout.VELOCITY : state_layout.VELOCITY + 3].tolist(),
            "angular_velocity": odometry.rates[k].tolist(),
            "motors": len(motors),
            "motor_speed": motors.tolist(),
            "scale": [],
            "fit_ground": [],
        }
        yield time_ns, "/vehicle_states", shown


def _part(readings: Any, part: slice) -> Any:
    """Return some of the samples of a kind."""
    return type(readings)(*(column[part] for column in readings))


def _truth(run: ScenarioRun) -> dict[str, Any]:
    """Return the true motion as exact samples, by topic."""
    orientation = run.x[:, state_layout.QUATERNION_XYZW]
    velocity = run.x[:, state_layout.VELOCITY : state_layout.VELOCITY + 3]
    rates = run.x[:, state_layout.RATES : state_layout.RATES + 3]
    in_body = np.asarray(quat_rotate(quat_conjugate(orientation), velocity), float)
    return {
        "ground_truth/odom": OdometrySamples(run.time, run.position, orientation, in_body, rates),
        "imu/data": ImuSamples(run.time, run.outputs.specific_force, rates, orientation),
        "joint_states": joint_samples(run),
        "wheel_loads": WheelLoadSamples(run.time, run.outputs.wheel_load),
        "environment/wind": WindSamples(run.time, run.wind),
    }


def _sample_messages(
    params: VehicleParameters, sensors: SensorParameters, vehicle: str, constants: Any
) -> SampleMessages:
    """Return the messages of a log, in which the steering's rates are 0."""
    new = lambda name: partial(new_message, name)  # noqa: E731
    return SampleMessages(new, params, sensors, vehicle, 0, constants, steering_rate=0.0)


def joint_samples(run: ScenarioRun) -> JointSamples:
    """Return the joints, whose angles count from the first sample."""
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

    return JointSamples(run.time, angle, rate, steering, strut, strut_rate, rotor_angle, rotor_rate)


def _modes(run: ScenarioRun) -> Iterator[Stamped]:
    """Yield the mode at each change, and each MODE_PERIOD between."""
    began = {
        round(time * 1e9): {"header": _header(time, ""), "mode": mode.value}
        for time, mode in run.modes
    }
    repeats = range(0, round(run.duration * 1e9) + 1, round(MODE_PERIOD * 1e9))
    message = {"header": _header(0.0, ""), "mode": ""}
    for time_ns in sorted({*began, *repeats}):
        message = began.get(time_ns, message)
        yield time_ns, "/mode", message


def _header(time: float, frame: str) -> Message:
    """Return a std_msgs/Header of a time, s."""
    sec, nanosec = divmod(round(time * 1e9), 10**9)
    return {"stamp": {"sec": sec, "nanosec": nanosec}, "frame_id": frame}


def _vector(values: Floats) -> Message:
    x, y, z = values.tolist()
    return {"x": x, "y": y, "z": z}


def _quaternion(xyzw: Floats) -> Message:
    x, y, z, w = xyzw.tolist()
    return {"x": x, "y": y, "z": z, "w": w}


def _array(label: str, values: Floats) -> Message:
    """Return a std_msgs/Float64MultiArray with one dimension."""
    size = len(values)
    dim = [{"label": label, "size": size, "stride": size}]
    return {"layout": {"dim": dim}, "data": values.tolist()}

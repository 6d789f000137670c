# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""URDF of the vehicle for RViz and /tf, from the same parameters as the dynamics.

base_link is the sprung centre of mass, axes forward, left, up. Joints are named as their child
links, with _joint: SDFormat wants a name of its own for each. The moving ones are those of
joint_states: strut_* (m, positive = compressed) carry steer_* (rad, positive = left) where a wheel
is steered, and wheel_* (rad, positive rolls forward); rotor_1_joint … (rad, counter-clockwise seen
from above). At zero the vehicle rests on level ground.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree as ET  # only writes here

import numpy as np

from rfly_amphibious.sensors.sensor_parameters import (
    LOOKS_DOWN,
    SensorParameters,
    shipped_sensor_sets,
)
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats, Triple
from rfly_common.config.checks import finite_array
from rfly_common.errors import ConfigError
from rfly_sensing.range_sensor_parameters import GimbalParameters

PARTS = ("body", "wheel", "rotor")
"""Parts that can have a mesh. Its origin and axes are those of base_link, of a hub (y = axle, to
the left), and of a rotor."""
GIMBAL_TORQUE = 1.0
"""Torque of the gimbal, N m, for tools that need a limit."""
CAMERA_JOINT = "camera_joint"
"""Joint of the gimbal."""
ROS2_CONTROL_PLUGIN = "joint_state_topic_hardware_interface/JointStateTopicSystem"
"""Hardware interface of ros-controls that speaks by topics with JointState."""
SENSOR_FRAMES = (
    "imu_link",
    "gps_link",
    "baro_link",
    "height_link",
    "lidar_link",
    "camera_link",
)
"""Frames of the sensors."""

_OPTICAL = (-math.pi / 2, 0.0, -math.pi / 2)
"""Roll, pitch, yaw from camera_link to camera_optical: z forward, x right, y down."""
_COLOURS = {"body": "0.85 0.87 0.9 1", "dark": "0.13 0.14 0.16 1", "rotor": "0.95 0.55 0.1 1"}
_MESH_ENDINGS = (".dae", ".stl", ".obj", ".glb", ".gltf", ".fbx", ".ply", ".mesh")
_HERE: Triple = (0.0, 0.0, 0.0)
"""Place of the parent link."""


class _Body(NamedTuple):
    """Mass and inertia of a link."""

    mass: float
    """Mass, kg."""
    center: Floats
    """Centre of mass in the link's axes, m."""
    inertia: Floats
    """Inertia about the centre of mass, (3, 3), kg m²."""


def vehicle_urdf(
    params: VehicleParameters,
    prefix: str = "",
    meshes: Mapping[str, str] | None = None,
    mounts: Mapping[str, Triple] | None = None,
    sensors: SensorParameters | None = None,
    ros2_control: str | None = None,
) -> str:
    """Return the text of the URDF.

    `prefix` stands before the names of all links, such as "car/"; joints keep the names of the
    vehicle's joint_states. `meshes`: mesh files (package://… or file://… or a path) to show instead
    of boxes and cylinders, by part (PARTS). `mounts`: places of SENSOR_FRAMES from base_link, m; by
    default those of `sensors`, and without them of the shipped sensors with the vehicle's name. The
    cameras' joint is the gimbal: positive looks down. `ros2_control`: namespace of the vehicle's
    topics, such as "/car", for a tag <ros2_control> with the joints that it may command.

    The masses add up to the vehicle's; body, arms and rotors together have the parameters' inertia.
    At each wheel a solid disc of the wheel's spin inertia turns; the rest of the unsprung mass is a
    small ball at the hub. Raise ConfigError for unknown parts and frames, a file that is no mesh, a
    prefix that can't be one, and rotors that are heavier than the body.
    """
    mesh_files = dict(meshes or {})
    places = dict(mounts or {})
    _check(prefix, mesh_files, places)
    robot = ET.Element("robot", name="amphibious")
    for name, colour in _COLOURS.items():
        ET.SubElement(ET.SubElement(robot, "material", name=name), "color", rgba=colour)
    link = _Links(robot, prefix)

    # no inertia: KDL, and so robot_state_publisher, takes none for the root
    link.add("base_link")
    _add_body(link, params, mesh_files.get("body"))
    for i, wheel in enumerate(params.wheels):
        _add_wheel(link, params, i, wheel, mesh_files.get("wheel"))
    for j, place in enumerate(params.rotor_position):
        _add_rotor(link, params, f"rotor_{j + 1}", place, mesh_files.get("rotor"))
    _add_sensors(link, params, places, sensors)

    if ros2_control is not None:
        _add_ros2_control(robot, params, ros2_control)

    ET.indent(robot)
    return f'<?xml version="1.0"?>\n{ET.tostring(robot, "unicode")}\n'


def _check(prefix: str, meshes: Mapping[str, str], mounts: Mapping[str, Triple]) -> None:
    """Raise ConfigError for arguments of `vehicle_urdf` that can't be used."""
    if not re.fullmatch(r"[A-Za-z0-9_./-]*", prefix) or prefix.startswith("/"):
        raise ConfigError(
            f"prefix {prefix!r}: expected letters, digits and _ . - /, not beginning with /"
        )
    for key in meshes:
        if key not in PARTS:
            raise ConfigError(f"mesh of {key!r}: known are {', '.join(PARTS)}")
    for key in mounts:
        if key not in SENSOR_FRAMES:
            raise ConfigError(f"mount of {key!r}: known are {', '.join(SENSOR_FRAMES)}")
    for part, file in meshes.items():
        if not file.lower().endswith(_MESH_ENDINGS):
            raise ConfigError(f"mesh of {part}: {file}: expected one of {', '.join(_MESH_ENDINGS)}")
    for frame, place in mounts.items():
        finite_array(f"mount of {frame}", place, (3,))


class _Links:
    """Writer of links and joints; every place is relative to the parent link."""

    def __init__(self, robot: ET.Element, prefix: str) -> None:
        self._robot = robot
        self._prefix = prefix

    def add(self, name: str, body: _Body | None = None) -> ET.Element:
        """Add a link and return it."""
        link = ET.SubElement(self._robot, "link", name=self._prefix + name)
        if body is not None:
            inertial = ET.SubElement(link, "inertial")
            ET.SubElement(inertial, "origin", xyz=_numbers(*body.center), rpy="0 0 0")
            ET.SubElement(inertial, "mass", value=_numbers(body.mass))
            moments = {
                f"i{'xyz'[r]}{'xyz'[c]}": _numbers(body.inertia[r, c])
                for r in range(3)
                for c in range(r, 3)
            }
            ET.SubElement(inertial, "inertia", moments)
        return link

    def join(
        self,
        kind: str,
        parent: str,
        child: str,
        place: Floats | Triple,
        rpy: Triple = (0.0, 0.0, 0.0),
    ) -> ET.Element:
        """Add the joint of a child link and return it."""
        name = f"{child.removesuffix('_link')}_joint"
        joint = ET.SubElement(self._robot, "joint", name=name, type=kind)
        ET.SubElement(joint, "parent", link=self._prefix + parent)
        ET.SubElement(joint, "child", link=self._prefix + child)
        ET.SubElement(joint, "origin", xyz=_numbers(*place), rpy=_numbers(*rpy))
        return joint


def _add_body(link: _Links, p: VehicleParameters, mesh: str | None) -> None:
    """Add the body with the arms of the rotors."""
    body = link.add("body", _body_without_rotors(p))
    box = _numbers(*p.body_box)
    link.join("fixed", "base_link", "body", _HERE)
    if mesh is not None:
        _mesh(body, mesh)
    else:
        _shape(body, "visual", "box", "body", {"size": box})
        hub = np.array((p.center_x, 0.0, p.rotor_height))
        for place, length, yaw in zip(p.rotor_position, p.rotor_arm, p.rotor_azimuth, strict=True):
            arm = {"size": _numbers(length, 0.06 * p.rotor_radius, 0.06 * p.rotor_radius)}
            _shape(body, "visual", "box", "dark", arm, (place + hub) / 2, (0.0, 0.0, yaw))
    _shape(body, "collision", "box", None, {"size": box})


def _add_wheel(link: _Links, p: VehicleParameters, i: int, wheel: str, mesh: str | None) -> None:
    """Add a wheel with its strut, and its steering where it is steered."""
    steered = p.steering_sign[i] != 0.0
    disc = _wheel_disc(p)
    carriers = ("strut", "steer") if steered else ("strut",)
    mass = (p.mass_unsprung - disc.mass) / len(carriers)
    inertia = 0.4 * mass * (p.wheel_radius / 4.0) ** 2 * np.eye(3)
    ball = _Body(mass, np.zeros(3), inertia)

    # strut
    strut = f"strut_{wheel}"
    link.add(strut, ball)
    joint = link.join("prismatic", "base_link", strut, p.hub_position[i])
    ET.SubElement(joint, "axis", xyz="0 0 1")
    force = float(p.spring_load[i]) + float(p.spring[i]) * p.bump_stop
    lowest = min(p.rebound_stop, float(p.hanging_strut[i]), float(p.free_strut[i]))
    _limit(joint, lowest, p.bump_stop, force, force / p.bump_damping)

    # steering
    if steered:
        steer = f"steer_{wheel}"
        link.add(steer, ball)
        joint = link.join("revolute", strut, steer, _HERE)
        ET.SubElement(joint, "axis", xyz="0 0 1")
        angle, rate = steering_joint_limits(p)
        torque = p.friction_y * float(p.static_load[i]) * p.wheel_radius
        _limit(joint, -angle, angle, torque, rate)

    # wheel
    name = f"wheel_{wheel}"
    element = link.add(name, disc)
    joint = link.join("continuous", f"{carriers[-1]}_{wheel}", name, _HERE)
    ET.SubElement(joint, "axis", xyz="0 1 0")

    # looks
    radius = p.wheel_radius
    width = 0.6 * p.wheel_radius
    upright = (math.pi / 2, 0.0, 0.0)
    size = {"radius": _numbers(radius), "length": _numbers(width)}
    if mesh is not None:
        _mesh(element, mesh)
    else:
        _shape(element, "visual", "cylinder", "dark", size, rpy=upright)
        # a spoke shows that the wheel turns
        spoke = {"size": _numbers(1.4 * radius, 1.04 * width, 0.25 * radius)}
        _shape(element, "visual", "box", "body", spoke)
    _shape(element, "collision", "cylinder", None, size, rpy=upright)


def _add_rotor(
    link: _Links, p: VehicleParameters, name: str, place: Floats, mesh: str | None
) -> None:
    """Add a rotor."""
    element = link.add(name, _rotor_disc(p))
    joint = link.join("continuous", "base_link", name, place)
    ET.SubElement(joint, "axis", xyz="0 0 1")
    radius = p.rotor_radius
    if mesh is not None:
        _mesh(element, mesh)
    else:
        blades = {"size": _numbers(2.0 * radius, 0.12 * radius, 0.02 * radius)}
        _shape(element, "visual", "box", "rotor", blades)
    size = {"radius": _numbers(radius), "length": _numbers(0.05 * radius)}
    _shape(element, "collision", "cylinder", None, size)


def _add_sensors(
    link: _Links,
    p: VehicleParameters,
    mounts: Mapping[str, Triple],
    sensors: SensorParameters | None,
) -> None:
    """Add the frames of the sensors, with the gimbal of the cameras."""
    length, _, height = p.body_box
    places: dict[str, Triple] = {
        "imu_link": _HERE,
        "gps_link": (0.0, 0.0, height / 2.0),
        "baro_link": _HERE,
        "height_link": _HERE,
        "lidar_link": (0.0, 0.0, height / 2.0),
        "camera_link": (length / 2.0, 0.0, height / 2.0),
    }
    turns: dict[str, Triple] = {"height_link": LOOKS_DOWN}
    if sensors is None and p.name in shipped_sensor_sets():
        sensors = SensorParameters.load(p.name)
    if sensors is not None:
        for frame, (place, turn) in sensors.fixed_frames().items():
            places[frame] = place
            turns[frame] = turn

    gimbal = sensors.gimbal if sensors is not None else None
    if gimbal is not None:
        places["camera_link"] = gimbal.position
    gimbal = gimbal or GimbalParameters()

    for frame, place in {**places, **mounts}.items():
        link.add(frame)
        kind = "revolute" if frame == "camera_link" else "fixed"
        joint = link.join(kind, "base_link", frame, place, turns.get(frame, _HERE))
        if kind == "revolute":
            ET.SubElement(joint, "axis", xyz="0 1 0")
            speed = (gimbal.max_pitch - gimbal.min_pitch) / gimbal.lag
            _limit(joint, gimbal.min_pitch, gimbal.max_pitch, GIMBAL_TORQUE, speed)

    link.add("camera_optical")
    link.join("fixed", "camera_link", "camera_optical", _HERE, _OPTICAL)


def _add_ros2_control(robot: ET.Element, p: VehicleParameters, namespace: str) -> None:
    """Add the tag of ros2_control: rates of driven wheels, angles of steering and gimbal."""
    system = ET.SubElement(robot, "ros2_control", name=p.name, type="system")
    hardware = ET.SubElement(system, "hardware")
    ET.SubElement(hardware, "plugin").text = ROS2_CONTROL_PLUGIN
    settings = {
        "joint_commands_topic": f"{namespace.rstrip('/')}/joint_commands",
        "joint_states_topic": f"{namespace.rstrip('/')}/joint_states",
        # silence means that ros2_control is gone
        "trigger_joint_command_threshold": "-1",
    }
    for name, value in settings.items():
        ET.SubElement(hardware, "param", name=name).text = value

    commands = {f"wheel_{p.wheels[i]}_joint": "velocity" for i in np.flatnonzero(p.is_driven)}
    commands |= {f"steer_{p.wheels[i]}_joint": "position" for i in np.flatnonzero(p.steering_sign)}
    commands[CAMERA_JOINT] = "position"
    for name, command in commands.items():
        joint = ET.SubElement(system, "joint", name=name)
        ET.SubElement(joint, "command_interface", name=command)
        for state in ("position", "velocity"):
            ET.SubElement(joint, "state_interface", name=state)


def _rotor_disc(p: VehicleParameters) -> _Body:
    """Return a rotor: a rod of the rotor's length and spin inertia.

    It is not heavier than the rotor frame allows.
    """
    mass = min(3.0 * p.rotor_inertia / p.rotor_radius**2, 0.5 * p.mass_rotor_frame / p.rotors)
    return _Body(mass, np.zeros(3), p.rotor_inertia * np.diag((0.5, 0.5, 1.0)))


def _wheel_disc(p: VehicleParameters) -> _Body:
    """Return a solid disc of the wheel's spin inertia, at most nine tenths of the unsprung mass."""
    mass = min(2.0 * p.wheel_inertia / p.wheel_radius**2, 0.9 * p.mass_unsprung)
    return _Body(mass, np.zeros(3), p.wheel_inertia * np.diag((0.5, 1.0, 0.5)))


def _body_without_rotors(p: VehicleParameters) -> _Body:
    """Return the sprung mass, centred at base_link, without the rotors.

    Both together have the mass and inertia of the parameters.
    """
    rotor = _rotor_disc(p)
    places = p.rotor_position
    mass = p.mass_sprung - p.rotors * rotor.mass
    center = -rotor.mass * places.sum(axis=0) / mass
    inertia = p.inertia_matrix - _moved(mass, center)
    for place in places:
        inertia = inertia - rotor.inertia - _moved(rotor.mass, place)

    moments = np.linalg.eigvalsh(inertia)
    if moments[0] <= 0.0 or moments[2] > moments[0] + moments[1]:
        rounded = moments.round(4).tolist()
        raise ConfigError(
            f"{p.name}: rotors of {rotor.mass:.3g} kg leave the body principal moments {rounded} "
            "kg m², which no body has; expected a larger inertia, or a smaller "
            "rotors.inertia_kgm2 or arm"
        )
    return _Body(mass, center, inertia)


def _moved(mass: float, place: Floats) -> Floats:
    """Return what a mass at `place` adds to the inertia about the origin."""
    return mass * (place @ place * np.eye(3) - np.outer(place, place))


def steering_joint_limits(p: VehicleParameters) -> tuple[float, float]:
    """Return the largest angle (rad) and rate (rad/s) of a steering joint.

    They are those of the inner wheel: Eq. 5.1.
    """
    lever = p.steering_lever
    tangent = math.tan(p.max_steering)
    rest = lever - p.track / 2.0 * tangent
    gear = lever**2 * (1.0 + tangent**2) / (rest**2 + (lever * tangent) ** 2)
    return math.atan(lever * tangent / rest), p.max_steering_rate * gear


def _limit(joint: ET.Element, lower: float, upper: float, effort: float, velocity: float) -> None:
    """Add limits to a joint."""
    numbers = {"lower": lower, "upper": upper, "effort": effort, "velocity": velocity}
    ET.SubElement(joint, "limit", {key: _numbers(value) for key, value in numbers.items()})


def _shape(
    link: ET.Element,
    tag: str,
    kind: str,
    colour: str | None,
    size: dict[str, str],
    place: Floats | Triple = _HERE,
    rpy: Triple = (0.0, 0.0, 0.0),
) -> None:
    """Add a simple shape to a link."""
    element = ET.SubElement(link, tag)
    ET.SubElement(element, "origin", xyz=_numbers(*place), rpy=_numbers(*rpy))
    ET.SubElement(ET.SubElement(element, "geometry"), kind, size)
    if colour is not None:
        ET.SubElement(element, "material", name=colour)


def _mesh(link: ET.Element, file: str) -> None:
    """Add a mesh to a link."""
    ET.SubElement(ET.SubElement(ET.SubElement(link, "visual"), "geometry"), "mesh", filename=file)


def _numbers(*values: float) -> str:
    """Return numbers as a text; less than 1e-12 is rounding."""
    return " ".join(f"{value:.9g}" if abs(value) > 1e-12 else "0" for value in values)

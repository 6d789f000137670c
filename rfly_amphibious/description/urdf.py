"""URDF of the vehicle for RViz and /tf, from the same parameters as the dynamics.

base_link is the sprung centre of mass, axes forward, left, up. Moving joints are named as in
joint_states: strut_* (m, positive = compressed) carry steer_* (rad, positive = left) where a wheel
is steered, and wheel_* (rad, positive rolls forward); rotor_1 … (rad, counter-clockwise seen from
above). At zero the vehicle rests on level ground.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree as ET  # only writes here

import numpy as np

from rfly_amphibious.sensors.range_sensor_parameters import GimbalParameters
from rfly_amphibious.sensors.sensor_parameters import SensorParameters, shipped_sensor_sets
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats, Triple
from rfly_common.config.checks import finite_array
from rfly_common.errors import ConfigError

Vector = Floats

PARTS = ("body", "wheel", "rotor")
"""what can have a mesh: its origin and axes are those of base_link, of a hub (y = axle, to the
left), of a rotor
"""
GIMBAL_TORQUE = 1.0
"""N m, for tools that want a limit"""
SENSOR_FRAMES = ("imu_link", "gps_link", "lidar_link", "camera_link")

_OPTICAL = (-math.pi / 2, 0.0, -math.pi / 2)
"""roll, pitch, yaw from camera_link to camera_optical: z forward, x right, y down"""
_COLOURS = {"body": "0.85 0.87 0.9 1", "dark": "0.13 0.14 0.16 1", "rotor": "0.95 0.55 0.1 1"}
_MESH_ENDINGS = (".dae", ".stl", ".obj", ".glb", ".gltf", ".fbx", ".ply", ".mesh")


class _Body(NamedTuple):
    """Mass (kg), its centre in the link's axes (m), inertia about that centre (kg m²)."""

    mass: float
    center: Vector
    inertia: Vector


def vehicle_urdf(
    params: VehicleParameters,
    prefix: str = "",
    meshes: Mapping[str, str] | None = None,
    mounts: Mapping[str, Triple] | None = None,
) -> str:
    """The URDF's text.

    prefix: before the names of all links, such as "car/"; joints keep theirs, those of the
    vehicle's joint_states. meshes: mesh files (package://… or file://… or a path) that are drawn
    instead of boxes and cylinders, by part (PARTS). mounts: places of SENSOR_FRAMES from base_link,
    m; by default those of the shipped sensors of the same name as the vehicle. The cameras' joint
    is the gimbal: positive looks down.

    The masses add up to the vehicle's; body, arms and rotors together have the parameters' inertia.
    Of what is unsprung at each wheel a solid disc of the wheel's spin inertia turns, the rest is a
    small ball at the hub. Raises ConfigError for unknown parts and frames, what is no mesh, a
    prefix that cannot be one, and rotors that are heavier than the body.
    """
    shown = dict(meshes or {})
    places = dict(mounts or {})
    _check(prefix, shown, places)
    robot = ET.Element("robot", name="amphibious")
    for name, colour in _COLOURS.items():
        ET.SubElement(ET.SubElement(robot, "material", name=name), "color", rgba=colour)
    link = _Links(robot, prefix)

    link.add(
        "base_link"
    )  # without inertia: KDL, and with it robot_state_publisher, takes none for the root
    _add_body(link, params, shown.get("body"))
    for i, wheel in enumerate(params.wheels):
        _add_wheel(link, params, i, wheel, shown.get("wheel"))
    for j, place in enumerate(params.rotor_position):
        _add_rotor(link, params, f"rotor_{j + 1}", place, shown.get("rotor"))
    _add_sensors(link, params, places)

    ET.indent(robot)
    return f'<?xml version="1.0"?>\n{ET.tostring(robot, "unicode")}\n'


def _check(prefix: str, meshes: Mapping[str, str], mounts: Mapping[str, Triple]) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_./-]*", prefix) or prefix.startswith("/"):
        raise ConfigError(
            f"prefix {prefix!r}: expected letters, digits and _ . - /, not beginning with /"
        )
    for what, given, known in (("mesh", meshes, PARTS), ("mount", mounts, SENSOR_FRAMES)):
        for key in given:
            if key not in known:
                raise ConfigError(f"{what} of {key!r}: known are {', '.join(known)}")
    for part, file in meshes.items():
        if not file.lower().endswith(_MESH_ENDINGS):
            raise ConfigError(f"mesh of {part}: {file}: expected one of {', '.join(_MESH_ENDINGS)}")
    for frame, place in mounts.items():
        finite_array(f"mount of {frame}", place, (3,))


class _Links:
    """Adds links and joints to a robot; every place is relative to the parent link."""

    def __init__(self, robot: ET.Element, prefix: str) -> None:
        self._robot = robot
        self._prefix = prefix

    def add(self, name: str, body: _Body | None = None) -> ET.Element:
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
        name: str,
        kind: str,
        parent: str,
        child: str,
        place: Vector | Triple,
        rpy: Triple = (0.0, 0.0, 0.0),
    ) -> ET.Element:
        joint = ET.SubElement(self._robot, "joint", name=name, type=kind)
        ET.SubElement(joint, "parent", link=self._prefix + parent)
        ET.SubElement(joint, "child", link=self._prefix + child)
        ET.SubElement(joint, "origin", xyz=_numbers(*place), rpy=_numbers(*rpy))
        return joint


def _add_body(link: _Links, p: VehicleParameters, mesh: str | None) -> None:
    body = link.add("body", _body_without_rotors(p))
    link.join("body_joint", "fixed", "base_link", "body", (0.0, 0.0, 0.0))
    if mesh is not None:
        _mesh(body, mesh)
    else:
        _shape(body, "visual", "box", "body", size=_numbers(*p.body_box))
        hub = np.array((p.center_x, 0.0, p.rotor_height))
        for place, length, yaw in zip(p.rotor_position, p.rotor_arm, p.rotor_azimuth, strict=True):
            size = _numbers(length, 0.06 * p.rotor_radius, 0.06 * p.rotor_radius)
            _shape(body, "visual", "box", "dark", (place + hub) / 2, (0.0, 0.0, yaw), size=size)
    _shape(body, "collision", "box", None, size=_numbers(*p.body_box))


def _add_wheel(link: _Links, p: VehicleParameters, i: int, wheel: str, mesh: str | None) -> None:
    steered = p.steering_sign[i] != 0.0
    disc = _wheel_disc(p)
    carriers = ("strut", "steer") if steered else ("strut",)
    ball = (p.mass_unsprung - disc.mass) / len(carriers)
    carrier = _Body(ball, np.zeros(3), 0.4 * ball * (p.wheel_radius / 4.0) ** 2 * np.eye(3))

    bump = p.bump_stop
    force = float(p.spring_load[i]) + float(p.spring[i]) * bump
    lowest = min(p.rebound_stop, float(p.hanging_strut[i]), float(p.free_strut[i]))
    link.add(f"strut_{wheel}", carrier)
    joint = link.join(
        f"strut_{wheel}", "prismatic", "base_link", f"strut_{wheel}", p.hub_position[i]
    )
    ET.SubElement(joint, "axis", xyz="0 0 1")
    _limit(joint, lowest, bump, force, force / p.bump_damping)
    if steered:
        link.add(f"steer_{wheel}", carrier)
        joint = link.join(
            f"steer_{wheel}", "revolute", f"strut_{wheel}", f"steer_{wheel}", (0.0, 0.0, 0.0)
        )
        ET.SubElement(joint, "axis", xyz="0 0 1")
        angle, rate = _inner_wheel(p)
        _limit(joint, -angle, angle, p.friction_y * float(p.static_load[i]) * p.wheel_radius, rate)
    element = link.add(f"wheel_{wheel}", disc)
    joint = link.join(
        f"wheel_{wheel}", "continuous", f"{carriers[-1]}_{wheel}", f"wheel_{wheel}", (0.0, 0.0, 0.0)
    )
    ET.SubElement(joint, "axis", xyz="0 1 0")

    radius = p.wheel_radius
    width = 0.6 * p.wheel_radius
    upright = (math.pi / 2, 0.0, 0.0)
    if mesh is not None:
        _mesh(element, mesh)
    else:
        _shape(
            element,
            "visual",
            "cylinder",
            "dark",
            rpy=upright,
            radius=_numbers(radius),
            length=_numbers(width),
        )
        spoke = _numbers(1.4 * radius, 1.04 * width, 0.25 * radius)  # so that one sees it turn
        _shape(element, "visual", "box", "body", size=spoke)
    _shape(
        element,
        "collision",
        "cylinder",
        None,
        rpy=upright,
        radius=_numbers(radius),
        length=_numbers(width),
    )


def _add_rotor(
    link: _Links, p: VehicleParameters, name: str, place: Vector, mesh: str | None
) -> None:
    element = link.add(name, _rotor_disc(p))
    joint = link.join(name, "continuous", "base_link", name, place)
    ET.SubElement(joint, "axis", xyz="0 0 1")
    radius = p.rotor_radius
    if mesh is not None:
        _mesh(element, mesh)
    else:
        blades = _numbers(2.0 * radius, 0.12 * radius, 0.02 * radius)
        _shape(element, "visual", "box", "rotor", size=blades)
    _shape(
        element,
        "collision",
        "cylinder",
        None,
        radius=_numbers(radius),
        length=_numbers(0.05 * radius),
    )


def _add_sensors(link: _Links, p: VehicleParameters, mounts: Mapping[str, Triple]) -> None:
    length, _, height = p.body_box
    places: dict[str, Triple] = {
        "imu_link": (0.0, 0.0, 0.0),
        "gps_link": (0.0, 0.0, height / 2.0),
        "lidar_link": (0.0, 0.0, height / 2.0),
        "camera_link": (length / 2.0, 0.0, height / 2.0),
    }
    turned: Triple = (0.0, 0.0, 0.0)
    head = turned
    gimbal = GimbalParameters()
    if p.name in shipped_sensor_sets():
        sensors = SensorParameters.load(p.name)
        if sensors.imu is not None:
            places["imu_link"] = sensors.imu.position
            turned = sensors.imu.rotation
        if sensors.gps is not None:
            places["gps_link"] = sensors.gps.position
        if sensors.lidar is not None:
            places["lidar_link"] = sensors.lidar.position
            head = sensors.lidar.rotation
        if sensors.gimbal is not None:
            places["camera_link"] = sensors.gimbal.position
            gimbal = sensors.gimbal
    turns = {"imu_link": turned, "lidar_link": head}
    for frame, place in {**places, **mounts}.items():
        link.add(frame)
        kind = "revolute" if frame == "camera_link" else "fixed"
        name = f"{frame.removesuffix('_link')}_joint"
        joint = link.join(name, kind, "base_link", frame, place, turns.get(frame, (0.0, 0.0, 0.0)))
        if kind == "revolute":
            ET.SubElement(joint, "axis", xyz="0 1 0")
            speed = (gimbal.max_pitch - gimbal.min_pitch) / gimbal.lag
            _limit(joint, gimbal.min_pitch, gimbal.max_pitch, GIMBAL_TORQUE, speed)
    link.add("camera_optical")
    link.join(
        "camera_optical_joint", "fixed", "camera_link", "camera_optical", (0.0, 0.0, 0.0), _OPTICAL
    )


def _rotor_disc(p: VehicleParameters) -> _Body:
    """What turns: as heavy as a rod of the rotor's length and spin inertia, no heavier than the
    rotor frame allows.
    """
    mass = min(3.0 * p.rotor_inertia / p.rotor_radius**2, 0.5 * p.mass_rotor_frame / p.rotors)
    return _Body(mass, np.zeros(3), p.rotor_inertia * np.diag((0.5, 0.5, 1.0)))


def _wheel_disc(p: VehicleParameters) -> _Body:
    """A solid disc of the wheel's spin inertia, no heavier than nine tenths of what is unsprung."""
    mass = min(2.0 * p.wheel_inertia / p.wheel_radius**2, 0.9 * p.mass_unsprung)
    return _Body(mass, np.zeros(3), p.wheel_inertia * np.diag((0.5, 1.0, 0.5)))


def _body_without_rotors(p: VehicleParameters) -> _Body:
    """The sprung mass, centre at base_link, less what turns: so that both together are as the
    parameters say.
    """
    rotor = _rotor_disc(p)
    at = p.rotor_position
    mass = p.mass_sprung - p.rotors * rotor.mass
    center = -rotor.mass * at.sum(axis=0) / mass
    inertia = p.inertia_matrix - _moved(mass, center)
    for place in at:
        inertia = inertia - rotor.inertia - _moved(rotor.mass, place)
    moments = np.linalg.eigvalsh(inertia)
    if moments[0] <= 0.0 or moments[2] > moments[0] + moments[1]:
        raise ConfigError(
            f"{p.name}: rotors of {rotor.mass:.3g} kg leave the body principal moments {moments.round(4).tolist()} "
            "kg m², which no body has; expected a larger inertia, or a smaller rotors.inertia_kgm2 or arm"
        )
    return _Body(mass, center, inertia)


def _moved(mass: float, place: Vector) -> Vector:
    """What a mass at `place` adds to the inertia about the origin."""
    return mass * (place @ place * np.eye(3) - np.outer(place, place))


def _inner_wheel(p: VehicleParameters) -> tuple[float, float]:
    """Largest angle (rad) and rate (rad/s) of the inner steered wheel: Eq. 5.1 at full lock."""
    lever = p.steering_lever
    tangent = math.tan(p.max_steering)
    rest = lever - p.track / 2.0 * tangent
    rate = p.max_steering_rate * lever**2 * (1.0 + tangent**2) / (rest**2 + (lever * tangent) ** 2)
    return math.atan(lever * tangent / rest), rate


def _limit(joint: ET.Element, lower: float, upper: float, effort: float, velocity: float) -> None:
    numbers = {"lower": lower, "upper": upper, "effort": effort, "velocity": velocity}
    ET.SubElement(joint, "limit", {key: _numbers(value) for key, value in numbers.items()})


def _shape(
    link: ET.Element,
    tag: str,
    kind: str,
    colour: str | None,
    place: Vector | Triple = (0.0, 0.0, 0.0),
    rpy: Triple = (0.0, 0.0, 0.0),
    **size: str,
) -> None:
    element = ET.SubElement(link, tag)
    ET.SubElement(element, "origin", xyz=_numbers(*place), rpy=_numbers(*rpy))
    ET.SubElement(ET.SubElement(element, "geometry"), kind, size)
    if colour is not None:
        ET.SubElement(element, "material", name=colour)


def _mesh(link: ET.Element, file: str) -> None:
    ET.SubElement(ET.SubElement(ET.SubElement(link, "visual"), "geometry"), "mesh", filename=file)


def _numbers(*values: float) -> str:
    return " ".join(
        f"{value:.9g}" if abs(value) > 1e-12 else "0" for value in values
    )  # less is rounding

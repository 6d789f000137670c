# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The URDF: one tree, joints where the model has wheels and rotors, masses and inertia that add up
to the model's.
"""

from __future__ import annotations

import ctypes
import math
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import defusedxml.ElementTree
import numpy as np
import pytest

from rfly_amphibious.description.urdf import vehicle_urdf
from rfly_amphibious.vehicle.parameters import VehicleParameters, shipped_parameter_sets
from rfly_common.errors import ConfigError

SETS = shipped_parameter_sets()
ROOT = Path(__file__).resolve().parents[3]
SDFORMAT = [f"sdformat{version}" for version in range(9, 17)]
"""Names of Gazebo's library of models, by major version; Debian 12 has the twelfth."""


def numbers(text: str) -> np.ndarray:
    return np.array([float(word) for word in text.split()])


class Tree:
    """URDF, read by its specification."""

    def __init__(self, text: str) -> None:
        self.robot = defusedxml.ElementTree.fromstring(text)
        self.links = {link.get("name"): link for link in self.robot.findall("link")}
        self.joints = {joint.get("name"): joint for joint in self.robot.findall("joint")}
        assert len(self.links) == len(self.robot.findall("link"))
        assert len(self.joints) == len(self.robot.findall("joint"))
        self.above = {j.find("child").get("link"): j for j in self.joints.values()}

    def moving(self) -> dict[str, str]:
        return {name: j.get("type") for name, j in self.joints.items() if j.get("type") != "fixed"}

    def pose(self, link: str, values: dict[str, float] | None = None) -> np.ndarray:
        """Return the pose, 4 x 4, link -> root, with joints at `values`, else 0."""
        pose = np.eye(4)
        while link in self.above:
            joint = self.above[link]
            origin = joint.find("origin")
            step = matrix(numbers(origin.get("xyz")), rpy(*numbers(origin.get("rpy"))))
            value = (values or {}).get(joint.get("name"), 0.0)
            if value:
                axis = numbers(joint.find("axis").get("xyz"))
                moves = joint.get("type") == "prismatic"
                step = step @ (
                    matrix(axis * value, np.eye(3))
                    if moves
                    else matrix(np.zeros(3), turn(axis, value))
                )
            pose = step @ pose
            link = joint.find("parent").get("link")

        return pose

    def bodies(self) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Return (mass, centre, inertia about it) of each link, in the axes of the root."""
        found = []
        for name, link in self.links.items():
            inertial = link.find("inertial")
            if inertial is not None:
                pose = self.pose(name)
                i = inertial.find("inertia").attrib
                local = np.array(
                    [[float(i["i" + "".join(sorted(a + b))]) for b in "xyz"] for a in "xyz"]
                )
                center = pose[:3, :3] @ numbers(inertial.find("origin").get("xyz")) + pose[:3, 3]
                found.append(
                    (
                        float(inertial.find("mass").get("value")),
                        center,
                        pose[:3, :3] @ local @ pose[:3, :3].T,
                    )
                )

        return found


def matrix(place: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = rotation
    pose[:3, 3] = place
    return pose


def rpy(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """Return the rotation about the fixed x, then y, then z, as URDF defines it."""
    x, y, z = np.eye(3)
    return turn(z, yaw) @ turn(y, pitch) @ turn(x, roll)


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """Return a rotation by Rodrigues' formula."""
    k = np.array(
        [
            [0, -axis[2], axis[1]],
            [axis[2], 0, -axis[0]],
            [-axis[1], axis[0], 0],
        ]
    )
    return np.eye(3) + math.sin(angle) * k + (1 - math.cos(angle)) * (k @ k)


def sum_about(bodies: list[Any], place: np.ndarray) -> np.ndarray:
    """Move an inertia by the theorem of parallel axes, written out."""
    total = np.zeros((3, 3))
    for mass, center, inertia in bodies:
        x, y, z = center - place
        total += inertia + mass * np.array(
            [
                [y * y + z * z, -x * y, -x * z],
                [-x * y, x * x + z * z, -y * z],
                [-x * z, -y * z, x * x + y * y],
            ]
        )
    return total


@pytest.mark.parametrize("name", SETS)
def test_one_tree_from_base_link(name):
    tree = Tree(vehicle_urdf(VehicleParameters.load(name)))
    assert set(tree.links) - set(tree.above) == {"base_link"}
    assert len(tree.above) == len(tree.joints)  # nothing hangs on two joints
    for joint in tree.joints.values():
        assert joint.find("parent").get("link") in tree.links
    for link in tree.links:
        way = [link]
        while way[-1] in tree.above:
            way.append(tree.above[way[-1]].find("parent").get("link"))
            assert len(way) <= len(tree.links)  # else: round in a circle
        assert way[-1] == "base_link"


def test_moving_joints_are_those_of_joint_states():
    scale = Tree(vehicle_urdf(VehicleParameters.load("scale"))).moving()
    wheels = ("fl", "fr", "rl", "rr")
    assert scale == {
        **{f"wheel_{w}_joint": "continuous" for w in wheels},
        "steer_fl_joint": "revolute",
        "steer_fr_joint": "revolute",
        **{f"strut_{w}_joint": "prismatic" for w in wheels},
        **{f"rotor_{j}_joint": "continuous" for j in range(1, 7)},
        "camera_joint": "revolute",  # the gimbal, tf/tf
    }

    quad = Tree(vehicle_urdf(VehicleParameters.load("scale_quad"))).moving()
    assert [joint for joint in quad if joint.startswith("rotor")] == [
        "rotor_1_joint",
        "rotor_2_joint",
        "rotor_3_joint",
        "rotor_4_joint",
    ]

    params = VehicleParameters.load("scale")
    for steered, expected in (
        ("rear", ["steer_rl_joint", "steer_rr_joint"]),
        ("all", [f"steer_{w}_joint" for w in wheels]),
        ("none", []),
    ):
        lock = 0.0 if steered == "none" else 0.3
        changed = Tree(vehicle_urdf(params.replace(steered=steered, max_steering=lock))).moving()
        assert [joint for joint in changed if joint.startswith("steer")] == expected

    six = Tree(vehicle_urdf(VehicleParameters.load("scale_six"))).moving()
    assert [j for j in six if j.startswith("wheel")] == [
        f"wheel_{w}_joint" for w in (*wheels, "ml", "mr")
    ]
    assert [j for j in six if j.startswith("steer")] == [f"steer_{w}_joint" for w in wheels]


@pytest.mark.parametrize("name", SETS)
def test_masses_and_inertia_add_up_to_the_vehicles(name):
    """Add up about the centre of all.

    The model has the wheels as points; their own inertia is added, half of it about x and z.
    """
    params = VehicleParameters.load(name)
    bodies = Tree(vehicle_urdf(params)).bodies()
    mass = sum(body[0] for body in bodies)
    assert mass == pytest.approx(params.mass, rel=1e-7)
    center = sum(body[0] * body[1] for body in bodies) / mass
    assert center == pytest.approx(
        [params.center_x, 0.0, params.center_height - params.origin_height], abs=1e-7
    )

    wheels = len(params.wheels) * params.wheel_inertia * np.diag((0.5, 1.0, 0.5))
    balls = sum_about(bodies, center) - params.total_inertia - wheels
    assert np.abs(balls).max() < 0.005 * params.inertia[0]  # what carries the wheels has a size too
    assert np.all(np.diag(balls) > 0)

    for part, center_of_part, inertia in bodies:
        moments = np.linalg.eigvalsh(inertia)
        assert part > 0
        assert 0 < moments[0] <= moments[2] <= (moments[0] + moments[1]) * (1 + 1e-6)
        assert np.all(np.isfinite(center_of_part))


def test_the_sprung_part_is_that_of_the_parameters():
    """Add up body, arms and rotors of the scale vehicle.

    They have 25.2 kg, their centre at base_link, and 1.30, 2.20, 3.20 kg m².
    """
    bodies = Tree(vehicle_urdf(VehicleParameters.load("scale"))).bodies()
    sprung = [body for body in bodies if abs(body[1][2]) < 0.01 or body[1][2] > 0.19]
    assert len(sprung) == 7
    assert sum(body[0] for body in sprung) == pytest.approx(25.2, abs=1e-6)
    assert sum(body[0] * body[1] for body in sprung) == pytest.approx([0.0, 0.0, 0.0], abs=1e-7)
    expected = np.diag((1.3, 2.2, 3.2))
    assert sum_about(sprung, np.zeros(3)) == pytest.approx(expected, abs=1e-6)


def test_places_of_the_scale_vehicle():
    """Compare with Eq. 4.1 and 6.1.

    Hubs are 0.32 m before and 0.34 m behind, 0.28 m to the sides, at r_z; rotors around x_c.
    """
    tree = Tree(vehicle_urdf(VehicleParameters.load("scale")))
    place = {link: tree.pose(link)[:3, 3] for link in tree.links}
    assert place["wheel_fl"] == pytest.approx([0.32, 0.28, -0.116285], abs=1e-6)
    assert place["wheel_rr"] == pytest.approx([-0.34, -0.28, -0.115973], abs=1e-6)
    expected = [-0.0016 + 0.75 * math.sqrt(3) / 2, -0.375, 0.2]
    assert place["rotor_1"] == pytest.approx(expected, abs=1e-6)
    assert place["rotor_3"] == pytest.approx([-0.0016, 0.75, 0.2], abs=1e-6)

    assert place["imu_link"] == pytest.approx([0.05, 0.0, 0.02])
    assert place["gps_link"] == pytest.approx([-0.15, 0.0, 0.22])
    assert place["lidar_link"] == pytest.approx([0.0, 0.0, 0.25])
    assert place["camera_link"] == pytest.approx([0.43, 0.0, 0.08])
    assert place["height_link"] == pytest.approx([0.0, 0.0, -0.08])

    # a range is along x (sensor_msgs/Range): down
    beam = tree.pose("height_link")[:3, :3] @ (1, 0, 0)
    assert beam == pytest.approx([0, 0, -1], abs=1e-8)

    # x right, y down, z ahead
    optical = tree.pose("camera_optical")[:3, :3]
    axes = np.array(
        [
            [0, 0, 1],
            [-1, 0, 0],
            [0, -1, 0],
        ]
    )
    assert optical == pytest.approx(axes, abs=1e-8)


def test_joints_turn_the_way_the_states_count():
    tree = Tree(vehicle_urdf(VehicleParameters.load("scale")))
    values = {
        "strut_fl_joint": 0.02,
        "steer_fl_joint": math.pi / 6,
        "wheel_fl_joint": 0.5,
        "rotor_2_joint": 0.25,
    }

    # compressed: the hub goes up
    before = tree.pose("wheel_fl")
    after = tree.pose("wheel_fl", values)
    assert after[:3, 3] - before[:3, 3] == pytest.approx([0, 0, 0.02])

    # steered to the left; the top of a wheel goes forward
    heading = after[:3, :3] @ turn(np.array((0.0, 1.0, 0.0)), -0.5) @ (1, 0, 0)
    expected = [math.cos(math.pi / 6), 0.5, 0]
    assert heading == pytest.approx(expected)
    top = tree.pose("wheel_fl", {"wheel_fl_joint": 0.5})[:3, :3] @ (0, 0, 1)
    assert top[0] == pytest.approx(math.sin(0.5))

    # counter-clockwise from above
    blade = tree.pose("rotor_2", values)[:3, :3] @ (1, 0, 0)
    expected = [math.cos(0.25), math.sin(0.25), 0]
    assert blade == pytest.approx(expected)

    # positive looks down
    axis = tree.pose("camera_optical", {"camera_joint": 0.25})[:3, :3] @ (0, 0, 1)
    expected = [math.cos(0.25), 0, -math.sin(0.25)]
    assert axis == pytest.approx(expected, abs=1e-8)


def test_limits_by_hand():
    """Compare the inner wheel at full lock with cot δ_i = cot 0.5 - 0.56 / (2 · 0.66).

    Struts reach from hanging to the bump stop.
    """
    joints = Tree(vehicle_urdf(VehicleParameters.load("scale"))).joints
    steer = joints["steer_fr_joint"].find("limit").attrib
    angle = math.atan(1 / (1 / math.tan(0.5) - 0.56 / 1.32))
    assert (float(steer["lower"]), float(steer["upper"])) == pytest.approx((-angle, angle))
    step = 1e-6
    faster = math.atan(1 / (1 / math.tan(0.5 + step) - 0.56 / 1.32))
    assert float(steer["velocity"]) == pytest.approx(3.0 * (faster - angle) / step, rel=1e-4)

    # hanging as in hover; docs/model, section 15.2
    strut = joints["strut_fl_joint"].find("limit").attrib
    assert float(strut["lower"]) == pytest.approx(-0.03670, abs=1e-5)
    assert float(strut["upper"]) == 0.03
    assert float(strut["effort"]) == pytest.approx(63.654 + 1500 * 0.03, abs=1e-3)
    assert joints["wheel_fl_joint"].find("limit") is None  # continuous


@pytest.mark.parametrize("prefix", ["", "car/", "alpha/car_1/"])
@pytest.mark.parametrize("name", SETS)
def test_names_are_unique_among_siblings(name, prefix):
    """SDFormat's rule, "sibling elements of any type must have unique names", on links and joints.

    libsdformat below judges the same where it is installed.
    """
    robot = Tree(vehicle_urdf(VehicleParameters.load(name), prefix)).robot
    names = [child.get("name") for child in robot if child.tag in ("link", "joint")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", SETS)
def test_libsdformat_takes_the_model(name, tmp_path, capfd):
    """Gazebo's own library finds no error in the model, and finds those of a joint named as a link.

    `cmdCheck` is what `gz sdf --check FILE` and `ign sdf --check FILE` call.
    """
    library = next(filter(None, map(find_library, SDFORMAT)), None)
    if library is None:
        pytest.skip("the program libsdformat is not installed")
    check = ctypes.CDLL(library).cmdCheck
    text = vehicle_urdf(VehicleParameters.load(name))
    file = tmp_path / "vehicle.urdf"

    file.write_text(text, encoding="utf-8")
    assert check(str(file).encode()) == 0
    assert "Valid." in capfd.readouterr().out

    file.write_text(text.replace("wheel_fl_joint", "wheel_fl"), encoding="utf-8")
    assert check(str(file).encode()) != 0
    assert "wheel_fl" in capfd.readouterr().err


def test_prefix_meshes_and_mounts():
    meshes = {"body": "package://mine/body.dae", "wheel": "package://mine/wheel.STL"}
    text = vehicle_urdf(
        VehicleParameters.load("scale"), "car/", meshes, {"lidar_link": (0.1, 0.0, 0.4)}
    )
    tree = Tree(text)
    assert all(link.startswith("car/") for link in tree.links)
    assert "wheel_fl_joint" in tree.joints
    assert tree.pose("car/lidar_link")[:3, 3] == pytest.approx([0.1, 0.0, 0.4])

    drawn = {
        name: [mesh.get("filename") for mesh in link.findall("visual/geometry/mesh")]
        for name, link in tree.links.items()
        if link.find("visual") is not None
    }
    assert drawn == {
        "car/body": ["package://mine/body.dae"],
        **{
            f"car/wheel_{wheel}": ["package://mine/wheel.STL"] for wheel in ("fl", "fr", "rl", "rr")
        },
        **{f"car/rotor_{j}": [] for j in range(1, 7)},
    }
    assert all(link.find("collision//mesh") is None for link in tree.links.values())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"meshes": {"wing": "a.dae"}}, "mesh of 'wing': known are body, wheel, rotor"),
        ({"meshes": {"body": "a.txt"}}, "mesh of body: a.txt: expected one of .dae"),
        ({"mounts": {"radar": (0, 0, 0)}}, "mount of 'radar': known are imu_link"),
        (
            {"mounts": {"imu_link": (0, 0, math.nan)}},
            r"mount of imu_link\[2\]: nan, expected a finite number",
        ),
        ({"prefix": "a b"}, "prefix 'a b': expected letters"),
    ],
)
def test_mistakes_are_named(options, text):
    with pytest.raises(ConfigError, match=text):
        vehicle_urdf(VehicleParameters.load("scale"), **options)


def test_rotors_too_heavy_for_the_body_are_refused():
    params = VehicleParameters.load("scale")
    with pytest.raises(ConfigError, match="which no body has"):
        vehicle_urdf(params.replace(inertia=(0.02, 0.02, 0.03, 0.0, 0.0, 0.0)))


def test_the_installed_file_is_the_generators():
    made = vehicle_urdf(VehicleParameters.load("scale"))
    assert (ROOT / "urdf" / "amphibious.urdf").read_text(encoding="utf-8") == made
    cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert "foreach(folder config launch rviz urdf)" in cmake

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Which topic of a log plays which part, by a YAML file or by types and usual names."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from rfly_amphibious.vehicle.state_layout import WHEELS
from rfly_common.config.declared import declared, file_schema, values_of
from rfly_common.config.documents import read_limited
from rfly_common.config.parameter_files import MAX_FILE_BYTES, checked_document
from rfly_common.errors import ConfigError

LEFT_OUT = "none"
"""Name that stands for a topic that is not used."""


class Role(NamedTuple):
    """Part that a topic plays in a replay."""

    meaning: str
    types: tuple[str, ...]
    """Types of messages that can play it."""
    names: tuple[str, ...]
    """Last parts of usual names, the best one first."""
    alone: bool = False
    """True if the only topic of these types plays it, whatever its name."""


_TWISTS = (
    "geometry_msgs/TwistStamped",
    "geometry_msgs/TwistWithCovarianceStamped",
    "geometry_msgs/Vector3Stamped",
)
ROLES = {
    "imu": Role("IMU", ("sensor_msgs/Imu",), ("imu/data", "imu/data_raw", "imu"), True),
    "gps": Role("fixes", ("sensor_msgs/NavSatFix",), ("gps/fix", "fix"), True),
    "gps_velocity": Role("velocities of the fixes", _TWISTS, ("gps/vel", "fix_velocity", "vel")),
    "magnetometer": Role("field", ("sensor_msgs/MagneticField",), ("imu/mag", "mag"), True),
    "barometer": Role("pressure", ("sensor_msgs/FluidPressure",), ("baro", "pressure"), True),
    "height": Role("height above ground", ("sensor_msgs/Range",), ("height_above_ground",)),
    "joints": Role("encoders", ("sensor_msgs/JointState",), ("joint_states",), True),
    "wheel_odometry": Role(
        "speed and yaw rate by the wheels, used without joints",
        ("nav_msgs/Odometry", *_TWISTS[:2]),
        ("wheel/odom", "wheel_odom", "odom"),
    ),
    "wheel_loads": Role(
        "loads", ("rfly_suite/WheelLoads", "std_msgs/Float64MultiArray"), ("wheel_loads",)
    ),
    "rotor_commands": Role("inputs", ("rfly_suite/RotorCommand",), ("cmd/rotors",), True),
    "wheel_commands": Role("inputs", ("rfly_suite/WheelCommand",), ("cmd/wheels",), True),
    "wind": Role("wind", ("geometry_msgs/Vector3Stamped",), ("environment/wind",)),
    "terrain": Role("map of the ground", ("rfly_suite/TerrainMap",), ("terrain_map",), True),
    "reference": Role(
        "pose to compare with",
        ("nav_msgs/Odometry", "geometry_msgs/PoseStamped"),
        ("ground_truth/odom", "ground_truth/pose", "ground_truth"),
    ),
}
"""Parts that topics play."""
NEEDED = "imu"
"""Part without which there is no replay."""


def _names_schema(keys: Any, meaning: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": meaning,
        "additionalProperties": False,
        "properties": {key: {"type": "string", "minLength": 1} for key in keys},
    }


def _topics_schema() -> dict[str, Any]:
    schema = _names_schema(ROLES, f"full names; {LEFT_OUT} leaves a topic out")
    for name, role in ROLES.items():
        schema["properties"][name]["description"] = f"{role.meaning}: {' or '.join(role.types)}"
    return schema


def _optional(path: str, schema: dict[str, Any], default: Any) -> Any:
    """Return a field for an optional value with a default."""
    read = lambda value, _: default() if value is None else value  # noqa: E731
    return declared(path, schema, read, required=False, default_factory=default)


@dataclasses.dataclass(frozen=True)
class TopicMap:
    """Content of a file that says how a log is to be read. All of it is optional."""

    topics: Mapping[str, str] = _optional("topics", _topics_schema(), dict)
    wheels: Mapping[str, str] = _optional(
        "wheels",
        _names_schema(WHEELS, "names of the wheels' joints, instead of wheel_fl_joint, …"),
        dict,
    )
    steering: Mapping[str, str] = _optional(
        "steering",
        _names_schema(WHEELS, "names of the steering joints, instead of steer_fl_joint, …"),
        dict,
    )
    axes: str | None = _optional(
        "axes",
        {
            "type": "string",
            "enum": ["flu", "frd"],
            "description": "of IMU and magnetometer; by default frd if their frame ends with it",
        },
        lambda: None,
    )
    orientation: bool = _optional(
        "orientation",
        {"type": "boolean", "description": "false: do not use the IMU's own orientation"},
        lambda: True,
    )
    on_wheels: bool = _optional(
        "on_wheels",
        {
            "type": "boolean",
            "description": "true: all wheels carry load throughout; replaces wheel_loads",
        },
        lambda: False,
    )
    geo_origin: tuple[float, ...] | None = _optional(
        "geo_origin",
        {
            "type": "array",
            "description": "latitude, longitude, deg, and altitude, m, of the map's origin",
            "items": {"type": "number"},
            "minItems": 3,
            "maxItems": 3,
        },
        lambda: None,
    )

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the files."""
        return file_schema("Topics of a log for rfly sim replay", cls)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TopicMap:
        """Load a YAML file. Raise a ConfigError with file, line, key and what is allowed."""
        data = read_limited(path, "topics", MAX_FILE_BYTES)
        return cls.parse(data, os.fspath(path))

    @classmethod
    def parse(cls, data: bytes, file: str) -> TopicMap:
        """Return the map of a file's content; errors call it `file`."""
        document = checked_document(data, file, cls.schema(), "version, topics, wheels")
        return cls(**values_of(cls, document.value))

    def resolve(
        self, log: str, topics: Mapping[str, str], namespace: str | None
    ) -> tuple[dict[str, str], list[str]]:
        """Return the topic of each part that is played, and notes on parts that several could play.

        `topics`: types by topic; `log`: name of the log for errors. Raise ConfigError for a topic
        that is not there or has another type, and without an IMU.
        """
        prefix = f"/{namespace.strip('/')}/".replace("//", "/") if namespace is not None else "/"
        found: dict[str, str] = {}
        notes = []
        for name, role in ROLES.items():
            wanted = self.topics.get(name)
            if wanted == LEFT_OUT:
                continue
            if wanted is not None:
                found[name] = _check_topic(log, name, wanted, topics)
                continue
            able = [topic for topic, kind in topics.items() if kind in role.types]
            if name != "terrain":
                able = [topic for topic in able if topic.startswith(prefix)]
            candidates = _candidates(role, able)
            if len(candidates) == 1:
                found[name] = candidates[0]
            elif candidates:
                several = f"{name}: {', '.join(sorted(candidates))}: choose one with --topics"
                if name == NEEDED:
                    raise ConfigError(f"{log}: {several} or --namespace")
                notes.append(several)

        if NEEDED not in found:
            where = f" in {namespace}" if namespace else ""
            raise ConfigError(f"{log}: no topic of sensor_msgs/Imu{where}; expected one")
        return found, notes


def _candidates(role: Role, able: list[str]) -> list[str]:
    """Return the topics with the best usual name, or all, if their type says enough."""
    for name in role.names:
        named = [topic for topic in able if topic.endswith(f"/{name}")]
        if named:
            return named
    return able if role.alone else []


def _check_topic(log: str, name: str, wanted: str, topics: Mapping[str, str]) -> str:
    """Return a topic that a file names, if the log has it with a type that fits."""
    topic = "/" + wanted.lstrip("/")
    types = ROLES[name].types
    if topic not in topics:
        able = sorted(each for each, kind in topics.items() if kind in types)
        offered = f"; of this type there are {', '.join(able)}" if able else ""
        raise ConfigError(f"{log}: no messages on {topic}, the topic for {name}{offered}")
    if topics[topic] not in types:
        raise ConfigError(
            f"{log}: {topic} has messages of {topics[topic]}; "
            f"expected {' or '.join(types)} for {name}"
        )
    return topic

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim's Config.json: which sensors RflySim3D is to send, and where to.

    config = VisionConfig.read("Config.json")
    for datagram, port in config.requests():
        sock.sendto(datagram, ("127.0.0.1", port))

The file is JSON with `//`, `#` and `/* */` comments and commas behind the last element. Entries of
the old form (8 otherParams) and of the new one (16, and a quaternion) may stand beside each other.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rfly_common.errors import ConfigError
from rfly_common.files import StrPath, read_regular
from rfly_ue_bridge.codec.addresses import SENSOR_PORT, WINDOW_PORT
from rfly_ue_bridge.codec.sensor_payloads import SENSOR_TYPES, Content, max_range, sensor_type
from rfly_ue_bridge.codec.sensor_requests import (
    GIMBAL,
    OLD_PARAMETERS,
    PARAMETERS,
    UDP_COMPRESSED,
    Mount,
    RequestLayout,
    VisionSensor,
    encode_request,
)
from rfly_ue_bridge.sockets.udp_sender import answer_address

MAX_BYTES = 1_000_000
MAX_SENSORS = 256
DEFAULT_RATE = 30
"""Rate of an entry whose DataCheckFreq is 0, Hz."""

AngleUnit = Literal["deg", "rad"]

_UINT16 = 65535
_REQUESTER = ((0, 0, 0, 0), (127, 0, 0, 1))
_PROTOCOL = 8
_RADIAN_LIKE = (math.pi / 2, math.pi)
_RADIAN_TOLERANCE = 0.01

_STRING = r'"(?:\\.|[^"\\\n])*"'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[\]}}])")


@dataclass(frozen=True)
class VisionConfig:
    """Sensors of a Config.json, in its order."""

    sensors: tuple[VisionSensor, ...]
    warnings: tuple[str, ...] = ()
    """What RflySim's SDK would silently do otherwise, and what is probably not meant."""

    @classmethod
    def read(cls, path: StrPath, *, angle_unit: AngleUnit = "deg") -> VisionConfig:
        """Return the configuration in a file.

        `angle_unit`: unit of SensorAngEular; RflySim3D takes deg, and older documents say rad.
        Raises OSError, and ConfigError that names the entry and the key.
        """
        data = read_regular(path, MAX_BYTES)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:  # comments in Chinese, saved by a Windows editor
            text = data.decode("gb18030", errors="replace")
        try:
            return cls.parse(text, angle_unit=angle_unit)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error

    @classmethod
    def parse(cls, text: str, *, angle_unit: AngleUnit = "deg") -> VisionConfig:
        """Return the configuration in a text; otherwise as `read`."""
        entries = _entries(text)
        warnings: list[str] = []
        sensors: list[VisionSensor] = []
        for index, entry in enumerate(entries):
            try:
                sensors.append(_sensor(entry, sensors, index, angle_unit, warnings))
            except ConfigError as error:
                raise error.inside("VisionSensors", index) from None

        if angle_unit == "deg" and _look_like_radians(sensors):
            warnings.append(
                "SensorAngEular is in degrees, but these angles look like radians (1.57, 3.14): "
                "if they are, set the unit of angles to rad"
            )
        return cls(tuple(sensors), tuple(warnings))

    def requests(
        self,
        layout: RequestLayout = RequestLayout.CURRENT,
        *,
        port: int = WINDOW_PORT,
        window: int = 0,
    ) -> list[tuple[bytes, int]]:
        """Return the datagram of each sensor, and the UDP port of the window to send it to.

        Raises ConfigError for a value that does not fit the layout.
        """
        return [(encode_request(sensor, layout), port + window) for sensor in self.sensors]


def _entries(text: str) -> list[Any]:
    """Return the elements of VisionSensors in a text."""
    plain = _COMMENT.sub(lambda match: match[1] or " ", text)
    plain = _LAST_COMMA.sub(lambda match: match[1] or " ", plain)
    try:
        document = json.loads(plain)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"no JSON: {error}") from error

    entries = document.get("VisionSensors") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries or len(entries) > MAX_SENSORS:
        raise ConfigError(
            f"expected an object with VisionSensors, a list of 1 to {MAX_SENSORS} sensors"
        )
    return entries


def _sensor(
    entry: Any,
    earlier: Sequence[VisionSensor],
    index: int,
    angle_unit: AngleUnit,
    warnings: list[str],
) -> VisionSensor:
    """Return the sensor of one entry, and add what is worth knowing to the warnings."""
    if not isinstance(entry, dict):
        raise ConfigError(f"{type(entry).__name__}, expected an object")

    def warn(text: str) -> None:
        warnings.append(f"VisionSensors[{index}]: {text}")

    seq_id = _seq_id(entry, earlier)
    way, *address, port, first, second = _protocol(entry, warn)
    used = {sensor.port for sensor in earlier}
    if port in used:
        warn(f"port {port} is another sensor's already; {SENSOR_PORT + seq_id} is used")
        port = 0
    if (port or SENSOR_PORT + seq_id) in used:
        raise ConfigError(f"port {SENSOR_PORT + seq_id} is another sensor's", key="SendProtocol")

    euler = _euler(entry)
    euler_or_quat, quat_wxyz, parameters = _new_form(entry, warn)
    sensor = VisionSensor(
        seq_id=seq_id,
        type_id=_integer(entry, "TypeID"),
        target=_integer(entry, "TargetCopter"),
        mount=_integer(entry, "TargetMountType", high=max(Mount)),
        width=_integer(entry, "DataWidth"),
        height=_integer(entry, "DataHeight"),
        rate=_integer(entry, "DataCheckFreq") or DEFAULT_RATE,
        way=way,
        address=(address[0], address[1], address[2], address[3]),
        port=port,
        reserved=(first, second),
        fov_deg=_numbers({"CameraFOV": [entry.get("CameraFOV", 90.0)]}, "CameraFOV", 1)[0],
        position=_three(_numbers(entry, "SensorPosXYZ", 3)),
        euler_or_quat=euler_or_quat,
        euler_deg=_three([math.degrees(a) for a in euler] if angle_unit == "rad" else euler),
        quat_xyzw=(*_three(quat_wxyz[1:]), quat_wxyz[0]),
        parameters=tuple(parameters),
    )
    _check_kind(sensor, earlier, warn)
    return sensor


def _seq_id(entry: Mapping[str, Any], earlier: Sequence[VisionSensor]) -> int:
    """Return an entry's number: a 0 behind the first entry continues the count."""
    seq_id = _integer(entry, "SeqID", high=_UINT16 - SENSOR_PORT) if "SeqID" in entry else 0
    if not seq_id and earlier:
        seq_id = earlier[-1].seq_id + 1
    if any(sensor.seq_id == seq_id for sensor in earlier):
        raise ConfigError(f"{seq_id} is another sensor's number already", key="SeqID")
    return seq_id


def _protocol(entry: Mapping[str, Any], warn: Callable[[str], None]) -> list[int]:
    """Return the eight numbers of SendProtocol, with a way that is not shared memory."""
    values = entry.get("SendProtocol")
    if not isinstance(values, list) or not 6 <= len(values) <= _PROTOCOL:
        raise ConfigError(
            f"{values!r}, expected {_PROTOCOL} whole numbers: way, four of the IPv4 address, port, "
            "0, 0",
            key="SendProtocol",
        )
    if len(values) != _PROTOCOL:
        warn(f"SendProtocol has {len(values)} numbers, RflySim's SDK wants {_PROTOCOL}")

    names = [f"SendProtocol[{i}]" for i in range(len(values))]
    numbers = [
        _integer(dict(zip(names, values, strict=True)), name, high=255 if 1 <= i <= 4 else _UINT16)
        for i, name in enumerate(names)
    ]
    if numbers[0] == 0:
        warn("SendProtocol[0] 0 is Windows' shared memory; 1 (UDP) is sent")
        numbers[0] = UDP_COMPRESSED
    return numbers + [0] * (_PROTOCOL - len(numbers))


def _euler(entry: Mapping[str, Any]) -> list[float]:
    """Return the Euler angles of an entry, in its unit; both spellings count."""
    name = "SensorAngEuler" if "SensorAngEuler" in entry else "SensorAngEular"
    return _numbers(entry, name, 3)


def _new_form(
    entry: Mapping[str, Any], warn: Callable[[str], None]
) -> tuple[float, list[float], list[float]]:
    """Return euler_or_quat, the quaternion w x y z and the parameters of an entry of either form.

    RflySim's SDK leaves out entries of neither form; here they are accepted with a warning.
    """
    name = "EulerOrQuat" if "EulerOrQuat" in entry else "EularOrQuat"
    is_new = name in entry
    choice = _numbers({name: [entry[name]]}, name, 1)[0] if is_new else 0.0

    parameters = [0.0] * PARAMETERS
    if "otherParams" in entry:
        values = entry["otherParams"]
        count = len(values) if isinstance(values, list) else 0
        if count not in (OLD_PARAMETERS, PARAMETERS):
            raise ConfigError(
                f"{values!r}, expected {OLD_PARAMETERS} or {PARAMETERS} numbers", key="otherParams"
            )
        parameters[:count] = _numbers(entry, "otherParams", count)
        expected = PARAMETERS if is_new else OLD_PARAMETERS
        if count != expected:
            warn(
                f"RflySim's SDK leaves this sensor out: an entry {'with' if is_new else 'without'} "
                f"{name} has {expected} otherParams there, this one has {count}"
            )
    else:
        warn("RflySim's SDK leaves this sensor out: it has no otherParams; zeros are sent")

    quat = [0.0] * 4
    if "SensorAngQuat" in entry:
        quat = _numbers(entry, "SensorAngQuat", 4)
    elif is_new and choice <= 0.5:
        warn("RflySim's SDK leaves this sensor out: it has no SensorAngQuat; zeros are sent")
    if choice > 0.5 and abs(math.hypot(*quat) - 1.0) > 0.01:
        raise ConfigError(f"{quat}, expected w x y z of length 1", key="SensorAngQuat")
    return choice, quat, parameters


def _check_kind(
    sensor: VisionSensor, earlier: Sequence[VisionSensor], warn: Callable[[str], None]
) -> None:
    """Warn of what this kind of sensor, or its mount, does not know."""
    if sensor.type_id not in SENSOR_TYPES:
        warn(f"TypeID {sensor.type_id} is not known here: its data stay bytes")
    if sensor_type(sensor.type_id).content is Content.DEPTH_CLOUD and not max_range(sensor):
        warn("otherParams[0], the scale of the depth cloud, is 0: its points cannot be read")
    if sensor.mount == Mount.SENSOR and all(s.seq_id != sensor.target for s in earlier):
        warn(
            f"it is mounted on sensor {sensor.target}, which does not come earlier in the file; "
            "RflySim3D then does not know it"
        )


def _look_like_radians(sensors: Sequence[VisionSensor]) -> bool:
    """Return whether no angle is beyond π, and one is about a quarter or half turn in rad."""
    angles = [abs(a) for s in sensors if s.type_id != GIMBAL for a in s.euler_deg]
    return all(a <= math.pi + _RADIAN_TOLERANCE for a in angles) and any(
        abs(a - turn) < _RADIAN_TOLERANCE for a in angles for turn in _RADIAN_LIKE
    )


def _integer(entry: Mapping[str, Any], name: str, high: int = _UINT16) -> int:
    """Return a whole number of an entry from 0 to `high`."""
    value = _required(entry, name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= high:
        raise ConfigError(f"{value!r}, expected a whole number from 0 to {high}", key=name)
    return value


def _numbers(entry: Mapping[str, Any], name: str, count: int) -> list[float]:
    """Return a list of numbers of an entry."""
    values = _required(entry, name)
    if isinstance(values, list) and len(values) == count:
        numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
        if len(numbers) == count and all(abs(v) < 1e30 for v in numbers):
            return [float(v) for v in numbers]
    what = "a finite number" if count == 1 else f"{count} finite numbers"
    raise ConfigError(f"{values!r}, expected {what}", key=name)


def _required(entry: Mapping[str, Any], name: str) -> Any:
    if name not in entry:
        raise ConfigError(f"{name} is missing")
    return entry[name]


def _three(values: Sequence[float]) -> tuple[float, float, float]:
    x, y, z = values
    return x, y, z


def with_address(sensor: VisionSensor, address: str) -> VisionSensor:
    """Return a sensor whose data go to an IPv4 address."""
    a, b, c, d = map(int, address.split("."))
    return replace(sensor, address=(a, b, c, d))


def to_own_address(sensor: VisionSensor, host: str, bind: str) -> VisionSensor:
    """Return a sensor whose data come to this machine if its address means the requesting one.

    Those addresses are 0.0.0.0 and 127.0.0.1; older windows at another `host` need the real one,
    and all windows need that of a socket on one address, `bind`.
    """
    own = answer_address(host, bind)
    return with_address(sensor, own) if own and sensor.address in _REQUESTER else sensor

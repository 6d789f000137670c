# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensors of a vehicle, their places, rates and errors, and the YAML files that hold them."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Mapping
from functools import partial
from importlib import resources
from typing import Any

import numpy as np

from rfly_amphibious.sensors.noise import NoiseModel
from rfly_common.arrays import Floats, Triple
from rfly_common.config.checks import finite_array, finite_number
from rfly_common.config.declared import schema_of, values_of
from rfly_common.config.documents import load_schema, shipped_names
from rfly_common.config.marked_yaml import Document
from rfly_common.config.parameter_files import checked_document, read_parameters
from rfly_common.frames import euler_to_quat, rotation_matrix
from rfly_common.geodesy import GeoPoint
from rfly_common.physics import GRAVITY
from rfly_sensing.range_sensor_parameters import (
    RINGS,
    ColorCameraParameters,
    DepthCameraParameters,
    GimbalParameters,
    LidarParameters,
    ScanParameters,
)


def earth_field(latitude: float, longitude: float) -> Triple:
    """Return the Earth's magnetic field, T, ENU, at sea level in the middle of 2027.

    Bilinear in 5°: declination within 0.3° below 60° of latitude. World Magnetic Model 2025 (NOAA
    and British Geological Survey, public domain), evaluated by pygeomag 1.1.
    """
    path = resources.files("rfly_amphibious") / "data" / "magnetic_field" / "wmm2025.npz"
    with path.open("rb") as file:
        # (37, 73, 3), beginning at -90° and -180°
        table: Floats = np.load(file, allow_pickle=False)["enu_nt"]

    row = (latitude + 90.0) / 5.0
    column = (longitude + 180.0) / 5.0
    r = min(int(row), 35)
    c = min(int(column), 71)
    west = table[r : r + 2, c]
    east = table[r : r + 2, c + 1]
    south, north = west + (column - c) * (east - west)
    x, y, z = (1e-9 * (south + (row - r) * (north - south))).tolist()
    return x, y, z


# an ADIS16448's biases in RotorS (Furrer, Burri, Achtelik & Siegwart 2016, `gazebo_imu_plugin.h`)
FORCE_WALK_TIME = 300.0
"""Correlation time of the accelerometer's bias, s."""
GYRO_WALK_TIME = 1000.0
"""Correlation time of the gyroscope's bias, s."""
BARO_WALK_TIME = 3600.0
"""Correlation time of the barometer's drift, s. An assumption: weather changes over hours."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sensor:
    """A sensor: samples a second, and its place in body axes from the sprung centre of mass, m."""

    rate: float
    position: Triple = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        finite_number("rate", self.rate, "Hz", above=0.0)
        finite_array("position", self.position, (3,))


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoisySensor(Sensor):
    """A sensor with the common noise model."""

    noise: NoiseModel


@dataclasses.dataclass(frozen=True, kw_only=True)
class Imu(NoisySensor):
    """An IMU.

    Channels: specific force 3 (m/s²), rates 3 (rad/s), error of the attitude about east, north, up
    (rad).
    """

    rotation: Triple = (0.0, 0.0, 0.0)
    """Roll, pitch, yaw of its axes against the body's, rad. The magnetometer has the same."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gps(NoisySensor):
    """A GPS receiver. Channels: position 3 (m, ENU), velocity 3 (m/s, ENU)."""

    latency: float = 0.1
    """Time from a measurement to its delivery, s."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Magnetometer(NoisySensor):
    """A magnetometer. Channels: field 3 (T), in the IMU's axes."""

    earth_field: Triple | None = (0.0, 21.5e-6, -42.5e-6)
    """Magnetic field of the Earth, T, ENU.

    None: the World Magnetic Model's at the world's origin (`SensorParameters.at_place`).
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Encoders(Sensor):
    """Encoders of wheels, steering, struts and rotors. Counts a turn, 0: exact."""

    wheel_counts: int = 2048
    steering_counts: int = 2048
    strut_noise: float = 0.0
    """Standard deviation of the white noise of each strut's travel, m."""
    strut_rate_noise: float = 0.0
    """That of its rate, m/s."""
    rotor_noise: float = 0.0
    """That of each rotor's speed, rad/s."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadCells(Sensor):
    """Load cells of the wheels."""

    load_noise: float = 0.0
    """Standard deviation of the white noise of each load, N."""


LOOKS_DOWN: Triple = (0.0, math.pi / 2.0, 0.0)
"""Roll, pitch, yaw of the height sensor's axes against the body's, rad.

Its x axis points down, as sensor_msgs/Range measures along x.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeightSensor(NoisySensor):
    """A range sensor. Channel: the distance straight down to the ground (m)."""

    min_range: float = 0.05
    max_range: float = 100.0
    field_of_view: float = math.radians(2.0)
    """Angle of its beam, rad."""


@dataclasses.dataclass(frozen=True)
class SensorParameters:
    """The sensors of one kind of vehicle, SI units; None: it has none.

    `replace(gps=None)` returns a changed copy.
    """

    name: str = ""
    imu: Imu | None = None
    gps: Gps | None = None
    magnetometer: Magnetometer | None = None
    barometer: NoisySensor | None = None
    """Channel: pressure (Pa)."""
    encoders: Encoders | None = None
    height: HeightSensor | None = None
    wheel_loads: LoadCells | None = None
    wind: Sensor | None = None
    ground_truth: Sensor | None = None
    lidar: LidarParameters | None = None
    scan: ScanParameters | None = None
    depth_camera: DepthCameraParameters | None = None
    color_camera: ColorCameraParameters | None = None
    gimbal: GimbalParameters | None = None
    """None: the cameras are fixed in the body's origin."""
    lines: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False, compare=False)
    """`file:line` of each sensor's rate, for errors that are found later."""

    def at_place(self, origin: GeoPoint) -> SensorParameters:
        """Return these parameters, by default with the magnetic field of the world's origin."""
        if self.magnetometer is None or self.magnetometer.earth_field is not None:
            return self
        field = earth_field(origin[0], origin[1])
        return self.replace(magnetometer=dataclasses.replace(self.magnetometer, earth_field=field))

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the files.

        It has the sections that stand in a file, and those that classes declare.
        """
        schema = dict(load_schema("rfly_amphibious", "sensors"))
        declared = {section: schema_of(declaration) for section, declaration in _DECLARED.items()}
        return {**schema, "properties": {**schema["properties"], **declared}}

    @classmethod
    def load(cls, name_or_path: str | os.PathLike[str]) -> SensorParameters:
        """Load a shipped set (`shipped_sensor_sets()`, named after the vehicles) or a YAML file.

        Raises a ConfigError with file, line, key and the allowed values.
        """
        return cls.parse(*read_parameters("sensors", "rfly_amphibious", "sensors", name_or_path))

    @classmethod
    def for_vehicle(cls, vehicle: str, name_or_path: str = "") -> SensorParameters:
        """Load a set; without a name that of the vehicle's name, or `scale` if there is none."""
        own = vehicle if vehicle in shipped_sensor_sets() else "scale"
        return cls.load(name_or_path or own)

    @classmethod
    def parse(cls, data: bytes, file: str, name: str = "") -> SensorParameters:
        """Return the sensors of a file's content; errors call it `file`."""
        document = checked_document(data, file, cls.schema(), "version, imu, gps")

        # limits
        for section, low, high in _LIMITS:
            limits = document.value.get(section)
            if limits and limits[low] >= limits[high]:
                raise document.error(
                    (section, low), f"{limits[low]}, expected less than {high}, {limits[high]}"
                )
        if "lidar" in document.value:
            _check_rings(document)
        if "scan" in document.value and "lidar" not in document.value:
            raise document.error(("scan",), "a ring of the lidar, which is not there")

        sensors = {
            key: _MAKERS[key](section)
            for key, section in document.value.items()
            if key != "version"
        }
        lines = {key: f"{file}:{document.line((key, 'rate_hz'))}" for key in sensors}
        return cls(name or file, **sensors, lines=lines)

    def replace(self, **changes: Any) -> SensorParameters:
        """Return a copy with other sensors."""
        return dataclasses.replace(self, **changes)

    @property
    def rates_covariance(self) -> Floats:
        """Covariance of the gyroscope's rates in body axes, (3, 3), (rad/s)²."""
        if self.imu is None:
            return np.zeros((3, 3))
        mounting = rotation_matrix(euler_to_quat(self.imu.rotation))
        variances = self.imu.noise.variance(1.0 / self.imu.rate)[3:6]
        return np.asarray(mounting * variances @ mounting.T)

    def fixed_frames(self) -> dict[str, tuple[Triple, Triple]]:
        """Return the mounts of the sensors that don't move: position, m, and roll, pitch, yaw.

        The keys are the names of their frames. A range sensor measures along its x axis.
        """
        names = {
            "imu_link": self.imu,
            "gps_link": self.gps,
            "baro_link": self.barometer,
            "height_link": self.height,
            "lidar_link": self.lidar,
        }
        turns = {"height_link": LOOKS_DOWN}
        return {
            frame: (sensor.position, getattr(sensor, "rotation", turns.get(frame, (0.0, 0.0, 0.0))))
            for frame, sensor in names.items()
            if sensor is not None
        }

    def sensors(self) -> dict[str, Sensor]:
        """Return the sensors of a `SensorSuite` by name: all that exist but lidar and cameras."""
        fields = ((field.name, getattr(self, field.name)) for field in dataclasses.fields(self))
        return {name: value for name, value in fields if isinstance(value, Sensor)}


def shipped_sensor_sets() -> list[str]:
    """Return the names of the sets that come with the package."""
    return shipped_names("rfly_amphibious", "sensors")


def _triple(values: Any, unit: float = 1.0) -> Triple:
    x, y, z = (float(value) * unit for value in values)
    return x, y, z


def _imu(section: Mapping[str, Any]) -> Imu:
    gyro = section["gyroscope"]
    force = section["accelerometer"]
    attitude = section["orientation"]
    limit = GRAVITY * force["range_g"]
    most = gyro["range_radps"]

    noise = NoiseModel.joined(
        [
            NoiseModel(
                3,
                scale_error=force.get("scale_error", 0.0),
                turn_on_bias=force.get("turn_on_bias_mps2", 0.0),
                white_density=force["noise_mps2_per_sqrthz"],
                walk_density=force["walk_mps3_per_sqrthz"],
                walk_time=force.get("walk_time_s", FORCE_WALK_TIME),
                low=-limit,
                high=limit,
            ),
            NoiseModel(
                3,
                scale_error=gyro.get("scale_error", 0.0),
                turn_on_bias=gyro.get("turn_on_bias_radps", 0.0),
                white_density=gyro["noise_radps_per_sqrthz"],
                walk_density=gyro["walk_radps2_per_sqrthz"],
                walk_time=gyro.get("walk_time_s", GYRO_WALK_TIME),
                low=-most,
                high=most,
            ),
            NoiseModel(
                3,
                white_sigma=attitude["noise_rad"],
                markov_sigma=attitude["drift_rad"],
                markov_time=attitude["drift_time_s"],
            ),
        ]
    )

    rotation = _triple(section.get("rotation_rpy_deg", (0.0, 0.0, 0.0)), math.pi / 180.0)
    return Imu(
        rate=section["rate_hz"],
        position=_triple(section["position_m"]),
        rotation=rotation,
        noise=noise,
    )


def _gps(section: Mapping[str, Any]) -> Gps:
    white, drift = (
        np.array([section[f"{kind}_{axis}_m"] for axis in ("horizontal", "horizontal", "vertical")])
        for kind in ("noise", "drift")
    )
    place = NoiseModel(
        3, white_sigma=white, markov_sigma=drift, markov_time=section["drift_time_s"]
    )
    noise = NoiseModel.joined([place, NoiseModel(3, white_sigma=section["noise_velocity_mps"])])
    return Gps(
        rate=section["rate_hz"],
        position=_triple(section["position_m"]),
        latency=section["latency_s"],
        noise=noise,
    )


def _magnetometer(section: Mapping[str, Any]) -> Magnetometer:
    noise = NoiseModel(
        3, white_sigma=1e-6 * section["noise_ut"], turn_on_bias=1e-6 * section["turn_on_bias_ut"]
    )
    field = _triple(section["earth_field_ut"], 1e-6) if "earth_field_ut" in section else None
    return Magnetometer(rate=section["rate_hz"], noise=noise, earth_field=field)


def _barometer(section: Mapping[str, Any]) -> NoisySensor:
    noise = NoiseModel(
        1,
        white_sigma=section["noise_pa"],
        walk_density=section["drift_pa_per_sqrth"] / math.sqrt(3600.0),
        walk_time=section.get("drift_time_s", BARO_WALK_TIME),
        turn_on_bias=section.get("turn_on_bias_pa", 0.0),
    )
    return NoisySensor(
        rate=section["rate_hz"], position=_triple(section["position_m"]), noise=noise
    )


def _encoders(section: Mapping[str, Any]) -> Encoders:
    return Encoders(
        rate=section["rate_hz"],
        wheel_counts=section["wheel_counts_per_turn"],
        steering_counts=section["steering_counts_per_turn"],
        strut_noise=section.get("strut_noise_m", 0.0),
        strut_rate_noise=section.get("strut_rate_noise_mps", 0.0),
        rotor_noise=section.get("rotor_noise_radps", 0.0),
    )


def _height(section: Mapping[str, Any]) -> HeightSensor:
    return HeightSensor(
        rate=section["rate_hz"],
        position=_triple(section["position_m"]),
        noise=NoiseModel(1, white_sigma=section["noise_m"]),
        min_range=section["min_range_m"],
        max_range=section["max_range_m"],
        field_of_view=math.radians(section.get("field_of_view_deg", 2.0)),
    )


def _load_cells(section: Mapping[str, Any]) -> LoadCells:
    return LoadCells(rate=section["rate_hz"], load_noise=section.get("noise_n", 0.0))


def _plain(section: Mapping[str, Any]) -> Sensor:
    return Sensor(rate=section["rate_hz"])


def _check_rings(document: Document) -> None:
    """Check that rings are given either evenly or each by its elevation, or a pattern alone."""
    lidar = document.value["lidar"]
    each = "beam_elevations_deg"
    even = ("beams", "lowest_beam_deg", "highest_beam_deg")
    pattern = lidar.get("pattern", RINGS)
    if pattern != RINGS:
        _check_pattern(document, pattern, (each, *even))
        return
    if "columns_per_turn" not in lidar:
        raise document.error(("lidar",), "columns_per_turn is missing")
    for key in even:
        if each in lidar and key in lidar:
            raise document.error(
                ("lidar", key), f"{lidar[key]}, expected none with {each}, which gives all rings"
            )
        if each not in lidar and key not in lidar:
            raise document.error(("lidar",), f"{key} is missing: give {', '.join(even)}, or {each}")

    elevations = lidar.get(each, ())
    for number, (below, above) in enumerate(itertools.pairwise(elevations), 1):
        if above <= below:
            raise document.error(
                ("lidar", each, number), f"{above}, expected more than the one before, {below}"
            )


def _check_pattern(document: Document, pattern: str, ring_keys: tuple[str, ...]) -> None:
    """Check that a pattern without rings has no keys of rings, and no planar scan."""
    for key in (*ring_keys, "columns_per_turn", "first_azimuth_deg", "clockwise"):
        if key in document.value["lidar"]:
            raise document.error(("lidar", key), f"expected none: {pattern} has its own beams")
    if "scan" in document.value:
        raise document.error(("scan",), f"expected none: {pattern} has no ring for a planar scan")


def _of_section(cls: Any, section: Mapping[str, Any]) -> Any:
    """Return an object of a section whose keys the class declares."""
    return cls(**values_of(cls, section))


_DECLARED = {
    "lidar": LidarParameters,
    "scan": ScanParameters,
    "depth_camera": DepthCameraParameters,
    "color_camera": ColorCameraParameters,
    "gimbal": GimbalParameters,
}
"""Sections whose keys are fields of a dataclass."""
_MAKERS: dict[str, Any] = {
    **{section: partial(_of_section, cls) for section, cls in _DECLARED.items()},
    "lidar": LidarParameters.of_section,
    "imu": _imu,
    "gps": _gps,
    "magnetometer": _magnetometer,
    "barometer": _barometer,
    "encoders": _encoders,
    "height": _height,
    "wheel_loads": _load_cells,
    "wind": _plain,
    "ground_truth": _plain,
}
_LIMITS = (
    ("height", "min_range_m", "max_range_m"),
    ("lidar", "min_range_m", "max_range_m"),
    ("depth_camera", "min_range_m", "max_range_m"),
    ("gimbal", "min_pitch_deg", "max_pitch_deg"),
)
"""Sections, each with two keys of which the first has the smaller value."""

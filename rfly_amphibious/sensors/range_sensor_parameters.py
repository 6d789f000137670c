"""Parameters of lidar, planar scan, depth and colour cameras and gimbal: sections of a vehicle's sensor file.

docs/model, section 11; the defaults are a Velodyne HDL-32E's and a Kinect V2's. Places are in body axes
from the sprung centre of mass, m; angles rad.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Triple = tuple[float, float, float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LidarParameters:
    """Beams on a spinning head; each column of beams is fired at a time of its own."""

    rate: float = 10.0
    """sweeps a second"""
    position: Triple = (0.0, 0.0, 0.0)
    rotation: Triple = (0.0, 0.0, 0.0)
    """roll, pitch, yaw of its axes against the body's"""
    beams: int = 32
    lowest: float = math.radians(-30.67)
    """elevation of the first ring, the others follow evenly"""
    highest: float = math.radians(10.67)
    columns: int = 1800
    """a turn"""
    first_azimuth: float = math.pi
    """where a sweep begins: π is to the rear"""
    clockwise: bool = True
    """seen from above"""
    noise: float = 0.02
    """standard deviation of a range, m"""
    dropout: float = 0.001
    """share of returns that are lost"""
    min_range: float = 1.0
    max_range: float = 70.0
    ground_reflectivity: float = 0.3
    body_reflectivity: float = 0.6
    """of vehicles and objects"""

    @property
    def elevations(self) -> NDArray[np.float64]:
        """(beams,) rad, ring 0 first."""
        if self.beams == 1:
            return np.array([self.lowest])
        return np.linspace(self.lowest, self.highest, self.beams)

    @property
    def azimuths(self) -> NDArray[np.float64]:
        """(columns,) rad from x forward to the left, in the order in which they are fired."""
        turn = (-2.0 if self.clockwise else 2.0) * math.pi
        azimuths: NDArray[np.float64] = self.first_azimuth + turn / self.columns * np.arange(
            self.columns, dtype=np.float64
        )
        return azimuths


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScanParameters:
    """A planar scan out of the lidar's sweep: the ring nearest to an elevation."""

    elevation: float = 0.0

    def ring(self, lidar: LidarParameters) -> int:
        """Which ring of the lidar it is."""
        return int(np.argmin(np.abs(lidar.elevations - self.elevation)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageParameters:
    """A pinhole camera on the gimbal."""

    rate: float = 5.0
    width: int
    height: int
    horizontal_fov: float
    vertical_fov: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class DepthCameraParameters(ImageParameters):
    """Depth and infrared, which share pixels. The standard deviation of a depth z is noise + noise_square·z²."""

    width: int = 256
    height: int = 212
    horizontal_fov: float = math.radians(70.6)
    vertical_fov: float = math.radians(60.0)
    noise: float = 0.002
    noise_square: float = 0.002
    min_range: float = 0.5
    max_range: float = 4.5


@dataclasses.dataclass(frozen=True, kw_only=True)
class ColorCameraParameters(ImageParameters):
    """Colour, 8 bits a channel."""

    width: int = 320
    height: int = 180
    horizontal_fov: float = math.radians(84.1)
    vertical_fov: float = math.radians(53.8)
    noise: float = 2.0
    """standard deviation of a channel, of 255"""
    max_range: float = 3000.0
    """what is farther is sky"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GimbalParameters:
    """One revolute joint that pitches the cameras (positive looks down), and its place."""

    position: Triple = (0.0, 0.0, 0.0)
    lag: float = 0.1
    """time constant, s"""
    min_pitch: float = math.radians(-30.0)
    max_pitch: float = math.radians(90.0)


def _triple(values: Any, unit: float = 1.0) -> Triple:
    x, y, z = (float(value) * unit for value in values)
    return x, y, z


def lidar_of(section: Mapping[str, Any]) -> LidarParameters:
    """Of the section `lidar`."""
    return LidarParameters(
        rate=float(section["rate_hz"]),
        position=_triple(section["position_m"]),
        rotation=_triple(section.get("rotation_rpy_deg", (0.0, 0.0, 0.0)), math.pi / 180.0),
        beams=section["beams"],
        lowest=math.radians(section["lowest_beam_deg"]),
        highest=math.radians(section["highest_beam_deg"]),
        columns=section["columns_per_turn"],
        first_azimuth=math.radians(section.get("first_azimuth_deg", 180.0)),
        clockwise=section.get("clockwise", True),
        noise=float(section["noise_m"]),
        dropout=float(section["dropout"]),
        min_range=float(section["min_range_m"]),
        max_range=float(section["max_range_m"]),
        ground_reflectivity=float(section.get("ground_reflectivity", 0.3)),
        body_reflectivity=float(section.get("body_reflectivity", 0.6)),
    )


def scan_of(section: Mapping[str, Any]) -> ScanParameters:
    """Of the section `scan`."""
    return ScanParameters(elevation=math.radians(section["elevation_deg"]))


def depth_camera_of(section: Mapping[str, Any]) -> DepthCameraParameters:
    """Of the section `depth_camera`."""
    return DepthCameraParameters(
        **_image(section),
        noise=float(section["noise_m"]),
        noise_square=float(section["noise_per_m"]),
        min_range=float(section["min_range_m"]),
        max_range=float(section["max_range_m"]),
    )


def color_camera_of(section: Mapping[str, Any]) -> ColorCameraParameters:
    """Of the section `color_camera`."""
    return ColorCameraParameters(
        **_image(section), noise=float(section["noise_levels"]), max_range=float(section["max_range_m"])
    )


def gimbal_of(section: Mapping[str, Any]) -> GimbalParameters:
    """Of the section `gimbal`."""
    return GimbalParameters(
        position=_triple(section["position_m"]),
        lag=float(section["lag_s"]),
        min_pitch=math.radians(section["min_pitch_deg"]),
        max_pitch=math.radians(section["max_pitch_deg"]),
    )


def _image(section: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rate": float(section["rate_hz"]),
        "width": section["width_px"],
        "height": section["height_px"],
        "horizontal_fov": math.radians(section["horizontal_fov_deg"]),
        "vertical_fov": math.radians(section["vertical_fov_deg"]),
    }

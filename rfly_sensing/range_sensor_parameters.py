# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of lidar, planar scan, depth and colour cameras and gimbal in a vehicle's sensor file.

docs/model, section 11; the defaults are a Velodyne HDL-32E's and a Kinect V2's. Positions are in
body axes from the sprung centre of mass, m; angles rad.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rfly_common.arrays import Floats, Triple
from rfly_common.config.declared import declared, flag, number, triple, values_of
from rfly_common.errors import ConfigError
from rfly_sensing.scan_patterns import LIVOX

DEGREE = math.pi / 180.0
MOST_BEAMS = 1024
RINGS = "rings"
"""Pattern of a spinning head."""


def angle(path: str, meaning: str, default: float, within: float, *, optional: bool = False) -> Any:
    """Declare a field in rad for an angle that files give in degrees, ± `within`."""
    return number(
        path,
        meaning,
        scale=DEGREE,
        default=default,
        optional=optional,
        at_least=-within,
        at_most=within,
    )


def _position() -> Any:
    meaning = "x forward, y left, z up from the sprung centre of mass"
    return triple("position_m", meaning, default=(0.0, 0.0, 0.0), at_least=-1000.0, at_most=1000.0)


def _range(path: str, meaning: str, default: float) -> Any:
    if path == "max_range_m":
        return number(path, meaning, default=default, above=0.0, at_most=1e6)
    return number(path, meaning, default=default, at_least=0.0, at_most=1e6)


def _pixels(path: str, default: int | None = None) -> Any:
    return number(path, "pixels", default=default, kind="integer", at_least=1, at_most=8192)


def _field_of_view(path: str, meaning: str, default: float | None = None) -> Any:
    return number(path, meaning, scale=DEGREE, default=default, above=0.0, at_most=179.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LidarParameters:
    """Beams of a lidar; each column of beams is fired at a time of its own.

    They are on a spinning head, or scan in one of Livox's patterns (`scan_patterns`). Such a
    pattern has its own beams and columns, and no elevations and azimuths.
    """

    pattern: str = declared(
        "pattern",
        {
            "type": "string",
            "description": "rings (default), or that of a Livox Mid-40 or Mid-360, which has no "
            "rings, columns and azimuths",
            "enum": [RINGS, *LIVOX],
        },
        lambda value, _section: value or RINGS,
        required=False,
        default=RINGS,
    )

    rate: float = number("rate_hz", "sweeps a second", default=10.0, above=0.0, at_most=1000.0)
    position: Triple = _position()
    rotation: Triple = triple(
        "rotation_rpy_deg",
        "of its axes against the body's",
        scale=DEGREE,
        default=(0.0, 0.0, 0.0),
        optional=True,
        at_least=-360.0,
        at_most=360.0,
    )
    beams: int = number(
        "beams", "rings", default=32, kind="integer", optional=True, at_least=1, at_most=MOST_BEAMS
    )
    lowest: float = angle(
        "lowest_beam_deg",
        "elevation of ring 0; the others follow evenly",
        -30.67,
        90.0,
        optional=True,
    )
    highest: float = angle(
        "highest_beam_deg", "elevation of the last ring", 10.67, 90.0, optional=True
    )
    beam_elevations: tuple[float, ...] = declared(
        "beam_elevations_deg",
        {
            "type": "array",
            "description": "of each ring, rising, in place of the three keys above",
            "minItems": 1,
            "maxItems": MOST_BEAMS,
            "items": {"type": "number", "minimum": -90.0, "maximum": 90.0},
        },
        lambda value, _section: tuple(float(each) * DEGREE for each in value or ()),
        required=False,
        default=(),
    )
    columns: int = number(
        "columns_per_turn",
        "each fired at its own time",
        default=1800,
        optional=True,
        kind="integer",
        at_least=1,
        at_most=36000,
    )
    first_azimuth: float = angle(
        "first_azimuth_deg",
        "where a sweep begins, from x forward to the left; 180 (default): to the rear",
        180.0,
        360.0,
        optional=True,
    )
    clockwise: bool = flag("clockwise", "seen from above; default true", default=True)
    noise: float = number(
        "noise_m", "white, of each range", default=0.02, at_least=0.0, at_most=1000.0
    )
    dropout: float = number(
        "dropout", "share of returns that are lost", default=0.001, at_least=0.0, at_most=1.0
    )
    min_range: float = _range("min_range_m", "what is nearer gives no point", 1.0)
    max_range: float = _range("max_range_m", "what is farther gives no point", 70.0)
    ground_reflectivity: float = number(
        "ground_reflectivity",
        "intensity at normal incidence, of 1; default 0.3",
        default=0.3,
        optional=True,
        at_least=0.0,
        at_most=1.0,
    )
    body_reflectivity: float = number(
        "body_reflectivity",
        "of vehicles and objects; default 0.6",
        default=0.6,
        optional=True,
        at_least=0.0,
        at_most=1.0,
    )

    @classmethod
    def of_section(cls, section: Mapping[str, Any]) -> LidarParameters:
        """Return the parameters of a section of a sensor file that fits the schema."""
        values = values_of(cls, section)
        if values["beam_elevations"]:
            values["beams"] = len(values["beam_elevations"])
        return cls(**values)

    def __post_init__(self) -> None:
        """Take a pattern's own beams and columns.

        Raises ConfigError for an unknown pattern, and if there are more or fewer `beam_elevations`
        than `beams`.
        """
        if self.pattern != RINGS:
            if self.pattern not in LIVOX:
                known = ", ".join((RINGS, *LIVOX))
                raise ConfigError(f"{self.pattern!r}, expected one of {known}", key="pattern")
            livox = LIVOX[self.pattern]
            columns = round(livox.points_per_second / (livox.lines * self.rate))
            object.__setattr__(self, "beams", livox.lines)
            object.__setattr__(self, "columns", max(columns, 1))
        if len(self.beam_elevations) not in (0, self.beams):
            raise ConfigError(
                f"beams: {self.beams}, but beam_elevations has {len(self.beam_elevations)} rings"
            )

    @property
    def elevations(self) -> Floats:
        """Elevations, rad, ring 0 first, (beams,): `beam_elevations`, or evenly spaced ones."""
        if self.beam_elevations:
            return np.array(self.beam_elevations)
        return np.linspace(self.lowest, self.highest, self.beams)

    @property
    def azimuths(self) -> Floats:
        """Azimuths, rad from x forward to the left, in the order of firing, (columns,)."""
        turn = (-2.0 if self.clockwise else 2.0) * math.pi
        return self.first_azimuth + turn / self.columns * np.arange(self.columns, dtype=np.float64)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScanParameters:
    """A planar scan out of the lidar's sweep: the ring nearest to an elevation."""

    elevation: float = angle(
        "elevation_deg", "the lidar's ring nearest to it is the planar scan", 0.0, 90.0
    )

    def ring(self, lidar: LidarParameters) -> int:
        """Return the number of the lidar's ring."""
        return int(np.argmin(np.abs(lidar.elevations - self.elevation)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageParameters:
    """A pinhole camera on the gimbal."""

    rate: float = number("rate_hz", "images a second", default=5.0, above=0.0, at_most=1000.0)
    width: int = _pixels("width_px")
    height: int = _pixels("height_px")
    horizontal_fov: float = _field_of_view(
        "horizontal_fov_deg", "from the left edge to the right one"
    )
    vertical_fov: float = _field_of_view("vertical_fov_deg", "from the upper edge to the lower one")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DepthCameraParameters(ImageParameters):
    """Depth and infrared, which share pixels.

    The standard deviation of a depth z is noise + noise_square·z².
    """

    width: int = _pixels("width_px", 256)
    height: int = _pixels("height_px", 212)
    horizontal_fov: float = _field_of_view(
        "horizontal_fov_deg", "from the left edge to the right one", 70.6
    )
    vertical_fov: float = _field_of_view(
        "vertical_fov_deg", "from the upper edge to the lower one", 60.0
    )
    noise: float = number(
        "noise_m",
        "standard deviation of a depth z is noise_m + noise_per_m z²",
        default=0.002,
        at_least=0.0,
        at_most=1000.0,
    )
    noise_square: float = number("noise_per_m", "1/m", default=0.002, at_least=0.0, at_most=1000.0)
    min_range: float = _range("min_range_m", "depths below it read -inf", 0.5)
    max_range: float = _range("max_range_m", "depths above it read inf", 4.5)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ColorCameraParameters(ImageParameters):
    """Colour, 8 bits a channel."""

    width: int = _pixels("width_px", 320)
    height: int = _pixels("height_px", 180)
    horizontal_fov: float = _field_of_view(
        "horizontal_fov_deg", "from the left edge to the right one", 84.1
    )
    vertical_fov: float = _field_of_view(
        "vertical_fov_deg", "from the upper edge to the lower one", 53.8
    )
    noise: float = number(
        "noise_levels",
        "standard deviation of a channel, of 255",
        default=2.0,
        at_least=0.0,
        at_most=255.0,
    )
    max_range: float = _range("max_range_m", "what is farther is sky", 3000.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GimbalParameters:
    """One revolute joint that pitches the cameras (positive looks down), and its place."""

    position: Triple = _position()
    lag: float = number("lag_s", "time constant", default=0.1, above=0.0, at_most=100.0)
    min_pitch: float = angle("min_pitch_deg", "positive looks down", -30.0, 180.0)
    max_pitch: float = angle("max_pitch_deg", "positive looks down", 90.0, 180.0)

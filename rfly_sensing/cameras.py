# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pinhole cameras: depth, infrared and colour images by ray casting. docs/model, section 11.

Optical axes: z forward, x right, y down. Pixel (0, 0) is the upper left one, and whole numbers are
the middles of pixels, as in OpenCV and sensor_msgs/CameraInfo. Images are taken at one instant.
"""

from __future__ import annotations

import colorsys
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats, Ints
from rfly_common.config.checks import finite_number
from rfly_common.errors import RflyError
from rfly_common.frames import QUAT_FLU_OPTICAL_XYZW, quat_rotate, rotation_matrix
from rfly_sensing.random_generators import sensor_generator
from rfly_sensing.range_sensor_parameters import (
    ColorCameraParameters,
    DepthCameraParameters,
    GimbalParameters,
    ImageParameters,
)
from rfly_sensing.scene_rays import GROUND, NOTHING, Hits, SceneRays
from rfly_sensing.shading import BodyColours, GroundColours, SceneLight, Seen, shade, sunward
from rfly_terrain.height_map.height_map import ground_of
from rfly_terrain.world.weather import Weather

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap

GROUND_REFLECTIVITY = 0.3
"""Reflectivity of the ground in the infrared."""
BODY_REFLECTIVITY = 0.6
"""Reflectivity of bodies in the infrared."""
SUN_SHARE = 0.25
"""Share of the infrared image's scale for a white surface that faces the sun at full light."""
FULL_SCALE_RANGE = 0.5
"""Range at which the camera's own light makes a white surface fill the infrared scale, m."""
STRIP = 14_400
"""Pixels that are rendered at once. Arrays of whole images would take long to allocate."""
GROUND_CLASS = 254
"""Ground in the semantic image, besides the classes of objects."""
SKY_CLASS = 255
"""Sky in the semantic image."""
SKY = np.array((0.56, 0.72, 0.90))
"""Colour of a clear sky."""
FOG = np.array((0.78, 0.80, 0.82))
"""Colour of fog and clouds."""
TINTS = (
    np.array(
        [
            (85, 144, 106),
            (134, 178, 119),
            (188, 207, 141),
            (235, 225, 171),
            (223, 192, 137),
            (192, 149, 106),
            (165, 132, 117),
            (207, 198, 193),
            (252, 251, 250),
        ]
    )
    / 255.0
)
"""Colours of a landscape from the lowest ground to the highest: grass, sand, rock, snow."""
SUN = np.array((-0.5, 0.5, math.sqrt(0.5)))
"""Direction to the sun: in the north-west, at 45°."""
SHADOW_GAP = 2e-3
"""Distance from a surface at which a ray to the sun begins, m."""
SHADOW_RANGE = 500.0
"""Length of a ray to the sun, m."""
OPAQUE = 128
"""Opacity from which a picture of the ground is seen, of 255."""
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
"""Difference of neighbouring ids' hues: the inverse of the golden ratio."""


class CameraPose(NamedTuple):
    """Pose of camera_link (x forward, y left, z up) in the world."""

    position: Floats
    """Position, m, (3,)."""
    rotation: Floats
    """Rotation camera_link -> world, (3, 3)."""


def camera_pose(
    position: Floats, rotation: Floats, mount: GimbalParameters, pitch: float
) -> CameraPose:
    """Return the pose of the cameras on a vehicle.

    base_link is at `position` (3,) with `rotation` (3, 3) body -> world; `pitch`: of the gimbal,
    rad.
    """
    c = math.cos(pitch)
    s = math.sin(pitch)
    turn = np.array(((c, 0.0, s), (0.0, 1.0, 0.0), (-s, 0.0, c)))
    return CameraPose(position + rotation @ np.asarray(mount.position), rotation @ turn)


class Pinhole:
    """Directions in which the pixels of an image look."""

    def __init__(self, parameters: ImageParameters) -> None:
        p = parameters
        self.width = p.width
        self.height = p.height
        self.focal_x = 0.5 * p.width / math.tan(0.5 * p.horizontal_fov)
        self.focal_y = 0.5 * p.height / math.tan(0.5 * p.vertical_fov)
        self.center_x = 0.5 * (p.width - 1)
        self.center_y = 0.5 * (p.height - 1)

        # directions in optical axes
        x = (np.arange(p.width) - self.center_x) / self.focal_x
        y = (np.arange(p.height) - self.center_y) / self.focal_y
        optical = np.ones((p.height, p.width, 3))
        optical[..., 0] = x
        optical[..., 1] = y[:, None]
        length = np.linalg.norm(optical, axis=-1)
        self.along: Floats = 1.0 / length.reshape(-1)
        """Share of a range that is depth, z along the axis, (pixels,)."""
        forward = quat_rotate(QUAT_FLU_OPTICAL_XYZW, optical / length[..., None])
        self.directions: Floats = np.asarray(forward.reshape(-1, 3), np.float64)
        """Unit vectors in the axes of camera_link, (pixels, 3)."""

    @property
    def matrix(self) -> tuple[float, ...]:
        """Camera matrix K row by row, as in CameraInfo."""
        return (self.focal_x, 0.0, self.center_x, 0.0, self.focal_y, self.center_y, 0.0, 0.0, 1.0)

    def cast(
        self,
        pose: CameraPose,
        scene: SceneRays,
        max_range: float,
        time: float,
        pixels: slice | Ints = slice(None),
    ) -> tuple[Hits, Floats]:
        """Return the hits of these pixels' rays, and the directions (pixels, 3) in the world."""
        directions = self.directions[pixels] @ pose.rotation.T
        origins = np.repeat(np.asarray(pose.position, float)[None], len(directions), 0)
        return scene.cast(origins, directions, max_range, time), directions


class DepthImages(NamedTuple):
    """Depth and infrared images of one instant."""

    depth: NDArray[np.float32]
    """Distance along the optical axis, m, (height, width).

    It is -inf nearer and inf farther than the camera sees (REP 118).
    """
    infrared: NDArray[np.uint16]
    """Intensities, (height, width)."""


class DepthCamera:
    """Depth and infrared camera. Image k depends on the seed and k alone, not on earlier images.

    The infrared image is what a surface returns of the camera's own light, which falls with the
    square of the range, and of the sun: full scale · ρ · (cos incidence · (FULL_SCALE_RANGE / r)² ·
    exp(-2 α r) + SUN_SHARE · light · cos of the sun's incidence · exp(-α r)). In fog, depths end
    where a return is as weak as that of the limit in clear air.
    """

    def __init__(
        self,
        parameters: DepthCameraParameters,
        *,
        seed: int | Sequence[int] = 0,
        noise: bool = True,
    ) -> None:
        self.parameters = parameters
        self.noise = noise
        self._seed = seed
        self.pinhole = Pinhole(parameters)
        # the sun's part of the infrared image needs no return of the camera's own light
        self._sight = 100.0 * parameters.max_range

    def image(
        self,
        number: int,
        pose: CameraPose,
        scene: SceneRays,
        weather: Weather | None = None,
        *,
        time: float = 0.0,
    ) -> DepthImages:
        """Return image `number`, taken at `time` (s), at which moving bodies are shown."""
        p = self.parameters
        weather = weather or Weather()
        hits, directions = self.pinhole.cast(pose, scene, self._sight, time)

        # depth
        depth = hits.ranges * self.pinhole.along
        reach = weather.reach(p.max_range)
        # before the noise, whose deviation far away is larger than the range
        depth[depth > reach] = np.inf
        if self.noise:
            seen = np.isfinite(depth)
            error = sensor_generator(self._seed, "depth_camera", number).standard_normal(len(depth))
            depth[seen] += error[seen] * (p.noise + p.noise_square * depth[seen] ** 2)
        depth[depth > reach] = np.inf
        depth[depth < p.min_range] = -np.inf

        shape = p.height, p.width
        infrared = self._infrared(hits, directions, weather)
        return DepthImages(depth.astype(np.float32).reshape(shape), infrared.reshape(shape))

    def _infrared(self, hits: Hits, directions: Floats, weather: Weather) -> NDArray[np.uint16]:
        is_hit = hits.body != NOTHING
        ranges = hits.ranges[is_hit]
        normals = hits.normals[is_hit]
        facing = np.abs(np.einsum("ij,ij->i", directions[is_hit], normals))
        own_light = facing * np.square(FULL_SCALE_RANGE / np.maximum(ranges, 1e-3))
        own_light *= weather.transmission(2.0 * ranges)
        sun = SUN_SHARE / 0.7 * weather.sunlight * np.maximum(normals @ SUN, 0.0)
        sun *= weather.transmission(ranges)

        reflectivity = np.where(hits.body[is_hit] >= 0, BODY_REFLECTIVITY, GROUND_REFLECTIVITY)
        out = np.zeros(len(hits.ranges), np.uint16)
        out[is_hit] = np.rint(65535.0 * np.minimum(reflectivity * (own_light + sun), 1.0))
        return out


class ColorImages(NamedTuple):
    """Images of one instant, by the same rays."""

    color: NDArray[np.uint8]
    """RGB, (height, width, 3)."""
    semantic: NDArray[np.uint8]
    """Classes of what is seen, (height, width).

    Each is a place in `rfly_terrain.world.models.CLASSES`, GROUND_CLASS or SKY_CLASS.
    """
    instance: NDArray[np.int32]
    """Ids of vehicles or objects, or GROUND or NOTHING, (height, width)."""


class ColorCamera:
    """Camera for colours, classes and ids. Image k depends on the seed and k alone.

    Ground has colours by height, or those of a picture of it, bodies their own or one of the id,
    both a grain. A surface is lit by the sky and, out of shadows, by the sun. One of colour C at
    range r is seen as C · T + haze · (1 - T) with T = exp(-α r) (Koschmieder).
    """

    def __init__(
        self,
        parameters: ColorCameraParameters,
        *,
        seed: int | Sequence[int] = 0,
        noise: bool = True,
    ) -> None:
        self.parameters = parameters
        self.noise = noise
        self._seed = seed
        self.pinhole = Pinhole(parameters)

    def image(
        self,
        number: int,
        pose: CameraPose,
        scene: SceneRays,
        weather: Weather | None = None,
        *,
        time: float = 0.0,
    ) -> ColorImages:
        """Return image `number`, taken at `time` (s)."""
        p = self.parameters
        weather = weather or Weather()
        size = p.width * p.height
        color = np.empty((size, 3), np.uint8)
        body = np.empty(size, np.int64)
        generator = sensor_generator(self._seed, "color_camera", number)
        look = _look(scene, weather, time)
        for first in range(0, size, STRIP):
            pixels = slice(first, min(first + STRIP, size))
            hits, directions = self.pinhole.cast(pose, scene, p.max_range, time, pixels)
            sun = np.zeros(len(directions))
            if weather.sunlight:
                sun = sun_on(scene, pose.position, directions, hits, time)

            picture = np.empty((len(directions), 3), np.float32)
            pixel = 1.0 / self.pinhole.focal_x
            photo = _photographed(scene, pose.position, directions, hits, pixel)
            seen = Seen(pose.position, directions, hits.ranges, hits.body, sun, pixel, photo)
            shade(seen, *look, picture)
            picture *= 255.0
            if self.noise:
                errors = generator.standard_normal(picture.shape, dtype=np.float32)
                picture += np.float32(p.noise) * errors
            color[pixels] = np.clip(np.rint(picture), 0, 255)
            body[pixels] = hits.body

        # classes and ids
        bodies = scene.bodies
        ids = [] if bodies is None else bodies.id.tolist()
        kinds = [0] * len(ids)
        if bodies is not None and bodies.class_id is not None:
            kinds = bodies.class_id.tolist()
        # GROUND and NOTHING count from the end
        semantic = np.array([*kinds, SKY_CLASS, GROUND_CLASS], np.uint8)[body]
        instance = np.array([*ids, NOTHING, GROUND], np.int32)[body]

        shape = p.height, p.width
        return ColorImages(
            color.reshape(*shape, 3), semantic.reshape(shape), instance.reshape(shape)
        )


def sun_on(scene: SceneRays, eye: Floats, directions: Floats, hits: Hits, time: float) -> Floats:
    """Return the cosine (n,) of the sun's incidence on what rays from `eye` have met.

    It is 0 in shadows, and for rays that have met nothing.
    """
    size = len(directions)
    facing = np.empty(size, np.int64)
    sun = np.zeros(size)
    origins = np.empty((size, 3))
    count = sunward(
        eye, directions, hits.ranges, hits.normals, SUN, SHADOW_GAP, facing, sun, origins
    )
    if not count:
        return sun

    # shadows
    rays = np.repeat(SUN[None], count, 0)
    ground = _shades_itself(scene.terrain)
    to_sun = scene.cast(origins[:count], rays, SHADOW_RANGE, time, ground=ground)
    shaded = np.isfinite(to_sun.ranges)
    sun[facing[:count][shaded]] = 0.0
    return sun


def _photographed(
    scene: SceneRays, eye: Floats, directions: Floats, hits: Hits, pixel: float
) -> Floats:
    """Return the colours that a picture of the ground has where rays meet it; see `Seen.photo`."""
    if scene.imagery is None:
        return np.empty((0, 3))
    photo = np.full((len(directions), 3), np.nan)
    on_ground = np.flatnonzero(hits.body == GROUND)
    away = hits.ranges[on_ground]
    x, y = eye[:2, None] + away * directions[on_ground, :2].T
    try:
        colours = scene.imagery.colours(x, y, pixel * away)
    except RflyError:  # the ground has the colours of heights; see `Imagery.problem`
        return photo
    is_known = colours[:, 3] >= OPAQUE
    photo[on_ground[is_known]] = colours[is_known, :3] / 255.0
    return photo


@functools.lru_cache(maxsize=4)
def _shades_itself(terrain: HeightMap | None) -> bool:
    """Return whether terrain is anywhere as steep as the sun is high."""
    return ground_of(terrain).least_normal_z <= math.hypot(SUN[0], SUN[1])


def _look(
    scene: SceneRays, weather: Weather, time: float
) -> tuple[BodyColours, GroundColours, SceneLight]:
    """Return the colours of bodies and ground and the light at `time` (s), in this weather."""
    low = 0.0
    high = 1.0
    if scene.terrain is not None:
        low = scene.terrain.z_min
        high = scene.terrain.z_max
    # a picture has what is larger than two of its pixels
    photo_grain = 0.0 if scene.imagery is None else 2.0 * scene.imagery.pixel
    ground = GroundColours(low, max(high, low + 1e-6), TINTS, photo_grain)

    brightness = weather.skylight + weather.sunlight
    sky = brightness * (SKY + (FOG - SKY) * weather.cloud_cover)
    air = SceneLight(weather.skylight, weather.sunlight, weather.extinction, brightness * FOG, sky)

    bodies = scene.bodies
    if bodies is None or not len(bodies):
        return BodyColours(np.empty((0, 3)), np.empty((0, 3, 3)), np.empty((0, 3))), ground, air

    # colours of bodies
    which, inverse = np.unique(bodies.id, return_inverse=True)
    color = np.array([body_color(number) for number in which.tolist()])[inverse.reshape(-1)]
    if bodies.color is not None:
        color = np.where(np.isnan(bodies.color), color, bodies.color)

    position = bodies.position + bodies.velocity * (time - bodies.time)[:, None]
    rotation = np.ascontiguousarray(rotation_matrix(bodies.orientation))
    return BodyColours(position, rotation, np.ascontiguousarray(color)), ground, air


class Gimbal:
    """One joint that pitches the cameras: a first-order lag behind its command."""

    def __init__(self, parameters: GimbalParameters) -> None:
        self.parameters = parameters
        self.pitch = self.command = self._within(0.0)

    def look(self, pitch: float) -> None:
        """Set the pitch to go to, or the limit if it is beyond.

        Raises ValueError if it is no finite number.
        """
        self.command = self._within(
            finite_number("pitch of the gimbal", pitch, "rad", error=ValueError)
        )

    def advance(self, duration: float) -> float:
        """Return the pitch after `duration` (s) of the same command.

        This is the lag's exact solution, so that it does not matter how time is cut.
        """
        self.pitch, _ = self.after(duration)
        return self.pitch

    def after(self, duration: float) -> tuple[float, float]:
        """Return pitch, rad, and its rate, rad/s, after `duration` (s) of the same command."""
        left = (self.pitch - self.command) * math.exp(-duration / self.parameters.lag)
        return self.command + left, -left / self.parameters.lag

    def _within(self, pitch: float) -> float:
        return min(max(pitch, self.parameters.min_pitch), self.parameters.max_pitch)


def body_color(number: int) -> tuple[float, float, float]:
    """Return the colour of an id, RGB 0 … 1. Hues of neighbouring ids lie far apart."""
    return colorsys.hsv_to_rgb(GOLDEN * number % 1.0, 0.75, 0.95)

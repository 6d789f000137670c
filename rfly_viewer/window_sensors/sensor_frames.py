# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Frames of requested sensors from a scene, and their payloads.

Pictures and points come from the rays of the land-air vehicle's cameras and lidars, without noise.
All rays of a frame are sent at one moment. What RflySim's manual leaves open is decided here:

- depth is along the optical axis
- angles of a lidar's request are in degrees, positive to the right and upwards
- points are x forward, y left, z up of the sensor; type 21 is NED of the map, in float32
- a ray that hits nothing is the point 0 0 0; a range finder reads its greatest range, id -1
- seg is the class of what is hit, as in `placed_objects`, 254 for the ground
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats, Ints
from rfly_common.errors import ConfigError
from rfly_common.frames import enu_to_ned
from rfly_sensing.cameras import (
    GROUND_CLASS,
    SKY_CLASS,
    ColorCamera,
    ColorImages,
    Pinhole,
    body_color,
)
from rfly_sensing.range_sensor_parameters import ColorCameraParameters
from rfly_sensing.scan_patterns import away_from_axis, mid360, towards
from rfly_sensing.scene_rays import Hits, SceneRays
from rfly_ue_bridge.codec.sensor_payloads import (
    INT16_SCALE,
    METRES_PER_COUNT,
    NO_DEPTH,
    RANGE,
    Content,
    encode_cloud,
    encode_image,
    max_range,
    sensor_type,
)
from rfly_ue_bridge.codec.sensor_requests import Mount, VisionSensor
from rfly_viewer.window_sensors.window_scene import SensorPose, WindowScene

MID360_POINTS = (4_352, 4)
"""Columns and lines of a frame of type 23: 17,408 points, as RflySim3D sends."""
RINGS_DEFAULTS = (-45.0, 45.0, -20.0, 20.0)
"""Spans of types 20 and 21 if all are 0, deg: from and to, horizontally and vertically."""
ROSETTE_DEFAULTS = (2.956, 1.4, 1.18, 10.0, 5.0, 1.0)
"""Numbers of type 22 that are 0: petal height deg, stretch, curvature, eights, flowers, turn deg.

They are those of the manual's example.
"""
ROSETTE_FOV_DEG = 70.432
"""Length of a petal and the one opposite, deg, if CameraFOV is 0."""


def rings(sensor: VisionSensor) -> Floats:
    """Return the directions (width · height, 3) of types 20 and 21, ring by ring from below.

    A span is cut into as many equal parts as there are points; each points to the middle of one.
    """
    spans = sensor.parameters[2:6]
    left, right, low, high = spans if any(spans) else RINGS_DEFAULTS
    across = left + (right - left) * (np.arange(sensor.width) + 0.5) / sensor.width
    up = low + (high - low) * (np.arange(sensor.height) + 0.5) / sensor.height
    return towards(np.radians(-across), np.radians(up)[:, None]).reshape(-1, 3)


def rosette(sensor: VisionSensor, number: int) -> Floats:
    """Return the directions (width · height, 3) of frame `number` of type 22.

    A figure of eight has two petals, which are four half petals of `width` points from the centre
    to the tip or back. N eights, 180/N degrees apart and in random order, are a flower. Flower k of
    M is turned by k · 180 / (N · M) degrees. After M flowers all is turned by a random angle. The
    order and the angles depend on the number of the flower alone.

    RflySim's manual names these numbers, but its curve is in no source that we have. Here a half
    petal is, for u from 0 to 1: along = length · (1 - (1 - u)^stretch), across = height ·
    sin(πu)^curvature.
    """
    given = (*sensor.parameters[1:7], sensor.fov_deg)
    defaults = (*ROSETTE_DEFAULTS, ROSETTE_FOV_DEG)
    height, stretch, curvature, n, m, turn, fov = (
        value or default for value, default in zip(given, defaults, strict=True)
    )
    eights = int(n)
    flowers = int(m)

    # half petals of this frame, as quarters of eights: out and back to one side, then to the other
    halves = number * sensor.height + np.arange(sensor.height)
    quarter = halves % 4
    eight = halves // 4
    flower = eight // eights
    bearing = np.empty(sensor.height)
    for each in np.unique(flower):
        rows = flower == each
        order = np.random.default_rng((each, 0)).permutation(eights)
        pattern = each // flowers
        random_turn = turn * np.random.default_rng((pattern, 1)).random() if pattern else 0.0
        bearing[rows] = order[eight[rows] % eights] * 180.0 / eights
        bearing[rows] += (each % flowers) * 180.0 / (eights * flowers) + random_turn

    # out on one side and back on the other; the opposite petal goes on straight from the centre
    u = (np.arange(sensor.width) + 0.5) / sensor.width
    is_back = quarter % 2 == 1
    u = np.where(is_back[:, None], 1.0 - u, u)
    along = 0.5 * fov * (1.0 - (1.0 - u) ** stretch)
    across = height * np.sin(math.pi * u) ** curvature
    across[(quarter == 1) | (quarter == 2)] *= -1.0
    bearing = np.radians(bearing + np.where(quarter >= 2, 180.0, 0.0))

    angle = np.radians(np.hypot(along, across))
    return away_from_axis(angle, bearing[:, None] + np.arctan2(across, along)).reshape(-1, 3)


def livox_mid360(number: int) -> Floats:
    """Return the directions (17,408, 3) of frame `number` of type 23."""
    return mid360(number, MID360_POINTS[0], 1.0).reshape(-1, 3)


MAX_RAYS = 1920 * 1080
"""Most rays of a frame."""
MAX_RATE_HZ = 100
MAX_RANGE_M = 10_000.0
"""Greatest range of a sensor that measures distances, m."""
MAX_FIGURES = 1_000
"""Most eights of a flower, and flowers of a pattern."""
DEPTH_STEP = 8
"""Pixels from one point of a depth cloud to the next, if otherParams[1] is 0."""
WAYS = {1: "jpeg", 2: "raw", 3: "png"}
"""Form of pictures by SendProtocol[0]; depth is a png where others are a jpeg."""
WORLD_LIDAR = 21
MID360 = 23

_PALETTE_SIZE = 256


def check(sensor: VisionSensor) -> None:
    """Raise ConfigError, which names the value, for a sensor that cannot be answered here."""
    if sensor.type_id not in _MEASURES:
        name = sensor_type(sensor.type_id).name
        known = ", ".join(map(str, _MEASURES))
        raise _refused(sensor, f"TypeID {sensor.type_id} ({name}) is not simulated; known: {known}")
    if sensor.way not in WAYS:
        raise _refused(sensor, f"SendProtocol[0] is {sensor.way}, expected 1, 2 or 3 (UDP)")
    if not 0 < sensor.port <= 65535:
        raise _refused(sensor, f"port {sensor.port} does not exist")
    if sensor.mount not in tuple(Mount):
        raise _refused(sensor, f"TargetMountType is {sensor.mount}, expected 0 to 4")
    if sensor.rate > MAX_RATE_HZ:
        raise _refused(sensor, f"DataCheckFreq is {sensor.rate} Hz, at most {MAX_RATE_HZ}")

    norm = math.hypot(*sensor.quat_xyzw)
    if not math.isfinite(norm) or (sensor.euler_or_quat > 0.5 and norm < 1e-3):
        raise _refused(sensor, "SensorAngQuat is no rotation")
    _check_sizes(sensor)


def _check_sizes(sensor: VisionSensor) -> None:
    content = sensor_type(sensor.type_id).content
    is_picture = content in (Content.BGR, Content.GREY, Content.DEPTH)
    if not (is_picture or 0.0 < max_range(sensor) <= MAX_RANGE_M):
        raise _refused(
            sensor, f"otherParams[0] is {max_range(sensor):g}, expected a range up to 10 km"
        )
    if content is Content.RANGE or sensor.type_id == MID360:
        return

    if not 0 < sensor.width * sensor.height <= MAX_RAYS:
        raise _refused(sensor, f"{sensor.width} x {sensor.height}, expected 1 to {MAX_RAYS} rays")
    if content is not Content.CLOUD and not 1.0 <= sensor.fov_deg <= 170.0:
        raise _refused(sensor, f"CameraFOV is {sensor.fov_deg:g} deg, expected 1 to 170")
    if content is Content.DEPTH and min(sensor.parameters[:3]) < 0.0:
        raise _refused(sensor, "otherParams[0] to [2] of a depth camera must not be negative")
    if content is Content.DEPTH_CLOUD:
        step = sensor.parameters[1] or DEPTH_STEP
        if not 1 <= step <= min(sensor.width, sensor.height):
            raise _refused(sensor, f"otherParams[1], the step, is {step:g} pixels")
    if sensor.type_id in (20, 21) and max(map(abs, sensor.parameters[2:6])) > 360.0:
        raise _refused(sensor, "otherParams[2] to [5] reach beyond 360 deg")
    if sensor.type_id == 22:
        _check_rosette(sensor)


def _check_rosette(sensor: VisionSensor) -> None:
    height, stretch, curvature, eights, flowers, turn = sensor.parameters[1:7]
    small = max(height, turn, sensor.fov_deg) <= 360.0 and max(stretch, curvature) <= 100.0
    if min(height, stretch, curvature, turn, sensor.fov_deg) < 0.0 or not small:
        raise _refused(sensor, "otherParams[1] to [3], [6] and CameraFOV describe no petals")
    if not all(value == int(value) and 0 <= value <= MAX_FIGURES for value in (eights, flowers)):
        raise _refused(
            sensor, f"otherParams[4] and [5] are {eights:g} and {flowers:g}, expected numbers"
        )


def _refused(sensor: VisionSensor, text: str) -> ConfigError:
    return ConfigError(f"sensor {sensor.seq_id}: {text}")


def measure(
    sensor: VisionSensor, pose: SensorPose, scene: WindowScene, number: int
) -> NDArray[Any]:
    """Return the content of frame `number` of a checked sensor, as in `SensorData`."""
    return _MEASURES[sensor.type_id](sensor, pose, scene, number)


def encode(sensor: VisionSensor, pose: SensorPose, data: NDArray[Any]) -> bytes:
    """Return the payload of a frame in the form that the sensor's request asks for."""
    content = sensor_type(sensor.type_id).content
    if content is Content.RANGE:
        return data.tobytes()
    if content in (Content.CLOUD, Content.DEPTH_CLOUD):
        scale = None if sensor.type_id == WORLD_LIDAR else max_range(sensor)
        return encode_cloud(
            data, scale, pose.wire, copter_id=max(pose.bearer, 0), world_pose=scale is None
        )
    form = WAYS[sensor.way]
    if content is Content.DEPTH and form == "jpeg":
        form = "png"
    return encode_image(data, form)


# --- pictures


@functools.lru_cache(maxsize=16)
def _camera(width: int, height: int, fov_deg: float) -> ColorCamera:
    """Return a camera with square pixels."""
    horizontal = math.radians(fov_deg)
    vertical = 2.0 * math.atan(height / width * math.tan(0.5 * horizontal))
    parameters = ColorCameraParameters(
        width=width, height=height, horizontal_fov=horizontal, vertical_fov=vertical
    )
    return ColorCamera(parameters, noise=False)


def _pinhole(sensor: VisionSensor) -> Pinhole:
    return _camera(sensor.width, sensor.height, sensor.fov_deg).pinhole


def _images(sensor: VisionSensor, pose: SensorPose, scene: WindowScene, number: int) -> ColorImages:
    camera = _camera(sensor.width, sensor.height, sensor.fov_deg)
    return camera.image(number, pose.camera, scene.seen_by(pose.bearer), scene.weather)


def _rgb(sensor: VisionSensor, pose: SensorPose, scene: WindowScene, number: int) -> NDArray[Any]:
    return np.ascontiguousarray(_images(sensor, pose, scene, number).color[..., ::-1])


def _grey(sensor: VisionSensor, pose: SensorPose, scene: WindowScene, number: int) -> NDArray[Any]:
    return np.asarray(cv2.cvtColor(_rgb(sensor, pose, scene, number), cv2.COLOR_BGR2GRAY))


@functools.cache
def class_palette() -> NDArray[np.uint8]:
    """Return the BGR colour of each class in segmentation pictures, (256, 3); sky is black."""
    colours = [body_color(number) for number in range(_PALETTE_SIZE)]
    palette = np.rint(255.0 * np.array(colours)).astype(np.uint8)[:, ::-1]
    palette[SKY_CLASS] = 0
    return palette


def _segmentation(
    sensor: VisionSensor, pose: SensorPose, scene: WindowScene, number: int
) -> NDArray[Any]:
    return class_palette()[_images(sensor, pose, scene, number).semantic]


def _depth(
    sensor: VisionSensor, pose: SensorPose, scene: WindowScene, _number: int
) -> NDArray[Any]:
    nearest, farthest, step = sensor.parameters[:3]
    scale = step or METRES_PER_COUNT
    reach = min(farthest or math.inf, scale * (NO_DEPTH - 1), MAX_RANGE_M)
    pinhole = _pinhole(sensor)
    sight = reach / float(pinhole.along.min())
    hits, _ = pinhole.cast(pose.camera, scene.seen_by(pose.bearer), sight, 0.0)

    depth = hits.ranges * pinhole.along
    is_seen = (depth >= nearest) & (depth <= scene.weather.reach(reach))
    counts = np.full(len(depth), NO_DEPTH, np.uint16)
    counts[is_seen] = np.minimum(np.rint(depth[is_seen] / scale), NO_DEPTH - 1)
    return counts.reshape(sensor.height, sensor.width)


# --- distances and clouds


def _cast(
    directions: Floats, pose: SensorPose, rays: SceneRays, reach: float
) -> tuple[Hits, Floats]:
    """Return the hits of rays in the sensor's axes (n, 3), and the points in them; 0 for none."""
    world = directions @ pose.camera.rotation.T
    hits = rays.cast(np.repeat(pose.position[None], len(world), axis=0), world, reach)
    ranges = np.where(np.isfinite(hits.ranges), hits.ranges, 0.0)
    return hits, directions * ranges[:, None]


def _range(
    sensor: VisionSensor, pose: SensorPose, scene: WindowScene, _number: int
) -> NDArray[Any]:
    rays = scene.seen_by(pose.bearer)
    reach = max_range(sensor)
    hits, _ = _cast(np.array([[1.0, 0.0, 0.0]]), pose, rays, reach)
    distance = float(hits.ranges[0])
    body = int(hits.body[0])

    record = np.zeros((), RANGE)
    record["origin"] = pose.wire[:3]
    record["euler"] = pose.wire[3:]
    record["copter_id"] = -1
    record["distance"] = min(distance, reach)
    if math.isfinite(distance):
        forward = pose.camera.rotation[:, 0]
        record["impact"] = enu_to_ned(pose.position + distance * forward)
    if scene.is_vehicle(rays, body):
        assert rays.bodies is not None
        record["copter_id"] = rays.bodies.id[body]
        record["box_center"] = enu_to_ned(rays.bodies.position[body])
    return record


def _depth_cloud(
    sensor: VisionSensor, pose: SensorPose, scene: WindowScene, _number: int
) -> NDArray[Any]:
    step = int(sensor.parameters[1] or DEPTH_STEP)
    rows = np.arange(sensor.height // step) * step
    columns = np.arange(sensor.width // step) * step
    pixels = (rows[:, None] * sensor.width + columns).reshape(-1)
    directions = _pinhole(sensor).directions[pixels]
    reach = scene.weather.reach(max_range(sensor))
    _, points = _cast(directions, pose, scene.seen_by(pose.bearer), reach)
    return points.astype(np.float32)


def _lidar(directions: Callable[[VisionSensor, int], Floats]) -> _Measure:
    """Return the function that measures with a lidar of these directions."""

    def measured(
        sensor: VisionSensor, pose: SensorPose, scene: WindowScene, number: int
    ) -> NDArray[Any]:
        rays = scene.seen_by(pose.bearer)
        reach = scene.weather.reach(max_range(sensor))
        hits, points = _cast(directions(sensor, number), pose, rays, reach)
        seg = _classes(rays)[hits.body].astype(np.float64)
        if sensor.type_id == WORLD_LIDAR:
            is_hit = np.isfinite(hits.ranges)
            points[is_hit] = points[is_hit] @ pose.camera.rotation.T + pose.position
            points = np.asarray(enu_to_ned(points))
        else:
            # on the wire it is scaled as the coordinates are
            seg *= max_range(sensor) / INT16_SCALE
        return np.column_stack([points, seg]).astype(np.float32)

    return measured


def _classes(rays: SceneRays) -> Ints:
    """Return the class of each body, then that of no hit and of the ground."""
    bodies = rays.bodies
    known: Sequence[int] = ()
    if bodies is not None and bodies.class_id is not None:
        known = bodies.class_id.tolist()
    return np.array([*known, 0, GROUND_CLASS], np.int64)


_Measure = Callable[[VisionSensor, SensorPose, WindowScene, int], NDArray[Any]]
_MEASURES: dict[int, _Measure] = {
    1: _rgb,
    2: _depth,
    3: _grey,
    4: _segmentation,
    5: _range,
    7: _depth_cloud,
    20: _lidar(lambda sensor, _: rings(sensor)),
    21: _lidar(lambda sensor, _: rings(sensor)),
    22: _lidar(rosette),
    23: _lidar(lambda _, number: livox_mid360(number)),
}
"""Function that makes a frame, by TypeID."""

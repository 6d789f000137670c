"""The land-air vehicle's colour camera in the shipped village: its processor time, and OpenCV's RGB-D odometry on it.

The odometry is OpenCV's own (`cv2.Odometry`, OpenCV 5), with colour and depth of one pinhole at 10 Hz.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.harness import Row, measure, same
from rfly_amphibious.sensors.cameras import CameraPose, ColorCamera, DepthCamera
from rfly_amphibious.sensors.neighbours import world_bodies
from rfly_amphibious.sensors.range_sensor_parameters import ColorCameraParameters, DepthCameraParameters
from rfly_amphibious.sensors.scene_rays import SceneRays
from rfly_common.arrays import Floats
from rfly_common.frames import QUAT_FLU_OPTICAL_XYZW, euler_to_quat, rotation_matrix
from rfly_terrain import HeightMap
from rfly_terrain.world.world_file import load_world

REPEAT = 15
SPEED, RATE, RADIUS = 2.0, 10.0, 12.0
"""m/s, Hz, m"""
DRIFT = 0.03
"""of the way"""
UNIT = 5.0
"""m that OpenCV is told as 1: depths above 10 it takes for those of another unit"""


def rows() -> Iterator[Row]:
    """One image at two sizes; the drift flying round the middle of the village."""
    scene = village()
    for width, height, cores in ((320, 180, 0.5), (640, 360, 2.0)):
        camera = ColorCamera(ColorCameraParameters(width=width, height=height), seed=1)
        images = camera.image(0, on_circle(0.0, scene), scene)
        kinds = sorted({*images.semantic.ravel().tolist()})
        number = iter(range(10**9))

        def ours(camera: ColorCamera = camera, number: Iterator[int] = number) -> None:
            camera.image(next(number), on_circle(0.0, scene), scene)

        taken, _ = measure(ours, lambda: None, REPEAT, warm_ups=2, clock=time.process_time)
        agree = same(254 in kinds and len(kinds) > 3, f"sees classes {kinds}")
        note = f"{taken * RATE:.2f} of a core at 10 Hz, with shadows, classes and ids; processor time"
        peer = f"{cores:g} cores at 10 Hz"
        yield Row(f"image of {width} x {height}", taken, cores / RATE, peer, 1.0, None, agree, note, "at most")
    import cv2

    if not hasattr(cv2, "Odometry"):
        print("camera: no odometry without OpenCV 5", file=sys.stderr)
        return
    off, way = drift(scene, 300)
    agree = same(way > 50.0, f"{way:.0f} m flown")
    note = f"{100 * off / way:.2f} % of {way:.0f} m"
    yield Row("RGB-D odometry, drift", off, DRIFT * way, "3 % of the way", 1.0, None, agree, note, "at most", "m")


def village() -> SceneRays:
    """The shipped world on its map."""
    world = load_world("village")
    world = world.on(HeightMap.load(world.map))
    return SceneRays(world.terrain, world_bodies(world))


def on_circle(way: float, scene: SceneRays) -> CameraPose:
    """After so many metres round (0, 0), 3 m above the ground, looking ahead and 0.3 rad down."""
    assert scene.terrain is not None
    angle = way / RADIUS
    x, y = RADIUS * math.cos(angle), RADIUS * math.sin(angle)
    z = float(scene.terrain.altitude(x, y)) + 3.0
    turn = rotation_matrix(np.asarray(euler_to_quat((0.0, 0.3, angle + 0.5 * math.pi))))
    return CameraPose(np.array((x, y, z)), turn)


def drift(scene: SceneRays, images: int) -> tuple[float, float]:
    """(m from the estimated end to the true one, m flown) of OpenCV's odometry from image to image."""
    import cv2

    size = {"width": 320, "height": 180, "horizontal_fov": math.radians(84.1), "vertical_fov": math.radians(53.8)}
    color = ColorCamera(ColorCameraParameters(**size), seed=1)
    depth = DepthCamera(DepthCameraParameters(**size, min_range=0.3, max_range=40.0, noise_square=0.0005), seed=1)
    settings = cv2.OdometrySettings()
    settings.setCameraMatrix(np.array(color.pinhole.matrix, np.float32).reshape(3, 3))
    settings.setMinDepth(0.3 / UNIT)
    settings.setMaxDepth(40.0 / UNIT)
    settings.setMaxPointsPart(0.5)
    settings.setMaxTranslation(1.0)
    odometry = cv2.Odometry(cv2.OdometryType_RGB_DEPTH, settings, cv2.OdometryAlgoType_COMMON)
    optical = rotation_matrix(np.asarray(QUAT_FLU_OPTICAL_XYZW))
    begin, pose, before, way = transform(on_circle(0.0, scene), optical), np.eye(4), None, 0.0
    here = begin
    for number in range(images):
        true = on_circle(SPEED / RATE * number, scene)
        way += float(np.linalg.norm(transform(true, optical)[:3, 3] - here[:3, 3]))
        here = transform(true, optical)
        seen = depth.image(number, true, scene).depth
        gray = cv2.cvtColor(color.image(number, true, scene).color, cv2.COLOR_RGB2GRAY)
        frame = cv2.OdometryFrame((np.where(np.isfinite(seen), seen, 0.0) / UNIT).astype(np.float32), gray)
        odometry.prepareFrame(frame)
        if before is not None:
            found, step = odometry.compute(before, frame)
            if not found:
                return math.inf, way
            step[:3, 3] *= UNIT
            pose = pose @ np.linalg.inv(step)
        before = frame
    return float(np.linalg.norm((begin @ pose)[:3, 3] - here[:3, 3])), way


def transform(pose: CameraPose, optical: Floats) -> Floats:
    """(4, 4) optical axes -> world."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = pose.rotation @ optical, pose.position
    return out

# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The land-air vehicle's colour camera in the shipped village: processor time and odometry.

OpenCV's functions estimate RGB-D odometry from image to image: corners of one with their depths,
their places in the next by Lucas and Kanade, and the pose by RANSAC. Colour and depth share one
pinhole at 10 Hz.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.budgets import SCALED, scaled
from benchmarks.harness import Row, measure, same
from rfly_common.arrays import Floats
from rfly_common.frames import QUAT_FLU_OPTICAL_XYZW, euler_to_quat, rotation_matrix
from rfly_sensing.cameras import CameraPose, ColorCamera, DepthCamera
from rfly_sensing.neighbours import world_bodies
from rfly_sensing.range_sensor_parameters import ColorCameraParameters, DepthCameraParameters
from rfly_sensing.scene_rays import SceneRays
from rfly_terrain import HeightMap
from rfly_terrain.world.world_file import load_world

cv2: Any = importlib.import_module("cv2")  # its stubs know single types of array only
REPEAT = 15
SPEED = 2.0
"""Speed of flight, m/s."""
RATE = 10.0
"""Images per second, Hz."""
RADIUS = 12.0
"""Radius of the circle, m."""
DRIFT = 0.03
"""Limit of the drift, share of the distance flown."""


def rows() -> Iterator[Row]:
    """Yield the time of an image at two sizes, and the drift on a flight round the village."""
    scene = village()

    # the time of an image
    for width, height, cores in ((320, 180, 0.5), (640, 360, 2.0)):
        camera = ColorCamera(ColorCameraParameters(width=width, height=height), seed=1)
        images = camera.image(0, on_circle(0.0, scene), scene)
        kinds = sorted({*images.semantic.ravel().tolist()})
        number = iter(range(10**9))

        def ours(camera: ColorCamera = camera, number: Iterator[int] = number) -> None:
            camera.image(next(number), on_circle(0.0, scene), scene)

        seconds, _ = measure(ours, lambda: None, REPEAT, warm_ups=2, clock=time.process_time)
        agree = same(254 in kinds and len(kinds) > 3, f"sees classes {kinds}")
        note = (
            f"{seconds * RATE:.2f} of a core at 10 Hz, with shadows, classes and ids; "
            "processor time"
        )
        peer = f"{cores:g} cores at 10 Hz, {SCALED}"
        yield Row(
            f"image of {width} x {height}",
            seconds,
            scaled(cores / RATE),
            peer,
            1.0,
            None,
            agree,
            note,
            "at most",
        )

    # drift of the odometry
    off, way = drift(scene, 300)
    agree = same(way > 50.0, f"{way:.0f} m flown")
    note = f"{100 * off / way:.2f} % of {way:.0f} m"
    yield Row(
        "RGB-D odometry, drift",
        off,
        DRIFT * way,
        "3 % of the way",
        1.0,
        None,
        agree,
        note,
        "at most",
        "m",
    )


def village() -> SceneRays:
    """Return the shipped world on its map."""
    world = load_world("village")
    world = world.on(HeightMap.load(world.map))
    return SceneRays(world.terrain, world_bodies(world))


def on_circle(way: float, scene: SceneRays) -> CameraPose:
    """Return the pose `way` m along a circle round (0, 0), 3 m up, looking 0.3 rad down."""
    assert scene.terrain is not None
    angle = way / RADIUS
    x = RADIUS * math.cos(angle)
    y = RADIUS * math.sin(angle)
    z = float(scene.terrain.altitude(x, y)) + 3.0
    turn = rotation_matrix(np.asarray(euler_to_quat((0.0, 0.3, angle + 0.5 * math.pi))))
    return CameraPose(np.array((x, y, z)), turn)


def drift(scene: SceneRays, images: int) -> tuple[float, float]:
    """Return the error of the estimated end and the distance flown after `images` images, m."""
    same_pixels = dataclasses.asdict(ColorCameraParameters())
    for name in ("rate", "noise", "max_range"):
        del same_pixels[name]

    # both cameras with the same pixels
    color = ColorCamera(ColorCameraParameters(), seed=1)
    depth = DepthCamera(
        DepthCameraParameters(**same_pixels, min_range=0.3, max_range=40.0, noise_square=0.0005),
        seed=1,
    )
    optical = rotation_matrix(np.asarray(QUAT_FLU_OPTICAL_XYZW))
    matrix = np.array(color.pinhole.matrix).reshape(3, 3)
    truth = [
        transform(on_circle(SPEED / RATE * number, scene), optical) for number in range(images)
    ]
    estimated = truth[0]
    before = (np.empty(0, np.uint8), np.empty(0, np.float32))

    # estimate the motion from image to image
    for number in range(images):
        pose = on_circle(SPEED / RATE * number, scene)
        gray = cv2.cvtColor(color.image(number, pose, scene).color, cv2.COLOR_RGB2GRAY)
        if number:
            estimated = estimated @ np.linalg.inv(motion(*before, gray, matrix))
        before = gray, depth.image(number, pose, scene).depth

    way = sum(float(np.linalg.norm(b[:3, 3] - a[:3, 3])) for a, b in itertools.pairwise(truth))
    return float(np.linalg.norm(estimated[:3, 3] - truth[-1][:3, 3])), way


def motion(
    gray: NDArray[np.uint8],
    depth: NDArray[np.float32],
    following: NDArray[np.uint8],
    matrix: Floats,
) -> Floats:
    """Return the transform (4, 4) from the optical axes of an image to those of the next."""
    # corners that flow to the next image and back
    corners = cv2.goodFeaturesToTrack(gray, 1000, 0.005, 5)
    look: dict[str, Any] = {"winSize": (21, 21), "maxLevel": 4}
    moved, forward, _ = cv2.calcOpticalFlowPyrLK(gray, following, corners, None, **look)
    back, backward, _ = cv2.calcOpticalFlowPyrLK(following, gray, moved, None, **look)
    pixels = corners.reshape(-1, 2)
    next_pixels = moved.reshape(-1, 2)

    # those with a depth
    column, row = np.rint(pixels).astype(int).T
    z = depth[row, column].astype(float)
    good = (forward & backward).ravel().astype(bool) & (
        np.linalg.norm(back.reshape(-1, 2) - pixels, axis=1) < 0.5
    )
    good &= np.isfinite(z)
    pixels = pixels[good]
    next_pixels = next_pixels[good].astype(float)
    z = z[good, None]

    # the pose from their places in space
    points = np.hstack([(pixels - matrix[:2, 2]) / matrix.diagonal()[:2] * z, z])
    _, turn, shift, inliers = cv2.solvePnPRansac(
        points, next_pixels, matrix, None, iterationsCount=200, reprojectionError=1.0
    )
    turn, shift = cv2.solvePnPRefineLM(
        points[inliers[:, 0]], next_pixels[inliers[:, 0]], matrix, None, turn, shift
    )

    out = np.eye(4)
    out[:3, :3] = cv2.Rodrigues(turn)[0]
    out[:3, 3] = shift.ravel()

    return out


def transform(pose: CameraPose, optical: Floats) -> Floats:
    """Return the transform (4, 4) from optical axes to the world."""
    out = np.eye(4)
    out[:3, :3] = pose.rotation @ optical
    out[:3, 3] = pose.position
    return out

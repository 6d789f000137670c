# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compilation of the kernels of lidar and cameras, or loading from the cache."""

from __future__ import annotations

from functools import cache


@cache
def warm_up() -> None:
    """Run the kernels of lidar and cameras."""
    import numpy as np

    from rfly_collision.shapes.shape import Box
    from rfly_sensing.cameras import CameraPose, ColorCamera
    from rfly_sensing.range_sensor_parameters import ColorCameraParameters
    from rfly_sensing.scene_rays import SceneBodies, SceneRays
    from rfly_terrain.warm_up import warm_up as warm_up_terrain

    warm_up_terrain()
    body = SceneBodies(
        (Box((1.0, 1.0, 1.0)),),
        np.zeros(1, np.int64),
        np.array([[2.0, 0.0, 1.0]]),
        np.array([[0.0, 0.0, 0.0, 1.0]]),
        np.zeros((1, 3)),
        np.zeros(1),
        np.ones(1, np.int64),
    )
    pose = CameraPose(np.array((0.0, 0.0, 1.0)), np.eye(3))
    ColorCamera(ColorCameraParameters(width=1, height=1)).image(0, pose, SceneRays(None, body))

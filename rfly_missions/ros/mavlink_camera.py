# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The colour camera of a vehicle as the `RemoteCamera` of its MAVLink component.

Subscriptions make the sensors' node render, so there is one only while a picture is awaited.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image

from rfly_common.ros.endpoints import subscription
from rfly_common.ros.qos import STATE_IN
from rfly_common.ros.stamps import stamp_to_ns
from rfly_missions.mavlink.camera_protocol import Optics, Picture

LOOK_S = 1.0
"""Wall time between two looks for a camera, s."""
PATIENCE_S = 5.0
"""Wall time after which a picture is awaited no longer, s."""
LEAST_FREE = 2**26
"""Free bytes of the disk below which no picture is taken."""
NO_FOLDER = "No pictures: parameter picture_folder"
"""Reason of a refusal."""


class CameraTopics:
    """Pictures of `<name>/camera/color/image_raw`, as PNG files in `folder`."""

    def __init__(self, node: Node, name: str, folder: Path | None) -> None:
        self._node = node
        self._name = name
        self._folder = folder
        self._topic = f"{name}/camera/color"
        self._optics: Optics | None = None
        self._looked_at = -math.inf
        self._info: Any = None
        self._images: Any = None
        self._awaited: tuple[int, Callable[[Picture | None], None], float] | None = None
        self._newest = 0
        """Number of the last file: those up to it are not looked at again."""

    def update(self, wall: float) -> None:
        """Look for the camera, and drop subscriptions that are not needed; steady wall time, s."""
        if self._awaited is not None and wall - self._awaited[2] > PATIENCE_S:
            self._end(None)
        if self._images is not None and self._awaited is None:
            self._node.destroy_subscription(self._images)
            self._images = None
        if self._info is not None and self._optics is not None:
            self._node.destroy_subscription(self._info)
            self._info = None

        if wall - self._looked_at < LOOK_S:
            return
        self._looked_at = wall
        if not self._node.count_publishers(f"{self._topic}/image_raw"):
            self._optics = None
        elif self._optics is None and self._info is None:
            self._info = subscription(
                self._node, CameraInfo, f"{self._topic}/camera_info", self._on_info, STATE_IN
            )

    def _on_info(self, message: CameraInfo) -> None:
        self._optics = Optics(message.width, message.height)

    def _on_image(self, message: Image) -> None:
        if self._awaited is None:
            return
        picture = None
        size = 3 * message.width * message.height
        if message.encoding == "rgb8" and len(message.data) == size > 0:
            pixels = np.frombuffer(message.data, np.uint8).reshape(message.height, -1, 3)
            picture = Picture(
                stamp_to_ns(message.header.stamp) * 1e-9, self._write(self._awaited[0], pixels)
            )
        self._end(picture)

    def _write(self, number: int, pixels: Any) -> str:
        """Write a picture that replaces none; return its name, "" if that fails."""
        assert self._folder is not None
        data = cv2.imencode(".png", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))[1].tobytes()
        number = max(number, self._newest + 1)
        while (path := self._folder / f"{self._name}_{number:05d}.png").exists():
            number += 1
        self._newest = number
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            self._node.get_logger().warning(f"{path}: {error.strerror}")
            return ""
        return path.name

    def _end(self, picture: Picture | None) -> None:
        if self._awaited is not None:
            _, done, _ = self._awaited
            self._awaited = None
            done(picture)

    # --- the RemoteCamera

    def optics(self) -> Optics | None:
        """Return the size of pictures; None: there is no camera."""
        return self._optics

    def problem(self) -> str:
        """Return why no picture can be taken; "" if one can."""
        if self._folder is None:
            return NO_FOLDER
        return "" if self.storage()[1] > LEAST_FREE else "No pictures: the disk is full"

    def take(self, number: int, done: Callable[[Picture | None], None]) -> None:
        """Write the next picture."""
        self._awaited = number, done, time.monotonic()
        if self._images is None:
            self._images = subscription(
                self._node, Image, f"{self._topic}/image_raw", self._on_image, STATE_IN
            )

    def storage(self) -> tuple[int, int]:
        """Return the size of the pictures' disk and what is free of it, bytes."""
        folder = self._folder or Path()
        while not folder.exists():
            folder = folder.parent
        usage = shutil.disk_usage(folder)
        return usage.total, usage.free

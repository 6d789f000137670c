# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Coordinate frames of messages: world frames, and frames that /tf connects to them."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import TransformStamped
from numpy.typing import ArrayLike
from rclpy.node import Node
from tf2_msgs.msg import TFMessage

from rfly_common.diagnostic_reasons import Notice, RecentFaults
from rfly_common.errors import ConfigError, FrameError
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.node_parameters import FrameParameters
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import TF, TF_STATIC_IN
from rfly_common.ros.stamps import fill_header, stamp_to_ns
from rfly_common.transform_buffer import IDENTITY, FrameToWorld, Transform, TransformBuffer


def transform_to_msg(
    parent: str, child: str, position: ArrayLike, quat_xyzw: ArrayLike, stamp_ns: int
) -> TransformStamped:
    """Return a message: `child` at `position` (3,) m in `parent`, turned by `quat_xyzw` (4,)."""
    message = TransformStamped(child_frame_id=child)
    fill_header(message, stamp_ns, parent)
    translation = message.transform.translation
    rotation = message.transform.rotation
    translation.x, translation.y, translation.z = np.asarray(position, float).tolist()
    rotation.x, rotation.y, rotation.z, rotation.w = np.asarray(quat_xyzw, float).tolist()
    return message


def frame_prefix(node: Node) -> str:
    """Return the beginning of the names of frames that belong to a node's namespace.

    It is the namespace and /, such as `alpha/`, or "" in none. /tf is one for all namespaces, so
    that frames of equal names would be mixed there.
    """
    namespace = node.get_namespace().strip("/")
    return f"{namespace}/" if namespace else ""


class Frames:
    """World frames by id, and the other frames' transforms through /tf and /tf_static."""

    def __init__(self, node: Node, *, listen: bool = True) -> None:
        """Subscribe to transforms at once, or with `listen` false when one is needed."""
        params = declare_parameters(node, FrameParameters)
        self.enu_frames = params.enu_frames
        self.ned_frames = params.ned_frames
        both = set(self.enu_frames) & set(self.ned_frames)
        if both:
            raise ConfigError(
                f"parameters enu_frames and ned_frames: {sorted(both)[0]!r} is in both"
            )

        self._worlds = dict.fromkeys(self.enu_frames, "enu") | dict.fromkeys(self.ned_frames, "ned")
        self._ready = {frame: FrameToWorld(axes) for frame, axes in self._worlds.items()}

        self._buffer = TransformBuffer()
        self._node = node
        self._log = node.get_logger()
        self._faults = RecentFaults()
        """Transforms that are ignored, by child frame."""
        self._listens = False
        if listen:
            self.listen()

    def listen(self) -> None:
        """Subscribe to transforms from now on."""
        if not self._listens:
            self._listens = True
            subscription(self._node, TFMessage, "/tf", self._on_tf, TF)
            subscription(
                self._node,
                TFMessage,
                "/tf_static",
                lambda msg: self._on_tf(msg, static=True),
                TF_STATIC_IN,
            )

    def axes(self, frame_id: str) -> str | None:
        """Return enu or ned for a world frame, None for any other."""
        return self._worlds.get(frame_id)

    def resolve(self, frame_id: str, stamp_ns: int = 0) -> FrameToWorld:
        """Return the transform from a frame to the world at a time (0: the newest).

        Raises FrameError that names the frame.
        """
        ready = self._ready.get(frame_id)
        if ready is not None:
            return ready

        self.listen()
        reason: FrameError | None = None
        for world, axes in self._worlds.items():
            try:
                return FrameToWorld(axes, self._buffer.lookup(world, frame_id, stamp_ns), False)
            except FrameError as error:
                reason = reason or error

        raise reason or FrameError(
            f"frame {frame_id!r}: no world frame is set (parameters enu_frames, ned_frames)"
        )

    def newest_ns(self, frame_id: str) -> int | None:
        """Return the time from which on `resolve` knows nothing newer, ns; None: static transforms.

        Raises FrameError as `resolve` does.
        """
        reason: FrameError | None = None
        for world in self._worlds:
            try:
                span = self._buffer.span_ns(world, frame_id)
            except FrameError as error:
                reason = reason or error
            else:
                return None if span is None else span[1]
        raise reason or FrameError(f"frame {frame_id!r}: no world frame is set")

    def between(self, target: str, source: str, stamp_ns: int = 0) -> Transform:
        """Return the transform of coordinates in `source` to those of `target`, world frame or not.

        Raises FrameError if no transforms connect them.
        """
        if source == target:
            return IDENTITY
        self.listen()
        return self._buffer.lookup(target, source, stamp_ns)

    def are_joined(self, target: str, source: str) -> bool:
        """Return whether a moving joint, not only static transforms, connects two frames."""
        try:
            return self._buffer.span_ns(target, source) is not None
        except FrameError:
            return False

    def clear(self) -> None:
        """Forget moving transforms (the clock jumped back)."""
        self._buffer.clear()

    def _on_tf(self, message: TFMessage, static: bool = False) -> None:
        for t in message.transforms:
            p = t.transform.translation
            q = t.transform.rotation
            try:
                self._buffer.add(
                    t.header.frame_id.lstrip("/"),
                    t.child_frame_id.lstrip("/"),
                    stamp_to_ns(t.header.stamp),
                    (p.x, p.y, p.z),
                    (q.x, q.y, q.z, q.w),
                    static=static,
                )
            except FrameError as error:
                notice = Notice(f"transform ignored: {error}", subject=t.child_frame_id)
                if self._faults.begin("transform", notice):
                    self._log.warning(notice.text)

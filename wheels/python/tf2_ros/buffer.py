# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Buffer: look-ups of transforms as tf2_ros has them, on the suite's transform buffer."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from time import sleep
from typing import Any

from builtin_interfaces.msg import Time as TimeMessage
from geometry_msgs.msg import TransformStamped
from rclpy.clock import Clock, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.task import Future
from rclpy.time import Time

from rfly_common.errors import FrameError, TransformTreeError
from rfly_common.ros.stamps import ns_to_stamp, stamp_to_ns
from rfly_common.transform_buffer import KEEP_NS, Transform, TransformBuffer

AnyTime = Time | TimeMessage
NO_TIMEOUT = Duration()
_POLL_S = 0.02
"""Time between two looks of a blocking wait, s."""
_LOG_EVERY_S = 5.0
"""Least time between two logs of ignored transforms, s."""


class TransformException(Exception):
    """Base of the errors of a look-up."""


class LookupException(TransformException):
    """A frame that no transform names, or whose parents form a loop or an endless chain."""


class ConnectivityException(TransformException):
    """Frames of different trees."""


class ExtrapolationException(TransformException):
    """A time that the transforms do not span."""


class InvalidArgumentException(TransformException):
    """A frame id that is empty or begins with a slash."""


class TimeoutException(TransformException):
    """A wait that lasted too long; kept for code that catches it."""


class Buffer:
    """Transforms by frame and time.

    As in tf2_ros, time 0 means the latest time at which all transforms between two frames are
    known, and nothing is extrapolated. A moving frame that is silent for ten minutes is forgotten.
    """

    def __init__(self, cache_time: Duration | None = None, node: Node | None = None) -> None:
        """Keep transforms for `cache_time` (10 s); a node's clock empties the buffer at jumps."""
        keep_ns = KEEP_NS if cache_time is None else cache_time.nanoseconds
        self._transforms = TransformBuffer(keep_ns=keep_ns)
        self._lock = RLock()
        self._on_new_data: list[Callable[[], None]] = []

        self.clock = Clock() if node is None else node.get_clock()
        threshold = JumpThreshold(
            min_forward=None, min_backward=Duration(seconds=-1), on_clock_change=True
        )
        self.jump_handle = self.clock.create_jump_callback(
            threshold, post_callback=self.time_jump_callback
        )

    def time_jump_callback(self, time_jump: TimeJump) -> None:
        """Empty the buffer after a jump of the clock."""
        get_logger("tf2_buffer").warning("Detected jump back in time. Clearing tf buffer.")
        self.clear()

    def clear(self) -> None:
        """Forget the transforms that change."""
        with self._lock:
            self._transforms.clear()

    def set_transform(self, transform: TransformStamped, authority: str) -> None:
        """Take a transform that changes; log and ignore one that is no transform, as tf2 does."""
        self._add(transform, authority, static=False)

    def set_transform_static(self, transform: TransformStamped, authority: str) -> None:
        """Take a transform that stays; log and ignore one that is no transform, as tf2 does."""
        self._add(transform, authority, static=True)

    def lookup_transform(
        self,
        target_frame: str,
        source_frame: str,
        time: AnyTime,
        timeout: Duration = NO_TIMEOUT,
    ) -> TransformStamped:
        """Return the transform of coordinates in the source frame to the target frame.

        Raise LookupException, ConnectivityException, ExtrapolationException or
        InvalidArgumentException if there is none within the time-out.
        """
        self.can_transform(target_frame, source_frame, time, timeout)
        return self.lookup_transform_core(target_frame, source_frame, time)

    def lookup_transform_core(
        self, target_frame: str, source_frame: str, time: AnyTime
    ) -> TransformStamped:
        """Return the transform that is known now. Raise as `lookup_transform`."""
        with self._lock:
            transform, stamp_ns = self._look_up(target_frame, source_frame, _nanoseconds(time))
        return _message(target_frame, source_frame, transform, stamp_ns)

    def lookup_transform_full(
        self,
        target_frame: str,
        target_time: AnyTime,
        source_frame: str,
        source_time: AnyTime,
        fixed_frame: str,
        timeout: Duration = NO_TIMEOUT,
    ) -> TransformStamped:
        """Return the transform between frames at two times, by a frame that stands still.

        Raise as `lookup_transform`.
        """
        arguments = (target_frame, target_time, source_frame, source_time, fixed_frame)
        self.can_transform_full(*arguments, timeout)
        return self.lookup_transform_full_core(*arguments)

    def lookup_transform_full_core(
        self,
        target_frame: str,
        target_time: AnyTime,
        source_frame: str,
        source_time: AnyTime,
        fixed_frame: str,
    ) -> TransformStamped:
        """Return the transform that is known now. Raise as `lookup_transform`."""
        with self._lock:
            inner, _ = self._look_up(fixed_frame, source_frame, _nanoseconds(source_time))
            outer, stamp_ns = self._look_up(target_frame, fixed_frame, _nanoseconds(target_time))
        return _message(target_frame, source_frame, outer @ inner, stamp_ns)

    async def lookup_transform_async(
        self, target_frame: str, source_frame: str, time: AnyTime
    ) -> TransformStamped:
        """Return the transform as soon as there is one."""
        return await self.wait_for_transform_async(target_frame, source_frame, time)

    def can_transform(
        self,
        target_frame: str,
        source_frame: str,
        time: AnyTime,
        timeout: Duration = NO_TIMEOUT,
        return_debug_tuple: bool = False,
    ) -> Any:
        """Return whether there is a transform within the time-out, or a pair with the reason.

        It waits in this thread: the listener needs another one, or `spin_thread`.
        """
        arguments = (target_frame, source_frame, time)
        return _wait(lambda: self.lookup_transform_core(*arguments), timeout, return_debug_tuple)

    def can_transform_full(
        self,
        target_frame: str,
        target_time: AnyTime,
        source_frame: str,
        source_time: AnyTime,
        fixed_frame: str,
        timeout: Duration = NO_TIMEOUT,
        return_debug_tuple: bool = False,
    ) -> Any:
        """Return whether `lookup_transform_full` has an answer, as `can_transform`."""
        arguments = (target_frame, target_time, source_frame, source_time, fixed_frame)
        return _wait(
            lambda: self.lookup_transform_full_core(*arguments), timeout, return_debug_tuple
        )

    def wait_for_transform_async(
        self, target_frame: str, source_frame: str, time: AnyTime
    ) -> Future:
        """Return a future of the transform."""
        future = Future()

        def try_now() -> None:
            if future.done():
                return
            try:
                future.set_result(self.lookup_transform_core(target_frame, source_frame, time))
            except TransformException:
                return  # the next transform tries again

        with self._lock:
            try_now()
            if not future.done():
                self._on_new_data.append(try_now)
                future.add_done_callback(lambda _: self._on_new_data.remove(try_now))
        return future

    def get_latest_common_time(self, target_frame: str, source_frame: str) -> Time:
        """Return the latest time at which all transforms between two frames are known."""
        with self._lock:
            _, stamp_ns = self._look_up(target_frame, source_frame, 0)
        return Time(nanoseconds=stamp_ns)

    def _add(self, message: TransformStamped, authority: str, *, static: bool) -> None:
        p = message.transform.translation
        q = message.transform.rotation
        with self._lock:
            try:
                self._transforms.add(
                    message.header.frame_id.removeprefix("/"),
                    message.child_frame_id.removeprefix("/"),
                    stamp_to_ns(message.header.stamp),
                    (p.x, p.y, p.z),
                    (q.x, q.y, q.z, q.w),
                    static=static,
                )
            except FrameError as error:
                # tf2 logs each; a sender that goes on would fill the log
                get_logger("tf2_buffer").warning(
                    f"ignored from {authority}: {error}", throttle_duration_sec=_LOG_EVERY_S
                )
                return
            for callback in list(self._on_new_data):
                callback()

    def _look_up(self, target: str, source: str, stamp_ns: int) -> tuple[Transform, int]:
        """Return a transform and its time, ns."""
        known = self._transforms.frames()
        for argument, frame in (("target_frame", target), ("source_frame", source)):
            if not frame or frame.startswith("/"):
                raise InvalidArgumentException(
                    f"Invalid argument {frame!r} passed to lookupTransform argument {argument}: "
                    "expected a frame id that does not begin with '/'"
                )
            if frame not in known:
                raise LookupException(
                    f'"{frame}" passed to lookupTransform argument {argument} does not exist.'
                )

        try:
            span = self._transforms.span_ns(target, source)
        except TransformTreeError as error:
            raise LookupException(str(error)) from error
        except FrameError as error:
            raise ConnectivityException(str(error)) from error
        if span is None:
            return self._transforms.lookup(target, source), stamp_ns

        oldest_ns, newest_ns = span
        stamp_ns = stamp_ns or newest_ns
        if not oldest_ns <= stamp_ns <= newest_ns:
            raise ExtrapolationException(
                f"Lookup would require extrapolation: requested time {stamp_ns / 1e9:.6f}, but "
                f"the transforms from {source!r} to {target!r} span {oldest_ns / 1e9:.6f} to "
                f"{newest_ns / 1e9:.6f}"
            )
        return self._transforms.lookup(target, source, stamp_ns), stamp_ns


def _wait(look_up: Callable[[], object], timeout: Duration, with_reason: bool) -> Any:
    """Return whether a look-up succeeds within a time-out, or a pair with the reason."""
    clock = Clock()
    end = clock.now() + timeout
    while True:
        try:
            look_up()
            return (True, "") if with_reason else True
        except TransformException as error:
            if clock.now() >= end:
                return (False, str(error)) if with_reason else False
        sleep(_POLL_S)


def _nanoseconds(time: AnyTime) -> int:
    """Return a time of rclpy or of a message, ns."""
    return stamp_to_ns(time) if isinstance(time, TimeMessage) else time.nanoseconds


def _message(target: str, source: str, transform: Transform, stamp_ns: int) -> TransformStamped:
    """Return a transform as a message."""
    message = TransformStamped(child_frame_id=source)
    message.header.frame_id = target
    message.header.stamp = ns_to_stamp(stamp_ns)
    translation = message.transform.translation
    rotation = message.transform.rotation
    translation.x, translation.y, translation.z = transform.translation.tolist()
    rotation.x, rotation.y, rotation.z, rotation.w = transform.quat_xyzw.tolist()
    return message

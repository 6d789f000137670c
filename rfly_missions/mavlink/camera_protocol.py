# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink's camera protocol, the camera's side: still pictures of one camera with its own id.

https://mavlink.io/en/services/camera.html A picture is taken at the place and with the attitude
that the vehicle had at the picture's own time. There are no videos, streams, zoom or focus.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.frames import euler_to_quat, quat_multiply
from rfly_common.geodesy import ned_to_geodetic
from rfly_missions.mavlink.command_protocol import CommandRequest
from rfly_missions.mavlink.flight import Denied, FlightLogic, RemotePilot
from rfly_missions.mavlink.gimbal_protocol import DEVICE_ID
from rfly_missions.mavlink.wire import Address, Send, load_dialect

CAMERA_COMPONENT = 100
"""MAV_COMP_ID_CAMERA."""
HEARTBEAT_S = 1.0
"""Wall time between two heartbeats, s."""
MOST_POSES = 500
"""Number of the vehicle's last poses that pictures are placed by."""
MOST_REMEMBERED = 1000
"""Number of pictures whose message can be requested again."""
MIB = 2.0**20
"""Bytes in a mebibyte, the unit of storage."""


class Optics(NamedTuple):
    """What the camera reports of itself."""

    width: int
    """Pixels."""
    height: int
    """Pixels."""


class Picture(NamedTuple):
    """A picture that has been taken."""

    time: float
    """Simulated time of the picture, s."""
    name: str
    """Name of its file; "" if it could not be written."""


class RemoteCamera(Protocol):
    """The camera of one vehicle and the place of its pictures."""

    def optics(self) -> Optics | None:
        """Return the size of pictures; None: there is no camera."""

    def problem(self) -> str:
        """Return why no picture can be taken; "" if one can."""

    def take(self, number: int, done: Callable[[Picture | None], None]) -> None:
        """Write the next picture; `done` receives None if none comes."""

    def storage(self) -> tuple[int, int]:
        """Return the size of the pictures' disk and what is free of it, bytes."""


class _Series(NamedTuple):
    """A series of pictures under way."""

    interval: float
    """Time between two pictures, s."""
    left: float
    """Number of pictures that are still to be taken; infinite: until it is stopped."""
    due: float
    """Simulated time of the next one, s."""


class _Pose(NamedTuple):
    time: float
    position: Floats
    quat: Floats
    """Of the camera, x y z w, FRD -> NED."""


class CameraProtocol:
    """One camera: `handle` takes commands for its component, `tick` carries on.

    `send` sends from the camera's component.
    """

    def __init__(
        self,
        flight: FlightLogic,
        pilot: RemotePilot,
        camera: RemoteCamera,
        send: Send,
    ) -> None:
        d = self._d = load_dialect()
        self._flight = flight
        self._pilot = pilot
        self._camera = camera
        self._send = send
        self._poses: deque[_Pose] = deque(maxlen=MOST_POSES)
        self._beat_at = -math.inf
        self._time = math.nan
        self._series: _Series | None = None
        self._waits = False
        """True while a picture has been requested and has not come."""
        self._last_sequence = 0.0
        self._count = 0
        self._captured: dict[int, Any] = {}
        """Messages about the last pictures, by number."""

        self._messages: dict[int, Callable[[], Any]] = {
            d.MAVLINK_MSG_ID_CAMERA_INFORMATION: self._information,
            d.MAVLINK_MSG_ID_CAMERA_SETTINGS: self._settings,
            d.MAVLINK_MSG_ID_STORAGE_INFORMATION: self._storage,
            d.MAVLINK_MSG_ID_CAMERA_CAPTURE_STATUS: self._capture_status,
        }
        self._actions: dict[int, Callable[[CommandRequest], None]] = {
            d.MAV_CMD_REQUEST_MESSAGE: self._request,
            d.MAV_CMD_IMAGE_START_CAPTURE: self._start,
            d.MAV_CMD_IMAGE_STOP_CAPTURE: lambda _: self._stop(),
            d.MAV_CMD_SET_CAMERA_MODE: self._set_mode,
            d.MAV_CMD_REQUEST_CAMERA_IMAGE_CAPTURE: lambda c: self._repeat(c.params[0]),
        }
        for number, message in {
            d.MAV_CMD_REQUEST_CAMERA_INFORMATION: self._information,
            d.MAV_CMD_REQUEST_CAMERA_SETTINGS: self._settings,
            d.MAV_CMD_REQUEST_STORAGE_INFORMATION: self._storage,
            d.MAV_CMD_REQUEST_CAMERA_CAPTURE_STATUS: self._capture_status,
        }.items():
            self._actions[number] = self._sending(message)

    def _sending(self, make: Callable[[], Any]) -> Callable[[CommandRequest], None]:
        return lambda _: self._send(make())

    def handle(self, message: Any, address: Address) -> None:
        """Carry out a command for the camera from an address; without a camera nothing answers."""
        is_command = message.get_type() in ("COMMAND_LONG", "COMMAND_INT")
        if not is_command or self._camera.optics() is None:
            return

        command = CommandRequest.of_message(message, address)
        action = self._actions.get(command.number)
        result = "MAV_RESULT_ACCEPTED" if action else "MAV_RESULT_UNSUPPORTED"
        reason = ""
        try:
            if action is not None:
                action(command)
        except Denied as denial:
            result = denial.result
            reason = str(denial)
        self._send(
            self._d.MAVLink_command_ack_message(
                command.number, getattr(self._d, result), 0, 0, *command.sender
            ),
            address,
        )
        if reason:
            warning = self._d.MAV_SEVERITY_WARNING
            self._send(self._d.MAVLink_statustext_message(warning, reason.encode()[:50]))

    def tick(self, wall: float, time: float) -> None:
        """Note the pose, send a heartbeat, and go on with a series."""
        if time < self._time:  # the simulation was reset
            self._poses.clear()
            self._series = None
        self._time = time
        if self._camera.optics() is None:
            return

        self._note_pose()
        if wall - self._beat_at >= HEARTBEAT_S:
            self._beat_at = wall
            d = self._d
            self._send(
                d.MAVLink_heartbeat_message(
                    d.MAV_TYPE_CAMERA, d.MAV_AUTOPILOT_INVALID, 0, 0, d.MAV_STATE_ACTIVE, 3
                )
            )

        series = self._series
        if series is None or self._waits or time < series.due:
            return
        self._series = series._replace(left=series.left - 1.0, due=time + series.interval)
        if self._series.left <= 0.0 or self._camera.problem():
            self._series = None
        if not self._camera.problem():
            self._take()

    def _note_pose(self) -> None:
        pose = self._flight.pose
        if not pose.known or (self._poses and not pose.time > self._poses[-1].time):
            return
        pitch = self._pilot.gimbal_pitch() or 0.0
        quat = quat_multiply(euler_to_quat(pose.euler), euler_to_quat((0.0, pitch, 0.0)))
        self._poses.append(_Pose(pose.time, pose.position.copy(), np.asarray(quat, float)))

    # --- commands

    def _request(self, command: CommandRequest) -> None:
        number, second = command.params[:2]
        if number == self._d.MAVLINK_MSG_ID_CAMERA_IMAGE_CAPTURED:
            self._repeat(second)
            return
        message = self._messages.get(int(number)) if math.isfinite(number) else None
        if message is None:
            raise Denied("", "MAV_RESULT_UNSUPPORTED")
        self._send(message())

    def _start(self, command: CommandRequest) -> None:
        _, interval, count, sequence = command.params[:4]
        if sequence > 0.0 and sequence == self._last_sequence:
            return  # sent again, because the first acknowledgement was lost
        if self._series is not None or self._waits:
            raise Denied("Camera busy")
        if self._camera.problem():
            raise Denied(self._camera.problem())
        interval = interval if math.isfinite(interval) else 0.0
        if not (count >= 0.0 and interval >= 0.0) or (count != 1.0 and interval == 0.0):
            raise Denied("Expected 1 picture, or an interval", "MAV_RESULT_DENIED")

        self._last_sequence = sequence
        self._series = _Series(interval, count or math.inf, self._time)

    def _stop(self) -> None:
        self._series = None

    def _set_mode(self, command: CommandRequest) -> None:
        if command.params[1] != self._d.CAMERA_MODE_IMAGE:
            raise Denied("The camera takes pictures alone", "MAV_RESULT_DENIED")

    def _repeat(self, number: float) -> None:
        message = self._captured.get(int(number)) if math.isfinite(number) else None
        if message is None:
            raise Denied("No such picture", "MAV_RESULT_DENIED")
        self._send(message)

    # --- pictures

    def _take(self) -> None:
        self._waits = True
        self._count += 1
        number = self._count
        self._camera.take(number, lambda picture: self._on_picture(number, picture))

    def _on_picture(self, number: int, picture: Picture | None) -> None:
        self._waits = False
        message = self._image_captured(number, picture)
        self._captured[number] = message
        self._captured.pop(number - MOST_REMEMBERED, None)
        self._send(message)

    def _image_captured(self, number: int, picture: Picture | None) -> Any:
        """Make the message about a picture, at the vehicle's place at the picture's time."""
        origin = self._flight.situation.origin
        name = "" if picture is None else picture.name
        if picture is None or origin is None or not self._poses:
            nowhere = (0, 0, 0, 0, (1.0, 0.0, 0.0, 0.0))
            return self._d.MAVLink_camera_image_captured_message(
                self._ms, 0, 0, *nowhere, number - 1, 0, name.encode()
            )

        # between two poses, or at the newest
        after = bisect_left(self._poses, picture.time, key=lambda pose: pose.time)
        later = self._poses[min(after, len(self._poses) - 1)]
        earlier = self._poses[max(after - 1, 0)]
        times = earlier.time, max(later.time, earlier.time + 1e-9)
        share = float(np.interp(picture.time, times, (0.0, 1.0)))
        position = earlier.position + share * (later.position - earlier.position)
        nearest = later if share > 0.5 else earlier
        x, y, z, w = nearest.quat.tolist()

        latitude, longitude, altitude = ned_to_geodetic(position, origin).tolist()
        ground = self._flight.situation.ground
        height = (ground if math.isfinite(ground) else 0.0) - float(position[2])
        return self._d.MAVLink_camera_image_captured_message(
            round(picture.time * 1e3) % 2**32,
            0,  # the simulation's time is no UTC
            0,
            round(latitude * 1e7),
            round(longitude * 1e7),
            round(altitude * 1e3),
            round(height * 1e3),
            (w, x, y, z),
            number - 1,
            1 if name else 0,
            name.encode(),
        )

    # --- messages

    @property
    def _ms(self) -> int:
        return int(self._time * 1e3) % 2**32 if self._time > 0.0 else 0

    def _information(self) -> Any:
        d = self._d
        optics = self._camera.optics()
        assert optics is not None
        vendor = list(b"rfly_suite".ljust(32, b"\0"))
        model = list(b"color camera".ljust(32, b"\0"))
        has_gimbal = self._pilot.gimbal_pitch() is not None
        unknown = math.nan
        return d.MAVLink_camera_information_message(
            self._ms,
            vendor,
            model,
            0,
            unknown,
            unknown,
            unknown,
            optics.width,
            optics.height,
            0,
            d.CAMERA_CAP_FLAGS_CAPTURE_IMAGE,
            0,
            b"",
            DEVICE_ID if has_gimbal else 0,
        )

    def _settings(self) -> Any:
        image = self._d.CAMERA_MODE_IMAGE
        return self._d.MAVLink_camera_settings_message(self._ms, image, math.nan, math.nan)

    def _storage(self) -> Any:
        d = self._d
        if self._camera.problem():
            none = (0, 0, d.STORAGE_STATUS_NOT_SUPPORTED, 0.0, 0.0, 0.0)
            return d.MAVLink_storage_information_message(self._ms, *none, 0.0, 0.0)
        total, free = (size / MIB for size in self._camera.storage())
        sizes = (total, total - free, free)
        ready = d.STORAGE_STATUS_READY
        return d.MAVLink_storage_information_message(self._ms, 1, 1, ready, *sizes, 0.0, 0.0)

    def _capture_status(self) -> Any:
        series = self._series
        status = (2 if series is not None else 0) + (1 if self._waits else 0)
        interval = series.interval if series is not None else 0.0
        free = 0.0 if self._camera.problem() else self._camera.storage()[1] / MIB
        return self._d.MAVLink_camera_capture_status_message(
            self._ms, status, 0, interval, 0, free, self._count
        )

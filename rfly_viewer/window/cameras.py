# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cameras of all browsers: commands, vehicle following, new maps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import viser
from numpy.typing import ArrayLike, NDArray

from rfly_common.frames import ned_to_enu
from rfly_terrain.height_map.height_map import HeightMap
from rfly_viewer.scene.picking import ground_distance
from rfly_viewer.scene.scene_commands import MoveCamera
from rfly_viewer.scene.vehicle_table import WorldPoses
from rfly_viewer.scene.viewpoint import (
    ALL_VEHICLES,
    FROM_BEHIND_M,
    FollowingCamera,
    Viewpoint,
    from_browser,
    on_board,
    overview,
    vertical_fov,
)

DEFAULT_VERTICAL_FOV = math.radians(50.0)
"""Nearest and farthest point about which the mouse turns, m."""
_ORBIT_M = (3.0, 2000.0)
FRONT_CAMERA = Viewpoint(np.array((0.3, 0.0, 0.05)), np.zeros(3))
"""Viewpoint of camera 1 relative to a vehicle: forward, right, down of its origin, m.

Public scripts put it there by RflyCameraPosAng.
"""
RIGHT_CAMERA = Viewpoint(np.array((0.05, 0.3, 0.05)), np.array((0.0, 0.0, math.pi / 2)))
"""Viewpoint of camera 2, as that of camera 1; the side is RflySim's, the place is ours."""
MOUNTS = (None, FRONT_CAMERA, RIGHT_CAMERA)
"""Viewpoints of the cameras of key V by number; None is outside."""
_AHEAD_M = 20.0
_LOW_ELEVATION_DEG = 14.0
"""Elevation of the view that goes with all vehicles: hills and sky are in it."""
_NEAR_M = 0.1
"""Least distance at which things are drawn, m."""
_NEAR_SHARE = 0.02
"""The same as a share of the height above the ground, or of the way to the nearest vehicle.

Depths have 24 bits on many graphics cards. With 0.1 m, things at 10 km would have to be 60 m apart
for the nearer one to hide the other.
"""
_MOST_DOUBLED = 3
"""Times that it is doubled, at most: to 0.8 m, because viser's page draws the sky 1 m ahead."""
_FAR_M = 200_000.0


class Cameras:
    """One camera for each browser; commands move all of them, as all of them show this window."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._horizontal: float | None = None
        self._aspects: dict[int, float] = {}
        self._follows: int | None = None
        self._following: dict[int, FollowingCamera] = {}
        """Cameras by browser."""
        self._mount: Viewpoint | None = None
        """Viewpoint on the followed vehicle; None: from outside."""
        self._mount_number = 0
        self._stands = False
        """True if the cameras from outside stay where they are, and turn to the vehicle."""
        self._untouched = True
        """True before a command has moved the camera, or a vehicle was seen."""
        self._place: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None = None

        server.initial_camera.near = _NEAR_M
        server.initial_camera.far = _FAR_M
        server.initial_camera.fov = DEFAULT_VERTICAL_FOV
        server.on_client_connect(self._prepare)

    def show_map(self, terrain: HeightMap) -> None:
        """Look at all of the ground."""
        x_min, x_max, y_min, y_max = terrain.bounds
        self._untouched = True
        low = (x_min, y_min, terrain.z_min)
        high = (x_max, y_max, terrain.z_max)

        position, look_at = overview(low, high, DEFAULT_VERTICAL_FOV)
        middle = look_at.copy()
        middle[2] = terrain.altitude(float(middle[0]), float(middle[1]))
        self._go((position + middle) / 2, middle, np.array((0.0, 0.0, 1.0)))

    def show_all(self, poses: WorldPoses, terrain: HeightMap) -> None:
        """Look at all vehicles; at the map if there are none."""
        if not len(poses):
            self.show_map(terrain)
            return
        position, look_at = _overview(poses)
        ground = terrain.altitude(float(position[0]), float(position[1]))
        position[2] = max(position[2], ground + 3.0)
        self._go(position, look_at, np.array((0.0, 0.0, 1.0)))

    def mount(self, camera: int | None) -> None:
        """Choose the camera of a followed vehicle, as by RflyChangeViewKeyCmd V.

        1 is on the vehicle, looking ahead, 2 looks to the right, 0 is outside. None: the next one.
        """
        self._mount_number = (self._mount_number + 1) % len(MOUNTS) if camera is None else camera
        self._mount = MOUNTS[self._mount_number]
        self._stands = False
        self._follows = None

    def stand(self, stands: bool) -> None:
        """Let the cameras stay where they are and look at the followed vehicle, or go with it."""
        self._untouched = False
        self._stands = stands
        self._follows = None

    def look(self, yaw: float) -> None:
        """Look level in this direction, rad from north to the east, from where each camera is."""
        self._untouched = False
        for client in self._server.get_clients().values():
            here = from_browser(client.camera.position, client.camera.wxyz)
            pose = Viewpoint(here.position_ned, np.array((0.0, 0.0, yaw)))
            forward, up = pose.axes_enu()
            _set(client, pose.position_enu, pose.position_enu + _AHEAD_M * forward, up)

    def move(self, command: MoveCamera, terrain: HeightMap) -> None:
        """Move the cameras, as by RflyCameraPosAng, or RflyCameraPosAngAdd.

        The latter is relative to each camera. On board both are relative to the body.
        """
        self._untouched = False
        pose = Viewpoint(np.array(command.position_ned), np.array(command.euler))
        if self._mount is not None:
            self._mount = self._mount.moved_by(pose) if command.relative else pose
        elif not command.relative:
            self._go(*_orbit(pose, terrain))
        else:
            for client in self._server.get_clients().values():
                here = from_browser(client.camera.position, client.camera.wxyz)
                _set(client, *_orbit(here.moved_by(pose), terrain))

    def set_fov(self, horizontal: float) -> None:
        """Set the angle of view, as by RflyCameraFovDegrees; it stays when a browser is resized."""
        self._horizontal = horizontal
        self._aspects.clear()

    def current(self) -> tuple[Viewpoint, float, int, int] | None:
        """Return the camera of the browser that came first; None if there is none.

        It is viewpoint, horizontal angle in degrees, width and height in pixels.
        """
        clients = self._server.get_clients()
        if not clients:
            return None
        camera = clients[min(clients)].camera
        horizontal = 2 * math.atan(math.tan(camera.fov / 2) * camera.aspect)
        pose = from_browser(camera.position, camera.wxyz)
        return pose, math.degrees(horizontal), camera.image_width, camera.image_height

    def update(self, poses: WorldPoses, followed: int | None, terrain: HeightMap) -> None:
        """Follow, keep the angle of view, and look at the first vehicles that come."""
        if self._untouched and len(poses):
            self.show_all(poses, terrain)
            self._untouched = False

        # the angle of view
        clients = self._server.get_clients()
        if self._horizontal is not None:
            for number, client in clients.items():
                aspect = client.camera.aspect
                if self._aspects.get(number) != aspect:
                    self._aspects[number] = aspect
                    client.camera.fov = vertical_fov(self._horizontal, aspect)

        # around all vehicles
        if followed == ALL_VEHICLES and len(poses):
            place, target = _overview(poses, _LOW_ELEVATION_DEG)
            self._follow(terrain, ALL_VEHICLES, target, place - target)
            return

        # from a followed vehicle, or after it
        row = None if followed is None else poses.row(followed)
        if row is None or followed is None:
            self._follows = None
            return
        if self._mount is not None:
            pose = on_board(poses.position_ned[row], poses.quat_ned_frd[row], self._mount)
            position = pose.position_enu
            forward, up = pose.axes_enu()
            for client in clients.values():
                _set(client, position, position + _AHEAD_M * forward, up)
            self._follows = None
            return

        self._follow(terrain, followed, np.asarray(ned_to_enu(poses.position_ned[row]), np.float64))

    def clip(self, poses: WorldPoses, terrain: HeightMap) -> None:
        """Set how near to each camera things are drawn."""
        vehicles = ned_to_enu(poses.position_ned)
        for client in self._server.get_clients().values():
            place = client.camera.position
            x, y, z = place.tolist()
            least = z - terrain.altitude(x, y)
            if len(poses):
                least = min(least, float(np.linalg.norm(vehicles - place, axis=1).min()))

            # few steps, because each change is sent
            doubled = math.floor(math.log2(max(1.0, _NEAR_SHARE * least / _NEAR_M)))
            client.camera.near = _NEAR_M * 2.0 ** min(doubled, _MOST_DOUBLED)

    def _follow(
        self,
        terrain: HeightMap,
        followed: int,
        target: NDArray[Any],
        back: ArrayLike = FROM_BEHIND_M,
    ) -> None:
        """Keep every camera at its vector from the target, at first `back`, ENU, m."""
        if self._follows != followed:
            self._follows = followed
            self._following = {}

        for number, client in self._server.get_clients().items():
            if self._stands:
                _set(client, client.camera.position, target, np.array((0.0, 0.0, 1.0)))
                continue
            following = self._following.setdefault(number, FollowingCamera(back))
            place = following.place(target, client.camera.position, client.camera.look_at, terrain)
            _set(client, place, target, np.array((0.0, 0.0, 1.0)))

    def _go(self, position: NDArray[Any], look_at: NDArray[Any], up: NDArray[Any]) -> None:
        """Place the cameras of all browsers, and of later ones."""
        self._place = (position, look_at, up)
        initial = self._server.initial_camera
        initial.up = up
        initial.position = position
        initial.look_at = look_at
        for client in self._server.get_clients().values():
            _set(client, position, look_at, up)

    def _prepare(self, client: viser.ClientHandle) -> None:
        client.camera.max_orbit_distance = _FAR_M
        if self._place is not None:
            _set(client, *self._place)


def _overview(poses: WorldPoses, elevation_deg: float = 32.0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return (position, point looked at) in ENU that show all vehicles."""
    positions = ned_to_enu(poses.position_ned)
    low = positions.min(axis=0) - 4.0
    high = positions.max(axis=0) + 4.0
    return overview(low, high, DEFAULT_VERTICAL_FOV, elevation_deg)


def _set(
    client: viser.ClientHandle, position: NDArray[Any], look_at: NDArray[Any], up: NDArray[Any]
) -> None:
    with client.atomic():
        client.camera.up_direction = up
        client.camera.position = position
        client.camera.look_at = look_at


def _orbit(pose: Viewpoint, terrain: HeightMap) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return (position, point that the mouse turns about, up).

    The point is where the view meets the ground, if it does.
    """
    position = pose.position_enu
    forward, _ = pose.axes_enu()
    distance = ground_distance(terrain, position, forward)
    low, high = _ORBIT_M
    radius = float(np.clip(50.0 if distance is None else distance, low, high))
    return position, position + forward * radius, pose.up_enu()

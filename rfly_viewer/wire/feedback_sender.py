# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Feedback on UDP 20006 as RflySim3D sends it: cameras, vehicles, changes, contacts.

| sent                  | when                                                                   |
| --------------------- | ---------------------------------------------------------------------- |
| CameraData            | after RflyReqObjData, once                                             |
| CoptReqData           | after RflyReqObjData, once                                             |
| reqVeCrashData        | while RflyReqVehicleData 1 counts, for each vehicle that has moved, or |
|                       | whose contact has changed                                              |
| CopterSimCrash        | in collision mode (key P), once for each contact that begins; targetID |
|                       | as CrashType                                                           |

Positions are NED in metres. angQuat is w x y z of FRD in NED, a reading that RflySim's
documentation does not settle.
"""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_collision.shapes import vehicle_meshes as models
from rfly_common.arrays import Ints
from rfly_common.errors import CommandError
from rfly_common.frames import euler_to_quat, flu_to_frd, quat_rotate, quat_to_euler
from rfly_terrain.height_map.height_map import HeightMap
from rfly_ue_bridge.codec.addresses import FEEDBACK_PORT
from rfly_ue_bridge.codec.from_rflysim3d import (
    CAMERA,
    CAMERA_DATA,
    COPT_REQ_DATA,
    COPTER_SIM_CRASH,
    CRASH_GROUND,
    CRASH_NONE,
    REQ_VE_CRASH_DATA,
    VEHICLE,
)
from rfly_ue_bridge.sockets.udp_sender import resolve
from rfly_viewer.scene.contacts import VehicleContacts, find_contacts
from rfly_viewer.scene.scene_commands import RequestObject
from rfly_viewer.scene.vehicle_table import VehicleTable, WorldPoses
from rfly_viewer.scene.viewpoint import Viewpoint

REPORT_EVERY_S = 0.1
"""Time between two reports, s."""


class FeedbackSender:
    """Sender to one address, by default 127.0.0.1:20006.

    Without a listener there, nothing fails.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = FEEDBACK_PORT) -> None:
        self._address = (resolve(host), port)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self.sent = 0
        self._next_s = 0.0
        self._reported_s = 0.0
        self._touching: dict[int, int] = {}

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def answer(
        self,
        request: RequestObject,
        poses: WorldPoses,
        camera: tuple[Viewpoint, float, int, int] | None,
        now_s: float,
    ) -> None:
        """Send the answer to a request.

        `camera` is viewpoint, horizontal angle (deg), width and height in pixels. CommandError if
        there is no answer: for a vehicle that was never seen, a camera without a browser, or a
        scene object, as the viewer has none.
        """
        if request.kind == CAMERA:
            if camera is None:
                raise CommandError(
                    "RflyReqObjData 0: no browser shows the scene, so there is no camera"
                )
            self._send(camera_packet(int(request.name), *camera, now_s))
        elif request.kind == VEHICLE:
            row = poses.row(int(request.name))
            if row is None:
                raise CommandError(f"RflyReqObjData 1: no vehicle {request.name} was seen yet")
            self._send(vehicle_packet(poses, row, now_s))
        else:
            raise CommandError(
                f"RflyReqObjData 2 {request.name}: the viewer has no objects but vehicles"
            )

    def report(
        self,
        table: VehicleTable,
        poses: WorldPoses,
        terrain: HeightMap,
        *,
        data: bool,
        crashes: bool,
        now_s: float,
    ) -> None:
        """Send reqVeCrashData (`data`) and CopterSimCrash (`crashes`) where they are due."""
        if not (data or crashes):
            self._touching.clear()
            self._reported_s = now_s
            return
        if now_s < self._next_s:
            return
        self._next_s = now_s + REPORT_EVERY_S
        contacts = find_contacts(poses, terrain)
        known = [self._touching.get(vehicle_id, CRASH_NONE) for vehicle_id in poses.id.tolist()]
        is_new = contacts.crash_type != np.array(known, np.int64)
        touches = contacts.crash_type != CRASH_NONE

        if data:
            changed = (table["changed_s"] > self._reported_s) | is_new
            for datagram in crash_data(table, poses, contacts, np.flatnonzero(changed), now_s):
                self._send(datagram)
        if crashes:
            for row in np.flatnonzero(is_new & touches).tolist():
                crash = COPTER_SIM_CRASH.make(
                    copterID=int(poses.id[row]), targetID=int(contacts.crash_type[row])
                )
                self._send(crash.encode())

        self._touching = dict(
            zip(poses.id[touches].tolist(), contacts.crash_type[touches].tolist(), strict=True)
        )
        self._reported_s = now_s

    def _send(self, datagram: bytes) -> None:
        try:
            self._socket.sendto(datagram, self._address)
        except OSError:  # no route, or a full buffer: a datagram may be lost
            return
        self.sent += 1


def camera_packet(
    seq_id: int, pose: Viewpoint, horizontal_deg: float, width: int, height: int, now_s: float
) -> bytes:
    """Return CameraData of the view in a browser; TypeID 1, a colour camera."""
    return CAMERA_DATA.make(
        SeqID=seq_id,
        TypeID=1,
        DataHeight=height,
        DataWidth=width,
        CameraFOV=horizontal_deg,
        PosUE=pose.position_ned.tolist(),
        angEuler=pose.euler.tolist(),
        angQuat=_wxyz(euler_to_quat(pose.euler)),
        timestamp=now_s,
    ).encode()


def vehicle_packet(poses: WorldPoses, row: int, now_s: float) -> bytes:
    """Return CoptReqData of one vehicle: its origin, and the middle and half size of its box."""
    kind = poses.kind[row]
    scale = poses.scale[row]
    quat = poses.quat_ned_frd[row]
    low = models.BOX_LOW[kind] * scale
    high = models.BOX_HIGH[kind] * scale
    middle = poses.position_ned[row] + quat_rotate(quat, flu_to_frd((low + high) / 2))

    return COPT_REQ_DATA.make(
        copterID=int(poses.id[row]),
        PosUE=poses.position_ned[row].tolist(),
        angEuler=quat_to_euler(quat).tolist(),
        angQuat=_wxyz(quat),
        boxOrigin=middle.tolist(),
        boxExtent=((high - low) / 2).tolist(),
        timestamp=now_s,
    ).encode()


def crash_data(
    table: VehicleTable, poses: WorldPoses, contacts: VehicleContacts, rows: Ints, now_s: float
) -> list[bytes]:
    """Return one reqVeCrashData for each of these rows.

    `ray` is 0, as the viewer measures no distances.
    """
    records = np.zeros(len(rows), REQ_VE_CRASH_DATA.dtype)
    kinds = contacts.crash_type[rows]

    # the vehicle
    records["checksum"] = REQ_VE_CRASH_DATA.checksums[0]
    records["copterID"] = poses.id[rows]
    records["vehicleType"] = table["vehicle_type"][rows]
    records["CrashType"] = kinds
    records["runnedTime"] = now_s
    records["VelE"] = table["velocity_ned"][rows]
    records["PosE"] = poses.position_ned[rows]

    # the contact
    records["AngEuler"] = quat_to_euler(poses.quat_ned_frd[rows])
    records["MotorRPMS"] = poses.motor_speed_rpm[rows, None]
    records["CrashPos"] = np.where((kinds != CRASH_NONE)[:, None], contacts.point_ned[rows], 0.0)
    hits_vehicle = (kinds != CRASH_NONE) & (kinds != CRASH_GROUND)
    other = np.minimum(np.searchsorted(poses.id, kinds), max(len(poses) - 1, 0))
    if len(poses):
        records["targetPos"] = np.where(hits_vehicle[:, None], poses.position_ned[other], 0.0)
    names = {kind: str(kind).encode() for kind in np.unique(kinds).tolist()}
    names |= {CRASH_GROUND: b"ground", CRASH_NONE: b""}
    records["CrashedName"] = [names[kind] for kind in kinds.tolist()]

    return [record.tobytes() for record in records]


def _wxyz(quat_xyzw: NDArray[Any]) -> list[float]:
    return np.roll(quat_xyzw, 1).tolist()

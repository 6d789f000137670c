"""Feedback on UDP 20006 as RflySim3D sends it: cameras, vehicles, changes, contacts.

| sent | when | | --- | --- | | CameraData, CoptReqData | after RflyReqObjData, once | |
reqVeCrashData | while RflyReqVehicleData 1 counts, for vehicles that moved or whose contact changed
| | CopterSimCrash | in collision mode (key P), once for each contact that begins; targetID as
CrashType |

Positions are NED in metres. angQuat is w x y z of FRD in NED, a reading that RflySim's
documentation does not settle.

Contacts are those of a Scene of `rfly_collision`. The ground counts where a shape lies more than
GROUND_TOLERANCE_M within it: vehicles that stand or have landed do not crash. Vehicles that are
kept on the ground stand along its slope here. There are no static objects.
"""

from __future__ import annotations

import functools
import socket
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_collision.narrow_phase.bodies import TERRAIN, Bodies
from rfly_collision.world.collision_world import MAX_DISTANCE, SCALES
from rfly_collision.world.ground_fit import stand_on_ground
from rfly_collision.world.scene import Scene, contacts_or_ground
from rfly_common.arrays import Floats, Ints
from rfly_common.errors import CommandError
from rfly_common.frames import (
    enu_to_ned,
    euler_to_quat,
    flu_to_frd,
    ned_to_enu,
    quat_ned_frd_to_enu_flu,
    quat_rotate,
    quat_to_euler,
)
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
from rfly_viewer.models import vehicle_models as models
from rfly_viewer.models.vehicle_models import SHAPES
from rfly_viewer.scene.camera import CameraPose
from rfly_viewer.scene.console import RequestObject
from rfly_viewer.scene.vehicle_table import VehicleTable, WorldPoses

GROUND_TOLERANCE_M = 0.1
MAX_PAIRS = 20_000
"""of overlapping boxes; where there are more (200 vehicles in one place), only the ground is tested
"""


@dataclass(frozen=True, eq=False)
class Contacts:
    """For each vehicle of some poses, in their order."""

    crash_type: Ints
    """-2 ground, 0 none, else the id of the vehicle that is touched deepest; a vehicle counts
    before the ground
    """
    point_ned: Floats
    """(n, 3) m: the middle of the contact; the vehicle's position without one"""


def find_contacts(poses: WorldPoses, terrain: HeightMap) -> Contacts:
    """Contacts of all vehicles at one moment."""
    crash_type = np.full(len(poses), CRASH_NONE, np.int64)
    point = poses.position_ned.copy()
    size = np.abs(poses.scale)
    good = ((size >= SCALES[0]) & (size <= SCALES[1])).all(axis=1)
    rows = np.flatnonzero(good & (np.abs(poses.position_ned) < MAX_DISTANCE).all(axis=1))
    found, _ = contacts_or_ground(_scene(terrain), _bodies(poses, rows, terrain))
    position = np.asarray(enu_to_ned(found.position))
    on_ground = (found.b == TERRAIN) & (found.depth > GROUND_TOLERANCE_M)
    deep = rows[found.a[on_ground]]
    crash_type[deep] = CRASH_GROUND
    point[deep] = position[on_ground]
    pairs = np.flatnonzero(found.b != TERRAIN)
    pairs = pairs[
        np.argsort(found.depth[pairs], kind="stable")
    ]  # of several the last one written counts
    ends = np.column_stack((found.a[pairs], found.b[pairs]))
    one = rows[ends.reshape(-1)]
    other = rows[ends[:, ::-1].reshape(-1)]
    which = np.repeat(pairs, 2)
    crash_type[one] = poses.id[other]
    point[one] = position[which]
    return Contacts(crash_type, point)


def _bodies(poses: WorldPoses, rows: Ints, terrain: HeightMap) -> Bodies:
    kind = poses.kind[rows]
    scale = poses.scale[rows]
    position: Any = np.asarray(ned_to_enu(poses.position_ned[rows]))
    orientation: Any = np.asarray(quat_ned_frd_to_enu_flu(poses.quat_ned_frd[rows]))
    fit = np.flatnonzero(poses.on_ground[rows])
    if len(fit):
        position[fit], orientation[fit] = stand_on_ground(
            terrain,
            position[fit],
            orientation[fit],
            SHAPES.column("centre_height")[kind[fit]] * scale[fit, 2],
            SHAPES.footprint[kind[fit]] * np.abs(scale[fit, :2]),
            SHAPES.column("upright")[kind[fit]] > 0,
        )
    return Bodies(*SHAPES.touching(kind, scale), position, orientation)


@functools.lru_cache(maxsize=1)
def _scene(terrain: HeightMap) -> Scene:
    return Scene(terrain, "void", MAX_PAIRS)


REPORT_EVERY_S = 0.1
"""Reports leave at 10 Hz."""


class FeedbackSender:
    """Sends to one address, by default 127.0.0.1:20006. Nobody listening is no error."""

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
        camera: tuple[CameraPose, float, int, int] | None,
        now_s: float,
    ) -> None:
        """Send what was asked for. `camera` is pose, horizontal angle (deg), width and height in
        pixels.

        CommandError says what there is no answer to: a vehicle that was never seen, a camera
        without a browser, scene objects, which the viewer does not have.
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
        before = np.array([self._touching.get(i, CRASH_NONE) for i in poses.id.tolist()], np.int64)
        new = contacts.crash_type != before
        if data:
            changed = (table["changed_s"] > self._reported_s) | new
            for datagram in crash_data(table, poses, contacts, np.flatnonzero(changed), now_s):
                self._send(datagram)
        if crashes:
            for row in np.flatnonzero(new & (contacts.crash_type != CRASH_NONE)).tolist():
                crash = COPTER_SIM_CRASH.make(
                    copterID=int(poses.id[row]), targetID=int(contacts.crash_type[row])
                )
                self._send(crash.encode())
        touching = np.flatnonzero(contacts.crash_type != CRASH_NONE)
        self._touching = dict(
            zip(poses.id[touching].tolist(), contacts.crash_type[touching].tolist(), strict=True)
        )
        self._reported_s = now_s

    def _send(self, datagram: bytes) -> None:
        try:
            self._socket.sendto(datagram, self._address)
        except OSError:  # no route, or a full buffer: feedback is as UDP is
            return
        self.sent += 1


def camera_packet(
    seq_id: int, pose: CameraPose, horizontal_deg: float, width: int, height: int, now_s: float
) -> bytes:
    """CameraData of the view in a browser; TypeID 1, a colour camera."""
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
    """CoptReqData of one vehicle: its origin, and the middle and half size of its box."""
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
    table: VehicleTable, poses: WorldPoses, contacts: Contacts, rows: Ints, now_s: float
) -> list[bytes]:
    """One reqVeCrashData for each of these rows; `ray` is 0, as the viewer measures no distances."""
    records = np.zeros(len(rows), REQ_VE_CRASH_DATA.dtype)
    kinds = contacts.crash_type[rows]
    records["checksum"] = REQ_VE_CRASH_DATA.checksums[0]
    records["copterID"] = poses.id[rows]
    records["vehicleType"] = table["vehicle_type"][rows]
    records["CrashType"] = kinds
    records["runnedTime"] = now_s
    records["VelE"] = table["velocity_ned"][rows]
    records["PosE"] = poses.position_ned[rows]
    records["CrashPos"] = np.where((kinds != CRASH_NONE)[:, None], contacts.point_ned[rows], 0.0)
    other = np.minimum(np.searchsorted(poses.id, kinds), max(len(poses) - 1, 0))
    hits = (kinds != CRASH_NONE) & (kinds != CRASH_GROUND)
    records["targetPos"] = (
        np.where(hits[:, None], poses.position_ned[other], 0.0) if len(poses) else 0.0
    )
    records["AngEuler"] = quat_to_euler(poses.quat_ned_frd[rows])
    records["MotorRPMS"] = poses.motor_speed_rpm[rows, None]
    names = {
        kind: b"ground" if kind == CRASH_GROUND else str(kind).encode()
        for kind in np.unique(kinds).tolist()
    }
    records["CrashedName"] = [b"" if kind == CRASH_NONE else names[kind] for kind in kinds.tolist()]
    return [record.tobytes() for record in records]


def _wxyz(quat_xyzw: NDArray[Any]) -> list[float]:
    return np.roll(quat_xyzw, 1).tolist()

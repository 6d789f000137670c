# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""UE4CtrlAPI: RflySim's control interface of RflySim3D, for RflySim's unchanged scripts.

    from rfly_ue_bridge import UE4CtrlAPI

    ue = UE4CtrlAPI()
    ue.sendUE4Cmd("RflyChangeMapbyName Grasslands", 0)
    ue.sendUE4Pos(1001, 200150, 0, [43.943, 1.620, -11.465], [0, 0, 0])

Positions are m NED, angles rad (roll, pitch, yaw of FRD in NED), velocities m/s NED, motor speeds
rpm. These rules hold for every sending call:

- `windowID` k >= 0 sends one datagram to port 20010 + k, a negative one to each of 20010, 20011 and
  20012.
- A vector is a list or a one-dimensional array. A shorter one than its field is filled with zeros,
  a longer one is cut. Anything else counts as a number and fills the first element (`Scale=2` is 2,
  0, 0). No call changes its arguments.
- Ids, types and flags are integers, Python's or NumPy's. A value that does not fit raises
  `struct.error`, and nothing is sent.
- NaN and infinity are sent unchanged, and a number too large for a float becomes infinity.

`RflySim3D` serves new code better: it refuses a value that is no number or does not fit, and never
waits.
"""

from __future__ import annotations

import functools
import math
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

import numpy as np

from rfly_ue_bridge.codec import to_rflysim3d
from rfly_ue_bridge.codec.addresses import LAN_GROUP, WINDOW_PORT
from rfly_ue_bridge.codec.command_words import MAX_LAN_BYTES, MAX_LONG_BYTES, MAX_SHORT_BYTES
from rfly_ue_bridge.codec.commands import MAP_CHANGE_SECONDS
from rfly_ue_bridge.codec.from_rflysim3d import CAMERA, OBJECT, VEHICLE
from rfly_ue_bridge.codec.packets import PacketType
from rfly_ue_bridge.sdk import listener
from rfly_ue_bridge.sdk.listener import (
    CameraData,
    CoptReqData,
    ObjReqData,
    PX4SILIntFloat,
    VisionSensorReqNew,
    reqVeCrashData,
)

_WAVELENGTHS = np.arange(8.0, 14.0, 0.01)
"""Wavelengths that the SDK adds up, µm."""
_HC_PER_K = 1.43879e4
"""Second radiation constant h c / k, µm K."""


class Radiation:
    """Objects of a scene. Each map has its own, so there are none at first."""

    def __init__(self) -> None:
        self.tempEmissivity: Sequence[Sequence[Any]] = ()
        """Rows of name (or a part of it), temperature in K, emissivity 0 … 1, and kind of name.

        The kind is True or "True" for an actor's name, else it is that of a mesh component. An
        array of texts, as in the SDK, works too.
        """

    def stencil_values(self) -> list[tuple[str, int, bool]]:
        """Return (name, stencil value, is an actor) of each row.

        Stencil values are 0 … 255; the brightest object has 255.
        """
        if not len(self.tempEmissivity):
            return []

        names, temperatures, emissivities, actors = zip(*self.tempEmissivity, strict=True)
        kelvin = np.array(temperatures, float)[:, None]
        emissivity = np.array(emissivities, float)
        if not ((kelvin > 0.0).all() and ((emissivity > 0.0) & (emissivity <= 1.0)).all()):
            raise ValueError(
                "tempEmissivity: expected temperatures above 0 K and emissivities above 0, up to 1"
            )

        # trapezoids of Planck's law
        spectrum = 1.0 / (_WAVELENGTHS**5 * np.expm1(_HC_PER_K / (_WAVELENGTHS * kelvin)))
        radiance = emissivity * (spectrum[:, 1:] + spectrum[:, :-1]).sum(axis=1)
        values = (radiance / radiance.max() * 255.0).astype(int).tolist()
        return [
            (str(name), value, str(actor) == "True")
            for name, value, actor in zip(names, values, actors, strict=True)
        ]


__all__ = [  # what a script finds in the SDK's module of that name
    "CameraData",
    "CoptReqData",
    "ObjReqData",
    "PX4SILIntFloat",
    "UE4CtrlAPI",
    "VisionSensorReqNew",
    "reqVeCrashData",
]

WINDOWS = 3
"""Number of windows that a negative windowID means."""

_MAP_CHANGE_PAUSE_S = 0.5
_BETWEEN_REQUESTS_S = 0.1
_AFTER_STENCIL_S = 0.1
_LISTENER_START_S = 1.0
_LISTENER_END_S = 0.5
_ACTIONS = 16

# The SDK's defaults are lists, and a tuple would count as a number; no call changes them.
_ZEROS = [0, 0, 0]
_ONES = [1, 1, 1]
_RED = [255, 0, 0]
_ID_0 = [0]
_NO_NAME = [""]
_NO_MOTORS = [0] * to_rflysim3d.MOTORS
_NO_ACTIONS = [0] * _ACTIONS


def fill_list(data: Any, length: int) -> list[Any]:
    """Return a list of that length, by the SDK's rule for vectors (see above).

    It is never `data` itself where that would change.
    """
    if isinstance(data, np.ndarray):
        data = data.tolist()
    if not isinstance(data, list):
        return [data] + [0] * (length - 1)
    return data[:length] + [0] * (length - len(data))


def _native(packet_type: PacketType) -> Struct:
    """Return the native form of a packet.

    It rounds a number too large for a float to infinity.
    """
    order = "@" if sys.byteorder == "little" else "<"
    native = Struct(order + packet_type.struct.format.lstrip("<"))
    assert native.size == packet_type.size  # none that is sent here has a padding byte
    return native


def _packer(packet_type: PacketType) -> Callable[..., bytes]:
    """Return a function that packs one value for each field behind the checksum.

    Vectors are filled by `fill_list`.
    """
    pack = _native(packet_type).pack
    counts = [1 if field.is_text else field.count for field in packet_type.fields[1:]]

    def pack_values(*values: Any, ground: Any = False) -> bytes:
        flat: list[Any] = [packet_type.checksums[1 if ground else 0]]
        for value, count in zip(values, counts, strict=True):
            if count == 1:
                flat.append(value)
            elif type(value) is list and len(value) == count:  # most are as long as the field
                flat += value
            else:
                flat += fill_list(value, count)
        return pack(*flat)

    return pack_values


_pack_command_short = _packer(to_rflysim3d.UE4_CMD0)
_pack_command_long = _packer(to_rflysim3d.UE4_CMD)
_pack_command_lan = _packer(to_rflysim3d.UE4_CMD_NET)
_pack_simple = _packer(to_rflysim3d.SOUT2_SIMULATOR_SIMPLE)
_pack_scaled = _packer(to_rflysim3d.SOUT2_SIMULATOR_SIMPLE1)
_pack_time = _packer(to_rflysim3d.SOUT2_SIMULATOR_SIMPLE_TIME)
_pack_time_old = _packer(to_rflysim3d.SOUT2_SIMULATOR_SIMPLE_TIME_OLD)
_pack_full = _packer(to_rflysim3d.SOUT2_SIMULATOR)
_pack_100 = _packer(to_rflysim3d.MULTI3D_DATA_100_NEW)
_pack_20 = _packer(to_rflysim3d.MULTI3D_DATA_2_NEW)
_pack_action = _packer(to_rflysim3d.UE4_EXT_MSG)
_pack_attachments = _packer(to_rflysim3d.VEHICLE_ATTATCH_25)
# RGB is never filled
_pack_label = functools.partial(
    _native(to_rflysim3d.COPTER_MSG).pack, to_rflysim3d.COPTER_MSG.checksums[0]
)


def _records_of(kind: str, text: str) -> property:
    """Return an attribute that reads the listener's records of a class of the SDK."""
    return property(lambda api: api._listener.records[kind], doc=text)


class UE4CtrlAPI:
    """Sender to RflySim3D at `ip`, and listener to it on UDP 20006 after `initUE4MsgRec`.

    A broadcast address is allowed. Every sending call returns None; an address that cannot be
    reached raises OSError.
    """

    def __init__(self, ip: str = "127.0.0.1") -> None:
        self.ip = ip
        self.startTime = time.time()
        self.udp_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp_socket.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)

        # what scripts read
        self.CopterID = 1
        """Vehicle whose crashes `isVehicleCrash` tells."""
        self.isVehicleCrash = False
        """True once this vehicle has run into another one; the script sets it back."""
        self.isVehicleCrashID = -10
        """The vehicle that was hit last."""
        self.trueMsgEvent = threading.Event()
        """Event that every answer sets; a script that waits for an answer clears it."""
        self.hasMsgEvent = threading.Event()
        """The same for scripts that wait for this one, which RflySim's SDK never sets."""
        self.radiation = Radiation()

        self._map_ready_s = -math.inf
        self._listener = listener.SdkListener(self._take_answer)

    # ---- console commands

    def sendUE4Cmd(self, cmd: str | bytes, windowID: int = -1) -> None:
        """Send a console command, and wait 1 s if it changes the map.

        A command above 249 bytes prints an error and is not sent.
        """
        raw = cmd.encode() if isinstance(cmd, str) else cmd
        if len(raw) <= MAX_SHORT_BYTES:
            datagram = _pack_command_short(raw)
        elif len(raw) <= MAX_LONG_BYTES:
            datagram = _pack_command_long(raw)
        else:
            print("Error: Cmd is too long")
            return
        self._send(datagram, windowID)
        self._wait_for_map(raw)

    def sendUE4CmdNet(self, cmd: str | bytes) -> None:
        """Send a console command to every RflySim3D of the network.

        It is multicast to 224.0.0.10:20009, and has at most 91 bytes.
        """
        raw = cmd.encode() if isinstance(cmd, str) else cmd
        if len(raw) > MAX_LAN_BYTES:
            print("Error: Cmd is too long")
            return
        self.udp_socket.sendto(_pack_command_lan(raw), LAN_GROUP)
        self._wait_for_map(raw)

    def waitForMapLoaded(self, mapName: str = "", timeout: float = math.inf) -> bool:
        """Wait until a map to which this object has changed takes vehicles, at most `timeout`, s.

        RflySim3D does not report it. The time that it needs counts from the command, whatever
        `mapName` is. Return False if the time-out was too short.
        """
        rest_s = self._map_ready_s - time.monotonic()
        time.sleep(max(0.0, min(rest_s, timeout)))
        return rest_s <= timeout

    # ---- one vehicle

    def sendUE4Pos(
        self,
        copterID: int = 1,
        vehicleType: int = 3,
        MotorRPMSMean: float = 0,
        PosE: Any = _ZEROS,
        AngEuler: Any = _ZEROS,
        windowID: int = -1,
    ) -> None:
        """Create or move a vehicle; all eight motors turn with MotorRPMSMean."""
        self.sendUE4PosNew(
            copterID,
            vehicleType,
            PosE,
            AngEuler,
            [0, 0, 0],
            [MotorRPMSMean] * to_rflysim3d.MOTORS,
            windowID=windowID,
        )

    def sendUE4PosNew(
        self,
        copterID: int = 1,
        vehicleType: int = 3,
        PosE: Any = _ZEROS,
        AngEuler: Any = _ZEROS,
        VelE: Any = _ZEROS,
        PWMs: Any = _NO_MOTORS,
        runnedTime: float = -1,
        windowID: int = -1,
    ) -> None:
        """Create or move a vehicle, with velocity, motor speeds and a time stamp (s; -1 = none)."""
        datagram = _pack_time(copterID, vehicleType, 0, PWMs, VelE, AngEuler, PosE, runnedTime)
        self._send(datagram, windowID)

    def sendUE4Pos2Ground(
        self,
        copterID: int = 1,
        vehicleType: int = 3,
        MotorRPMSMean: float = 0,
        PosE: Any = _ZEROS,
        AngEuler: Any = _ZEROS,
        windowID: int = -1,
    ) -> None:
        """Create or move a vehicle that RflySim3D keeps on the ground: its z is ignored."""
        self._send(
            _pack_simple(copterID, vehicleType, MotorRPMSMean, PosE, AngEuler, ground=True),
            windowID,
        )

    def sendUE4PosScale(
        self,
        copterID: int = 1,
        vehicleType: int = 3,
        MotorRPMSMean: float = 0,
        PosE: Any = _ZEROS,
        AngEuler: Any = _ZEROS,
        Scale: Any = _ONES,
        windowID: int = -1,
    ) -> None:
        """Create or move a vehicle of another size."""
        self._send(
            _pack_scaled(copterID, vehicleType, MotorRPMSMean, PosE, AngEuler, Scale), windowID
        )

    def sendUE4PosScale2Ground(
        self,
        copterID: int = 1,
        vehicleType: int = 3,
        MotorRPMSMean: float = 0,
        PosE: Any = _ZEROS,
        AngEuler: Any = _ZEROS,
        Scale: Any = _ONES,
        windowID: int = -1,
    ) -> None:
        """Create or move a vehicle of another size that RflySim3D keeps on the ground."""
        datagram = _pack_scaled(
            copterID, vehicleType, MotorRPMSMean, PosE, AngEuler, Scale, ground=True
        )
        self._send(datagram, windowID)

    def sendUE4PosSimple(
        self,
        copterID: int,
        vehicleType: int,
        PWMs: Any,
        VelE: Any,
        PosE: Any,
        AngEuler: Any,
        runnedTime: float = -1,
        windowID: int = -1,
    ) -> None:
        """Create or move a vehicle as sendUE4PosNew, in the old packet.

        Mind the order: velocity before position.
        """
        self._send(
            _pack_time_old(copterID, vehicleType, PWMs, PosE, VelE, AngEuler, runnedTime), windowID
        )

    def sendUE4PosFull(
        self,
        copterID: int,
        vehicleType: int,
        MotorRPMS: Any = _NO_MOTORS,
        VelE: Any = _ZEROS,
        PosE: Any = _ZEROS,
        RateB: Any = _ZEROS,
        AngEuler: Any = _ZEROS,
        windowID: int = -1,
    ) -> None:
        """Create or move a vehicle with angular rates (rad/s, FRD).

        Quaternion, acceleration and GPS are sent as 0.
        """
        datagram = _pack_full(
            copterID, vehicleType, 0, VelE, AngEuler, 0, MotorRPMS, 0, RateB, -1, PosE, 0
        )
        self._send(datagram, windowID)

    # ---- many vehicles

    def sendUE4PosScale100(
        self,
        copterID: Any,
        vehicleType: Any,
        PosE: Any,
        AngEuler: Any,
        MotorRPMSMean: Any,
        Scale: Any,
        isFitGround: Any = False,
        windowID: int = -1,
    ) -> None:
        """Create or move 100 vehicles in one packet.

        Flat vectors of 100 or 300; Scale in hundredths; id 0 leaves a slot unused.
        """
        datagram = _pack_100(
            copterID, vehicleType, PosE, AngEuler, Scale, MotorRPMSMean, ground=isFitGround
        )
        self._send(datagram, windowID)

    def sendUE4PosScalePwm20(
        self,
        copterID: Any,
        vehicleType: Any,
        PosE: Any,
        AngEuler: Any,
        Scale: Any,
        PWMs: Any,
        isFitGround: Any = False,
        windowID: int = -1,
    ) -> None:
        """Create or move 20 vehicles with 8 motors each in one packet.

        Flat vectors of 20, 60 or 160; Scale in hundredths.
        """
        self._send(
            _pack_20(copterID, vehicleType, PosE, AngEuler, Scale, PWMs, ground=isFitGround),
            windowID,
        )

    # ---- actions, attachments, labels

    def sendUE4ExtAct(
        self, copterID: int = 1, ActExt: Any = _NO_ACTIONS, windowID: int = -1
    ) -> None:
        """Send 16 numbers to a vehicle's blueprint, with the time since this object was made."""
        self._send(_pack_action(copterID, time.time() - self.startTime, ActExt), windowID)

    def sendUE4Attatch(
        self, CopterIDs: Any, AttatchIDs: Any, AttatchTypes: Any, windowID: int = -1
    ) -> None:
        """Attach up to 25 vehicles to others.

        Types: 0 not, 1 position, 2 position and yaw, 3 position and attitude.
        """
        self._send(_pack_attachments(CopterIDs, AttatchIDs, AttatchTypes), windowID)

    def sendUE4Destroy(self, copterID: int = 1, windowID: int = -1) -> None:
        """Delete a vehicle, as newer SDKs do.

        Their datagram is not public; this one is the command RflyDelVehicles of the manual.
        """
        self.sendUE4Cmd(f"RflyDelVehicles {copterID:d}", windowID)

    def sendUE4LabelID(
        self,
        CopterID: int = 0,
        Txt: str = "",
        fontSize: float = 30,
        RGB: Any = _RED,
        windowID: int = -1,
    ) -> None:
        """Set the id line above a vehicle; CopterID 0: above all."""
        self.sendUE4LabelMsg(CopterID, Txt, fontSize, RGB, 1, 0, windowID)

    def sendUE4LabelMsg(
        self,
        CopterID: int = 0,
        Txt: str = "",
        fontSize: float = 30,
        RGB: Any = _RED,
        dispTime: float = 0,
        dispFlag: int = -1,
        windowID: int = -1,
    ) -> None:
        """Set a line of text above a vehicle, cut at byte 120; RGB is exactly three integers.

        dispFlag < 0 appends a line, 1 to 5 replaces that one, 0 is the id line. dispTime 0 = for
        ever, > 0 = that many seconds, < 0 deletes the line, or all lines where dispFlag < 0.
        """
        datagram = _pack_label(CopterID, dispFlag, *RGB, dispTime, fontSize, Txt.encode())
        self._send(datagram, windowID)

    # ---- stencil values (segmentation and infrared pictures)

    def sendUE4SetStencilValueByCopterID(
        self, CopterID: int, StencilValue: int, windowID: int = -1
    ) -> None:
        """Set a vehicle's stencil value, then wait 0.1 s, as the next two."""
        self._send_stencil(f"RflySetStencilValueByCopterID {CopterID} {StencilValue}", windowID)

    def sendUE4SetStencilValueByActorName(
        self, Actorname: str, StencilValue: int, is_name_regex: bool = False, windowID: int = -1
    ) -> None:
        """Set the stencil value of actors by name.

        With `is_name_regex` it is that of all actors whose name matches the regular expression.
        """
        self._send_stencil(
            f"RflySetStencilValueByActorName {Actorname} {StencilValue} {is_name_regex}", windowID
        )

    def sendUE4SetStencilValueByMeshComponentName(
        self, Meshname: str, StencilValue: int, is_name_regex: bool = False, windowID: int = -1
    ) -> None:
        """Set the stencil value of mesh components by name.

        With `is_name_regex` it is that of all components whose name matches the regular expression.
        """
        self._send_stencil(
            f"RflySetStencilValueByMeshComponentName {Meshname} {StencilValue} {is_name_regex}",
            windowID,
        )

    def SetUE4RadianceValue(self, UEObjectName: str, windows: int = -1) -> None:
        """Show the objects with this name in theirs as bright as `radiation.tempEmissivity` says.

        It is their brightness for an infrared camera. ValueError for a name that is not in the
        table.
        """
        rows = [row for row in self.radiation.stencil_values() if row[0] == UEObjectName]
        if not rows:
            raise ValueError(f"{UEObjectName!r} is not in radiation.tempEmissivity")
        self._send_radiance(*rows[0], windows)

    def SetUE4RadianceValue__All(self, windows: int = -1) -> None:
        """Show the objects of all rows, as `SetUE4RadianceValue`."""
        for row in self.radiation.stencil_values():
            self._send_radiance(*row, windows)

    def _send_radiance(self, name: str, value: int, is_actor: bool, window: int) -> None:
        send: Callable[[str, int, bool, int], None]
        send = self.sendUE4SetStencilValueByMeshComponentName
        if is_actor:
            send = self.sendUE4SetStencilValueByActorName
        send(rf"[\w]*{name}[\w]*", value, True, window)

    # ---- requests

    def reqCamCoptObj(
        self, type_id: int = 1, objName: Any = 1, windowID: int = 0, *, type: int | None = None
    ) -> None:
        """Ask window 0 for cameras (type 0), vehicles (1) or scene objects (2).

        `objName` is the SeqID, copterID or name. A list or an array asks for each of its names,
        0.1 s apart. A name that is no integer (type 1) or no str (type 2) prints an error and is
        left out; a type that is no number is a TypeError. `type` is another name of `type_id`, as
        in the SDK's own description. RflySim3D sends the answer to port 20006; `getCamCoptObj`
        reads it.
        """
        type_id = type_id if type is None else type
        objName = objName.tolist() if isinstance(objName, np.ndarray) else objName
        for name in objName if isinstance(objName, list) else [objName]:
            if (type_id == OBJECT and not isinstance(name, str)) or (
                type_id == VEHICLE and not _is_integer(name)
            ):
                wanted = "a str, the object's name" if type_id == OBJECT else "an int, the copterID"
                print(f"reqCamCoptObj: {name!r} is not asked for, type_id {type_id} wants {wanted}")
                continue

            # a fraction is cut off, a text is a TypeError
            command = "RflyReqObjData %d %s 0" % (type_id, name)  # noqa: UP031
            if not isinstance(objName, list):
                print(command)
            self.sendUE4Cmd(command, windowID)
            if isinstance(objName, list):
                time.sleep(_BETWEEN_REQUESTS_S)

    def reqCam(self, SeqIDList: Any = _ID_0, windowID: int = 0) -> None:
        """Ask window 0 for cameras."""
        self.reqCamCoptObj(CAMERA, SeqIDList, windowID)

    def reqCopt(self, CopterIDList: Any = _ID_0, windowID: int = 0) -> None:
        """Ask window 0 for vehicles."""
        self.reqCamCoptObj(VEHICLE, CopterIDList, windowID)

    def reqObj(self, ObjNameList: Any = _NO_NAME, windowID: int = 0) -> None:
        """Ask window 0 for scene objects."""
        self.reqCamCoptObj(OBJECT, ObjNameList, windowID)

    # ---- answers

    def initUE4MsgRec(self) -> None:
        """Listen on UDP 20006 of every network interface, and to the multicast group 224.0.0.10.

        OSError if the port cannot be opened, or after `endUE4MsgRec`: make another object then.
        """
        self._listener.start()

    def endUE4MsgRec(self) -> None:
        """Stop listening, for good. It returns after 0.5 s, whether anything arrives or not."""
        self._listener.end()
        time.sleep(_LISTENER_END_S)

    def getUE4Pos(self, CopterID: int = 1) -> list[float]:
        """Return [x, y, z, 1] in m NED of a vehicle, [0, 0, 0, 0] before RflySim3D has reported it.

        It starts to listen if necessary, and then waits 1 s. RflySim3D reports only after
        `RflyReqVehicleData 1`, and only vehicles that changed since.
        """
        record = self.getUE4Data(CopterID)
        return [0, 0, 0, 0] if record == 0 else [*record.PosE, 1]

    def getUE4Data(self, CopterID: int = 1) -> Any:
        """Return the reqVeCrashData record of a vehicle, or 0; otherwise as getUE4Pos."""
        if self.stopFlagUE4:
            self.initUE4MsgRec()
            time.sleep(_LISTENER_START_S)
        return next((record for record in self.inReqVect if record.copterID == CopterID), 0)

    def getCamCoptObj(self, type_id: int = 1, objName: Any = 1, *, type: int | None = None) -> Any:
        """Return the record of a camera (type 0), vehicle (1) or scene object (2), or 0.

        It does not wait for one. `type` is another name of `type_id`.
        """
        type_id = type_id if type is None else type
        if (type_id == VEHICLE and isinstance(objName, str)) or (
            type_id == OBJECT and _is_integer(objName)
        ):
            print(f"getCamCoptObj: {objName!r} is no name for type_id {type_id}")
            return 0

        records, key = {
            CAMERA: (self.CamDataVect, "SeqID"),
            VEHICLE: (self.CoptDataVect, "CopterID"),
            OBJECT: (self.ObjDataVect, "ObjName"),
        }.get(type_id, ([], ""))
        return next((record for record in records if getattr(record, key) == objName), 0)

    @property
    def stopFlagUE4(self) -> bool:
        """False while it listens."""
        return not self._listener.listening

    inReqVect = _records_of(
        "reqVeCrashData",
        "reqVeCrashData records, one a vehicle, in the order of their first arrival, "
        "as in the other lists.",
    )
    inSilVect = _records_of("PX4SILIntFloat", "PX4SILIntFloat records.")
    CamDataVect = _records_of("CameraData", "CameraData records.")
    CamDataVect1 = _records_of("VisionSensorReqNew", "VisionSensorReqNew records.")
    CoptDataVect = _records_of("CoptReqData", "CoptReqData records.")
    ObjDataVect = _records_of("ObjReqData", "ObjReqData records.")

    @property
    def inReqUpdateVect(self) -> list[bool]:
        """Flags of inReqVect's records: True after every arrival; the script sets them to False."""
        return self._listener.vehicle_updates

    # ---- helpers

    def circle_traj(self, t: float, center: Any, radius: float, period: float) -> list[float]:
        """Return [x, y] on a circle, m, at a time t, s: it begins at +x and turns towards +y.

        Scripts call it so; that the last number is the time of one turn, s, is an assumption.
        """
        angle = 2.0 * math.pi * t / period
        return [center[0] + radius * math.cos(angle), center[1] + radius * math.sin(angle)]

    def fillList(self, data: Any, inLen: int) -> list[Any]:
        """Return a vector by the SDK's rule, for scripts that call it themselves."""
        return fill_list(data, inLen)

    def _send(self, datagram: bytes, window: int) -> None:
        if window >= 0:
            self.udp_socket.sendto(datagram, (self.ip, WINDOW_PORT + int(window)))
            return
        for k in range(WINDOWS):
            self.udp_socket.sendto(datagram, (self.ip, WINDOW_PORT + k))

    def _wait_for_map(self, command: bytes) -> None:
        if b"RflyChangeMap" in command:
            self._map_ready_s = time.monotonic() + MAP_CHANGE_SECONDS
            time.sleep(_MAP_CHANGE_PAUSE_S)
            time.sleep(_MAP_CHANGE_PAUSE_S)

    def _take_answer(self, crash: tuple[int, int] | None) -> None:
        """Note an answer, and the vehicle and target of a crash."""
        if crash is not None and crash[0] == self.CopterID and crash[1] >= 0:
            self.isVehicleCrash = True
            self.isVehicleCrashID = crash[1]
        self.hasMsgEvent.set()
        self.trueMsgEvent.set()

    def _send_stencil(self, command: str, window: int) -> None:
        self.sendUE4Cmd(command, window)
        time.sleep(_AFTER_STENCIL_S)


def _is_integer(value: Any) -> bool:
    """Return whether a value is an integer of Python or NumPy; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)

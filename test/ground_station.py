# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A ground station as a process: it starts and flies a vehicle in QGroundControl's order.

    python ground_station.py PORT SYSTEM_ID

The order of the start, the time limits and the reasons for warnings are those of QGroundControl's
sources (InitialConnectStateMachine, ParameterManager, PX4FirmwarePlugin, the setupComplete of
PX4's VehicleComponents). It prints what it saw as one line of JSON. `warnings` are the dialogs
that QGroundControl would have shown.
"""

from __future__ import annotations

import json
import math
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from node_harness import PATIENCE

os.environ["MAVLINK20"] = "1"

IDS = (255, 190)
"""System and component of QGroundControl."""
PROTOCOL_VERSION = (300, 217)
"""Number and CRC_EXTRA of a message that pymavlink does not know."""
COMPONENT_METADATA = (397, 182)
"""Number and CRC_EXTRA of another one."""
OLDEST_VERSION = (1, 4, 1)
"""Version of PX4 below which PX4FirmwarePlugin warns."""
LOOKED_UP = ("SYS_AUTOSTART", "COM_RC_IN_MODE", "CAL_GYRO0_ID", "CAL_ACC0_ID", "CAL_MAG0_ID")
"""Parameters that the vehicle's components read; one that is missing is reported."""
SET_UP = ("SYS_AUTOSTART", "CAL_GYRO0_ID", "CAL_ACC0_ID", "CAL_MAG0_ID")
"""Parameters that are not 0 if the vehicle is set up."""
TAKEOFF = 0x02040000
HOLD = 0x03040000
"""Numbers of PX4's modes."""
NAN = math.nan


class NoAnswer(Exception):
    """An answer that has not come in time."""


class GroundStation:
    """A socket, and the newest message of each kind."""

    def __init__(self, port: int, system_id: int) -> None:
        from pymavlink import mavutil
        from pymavlink.dialects.v20 import all as dialect

        mavutil.set_dialect("all")
        self.d = dialect
        self.link = mavutil.mavlink_connection(
            f"udpin:127.0.0.1:{port}", source_system=IDS[0], source_component=IDS[1]
        )
        self.to = (system_id, 1)
        self.newest: dict[str, Any] = {}
        self.texts: list[tuple[int, str]] = []
        self._beat_at = -math.inf

    def poll(self) -> Iterator[Any]:
        """Send the heartbeat, and return the vehicle's messages of a short time."""
        now = time.monotonic()
        if now - self._beat_at > 1.0 and self.newest:
            self._beat_at = now
            self.link.mav.heartbeat_send(6, 8, 0xC0, 0, 4)

        message = self.link.recv_match(blocking=True, timeout=0.02)
        while message is not None:
            if identity_of(message)[0] == self.to[0]:
                self.newest[message.get_type()] = message
                if message.get_type() == "STATUSTEXT":
                    self.texts.append((message.severity, message.text))
                yield message
            message = self.link.recv_match(blocking=False)

    def until(self, ready: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
        """Go on until something is true, and return its value."""
        deadline = time.monotonic() + seconds
        while not (value := ready()):
            if time.monotonic() > deadline:
                raise NoAnswer(f"{what}: not within {seconds:g} s; {self.texts}")
            for _ in self.poll():
                pass
        return value

    def ask(self, what: str, send: Callable[[], None], is_answer: Callable[[Any], Any]) -> Any:
        """Send a request once, and return the answer, which has to come."""
        for _ in self.poll():
            pass
        begun = time.monotonic()
        send()
        while time.monotonic() - begun < PATIENCE:
            for message in self.poll():
                if is_answer(message):
                    return message
        raise NoAnswer(what)

    def command(self, number: int, *params: float) -> str:
        """Send COMMAND_LONG, and return the name of its result."""
        filled = [*params, *[NAN] * (7 - len(params))]
        ack = self.ask(
            f"command {number}",
            lambda: self.link.mav.command_long_send(*self.to, number, 0, *filled),
            lambda m: m.get_type() == "COMMAND_ACK" and m.command == number,
        )
        return str(self.d.enums["MAV_RESULT"][ack.result].name)

    def request_message(self, number: int) -> list[Any]:
        """Request a message as Vehicle::requestMessage does: its ACK and it have to come."""
        got: list[Any] = []
        acks: list[Any] = []

        def is_whole(message: Any) -> bool:
            if identity_of(message)[1] == number:
                got.append(message)
            elif message.get_type() == "COMMAND_ACK" and message.command == 512:
                acks.append(message.result)
            return bool(acks) and (acks != [0] or bool(got))

        self.ask(
            f"request of message {number}",
            lambda: self.link.mav.command_long_send(*self.to, 512, 0, number, *[0] * 6),
            is_whole,
        )
        if acks != [0]:
            raise NoAnswer(f"message {number} is refused with {acks}")
        return got


def identity_of(message: Any) -> tuple[int, int]:
    """Return system and number of a message, also of one that pymavlink does not know."""
    if message.get_type().startswith("UNKNOWN"):
        frame = bytes(message.get_msgbuf())
        return frame[5], int.from_bytes(frame[7:10], "little")
    return message.get_srcSystem(), message.get_msgId()


def payload_of(message: Any, crc_extra: int, size: int) -> bytes:
    """Return the payload of a message that pymavlink does not know, with its zeros at the end."""
    from pymavlink.generator.mavcrc import x25crc

    frame = bytes(message.get_msgbuf())
    end = 10 + frame[1]
    crc = x25crc(frame[1:end] + bytes((crc_extra,)))
    if crc.crc != int.from_bytes(frame[end : end + 2], "little"):
        raise NoAnswer(f"wrong check bytes in {frame.hex()}")
    return frame[10:end].ljust(size, b"\0")


# --- files


class FileReader:
    """Files of the vehicle by MAVLink FTP, with bursts, as FTPManager reads them."""

    def __init__(self, station: GroundStation) -> None:
        self._station = station
        self._seq = 0

    def request(
        self, opcode: int, data: bytes = b"", session: int = 0, offset: int = 0, size: int = 0
    ) -> tuple[int, int, bytes]:
        """Return opcode, session and data of the reply."""
        self._seq += 1
        head = struct.pack("<HBBBBBxI", self._seq, session, opcode, size or len(data), 0, 0, offset)
        payload = (head + data).ljust(251, b"\0")
        reply = self._station.ask(
            f"FTP {opcode}",
            lambda: self._station.link.mav.file_transfer_protocol_send(
                0, *self._station.to, payload
            ),
            lambda m: m.get_type() == "FILE_TRANSFER_PROTOCOL" and m.payload[5] == opcode,
        )
        content = bytes(reply.payload)
        return content[3], content[2], content[12 : 12 + content[4]]

    def list(self, path: str) -> list[str]:
        """Return the lines of a folder."""
        lines: list[str] = []
        while True:
            opcode, _, data = self.request(3, path.encode(), offset=len(lines))
            if opcode != 128:
                return lines
            lines += data.decode().rstrip("\0").split("\0")

    def read(self, path: str) -> bytes:
        """Return a whole file, read by one burst."""
        opcode, session, data = self.request(4, path.encode())
        if opcode != 128:
            raise NoAnswer(f"{path}: error {list(data)}")
        size = int.from_bytes(data, "little")

        content = bytearray(size)
        got = 0
        self._seq += 1
        head = struct.pack("<HBBBBBxI", self._seq, session, 15, 239, 0, 0, 0)
        self._station.link.mav.file_transfer_protocol_send(
            0, *self._station.to, head.ljust(251, b"\0")
        )
        deadline = time.monotonic() + PATIENCE
        while got < size and time.monotonic() < deadline:
            for message in self._station.poll():
                part = bytes(getattr(message, "payload", bytes(6)))
                if (part[3], part[5]) == (128, 15):
                    offset = int.from_bytes(part[8:12], "little")
                    content[offset : offset + part[4]] = part[12 : 12 + part[4]]
                    got += part[4]
        self.request(1, session=session)
        if got != size:
            raise NoAnswer(f"{path}: {got} of {size} bytes")
        return bytes(content)

    def crc(self, path: str) -> int:
        """Return the checksum that the vehicle calculates."""
        opcode, _, data = self.request(14, path.encode())
        return int.from_bytes(data, "little") if opcode == 128 else -1


def crc_of(data: bytes) -> int:
    """Return MAVLink's CRC32 of a file, bit by bit from its definition."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc


# --- start-up


def autopilot_version(station: GroundStation, seen: dict[str, Any]) -> None:
    """Step 1: the version, and the services that it promises."""
    version = station.request_message(148)[-1]
    number = version.flight_sw_version
    seen["version"] = [number >> shift & 0xFF for shift in (24, 16, 8)]
    seen["capabilities"] = version.capabilities
    if tuple(seen["version"]) < OLDEST_VERSION:
        seen["warnings"].append("supports PX4 Pro firmware Version 1.4.1 and above")


def protocol_version(station: GroundStation, seen: dict[str, Any]) -> None:
    """Step 2: MAVLink 2."""
    number, crc_extra = PROTOCOL_VERSION
    payload = payload_of(station.request_message(number)[-1], crc_extra, 22)
    seen["protocol"] = int.from_bytes(payload[:2], "little")


def standard_modes(station: GroundStation, seen: dict[str, Any]) -> None:
    """Step 3: all modes, which come after one request."""
    got: list[Any] = []

    def is_last(message: Any) -> bool:
        if message.get_type() == "AVAILABLE_MODES":
            got.append(message)
        return bool(got) and bool(got[-1].mode_index >= got[-1].number_modes)

    station.ask(
        "the list of modes",
        lambda: station.link.mav.command_long_send(*station.to, 512, 0, 435, *[0] * 6),
        is_last,
    )

    seen["modes"] = {str(mode.custom_mode): [mode.standard_mode, mode.mode_name] for mode in got}
    seen["number_modes"] = got[-1].number_modes


def component_metadata(station: GroundStation, seen: dict[str, Any]) -> None:
    """Step 4: the general file, and from there the file of the parameters."""
    number, crc_extra = COMPONENT_METADATA
    payload = payload_of(station.request_message(number)[-1], crc_extra, 108)
    general_crc = int.from_bytes(payload[4:8], "little")
    uri = payload[8:108].rstrip(b"\0").decode()

    reader = FileReader(station)
    general = reader.read(uri.removeprefix("mftp://"))
    files = {entry["type"]: entry for entry in json.loads(general)["metadataTypes"]}
    parameters = reader.read(files[1]["uri"].removeprefix("mftp://"))
    seen["crcs"] = [
        [general_crc, crc_of(general), reader.crc(uri.removeprefix("mftp://"))],
        [files[1]["fileCrc"], crc_of(parameters)],
    ]
    seen["described"] = {each["name"]: each for each in json.loads(parameters)["parameters"]}
    seen["root"] = reader.list("/")


def parameters(station: GroundStation, seen: dict[str, Any]) -> None:
    """Step 5: all parameters by one request; those that are missing by their index."""
    values: dict[int, Any] = {}

    def is_last(message: Any) -> bool:
        if message.get_type() == "PARAM_VALUE" and message.param_index < 65535:
            values[message.param_index] = message
        return bool(values) and len(values) == next(iter(values.values())).param_count

    station.ask(
        "the list of parameters",
        lambda: station.link.mav.param_request_list_send(*station.to),
        is_last,
    )
    seen["param_count"] = next(iter(values.values())).param_count
    seen["parameters"] = {value.param_id: _number(value) for value in values.values()}

    missing = [name for name in LOOKED_UP if name not in seen["parameters"]]
    if missing:
        seen["warnings"].append(f"Parameters are missing from firmware: {missing}")
    not_set_up = [name for name in SET_UP if not seen["parameters"].get(name)]
    if not_set_up or seen["parameters"].get("COM_RC_IN_MODE") != 1:
        seen["warnings"].append(f"components require setup: {not_set_up}")


def _number(value: Any) -> float:
    """Return the value of a parameter; an integer's bytes are sent as a float's."""
    if value.param_type == 9:
        return float(value.param_value)
    return int(struct.unpack("<i", struct.pack("<f", value.param_value))[0])


def plan(station: GroundStation, kind: int) -> list[Any]:
    """Steps 6 to 8: download a mission (0), a fence (1) or rally points (2)."""
    count = station.ask(
        f"list of kind {kind}",
        lambda: station.link.mav.mission_request_list_send(*station.to, kind),
        lambda m: m.get_type() == "MISSION_COUNT" and m.mission_type == kind,
    ).count
    items = []
    for seq in range(count):
        items.append(
            station.ask(
                f"item {seq} of kind {kind}",
                lambda seq=seq: station.link.mav.mission_request_int_send(*station.to, seq, kind),
                lambda m, seq=seq: (
                    m.get_type() == "MISSION_ITEM_INT" and (m.seq, m.mission_type) == (seq, kind)
                ),
            )
        )
    station.link.mav.mission_ack_send(*station.to, 0, kind)
    return items


def connect(station: GroundStation) -> dict[str, Any]:
    """Go through the steps of the start, and return what came of each."""
    seen: dict[str, Any] = {"warnings": [], "steps": []}
    station.until(lambda: station.newest.get("HEARTBEAT"), "HEARTBEAT")
    for step in (
        autopilot_version,
        protocol_version,
        standard_modes,
        component_metadata,
        parameters,
    ):
        step(station, seen)
        seen["steps"].append(step.__name__)
    seen["plans"] = [len(plan(station, kind)) for kind in (0, 1, 2)]
    return seen


# --- flight


def upload(station: GroundStation, kind: int, rows: list[tuple[Any, ...]]) -> str:
    """Upload rows (frame, command, params 1 to 4, x, y, z); return the result's name."""
    mav = station.link.mav
    answers = ("MISSION_REQUEST", "MISSION_REQUEST_INT", "MISSION_ACK")

    def ask(what: str, send: Callable[[], None]) -> Any:
        return station.ask(what, send, lambda m: m.get_type() in answers)

    message = ask(
        f"upload of kind {kind}", lambda: mav.mission_count_send(*station.to, len(rows), kind)
    )
    while message.get_type() != "MISSION_ACK":
        seq = message.seq
        frame, command, *numbers = rows[seq]
        item = (*station.to, seq, frame, command, 0, 1, *numbers, kind)
        message = ask(
            f"row {seq} of kind {kind}", lambda item=item: mav.mission_item_int_send(*item)
        )
    return str(station.d.enums["MAV_MISSION_RESULT"][message.type].name)


def fly(station: GroundStation) -> dict[str, Any]:
    """Take off by the slider, go to a place, change the altitude and land: the Fly view."""
    seen: dict[str, Any] = {}

    def height() -> float:
        return float(station.newest["GLOBAL_POSITION_INT"].relative_alt) * 1e-3

    def landed() -> int:
        return int(station.newest["EXTENDED_SYS_STATE"].landed_state)

    # the slider: NAV_TAKEOFF with the altitude above sea comes before ARM
    here = station.newest["GLOBAL_POSITION_INT"]
    ground = here.alt * 1e-3
    seen["takeoff"] = station.command(22, -1.0, 0.0, 0.0, NAN, NAN, NAN, ground + 25.0)
    seen["arm"] = station.command(400, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    station.until(lambda: station.newest["HEARTBEAT"].custom_mode == TAKEOFF, "take-off")
    station.until(lambda: abs(height() - 25.0) < 0.2, "25 m")
    station.until(lambda: landed() == 2, "in the air")
    station.until(lambda: station.newest["HEARTBEAT"].custom_mode == HOLD, "hold")
    seen["height"] = height()

    # go to a place, 30 m to the north
    there = here.lat + round(30.0 / 111_174.0 * 1e7)
    result = station.ask(
        "reposition",
        lambda: station.link.mav.command_int_send(
            *station.to, 0, 192, 0, 0, -1.0, 1.0, 0.0, NAN, there, here.lon, ground + 25.0
        ),
        lambda m: m.get_type() == "COMMAND_ACK" and m.command == 192,
    )
    seen["goto"] = result.result
    station.until(
        lambda: abs(station.newest["GLOBAL_POSITION_INT"].lat - there) < 20, "30 m to the north"
    )

    # change the altitude, and land
    seen["altitude"] = station.command(192, -1.0, 1.0, 0.0, NAN, NAN, NAN, ground + 15.0)
    station.until(lambda: height() < 16.0, "15 m")
    seen["land"] = station.command(176, 1.0, 4.0, 6.0)
    station.until(lambda: landed() == 1, "on the ground")
    station.until(lambda: not station.newest["HEARTBEAT"].base_mode & 128, "disarmed")
    landing = station.newest["GLOBAL_POSITION_INT"]
    seen["landed"] = [(landing.lat - here.lat) * 1e-7 * 111_174.0, height()]
    return seen


def exchange_plans(station: GroundStation) -> dict[str, Any]:
    """Upload a mission, a fence and rally points, and download them again."""
    home = station.newest["HOME_POSITION"]
    x, y = home.latitude, home.longitude

    def east(metres: float) -> int:
        return y + round(metres / 76_056.0 * 1e7)

    def north(metres: float) -> int:
        return x + round(metres / 111_174.0 * 1e7)

    corners = ((-100.0, -100.0), (-100.0, 100.0), (100.0, 100.0), (100.0, -100.0))
    uploads = (
        [(6, 22, 0.0, 0.0, 0.0, NAN, x, y, 12.0), (6, 16, 0.0, 3.0, 0.0, NAN, north(20), y, 12.0)],
        [(0, 5001, 4.0, 0.0, 0.0, 0.0, north(n), east(e), 0.0) for n, e in corners],
        [(3, 5100, 0.0, 0.0, 0.0, 0.0, north(10), east(10), 20.0)],
    )
    results = [upload(station, kind, rows) for kind, rows in enumerate(uploads)]
    downloads = [plan(station, kind) for kind in range(3)]
    equal = [
        [(m.command, m.x, m.y, m.z) for m in got] == [(r[1], r[6], r[7], r[8]) for r in rows]
        for got, rows in zip(downloads, uploads, strict=True)
    ]
    return {"uploads": results, "equal": equal}


def main(port: int, system_id: int) -> None:
    station = GroundStation(port, system_id)
    seen = connect(station)
    station.until(lambda: "HOME_POSITION" in station.newest, "HOME_POSITION")
    seen |= exchange_plans(station)
    seen |= fly(station)
    seen["texts"] = station.texts
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

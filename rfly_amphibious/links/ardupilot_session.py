"""Session with one ArduPilot SITL, by its JSON interface over UDP: servo outputs from it, the
vehicle's state to it.

Layouts as in `libraries/SITL/examples/JSON/readme.md` of ArduPilot. World axes NED, body axes FRD.
"""

from __future__ import annotations

import dataclasses
import json
import math
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.control.commands import RotorCommand, WheelCommand
from rfly_amphibious.links.controller_session import ControllerSession
from rfly_amphibious.links.mavlink_hil import ControlMapping
from rfly_amphibious.links.perception import Perception
from rfly_amphibious.links.transport import UdpTransport
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import LinkError, PacketError
from rfly_common.frames import enu_to_ned, flu_to_frd, quat_enu_flu_to_ned_frd

_SERVOS = {18458: struct.Struct("<HHI16H"), 29569: struct.Struct("<HHI32H")}
"""by their magic number, which comes first: frame rate, frame count, pulses"""
_MAGIC = struct.Struct("<H")
LOW = 1000
MIDDLE = 1500
HIGH = 2000
"""µs"""
DRAG_BRAKE = 0.25
"""of the largest brake torque"""


class ServoFrame(NamedTuple):
    """One frame of ArduPilot's outputs."""

    rate: int
    """frames a second that it would like"""
    number: int
    """from 0 on at each start of ArduPilot; a frame that is sent again keeps it"""
    pulses: tuple[int, ...]
    """(16,) or (32,) µs; 0: the output is off"""


def decode_servos(datagram: bytes) -> ServoFrame:
    """Raises PacketError for anything else."""
    magic = _MAGIC.unpack_from(datagram)[0] if len(datagram) >= _MAGIC.size else -1
    layout = _SERVOS.get(magic)
    if layout is None:
        raise PacketError(
            "magic", f"begins with {magic}, expected {' or '.join(map(str, _SERVOS))}"
        )
    if len(datagram) != layout.size:
        raise PacketError(
            "length", f"{len(datagram)} bytes after magic {magic}, expected {layout.size}"
        )
    _, rate, count, *pulses = layout.unpack(datagram)
    return ServoFrame(rate, count, tuple(pulses))


def encode_state(time: float, seen: Perception) -> bytes:
    """One line of JSON. `time`: s of the simulation. Needs IMU and pose; wind and height are told
    where known.

    IMU axes have to be the body's.
    """
    imu = seen.imu
    pose = seen.pose
    assert imu is not None
    assert pose is not None
    told: dict[str, Any] = {
        "timestamp": time,
        "imu": {
            "gyro": flu_to_frd(imu.rates[-1]).tolist(),
            "accel_body": flu_to_frd(imu.specific_force[-1]).tolist(),
        },
        "position": enu_to_ned(pose.position).tolist(),
        "quaternion": np.roll(quat_enu_flu_to_ned_frd(pose.orientation), 1).tolist(),
        "velocity": enu_to_ned(pose.velocity).tolist(),
    }
    if np.isfinite(seen.wind).all():
        told |= {
            "velocity_wind": enu_to_ned(seen.wind).tolist(),
            "airspeed": max(seen.airspeed, 0.0),
        }
    if math.isfinite(seen.height):
        told["rng_1"] = seen.height
    return f"\n{json.dumps(told, separators=(',', ':'), allow_nan=False)}\n".encode("ascii")


def servo_commands(
    time: float, pulses: Sequence[int], mapping: ControlMapping, params: VehicleParameters
) -> tuple[RotorCommand, WheelCommand]:
    """Rotors and brake rest at 1000 µs and below, steering and drive at 1500 µs.

    Wheels are braked where drive and brake are off, as beside ArduCopter and by a Rover that is
    disarmed: it goes on to steer. Where nobody supplies the brake, a drive that is neutral to the
    microsecond brakes by DRAG_BRAKE, as speed controllers of cars do: Rover's HOLD tells no more.
    """
    shares = [(pulse - LOW) / (HIGH - LOW) if pulse else math.nan for pulse in pulses]
    sides = [2.0 * share - 1.0 for share in shares]
    if mapping.brake >= 0:
        sides[mapping.brake] = shares[mapping.brake]
    wheels = mapping.wheel_command(time, sides, params)
    no_brake = mapping.brake < 0 or math.isnan(shares[mapping.brake])
    if no_brake and (mapping.drive < 0 or math.isnan(shares[mapping.drive])):
        wheels = WheelCommand.braked(params, time, params.max_brake_torque)
    elif no_brake and pulses[mapping.drive] == MIDDLE:
        drag = np.full(len(params.wheels), DRAG_BRAKE * params.max_brake_torque)
        wheels = dataclasses.replace(wheels, brake_torque=drag)
    return mapping.rotor_command(time, shares, params), wheels


class DriveInterlock:
    """Keeps drive and brake off until the drive has been off or neutral once, as a car's speed
    controller does: until Rover has assigned its outputs they stand at 1000 µs, which for a drive
    is full reverse.
    """

    def __init__(self, mapping: ControlMapping) -> None:
        self._drive = mapping.drive
        self._held = {mapping.drive, mapping.brake}
        self._last = -1
        self._released = False

    def pulses(self, frame: ServoFrame) -> tuple[int, ...]:
        """The frame's, with drive and brake off where they are held; ArduPilot's next start holds
        them again.
        """
        if frame.number < self._last:
            self._released = False
        self._last = frame.number
        if self._drive < 0 or frame.pulses[self._drive] in (0, MIDDLE):
            self._released = True
        if self._released:
            return frame.pulses
        return tuple(
            0 if output in self._held else pulse for output, pulse in enumerate(frame.pulses)
        )


PORT = 9002
"""ArduPilot's; its instance n sends to 10 n more"""
LATE_FRAMES = 100
"""a count that is so much lower is a frame that comes late; one that is lower still comes from a
new start
"""
REPEAT_AFTER_S = 0.5
"""ArduPilot sends a frame again 1 s after the last at the earliest: what comes sooner is the same
datagram, doubled
"""
COUNTERS = ("frames", "no_frame", "late", "doubled", "replies_sent_again", "starts", "overflow")
"""frames: new ones · no_frame: datagrams of somebody or something else · late: older than the
newest · doubled: as the newest · replies_sent_again: because ArduPilot asked once more · starts: of
ArduPilot · overflow: of a full queue
"""


class ArdupilotSession(ControllerSession[ServoFrame]):
    """Takes servo frames, each once and in order; each is to be answered once, with a state.

    A reply that was lost is sent again when ArduPilot sends its frame again.
    """

    def __init__(
        self, bind: str, port: int, host: str, wake: Callable[[], None] | None = None
    ) -> None:
        super().__init__(lambda handler: UdpTransport(bind, port, host, 0, handler), wake, COUNTERS)
        self._lock = threading.Lock()
        self._newest = -1
        self._reply: tuple[int, float, bytes] | None = None

    def start(self) -> None:
        """Raises LinkError where the port cannot be opened."""
        try:
            super().start()
        except LinkError as error:
            raise LinkError(
                f"{error}. Betaflight's motors come to UDP {PORT} too: betaflight_node and ardupilot_json_node "
                "do not run together on one machine, nor two of these with one port"
            ) from error

    def reply(self, frame: ServoFrame, state: bytes) -> None:
        """The answer to a frame. Never waits."""
        with self._lock:
            self._reply = frame.number, time.monotonic(), state
        self._transport.send(state)

    # --- in the transport's thread

    def opened(self, peer: str) -> None:
        """ArduPilot runs, or another one."""
        self._begin(-1)

    def parse(self, data: bytes) -> list[ServoFrame]:
        """Of a datagram: one, or none."""
        try:
            return [decode_servos(data)]
        except PacketError:
            self._counts["no_frame"] += 1
            return []

    def take(self, items: list[ServoFrame]) -> bool:
        """Whether it was the newest frame, or a newer one."""
        alive = False
        for frame in items:
            if frame.number == self._newest:
                self._repeat(frame.number)
            elif frame.number and 0 < self._newest - frame.number < LATE_FRAMES:
                self._counts["late"] += 1
                continue
            else:
                if frame.number < self._newest:
                    self._begin(frame.number)
                self._newest = frame.number
                self._counts["frames"] += 1
                self._queue_command(frame)
                self._wake_up()
            alive = True
        return alive

    def _begin(self, count: int) -> None:
        self._counts["starts"] += 1
        self._newest = count
        with self._lock:
            self._reply = None

    def _repeat(self, count: int) -> None:
        """What was lost once more; a second reply to a doubled frame would leave ArduPilot a frame
        behind for ever.
        """
        self._counts["doubled"] += 1
        now = time.monotonic()
        with self._lock:
            if (
                self._reply is None
                or self._reply[0] != count
                or now - self._reply[1] < REPEAT_AFTER_S
            ):
                return
            self._reply = count, now, self._reply[2]
            state = self._reply[2]
        self._counts["replies_sent_again"] += 1
        self._transport.send(state)

    def _send_heartbeat(self) -> None:
        """ArduPilot speaks first, always."""
